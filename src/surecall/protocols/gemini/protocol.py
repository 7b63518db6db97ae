"""The Gemini format behind the `WireProtocol` seam."""

from .faults import parse_fault
from .incoming import parse_request
from .outgoing import GeminiStreamWriter, render_fault, render_reply
from .replies import parse_body, parse_message
from .requests import render_auth, render_request
from .streams import GeminiStreamFolder

__all__ = ["Gemini"]


class Gemini:
    """Google's `:generateContent` format; holds no state."""

    name: str = "gemini"
    default_prefix: str = "/v1beta"
    takes_transforms: bool = False

    render_auth = staticmethod(render_auth)
    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    open_stream = GeminiStreamFolder
    parse_fault = staticmethod(parse_fault)

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = GeminiStreamWriter
    render_fault = staticmethod(render_fault)
