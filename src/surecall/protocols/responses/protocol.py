"""The Responses format behind the `WireProtocol` seam."""

from surecall.protocols.faults import parse_fault
from surecall.protocols.keys import render_bearer

from .incoming import parse_request
from .outgoing import render_fault, render_reply
from .replies import parse_body, parse_message
from .requests import render_request
from .streams import ResponsesStreamFolder
from .writer import ResponsesStreamWriter

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
    parse_fault = staticmethod(parse_fault)

    parse_request = staticmethod(parse_request)
    render_reply = staticmethod(render_reply)
    open_writer = ResponsesStreamWriter
    render_fault = staticmethod(render_fault)
