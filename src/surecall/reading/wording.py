"""What a model reads when a call or a value of its reply is refused, or is not certain."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.records import Defect, ErrorDetail, Receipt, ToolCall, clip
from surecall.schema.mismatches import show_json
from surecall.text import encode

_ONE_OBJECT: Final = "Send one JSON object, with keys in double quotes and nothing around it."
_SMALLER: Final = "Send shorter values, or split the work into several calls."
_AGAIN: Final = "Nothing was run. Make the call again with less: shorter values, or several calls."
_MARKERS: Final = re.compile(r"<[^<>\n]{1,80}+>|\[/?+[A-Z_]{2,40}+\]")
_WORD: Final = re.compile(r"\w")
_OUTSIDE: Final = frozenset({"drop_leftover", "return_members"})
_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    float: "a number",
    int: "a number",
    list: "an array",
    str: "text",
    type(None): "null",
}

MISSHAPEN: Final = "The call is not one of a list of tool calls, with its arguments as JSON text."
MARKED: Final = "The arguments are not valid JSON: they begin with a byte order mark."

# Doubts

MAY_GO_ON: Final = "The text ends inside what may have been a longer value or quotation."
DAMAGED: Final = "The call is damaged; a part of it was left out or could mean something else."
BESIDE: Final = "A field next to the arguments has the name of one of them."
HALVES: Final = "A character of the reply is damaged."
MENDED: Final = "The JSON of the call is damaged; it was read by the likeliest of its meanings."
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


# Doubts about a value

BRACES_MISSING: Final = "The braces around the object are missing."
CUED: Final = "Several values fit; the one that is called the answer is taken."
FIRST_IN_ROW: Final = "Several values in a row fit; the first of them is taken."
IN_PROSE: Final = "There is other text around the value."
MISSING_END: Final = "The text ends before the value does, so a part of it may be missing."
NOT_QUITE_JSON: Final = "The JSON is damaged and could also be read in another way."
SEVERAL_GATHERED: Final = "Several values one after the other are taken as one list."
SEVERAL_SEEN: Final = "The text holds several values; the one that fits best is taken."
WORDS_ALONE: Final = "The text is not JSON, and its words are taken as the value."

# Refusals of a value

ENDS_INSIDE: Final = "the text ends inside it"
_ONE_VALUE: Final = "Answer with one JSON value that fits the schema, and nothing around it."

EMPTY_TEXT: Final = ErrorDetail(Code.VALUE_NOT_FOUND, "The text is empty.", _ONE_VALUE)
NO_VALUE: Final = ErrorDetail(
    Code.VALUE_NOT_FOUND, "Nothing in the text is a value that fits the schema.", _ONE_VALUE
)
TOO_MUCH_WORK: Final = ErrorDetail(
    Code.VALUE_AMBIGUOUS, "The text could be read in more ways than can be tried.", _ONE_VALUE
)


def refuse_long_text(size: int, limit: int) -> ErrorDetail:
    """Refuse a text that is too long to be read."""
    message = f"The text has {size:,} characters; the limit is {limit:,}."
    return ErrorDetail(Code.JSON_TOO_LARGE, message, "Answer with the value alone.")


def refuse_cut_value(cause: str) -> ErrorDetail:
    """Refuse a value that is not whole."""
    return ErrorDetail(
        Code.VALUE_TRUNCATED, f"The value is incomplete: {cause}.", "Answer again, with less."
    )


def refuse_doubtful(doubt: str) -> ErrorDetail:
    """Refuse a value that is only likely, where only certain ones are accepted."""
    return ErrorDetail(Code.VALUE_NOT_CERTAIN, f"The value is only likely. {doubt}", _ONE_VALUE)


def refuse_several(values: Sequence[Any]) -> ErrorDetail:
    """Refuse a text that holds several values that fit equally well."""
    shown = " or ".join(show_json(value) for value in values[:4])
    more = f", or {len(values) - 4} others" if len(values) > 4 else ""
    message = f"The text could mean {shown}{more}."
    return ErrorDetail(Code.VALUE_AMBIGUOUS, message, "Answer with the one value that is meant.")


def as_value_error(error: ErrorDetail, code: Code) -> ErrorDetail:
    """Return an error of arguments as one of a value."""
    return replace(error, code=code)


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
HALF_IN_ARGUMENTS: Final = ErrorDetail(
    Code.ARGUMENTS_JSON_PARSE_ERROR,
    "A text in the arguments has half of a character.",
    "Send the whole character.",
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


def doubt_judgement(why: str) -> str:
    """Say why a call in text is only likely."""
    return f"The call is not in the form of a tool call; it was read from text: {why}."


def note_malformed(written: str) -> str:
    """Say what the provider could not read."""
    return f"The provider could not read the call that the model wrote: {clip(written)}"


def note_lost(dropped: Iterable[Receipt]) -> Iterator[Defect]:
    """Note markup for calls that holds something, but nothing that could be read as a call."""
    for receipt in dropped:
        written = str(receipt.before)
        if receipt.rule == "drop_empty_markup" and _WORD.search(_MARKERS.sub("", written)):
            message = f"Markup for a call holds something else: {clip(written)}"
            yield Defect(Code.CALL_ENTRY_DROPPED, message, receipt.place)


def note_leftovers(name: str, receipts: Iterable[Receipt]) -> Iterator[Defect]:
    """Note text that stood beside a call, or behind its end, and belongs to it."""
    for receipt in receipts:
        if receipt.rule in _OUTSIDE:
            message = f"Something stood outside the arguments of {clip(name, 64)!r}: {receipt.why}"
            yield Defect(Code.CALL_ENTRY_DROPPED, message, receipt.place)


def note_unreadable(name: str) -> Defect:
    """Note that a text names a tool and its arguments in a form that cannot be read."""
    tool = clip(name, 64) if name else "a tool"
    message = f"The text seems to call {tool} in a form that cannot be read."
    return Defect(Code.CALL_IN_TEXT_NOT_READ, message, clip(name, 64))


def note_not_offered(name: str, place: str) -> Defect:
    """Note a call of a tool that was not offered."""
    return Defect(Code.TOOL_NOT_ALLOWED, say_not_offered(name), place)


def say_not_offered(name: str) -> str:
    """Say that a tool was not offered."""
    return f"No tool named {clip(name, 64)!r} was offered."


def note_unread(call: ToolCall) -> Defect:
    """Note a call that a text probably makes, and that was not read as one."""
    message = f"The text seems to call {clip(call.name, 64)}; it was not read as a call."
    return Defect(Code.CALL_IN_TEXT_NOT_READ, message, clip(call.name, 64))
