"""One request for a model: where it goes, what may be done for it, and what comes back."""

import time
from functools import partial
from typing import Final

from msgspec.structs import replace

from surecall.base.background import read_aside
from surecall.base.errors import Code, ProviderError, ProviderStatusError
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import Usage
from surecall.base.redaction import mask_error
from surecall.exchange.agents import is_agent
from surecall.exchange.mediation import mediate, relay
from surecall.exchange.policy import Delivered, Policy, Route, Sent
from surecall.exchange.request import ClientRequest
from surecall.gateway.heads import Wishes, returned_headers
from surecall.gateway.upstreams import Target, may_fall_back
from surecall.text import encode

from .asking import Asking, read_error
from .client import find_stream_usage, find_usage
from .streaming import StreamingJob

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
        request = self._request = await self._parse()
        if self._caller is not None:
            if self._caller.settings.models:
                check = partial(self._caller.check_models, (request.model,), request.body)
                await read_aside(check, is_long=request.is_long)
            await self._begin_counting()
        targets = state.router.find(request.model)
        gate = self._core.gate
        if not gate.try_enter():
            await self._core.wait_at(gate)
        self._core.budget.live += 1
        try:
            await self._try_targets(targets, wishes)
        finally:
            self._core.budget.live -= 1
            gate.leave()

    async def _parse(self) -> ClientRequest:
        body, (model, stream) = self._body, self.named or (None, None)
        if len(body) <= MAX_INLINE_CHARACTERS:
            return ClientRequest.parse(self._protocol, body, model=model, stream=stream)
        parse = partial(ClientRequest.parse, self._protocol, body, model=model, stream=stream)
        return await read_aside(parse, is_long=True)

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
        known = strategies.recall(target)
        if known is None or (request.offers_tools and not known.knows_tools):
            known = await strategies.find(target, with_tools=request.offers_tools)
        self._known = known
        route = known.route
        is_same = route.protocol.name == self._protocol.name
        if wishes.off and is_same:
            return await self._relay_untouched(asking)
        if self._state.settings.models:
            request = self._override(request, target)
        if not is_same:
            request = request.as_functions()
        policy = self._state.policy_for(target)
        if wishes.off and not request.stream:
            await self._deliver(await relay(request, route, asking.send))
            return True
        if wishes.off:
            policy = _DONE_NOTHING
            if route.strategy != "native":
                route = replace(route, strategy="native")
        elif wishes.receipts or wishes.without:
            policy = replace(
                policy,
                steps=tuple(step for step in policy.steps if step not in wishes.without),
                show_receipts=wishes.receipts,
            )
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
        if wanted == "auto" and is_agent([*head.passed, *head.formal]):
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
        delivered = await mediate(
            request,
            route,
            policy,
            asking.send,
            echoes=self._core.echoes,
            scope=self._scope,
        )
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

    async def _relay_untouched(self, asking: Asking) -> bool:
        """Pass request and reply on as they are."""
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
        is_stream = any(
            name == b"content-type" and value.startswith(b"text/event-stream")
            for name, value in headers
        )
        if not is_stream:
            reply = await self.read_whole(answer)
            refusal = None
            if answer.status >= 400:
                sent = Sent(answer.status, answer.header_map, reply)
                refusal = read_error(asking.target.upstream.protocol, sent)
                reply = mask_error(reply)
            self.note_attempt(asking.target, began_s, refusal)
            self._upstream_s += time.perf_counter() - began_s
            relayed = Delivered(
                status=answer.status, body=reply, outcome="relayed", usage=find_usage(reply)
            )
            await self._keep(self._record(answer.status, relayed, reply))
            length = (b"content-length", str(len(reply)).encode())
            own = self._own_headers("relayed", 0)
            await self._respond(answer.status, [*headers, *own, length], reply)
            return True
        self.note_attempt(asking.target, began_s, None)
        own = self._own_headers("relayed", 0)
        self._has_started = True
        self._first_byte_s = time.perf_counter() - self._began_s
        await self._send(
            {"type": "http.response.start", "status": answer.status, "headers": [*headers, *own]}
        )
        held = b""

        def feed(chunk: bytes) -> None:
            nonlocal held
            self._note_received(chunk)
            if held:
                self._write(held)
                held = b""
            if any(mark in chunk for mark in _ENDS):
                held = chunk  # the last event waits for the record
            else:
                self._write(chunk)
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

        failure: ProviderError | None = None
        try:
            await answer.pipe(feed)
        except ProviderError as error:
            failure = error
        self._answer = None
        self._upstream_s += time.perf_counter() - began_s
        usage = find_stream_usage(self._tail)
        self._count(held)
        relayed = Delivered(
            status=answer.status, body=b"", outcome="relayed", usage=usage, error=failure
        )
        await self._keep(self._record(answer.status, relayed))
        if failure is not None:  # the client sees what came: a body that ends too early
            if held:
                self._link.write_piece(held)
            self._link.transport.close()
            return True
        await self._send({"type": "http.response.body", "body": held, "more_body": False})
        return True
