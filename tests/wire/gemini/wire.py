"""Builders of what Gemini sends."""

import json
from collections.abc import Iterable
from typing import Any

from surecall.base.records import Reply
from surecall.wire import Gemini, RawReply, StreamDelta

__all__ = ["GEMINI", "chunk", "event", "fold", "parse", "stream"]

GEMINI = Gemini()


def chunk(*parts: Any, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one chunk, which is also a whole body."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "modelVersion": "gemini-x",
        "responseId": "r1",
        **fields,
    }


def event(value: Any) -> bytes:
    """Return one event that carries a JSON value."""
    return b"data: " + json.dumps(value).encode() + b"\r\n\r\n"


def stream(*chunks: Any) -> bytes:
    """Return a stream of chunks."""
    return b"".join(event(item) for item in chunks)


def parse(body: Any) -> Reply:
    """Parse a whole body."""
    return GEMINI.parse_message(GEMINI.parse_body(json.dumps(body).encode()))


def fold(data: bytes, sizes: Iterable[int] = (), **options: Any) -> tuple[RawReply, dict[str, str]]:
    """Fold a stream cut into pieces, and return the reply and what was shown."""
    folder = GEMINI.open_stream(**options)
    shown: list[StreamDelta] = []
    start = 0
    for size in sizes:
        shown += folder.feed(data[start : start + size])
        start += size
    shown += folder.feed(data[start:])
    reply = folder.close()
    texts = {"text": "", "reasoning": ""}
    for delta in shown:
        texts[delta.kind] += delta.text
    return reply, texts
