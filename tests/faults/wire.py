"""Requests to a server as bytes, and answers taken apart."""

import asyncio
import json
from typing import Any

from surecall.faults import FaultServer

__all__ = ["BODIES", "PATHS", "exchange", "head_of", "post", "split"]

PATHS = {
    "chat_completions": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/faults:clean:generateContent",
}
BODIES: dict[str, dict[str, Any]] = {
    "chat_completions": {"messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
"""The smallest request of each format, without the name of the model."""

_JSON = ("content-type: application/json",)


async def exchange(server: FaultServer, data: bytes) -> bytes:
    """Send bytes and return all that comes until the server closes.

    `PORT` stands for the port of the server.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data.replace(b"PORT", str(server.port).encode()))
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def head_of(start: str, *headers: str, host: str | None = "127.0.0.1:PORT") -> bytes:
    """Return the head of a request."""
    named = [] if host is None else [f"host: {host}"]
    return "\r\n".join([f"{start} HTTP/1.1", *named, *headers, "", ""]).encode("latin-1")


def post(
    body: Any, path: str = PATHS["chat_completions"], headers: tuple[str, ...] = _JSON
) -> bytes:
    """Return the bytes of a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head_of(f"POST {path}", *headers, f"content-length: {len(data)}") + data


def split(answer: bytes) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)
