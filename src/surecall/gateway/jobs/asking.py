"""Asking an upstream with the right key, and whole answers with the record of what was done."""

import asyncio
import time
from collections.abc import Awaitable
from random import random
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError, SurecallError
from surecall.base.records import Usage
from surecall.base.redaction import mask_error
from surecall.exchange.policy import Delivered, Ending, Sent, Step
from surecall.exchange.request import ClientRequest
from surecall.gateway.headers import (
    ATTEMPTS,
    DEFECTS,
    OUTCOME,
    RECEIPTS,
    REQUEST_ID,
    UPSTREAM,
    end_retries,
    may_repeat,
    render_error,
    retry_headers,
    returned_plain,
)
from surecall.gateway.jobs.client import ClientJob
from surecall.gateway.upstreams import Known, Target, Upstream
from surecall.models.transport.retry import RetryPolicy, parse_retry_after, plan_wait
from surecall.store.records.record import (
    AttemptNote,
    ParseError,
    ProbeNote,
    RequestRecord,
    StepNote,
)
from surecall.wire import WireProtocol

if TYPE_CHECKING:
    from surecall.models.client import Answer, RequestHead

_MAX_WRITTEN: Final = 16


class AskingJob(ClientJob):
    """A job that asks models."""

    _requests = 0
    _retries = 0
    _waited_s = 0.0
    _is_repeated = False
    """Whether the client repeats what has just failed: then the gateway does not as well."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._attempts: list[AttemptNote] = []

    @property
    def _scope(self) -> str:
        """Whose conversation it is."""
        return self._caller.id if self._caller is not None else self._head.token

    def note_attempt(self, target: Target, began_s: float, error: ProviderError | None) -> None:
        """Note how an attempt at a target ended."""
        ms = int((perf_counter() - began_s) * 10_000 + 0.5) / 10
        name = target.upstream.name
        if error is None:  # what it says is still to be read
            self._attempts.append(AttemptNote(name, target.model, ms=ms))
            return
        self._note_failure(target, error)
        self._attempts.append(AttemptNote(name, target.model, "failed", str(error.code), ms))

    def _note_failure(self, target: Target, error: SurecallError) -> None:
        if target.upstream.health.note(error) and self._state.router.choices:
            target.tally.note(broken=True)

    def note_skipped(self, target: Target, code: Code) -> None:
        """Note that a target was not asked."""
        name = target.upstream.name
        self._attempts.append(AttemptNote(name, target.model, "skipped", str(code)))

    def note_unusable(self, target: Target, error: SurecallError | None) -> None:
        """Note that nothing can be made of what the last attempt brought."""
        if error is None or not self._attempts or self._attempts[-1].outcome != "answered":
            return
        last = self._attempts[-1]
        self._attempts[-1] = replace(last, outcome="failed", error=str(error.code))
        self._note_failure(target, error)

    def _trail(self) -> bytes:
        """Return every attempt as a header names it: `a;error=UPSTREAM_5XX;ms=12, b;ms=230`."""
        named = [
            f"{item.upstream}{f';error={item.error}' if item.error else ''};ms={int(item.ms + 0.5)}"
            for item in self._attempts
        ]
        return ", ".join(named).encode()

    def count_request(self, body: bytes) -> None:
        """Count a request to an upstream."""
        self._requests += 1
        self._asked_bytes += len(body)

    async def wait_to_retry(self, error: ProviderError) -> bool:
        """Wait before a retry; return whether there is one."""
        settings = self._state.settings.retry
        if self._has_started or self._has_left or self._is_cut or self._is_repeated:
            return False
        policy = RetryPolicy(max_retries=settings.max_retries, max_wait_s=settings.max_wait_s)
        wait_s = plan_wait(
            policy, error, retries=self._retries, waited_s=self._waited_s, random=random
        )
        budget = self._core.budget
        if wait_s is None or not budget.try_begin():
            return False
        try:
            await asyncio.sleep(wait_s)
        finally:
            budget.end()
        self._waited_s += wait_s
        self._retries += 1
        return True

    def prepare(self, target: Target, first: Target, path: str) -> "RequestHead":
        """Return the head of a request to an upstream, with the key that is meant for it."""
        upstream, written = target.upstream, self._head.written
        place = (upstream, first.upstream, path, self._protocol.name)
        found = written.get(place)
        if found is None:
            found = upstream.prepare("POST", path, self._headers_for(upstream, first.upstream))
            if len(written) < _MAX_WRITTEN and self._span is None:
                written[place] = found
        return found

    def _headers_for(self, upstream: Upstream, first: Upstream) -> list[tuple[str, str]]:
        head = self._head
        is_same = upstream.protocol.name == self._protocol.name
        headers = [("content-type", "application/json"), *self._passed]
        if is_same:
            headers += head.formal
        own = upstream.own_auth
        if self._caller is not None or upstream.entry.embedded:
            return headers + list(own or ())
        is_meant = upstream.base == first.base
        if own is not None and (not head.key or not is_meant):
            return headers + list(own)
        if not is_meant or not head.token:
            return headers
        if is_same:
            return headers + head.auth
        return headers + list(upstream.protocol.render_auth(head.token).items())


class Asking:
    """Asks one target on behalf of a job, with at most one retry before the first byte."""

    __slots__ = ("_first", "_job", "is_last", "target")

    def __init__(self, job: "AskingJob", target: Target, first: Target, is_last: bool) -> None:
        self._job = job
        self._first = first
        self.target = target
        self.is_last = is_last

    async def send(self, body: bytes) -> Sent:
        """Send a body and return the whole answer; `Send` of the exchange."""
        return cast("Sent", await self.open(body, stream=False))

    async def open(self, body: bytes, *, stream: bool) -> "Answer | Sent":
        """Send a body and return the open answer; without `stream`, and of an error, all of it."""
        job, attempt = self._job, 0
        while True:
            attempt += 1
            job.count_request(body)
            began_s = perf_counter()
            try:
                answer = await self.send_once(body, stream=stream)
                if stream and answer.status < 400:
                    job.note_attempt(self.target, began_s, None)
                    return answer
                data = await job.read_whole(answer)
            except ProviderError as error:
                job.note_attempt(self.target, began_s, error)
                if not self.is_last or not await job.wait_to_retry(error):
                    error.attempts = attempt
                    raise
                continue
            sent = Sent(answer.status, answer.header_map, data, attempt)
            refusal = self._note_answer(sent, began_s)
            if refusal is None or not self.is_last or not await job.wait_to_retry(refusal):
                return sent

    def _note_answer(self, sent: Sent, began_s: float) -> ProviderError | None:
        """Note an answer that has come, and return the error that it stands for."""
        refusal = None
        if sent.status >= 400:
            refusal = read_error(self.target.upstream.protocol, sent)
        self._job.note_attempt(self.target, began_s, refusal)
        return refusal

    def send_once(self, body: bytes, *, stream: bool) -> "Awaitable[Answer]":
        """Send a body and return the answer, whatever it is."""
        upstream = self.target.upstream
        if not upstream.is_ready:
            return self._open_and_send(body, stream=stream)
        path = upstream.path_of(self.target.model, stream=stream)
        return upstream.send_with(self._job.prepare(self.target, self._first, path), body)

    async def _open_and_send(self, body: bytes, *, stream: bool) -> "Answer":
        await self.target.upstream.open()
        return await self.send_once(body, stream=stream)


def read_error(protocol: WireProtocol, sent: Sent) -> ProviderError:
    """Return the error that an answer stands for."""
    error = protocol.parse_error(sent.status, sent.headers, sent.body)
    if error.retry_after_s is None:
        error.retry_after_s = parse_retry_after(sent.headers, time.time())
    return error


_JSON_TYPE: Final = (b"content-type", b"application/json")


class AnsweringJob(AskingJob):
    """A job that answers as a client of its format expects it."""

    _first_byte_s: float | None = None
    _request: ClientRequest | None = None
    _target: Target | None = None
    _known: Known | None = None
    _prompt = ""
    _observed = ""
    """What would have become of a reply that is passed on untouched."""

    async def _deliver(self, delivered: Delivered) -> None:
        """Answer with a whole reply, once its record is durable."""
        status, body, receipts = delivered.status, delivered.body, len(delivered.receipts)
        if status == 422 and delivered.outcome == "refused" and self._head.repeats_422:
            status = 400
        if status >= 400 and delivered.outcome in ("failed", "relayed"):
            body = mask_error(body)  # an upstream may repeat the gateway's key, which no client has
        await self._keep(self._record(status, delivered, body))
        link, cycle = self._link, self._cycle
        is_usual = (
            self._target is not None
            and not delivered.headers
            and delivered.error is None
            and not delivered.defects
        )
        if is_usual and link.can_write(cycle) and not self._core.is_draining:
            assert self._target is not None
            link.write_reply(
                cycle,
                status,
                delivered.outcome,
                receipts,
                of=self.id,
                trail=(self._target.upstream.name.encode(), self._trail()),
                body=body,
            )
            return
        headers = [_JSON_TYPE, *self._own_headers(delivered.outcome, receipts)]
        if delivered.defects:
            codes = ",".join(dict.fromkeys(defect.code for defect in delivered.defects))
            headers.append((DEFECTS, codes.encode()))
        if delivered.headers:
            headers += returned_plain(delivered.headers)
        if delivered.error is not None and status >= 400:
            self._note_failed(delivered.outcome)
            if not delivered.should_retry or not may_repeat(delivered.error, delivered.headers):
                headers = end_retries(headers)
        await self._respond(status, headers, body)

    def _note_failed(self, outcome: str) -> None:
        if outcome == "failed" and self._requests:
            self._core.failures.note(self._scope, self._body)

    def _own_headers(self, outcome: str, receipts: int) -> list[tuple[bytes, bytes]]:
        return [
            (OUTCOME, outcome.encode()),
            (REQUEST_ID, self.id.encode()),
            (RECEIPTS, str(receipts).encode()),
            *self._trail_headers(),
        ]

    def _trail_headers(self) -> list[tuple[bytes, bytes]]:
        """Say which upstream was asked last, and every attempt before."""
        if self._target is None or not self._attempts:
            return []
        return [(UPSTREAM, self._target.upstream.name.encode()), (ATTEMPTS, self._trail())]

    async def _respond(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        headers = [*headers, (b"content-length", str(len(body)).encode())]
        if self._link.can_write(self._cycle) and not self._core.is_draining:
            self._link.write_whole(self._cycle, status, headers, body)
            return
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _fail(self, error: SurecallError) -> None:
        """Answer with an error, in the format of the client."""
        status, body = render_error(self._protocol, error)
        headers = [_JSON_TYPE, *self._own_headers("failed", 0)]
        own = retry_headers(error)
        if isinstance(error, ProviderError):
            named = {name for name, _ in own}
            headers += [item for item in returned_plain(error.headers) if item[0] not in named]
        headers += own
        if self._core.is_draining:
            headers.append((b"connection", b"close"))
        self._note_failed("failed")
        failed = Delivered(status=status, body=body, outcome="failed", error=error)
        await self._keep(self._record(status, failed, body))
        await self._respond(status, headers, body)

    def _describe_left(self) -> RequestRecord:
        status = 200 if self._has_started else 499
        left = Delivered(status=status, body=b"", outcome="failed", usage=self._usage_so_far())
        return replace(self._record(status, left), error_code=str(Code.CLIENT_CLOSED))

    def _usage_so_far(self) -> Usage | None:
        """Return the tokens that were reported before the reply came to its end."""
        return None

    def _record(
        self, status: int, result: Delivered | Ending, reply: bytes | None = None
    ) -> RequestRecord:
        """Return the record of the request, and charge its key.

        Args:
            status: What the client got.
            result: How it came about.
            reply: The body, unless it was streamed.
        """
        total_s = perf_counter() - self._began_s
        upstream_s, first_byte_s = self._upstream_s, self._first_byte_s
        request, target, usage = self._request, self._target, result.usage
        size = len(reply) if reply is not None else self._sent_bytes
        is_failed = result.outcome == "failed"
        cost = self._charge(usage, self._prices_of(target), is_failed=is_failed)
        is_read = (outcome := self._observed or result.outcome) not in ("failed", "relayed")
        if is_read and self._state.router.choices and request and request.offers_tools:
            cast("Target", target).tally.note(broken=outcome != "clean")
        record = RequestRecord(  # in the order of its fields, which is quickest
            id=self.id,
            time=self.time,
            client_protocol=self._protocol.name,
            upstream="" if target is None else target.upstream.name,
            upstream_protocol="" if target is None else target.upstream.entry.protocol,
            model_asked="" if request is None else request.model,
            model_answered=result.model_answered or "",
            strategy="" if self._known is None else self._known.route.strategy,
            prompt=self._prompt,
            observed=self._observed,
            outcome=result.outcome,
            stream=request is not None and request.stream,
            status=status,
            tools=0 if request is None else len(request.tools.specs),
            calls=result.calls,
            upstream_requests=self._requests,
            prompt_tokens=0 if usage is None else usage.input_tokens,
            completion_tokens=0 if usage is None else usage.output_tokens,
            cached_tokens=0 if usage is None else usage.cached_tokens,
            request_bytes=len(self._body),
            reply_bytes=size,
            upstream_ms=_to_ms(upstream_s),
            added_ms=_to_ms(max(0.0, total_s - upstream_s - self._waited_s)),
            cost=cost,
            first_byte_ms=None if first_byte_s is None else _to_ms(first_byte_s),
        )
        if self._has_findings(result):
            return self._add_findings(record, result, reply)
        return record

    def _has_findings(self, result: Delivered | Ending) -> bool:
        """Tell whether there is more to say about a request than what every one has."""
        if result.receipts or result.defects or result.steps or result.parse_error or result.error:
            return True
        known = self._known
        return (
            self._caller is not None
            or self._copy is not None
            or self._has_trail()
            or self._has_left
            or (known is not None and known.probe_ok is not None)
        )

    def _has_trail(self) -> bool:
        """Tell whether there was more than one attempt that was answered."""
        attempts = self._attempts
        return len(attempts) > 1 or (bool(attempts) and attempts[0].outcome != "answered")

    def _add_findings(
        self, record: RequestRecord, result: Delivered | Ending, reply: bytes | None
    ) -> RequestRecord:
        """Return the record with what only some have."""
        known, copy, error = self._known, self._copy, result.error
        parse_error = result.parse_error
        if parse_error is not None:
            parse_error = ParseError(parse_error.mode, parse_error.error, parse_error.snippet)
        probe = None
        if known is not None and known.probe_ok is not None:
            probe = ProbeNote(known.probe_ok, known.probe_error or None)
        if reply is None and copy is not None:
            reply = copy.read()
        return replace(
            record,
            key_id="" if self._caller is None else self._caller.id,
            error_code="" if error is None else str(error.code),
            client_closed=self._has_left,
            retries=self._retries,
            probe=probe,
            steps=tuple(map(_note_step, result.steps)),
            receipts=result.receipts,
            defects=result.defects,
            parse_error=parse_error,
            attempts=tuple(self._attempts) if self._has_trail() else (),
            request_body=None if copy is None else self._body,
            reply_body=None if copy is None else reply,
        )


def _note_step(step: Step) -> StepNote:
    outcome = "rescued" if step.outcome == "ok" else step.outcome
    return StepNote(step.name, outcome, step.requests)


def _to_ms(seconds: float) -> float:
    """Return milliseconds with three decimals; `round` would take as long as all the rest."""
    return int(seconds * 1e6 + 0.5) / 1000
