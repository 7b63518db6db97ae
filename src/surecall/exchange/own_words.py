"""What an endpoint says in the client's own format when it has no answer: it goes on as it came."""

from typing import Any, Final

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.json_values import as_fields, text_or_none
from surecall.base.records import Usage
from surecall.text import decode
from surecall.wire.gemini.replies import parse_usage as parse_metadata
from surecall.wire.responses.replies import parse_usage

from .policy import Sent
from .request import ClientRequest

_WAITING: Final = frozenset({"queued", "in_progress", "cancelled"})


def own_error(sent: Sent) -> bytes | None:
    """Return the body of an error that clients of the format can read as it is."""
    if sent.status < 400 or sent.body[:1] != b"{":
        return None
    try:
        return sent.body if as_fields(decode(sent.body)).get("error") else None
    except JSONTextError:
        return None


def is_in_background(request: ClientRequest) -> bool:
    """Tell whether a response is asked for that goes on without the client."""
    if request.protocol.name != "responses" or b'"background"' not in request.body:
        return False
    return request.document.get("background") is True


def is_waiting(request: ClientRequest, document: dict[str, Any]) -> bool:
    """Tell whether a reply only names a response in the background, which has no output yet."""
    is_named = text_or_none(document.get("id")) is not None
    return is_named and document.get("status") in _WAITING and is_in_background(request)


def read_usage(document: dict[str, Any]) -> Usage | None:
    """Return the tokens of a response, or of a reply of Gemini, that holds no answer."""
    return parse_usage(document.get("usage")) or parse_metadata(document.get("usageMetadata"))


def says_why(protocol: str, document: dict[str, Any], error: ProviderError) -> bool:
    """Tell whether a reply is one of its format, and says itself why it holds no answer.

    Args:
        protocol: The name of the format.
        document: The reply.
        error: What it stands for.
    """
    if protocol == "gemini":
        return error.code == Code.PROMPT_BLOCKED
    is_named = text_or_none(document.get("id")) is not None
    return protocol == "responses" and is_named and document.get("status") == "failed"
