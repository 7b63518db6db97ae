"""The OpenAI Responses format, `/responses`."""

from collections.abc import Mapping
from typing import Any

from surecall.wire.protocol import WireProtocol
from surecall.wire.records import Traits

from .events import ResponsesReader
from .replies import (
    goes_on,
    is_waiting,
    keep_found,
    move_thought,
    parse_body,
    parse_message,
    patch_reply,
    read_clean,
    read_usage,
    says_why,
)
from .requests import PATH, render_request
from .rewriting import ResponsesRewriter
from .server import ResponsesConversation, parse_request
from .tools import as_functions
from .writer import ResponsesStreamWriter, render_error, render_reply

__all__ = ["Responses"]


class Responses(WireProtocol):
    """The OpenAI `/responses` format, used without the server's memory; holds no state."""

    name: str = "responses"
    traits: Traits = Traits(
        path=PATH, call_marks=(b'"function_call',), added_fields=("include", "store")
    )
    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    move_thought = staticmethod(move_thought)
    keep_found = staticmethod(keep_found)
    patch_reply = staticmethod(patch_reply)
    read_clean = staticmethod(read_clean)
    goes_on = staticmethod(goes_on)
    is_waiting = staticmethod(is_waiting)
    read_usage = staticmethod(read_usage)
    says_why = staticmethod(says_why)
    open_conversation = ResponsesConversation
    open_stream = ResponsesReader
    open_rewriter = ResponsesRewriter

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = ResponsesStreamWriter
    render_error = staticmethod(render_error)

    def as_functions(self, document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Put namespaces and custom tools as functions, and leave out what the provider runs."""
        return as_functions(document)
