"""One connection of a client, with deadlines for what it sends.

uvicorn itself waits without limit for the head and the body of a request, and does not say at once
when a client leaves; the protocol here does both. And it takes a shorter way with a request for a
model that comes in one read, as almost all do: nobody has to wait for the rest of its body.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from .endpoints import MODEL_PATHS
from .heads import Head, Hosts
from .settings import LimitSettings

_LOOKS: Final = 10
"""How often a body is looked at within the time that a head may take."""
_REASONS: Final = {408: b"Request Timeout", 431: b"Request Header Fields Too Large"}

_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_REPLY: Final = (
    b"%bcontent-type: application/json\r\ncontent-length: %d\r\nx-surecall-outcome: %b\r\n"
    b"x-surecall-request-id: %b\r\nx-surecall-receipts: %d\r\n\r\n%b"
)
_MODEL_URLS: Final = {path.encode(): path for path in MODEL_PATHS}
_MAX_SEEN_HEADERS: Final = 64

RawHeaders = Sequence[tuple[bytes, bytes]]


class _NoEvent:
    """Stands for an event that nobody waits for."""

    def set(self) -> None:
        """Wake nobody."""


class WholeRequest(RequestResponseCycle):
    """A request of which nothing is missing, and its answer."""

    message_event: Any = _NoEvent()
    access_log = False
    disconnected = False
    waiting_for_100_continue = False
    more_body = False
    response_started = False
    response_complete = False
    chunked_encoding = None
    expected_content_length = 0

    def __init__(self, link: "GatewayProtocol", path: str, body: bytes) -> None:
        parser: Any = link.parser
        self.keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
        self.transport = link.transport
        self.flow = link.flow
        self.logger = link.logger
        self.default_headers = link.server_state.default_headers
        self.on_response = link.on_response_complete
        self.body: Any = body
        self.scope: Any = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "server": link.server,
            "headers": link.headers,
            "surecall.link": link,
            "surecall.cycle": self,
        }


class GatewayProtocol(HttpToolsProtocol):
    """One connection of a client."""

    limits: LimitSettings
    """Set by `make_protocol`."""
    on_lost: Callable[[], None] | None = None
    """Called when the client has left, by whoever serves it at the moment."""
    on_writable: Callable[[], None] | None = None
    """Called when the client reads again."""
    _timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_from = 0.0
    _begun_at = 0.0
    _received = 0
    _looks: deque[int]
    """What had come of the body at each of the last looks."""
    _has_head = False
    _in_request = False
    _length = b""
    _whole_path: str | None = None
    """Of a request that may come in one read."""
    _pieces: list[bytes]
    """What has come of its body."""
    _seen: tuple[RawHeaders, Hosts, Head] | None = None
    """The last headers, whose they are compared with, and what they say."""

    # requests

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
            if self._whole_path is not None and not self.transport.is_closing():
                self._hand_on()
            if not self._has_head:
                if self._received > self.limits.max_header_bytes:
                    self._give_up(431)
                elif self._timer is None:
                    self._watch_head()
            elif self._timer is None:
                self._watch_body()

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self.url = self._length = b""
        self.headers = []
        self.expect_100_continue = False
        self._in_request = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; the length apart, since it alone differs from request to request."""
        name = name.lower()
        if name == b"content-length":
            self._length = value
            return
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note that a head is complete."""
        self._has_head = True
        self._stop_watching()
        self._whole_path = _MODEL_URLS.get(self.url)
        self._pieces = []
        parser: Any = self.parser
        if (
            self._whole_path is None
            or parser.get_method() != b"POST"
            or self.expect_100_continue
            or parser.should_upgrade()
            or (self.cycle is not None and not self.cycle.response_complete)
        ):
            self._hand_on()

    def _hand_on(self) -> None:
        """Let uvicorn serve the request, as far as it is there."""
        self._whole_path = None
        url, headers, is_expecting = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, is_expecting
        self.headers += headers
        if self._length:
            self.headers.append((b"content-length", self._length))
        super().on_headers_complete()
        scope: Any = self.scope
        scope["surecall.link"] = self
        scope["surecall.cycle"] = self.cycle
        for piece in self._pieces:
            super().on_body(piece)

    def on_body(self, body: bytes) -> None:
        """Count the body."""
        self._received += len(body)
        if self._whole_path is not None:
            self._pieces.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        self._has_head = self._in_request = False
        self._received = 0
        if self._timer is not None:
            self._stop_watching()
        path, self._whole_path = self._whole_path, None
        if path is None:
            super().on_message_complete()
            return
        self.cycle = WholeRequest(self, path, b"".join(self._pieces))
        self._start_asgi_task(self.cycle, cast("Any", self).app)

    def read_head(self, headers: RawHeaders, hosts: Hosts) -> Head:
        """Return what the headers of a request say; clients send the same ones again and again."""
        seen = self._seen
        if seen is not None and seen[1] is hosts and seen[0] == headers:
            return seen[2]
        head = Head(headers, *hosts.at(self.server))
        self._seen = (headers, hosts, head) if len(headers) <= _MAX_SEEN_HEADERS else None
        return head

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for it; one timer does for many."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_from = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._check_idle)

    def _check_idle(self) -> None:
        """Close a connection on which no request has come for too long."""
        self._idle_timer = None
        if self._in_request or not self.cycle.response_complete:
            return  # the end of the answer begins anew
        left_s = self._idle_from + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._idle_timer = self.loop.call_later(left_s, self._check_idle)
        else:
            self.timeout_keep_alive_handler()

    # deadlines

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
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
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

    @property
    def is_crowded(self) -> bool:
        """Whether there are more connections than requests are taken from."""
        return len(self.connections) > self.limits.max_connections

    def take_body(self, cycle: RequestResponseCycle) -> bytes | None:
        """Take the body of a request if all of it is there."""
        if cycle.more_body or cycle.disconnected:
            return None
        body = cycle.body
        cycle.body = bytearray()
        return bytes(body)

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

    def write_reply(
        self,
        cycle: RequestResponseCycle,
        status: int,
        outcome: str,
        receipts: int,
        *,
        of: str,
        body: bytes,
    ) -> None:
        """Write a whole reply with no headers but the usual ones; `of` is the id of the request."""
        usual = (STATUS_LINE[status], len(body), outcome.encode(), of.encode(), receipts, body)
        cycle.response_started = cycle.response_complete = True
        if not self.transport.is_closing():
            self.transport.write(_REPLY % usual)
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
