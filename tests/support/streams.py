"""Builders of streamed replies."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from surecall.wire import ChatCompletions, RawReply, StreamDelta

__all__ = ["DONE", "chunk", "event", "fold", "stream_of"]

DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    """Return one event that carries a JSON value."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: Any = None, **fields: Any) -> bytes:
    """Return the event of one chunk with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return event({"id": "r1", "model": "m", "choices": [choice], **fields})


def stream_of(message: dict[str, Any], finish: str, step: int = 3) -> bytes:
    """Return a message as an honest provider streams it, in pieces of `step` characters."""
    return b"".join((*_chunks(message, step), chunk({}, finish), DONE))


def fold(data: bytes, sizes: Iterable[int] = (), **options: Any) -> tuple[RawReply, str, str]:
    """Fold a stream cut into pieces, and return the reply, the text and the reasoning shown."""
    folder = ChatCompletions().open_stream(**options)
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
    return reply, texts["text"], texts["reasoning"]


def _chunks(message: dict[str, Any], step: int) -> Iterator[bytes]:
    yield chunk({"role": "assistant", "content": message["content"] and ""})
    for key in ("reasoning_content", "content"):
        for piece in _pieces(message.get(key), step):
            yield chunk({key: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield chunk({"tool_calls": [{**call, "index": index, "function": function}]})
        for piece in _pieces(call["function"]["arguments"], step):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def _pieces(text: str | None, step: int) -> list[str]:
    return [text[at : at + step] for at in range(0, len(text or ""), step)] if text else []
