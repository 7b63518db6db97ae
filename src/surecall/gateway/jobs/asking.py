"""Reaching an upstream for a job: with the right key, and at most one retry."""

import asyncio
import time
from collections.abc import Awaitable
from random import random
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError, SurecallError
from surecall.exchange.policy import Sent
from surecall.gateway.records import AttemptNote
from surecall.gateway.upstreams import Target, Upstream
from surecall.models.transport.retry import RetryPolicy, parse_retry_after, plan_wait
from surecall.wire import WireProtocol

from .client import ClientJob

if TYPE_CHECKING:
    from surecall.models.client import Answer, RequestHead

_MAX_WRITTEN: Final = 16


class AskingJob(ClientJob):
    """A job that asks models."""

    _requests = 0
    _retries = 0
    _waited_s = 0.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._attempts: list[AttemptNote] = []

    def note_attempt(self, target: Target, began_s: float, error: ProviderError | None) -> None:
        """Note how an attempt at a target ended."""
        ms = round((time.perf_counter() - began_s) * 1000, 1)
        name = target.upstream.name
        if error is None:  # what it says is still to be read
            self._attempts.append(AttemptNote(name, target.model, ms=ms))
            return
        target.upstream.health.note(error)
        self._attempts.append(AttemptNote(name, target.model, "failed", str(error.code), ms))

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
        target.upstream.health.note(error)

    def _trail(self) -> bytes:
        """Return every attempt as a header names it: `a;error=UPSTREAM_5XX;ms=12, b;ms=230`."""
        return ", ".join(
            f"{item.upstream}{f';error={item.error}' if item.error else ''};ms={item.ms:.0f}"
            for item in self._attempts
        ).encode()

    def count_request(self, body: bytes) -> None:
        """Count a request to an upstream."""
        self._requests += 1
        self._asked_bytes += len(body)

    async def wait_to_retry(self, error: ProviderError) -> bool:
        """Wait before a retry; return whether there is one."""
        settings = self._state.settings.retry
        if self._has_started or self._has_left or self._is_cut:
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
            if len(written) < _MAX_WRITTEN:
                written[place] = found
        return found

    def _headers_for(self, upstream: Upstream, first: Upstream) -> list[tuple[str, str]]:
        head = self._head
        is_same = upstream.protocol.name == self._protocol.name
        headers = [("content-type", "application/json"), *head.passed]
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
        job = self._job
        attempt = 0
        while True:
            attempt += 1
            job.count_request(body)
            began_s = time.perf_counter()
            try:
                answer = await self.send_once(body, stream=False)
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

    async def open(self, body: bytes, *, stream: bool) -> "Answer | Sent":
        """Send a body and return the open answer, or all of it when it is an error."""
        job = self._job
        while True:
            job.count_request(body)
            began_s = time.perf_counter()
            try:
                answer = await self.send_once(body, stream=stream)
                if answer.status < 400:
                    job.note_attempt(self.target, began_s, None)
                    return answer
                data = await job.read_whole(answer)
                sent = Sent(answer.status, answer.header_map, data)
            except ProviderError as error:
                job.note_attempt(self.target, began_s, error)
                if not self.is_last or not await job.wait_to_retry(error):
                    raise
                continue
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
