"""Several replies at once, streamed: asked for whole, made usable, and written as events.

Which call belongs to which reply is only certain once all of them are there.
"""

from typing import Final

from surecall.base.json_values import as_fields
from surecall.exchange.request import ClientRequest
from surecall.text import decode, encode

_STREAM_FIELDS: Final = ("stream", "stream_options")


def is_several(request: ClientRequest) -> bool:
    """Tell whether a stream of several replies is asked for, any of which may have calls."""
    return request.stream and request.choices > 1 and request.offers_tools


def ask_whole(request: ClientRequest) -> ClientRequest:
    """Return the same request for a whole reply."""
    body = request.body
    if request.protocol.stream_fields:  # or else the path says so
        fields = request.document.items()
        body = encode({name: item for name, item in fields if name not in _STREAM_FIELDS})
    return ClientRequest.parse(request.protocol, body, model=request.model, stream=False)


def write_several(request: ClientRequest, body: bytes) -> bytes:
    """Return the events of a whole reply in the client's format.

    Args:
        request: What the client asked.
        body: The reply, which came to its end.
    """
    document = as_fields(decode(body, surrogates="replace"))
    return request.protocol.write_events(document, request.document)
