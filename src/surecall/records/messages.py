"""One message of a conversation."""

from typing import Any, Literal

from msgspec import Struct

from .calls import ToolCall

__all__ = ["Message", "Role"]

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Message(Struct, frozen=True, omit_defaults=True):
    """One message of a conversation, independent of any wire format."""

    role: Role
    content: str | list[dict[str, Any]] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    extra: dict[str, Any] = {}
    """Fields to send along untouched, such as `reasoning_content`."""

    @property
    def text(self) -> str:
        """The text of the message; parts that are not text are left out."""
        if isinstance(self.content, str):
            return self.content
        parts = self.content or []
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
