"""The OpenAI Responses format, `/responses`."""

from surecall.wire.base import WireFormat

from .replies import parse_body, parse_message
from .requests import render_request
from .server import parse_request
from .streams import ResponsesStreamFolder
from .writer import ResponsesStreamWriter, render_error, render_reply

__all__ = ["Responses"]


class Responses(WireFormat):
    """The OpenAI `/responses` format, used without the server's memory; holds no state."""

    name: str = "responses"
    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    open_stream = ResponsesStreamFolder

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = ResponsesStreamWriter
    render_error = staticmethod(render_error)
