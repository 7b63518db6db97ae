"""The request that asks for calls again, after the text of a reply was sent."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from surecall.errors import SurecallError
from surecall.exchange.policy import Route
from surecall.exchange.request import ClientRequest, add_members
from surecall.jsontext import encode
from surecall.protocols import translate_request
from surecall.records import ErrorDetail, Message

_MAX_PROBLEMS: Final = 5
_ASK: Final = (
    "The tool call of your last reply could not be used. {problems}"
    " Send the corrected tool call now. Send every call that the reply was meant to have, and no"
    " other text."
)


def ask_again(
    request: ClientRequest, route: Route, problems: Sequence[ErrorDetail], sent: str
) -> bytes | None:
    """Return a request for the calls alone, or None when the conversation cannot be read.

    Args:
        request: What the client asked.
        route: Where it is sent.
        problems: Why the calls could not be used.
        sent: The text of the reply that the client has already.
    """
    try:
        asked = request.ask()
        said = [f"{item.message} {item.hint or ''}".strip() for item in problems[:_MAX_PROBLEMS]]
        text = _ASK.format(problems=" ".join(said))
        added = [Message(role="assistant", content=sent)] if sent.strip() else []
        messages = (*asked.messages, *added, Message(role="user", content=text))
        changed = replace(asked, messages=messages, model=route.model)
        wire = request.protocol.render_request(changed)
        if route.protocol.name != request.protocol.name:
            wire = translate_request(wire, request.protocol, route.protocol).request
    except SurecallError:
        return None
    return add_members(encode(wire.body), route.request_defaults)
