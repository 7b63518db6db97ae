"""The OpenAI-compatible `/chat/completions` format."""

from .history import parse_history_message
from .incoming import parse_request
from .outgoing import ChatStreamWriter, render_fault, render_reply
from .protocol import ChatCompletions
from .replies import parse_body, parse_message
from .requests import render_message, render_request, render_tool
from .streams import ChatStreamFolder

__all__ = [
    "ChatCompletions",
    "ChatStreamFolder",
    "ChatStreamWriter",
    "parse_body",
    "parse_history_message",
    "parse_message",
    "parse_request",
    "render_fault",
    "render_message",
    "render_reply",
    "render_request",
    "render_tool",
]
