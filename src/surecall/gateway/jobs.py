"""One request for a model: from its body to its record, whole or streamed.

The job runs in the task of the server. Bytes of a stream go from the upstream's socket to the
client's without an await in between; the last of them wait until the record is durable.
"""

import asyncio
import time
from collections.abc import Mapping
from random import random
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import (
    Code,
    ProviderError,
    ProviderStatusError,
    RequestError,
    StoreError,
    SurecallError,
)
from surecall.exchange import ClientRequest, Delivered, Policy, Route, Sent, mediate
from surecall.exchange.streams import Ending, StreamRelay
from surecall.jsontext import encode
from surecall.protocols import WireProtocol
from surecall.records import Defect, Receipt, Usage
from surecall.redaction import open_log
from surecall.transport.admission import Refusal
from surecall.transport.retry import RetryPolicy, parse_retry_after, plan_wait

from .gates import overloaded
from .heads import Head, Wishes, hide_key, returned_headers, returned_plain
from .keys import Caller, forbidden
from .records import ParseError, ProbeNote, RequestRecord, StepNote, new_request_id
from .upstreams import Known, Target, Upstream, may_fall_back

if TYPE_CHECKING:
    from .app import Gateway, State
    from .client import Answer
    from .server import GatewayProtocol

_log = open_log("surecall.gateway")

_BYTES_PER_TOKEN: Final = 4
_LINGER_S: Final = 1.0
_TAIL_BYTES: Final = 16 * 1024
_JSON_TYPE: Final = (b"content-type", b"application/json")
_STREAM_HEADERS: Final = (
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_DONE_NOTHING: Final = Policy(
    steps=(), max_requests=1, likely_calls="deliver", text_formats=False, repair_history=False
)


class ClientLeft(Exception):  # noqa: N818 - a signal
    """The client left before its request was complete."""


class _Usage(Struct):
    usage: Any = None
    usageMetadata: Any = None  # noqa: N815 - the name on the wire


_decode_usage: Final = msgspec.json.Decoder(_Usage).decode


async def read_body(receive: Any, head: Head, limit: int) -> bytes:
    """Return the body of a request.

    Raises:
        ProviderStatusError: `REQUEST_TOO_LARGE`.
        ClientLeft: It never came in full.
    """
    if head.length > limit:
        raise _too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientLeft
    body: bytes = message["body"]
    if not message["more_body"]:
        return body
    pieces, size = [body], len(body)
    while message["more_body"]:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        pieces.append(message["body"])
        size += len(message["body"])
        if size > limit:
            raise _too_large(limit)
    return b"".join(pieces)


def _too_large(limit: int) -> ProviderStatusError:
    return ProviderStatusError(
        Code.REQUEST_TOO_LARGE,
        f"The body has more than {limit} bytes.",
        hint="Send less, or raise limits.max_request_bytes.",
        status=413,
    )


def status_of_refusal(refusal: Refusal) -> ProviderStatusError:
    """Return the error that a refused request is answered with."""
    return ProviderStatusError(refusal.code, refusal.message, status=refusal.status)


def render_error(protocol: WireProtocol, error: SurecallError) -> tuple[int, bytes]:
    """Return the status and the body of an error in the format of a client."""
    wire = protocol.render_error(error)
    status = wire.status
    if isinstance(error, ProviderStatusError) and error.status in {403, 413, 415, 429, 503}:
        status = error.status
    return status, encode(wire.body)


class Job:
    """One request for a model.

    Args:
        gateway: Who serves it.
        state: The settings in force when it came.
        protocol: The format of the client.
        head: What its headers say.
        caller: The virtual key it came with, if there are any.
        asgi: Scope, receive and send of the server.
        named: The model and whether a stream is wanted, where the path says so.
    """

    def __init__(
        self,
        gateway: "Gateway",
        state: "State",
        protocol: WireProtocol,
        head: Head,
        caller: Caller | None,
        asgi: tuple[Any, Any, Any],
        named: tuple[str, bool] | None = None,
    ) -> None:
        self._gateway = gateway
        self._state = state
        self._protocol = protocol
        self._head = head
        self._caller = caller
        scope, self._receive, self._send = asgi
        self._link: GatewayProtocol = scope["surecall.link"]
        self._named = named
        self._secret = hide_key(head.token)
        self.id = new_request_id()
        self.time = time.time()
        self._began_s = time.perf_counter()
        self._upstream_s = 0.0
        self._first_byte_s: float | None = None
        self._body = b""
        self._request: ClientRequest | None = None
        self._target: Target | None = None
        self._known: Known | None = None
        self._task: asyncio.Task[Any] | None = None
        self._answer: Answer | None = None
        self._relay: StreamRelay | None = None
        self._requests = 0
        self._retries = 0
        self._waited_s = 0.0
        self._has_started = False
        self._is_over = False
        self._has_left = False
        self._is_cut = False
        self._sent_bytes = 0
        self._tail = b""

    # from beginning to end

    async def run(self) -> None:
        """Serve the request; whatever happens, the client gets an answer and a record is left."""
        gateway = self._gateway
        try:
            self._body = await read_body(
                self._receive, self._head, self._state.settings.limits.max_request_bytes
            )
        except ClientLeft:
            return
        except SurecallError as error:
            await self._fail(error)
            return
        task = self._task = asyncio.current_task()
        assert task is not None
        self._link.on_lost = self._on_client_left
        self._link.keep_reading()
        gateway.live.add(self)
        try:
            await self._serve()
        except SurecallError as error:
            await self._fail(error)
        except asyncio.CancelledError:
            if not self._has_left and not self._is_cut:
                raise
            task.uncancel()
            await self._end_early()
        except Exception:
            _log.exception("request %s failed", self.id)
            await self._fail(
                SurecallError(
                    Code.INTERNAL_ERROR,
                    "The gateway failed.",
                    hint=f"Its log has more under {self.id}.",
                )
            )
        finally:
            self._is_over = True
            self._link.on_lost = self._link.on_writable = None
            gateway.live.discard(self)

    def _on_client_left(self) -> None:
        self._has_left = True
        if self._answer is not None:
            self._answer.abort()
        if self._task is not None and not self._is_over:
            self._task.cancel()

    def cut(self) -> None:
        """End the request now, because the gateway ends."""
        self._is_cut = True
        if self._task is not None and not self._is_over:
            self._task.cancel()

    async def _end_early(self) -> None:
        if self._has_left:
            record = self._record(status=499 if not self._has_started else 200, outcome="failed")
            self._keep_soon(replace(record, client_closed=True, error_code=Code.CLIENT_CLOSED))
            return
        await self._fail(overloaded("The gateway is being stopped.", 5.0))

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
        model, stream = self._named or (None, None)
        request = ClientRequest.parse(self._protocol, self._body, model=model, stream=stream)
        self._request = request
        if self._caller is not None:
            if not self._caller.may_ask(request.model):
                raise forbidden(f"The key may not ask for {request.model[:80]!r}.")
            refusal = self._caller.begin(self.time)
            if refusal is not None:
                self._gateway.count_shed(
                    "rate_limit" if refusal.code == Code.RATE_LIMIT else "budget"
                )
                raise refusal
        targets = state.router.find(request.model)
        gate = self._gateway.gate
        if not gate.try_enter():
            await self._gateway.wait_at(gate)
        self._gateway.budget.live += 1
        try:
            await self._try_targets(targets, wishes)
        finally:
            self._gateway.budget.live -= 1
            gate.leave()

    async def _try_targets(self, targets: tuple[Target, ...], wishes: Wishes) -> None:
        """Ask one target after the other, as long as nothing was delivered."""
        assert self._request is not None
        first = targets[0]
        for target in targets:
            is_last = target is targets[-1]
            upstream = target.upstream
            if upstream.breaker.is_open and not is_last:
                continue
            if not upstream.gate.try_enter():
                try:
                    await self._gateway.wait_at(upstream.gate)
                except ProviderStatusError:
                    if is_last:
                        raise
                    continue
            try:
                self._target = target
                asking = _Asking(self, target, first, is_last=is_last)
                if await self._ask(asking, wishes):
                    return
            finally:
                upstream.leave()

    async def _ask(self, asking: "_Asking", wishes: Wishes) -> bool:
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
        policy = self._state.policy_for(target)
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
        request = self._override(request, target)
        if request.stream:
            return await self._stream(request, route, policy, asking)
        return await self._whole(request, route, policy, asking)

    def _override(self, request: ClientRequest, target: Target) -> ClientRequest:
        """Return the request with the fields that the settings replace."""
        model = self._state.strategies.model_settings(target)
        if model is None or not model.request_overrides:
            return request
        body = encode({**request.document, **model.request_overrides})
        return ClientRequest.parse(
            self._protocol, body, model=request.model, stream=request.stream
        )

    # whole replies

    async def _whole(
        self, request: ClientRequest, route: Route, policy: Policy, asking: "_Asking"
    ) -> bool:
        delivered = await mediate(
            request,
            route,
            policy,
            asking.send,
            echoes=self._gateway.echoes,
            scope=self._scope,
        )
        error = delivered.error
        self._upstream_s += delivered.upstream_s
        if delivered.outcome == "failed" and not asking.is_last and may_fall_back(error):
            return False
        await self._deliver(delivered)
        return True

    @property
    def _scope(self) -> str:
        return self._caller.id if self._caller is not None else self._head.token

    async def _deliver(self, delivered: Delivered) -> None:
        headers = [
            _JSON_TYPE,
            (b"content-length", str(len(delivered.body)).encode()),
            *self._own_headers(delivered.outcome, len(delivered.receipts)),
        ]
        if delivered.headers:
            headers += returned_plain(delivered.headers)
        if delivered.error is not None:
            headers = _end_retries(headers)
        usage = delivered.usage
        record = self._record(
            status=delivered.status,
            outcome=delivered.outcome,
            receipts=delivered.receipts,
            defects=delivered.defects,
            steps=delivered.steps,
            parse_error=delivered.parse_error,
            usage=usage,
            model_answered=delivered.model_answered,
            calls=delivered.calls,
            error=delivered.error,
            reply=delivered.body,
        )
        await self._keep(record)
        await self._respond(delivered.status, headers, delivered.body)

    def _own_headers(self, outcome: str, receipts: int) -> list[tuple[bytes, bytes]]:
        return [
            (b"x-surecall-outcome", outcome.encode()),
            (b"x-surecall-request-id", self.id.encode()),
            (b"x-surecall-receipts", str(receipts).encode()),
        ]

    async def _respond(
        self, status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None:
        self._first_byte_s = self._first_byte_s or time.perf_counter() - self._began_s
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _fail(self, error: SurecallError) -> None:
        """Answer with an error, in the format of the client, also inside a stream."""
        if self._has_started:
            await self._finish_stream(self._broken(error), error)
            return
        status, body = render_error(self._protocol, error)
        headers = [
            _JSON_TYPE,
            (b"content-length", str(len(body)).encode()),
            *self._own_headers("failed", 0),
        ]
        is_ours = isinstance(error, ProviderStatusError) and error.retry_after_s is not None
        if isinstance(error, ProviderError):
            headers += returned_plain(error.headers)
        if is_ours and b"retry-after" not in dict(headers):
            assert isinstance(error, ProviderStatusError)
            seconds = max(1, round(error.retry_after_s or 0))
            headers.append((b"retry-after", str(seconds).encode()))
        if not (is_ours and status == 503):
            headers = _end_retries(headers)
        if self._gateway.is_draining:
            headers.append((b"connection", b"close"))
        record = self._record(status=status, outcome="failed", error=error, reply=body)
        await self._keep(record)
        await self._respond(status, headers, body)

    # streams

    async def _stream(
        self, request: ClientRequest, route: Route, policy: Policy, asking: "_Asking"
    ) -> bool:
        relay = StreamRelay(
            request,
            route,
            policy,
            request_id=self.id,
            echoes=self._gateway.echoes,
            scope=self._scope,
        )
        try:
            opened = await asking.open(relay.body, stream=True)
        except ProviderError as error:
            if not asking.is_last and may_fall_back(error):
                return False
            raise
        if isinstance(opened, Sent):
            return await self._pass_error(opened, request, route, policy, asking)
        relay.take_headers(dict(opened.headers))
        self._relay = relay
        failure = await self._pipe(opened, relay)
        ending = relay.finish(failure)
        while ending.ask is not None:
            ending = await self._ask_again(relay, ending.ask, asking)
        if not self._has_started and ending.error is not None:
            if ending.outcome == "failed" and not asking.is_last and may_fall_back(ending.error):
                return False
            await self._refuse_stream(ending, ending.error)
            return True
        await self._finish_stream(ending, ending.error)
        return True

    async def _pipe(self, answer: "Answer", relay: StreamRelay) -> ProviderError | None:
        """Pass a stream on until it ends; return why it ended too early."""
        self._answer = answer
        lingering: asyncio.TimerHandle | None = None

        def feed(chunk: bytes) -> None:
            nonlocal lingering
            data = relay.feed(chunk)
            if data:
                self._write(data)
            if lingering is None and relay.done and not answer.is_complete:
                loop = asyncio.get_running_loop()
                lingering = loop.call_later(_LINGER_S, answer.abort)

        began_s = time.perf_counter()
        try:
            await answer.pipe(feed)
        except ProviderError as error:
            return None if relay.done else error
        finally:
            self._upstream_s += time.perf_counter() - began_s
            self._answer = None
            if lingering is not None:
                lingering.cancel()
        return None

    async def _ask_again(self, relay: StreamRelay, body: bytes, asking: "_Asking") -> Ending:
        try:
            opened = await asking.open(body, stream=True)
        except ProviderError as error:
            return relay.finish(error)
        if isinstance(opened, Sent):
            return relay.finish(_read_error(asking.target.upstream.protocol, opened))
        failure = await self._pipe(opened, relay)
        return relay.finish(failure)

    def _write(self, data: bytes) -> None:
        """Send a piece of a stream now; a client that does not read stops the upstream."""
        link = self._link
        if not self._has_started:
            self._start_stream()
        link.write_piece(data)
        self._sent_bytes += len(data)
        if link.is_slow and self._answer is not None:
            self._answer.pause()
            link.on_writable = self._answer.resume

    def _start_stream(self, extra: "tuple[tuple[bytes, bytes], ...]" = ()) -> None:
        self._has_started = True
        self._first_byte_s = time.perf_counter() - self._began_s
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            *_STREAM_HEADERS,
            (b"x-surecall-request-id", self.id.encode()),
            *extra,
        ]
        if self._answer is not None:
            headers += [
                item
                for item in returned_headers(self._answer.raw_headers)
                if item[0] != b"content-type"
            ]
        _send_now(
            self._send({"type": "http.response.start", "status": 200, "headers": headers})
        )

    async def _pass_error(
        self,
        sent: Sent,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        asking: "_Asking",
    ) -> bool:
        """Answer with the error of an upstream, which came in the place of a stream."""
        error = _read_error(route.protocol, sent)
        if not asking.is_last and may_fall_back(error):
            return False
        if request.offers_tools and sent.status < 500:
            if error.code == Code.NO_TOOL_USE_ENDPOINT and policy.allows("taught"):
                if route.strategy == "native":
                    taught = replace(route, strategy="taught")
                    return await self._stream(request, taught, policy, asking)
            elif await self._rescue(sent, request, route, policy):
                return True
        status, body = render_error(self._protocol, error)
        if route.protocol.name == request.protocol.name and sent.body[:1] == b"{":
            status, body = sent.status, sent.body
        await self._deliver(
            Delivered(
                status=status,
                body=body,
                outcome="failed",
                headers=error.headers,
                error=error,
                upstream_requests=self._requests,
            )
        )
        return True

    async def _rescue(
        self, sent: Sent, request: ClientRequest, route: Route, policy: Policy
    ) -> bool:
        """Deliver the call that an error holds, as some upstreams answer what they cannot read."""

        async def send(_: bytes) -> Sent:
            return sent

        one = replace(policy, max_requests=1, show_receipts=False)
        delivered = await mediate(request, route, one, send)
        if delivered.error is not None or not delivered.calls:
            return False
        own = Route(protocol=request.protocol, model=route.model)
        relay = StreamRelay(request, own, one, request_id=self.id)
        written = relay.feed(delivered.body)
        ending = relay.finish()
        if ending.error is not None or ending.ask is not None:
            return False
        await self._finish_stream(
            replace(
                ending,
                data=written + ending.data,
                outcome=delivered.outcome,
                receipts=delivered.receipts,
                defects=delivered.defects,
                steps=delivered.steps,
                calls=delivered.calls,
            ),
            None,
        )
        return True

    async def _refuse_stream(self, ending: Ending, error: SurecallError) -> None:
        """Answer with a plain error, since nothing of the stream was sent yet."""
        status, body = render_error(self._protocol, error)
        await self._deliver(
            Delivered(
                status=status,
                body=body,
                outcome=ending.outcome,
                headers=error.headers if isinstance(error, ProviderError) else {},
                receipts=ending.receipts,
                defects=ending.defects,
                steps=ending.steps,
                parse_error=ending.parse_error,
                usage=ending.usage,
                model_answered=ending.model_answered,
                error=error,
            )
        )

    def _broken(self, error: SurecallError) -> Ending:
        """Return the end of a stream that cannot go on."""
        if self._relay is None:
            return Ending(outcome="failed", error=error)
        ending = self._relay.finish(error)
        return Ending(outcome="failed", error=error) if ending.ask is not None else ending

    async def _finish_stream(self, ending: Ending, error: SurecallError | None) -> None:
        """Send the end of a stream, once its record is durable."""
        record = self._record(
            status=200,
            outcome=ending.outcome,
            receipts=ending.receipts,
            defects=ending.defects,
            steps=ending.steps,
            parse_error=ending.parse_error,
            usage=ending.usage,
            model_answered=ending.model_answered,
            calls=ending.calls,
            error=error,
        )
        await self._keep(record)
        if not self._has_started:
            self._start_stream(
                ((b"x-surecall-outcome", ending.outcome.encode()),
                 (b"x-surecall-receipts", str(len(ending.receipts)).encode()))
            )
        await self._send(
            {"type": "http.response.body", "body": ending.data, "more_body": False}
        )

    # untouched

    async def _relay_untouched(self, asking: "_Asking") -> bool:
        """Pass request and reply on as they are."""
        request = self._request
        assert request is not None
        body = request.body_for(asking.target.model)
        self._requests += 1
        began_s = time.perf_counter()
        answer = await asking.send_once(body, stream=request.stream)
        self._answer = answer
        headers = returned_headers(answer.raw_headers)
        own = self._own_headers("relayed", 0)
        is_stream = any(
            name == b"content-type" and value.startswith(b"text/event-stream")
            for name, value in headers
        )
        if not is_stream:
            reply = await answer.read()
            self._upstream_s += time.perf_counter() - began_s
            record = self._record(
                status=answer.status, outcome="relayed", usage=find_usage(reply), reply=reply
            )
            await self._keep(record)
            length = (b"content-length", str(len(reply)).encode())
            await self._respond(answer.status, [*headers, *own, length], reply)
            return True
        self._has_started = True
        self._first_byte_s = time.perf_counter() - self._began_s
        await self._send(
            {"type": "http.response.start", "status": answer.status, "headers": [*headers, *own]}
        )
        held = b""

        def feed(chunk: bytes) -> None:
            nonlocal held
            if held:
                self._write(held)
            held = chunk  # the last bytes wait for the record
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

        failure: ProviderError | None = None
        try:
            await answer.pipe(feed)
        except ProviderError as error:
            failure = error
        self._answer = None
        self._upstream_s += time.perf_counter() - began_s
        usage = _find_stream_usage(self._tail)
        await self._keep(
            self._record(status=answer.status, outcome="relayed", usage=usage, error=failure)
        )
        if failure is not None:  # the client sees what came: a body that ends too early
            if held:
                self._write(held)
            self._link.transport.close()
            return True
        await self._send({"type": "http.response.body", "body": held, "more_body": False})
        return True

    # the record

    def _record(
        self,
        *,
        status: int,
        outcome: Any,
        receipts: tuple[Receipt, ...] = (),
        defects: tuple[Defect, ...] = (),
        steps: Any = (),
        parse_error: Any = None,
        usage: Usage | None = None,
        model_answered: str | None = None,
        calls: int = 0,
        error: SurecallError | None = None,
        reply: bytes | None = None,
    ) -> RequestRecord:
        request, target, known = self._request, self._target, self._known
        total_s = time.perf_counter() - self._began_s
        size = len(reply) if reply is not None else self._sent_bytes
        keeps = self._state.settings.store.keep_bodies
        if self._caller is not None:
            tokens = usage.total_tokens if usage is not None else 0
            if not tokens and self._requests:
                tokens = (len(self._body) + size) // _BYTES_PER_TOKEN
            self._caller.charge(self.time, tokens)
        return RequestRecord(
            id=self.id,
            time=self.time,
            key_id=self._caller.id if self._caller is not None else "",
            client_protocol=self._protocol.name,
            upstream=target.upstream.name if target is not None else "",
            upstream_protocol=target.upstream.entry.protocol if target is not None else "",
            model_asked=request.model if request is not None else "",
            model_answered=model_answered or "",
            strategy=known.route.strategy if known is not None else "",
            probe=None
            if known is None or known.probe_ok is None
            else ProbeNote(known.probe_ok, known.probe_error or None),
            stream=request.stream if request is not None else False,
            status=status,
            outcome=outcome,
            calls=calls,
            steps=tuple(
                StepNote(step.name, "rescued" if step.outcome == "ok" else step.outcome, step.requests)
                for step in steps
            ),
            receipts=receipts,
            defects=defects,
            parse_error=None
            if parse_error is None
            else ParseError(parse_error.mode, parse_error.error, parse_error.snippet),
            retries=self._retries,
            upstream_requests=self._requests,
            prompt_tokens=usage.input_tokens if usage is not None else 0,
            completion_tokens=usage.output_tokens if usage is not None else 0,
            upstream_ms=round(self._upstream_s * 1000, 3),
            added_ms=round(max(0.0, total_s - self._upstream_s - self._waited_s) * 1000, 3),
            first_byte_ms=None if self._first_byte_s is None else round(self._first_byte_s * 1000, 3),
            error_code=str(error.code) if error is not None else "",
            request_body=self._body if keeps else None,
            reply_body=reply if keeps else None,
            request_bytes=len(self._body),
            reply_bytes=size,
        )

    async def _keep(self, record: RequestRecord) -> None:
        self._gateway.observe(record)
        try:
            await self._gateway.store.add(record)
        except StoreError as error:
            _log.error("request %s was not recorded: %s", self.id, error)

    def _keep_soon(self, record: RequestRecord) -> None:
        self._gateway.observe(record)
        try:
            self._gateway.store.add_soon(record)
        except StoreError as error:
            _log.error("request %s was not recorded: %s", self.id, error)

    # for _Asking

    def count_request(self) -> None:
        """Count a request to an upstream."""
        self._requests += 1

    async def wait_to_retry(self, error: ProviderError) -> bool:
        """Wait before a retry; return whether there is one."""
        settings = self._state.settings.retry
        if self._has_started or self._has_left or self._is_cut:
            return False
        policy = RetryPolicy(max_retries=settings.max_retries, max_wait_s=settings.max_wait_s)
        wait_s = plan_wait(
            policy, error, retries=self._retries, waited_s=self._waited_s, random=random
        )
        budget = self._gateway.budget
        if wait_s is None or not budget.try_begin():
            return False
        try:
            await asyncio.sleep(wait_s)
        finally:
            budget.end()
        self._waited_s += wait_s
        self._retries += 1
        return True

    def headers_for(self, target: Target, first: Target) -> list[tuple[str, str]]:
        """Return the headers for an upstream, with the key that is meant for it."""
        head, upstream = self._head, target.upstream
        is_same = upstream.protocol.name == self._protocol.name
        headers = [("content-type", "application/json"), *head.passed]
        if is_same:
            headers += head.formal
        own = upstream.own_auth
        if self._caller is not None or upstream.entry.embedded:
            return headers + list(own or ())
        is_meant = upstream.base == first.upstream.base
        if own is not None and (not head.key or not is_meant):
            return headers + list(own)
        if not is_meant or not head.token:
            return headers
        if is_same:
            return headers + head.auth
        return headers + list(upstream.protocol.render_auth(head.token).items())


class _Asking:
    """Asks one target on behalf of a job, with at most one retry before the first byte."""

    __slots__ = ("_headers", "_job", "is_last", "target")

    def __init__(self, job: Job, target: Target, first: Target, *, is_last: bool) -> None:
        self._job = job
        self._headers = job.headers_for(target, first)
        self.target = target
        self.is_last = is_last

    async def send(self, body: bytes) -> Sent:
        """Send a body and return the whole answer; `Send` of the exchange."""
        job = self._job
        while True:
            job.count_request()
            try:
                answer = await self.send_once(body, stream=False)
                data = await answer.read()
            except ProviderError as error:
                if not self.is_last or not await job.wait_to_retry(error):
                    raise
                continue
            sent = Sent(answer.status, dict(answer.headers), data)
            if sent.status < 400 or not self.is_last:
                return sent
            if not await job.wait_to_retry(_read_error(self.target.upstream.protocol, sent)):
                return sent

    async def open(self, body: bytes, *, stream: bool) -> "Answer | Sent":
        """Send a body and return the open answer, or all of it when it is an error."""
        job = self._job
        while True:
            job.count_request()
            try:
                answer = await self.send_once(body, stream=stream)
                if answer.status < 400:
                    return answer
                sent = Sent(answer.status, dict(answer.headers), await answer.read())
            except ProviderError as error:
                if not self.is_last or not await job.wait_to_retry(error):
                    raise
                continue
            if not self.is_last:
                return sent
            if not await job.wait_to_retry(_read_error(self.target.upstream.protocol, sent)):
                return sent

    async def send_once(self, body: bytes, *, stream: bool) -> "Answer":
        """Send a body and return the answer, whatever it is."""
        target = self.target
        path = target.upstream.path_of(target.model, stream=stream)
        return await target.upstream.send("POST", path, self._headers, body)


def _read_error(protocol: WireProtocol, sent: Sent) -> ProviderError:
    error = protocol.parse_error(sent.status, sent.headers, sent.body)
    if error.retry_after_s is None:
        error.retry_after_s = parse_retry_after(sent.headers, time.time())
    return error


def _end_retries(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Say that a client need not try again: the gateway has."""
    kept = [item for item in headers if item[0] != b"x-should-retry"]
    return [*kept, (b"x-should-retry", b"false")]


def _send_now(sending: Any) -> None:
    """Run a coroutine that does not wait."""
    try:
        sending.send(None)
    except StopIteration:
        return
    sending.close()
    raise RuntimeError("the server waits where it should not")


def find_usage(body: bytes) -> Usage | None:
    """Return the tokens that a reply in any format names."""
    try:
        found = _decode_usage(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _read_usage(found.usage if found.usage is not None else found.usageMetadata)


def _find_stream_usage(tail: bytes) -> Usage | None:
    """Return the tokens that the end of a stream names."""
    for line in reversed(tail.split(b"\n")):
        if line.startswith(b"data: ") and (b'"usage"' in line or b'"usageMetadata"' in line):
            usage = find_usage(line[6:])
            if usage is not None:
                return usage
    return None


def _read_usage(fields: Any) -> Usage | None:
    if not isinstance(fields, Mapping):
        return None

    def number(*names: str) -> int:
        for name in names:
            value = fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return 0

    asked = number("prompt_tokens", "input_tokens", "promptTokenCount")
    given = number("completion_tokens", "output_tokens", "candidatesTokenCount")
    total = number("total_tokens", "totalTokenCount") or asked + given
    return Usage(input_tokens=asked, output_tokens=given, total_tokens=total)



