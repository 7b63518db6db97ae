"""Just enough HTTP/1.1 to serve answers byte by byte, also those that break its rules."""

import asyncio
import socket
import struct
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from .answers import Answer, Ending, Flood, Pause

__all__ = ["Received", "RequestRefused", "perform_answer", "receive_request"]

MAX_BODY_BYTES: Final = 32 * 1024 * 1024
_CRLF: Final = b"\r\n"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Received(Struct, frozen=True):
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class RequestRefused(Exception):  # noqa: N818 - a signal, answered with its status
    """A request that cannot be read."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


async def receive_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Received | None:
    """Read the next request of a connection; `None` when the client has left."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise RequestRefused(431, "The head of the request is too large.") from None
    lines = head.split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3:
        raise RequestRefused(400, "The request line cannot be read.")
    fields = (line.partition(":") for line in lines[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(_CONTINUE)
    body = await _read_body(reader, headers)
    return Received(words[0], words[1].partition("?")[0], headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    try:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await _read_chunks(reader)
        length = int(headers.get("content-length", "0"))
    except ValueError:
        raise RequestRefused(400, "The length of the body cannot be read.") from None
    if not 0 <= length <= MAX_BODY_BYTES:
        raise RequestRefused(413, f"A request may have {MAX_BODY_BYTES} bytes.")
    return await reader.readexactly(length)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(_CRLF)).split(b";")[0].strip(), 16):
        if size < 0 or len(body) + size > MAX_BODY_BYTES:
            raise RequestRefused(413, f"A request may have {MAX_BODY_BYTES} bytes.")
        body += await reader.readexactly(size)
        await reader.readexactly(len(_CRLF))
    while await reader.readuntil(_CRLF) != _CRLF:
        pass
    return bytes(body)


async def perform_answer(
    answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Send an answer as it says; return whether the connection can be used again."""
    if answer.before != "keep":
        return await _end(answer.before, reader, writer)
    writer.write(_head(answer))
    is_chunked = answer.framing in {"chunked", "both"}
    for piece in answer.pieces:
        if isinstance(piece, Pause):
            await _flush(writer)
            await asyncio.sleep(piece.seconds)
        elif isinstance(piece, Flood):
            await _flood(piece, writer, is_chunked=is_chunked)
        else:
            writer.write(_framed(piece) if is_chunked else piece)
            await writer.drain()
    if is_chunked and answer.ending == "keep":
        writer.write(b"0\r\n\r\n")
    await _flush(writer)
    return await _end(answer.ending, reader, writer)


async def _flood(flood: Flood, writer: asyncio.StreamWriter, *, is_chunked: bool) -> None:
    data = _framed(flood.data) if is_chunked else flood.data
    sent = 0
    while flood.times is None or sent < flood.times:
        writer.write(data)
        await _flush(writer)
        await asyncio.sleep(flood.pause_s)
        sent += 1


async def _flush(writer: asyncio.StreamWriter) -> None:
    """Wait for the client to keep up; raise when it has left."""
    if writer.transport.is_closing():
        raise ConnectionResetError("the client has left")
    await writer.drain()


async def _end(ending: Ending, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    match ending:
        case "keep":
            return True
        case "stall":
            await reader.read()
        case "reset":
            await asyncio.sleep(0.02)  # bytes not yet read by the client die with the connection
            peer: socket.socket = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        case "close":
            pass
    return False


def _head(answer: Answer) -> bytes:
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


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""
