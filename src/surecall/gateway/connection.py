"""One connection of a client, with deadlines for what it sends.

uvicorn itself waits without limit for the head and the body of a request, and does not say at once
when a client leaves; the protocol here does both.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from .settings import LimitSettings

_LOOKS: Final = 10
"""How often a body is looked at within the time that a head may take."""
_REASONS: Final = {408: b"Request Timeout", 431: b"Request Header Fields Too Large"}

_CHUNKED: Final = (b"transfer-encoding", b"chunked")

RawHeaders = Sequence[tuple[bytes, bytes]]


class GatewayProtocol(HttpToolsProtocol):
    """One connection of a client."""

    limits: LimitSettings
    """Set by `make_protocol`."""
    on_lost: Callable[[], None] | None = None
    """Called when the client has left, by whoever serves it at the moment."""
    on_writable: Callable[[], None] | None = None
    """Called when the client reads again."""
    _timer: asyncio.TimerHandle | None = None
    _begun_at = 0.0
    _received = 0
    _looks: deque[int]
    """What had come of the body at each of the last looks."""
    _has_head = False
    _in_request = False

    # deadlines

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the first head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self.limits.max_unsent_bytes)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take what the client sent, and watch over what is missing."""
        if not self._has_head:
            self._received += len(data)
        super().data_received(data)
        if self._in_request:
            if not self._has_head:
                if self._received > self.limits.max_header_bytes:
                    self._give_up(431)
                elif self._timer is None:
                    self._watch_head()
            elif self._timer is None:
                self._watch_body()

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        super().on_message_begin()
        self._in_request = True
        self.scope["surecall.link"] = self  # type: ignore[typeddict-unknown-key]
        is_crowded = len(self.connections) > self.limits.max_connections
        self.scope["surecall.is_crowded"] = is_crowded  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        """Note that a head is complete."""
        self._has_head = True
        self._stop_watching()
        super().on_headers_complete()
        self.scope["surecall.cycle"] = self.cycle  # type: ignore[typeddict-unknown-key]

    def on_body(self, body: bytes) -> None:
        """Count the body."""
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        self._has_head = self._in_request = False
        self._received = 0
        self._stop_watching()
        super().on_message_complete()

    def _watch_head(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_s, self._give_up, 408)

    def _watch_body(self) -> None:
        self._begun_at = self.loop.time()
        self._received = 0
        self._looks = deque((0,), maxlen=_LOOKS)
        self._timer = self.loop.call_later(self.limits.header_s / _LOOKS, self._check_body)

    def _check_body(self) -> None:
        """Give up on a body that takes too long, or has become too slow."""
        if self.flow.read_paused:  # the client waits for the gateway
            self._watch_body()
            return
        limits, looks = self.limits, self._looks
        is_late = self.loop.time() - self._begun_at >= limits.body_s
        least = limits.header_s * limits.min_body_bytes_per_s
        if is_late or (len(looks) == _LOOKS and self._received - looks[0] < least):
            self._give_up(408)
            return
        looks.append(self._received)
        self._timer = self.loop.call_later(limits.header_s / _LOOKS, self._check_body)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self, status: int) -> None:
        self._stop_watching()
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if self._in_request and (self.cycle is None or not self.cycle.response_started):
            head = b"HTTP/1.1 %d %b\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            transport.write(head % (status, _REASONS[status]))
        transport.close()

    # the client

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever serves the client that it has left."""
        self._stop_watching()
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def resume_writing(self) -> None:
        """Tell whoever serves the client that it reads again."""
        super().resume_writing()
        if self.on_writable is not None:
            self.on_writable()

    @property
    def is_slow(self) -> bool:
        """Whether the client does not take what was written."""
        return self.flow.write_paused

    @property
    def is_gone(self) -> bool:
        """Whether nothing reaches the client any more."""
        return self.transport.is_closing()

    def take_body(self, cycle: RequestResponseCycle, limit: int) -> bytes | None:
        """Take the body of a request if all of it is there, and not more than the limit."""
        if cycle.more_body or cycle.disconnected or len(cycle.body) > limit:
            return None
        body = bytes(cycle.body)
        cycle.body = bytearray()
        return body

    def keep_reading(self) -> None:
        """Read on, so that the end of the connection is noticed."""
        self.flow.resume_reading()

    # answers, where uvicorn would write the head apart from what follows it

    def can_write(self, cycle: RequestResponseCycle) -> bool:
        """Tell whether an answer may be written at once, on a connection that goes on."""
        return cycle.keep_alive and not cycle.response_started and not self.flow.write_paused

    def write_whole(
        self, cycle: RequestResponseCycle, status: int, headers: RawHeaders, body: bytes
    ) -> None:
        """Write a whole answer; the headers must have its length."""
        data = _render_head(status, headers) + body
        cycle.response_started = cycle.response_complete = True
        if not self.transport.is_closing():
            self.transport.write(data)
        cycle.message_event.set()
        cycle.on_response()

    def write_first(self, cycle: RequestResponseCycle, headers: RawHeaders, data: bytes) -> None:
        """Write the head of a stream and its first piece; `write_piece` goes on from there."""
        cycle.response_started = cycle.chunked_encoding = True
        head = _render_head(200, (*headers, _CHUNKED))
        if not self.transport.is_closing():
            self.transport.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))

    def write_piece(self, data: bytes) -> None:
        """Write a piece of a body whose length is not known, without waiting."""
        if not self.transport.is_closing():
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


def _render_head(status: int, headers: RawHeaders) -> bytes:
    """Return the head of an answer, in which no header can end it early or add another."""
    lines = [b"%b: %b\r\n" % header for header in headers]
    head = b"%b%b\r\n" % (STATUS_LINE[status], b"".join(lines))
    if not head.count(b"\n") == head.count(b"\r") == len(lines) + 2:
        raise ValueError("a header has more than one line")
    return head


def make_protocol(settings: LimitSettings) -> type[GatewayProtocol]:
    """Return the protocol with the limits of a gateway."""
    return type("GatewayProtocol", (GatewayProtocol,), {"limits": settings})
