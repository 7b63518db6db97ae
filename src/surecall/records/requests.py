"""One request to a model, before any wire format, and after."""

from typing import Any

from msgspec import Struct

from .messages import Message
from .tools import ToolSpec

__all__ = ["ModelRequest", "WireRequest"]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What is asked of a model, independent of any wire format."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    params: dict[str, Any] = {}
    """Everything else that goes into the body, such as `temperature`."""
    stream: bool = False


class WireRequest(Struct, frozen=True, kw_only=True):
    """A request as it goes onto the wire."""

    path: str
    """Below the provider's prefix, such as `/chat/completions`."""
    body: dict[str, Any]
    headers: dict[str, str] = {}
    stream: bool = False
