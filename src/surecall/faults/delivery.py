"""Answers go out byte by byte as they say, also those that break the rules of HTTP."""

import asyncio
import socket
import struct
from http import HTTPStatus
from itertools import count
from typing import Final

from surecall.serving import Exchange, HttpConnection

from .answers import Answer, Ending, Flood, Pause

_SEND_S: Final = 60.0


async def deliver_answer(answer: Answer, link: HttpConnection, exchange: Exchange) -> None:
    """Send an answer as it says, down to how its connection ends.

    Raises:
        ConnectionResetError: The client has left.
    """
    exchange.response_started = True
    if answer.before != "keep":
        await _end(answer.before, link, exchange)
        return
    link.transport.write(_render_head(answer, is_last=not exchange.keep_alive))
    is_chunked = answer.framing in {"chunked", "both"}
    for piece in answer.pieces:
        if isinstance(piece, Pause):
            await asyncio.sleep(piece.seconds)
        elif isinstance(piece, Flood):
            await _flood(piece, link, is_chunked=is_chunked)
        else:
            await _write(link, _frame(piece) if is_chunked else piece)
    if is_chunked and answer.ending == "keep":
        await _write(link, b"0\r\n\r\n")
    await _end(answer.ending, link, exchange)


async def _flood(flood: Flood, link: HttpConnection, *, is_chunked: bool) -> None:
    data = _frame(flood.data) if is_chunked else flood.data
    for _ in count() if flood.times is None else range(flood.times):
        await _write(link, data)
        await asyncio.sleep(flood.pause_s)


async def _write(link: HttpConnection, data: bytes) -> None:
    """Write, and wait for the client to keep up, but not for ever; raise when it has left."""
    if not link.is_gone:
        link.transport.write(data)
        async with asyncio.timeout(_SEND_S):
            await link.drain()
    if link.is_gone:
        raise ConnectionResetError("the client has left")


async def _end(ending: Ending, link: HttpConnection, exchange: Exchange) -> None:
    match ending:
        case "keep":
            link.end_answer(exchange)
        case "stall":
            link.read_on()
            await link.wait_departure()
            link.transport.abort()
        case "reset":
            await asyncio.sleep(0.02)  # bytes not yet read by the client die with the connection
            peer: socket.socket = link.transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.transport.abort()
        case "close":
            link.transport.close()


def _render_head(answer: Answer, *, is_last: bool) -> bytes:
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
    if is_last or answer.ending != "keep" or answer.framing == "close":
        headers["connection"] = "close"
    lines = [f"HTTP/1.1 {answer.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"


def _frame(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""
