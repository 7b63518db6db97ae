"""The chat completions format behind the `WireProtocol` seam."""

from collections.abc import Mapping
from typing import Final

from surecall.protocols.base import RawReply
from surecall.records import ModelRequest, Reply, WireRequest

from .replies import parse_body, parse_message
from .requests import render_request
from .streams import ChatStreamFolder

__all__ = ["ChatCompletions"]


class ChatCompletions:
    """The OpenAI-compatible `/chat/completions` format; holds no state."""

    name: Final = "chat_completions"

    def render_request(self, request: ModelRequest) -> WireRequest:
        """Render a request."""
        return render_request(request)

    def parse_body(self, body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
        """Find the assistant message in a whole body, or raise `ProviderError`."""
        return parse_body(body, headers)

    def parse_message(self, raw: RawReply) -> Reply:
        """Understand the assistant message; whatever shape it has, nothing is raised."""
        return parse_message(raw)

    def open_stream(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> ChatStreamFolder:
        """Begin to fold one streamed reply."""
        return ChatStreamFolder(headers, skip_bad_events=skip_bad_events)
