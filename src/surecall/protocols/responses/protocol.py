"""The Responses format behind the `WireProtocol` seam."""

from collections.abc import Mapping
from typing import Any, Final

from surecall.errors import ProviderError, SurecallError
from surecall.protocols.base import RawReply, WireFault
from surecall.protocols.faults import parse_fault
from surecall.records import ModelRequest, Reply, WireRequest

from .incoming import parse_request
from .outgoing import render_fault, render_reply
from .replies import parse_body, parse_message
from .requests import render_request
from .streams import ResponsesStreamFolder
from .writer import ResponsesStreamWriter

__all__ = ["Responses"]


class Responses:
    """The OpenAI `/responses` format, used without the server's memory; holds no state."""

    name: Final = "responses"
    default_prefix: Final = "/v1"
    takes_transforms: Final = False

    def render_auth(self, key: str) -> dict[str, str]:
        """Render the headers that carry a key."""
        return {"Authorization": f"Bearer {key}"}

    def render_request(self, request: ModelRequest) -> WireRequest:
        """Render a request."""
        return render_request(request)

    def parse_body(self, body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
        """Find the output in a whole body, or raise `ProviderError`."""
        return parse_body(body, headers)

    def parse_message(self, raw: RawReply) -> Reply:
        """Understand the output; whatever shape it has, nothing is raised."""
        return parse_message(raw)

    def open_stream(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> ResponsesStreamFolder:
        """Begin to fold one streamed reply."""
        return ResponsesStreamFolder(headers, skip_bad_events=skip_bad_events)

    def parse_fault(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Understand an error answer; nothing is raised."""
        return parse_fault(status, headers, body)

    def parse_request(self, request: WireRequest) -> ModelRequest:
        """Understand a request that a client sent, or raise `RequestError`."""
        return parse_request(request)

    def render_reply(self, reply: Reply) -> dict[str, Any]:
        """Render a reply as a server's whole body."""
        return render_reply(reply)

    def open_writer(self, *, model: str, reply_id: str | None = None) -> ResponsesStreamWriter:
        """Begin to write one streamed reply."""
        return ResponsesStreamWriter(model=model, reply_id=reply_id)

    def render_fault(self, error: SurecallError) -> WireFault:
        """Render an error as a server answers it."""
        return render_fault(error)
