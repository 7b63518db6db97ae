"""A conversation with a model: messages, a request, and what comes back, raw and as read."""

from operator import add
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import astuple

from .calls import RawCall, ToolCall, ToolSpec
from .receipts import Defect, Receipt

Role = Literal["system", "developer", "user", "assistant", "tool"]
"""Who says a message."""


class Message(Struct, frozen=True, omit_defaults=True):
    """One message of a conversation, independent of any wire format.

    For example:

        surecall.Message(role='user', content='Hi').content  # 'Hi'
    """

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


class ModelRequest(Struct, frozen=True, kw_only=True):
    """A request to a model, independent of any wire format."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    schema_field: str = "response_format"
    """The field of chat completions that carries the schema of `response_format`."""
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


class Usage(Struct, frozen=True):
    """Token counts of one request, or the sum over several."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    """Input that was put into the cache, where that is counted."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))


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
    malformed: str = ""
    """The text of a call that the provider could not read; never text to show."""
    is_refusal: bool = False
    """Whether the content is a refusal, which some formats keep apart from text."""


class Reading(Struct, frozen=True, kw_only=True):
    """A reply that has been read: clean calls, and a receipt for every change."""

    calls: tuple[ToolCall, ...] = ()
    content: str = ""
    reasoning: str | None = None
    defects: tuple[Defect, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """Changes outside the calls, such as markers taken out of the content."""
    seen: tuple[ToolCall, ...] = ()
    """Calls that the text probably makes, and that were not accepted; it is left as it is."""
    finish_reason: str | None = None
