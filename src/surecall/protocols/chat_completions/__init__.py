"""The OpenAI-compatible `/chat/completions` format."""

from .history import parse_history_message
from .protocol import ChatCompletions
from .replies import parse_body, parse_message
from .requests import render_message, render_request, render_tool
from .streams import ChatStreamFolder

__all__ = [
    "ChatCompletions",
    "ChatStreamFolder",
    "parse_body",
    "parse_history_message",
    "parse_message",
    "render_message",
    "render_request",
    "render_tool",
]
