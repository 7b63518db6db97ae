"""One request for a model: where it goes, what may be done for it, and what comes back."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from surecall.base.background import read_in_thread
from surecall.base.errors import Code, ProviderError, ProviderReplyError, ProviderStatusError
from surecall.base.limits import MAX_INLINE_CHARACTERS, MIB
from surecall.base.records import Usage
from surecall.base.redaction import mask_error, open_log
from surecall.exchange.mediation import mediate, relay
from surecall.exchange.policy import Delivered, Policy, Report, Route, Sent
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.gateway.headers import Wishes, returned_headers
from surecall.gateway.prompts import Prompt, read_prompt
from surecall.gateway.upstreams import Target, may_fall_back
from surecall.text import encode

from .asking import Asking, read_error
from .client import find_stream_usage, find_usage
from .streaming import StreamingJob

if TYPE_CHECKING:
    from surecall.models.client import Answer

_log = open_log("surecall.gateway")
_MAX_OBSERVED_BYTES: Final = 8 * MIB
_TAIL_BYTES: Final = 16 * 1024
_ENDS: Final = (b"[DONE]", b"message_stop", b"response.completed", b"finishReason")
"""What the last event of a stream has in it, in any format."""
_DONE_NOTHING: Final = Policy(
    steps=(), max_requests=1, likely_calls="deliver", text_formats=False, repair_history=False
)


class Job(StreamingJob):
    """One request for a model."""

    named: tuple[str, bool] | None = None
    """What the path says: the model, and whether to stream."""
    _tail = b""

    async def _serve(self) -> None:
        state, head = self._state, self._head
        if not head.is_json:
            raise ProviderStatusError(
                Code.UNSUPPORTED_CONTENT_TYPE, "The body must be application/json.", status=415
            )
        if head.encoding not in (b"", b"identity"):
            raise ProviderStatusError(
                Code.UNSUPPORTED_CONTENT_TYPE, "The body must not be compressed.", status=415
            )
        wishes = head.wishes()
        request, prompt = await self._parse()
        self._request = request
        self._prompt = head.prompt or prompt.name
        if self._caller is not None:
            if self._caller.settings.models:
                check = partial(self._caller.check_models, (request.model,), request.body)
                await read_in_thread(check, is_long=request.is_long)
            await self._begin_counting()
        self._is_repeated = self._core.failures.take(self._scope, self._body)
        targets = state.router.find(request.model)
        self._check_prices(targets)
        share = self._core.prefixes.note(self._scope, prompt)
        if share is not None:
            where = (targets[0].upstream.name, request.model)
            self._core.request_metrics.prefix_share.observe(share, *where)
        gate = self._core.gate
        if not gate.try_enter():
            await self._core.wait_at(gate)
        self._core.budget.live += 1
        try:
            await self._try_targets(targets, wishes)
        finally:
            self._core.budget.live -= 1
            gate.leave()

    async def _parse(self) -> tuple[ClientRequest, Prompt]:
        def read() -> tuple[ClientRequest, Prompt]:
            request = ClientRequest.parse(self._protocol, self._body, model=model, stream=stream)
            return request, read_prompt(request.members)

        model, stream = self.named or (None, None)
        return await read_in_thread(read, is_long=len(self._body) > MAX_INLINE_CHARACTERS)

    async def _try_targets(self, targets: tuple[Target, ...], wishes: Wishes) -> None:
        """Ask one target after the other, as long as nothing was delivered."""
        assert self._request is not None
        first = targets[0]
        for target in targets:
            is_last = target is targets[-1]
            upstream = target.upstream
            if upstream.breaker.is_open and not is_last:
                self.note_skipped(target, Code.CONNECTION_FAILED)
                continue
            if not upstream.gate.try_enter():
                try:
                    await self._core.wait_at(upstream.gate)
                except ProviderStatusError:
                    if is_last:
                        raise
                    self.note_skipped(target, Code.OVERLOADED)
                    continue
            try:
                self._target = target
                asking = Asking(self, target, first, is_last)
                if await self._ask(asking, wishes):
                    if self._attempts and self._attempts[-1].outcome == "answered":
                        upstream.health.note(None)
                    return
            finally:
                upstream.leave()

    async def _ask(self, asking: Asking, wishes: Wishes) -> bool:
        """Ask a target; return whether the client has its answer."""
        request, target = self._request, asking.target
        assert request is not None
        strategies = self._state.strategies
        observes = wishes.observe or self._state.observes(target)
        may_probe = request.offers_tools and not observes
        known = strategies.recall(target)
        if known is None or (may_probe and not known.knows_tools):
            known = await strategies.find(target, with_tools=may_probe)
        self._known = known
        route = known.route
        is_same = route.protocol.name == self._protocol.name
        if is_same and (wishes.off or observes):
            policy = self._state.policy_for(target) if observes else None
            return await self._relay_untouched(asking, route, policy)
        if self._state.settings.models:
            request = self._override(request, target)
        if not is_same:
            request = request.as_functions()
        policy = self._state.policy_for(target)
        if (wishes.off or observes) and not request.stream:
            await self._deliver(await relay(request, route, asking.send))
            return True
        if wishes.off or observes:
            policy = _DONE_NOTHING
            if route.strategy != "native":
                route = replace(route, strategy="native")
        elif wishes.receipts or wishes.without:
            policy = replace(
                policy,
                steps=tuple(step for step in policy.steps if step not in wishes.without),
                show_receipts=wishes.receipts,
            )
        if self._is_repeated:  # so that both together ask no more than one of them would
            policy = replace(policy, max_requests=1)
        if request.offers_tools and not wishes.off:
            policy = self._with_refused_calls(policy, target, wishes)
        if request.stream:
            return await self._stream(request, route, policy, asking)
        return await self._whole(request, route, policy, asking)

    def _with_refused_calls(self, policy: Policy, target: Target, wishes: Wishes) -> Policy:
        """Return the policy with what request, key or upstream say about wrong calls."""
        head, caller = self._head, self._caller
        wanted = target.upstream.entry.settings.refused_calls or policy.refused_calls
        if caller is not None and caller.settings.refused_calls is not None:
            wanted = caller.settings.refused_calls
        wanted = wishes.refused_calls or wanted
        if wanted == "auto" and head.is_agent:
            wanted = "deliver"
        return policy if wanted == policy.refused_calls else replace(policy, refused_calls=wanted)

    def _override(self, request: ClientRequest, target: Target) -> ClientRequest:
        """Return the request with the fields that the settings replace."""
        model = self._state.strategies.model_settings(target)
        if model is None or not model.request_overrides:
            return request
        body = encode({**request.document, **model.request_overrides})
        return ClientRequest.parse(self._protocol, body, model=request.model, stream=request.stream)

    async def _whole(
        self, request: ClientRequest, route: Route, policy: Policy, asking: Asking
    ) -> bool:
        echoes, scope = self._core.echoes, self._scope
        delivered = await mediate(request, route, policy, asking.send, echoes=echoes, scope=scope)
        error = delivered.error
        self._upstream_s += delivered.upstream_s
        if delivered.outcome == "failed":
            self.note_unusable(asking.target, error)
        if delivered.outcome == "failed" and not asking.is_last and may_fall_back(error):
            return False
        await self._deliver(delivered)
        return True

    def _usage_so_far(self) -> Usage | None:
        return find_stream_usage(self._tail) if self._tail else super()._usage_so_far()

    async def _relay_untouched(self, asking: Asking, route: Route, policy: Policy | None) -> bool:
        """Pass request and reply on as they are; with a policy, note what it would have done."""
        request = self._request
        assert request is not None
        body = request.body_for(asking.target.model)
        self.count_request(body)
        began_s = time.perf_counter()
        try:
            answer = await asking.send_once(body, stream=request.stream)
        except ProviderError as error:
            self.note_attempt(asking.target, began_s, error)
            raise
        self._answer = answer
        headers = returned_headers(answer.raw_headers)
        self._upstream_s += time.perf_counter() - began_s
        if dict(headers).get(b"content-type", b"").startswith(b"text/event-stream"):
            self.note_attempt(asking.target, began_s, None)
            await self._start_relaying(answer.status, headers)
            return await self._relay_stream(answer, route, policy)
        reply, failure = bytearray(), None
        try:
            await self._pipe_on(answer, reply.extend)
        except ProviderError as error:
            failure = error
        self._received_bytes += len(reply)
        refusal, body = failure, bytes(reply)
        sent = Sent(answer.status, answer.header_map, body)
        if refusal is None and answer.status >= 400:
            refusal = read_error(asking.target.upstream.protocol, sent)
            body = mask_error(body)
        self.note_attempt(asking.target, began_s, refusal)
        found = await self._observe(sent, route, None if failure else policy, is_stream=False)
        await self._keep_relayed(answer.status, found, failure, find_usage(body), body)
        if failure is not None:
            await self._start_relaying(answer.status, headers)
            self._break_off(body)
            return True
        headers += self._own_headers("relayed", 0)
        await self._respond(answer.status, headers, body)
        return True

    async def _relay_stream(self, answer: "Answer", route: Route, policy: Policy | None) -> bool:
        held, seen = b"", bytearray()
        failure: ProviderError | None = None

        def feed(chunk: bytes) -> None:
            nonlocal held
            self._note_received(chunk)
            if policy is not None and len(seen) <= _MAX_OBSERVED_BYTES:
                seen.extend(chunk)
            if held:
                self._write(held)
                held = b""
            if any(mark in chunk for mark in _ENDS):
                held = chunk  # the last event waits for the record
            else:
                self._write(chunk)
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

        try:
            await self._pipe_on(answer, feed)
        except ProviderError as error:
            failure = error
        sent = Sent(answer.status, answer.header_map, bytes(seen))
        found = await self._observe(sent, route, None if failure else policy, is_stream=True)
        self._count(held)
        await self._keep_relayed(answer.status, found, failure, find_stream_usage(self._tail), None)
        if failure is not None:
            self._break_off(held)
            return True
        await self._send({"type": "http.response.body", "body": held, "more_body": False})
        return True

    async def _pipe_on(self, answer: "Answer", feed: Callable[[bytes], object]) -> None:
        began_s = time.perf_counter()
        try:
            await answer.pipe(feed)
        finally:
            self._answer = None
            self._upstream_s += time.perf_counter() - began_s

    def _break_off(self, data: bytes) -> None:
        """Show the client what came: a body that ends too early."""
        if data:
            self._link.write_piece(data)
        self._link.transport.close()

    async def _keep_relayed(
        self,
        status: int,
        found: Report,
        failure: ProviderError | None,
        usage: Usage | None,
        reply: bytes | None,
    ) -> None:
        relayed = Delivered(
            status=status,
            body=b"",
            outcome="relayed",
            receipts=found.receipts,
            defects=found.defects,
            parse_error=found.parse_error,
            model_answered=found.model_answered,
            usage=usage,
            calls=found.calls,
            error=failure,
        )
        await self._keep(self._record(status, relayed, reply))

    async def _start_relaying(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._has_started = True
        self._first_byte_s = time.perf_counter() - self._began_s
        headers = [*headers, *self._own_headers("relayed", 0)]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _observe(
        self, sent: Sent, route: Route, policy: Policy | None, *, is_stream: bool
    ) -> Report:
        """Find out what a policy would have done about a reply that is passed on."""
        request, found = self._request, Report(outcome="relayed")
        assert request is not None
        is_read = request.offers_tools and sent.status < 400
        is_read = is_read and len(sent.body) <= _MAX_OBSERVED_BYTES
        if policy is None or not is_read or (is_stream and request.streams_several):
            return found
        alone = replace(policy, max_requests=1, repair_history=False, show_receipts=False)
        native = replace(route, strategy="native")

        def read_stream() -> Report:
            relay = StreamRelay(request, native, alone, headers=sent.headers)
            relay.feed(sent.body)
            return relay.finish()

        async def repeat(_body: bytes) -> Sent:
            return sent

        try:
            if is_stream:
                is_long = len(sent.body) > MAX_INLINE_CHARACTERS
                found = await read_in_thread(read_stream, is_long=is_long)
            else:
                found = await mediate(request, native, alone, repeat)
        except Exception:  # it is the client's reply all the same
            _log.exception("The reply of request %s could not be observed.", self.id)
            return found
        may_ask = policy.max_requests > 1 and policy.allows("reask")
        error, self._observed = found.error, found.outcome
        is_lost = isinstance(error, ProviderReplyError) and error.retryable
        if may_ask and (is_lost or found.outcome in ("refused", "unrepaired")):
            self._observed = "reasked"
        return found
