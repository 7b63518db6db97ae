"""Builders of replies as a provider of the format writes them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from surecall.wire import RawReply, StreamDelta
from surecall.wire.messages import Messages

__all__ = ["USAGE", "body", "event", "events", "fold", "message", "stream"]

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 7}


def message(content: Any, stop_reason: str | None = "end_turn", **fields: Any) -> dict[str, Any]:
    """Return a whole message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": USAGE,
        **fields,
    }


def body(content: Any, stop_reason: str | None = "end_turn", **fields: Any) -> bytes:
    """Return a whole message as bytes."""
    return json.dumps(message(content, stop_reason, **fields)).encode()


def event(value: dict[str, Any], name: str | None = None) -> bytes:
    """Return one event, named after its type."""
    text = json.dumps(value)
    return f"event: {name or value.get('type')}\ndata: {text}\n\n".encode()


def events(
    content: list[dict[str, Any]], stop_reason: str | None = "end_turn", step: int = 3
) -> Iterator[dict[str, Any]]:
    """Yield a message as an honest provider streams it, in pieces of `step` characters."""
    start = {**message([], None), "usage": {**USAGE, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(content):
        yield from _block_events(index, block, step)
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def stream(
    content: list[dict[str, Any]], stop_reason: str | None = "end_turn", step: int = 3
) -> bytes:
    """Return a message as the bytes of its stream."""
    return b"".join(event(value) for value in events(content, stop_reason, step))


def fold(data: bytes, sizes: Iterable[int] = (), **options: Any) -> tuple[RawReply, str, str]:
    """Fold a stream cut into pieces, and return the reply, the text and the reasoning shown."""
    folder = Messages().open_stream(**options)
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


def _block_events(index: int, block: dict[str, Any], step: int) -> Iterator[dict[str, Any]]:
    empty: dict[str, Any] = {}
    deltas: list[dict[str, Any]] = []
    if block["type"] == "text":
        empty = {"text": ""}
        deltas = [{"type": "text_delta", "text": item} for item in _pieces(block["text"], step)]
    elif block["type"] == "thinking":
        empty = {"thinking": "", "signature": ""}
        pieces = _pieces(block["thinking"], step)
        deltas = [{"type": "thinking_delta", "thinking": item} for item in pieces]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif "input" in block:
        empty = {"input": {}}
        text = json.dumps(block["input"]) if block["input"] else ""
        pieces = ["", *_pieces(text, step)]
        deltas = [{"type": "input_json_delta", "partial_json": item} for item in pieces]
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _pieces(text: str, step: int) -> list[str]:
    return [text[start : start + step] for start in range(0, len(text), step)]
