"""One socket to the upstream: it is made, the request goes out, the answer comes in, a clock runs.

A proxy before it opens a tunnel. Every address of a host is tried, and no name is looked up twice.

There is one timer for each connection, however many pieces arrive and requests are sent: moving
a deadline only stores a number, and the timer looks at it when it fires.
"""

import asyncio
import re
import select
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final, Protocol, cast

from surecall.base.errors import Code

from .answers import Answer
from .failures import (
    deadline_passed,
    insecure,
    map_failure,
    no_address,
    proxy_auth,
    proxy_refused,
)
from .network import ClientLimits, Deadlines, Proxy

PROXY_AUTH_STATUS: Final = 407
_PROXY_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?(?:\r\n|$)")
_MAX_PROXY_REPLY_BYTES: Final = 64 * 1024
_CAN_POLL: Final = hasattr(select, "poll")
_JOINED_BYTES: Final = 64 * 1024
"""A head and a body up to this size are sent as one; larger bodies are not copied."""


class Keeper(Protocol):
    """Who keeps connections while no request is on them."""

    limits: ClientLimits

    def take_back(self, connection: "Connection") -> None:
        """Keep a clean connection for the next request."""
        ...

    def drop(self, connection: "Connection") -> None:
        """Do not use a connection again that is about to be closed."""
        ...

    def forget(self, connection: "Connection") -> None:
        """Take note that a connection is no more."""
        ...


class Connection(asyncio.Protocol):
    """A connection of an origin, with at most one request on it."""

    __slots__ = (
        "_answer",
        "_deadlines",
        "_due",
        "_holds",
        "_is_writing_late",
        "_keeper",
        "_loop",
        "_readable",
        "_timer",
        "_timer_due",
        "_total_due",
        "_transport",
        "_unsent_bytes",
        "is_counted",
        "is_lost",
        "is_made",
        "sent_at",
        "uses",
    )

    def __init__(self, keeper: Keeper, loop: asyncio.AbstractEventLoop) -> None:
        self._keeper = keeper
        self._loop = loop
        self._answer: Answer | None = None
        self._deadlines: Deadlines | None = None
        self._due = self._total_due = self._timer_due = inf
        self._timer: asyncio.TimerHandle | None = None
        self._holds = False
        self._is_writing_late = False
        self._unsent_bytes = 0
        self._readable: select.poll | None = None
        self.is_counted = False
        """Whether the keeper counts it, and is told when it is no more."""
        self.is_made = False
        self.is_lost = False
        self.uses = 0
        self.sent_at = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether a request can be sent."""
        return not self.is_lost and not self._transport.is_closing()

    @property
    def is_clean(self) -> bool:
        """Whether a request can be sent and nothing has arrived since the last answer.

        What lies in the socket would be taken for the answer, so the socket is asked.
        """
        if self.is_lost or self._transport.is_closing():
            return False
        readable = self._readable
        return readable is None or not readable.poll(0)

    # what the origin does

    def send(
        self, answer: Answer, head: bytes, body: bytes, deadlines: Deadlines, total_due: float
    ) -> None:
        """Send a request and give what comes to its answer."""
        self._answer = answer
        self._deadlines = deadlines
        self._total_due = total_due
        self.uses += 1
        transport = self._transport
        if len(body) <= _JOINED_BYTES:
            transport.write(head + body if body else head)
        else:
            transport.write(head)
            transport.write(body)
        self.sent_at = now = self._loop.time()
        self._move_due(now + deadlines.first_byte_s)

    def close(self) -> None:
        """Close the socket at once, with whatever is on its way."""
        if self.is_made and not self.is_lost:
            self._transport.abort()

    # what the answer does

    def finish(self, *, reusable: bool) -> None:
        """Take leave of an answer: keep the connection if it is clean, or close it."""
        self._answer = None
        transport = self._transport
        if not reusable or self.is_lost or transport.get_write_buffer_size():
            self.close()
            return
        if self._holds:
            self.hold(wanted=False)
        self._total_due = inf
        self._move_due(self._loop.time() + self._keeper.limits.max_idle_s)
        self._keeper.take_back(self)

    def hold(self, *, wanted: bool) -> None:
        """Stop taking bytes off the socket, or take them again."""
        if wanted == self._holds or not self.is_usable:
            return
        self._holds = wanted
        transport = self._transport
        if wanted:
            transport.pause_reading()
            return
        transport.resume_reading()
        if self._answer is not None and self._deadlines is not None and self._answer.has_head:
            self._move_due(self._loop.time() + self._deadlines.idle_s)

    def expect(self) -> None:
        """Take note that the reader waits from now."""
        if self._deadlines is not None:
            self._move_due(self._loop.time() + self._deadlines.idle_s)

    # what the event loop does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if _CAN_POLL and sock is not None:
            self._readable = select.poll()
            self._readable.register(sock.fileno(), select.POLLIN)
        self.is_made = True

    def data_received(self, data: bytes) -> None:
        """Take what arrived; bytes that nobody asked for end the connection."""
        answer = self._answer
        if answer is None:
            self._keeper.drop(self)
            self.close()
            return
        if answer.take(data) and self._answer is answer:
            deadlines = self._deadlines
            assert deadlines is not None
            due = self._loop.time() + deadlines.idle_s
            if due < self._timer_due:
                self._move_due(due)
            else:
                self._due = due

    def eof_received(self) -> None:
        """Take the end of what the upstream sends; the transport closes itself."""
        if self._answer is not None:
            self._answer.take_end()
        else:
            self._keeper.drop(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Take the end of the connection."""
        self.is_lost = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.take_end(exc if exc is not None else ConnectionResetError())
        if self.is_counted:
            self._keeper.forget(self)

    def pause_writing(self) -> None:
        """The upstream takes the request slowly."""
        self._is_writing_late = True
        self._unsent_bytes = self._transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """Most of the request has been taken: the answer is awaited from now."""
        self._is_writing_late = False
        answer, deadlines = self._answer, self._deadlines
        if answer is not None and deadlines is not None and not answer.has_head:
            self._move_due(self._loop.time() + deadlines.first_byte_s)

    # the clock

    def _move_due(self, due: float) -> None:
        self._due = due
        if due > self._total_due:
            due = self._total_due
        if due < self._timer_due or self._timer is None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due = due
            self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_due = inf
        now = self._loop.time()
        if now < min(self._due, self._total_due):
            self._move_due(self._due)
            return
        answer, deadlines = self._answer, self._deadlines
        if answer is None or deadlines is None:
            self._keeper.drop(self)
            self.close()
        elif now >= self._total_due:
            answer.fail(deadline_passed(Code.TOTAL_TIMEOUT, deadlines.total_s))
        elif answer.has_head:
            if self._holds or not answer.is_awaited:
                self._move_due(now + deadlines.idle_s)
            else:
                answer.fail(deadline_passed(Code.IDLE_TIMEOUT, deadlines.idle_s))
        elif self._is_writing_late and self._has_written_more():
            self._move_due(now + deadlines.first_byte_s)
        else:
            answer.fail(deadline_passed(Code.FIRST_BYTE_TIMEOUT, deadlines.first_byte_s))

    def _has_written_more(self) -> bool:
        before, self._unsent_bytes = self._unsent_bytes, self._transport.get_write_buffer_size()
        return self._unsent_bytes < before


_NEXT_AFTER_S: Final = 0.25
"""How long an address may be tried alone; then the next one is tried beside it (RFC 8305)."""

Address = tuple[socket.AddressFamily, Any]


async def connect_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to one of the addresses of a host; the caller bounds it."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise no_address() from None
    addresses: list[Address] = [(entry[0], entry[4]) for entry in found]
    if not addresses:
        raise no_address()
    addresses = _alternate(addresses)
    return await (_connect(addresses[0]) if len(addresses) == 1 else _race(addresses))


def _alternate(addresses: Sequence[Address]) -> list[Address]:
    """Order addresses so that families take turns, beginning with the preferred one."""
    first = [entry for entry in addresses if entry[0] == addresses[0][0]]
    other = [entry for entry in addresses if entry[0] != addresses[0][0]]
    ordered: list[Address] = []
    for number in range(max(len(first), len(other))):
        ordered += first[number : number + 1] + other[number : number + 1]
    return ordered


async def _connect(address: Address) -> socket.socket:
    family, target = address
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as failure:
        raise map_failure(failure) from None
    try:
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(sock, target)
    except OSError as failure:
        sock.close()
        raise map_failure(failure) from None
    except BaseException:
        sock.close()
        raise
    return sock


async def _race(addresses: Sequence[Address]) -> socket.socket:
    """Try addresses one after another without waiting long for any; the first that works wins."""
    waiting = list(addresses)
    running: set[asyncio.Task[socket.socket]] = set()
    error: BaseException | None = None
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(_connect(waiting.pop(0))))
            done, running = await asyncio.wait(
                running,
                timeout=_NEXT_AFTER_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            winner: socket.socket | None = None
            for task in done:
                failure = task.exception()
                if failure is not None:
                    error = error or failure
                elif winner is None:
                    winner = task.result()
                else:
                    task.result().close()
            if winner is not None:
                return winner
    finally:
        _give_up(running)
    raise error if error is not None else no_address()


def _give_up(tasks: set[asyncio.Task[socket.socket]]) -> None:
    for task in tasks:
        task.cancel()
        task.add_done_callback(_close_late)


def _close_late(task: "asyncio.Task[socket.socket]") -> None:
    """Close the socket of an attempt that succeeded after another had won."""
    if not task.cancelled() and task.exception() is None:
        with suppress(OSError):
            task.result().close()


class Tunnel(asyncio.Protocol):
    """Asks a proxy for a way to a server; what follows on the connection is the server's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._reply = bytearray()
        self._has_reply: asyncio.Future[None] = loop.create_future()

    async def open(self, transport: asyncio.Transport, target: str, proxy: Proxy) -> None:
        """Return once the proxy has opened the way.

        Raises:
            ProviderConnectionError: It did not; the code and the message say why.
        """
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", "User-Agent: surecall"]
        lines += [f"{name}: {value}" for name, value in proxy.headers]
        transport.write("\r\n".join((*lines, "", "")).encode("ascii"))
        await self._has_reply
        head, end, rest = bytes(self._reply).partition(b"\r\n\r\n")
        found = _PROXY_STATUS.match(head)
        if found is None or not end:
            raise proxy_refused(proxy.address, "gives no answer in HTTP", retryable=True)
        status = int(found[1])
        if status == PROXY_AUTH_STATUS:
            offers = re.findall(rb"(?im)^proxy-authenticate:[ \t]*([^\r\n]+)", head)
            schemes = b", ".join(offers).decode("latin-1")
            raise proxy_auth(proxy.address, sent=proxy.auth is not None, schemes=schemes)
        if 200 <= status < 300 and rest:  # the server speaks first, so it does not speak TLS
            failure = ssl.SSLError()
            failure.reason = "WRONG_VERSION_NUMBER"
            raise insecure(failure)
        if not 200 <= status < 300:
            raise proxy_refused(
                proxy.address,
                f"refuses to connect to {target} with status {status}",
                retryable=status >= 500,
            )

    def data_received(self, data: bytes) -> None:
        """Take what the proxy says."""
        self._reply += data
        if b"\r\n\r\n" in self._reply or len(self._reply) > _MAX_PROXY_REPLY_BYTES:
            self._note_end()

    def eof_received(self) -> None:
        """Take the end, before an answer or after half of one."""
        self._note_end()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Take the end of the connection."""
        self._note_end()

    def _note_end(self) -> None:
        if not self._has_reply.done():
            self._has_reply.set_result(None)
