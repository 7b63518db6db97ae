"""One message as the items it is on the wire."""

from collections.abc import Container
from hashlib import sha256
from typing import Any, Final

from surecall.protocols.chat_completions import render_message
from surecall.records import Message, ToolCall

from .parts import render_content
from .reasoning import is_sendable, place_reasoning

__all__ = ["render_items"]

_CALL_EXTRA: Final = ("async", "caller", "namespace")
_MAX_ID_CHARS: Final = 64


def render_items(
    message: Message, *, stored: bool = False, offered: Container[str] = ()
) -> list[dict[str, Any]]:
    """Render a message; whatever the model once sent, the items are valid for the wire.

    Args:
        message: The message.
        stored: Whether the server keeps replies, so that reasoning may be named by its id alone.
        offered: Names of the tools of the same request, which calls keep as they are.
    """
    if message.role == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": _wire_id(message.tool_call_id or ""),
                "output": render_content(message.content),
            }
        ]
    if message.role == "assistant":
        return _render_turn(message, stored=stored, offered=offered)
    return [{"role": message.role, "content": render_content(message.content)}]


def _render_turn(
    message: Message, *, stored: bool, offered: Container[str]
) -> list[dict[str, Any]]:
    """Render what the model said: reasoning before what it led to, text, calls."""
    items: list[dict[str, Any]] = []
    calls = message.tool_calls
    leading, before = place_reasoning(message.extra.get("reasoning_items"))
    if calls or message.content:
        items += [item for item in leading if is_sendable(item, stored=stored)]
    if message.content or not calls:
        text: dict[str, Any] = {
            "role": "assistant",
            "content": render_content(message.content, "output_text"),
        }
        if isinstance(message.content, list):
            text = {"type": "message", **text}
        if message.extra.get("phase"):
            text["phase"] = message.extra["phase"]
        items.append(text)
    for call in calls:
        items += [item for item in before.get(call.id, ()) if is_sendable(item, stored=stored)]
        items.append(_render_call(call, offered))
    return items


def _render_call(call: ToolCall, offered: Container[str]) -> dict[str, Any]:
    message = render_message(Message("assistant", None, (call,)), offered)
    function = message["tool_calls"][0]["function"]
    wire: dict[str, Any] = {
        "type": "function_call",
        "call_id": _wire_id(call.id),
        "name": function["name"],
        "arguments": function["arguments"],
    }
    wire |= {key: call.extra[key] for key in _CALL_EXTRA if key in call.extra}
    return wire


def _wire_id(call_id: str) -> str:
    """Return an id that the API takes; the same for the call and its result."""
    if 0 < len(call_id) <= _MAX_ID_CHARS:
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[: _MAX_ID_CHARS - len('call_')]}"
