"""Several replies at once, streamed: asked for whole, made usable, and written as events.

Which call belongs to which reply is only certain once all of them are there.
"""

from collections.abc import Iterator
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.exchange.request import ClientRequest
from surecall.text import decode, encode
from surecall.wire.events import event_of

_STREAM_FIELDS: Final = ("stream", "stream_options")
_CHOICE_FIELDS: Final = ("index", "message", "finish_reason")
"""What of a reply goes elsewhere in its events; the rest, such as `logprobs`, stays as it is."""


def is_several(request: ClientRequest) -> bool:
    """Tell whether a stream of several replies is asked for, any of which may have calls."""
    return request.stream and request.choices > 1 and request.offers_tools


def ask_whole(request: ClientRequest) -> ClientRequest:
    """Return the same request for a whole reply."""
    body = request.body
    if request.protocol.name != "gemini":  # whose path says so
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
    if request.protocol.name == "gemini":
        return event_of(document)
    return b"".join(_write_chat(document, request)) + b"data: [DONE]\n\n"


def _write_chat(document: dict[str, Any], request: ClientRequest) -> Iterator[bytes]:
    head = {name: item for name, item in document.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for item in as_list(document.get("choices")):
        choice = as_fields(item)
        delta = dict(as_fields(choice.get("message")))
        if calls := as_list(delta.get("tool_calls")):
            numbered = enumerate(map(as_fields, calls))
            delta["tool_calls"] = [{"index": number, **call} for number, call in numbered]
        place = {"index": choice.get("index", 0)}
        rest = {name: item for name, item in choice.items() if name not in _CHOICE_FIELDS}
        begun = {**place, **rest, "delta": delta, "finish_reason": None}
        yield event_of({**head, "choices": [begun]})
        ended: dict[str, Any] = {**place, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield event_of({**head, "choices": [ended]})
    options = as_fields(request.document.get("stream_options"))
    if options.get("include_usage") and "usage" in document:
        yield event_of({**head, "choices": [], "usage": document["usage"]})
