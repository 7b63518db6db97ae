"""The OpenAI-compatible `/chat/completions` format."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from surecall.wire.protocol import WireProtocol
from surecall.wire.records import Traits

from .bodies import join_parts, move_thought, patch_reply, put_older_call, read_clean, write_events
from .events import ChatReader
from .replies import parse_body, parse_message
from .requests import PATH, render_message, render_request, render_tool
from .server import ChatConversation, parse_history_message, parse_request
from .writer import ChatRewriter, ChatStreamWriter, render_error, render_reply

__all__ = [
    "ChatCompletions",
    "parse_body",
    "parse_history_message",
    "render_message",
    "render_tool",
]


class ChatCompletions(WireProtocol):
    """The OpenAI-compatible `/chat/completions` format; holds no state."""

    name: str = "chat_completions"
    takes_transforms: bool = True
    stream_fields: Mapping[str, Any] = MappingProxyType(
        {"stream": True, "stream_options": {"include_usage": True}}
    )
    traits: Traits = Traits(
        path=PATH,
        call_marks=(b'"tool_call', b'"function_call"'),
        choices_key="choices",
        has_dialects=True,
        has_logprobs=True,
        drops_reasoning=True,
    )

    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    move_thought = staticmethod(move_thought)
    patch_reply = staticmethod(patch_reply)
    read_clean = staticmethod(read_clean)
    put_older_call = staticmethod(put_older_call)
    join_parts = staticmethod(join_parts)
    write_events = staticmethod(write_events)
    open_conversation = ChatConversation
    open_stream = ChatReader
    open_rewriter = ChatRewriter

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = ChatStreamWriter
    render_error = staticmethod(render_error)
