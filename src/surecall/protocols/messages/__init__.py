"""The Anthropic `/messages` format."""

from .incoming import parse_request
from .outgoing import render_fault, render_reply
from .protocol import Messages
from .replies import parse_body, parse_message
from .requests import DEFAULT_MAX_TOKENS, render_request, render_tool
from .streams import MessagesStreamFolder
from .writer import MessagesStreamWriter

__all__ = [
    "DEFAULT_MAX_TOKENS",
    "Messages",
    "MessagesStreamFolder",
    "MessagesStreamWriter",
    "parse_body",
    "parse_message",
    "parse_request",
    "render_fault",
    "render_reply",
    "render_request",
    "render_tool",
]
