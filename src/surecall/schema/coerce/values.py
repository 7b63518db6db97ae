"""One value or name that does not fit its schema, and the one it clearly stands for."""

import datetime
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final, NamedTuple, cast

import msgspec

from surecall.base.errors import JSONTextError
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.text import MAX_ARGUMENT_STEPS, decode, encode_text, repair_json

BOOLEAN_TEXTS: Final = {"true": True, "false": False}
NULL_TEXTS: Final = ("null", "None")

_NUMBER: Final = lazy_pattern(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_MAX_DIGITS: Final = 400
_MAX_EXPONENT: Final = 18
_FENCE: Final = "```"
_OF_A_PART: Final = frozenset({"close_missing_brackets", "fix_mismatched_closer", "strip_prose"})
"""Rules of texts that may be content, and only a part of it a value."""
_FREE_STEPS: Final = 1_000
_CHARACTERS_PER_STEP: Final = 25

_BOOLEAN_WORDS: Final = {"1": True, "0": False, "yes": True, "no": False, "on": True, "off": False}

_DATE: Final = r"([0-9]{4})([-/.]?)([0-9]{1,2})([-/.]?)([0-9]{1,2})"
_TIME: Final = (
    r"([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]{1,9})?)?(?: ?([Zz]|[+-][0-9]{2}:?[0-9]{2}))?"
)
_MAX_DATE_CHARACTERS: Final = 64

_SCHEMA_WORDS: Final = frozenset(
    {
        "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "description", "enum",
        "examples", "format", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength",
        "minimum", "nullable", "oneOf", "pattern", "properties", "required", "title", "type",
    }
)  # fmt: skip
_TYPE_WORDS: Final = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
)

_MAX_NAME_CHARACTERS: Final = 256

_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d"
_SEPARATORS: Final = lazy_pattern(r"_++|-++| ++")
_EDGES: Final = "_- \t\r\n"


class Change(NamedTuple):
    """A value that stands for another, and the rule that says so."""

    rule: str
    after: Any


class DecodedText(NamedTuple):
    """The object or array that a text holds."""

    value: Any
    repairs: tuple[Receipt, ...]
    """What had to be repaired; a place is a span of the text."""


class Ambiguous(NamedTuple):
    """Values that one value may equally stand for."""

    candidates: tuple[Any, ...]


def change_scalar(value: Any, kind: str, format_name: str | None, *, exact: bool) -> Change | None:
    """Return what a value stands for where one type is asked for.

    `exact` says that nothing but this type, or null, is allowed there.
    """
    match kind:
        case "integer":
            return _integer(value)
        case "number":
            number = number_in(value) if isinstance(value, str) else None
            return None if number is None else Change("parse_number_text", number)
        case "boolean":
            return _boolean(value, exact=exact)
        case "null":
            return Change("parse_null_text", None) if _is_null_text(value) else None
        case "string" if isinstance(value, str):
            return _respell(value, format_name)
        case "string" if exact:
            text = _json_text(value)
            return None if text is None else Change("write_as_text", text)
        case _:
            return None


def match_option(value: Any, options: list[Any]) -> Change | Ambiguous | None:
    """Return the one of the allowed values that a value stands for."""
    texts = [item for item in options if isinstance(item, str)]
    if not isinstance(value, str):
        text = _json_text(value)
        return Change("write_as_text", text) if text is not None and text in texts else None
    found = match_name(value.strip(), texts, quoted=True)
    if len(found) > 1:
        return Ambiguous(tuple(found))
    if found:
        return Change("match_enum", found[0])
    word = value.strip().lower()
    number = number_in(value)
    for item in options:
        if isinstance(item, bool):
            if BOOLEAN_TEXTS.get(word) is item:
                return Change("parse_boolean_text", item)
        elif isinstance(item, int | float):
            if number is not None and number == item:
                return Change("parse_number_text", item)
        elif item is None and _is_null_text(value):
            return Change("parse_null_text", None)
    return None


def number_in(text: str) -> int | float | None:
    """Return the number that a text is, as JSON writes numbers; none that is not finite."""
    text = text.strip()
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        return None
    try:
        return decode(text)
    except JSONTextError:  # too large for a float
        return None


def decode_text(text: str) -> DecodedText | None:
    """Return the object or array that a text holds, or None when it holds none or is not clear.

    Text that is not quite JSON is repaired where that loses nothing; words around it are content
    here, and not dropped.
    """
    start = text.lstrip()[:3]
    if start[:1] not in ("{", "[", '"') and start != _FENCE:
        return None
    # Several texts in the same arguments share what is allowed for all of them.
    allowed = _FREE_STEPS + len(text) // _CHARACTERS_PER_STEP
    found = repair_json(text, max_steps=min(MAX_ARGUMENT_STEPS, allowed))
    value: Any = found.value
    # A text in a text gives text at first.
    if found.state != "whole" or found.rest or value.__class__ not in (dict, list):
        return None
    if any(item.rule in _OF_A_PART for item in found.receipts):
        return None
    return DecodedText(value, found.receipts)


def is_schema_echo(value: Any) -> bool:
    """Tell whether a value describes a value, as its schema does, instead of giving one."""
    if not isinstance(value, dict):
        return False
    members = cast("dict[Any, Any]", value)
    kind = members.get("type")
    words = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    return members.keys() <= _SCHEMA_WORDS and all(
        isinstance(word, str) and word in _TYPE_WORDS for word in words
    )


# Names


def _plain_form(text: str) -> str:
    """Return what all spellings of a name share: `dueDays`, `due_days`, `Due-Days`, `due days`.

    A separator counts only between words: `-1` is not `1`, `_id` is not `id`, `1-2` is not `12`.
    """
    text = text.strip().casefold()
    core = text.strip(_EDGES)
    if not core or len(text) > _MAX_NAME_CHARACTERS:
        return text
    start = text.index(core)
    parts = _SEPARATORS.split(core)
    if not all(parts):  # separators of two kinds side by side are another slip
        return text
    joined = parts[0]
    for part in parts[1:]:
        joined += f"_{part}" if joined[-1].isdigit() and part[0].isdigit() else part
    return text[:start] + joined + text[start + len(core) :]


def match_name(name: str, known: Iterable[str], *, quoted: bool = False) -> list[str]:
    """Return the known names that a name may mean: one when it is clear, several when it is not.

    `quoted` forgives quotes around it, as in a key that was quoted twice.
    """
    if len(name) > _MAX_NAME_CHARACTERS:
        return []
    bare = name.strip(_QUOTES + " \t\r\n") if quoted else name.strip()
    if quoted and len(name) != len(bare) + 2 * name.index(bare):  # on one side only: another slip
        return []
    names = list(known)
    if bare in names:
        return [bare]
    form = _plain_form(bare)
    return [item for item in names if _plain_form(item) == form] if form else []


# Scalars


def _integer(value: Any) -> Change | None:
    if isinstance(value, float):
        return Change("drop_zero_fraction", int(value)) if value.is_integer() else None
    if not isinstance(value, str):
        return None
    if len(value) < _MAX_EXPONENT and value.isascii() and value.isdigit() and value[0] != "0":
        return Change("parse_number_text", int(value))
    if number_in(value) is None:
        return None
    # Not by way of a float, which would round large ones.
    exact = Decimal(value.strip())
    if exact.adjusted() > _MAX_EXPONENT and "e" in value.lower():
        return None
    if exact != exact.to_integral_value():
        return None
    return Change("parse_number_text", int(exact))


def _boolean(value: Any, *, exact: bool) -> Change | None:
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    found = BOOLEAN_TEXTS.get(word)
    if found is None and exact:
        found = _BOOLEAN_WORDS.get(word)
    return None if found is None else Change("parse_boolean_text", found)


def _json_text(value: Any) -> str | None:
    if not isinstance(value, bool | int | float):
        return None
    try:
        return encode_text(value)
    except JSONTextError:  # not finite
        return None


def _is_null_text(value: Any) -> bool:
    return isinstance(value, str) and value in NULL_TEXTS


# Dates and times: year first, 24 hours, nothing guessed and nothing added but `:00` seconds


def _respell(text: str, format_name: str | None) -> Change | None:
    text = text.strip()
    if format_name is None or format_name not in _SPELLINGS or len(text) > _MAX_DATE_CHARACTERS:
        return None
    pattern, kind, spell = _SPELLINGS[format_name]
    found = pattern.fullmatch(text)
    if found is None or (after := spell(found.groups())) is None:
        return None
    try:
        msgspec.convert(after, kind)
    except msgspec.ValidationError:
        return None
    return Change(f"spell_{format_name.replace('-', '_')}", after)


def _date_time(parts: tuple[str | None, ...]) -> str | None:
    date = _date(parts[1:6])
    return None if date is None else f"{date}T{_time(parts[6:])}"


def _date(parts: tuple[str | None, ...]) -> str | None:
    year, before, month, after, day = (part or "" for part in parts)
    if before != after or (not before and len(month) + len(day) != 4):
        return None
    return f"{year}-{month:0>2}-{day:0>2}"


def _time(parts: tuple[str | None, ...]) -> str:
    minutes, seconds, offset = parts
    offset = (offset or "").upper()
    if len(offset) == 5:
        offset = f"{offset[:3]}:{offset[3:]}"
    return f"{minutes}{seconds or ':00'}{offset}"


_SPELLINGS: Final[
    dict[str, tuple[re.Pattern[str], type, Callable[[tuple[str | None, ...]], str | None]]]
] = {
    "date": (lazy_pattern(_DATE), datetime.date, _date),
    "time": (lazy_pattern(_TIME), datetime.time, _time),
    "date-time": (lazy_pattern(f"({_DATE})[Tt ]{_TIME}"), datetime.datetime, _date_time),
}
"""How a format may be written, the type that decides, and how it is spelled."""
