"""The seam between records and one wire format.

The client side renders requests and parses replies; the server side parses requests and renders
replies, so that any format can be answered in any other.

A reply is parsed in two steps, so that named transforms can edit the assistant message in
between: `parse_body` (or a stream folder) finds the message, `parse_message` understands it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol

from msgspec import Struct

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.records import Defect, ModelRequest, RawCall, Reply, Usage, WireRequest

from .errors import parse_error


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


class WireProtocol(Protocol):
    """One wire format: renders requests onto it and parses replies from it, and the reverse."""

    name: str
    """The name of the format, as used in settings."""
    default_prefix: str
    """Where the endpoints are when an address has no path, such as `/v1`."""
    fixed_headers: Mapping[str, str]
    """Headers that every request has, besides those with a key."""
    takes_transforms: bool
    """Whether messages, tools and replies have the shape that named transforms edit."""

    def render_auth(self, key: str) -> dict[str, str]:
        """Render the headers that carry a key."""
        ...

    def render_request(self, request: ModelRequest) -> WireRequest:
        """Render a request."""
        ...

    def parse_body(self, body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
        """Find the assistant message in a whole body, or raise `ProviderError`."""
        ...

    def parse_message(self, raw: RawReply) -> Reply:
        """Understand the assistant message; whatever shape it has, nothing is raised."""
        ...

    def open_stream(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> StreamFolder:
        """Begin to fold one streamed reply."""
        ...

    def parse_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Understand an error answer; nothing is raised."""
        ...

    def parse_request(self, request: WireRequest) -> ModelRequest:
        """Understand a request that a client sent, or raise `RequestError`."""
        ...

    def render_reply(
        self, reply: Reply, request: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Render a reply as a server's whole body.

        Args:
            reply: The reply.
            request: The body that the client sent, where the reply repeats some of it.
        """
        ...

    def open_writer(
        self,
        *,
        model: str,
        reply_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> StreamWriter:
        """Begin to write one streamed reply.

        Args:
            model: The model that answers.
            reply_id: The id of the reply.
            request: The body that the client sent, where the reply repeats some of it or depends
                on it; without it, everything that the format has is written.
        """
        ...

    def render_error(self, error: SurecallError) -> WireError:
        """Render an error as a server answers it."""
        ...


class WireFormat:
    """What most wire formats have in common; a format holds no state."""

    default_prefix: str = "/v1"
    fixed_headers: Mapping[str, str] = MappingProxyType({})
    takes_transforms: bool = False

    parse_error = staticmethod(parse_error)

    def render_auth(self, key: str) -> dict[str, str]:
        """Render the header that most providers read a key from."""
        return {"Authorization": f"Bearer {key}"}
