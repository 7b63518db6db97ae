"""What a model and an application read about directives."""

from collections.abc import Iterable
from typing import Final

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail, clip

ENVELOPE: Final = (
    "Answer with one JSON object of two members. `assistant_text` is what the user reads. "
    "`directives` is a list of what the application is to do; it is empty when there is nothing to "
    'do. Each directive has a `type` and a `payload`:\n{"assistant_text": "...", "directives": '
    '[{"type": "...", "payload": {}}]}'
)
NO_TYPES: Final = "There are no types of directives here: `directives` is an empty list."

EMPTY: Final = ErrorDetail(Code.EMPTY, "The answer is empty.", "Answer with the JSON object.")
NO_TEXT: Final = ErrorDetail(
    Code.MISSING_ASSISTANT_TEXT,
    "The object has no text in assistant_text.",
    "Write what the user reads there.",
    "/assistant_text",
)
NO_DIRECTIVES: Final = ErrorDetail(
    Code.MISSING_DIRECTIVES,
    "The object has no list in directives.",
    "Write an empty list when there is nothing to do.",
    "/directives",
)
_SAMPLE_CHARS: Final = 200


def describe_types(lines: Iterable[str]) -> str:
    """Tell a model which types of directives there are."""
    return "The types of directives, and no others:\n" + "\n".join(lines)


def refuse_size(size: int, limit: int) -> ErrorDetail:
    """Refuse an envelope that is too long."""
    return ErrorDetail(
        Code.TOO_LARGE, f"The answer has {size} characters; {limit} are allowed.", "Answer shorter."
    )


def refuse_kind(kind: str) -> ErrorDetail:
    """Refuse JSON that is not an object."""
    return ErrorDetail(
        Code.NOT_OBJECT, f"The answer is {kind}, not an object.", "Answer with the JSON object."
    )


def refuse_json(text: str, reason: str) -> ErrorDetail:
    """Refuse a text in which no envelope can be found."""
    sample = clip(text.strip(), _SAMPLE_CHARS)
    return ErrorDetail(
        Code.INVALID_JSON,
        f"The answer cannot be read as one JSON object: {reason} It begins: {sample}",
        "Answer with the JSON object and nothing around it.",
    )


def drop_directive(code: str, place: str, message: str, hint: str | None = None) -> ErrorDetail:
    """Say why a directive is left out."""
    return ErrorDetail(code, message, hint, place)
