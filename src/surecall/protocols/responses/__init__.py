"""The OpenAI Responses format, `/responses`."""

from .incoming import parse_request
from .outgoing import render_fault, render_reply
from .protocol import Responses
from .replies import parse_body, parse_message
from .requests import render_request, render_tool
from .streams import ResponsesStreamFolder
from .writer import ResponsesStreamWriter

__all__ = [
    "Responses",
    "ResponsesStreamFolder",
    "ResponsesStreamWriter",
    "parse_body",
    "parse_message",
    "parse_request",
    "render_fault",
    "render_reply",
    "render_request",
    "render_tool",
]
