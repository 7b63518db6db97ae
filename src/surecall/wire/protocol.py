"""The seam between records and one wire format.

The client side renders requests and parses replies; the server side parses requests and renders
replies, so that any format can be answered in any other.

A reply is parsed in two steps, so that named transforms can edit the assistant message in
between: `parse_body` (or a stream folder) finds the message, `parse_message` understands it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.records import ModelRequest, Reply, WireRequest

from .errors import parse_error
from .events import EventReader
from .records import RawReply, StreamWriter, WireError
from .rewriting import EventRewriter


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
    stream_fields: Mapping[str, Any]
    """Fields of a body that ask for a stream; none where the path does."""

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
        self,
        headers: Mapping[str, str] | None = None,
        *,
        skip_bad_events: bool = False,
        is_passed: bool = False,
        choices: int = 1,
        is_legacy: bool = False,
    ) -> EventReader:
        """Begin to read one streamed reply."""
        ...

    def open_rewriter(
        self, reader: Any, *, is_other: Callable[[Any, Mapping[str, Any]], bool] = ...
    ) -> EventRewriter[Any]:
        """Begin to write among the events of a reply that a reader of this format reads."""
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
    stream_fields: Mapping[str, Any] = MappingProxyType({"stream": True})

    parse_error = staticmethod(parse_error)

    def render_auth(self, key: str) -> dict[str, str]:
        """Render the header that most providers read a key from."""
        return {"Authorization": f"Bearer {key}"}
