"""Builders of replies as the API sends them."""

import json
from collections.abc import Iterable
from typing import Any

from surecall.wire import RawReply, Responses, StreamDelta

__all__ = [
    "call_item",
    "ended",
    "event",
    "fold",
    "response",
    "text_item",
    "thought_item",
]


def text_item(text: str, item_id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    """Return a message item."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **fields,
    }


def call_item(call_id: str = "c1", arguments: Any = '{"a":1}', **fields: Any) -> dict[str, Any]:
    """Return a function call item."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "look",
        "arguments": arguments,
        "status": "completed",
        **fields,
    }


def thought_item(item_id: str = "rs_1", *summary: str, **fields: Any) -> dict[str, Any]:
    """Return a reasoning item."""
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": item_id, "summary": parts, **fields}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    """Return a response object."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": list(output),
        **fields,
    }


def event(kind: str, **fields: Any) -> bytes:
    """Return one event."""
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def ended(*output: Any, **fields: Any) -> bytes:
    """Return the event that ends a stream with a whole response."""
    return event("response.completed", response=response(*output, **fields))


def fold(data: bytes, sizes: Iterable[int] = (), **options: Any) -> tuple[RawReply, str, str]:
    """Fold a stream cut into pieces, and return the reply, the text and the reasoning shown."""
    folder = Responses().open_stream(**options)
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
