"""The seam between records and one wire format.

A reply is parsed in two steps, so that named transforms can edit the assistant message in
between: `parse_body` (or a stream folder) finds the message, `parse_message` understands it.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from surecall.records import Defect, ModelRequest, Reply, Usage, WireRequest

__all__ = ["RawReply", "StreamDelta", "StreamFolder", "WireProtocol"]


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


class StreamFolder(Protocol):
    """Folds the bytes of a streamed reply into the message a whole reply would carry."""

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing more will come."""
        ...

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        ...

    def close(self) -> RawReply:
        """Return the reply; raise `ProviderReplyError` when the stream ended before it did."""
        ...


class WireProtocol(Protocol):
    """One wire format: renders requests onto it and parses replies from it."""

    @property
    def name(self) -> str:
        """The name of the format, as used in settings."""
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
