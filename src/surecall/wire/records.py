"""What passes between a wire format and who uses it: a reply as it came, its pieces, its errors."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.records import Defect, RawCall, Reply, Usage


class RawReply(Struct, frozen=True, kw_only=True):
    """The assistant message of a reply, as the provider wrote it, and what came with it."""

    message: dict[str, Any]
    finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    id: str | None = None
    defects: tuple[Defect, ...] = ()


class StreamDelta(Struct, frozen=True):
    """A piece of a streamed reply that can be shown at once."""

    kind: Literal["text", "reasoning"]
    text: str
    extra: dict[str, Any] = {}
    """What a client has to send back of the thought that ends here, such as its signature."""
    is_refusal: bool = False
    """Whether the text is that of a refusal."""


class Stated(Struct, frozen=True):
    """Why there is no answer, in the words of the endpoint and in the client's own format."""

    error: ProviderError
    """What it stands for."""
    data: bytes
    """The data of the event that says so."""
    body: bytes | None = None
    """The same as the body of an answer that is an error; `None` if the event is a valid reply."""

    @property
    def status(self) -> int | None:
        """The status of such an answer, where the endpoint names one."""
        code = self.error.provider_code or ""
        is_status = len(code) == 3 and code.isascii() and code.isdigit()
        return int(code) if is_status and 400 <= int(code) < 600 else None


class StreamFolder(Protocol):
    """Folds the bytes of a streamed reply into the message a whole reply would carry."""

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing more will come."""
        ...

    @property
    def came_whole(self) -> bool:
        """Whether a plain body came where a stream was asked for."""
        ...

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        ...

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        ...

    def close(self) -> RawReply:
        """Return the reply; raise `ProviderReplyError` when the stream ended before it did."""
        ...


class WireError(Struct, frozen=True):
    """An error as a server of one wire format answers it."""

    status: int
    body: dict[str, Any]


class StreamWriter(Protocol):
    """Writes one reply as the events that a client of the format expects; no I/O.

    The order is `begin`, then any of `text`, `refusal`, `reasoning`, `call` and `pulse`, then `end`
    or `fail`. Each returns the bytes to send, which may be none.
    """

    def begin(self) -> bytes:
        """Open the reply."""
        ...

    def text(self, text: str) -> bytes:
        """Write a piece of the text."""
        ...

    def refusal(self, text: str) -> bytes:
        """Write a piece of a refusal; formats without a place for it write text."""
        ...

    def reasoning(self, text: str, extra: Mapping[str, Any] | None = None) -> bytes:
        """Write a piece of the reasoning; formats without a place for it write nothing.

        Args:
            text: The piece.
            extra: What a client has to send back of the thoughts that end here, in the form of
                `Reply.extra`. What comes with `end` only may be too late for its place.
        """
        ...

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        ...

    def pulse(self) -> bytes:
        """Write an event that says nothing, and that the SDKs of the format hand on."""
        ...

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        ...

    def fail(self, error: SurecallError) -> bytes:
        """Break the reply off with an error, in the way a client of the format notices."""
        ...


class Traits(Struct, frozen=True, kw_only=True):
    """How a format differs from others.

    find_protocol("gemini").traits.model_in_path  # True
    """

    path: str = ""
    """The path of its endpoint; empty where that names the model."""
    call_marks: tuple[bytes, ...] = ()
    """What the body of a request with calls or results has in it."""
    choice_keys: tuple[str, ...] = ("tool_choice", "function_call")
    """Members of a request that choose tools, the one that is written first."""
    count_key: str = "n"
    """The member that says how many replies are asked for."""
    choices_key: str = ""
    """The member of a reply that holds several answers; empty where there is one."""
    declaring_keys: frozenset[str] = frozenset()
    """Members of a tool that declare functions, where one tool may declare several."""
    function_types: frozenset[str] = frozenset({"function"})
    """Types of tools that are functions of the client, where a tool has a type."""
    has_similar_tools: bool = False
    """Whether calls of other tools look like calls of functions, but for their names."""
    has_call_ids: bool = True
    """Whether every call comes with an id."""
    fit_call_id: Callable[[str], str] | None = None
    """Returns an id as the format takes it, if it does not take every one."""
    has_dialects: bool = False
    """Whether many servers speak it, each of which takes other members and turns."""
    has_logprobs: bool = False
    has_typed_models: bool = False
    """Whether a list of models names their types and its own ends."""
    streams_bodies: bool = False
    """Whether each event of a stream is like a whole body."""
    takes_comments: bool = True
    """Whether clients read streams with comments among the events."""
    added_fields: tuple[str, ...] = ()
    """Members that are added to every request, which a provider may refuse."""
    drops_reasoning: bool = False
    """Whether clients leave the model's reasoning out of what they send back."""

    @property
    def model_in_path(self) -> bool:
        """Whether the path of a request names the model, and says whether to stream."""
        return not self.path
