"""Streams on their way to a client: bytes go from socket to socket without an await in between.

The last bytes wait until the record is durable. Nothing is sent before there is something to send:
until then another upstream may answer, and an error has a status of its own.
"""

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from surecall.base.background import read_in_thread
from surecall.base.errors import Code, ProviderError, SurecallError
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import Usage
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Delivered, Ending, Policy, Route, Sent
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay, rescue_call
from surecall.exchange.verdict import note_outcome, own_error
from surecall.gateway.headers import (
    OUTCOME,
    RECEIPTS,
    REQUEST_ID,
    render_error,
    returned_headers,
)
from surecall.gateway.upstreams import may_fall_back

from .asking import AnsweringJob, Asking, read_error

if TYPE_CHECKING:
    from surecall.models.client import Answer

_LINGER_S: Final = 1.0
"""How long an upstream may keep its connection open behind the end of a stream."""
_FIRST_BYTES: Final = 2048
"""Of a large first piece so much is passed on before the rest is looked at."""
_STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class StreamingJob(AnsweringJob):
    """A job that may answer with a stream."""

    _relay: StreamRelay | None = None
    _is_asking = False
    """Whether nothing is done but waiting for an upstream, whose stream has begun."""

    def _usage_so_far(self) -> Usage | None:
        return None if self._relay is None else self._relay.usage

    async def _fail(self, error: SurecallError) -> None:
        """Answer with an error, in the format of the client, also inside a stream."""
        if self._has_started:
            await self._finish_stream(self._broken(error), error)
        else:
            await super()._fail(error)

    async def _stream(
        self, request: ClientRequest, route: Route, policy: Policy, asking: Asking
    ) -> bool:
        if request.streams_several:
            return await self._stream_several(request, route, policy, asking)
        relay = StreamRelay(
            request,
            route,
            policy,
            request_id=self.id,
            echoes=self._core.echoes,
            scope=self._scope,
        )
        body = await read_in_thread(lambda: relay.body, is_long=request.is_long)
        try:
            opened = await self._open(asking, body)
        except ProviderError as error:
            if not asking.is_last and may_fall_back(error):
                return False
            raise
        if isinstance(opened, Sent):
            return await self._pass_error(opened, request, route, policy, asking)
        relay.take_headers(opened.header_map)
        self._relay = relay
        failure = await self._pipe(opened, relay)
        ending = await self._end(relay, failure)
        while ending.ask is not None:
            ending = await self._ask_again(relay, ending.ask, asking)
        if ending.outcome == "failed":
            self.note_unusable(asking.target, ending.error)
        if not self._has_started and ending.error is not None:
            if ending.outcome == "failed" and not asking.is_last and may_fall_back(ending.error):
                return False
            if not ending.is_reply:
                await self._refuse_stream(ending, ending.error)
                return True
        await self._finish_stream(ending, ending.error)
        return True

    async def _stream_several(
        self, request: ClientRequest, route: Route, policy: Policy, asking: Asking
    ) -> bool:
        """Answer with a stream of several replies, once all of them are there."""
        whole = replace(policy, show_receipts=False)
        echoes, scope, asked = self._core.echoes, self._scope, request.as_whole()
        delivered = await mediate(asked, route, whole, asking.send, echoes=echoes, scope=scope)
        self._upstream_s += delivered.upstream_s
        error = delivered.error
        if error is not None:
            if delivered.outcome == "failed":
                self.note_unusable(asking.target, error)
            is_failed = delivered.outcome == "failed" and not asking.is_last
            if is_failed and may_fall_back(error):
                return False
            if delivered.status >= 400:
                await self._deliver(delivered)
                return True
        data = request.write_events(delivered.body)
        ending = Ending(data=data, **delivered.report())
        ending = note_outcome(ending, request.protocol, self.id, shows=policy.show_receipts)
        await self._finish_stream(ending, error)
        return True

    async def _pipe(self, answer: "Answer", relay: StreamRelay) -> ProviderError | None:
        """Pass a stream on until it ends; return why it ended too early."""
        self._answer = answer
        lingering: asyncio.TimerHandle | None = None

        def feed(chunk: bytes) -> None:
            nonlocal lingering
            self._note_received(chunk)
            if not self._has_started and len(chunk) > _FIRST_BYTES:
                if data := relay.feed(chunk[:_FIRST_BYTES]):  # what comes first need not wait
                    self._write(data)
                chunk = chunk[_FIRST_BYTES:]
            if data := relay.feed(chunk):
                self._write(data)
            if lingering is None and relay.done and not answer.is_complete:
                loop = asyncio.get_running_loop()
                lingering = loop.call_later(_LINGER_S, answer.abort)

        began_s = time.perf_counter()
        self._is_asking = True
        try:
            await answer.pipe(feed)
        except ProviderError as error:
            return None if relay.done else error
        finally:
            self._upstream_s += time.perf_counter() - began_s
            self._answer = None
            self._is_asking = False
            if lingering is not None:
                lingering.cancel()
        return None

    async def _ask_again(self, relay: StreamRelay, body: bytes, asking: Asking) -> Ending:
        self._is_asking = True
        try:
            opened = await self._open(asking, body)
        except ProviderError as error:
            return await self._end(relay, error)
        finally:
            self._is_asking = False
        if isinstance(opened, Sent):
            failure = read_error(asking.target.upstream.protocol, opened)
            return await self._end(relay, failure)
        failure = await self._pipe(opened, relay)
        return await self._end(relay, failure)

    async def _open(self, asking: Asking, body: bytes) -> "Answer | Sent":
        """Ask for a stream; what that takes is the time of the upstream."""
        began_s, waited_s = time.perf_counter(), self._waited_s
        try:
            return await asking.open(body, stream=True)
        finally:
            self._upstream_s += time.perf_counter() - began_s - (self._waited_s - waited_s)

    async def _end(self, relay: StreamRelay, failure: ProviderError | None) -> Ending:
        """Return how a stream ends; much that was held back is read aside."""
        assert self._request is not None
        is_long = self._request.is_long or self._received_bytes > MAX_INLINE_CHARACTERS
        return await read_in_thread(partial(relay.finish, failure), is_long=is_long)

    def pulse(self) -> None:
        """Send an event that says nothing to a client that waits for what is held back."""
        link = self._link
        if not self._is_asking or self._relay is None or link.is_slow or link.is_gone:
            return
        if (self._has_started or link.can_write(self._cycle)) and (data := self._relay.pulse()):
            self._write(data)

    def _start_stream(self) -> list[tuple[bytes, bytes]]:
        """Note that the stream begins, and return its headers."""
        self._has_started = True
        self._first_byte_s = time.perf_counter() - self._began_s
        headers = [*_STREAM_HEADERS, (REQUEST_ID, self.id.encode())]
        headers += self._trail_headers()
        if self._answer is not None:
            headers += [
                item
                for item in returned_headers(self._answer.raw_headers)
                if item[0] != b"content-type"
            ]
        return headers

    async def _pass_error(
        self,
        sent: Sent,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        asking: Asking,
    ) -> bool:
        """Answer with the error of an upstream, which came in the place of a stream."""
        error = read_error(route.protocol, sent)
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
        if route.protocol.name == request.protocol.name:
            own = own_error(sent)
            status, body = (status, body) if own is None else (sent.status, own)
        await self._deliver(
            Delivered(
                status=status,
                body=body,
                outcome="failed",
                headers=error.headers,
                should_retry=error.retryable,
                error=error,
                upstream_requests=self._requests,
            )
        )
        return True

    async def _rescue(
        self, sent: Sent, request: ClientRequest, route: Route, policy: Policy
    ) -> bool:
        """Deliver the call that an error holds, as some upstreams answer what they cannot read."""
        ending = await rescue_call(sent, request, route, policy, request_id=self.id)
        if ending is None:
            return False
        await self._finish_stream(ending, None)
        return True

    async def _refuse_stream(self, ending: Ending, error: SurecallError) -> None:
        """Answer with a plain error, since nothing of the stream was sent yet."""
        status, body = render_error(self._protocol, error)
        status, body = ending.error_status or status, ending.error_body or body
        await self._deliver(
            Delivered(
                status=status,
                body=body,
                headers=error.headers if isinstance(error, ProviderError) else {},
                **ending.report(),
            )
        )

    def _broken(self, error: SurecallError) -> Ending:
        """Return the end of a stream that cannot go on."""
        if self._relay is None:
            return Ending(outcome="failed", error=error)
        if error.code == Code.INTERNAL_ERROR:
            return self._relay.break_off(error)
        ending = self._relay.finish(error)
        return Ending(outcome="failed", error=error) if ending.ask is not None else ending

    async def _finish_stream(self, ending: Ending, error: SurecallError | None) -> None:
        """Send the end of a stream, once its record is durable."""
        self._count(ending.data)
        if error is not ending.error:
            ending = replace(ending, error=error)
        await self._keep(self._record(200, ending))
        if not self._has_started:
            headers = [
                *self._start_stream(),
                (OUTCOME, ending.outcome.encode()),
                (RECEIPTS, str(len(ending.receipts)).encode()),
            ]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": ending.data, "more_body": False})

    def _write(self, data: bytes) -> None:
        """Send a piece of a stream now; the first begins the answer."""
        if self._has_started:
            super()._write(data)
            return
        headers = self._start_stream()
        if self._link.can_write(self._cycle):
            self._link.write_first(self._cycle, headers, data)
            self._note_written(data)
            return
        _send_now(self._send({"type": "http.response.start", "status": 200, "headers": headers}))
        super()._write(data)


def _send_now(sending: Any) -> None:
    """Run a coroutine that does not wait."""
    try:
        sending.send(None)
    except StopIteration:
        return
    sending.close()
    raise RuntimeError("the server waits where it should not")
