"""The Anthropic `/messages` format."""

from collections.abc import Mapping

from surecall.wire.protocol import WireProtocol
from surecall.wire.records import Traits

from .blocks import wire_id
from .events import MessagesReader
from .replies import keep_found, move_thought, parse_body, parse_message, patch_reply, read_clean
from .requests import HEADERS, PATH, render_request, render_tool
from .server import MessagesConversation, parse_request
from .writer import MessagesRewriter, MessagesStreamWriter, render_error, render_reply

__all__ = ["Messages", "render_tool"]


class Messages(WireProtocol):
    """The Anthropic `/messages` format; holds no state."""

    name: str = "messages"
    fixed_headers: Mapping[str, str] = HEADERS
    traits: Traits = Traits(
        path=PATH,
        call_marks=(b'"tool_use',),
        function_types=frozenset({"custom", "function"}),
        has_similar_tools=True,
        has_typed_models=True,
        fit_call_id=wire_id,
    )
    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    move_thought = staticmethod(move_thought)
    keep_found = staticmethod(keep_found)
    patch_reply = staticmethod(patch_reply)
    read_clean = staticmethod(read_clean)
    open_conversation = MessagesConversation
    open_stream = MessagesReader
    open_rewriter = MessagesRewriter

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = MessagesStreamWriter
    render_error = staticmethod(render_error)
