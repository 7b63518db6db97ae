"""What comes back: bytes from the wire, the parsed reply, and the reading of it."""

from typing import Any

from msgspec import Struct

from .calls import RawCall, ToolCall
from .defects import Defect
from .receipts import Receipt
from .usage import Usage

__all__ = ["Reading", "Reply", "WireReply"]


class WireReply(Struct, frozen=True, kw_only=True):
    """A whole answer as it came off the wire, decompressed."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    elapsed_ms: float = 0.0
    attempts: int = 1


class Reply(Struct, frozen=True, kw_only=True):
    """A parsed reply: structure understood, nothing interpreted."""

    content: str | None = None
    reasoning: str | None = None
    calls: tuple[RawCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    """The model that answered, as the provider names it."""
    id: str | None = None
    defects: tuple[Defect, ...] = ()
    extra: dict[str, Any] = {}
    """Fields of the message that a provider may want echoed."""
    receipts: tuple[Receipt, ...] = ()
    """Changes made to understand the message, outside the calls that it keeps."""


class Reading(Struct, frozen=True, kw_only=True):
    """A reply that has been read: clean calls, and a receipt for every change."""

    calls: tuple[ToolCall, ...] = ()
    content: str = ""
    reasoning: str | None = None
    defects: tuple[Defect, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """Changes outside the calls, such as markers taken out of the content."""
    finish_reason: str | None = None
