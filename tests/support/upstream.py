"""An HTTP server that does exactly what a test tells it, byte by byte.

    async with FaultyUpstream([reply(completion_bytes("hello")), RESET]) as upstream:
        transport = HttpTransport(upstream.url)
        ...
    assert upstream.calls == 2

Each request is answered by the next script of the list (the last one repeats), or by the
script a function returns for it. A script is a sequence of steps:

    bytes            written as they are
    Pause(seconds)   nothing for a while
    Drip(data, ...)  written in small pieces with a pause between them
    Repeat(data, n)  written n times, or for ever
    HANG             nothing until the client leaves
    RESET            the connection is aborted (RST)
    CLOSE            the connection is closed (FIN)

After the last step the connection stays open for the next request. Requests, connections
and departures are counted here, so that a test never trusts the client's own numbers.
"""

import asyncio
import gzip
import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

__all__ = [
    "CLOSE",
    "HANG",
    "RESET",
    "Drip",
    "FaultyUpstream",
    "Pause",
    "Received",
    "Repeat",
    "Script",
    "chunked",
    "completion_bytes",
    "gzip_bomb",
    "gzipped",
    "http_response",
    "reply",
    "sse_bytes",
    "sse_head",
    "sse_response",
    "unused_port",
]


@dataclass(frozen=True)
class _Sign:
    name: str


HANG: Final = _Sign("hang")
RESET: Final = _Sign("reset")
CLOSE: Final = _Sign("close")


@dataclass(frozen=True)
class Pause:
    """Send nothing for a while."""

    seconds: float


@dataclass(frozen=True)
class Drip:
    """Send data in small pieces with a pause between them."""

    data: bytes
    size: int = 1
    pause_s: float = 0.02


@dataclass(frozen=True)
class Repeat:
    """Send the same data `times` times, or until the client leaves."""

    data: bytes
    times: int | None = None


Step = bytes | Pause | Drip | Repeat | _Sign
Script = Sequence[Step]


@dataclass
class Received:
    """One request as it arrived."""

    head: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Number of the connection it came on, from 1."""

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass
class FaultyUpstream:
    """A server on loopback that answers each request with a script."""

    scripts: Sequence[Script | Step] | Callable[[Received], Script | Step]
    greeting: Script = ()
    """What is done as soon as a connection is there, before any request."""
    requests: list[Received] = field(default_factory=list[Received])
    connections: int = 0
    departures: int = 0
    """How many connections the client has closed or broken."""
    port: int = 0

    def __post_init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._departed = asyncio.Event()

    @property
    def url(self) -> str:
        """The base URL to point a client at."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> int:
        """How many requests arrived."""
        return len(self.requests)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        # From Python 3.12 on, `wait_closed` would wait for clients that do not read.
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_departure(self, timeout_s: float = 5.0) -> None:
        """Wait until the client has closed a connection."""
        await asyncio.wait_for(self._departed.wait(), timeout_s)

    def script_for(self, request: Received) -> list[Step]:
        """Return the steps that answer a request."""
        if callable(self.scripts):
            script = self.scripts(request)
        else:
            script = self.scripts[min(len(self.requests), len(self.scripts)) - 1]
        if isinstance(script, bytes | Pause | Drip | Repeat | _Sign):
            return [script]
        return list(script)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            for step in self.greeting:
                if not await self._perform(step, reader, writer):
                    return
            while (request := await _receive(reader, number)) is not None:
                self.requests.append(request)
                for step in self.script_for(request):
                    if not await self._perform(step, reader, writer):
                        return
            self._note_departure()
        except (OSError, RuntimeError):  # uvloop raises the latter for a client that has left
            self._note_departure()
        except asyncio.CancelledError:
            # The test is over. Raised again, asyncio would log it as an error.
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _perform(
        self, step: Step, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Do one step; return whether the connection goes on."""
        match step:
            case bytes():
                writer.write(step)
                await writer.drain()
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Drip(data, size, pause_s):
                for start in range(0, len(data), size):
                    writer.write(data[start : start + size])
                    await writer.drain()
                    await asyncio.sleep(pause_s)
            case Repeat(data, times):
                sent = 0
                while times is None or sent < times:
                    writer.write(data)
                    await writer.drain()
                    sent += 1
            case _Sign("hang"):
                await reader.read()
                self._note_departure()
                return False
            case _Sign("reset"):
                _abort(writer)
                return False
            case _:
                return False
        return True

    def _note_departure(self) -> None:
        self.departures += 1
        self._departed.set()


async def _receive(reader: asyncio.StreamReader, connection: int) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    lines = head.split("\r\n")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(lines[0], headers, body, connection)


def _abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def http_response(
    body: bytes = b"",
    status: int = 200,
    headers: Mapping[str, str | None] | None = None,
) -> bytes:
    """Return a whole HTTP/1.1 answer; a header given as `None` is left out."""
    fields: dict[str, str | None] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **{name.lower(): value for name, value in (headers or {}).items()},
    }
    lines = [f"HTTP/1.1 {status} Scripted"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def completion_bytes(
    message: str | Mapping[str, Any] = "hello",
    *,
    finish_reason: str | None = "stop",
    usage: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bytes:
    """Return the JSON body of a chat completion with one choice."""
    if isinstance(message, str):
        message = {"role": "assistant", "content": message}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": dict(message), "finish_reason": finish_reason}],
    }
    if usage is not None:
        body["usage"] = dict(usage)
    return json.dumps(body | fields).encode()


def reply(message: str | Mapping[str, Any] = "hello", **fields: Any) -> bytes:
    """Return a whole, successful answer with a chat completion."""
    return http_response(completion_bytes(message, **fields))


def sse_bytes(chunks: Iterable[Any], *, done: bool = True) -> bytes:
    """Return an event stream: one `data:` event for each chunk (text as it is, else JSON)."""
    events = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    if done:
        events.append("[DONE]")
    return "".join(f"data: {event}\n\n" for event in events).encode()


def chunked(*pieces: bytes, end: bool = True) -> bytes:
    """Return pieces in chunked transfer encoding."""
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece)
    return framed + (b"0\r\n\r\n" if end else b"")


def sse_response(chunks: Iterable[Any], *, done: bool = True) -> bytes:
    """Return a whole streamed answer in chunked transfer encoding."""
    return sse_head() + chunked(sse_bytes(chunks, done=done))


def sse_head(headers: Mapping[str, str | None] | None = None) -> bytes:
    """Return the head of a streamed answer in chunked transfer encoding."""
    fields: dict[str, str | None] = {
        "content-type": "text/event-stream",
        "content-length": None,
        "transfer-encoding": "chunked",
    }
    return http_response(headers=fields | dict(headers or {}))


def gzip_bomb(decoded_bytes: int, block_bytes: int = 1024 * 1024) -> bytes:
    """Return gzip data that expands about a thousandfold, without a checksum to be read.

    One block is packed and repeated: a full flush makes it independent of what precedes it.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b" " * block_bytes) + packer.flush(zlib.Z_FULL_FLUSH)
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return header + block * (decoded_bytes // block_bytes)


def gzipped(data: bytes) -> bytes:
    """Return data as one gzip member."""
    return gzip.compress(data)


def unused_port() -> int:
    """Return a port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
