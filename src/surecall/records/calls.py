"""What a model asks for: the call as it arrived, and the call as it was read."""

from typing import Any, Literal

from msgspec import Struct

from .receipts import Receipt
from .results import ErrorDetail

__all__ = ["CallState", "Certainty", "RawCall", "ToolCall"]

CallState = Literal["whole", "cut", "unreadable"]
Certainty = Literal["certain", "likely"]


class RawCall(Struct, frozen=True):
    """A call as a protocol found it: nothing interpreted yet."""

    id: Any
    name: Any
    arguments: Any
    """Text, object, null or anything else that arrived."""
    format: str = "tool_calls"
    """Where it was seen: `tool_calls`, `function_call`, or the name of a text format."""
    extra: dict[str, Any] = {}
    """Fields beside these that the provider may want echoed, such as a signature."""
    receipts: tuple[Receipt, ...] = ()
    """Changes made to find it, such as reading it without its wrapper."""


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call as it was read: ready to be checked and run, or refused with reasons."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    """The arguments to use; `None` when they could not be read."""
    raw: Any = None
    """Exactly what arrived as arguments."""
    state: CallState = "whole"
    receipts: tuple[Receipt, ...] = ()
    errors: tuple[ErrorDetail, ...] = ()
    format: str = "tool_calls"
    extra: dict[str, Any] = {}
    arguments_bytes: int = 0
    """Size of what arrived as arguments."""
    certainty: Certainty = "certain"
    """`likely` when a part of the call may be missing: it runs only on a tool that just reads."""
    doubt: str = ""
    """Why it is only likely: one sentence that a model can read."""
