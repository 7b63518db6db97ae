"""Turns that lie before a trial: what was called, and what was answered."""

from typing import Any

from surecall.jsontext import encode_text
from surecall.records import Envelope, ErrorDetail, Message, ToolCall
from surecall.tools import render_envelope

__all__ = ["earlier_turn"]


def earlier_turn(
    call: ToolCall, *, data: dict[str, Any] | None = None, errors: tuple[ErrorDetail, ...] = ()
) -> tuple[Message, Message]:
    """Return a call and its result as they stand in a history."""
    envelope = Envelope(ok=not errors, tool_name=call.name, data=data or {}, errors=errors)
    text = encode_text(render_envelope(envelope))
    return Message("assistant", "", (call,)), Message("tool", text, tool_call_id=call.id)
