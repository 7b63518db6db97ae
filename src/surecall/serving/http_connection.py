"""One connection of a client: requests come in under deadlines, one answer after another goes out.

llhttp (httptools) parses, and whatever could be read in two ways is refused. The application is a
function of ASGI, which is given each request when its head is there; a request that comes in one
read is given to it whole.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol, cast
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from surecall.base.redaction import open_log

_log = open_log("surecall.serving")

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Headers as they are on the wire, names in lower case."""
Application = Callable[[Any, Any, Any], Awaitable[None]]

_LOOKS: Final = 10
"""How often a body is looked at within the time that a head may take."""
_MAX_UNREAD_BYTES: Final = 64 * 1024
"""How much of a body is taken off the wire before somebody reads it."""
_MAX_HEADERS: Final = 256
_LINGER_S: Final = 1.0
"""How long a refused client may read the answer: bytes that nobody reads would reset it."""
_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_WITHOUT_BODY: Final = frozenset({204, 304})
STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


class ServingLimits(Protocol):
    """How long a client may take to send a request, and how much of it is taken."""

    @property
    def header_s(self) -> float:
        """Until all headers have arrived."""
        ...

    @property
    def body_s(self) -> float:
        """Until the whole body has arrived."""
        ...

    @property
    def min_body_bytes_per_s(self) -> int:
        """How fast the body must come, on average over any `header_s`."""
        ...

    @property
    def idle_s(self) -> float:
        """How long a connection is kept between two requests."""
        ...

    @property
    def max_header_bytes(self) -> int:
        """Of the request line and all headers."""
        ...

    @property
    def max_unsent_bytes(self) -> int:
        """How much is held for a client that reads slowly."""
        ...

    @property
    def max_connections(self) -> int:
        """How many there may be at once; the application refuses more."""
        ...


class Keeper(Protocol):
    """Who keeps connections while they are open."""

    app: Application
    limits: ServingLimits
    connections: set["HttpConnection"]
    tasks: set[asyncio.Task[Any]]


class Exchange:
    """A request of a client, as far as it is there, and its answer."""

    __slots__ = (
        "_event",
        "_expects_continue",
        "_is_delivered",
        "_left_bytes",
        "_link",
        "_pending",
        "body",
        "is_chunked",
        "is_whole",
        "keep_alive",
        "response_complete",
        "response_started",
        "scope",
    )

    def __init__(
        self, link: "HttpConnection", scope: dict[str, Any], *, keep_alive: bool, body: Any = b""
    ) -> None:
        self._link = link
        self.scope = scope
        self.keep_alive = keep_alive
        self.body: Any = body
        self.is_whole = False
        """Whether all of the body is there."""
        self.response_started = False
        self.response_complete = False
        self.is_chunked = False
        self._expects_continue = False
        self._is_delivered = False
        self._left_bytes = 0
        self._event: asyncio.Future[None] | None = None
        self._pending = b""

    # what the connection does

    def expect_continue(self) -> None:
        """Note that the client waits for a word before it sends the body."""
        self._expects_continue = True

    def wake(self) -> None:
        """Let `receive` look again."""
        event, self._event = self._event, None
        if event is not None and not event.done():
            event.set_result(None)

    async def run(self, app: Application) -> None:
        """Call the application; what it does not answer is answered for it."""
        link = self._link
        try:
            await app(self.scope, self.receive, self.send)
            if self.response_complete or link.is_gone:
                return
            _log.error("a request was left without a whole answer")
        except Exception:
            _log.exception("a request failed")
        if self.response_started or link.is_gone:
            link.transport.close()
        else:
            self.keep_alive = False
            link.write_whole(self, 500, [(b"content-length", b"0"), (b"connection", b"close")], b"")

    # what the application does

    async def receive(self) -> dict[str, Any]:
        """Return the next part of the body, or that the client has left."""
        link = self._link
        if self._expects_continue and not self.response_started and not link.is_gone:
            self._expects_continue = False
            link.transport.write(_CONTINUE)
        while not (self.response_complete or link.is_gone):
            if link.has_ended and not self.is_whole:
                break
            if self.body or (self.is_whole and not self._is_delivered):
                body, self.body = bytes(self.body), bytearray()
                self._is_delivered = self.is_whole
                link.read_on()
                return {"type": "http.request", "body": body, "more_body": not self.is_whole}
            link.read_on()
            self._event = link.loop.create_future()
            await self._event
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Send the head of the answer, or a part of its body."""
        link = self._link
        if link.is_slow:
            await link.drain()
        if link.is_gone:
            return
        if message["type"] == "http.response.start":
            if self.response_started:
                raise RuntimeError("An answer begins once.")
            self._start(message["status"], message.get("headers", ()))
            return
        if not self.response_started or self.response_complete:
            raise RuntimeError("A part of a body comes after the head and before the end.")
        self._send_part(message.get("body", b""), is_last=not message.get("more_body", False))

    def _start(self, status: int, headers: RawHeaders) -> None:
        length = next((value for name, value in headers if name == b"content-length"), None)
        if any(name == b"connection" and b"close" in value.lower() for name, value in headers):
            self.keep_alive = False
        elif not self.keep_alive:
            headers = (*headers, (b"connection", b"close"))
        is_chunked = length is None and self._has_body(status)
        head = render_head(status, (*headers, _CHUNKED) if is_chunked else headers)
        self.response_started = True
        self.is_chunked = is_chunked
        self._expects_continue = False
        if length is None:
            self._link.transport.write(head)
            return
        self._left_bytes = int(length) if self._has_body(status) else 0
        self._pending = head  # its body follows at once, and goes out with it

    def _has_body(self, status: int) -> bool:
        return self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY

    def _send_part(self, body: bytes, *, is_last: bool) -> None:
        head, self._pending = self._pending, b""
        data = head
        if self.is_chunked:
            if body:
                data += b"%x\r\n%b\r\n" % (len(body), body)
            if is_last:
                data += b"0\r\n\r\n"
        elif self._left_bytes or body:
            if self.scope["method"] == "HEAD":
                body = b""
            self._left_bytes -= len(body)
            if self._left_bytes < 0:
                raise RuntimeError("The body is longer than its declared length.")
            data += body
        if data:
            self._link.transport.write(data)
        if is_last:
            if self._left_bytes:
                raise RuntimeError("The body is shorter than its declared length.")
            self._link.end_answer(self)


class HttpConnection(asyncio.Protocol):
    """One connection of a client.

    Args:
        keeper: Keeps it, and has the application and the limits.
    """

    transport: asyncio.Transport
    address: "tuple[str, int] | None"
    """Where the client connected to."""
    on_lost: Callable[[], object] | None = None
    """Called when the client has left, by whoever serves it at the moment."""
    on_writable: Callable[[], object] | None = None
    """Called when the client reads again."""
    is_slow = False
    """Whether the client does not take what was written."""
    is_lost = False
    waits_for_answers = False
    """Whether a client that sends no more is still answered; else it has left."""
    has_ended = False
    """Whether the client sends no more."""

    _timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_from = 0.0
    _begun_at = 0.0
    _received = 0
    _looks: deque[int]
    """Bytes of the body that had arrived at each of the last looks."""
    _has_head = False
    _in_request = False
    _is_held = False
    _is_last = False
    """Whether no more requests are read."""
    _is_refused = False
    _is_offering = False
    """Whether the request offers another protocol."""
    _length = b""
    _expects_continue = False
    _is_odd = False
    """Whether the framing of the body is not one of those that everybody reads alike."""
    _whole: dict[str, Any] | None = None
    """The scope of a request that may come in one read."""
    _url = b""
    _taking: Exchange | None = None
    """The request that comes in at the moment."""
    _drained: asyncio.Future[None] | None = None
    _departed: asyncio.Future[None] | None = None

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.limits = keeper.limits
        self.loop = asyncio.get_running_loop()
        self.headers: list[tuple[bytes, bytes]] = []
        self._parser: Any = HttpRequestParser(self)
        self._offered: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._waiting: deque[Exchange] = deque()
        self._current: Exchange | None = None

    # what the event loop does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Expect the first head."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=self.limits.max_unsent_bytes)
        name: Any = transport.get_extra_info("sockname")
        self.address = (name[0], name[1]) if type(name) is tuple else None
        self.keeper.connections.add(self)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take what the client sent, and watch over what is missing."""
        if self._is_last:
            return
        if not self._has_head:
            self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._read_again(data[int(upgrade.args[0]) :])
            return
        except HttpParserError as error:
            self.refuse(400, f"The request is not valid HTTP: {error}.")
            return
        if self._in_request and not self._is_refused:
            self._watch_rest()

    def _read_again(self, rest: bytes) -> None:
        """Read a request that offers another protocol as what it also is: one of this protocol."""
        method, is_offer = self._parser.get_method(), not self._offered
        self._offered = [pair for pair in self.headers if pair[0] == b"upgrade"]
        if method == b"CONNECT" or not is_offer or not self._offered:
            self.refuse(400, "The connection is not switched to another protocol.")
            return
        lines = [b"%b: %b\r\n" % pair for pair in self.headers if pair[0] != b"upgrade"]
        if self._length:
            lines.append(b"content-length: %b\r\n" % self._length)
        version = self._parser.get_http_version().encode()
        head = b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._url, version, b"".join(lines))
        self._parser = HttpRequestParser(self)
        self._is_offering = False
        self._received = 0
        self.data_received(head + rest)

    def _watch_rest(self) -> None:
        """Watch over what is missing of a request."""
        if self._whole is not None and not self.is_gone:
            self._hand_on()
        if not self._has_head:
            if self._received > self.limits.max_header_bytes:
                size = self.limits.max_header_bytes
                self.refuse(431, f"The headers have more than {size} bytes.")
            elif self._timer is None:
                self._watch_head()
        elif self._timer is None:
            self._watch_body()

    def eof_received(self) -> bool:
        """Take the end of what the client sends; return whether it is still answered."""
        self.has_ended = True
        self._note_departure()
        if not self.waits_for_answers or self._current is None or self._is_refused:
            return False
        self._is_last = True
        for exchange in (self._current, *self._waiting):
            exchange.keep_alive = False
            exchange.wake()
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell whoever serves the client that it has left."""
        self.is_lost = True
        self._note_departure()
        self.keeper.connections.discard(self)
        self._stop_watching()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for exchange in (self._current, self._taking, *self._waiting):
            if exchange is not None:
                exchange.wake()
        self._waiting.clear()
        self._parser = None
        self.resume_writing()
        if self.on_lost is not None:
            self.on_lost()

    def pause_writing(self) -> None:
        """Note that the client does not take what was written."""
        self.is_slow = True

    def resume_writing(self) -> None:
        """Tell whoever waits that the client reads again."""
        self.is_slow = False
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        if self.on_writable is not None:
            self.on_writable()

    # what the parser does

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._url = self._length = b""
        self.headers = []
        self._expects_continue = self._is_odd = False
        self._in_request = True
        self._taking = None

    def on_url(self, url: bytes) -> None:
        """Take the target of a request, or a part of it."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header; the length apart, since it alone differs from request to request."""
        name = name.lower()
        if self._has_head:
            return  # a trailer
        if name == b"content-length":
            self._length = value
            return
        if name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        elif name == b"transfer-encoding" and value.lower() != b"chunked":
            self._is_odd = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note that a head is complete."""
        if self._parser.should_upgrade():  # its body is read by `_read_again`
            self._is_offering = True
            return
        if self._offered:
            self.headers += self._offered
            self._offered = []
        self._has_head = True
        self._stop_watching()
        self._pieces = []
        max_bytes = self.limits.max_header_bytes
        if self._received > max_bytes and self._measure_head() > max_bytes:
            self.refuse(431, f"The headers have more than {max_bytes} bytes.")
            return
        if self._is_odd:
            self.refuse(400, "The framing of the body is not supported.")
            return
        self._whole = self._make_scope()
        if self._expects_continue:
            self._hand_on()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if self._is_refused:
            return
        self._received += len(body)
        taking = self._taking
        if taking is None:
            self._pieces.append(body)
        elif not taking.response_complete:
            taking.body += body
            if len(taking.body) > _MAX_UNREAD_BYTES:
                self._hold()
            taking.wake()

    def on_message_complete(self) -> None:
        """Note that a request is complete."""
        if self._is_offering:
            return
        self._has_head = self._in_request = False
        self._received = 0
        if self._timer is not None:
            self._stop_watching()
        taking, self._taking = self._taking, None
        scope, self._whole = self._whole, None
        if self._is_refused:
            return
        if taking is not None:
            taking.is_whole = True
            taking.wake()
        elif scope is not None:
            pieces = self._pieces
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            exchange = Exchange(self, scope, keep_alive=self._keeps_alive(), body=body)
            exchange.is_whole = True
            self._begin(exchange)

    def _measure_head(self) -> int:
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _make_scope(self) -> dict[str, Any]:
        raw, _, query = self._url.partition(b"?")
        path = raw.decode("latin-1")
        return {
            "type": "http",
            "method": self._parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw,
            "query_string": query,
            "server": self.address,
            "headers": self.headers,
            "surecall.link": self,
        }

    def _keeps_alive(self) -> bool:
        parser = self._parser
        return parser.get_http_version() != "1.0" and parser.should_keep_alive()

    def _hand_on(self) -> None:
        """Let the application have a request of which a part is missing."""
        scope, self._whole = self._whole, None
        assert scope is not None
        if self._length:
            self.headers.append((b"content-length", self._length))
        body = bytearray().join(self._pieces)
        exchange = Exchange(self, scope, keep_alive=self._keeps_alive(), body=body)
        if self._expects_continue:
            exchange.expect_continue()
        self._taking = exchange
        self._begin(exchange)

    def _begin(self, exchange: Exchange) -> None:
        if len(self.headers) > _MAX_HEADERS:
            self.refuse(431, f"The request has more than {_MAX_HEADERS} headers.")
            return
        if exchange.scope["raw_path"][:1] != b"/":
            self.refuse(400, "The request does not name a path.")
            return
        if self._current is not None:  # answers go out in the order of the requests
            self._hold()
            self._waiting.append(exchange)
            return
        self._current = exchange
        self.serve(exchange)

    def serve(self, exchange: Exchange) -> None:
        """Begin to answer a request, in a task."""
        task = self.loop.create_task(exchange.run(self.keeper.app))
        tasks = self.keeper.tasks
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def end_answer(self, exchange: Exchange) -> None:
        """Note that an answer is complete: go on with the next request, or wait for it."""
        exchange.response_complete = True
        exchange.wake()
        self._current = None
        if self.is_gone:
            return
        if not exchange.keep_alive or (self._taking is exchange and self._expects_continue):
            self._is_last = True
            if self._taking is exchange:
                self._linger()
            else:
                self.transport.close()
            return
        if self._waiting:
            self._current = self._waiting.popleft()
            self.serve(self._current)
            return
        self.read_on()
        self._idle_from = self.loop.time()
        if self._idle_timer is None:  # one timer does for many requests
            self._idle_timer = self.loop.call_later(self.limits.idle_s, self._check_idle)

    # reading

    def _hold(self) -> None:
        if not self._is_held and not self.is_gone:
            self._is_held = True
            self.transport.pause_reading()

    def read_on(self) -> None:
        """Read on, also so that the end of the connection is noticed."""
        if self._is_held and not self.is_gone and not self._waiting:
            self._is_held = False
            self.transport.resume_reading()

    async def drain(self) -> None:
        """Wait until the client has taken most of what was written, or has left."""
        while self.is_slow and not self.is_gone:
            if self._drained is None:
                self._drained = self.loop.create_future()
            await asyncio.shield(self._drained)

    async def wait_departure(self) -> None:
        """Wait until the client sends no more, or is gone."""
        self._departed = self.loop.create_future()
        if not (self.has_ended or self.is_gone):
            await self._departed

    def _note_departure(self) -> None:
        if self._departed is not None and not self._departed.done():
            self._departed.set_result(None)

    def shutdown(self) -> None:
        """End after the answer that is under way, or now."""
        if self._current is None:
            self._is_last = True
            self.transport.close()
        else:
            self._current.keep_alive = False

    @property
    def target(self) -> bytes:
        """The target of the last request, as far as it has arrived."""
        return self._url

    @property
    def current(self) -> Exchange | None:
        """The request that is being answered."""
        return self._current

    @property
    def is_gone(self) -> bool:
        """Whether nothing reaches the client any more."""
        return self.is_lost or self._is_refused or self.transport.is_closing()

    # deadlines

    def _check_idle(self) -> None:
        """Close a connection on which no request has come for too long."""
        self._idle_timer = None
        if self._in_request or self._current is not None:
            return  # the end of the answer begins again
        left_s = self._idle_from + self.limits.idle_s - self.loop.time()
        if left_s > 0:
            self._idle_timer = self.loop.call_later(left_s, self._check_idle)
        else:
            self.transport.close()

    def _watch_head(self) -> None:
        self._timer = self.loop.call_later(self.limits.header_s, self._give_up)

    def _watch_body(self) -> None:
        self._begun_at = self.loop.time()
        self._received = 0
        self._looks = deque((0,), maxlen=_LOOKS)
        self._timer = self.loop.call_later(self.limits.header_s / _LOOKS, self._check_body)

    def _check_body(self) -> None:
        """Give up on a body that takes too long, or has become too slow."""
        if self._is_held:  # the client waits for us
            self._watch_body()
            return
        limits, looks = self.limits, self._looks
        is_late = self.loop.time() - self._begun_at >= limits.body_s
        least = limits.header_s * limits.min_body_bytes_per_s
        if is_late or (len(looks) == _LOOKS and self._received - looks[0] < least):
            self._give_up()
            return
        looks.append(self._received)
        self._timer = self.loop.call_later(limits.header_s / _LOOKS, self._check_body)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self._in_request:
            self.refuse(408, "The request comes too slowly.")
        elif not self.is_gone:
            self.transport.close()

    def refuse(self, status: int, message: str) -> None:
        """Answer what cannot be served, unless another answer has begun, and close."""
        self._stop_watching()
        if self.is_gone:
            return
        self._is_last = True
        current = self._current
        if current is not None and current is not self._taking:
            current.keep_alive = False  # a request before it is still being answered
            self._waiting.clear()
            return
        if current is None or not current.response_started:
            kind, body = self.render_refusal(status, message)
            head = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
            head.append((b"connection", b"close"))
            self.transport.write(render_head(status, head) + body)
        if current is not None:
            current.wake()
        self._linger()

    def _linger(self) -> None:
        """Close once the client has read the answer; anything it still sends is thrown away."""
        self._is_refused = True
        self._stop_watching()
        if self.has_ended or not self.transport.can_write_eof():
            self.transport.close()
        else:
            self.transport.write_eof()
            self._timer = self.loop.call_later(_LINGER_S, self.transport.close)

    def render_refusal(self, status: int, message: str) -> tuple[bytes, bytes]:
        """Return the type and the body of the answer to what cannot be served."""
        return b"text/plain", f"{status} {message}\n".encode()

    # answers that are written at once

    def can_write(self, exchange: Exchange) -> bool:
        """Tell whether an answer may be written at once, on a connection that goes on."""
        return exchange.keep_alive and not exchange.response_started and not self.is_slow

    def write_whole(
        self, exchange: Exchange, status: int, headers: RawHeaders, body: bytes
    ) -> None:
        """Write a whole answer; the headers must have its length."""
        self.write_answer(exchange, render_head(status, headers) + body)

    def write_answer(self, exchange: Exchange, data: bytes) -> None:
        """Write a whole answer, head and all."""
        exchange.response_started = True
        if not self.is_gone:
            self.transport.write(data)
        self.end_answer(exchange)

    def write_first(self, exchange: Exchange, headers: RawHeaders, data: bytes) -> None:
        """Write the head of a stream and its first piece; `write_piece` goes on from there."""
        exchange.response_started = exchange.is_chunked = True
        head = render_head(200, (*headers, _CHUNKED))
        if not self.is_gone:
            self.transport.write(b"%b%x\r\n%b\r\n" % (head, len(data), data))

    def write_piece(self, data: bytes) -> None:
        """Write a piece of a body whose length is not known, without waiting."""
        if not self.transport.is_closing():
            self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


def render_head(status: int, headers: RawHeaders) -> bytes:
    """Return the head of an answer, in which no header can end it early or add another."""
    lines = [b"%b: %b\r\n" % header for header in headers]
    first = STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    head = b"%b%b\r\n" % (first, b"".join(lines))
    if not head.count(b"\n") == head.count(b"\r") == len(lines) + 2:
        raise ValueError("a header has more than one line")
    return head
