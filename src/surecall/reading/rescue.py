"""A generation that the server could not parse, and sent inside its error instead."""

from collections.abc import Iterator
from typing import Any, Final, cast

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import Defect, Reading, Receipt, clip
from surecall.base.redaction import MASK
from surecall.calls import ToolNames
from surecall.text import decode
from surecall.wire import RawReply

_OWN_FIELD: Final = "failed_generation"
_RAW: Final = ("error parsing tool call: raw='", "', err=")
_AT_POSITION: Final = "failed to parse input at pos "
_MAX_DIGITS: Final = 20
_CLIPPED: Final = " characters)"
_STATUSES: Final = frozenset({400, 422, 500})


def find_generation(body: str) -> str | None:
    """Return what the model wrote, out of the body of an error, or `None`.

    Only the forms in which servers are known to send it are looked for, each at the place where
    its server puts it: an error may also quote the request, which is not the model's.
    """
    if MASK in body:
        return None  # a secret was taken out: what is left is not what the model wrote
    try:
        document = decode(body)
    except JSONTextError:
        cut = body.lstrip().startswith("{") or body.endswith(_CLIPPED)
        return None if cut else _in_message(body.strip())
    for part in _parts(document):
        generation = part.get(_OWN_FIELD)
        if isinstance(generation, str) and generation.strip():
            return generation
    for message in _messages(document):
        generation = _in_message(message)
        if generation is not None:
            return generation
    return None


def rescue_reply(status: int | None, body: str | None) -> RawReply | None:
    """Return the generation in an error as the reply it would have been, or `None`."""
    generation = find_generation(body) if body and status in _STATUSES else None
    if generation is None:
        return None
    note = f"The provider answered {status}, with what the model wrote inside its error."
    return RawReply(
        message={"role": "assistant", "content": generation},
        defects=(Defect(Code.REPLY_IN_ERROR_BODY, note),),
    )


def may_be_rescued(reading: Reading, tools: ToolNames) -> bool:
    """Tell whether a reply from an error is nothing but whole calls of offered tools.

    Text beside the calls may be the rest of a value that quotes a call, so it is not trusted.
    """
    if not reading.calls or reading.content.strip():
        return False
    return all(
        call.state == "whole" and call.certainty == "certain" and call.name in tools.names
        for call in reading.calls
    )


def rescue_receipts(raw: RawReply) -> tuple[Receipt, ...]:
    """Return the receipt of a reply that was taken from an error."""
    return tuple(
        Receipt(
            "rescue_from_error_body",
            "body",
            None,
            clip(str(raw.message.get("content"))),
            why=defect.message,
        )
        for defect in raw.defects
        if defect.code == Code.REPLY_IN_ERROR_BODY
    )


def _parts(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of an error body that describe the error."""
    if isinstance(document, dict):
        fields = cast("dict[str, Any]", document)
        if isinstance(fields.get("error"), dict):
            yield fields["error"]
        yield fields


def _messages(document: Any) -> Iterator[str]:
    for part in _parts(document):
        for name in ("message", "error", "detail"):
            if isinstance(part.get(name), str):
                yield part[name].strip()


def _in_message(message: str) -> str | None:
    """Return the generation in an error message that begins as those of known servers do."""
    opener, closer = _RAW
    if _begins(message, opener):
        end = message.rfind(closer)
        return message[len(opener) : end] if end > len(opener) else None
    if not _begins(message, _AT_POSITION):
        return None
    digits, colon, generation = message[len(_AT_POSITION) :].partition(":")
    if not colon or len(digits) > _MAX_DIGITS or not digits.isdecimal():
        return None
    return generation.strip() or None


def _begins(text: str, opener: str) -> bool:
    return text[: len(opener)].lower() == opener.lower()
