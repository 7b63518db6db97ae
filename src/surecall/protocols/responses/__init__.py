"""The OpenAI Responses format, `/responses`."""

from surecall.protocols.base import render_bearer
from surecall.protocols.errors import parse_error

from .replies import parse_body, parse_message
from .requests import render_request
from .server import parse_request
from .streams import ResponsesStreamFolder
from .writer import ResponsesStreamWriter, render_error, render_reply

__all__ = ["Responses"]


class Responses:
    """The OpenAI `/responses` format, used without the server's memory; holds no state."""

    name: str = "responses"
    default_prefix: str = "/v1"
    takes_transforms: bool = False

    render_auth = staticmethod(render_bearer)
    render_request = staticmethod(render_request)
    parse_body = staticmethod(parse_body)
    parse_message = staticmethod(parse_message)
    open_stream = ResponsesStreamFolder
    parse_error = staticmethod(parse_error)

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = ResponsesStreamWriter
    render_error = staticmethod(render_error)
