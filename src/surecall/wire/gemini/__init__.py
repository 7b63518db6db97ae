"""Google's `:generateContent` format."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from surecall.wire.protocol import WireProtocol
from surecall.wire.records import Traits

from .bodies import keep_found, move_thought, patch_reply, read_clean, read_usage, says_why
from .events import GeminiReader
from .replies import parse_body, parse_error, parse_message
from .requests import path_of, render_auth, render_request, render_tool, schema_losses
from .server import GeminiConversation, parse_request
from .writer import GeminiRewriter, GeminiStreamWriter, render_error, render_reply

__all__ = ["Gemini", "render_tool", "schema_losses"]


class Gemini(WireProtocol):
    """Google's `:generateContent` format; holds no state."""

    name: str = "gemini"
    default_prefix: str = "/v1beta"
    stream_fields: Mapping[str, Any] = MappingProxyType({})
    traits: Traits = Traits(
        call_marks=(
            b'"functionCall"',
            b'"functionResponse"',
            b'"function_call"',
            b'"function_resp',
        ),
        choice_keys=("toolConfig", "tool_config"),
        count_key="candidateCount",
        choices_key="candidates",
        declaring_keys=frozenset({"functionDeclarations", "function_declarations"}),
        has_call_ids=False,
        streams_bodies=True,
        takes_comments=False,
        drops_reasoning=True,
    )

    render_auth = staticmethod(render_auth)
    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    move_thought = staticmethod(move_thought)
    keep_found = staticmethod(keep_found)
    patch_reply = staticmethod(patch_reply)
    read_clean = staticmethod(read_clean)
    read_usage = staticmethod(read_usage)
    says_why = staticmethod(says_why)
    open_conversation = GeminiConversation
    open_stream = GeminiReader
    open_rewriter = GeminiRewriter
    parse_error = staticmethod(parse_error)

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = GeminiStreamWriter
    render_error = staticmethod(render_error)

    def path_of(self, model: str, *, stream: bool) -> str:
        """Return the path of the endpoint that answers for a model."""
        return path_of(model, stream=stream)
