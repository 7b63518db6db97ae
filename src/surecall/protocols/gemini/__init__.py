"""Google's `:generateContent` format."""

from .outgoing import GeminiStreamWriter
from .protocol import Gemini
from .replies import parse_body, parse_message
from .requests import render_request, render_tool, schema_losses
from .streams import GeminiStreamFolder

__all__ = [
    "Gemini",
    "GeminiStreamFolder",
    "GeminiStreamWriter",
    "parse_body",
    "parse_message",
    "render_request",
    "render_tool",
    "schema_losses",
]
