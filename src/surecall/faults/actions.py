"""What a model that makes no mistakes would do next, and who decides it."""

from typing import Any, Protocol

from msgspec import Struct

from surecall.records import ModelRequest

__all__ = ["Action", "CallTools", "Oracle", "PlannedCall", "Say"]


class PlannedCall(Struct, frozen=True):
    """One correct call."""

    name: str
    arguments: dict[str, Any] = {}


class CallTools(Struct, frozen=True):
    """Call these tools, in one reply."""

    calls: tuple[PlannedCall, ...]


class Say(Struct, frozen=True):
    """Answer with this text."""

    text: str


Action = CallTools | Say


class Oracle(Protocol):
    """Knows what would be right in some conversations."""

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return the right next step, or `None` when this conversation is not its business."""
        ...
