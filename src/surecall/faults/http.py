"""Just enough HTTP/1.1 to serve answers byte by byte, also those that break its rules.

Requests are read strictly and under deadlines: a client that sends too slowly, too much, or in a
way that two servers could read differently is refused.
"""

import asyncio
import re
import socket
import struct
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from typing import Final

from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.limits import MAX_BODY_BYTES
from surecall.serving.admission import Refusal

from .answers import Answer, Ending, Flood, Pause

_CRLF: Final = b"\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_READ_BYTES: Final = 64 * 1024
_SEND_S: Final = 60.0
_LINGER_S: Final = 1.0
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_TARGET: Final = re.compile(r"/[\x21-\x7e]*")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_VERSIONS: Final = frozenset({"HTTP/1.0", "HTTP/1.1"})


class ServerLimits(Struct, frozen=True, kw_only=True):
    """How long a client may take to send a request, and how large it may be."""

    header_s: float = 10.0
    """Until all headers have arrived, from the connection or the first byte of a later request."""
    body_s: float = 60.0
    """Until the whole body has arrived."""
    min_body_bytes_per_s: int = 1024
    """How fast the body has to come, on average, once `header_s` have passed."""
    idle_s: float = 75.0
    """How long a connection is kept between two requests."""
    max_header_bytes: int = 32 * 1024
    max_headers: int = 100
    max_body_bytes: int = MAX_BODY_BYTES
    max_connections: int = 512


class Head(Struct, frozen=True):
    """A request without its body."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    """In the order in which they arrived, names in lower case."""
    version: str = "HTTP/1.1"

    def values(self, name: str) -> list[str]:
        """Return all values of a header, in lower case."""
        return [value.lower() for key, value in self.headers if key == name]

    @property
    def is_last(self) -> bool:
        """Whether the client wants the connection to end with the answer."""
        wishes = ",".join(self.values("connection"))
        return self.version == "HTTP/1.0" or "close" in [word.strip() for word in wishes.split(",")]


class RequestRefused(Exception):  # noqa: N818 - a signal, answered with its status
    """A request that is not served."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def _refuse(status: int, message: str) -> RequestRefused:
    code = {
        408: Code.REQUEST_TIMEOUT,
        413: Code.REQUEST_TOO_LARGE,
        431: Code.REQUEST_TOO_LARGE,
    }.get(status, Code.INVALID_REQUEST)
    return RequestRefused(Refusal(status, code, message))


async def receive_head(
    reader: asyncio.StreamReader, limits: ServerLimits, *, is_first: bool
) -> Head | None:
    """Read the head of the next request; `None` when the client has left or sends nothing.

    The reader must have been opened with `max_header_bytes` as its limit.
    """
    first = b""
    try:
        async with asyncio.timeout(limits.header_s if is_first else limits.idle_s) as deadline:
            first = await reader.read(1)
            if not is_first:
                deadline.reschedule(asyncio.get_running_loop().time() + limits.header_s)
            return _parse_head(first + await reader.readuntil(b"\r\n\r\n"), limits)
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        size = limits.max_header_bytes
        raise _refuse(431, f"The headers have more than {size} bytes.") from None
    except TimeoutError:
        if first:
            raise _refuse(408, f"The headers did not arrive in {limits.header_s:g} s.") from None
        return None


def _parse_head(data: bytes, limits: ServerLimits) -> Head:
    lines = data[:-4].decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not _TOKEN.fullmatch(words[0]) or words[2] not in _VERSIONS:
        raise _refuse(400, "The request line cannot be read.")
    if not _TARGET.fullmatch(words[1]):
        raise _refuse(400, "The request line must name a path.")
    if len(lines) - 1 > limits.max_headers:
        raise _refuse(431, f"The request has more than {limits.max_headers} headers.")
    headers: list[tuple[str, str]] = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not (colon and _TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
            raise _refuse(400, "A header cannot be read.")
        headers.append((name.lower(), value.strip(" \t")))
    path, _, query = words[1].partition("?")
    return Head(words[0], path, query, tuple(headers), words[2])


async def receive_body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: Head, limits: ServerLimits
) -> bytes:
    """Read the body of a request; the client has to keep up."""
    length = _declared_length(head, limits)
    if length == 0:
        return b""
    if "100-continue" in head.values("expect"):
        writer.write(_CONTINUE)
    body = bytearray()
    start = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(min(limits.header_s, limits.body_s)) as deadline:

            async def take(size: int) -> None:
                while size:
                    piece = await reader.read(min(size, _READ_BYTES))
                    if not piece:
                        raise asyncio.IncompleteReadError(b"", size)
                    body.extend(piece)
                    size -= len(piece)
                    earned_s = limits.header_s + len(body) / limits.min_body_bytes_per_s
                    deadline.reschedule(start + min(limits.body_s, earned_s))

            if length is not None:
                await take(length)
            else:
                while size := await _next_chunk(reader):
                    if len(body) + size > limits.max_body_bytes:
                        raise _too_large(limits)
                    await take(size)
                    if await reader.readexactly(len(_CRLF)) != _CRLF:
                        raise _refuse(400, "A chunk of the body is longer than it says.")
                await _skip_trailers(reader, limits)
    except TimeoutError:
        raise _refuse(408, "The body arrives too slowly.") from None
    return bytes(body)


def _declared_length(head: Head, limits: ServerLimits) -> int | None:
    """Return how long the body is; `None` when it comes in chunks."""
    encodings, lengths = head.values("transfer-encoding"), head.values("content-length")
    if encodings:
        if encodings != ["chunked"] or lengths:
            raise _refuse(400, "The framing of the body is not supported.")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
        raise _refuse(400, "The length of the body cannot be read.")
    if len(lengths[0]) > 18 or int(lengths[0]) > limits.max_body_bytes:
        raise _too_large(limits)
    return int(lengths[0])


async def _next_chunk(reader: asyncio.StreamReader) -> int:
    found = _CHUNK_SIZE.fullmatch(await _read_line(reader))
    if found is None:
        raise _refuse(400, "The length of a chunk cannot be read.")
    return int(found[1], 16)


async def _skip_trailers(reader: asyncio.StreamReader, limits: ServerLimits) -> None:
    for _ in range(limits.max_headers + 1):
        if await _read_line(reader) == _CRLF:
            return
    raise _refuse(431, f"The body ends with more than {limits.max_headers} headers.")


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(_CRLF)
    except asyncio.LimitOverrunError:
        raise _refuse(431, "A line between the chunks of the body is too long.") from None


def _too_large(limits: ServerLimits) -> RequestRefused:
    return _refuse(413, f"A request may have {limits.max_body_bytes} bytes.")


async def discard_rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let the client read the answer first: bytes that nobody reads would reset the connection."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_S):
            writer.write_eof()
            while await reader.read(_READ_BYTES):
                pass


async def perform_answer(
    answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Send an answer as it says; return whether the connection can be used again."""
    if answer.before != "keep":
        return await _end(answer.before, reader, writer)
    writer.write(_render_head(answer))
    is_chunked = answer.framing in {"chunked", "both"}
    for piece in answer.pieces:
        if isinstance(piece, Pause):
            await _flush(writer)
            await asyncio.sleep(piece.seconds)
        elif isinstance(piece, Flood):
            await _flood(piece, writer, is_chunked=is_chunked)
        else:
            writer.write(_frame(piece) if is_chunked else piece)
            await _drain(writer)
    if is_chunked and answer.ending == "keep":
        writer.write(b"0\r\n\r\n")
    await _flush(writer)
    return await _end(answer.ending, reader, writer)


async def _flood(flood: Flood, writer: asyncio.StreamWriter, *, is_chunked: bool) -> None:
    data = _frame(flood.data) if is_chunked else flood.data
    for _ in count() if flood.times is None else range(flood.times):
        writer.write(data)
        await _flush(writer)
        await asyncio.sleep(flood.pause_s)


async def _flush(writer: asyncio.StreamWriter) -> None:
    """Wait for the client to keep up; raise when it has left."""
    if writer.transport.is_closing():
        raise ConnectionResetError("the client has left")
    await _drain(writer)


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Wait for the client to read, but not for ever."""
    async with asyncio.timeout(_SEND_S):
        await writer.drain()


async def _end(ending: Ending, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    match ending:
        case "keep":
            return True
        case "stall":
            while await reader.read(_READ_BYTES):
                pass
        case "reset":
            await asyncio.sleep(0.02)  # bytes not yet read by the client die with the connection
            peer: socket.socket = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        case "close":
            pass
    return False


def _render_head(answer: Answer) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = "Unknown"
    headers = dict(answer.headers)
    if answer.framing in {"length", "both"}:
        declared = answer.declared_bytes
        headers["content-length"] = str(len(answer.body) if declared is None else declared)
    if answer.framing in {"chunked", "both"}:
        headers["transfer-encoding"] = "chunked"
    if answer.ending != "keep" or answer.framing == "close":
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"


def _frame(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""
