"""What a model reads when a call of its reply is refused, or may be incomplete."""

from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError
from surecall.jsontext import encode
from surecall.limits import MAX_JSON_DEPTH
from surecall.records import Defect, ErrorDetail, Receipt, ToolCall, clip

_ONE_OBJECT: Final = "Send one JSON object, with keys in double quotes and nothing around it."
_SMALLER: Final = "Send shorter values, or split the work into several calls."
_AGAIN: Final = "Nothing was run. Make the call again with less: shorter values, or several calls."
_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    float: "a number",
    int: "a number",
    list: "an array",
    str: "text",
    type(None): "null",
}

PLACEHOLDER: Final = "They are a placeholder for arguments that could not be read."

# Doubts

MAY_GO_ON: Final = "The text ends inside what may have been a longer value or quotation."
NO_ARGUMENTS: Final = "No arguments arrived at all, though the tool has some."


def doubt_end(finish_reason: str) -> str:
    """Doubt a reply that ended for a reason nobody knows."""
    return f"The reply ended for a reason that is not known: {clip(finish_reason, 40)!r}."


def doubt_missing_closer(missing: Receipt) -> str:
    """Doubt arguments something of whose end is missing."""
    if missing.rule == "close_missing_brackets":
        return f"The arguments end before {missing.after!r}, so a part of them may be missing."
    return "Something that closes the arguments is missing, and perhaps a part of them with it."


MALFORMED: Final = "The provider could not read the call; it was read from what the model wrote."

# Refusals

TWO_READINGS: Final = ErrorDetail(
    Code.ARGUMENTS_JSON_PARSE_ERROR,
    "The arguments can be read in more than one way, because a tag of the call is missing or "
    "is inside a value.",
    "Make the call again, with every tag closed.",
)
REPEATED_KEY: Final = ErrorDetail(
    Code.ARGUMENTS_JSON_PARSE_ERROR,
    "A key in the arguments is given more than once, with differing values.",
    "Send each key once.",
)


def refuse_json(message: str) -> ErrorDetail:
    """Refuse arguments that are not one object."""
    return ErrorDetail(Code.ARGUMENTS_JSON_PARSE_ERROR, message, _ONE_OBJECT)


def refuse_bad_json(error: JSONTextError) -> ErrorDetail:
    """Refuse text that is not JSON."""
    message = f"The arguments are not valid JSON: {error.message}"
    hint = _ONE_OBJECT if error.code == Code.INVALID_JSON else error.hint
    return ErrorDetail(Code.ARGUMENTS_JSON_PARSE_ERROR, message, hint)


def refuse_repeated_key(pointer: str) -> ErrorDetail:
    """Refuse an object that gives a key two values."""
    message = f"The arguments give {clip(pointer, 80)!r} more than once, with differing values."
    return ErrorDetail(Code.ARGUMENTS_JSON_PARSE_ERROR, message, "Send each key once.", pointer)


def refuse_kind(value: Any) -> ErrorDetail:
    """Refuse a value that is not an object."""
    kind = _KINDS.get(type(cast("object", value)), "something else")
    shown = f" ({clip(value, 40)!r})" if isinstance(value, str) else ""
    return refuse_json(f"The arguments are {kind}{shown}, not a JSON object.")


def refuse_deep() -> ErrorDetail:
    """Refuse arguments that nest too deeply."""
    message = f"The arguments nest more than {MAX_JSON_DEPTH} objects or arrays in one another."
    return ErrorDetail(Code.ARGUMENTS_TOO_DEEP, message, "Send a flatter object.")


def refuse_large(size: int, max_bytes: int, value: Any) -> ErrorDetail:
    """Refuse arguments of one call that are too large, and name what makes them so."""
    message = f"The arguments are {size:,} bytes; the limit is {max_bytes:,} bytes."
    if isinstance(value, dict) and value:
        fields = cast("dict[str, Any]", value).items()
        sizes = sorted(((len(encode(item)), str(key)) for key, item in fields), reverse=True)
        named = ", ".join(f"{clip(key, 60)} ({size:,} bytes)" for size, key in sizes[:3])
        message += f" Largest fields: {named}."
    return ErrorDetail(Code.ARGUMENTS_TOO_LARGE, message, _SMALLER)


def refuse_total(size: int, limit: int) -> ErrorDetail:
    """Refuse a call that makes all arguments of a reply too large."""
    return ErrorDetail(
        Code.ARGUMENTS_TOO_LARGE,
        f"The calls up to this one have {size:,} bytes of arguments; "
        f"the limit for one reply is {limit:,} bytes.",
        "Make this call again, in a reply with fewer or smaller calls.",
    )


def refuse_cut(cause: str) -> ErrorDetail:
    """Refuse a cut call."""
    return ErrorDetail(
        Code.ARGUMENTS_TRUNCATED, f"The arguments are incomplete: {cause}.", hint=_AGAIN
    )


def refuse_unclear_number(place: str, spellings: list[str]) -> ErrorDetail:
    """Refuse a number for a text field that was spelled in several ways."""
    shown = " or ".join(spellings[:4])
    message = f"{place} must be a string, got a number that was spelled {shown}"
    return ErrorDetail(Code.ARGUMENTS_INVALID, message, "Send the text in quotes.", place)


def refuse_without_rule(rule: str) -> ErrorDetail:
    """Refuse a call that can be used only after a rule that is switched off."""
    return ErrorDetail(
        Code.ARGUMENTS_JSON_PARSE_ERROR,
        f"The arguments can only be used after {rule}, which is switched off.",
        "Send the arguments as one JSON object that fits the tool's schema.",
    )


def doubt_judgement(why: str) -> str:
    """Say why a call in text is only likely."""
    return f"The call is not in the form of a tool call; it was read from text: {why}."


def note_unread(call: ToolCall) -> Defect:
    """Note a call that a text probably makes, and that was not read as one."""
    message = f"The text seems to call {clip(call.name, 64)}; it was not read as a call."
    return Defect(Code.CALL_IN_TEXT_NOT_READ, message, clip(call.name, 64))
