"""One value or name that does not fit its schema, and the one it clearly stands for.

Numbers that are written for people, with separators, currencies, fractions or units, are read
here as well; what that is worth is said in the table of conversions.
"""

import datetime
import re
import unicodedata
from collections.abc import Callable, Iterable
from decimal import Decimal
from difflib import SequenceMatcher
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from surecall.base.errors import JSONTextError
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.text import MAX_ARGUMENT_STEPS, decode, encode_text, repair_json

from .conversions import (
    DROP_ZERO_FRACTION,
    MATCH_OPTION,
    PARSE_BOOLEAN,
    PARSE_NULL,
    PARSE_NUMBER,
    SPELLINGS,
    WRITE_AS_TEXT,
    Conversion,
)

BOOLEAN_TEXTS: Final = {"true": True, "false": False}
NULL_TEXTS: Final = ("null", "None")

_NUMBER: Final = lazy_pattern(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_MAX_DIGITS: Final = 400
_MAX_EXPONENT: Final = 18
_FENCE: Final = "```"
_AROUND: Final = frozenset({"extra_values", "strip_prose"})
_OF_A_PART: Final = frozenset({"close_missing_brackets", "fix_mismatched_closer", "strip_prose"})
"""Rules of texts that may be content, and only a part of it a value."""
DAMAGED_TEXT: Final = "A text in the value is damaged JSON: a part of it may be lost."
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
_MAX_NEAR: Final = 40
_NEAR: Final = 0.7

_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d"
_SEPARATORS: Final = lazy_pattern(r"_++|-++| ++")
_EDGES: Final = "_- \t\r\n"


class Change(NamedTuple):
    """A value that stands for another, and the conversion that says so."""

    conversion: Conversion
    after: Any


class DecodedText(NamedTuple):
    """The object or array that a text holds."""

    value: Any
    repairs: tuple[Receipt, ...]
    """What had to be repaired; a place is a span of the text."""
    doubt: str = ""
    """Why a part of it may be lost."""


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
            return None if number is None else Change(PARSE_NUMBER, number)
        case "boolean":
            return _boolean(value, exact=exact)
        case "null":
            return Change(PARSE_NULL, None) if _is_null_text(value) else None
        case "string" if isinstance(value, str):
            return _respell(value, format_name)
        case "string" if exact:
            text = _json_text(value)
            return None if text is None else Change(WRITE_AS_TEXT, text)
        case _:
            return None


def match_option(value: Any, options: list[Any]) -> Change | Ambiguous | None:
    """Return the one of the allowed values that a value stands for."""
    texts = [item for item in options if isinstance(item, str)]
    if not isinstance(value, str):
        text = _json_text(value)
        return Change(WRITE_AS_TEXT, text) if text is not None and text in texts else None
    found = match_name(value.strip(), texts, quoted=True)
    if len(found) > 1:
        return Ambiguous(tuple(found))
    if found:
        return Change(MATCH_OPTION, found[0])
    word = value.strip().lower()
    number = number_in(value)
    for item in options:
        if isinstance(item, bool):
            if BOOLEAN_TEXTS.get(word) is item:
                return Change(PARSE_BOOLEAN, item)
        elif isinstance(item, int | float):
            if number is not None and number == item:
                return Change(PARSE_NUMBER, item)
        elif item is None and _is_null_text(value):
            return Change(PARSE_NULL, None)
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


def decode_text(text: str, *, likely: bool = False) -> DecodedText | None:
    """Return the object or array that a text holds, or None when it holds none or is not clear.

    Text that is not quite JSON is repaired where that loses nothing; words around it are content
    here, and not dropped. `likely` also adds brackets that are missing at its end.
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
    refused = _AROUND if likely else _OF_A_PART
    if any(item.rule in refused for item in found.receipts):
        return None
    is_damaged = found.certainty == "likely" or not all(one.lossless for one in found.receipts)
    doubt = found.doubt or DAMAGED_TEXT if is_damaged else ""
    return DecodedText(value, found.receipts, doubt)


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


@lru_cache(maxsize=1024)
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


def is_near(name: str, known: str) -> bool:
    """Tell whether a name may be another that was misspelt, or lost a piece."""
    one, other = _plain_form(name)[:_MAX_NEAR], _plain_form(known)[:_MAX_NEAR]
    if not one or not other:
        return False
    short, long = sorted((one, other), key=len)
    same = next((at for at, sign in enumerate(short) if sign != long[at]), len(short))
    if long.endswith(short[same:]):
        return True
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _NEAR


# Scalars


def _integer(value: Any) -> Change | None:
    if isinstance(value, float):
        return Change(DROP_ZERO_FRACTION, int(value)) if value.is_integer() else None
    if not isinstance(value, str):
        return None
    if len(value) < _MAX_EXPONENT and value.isascii() and value.isdigit() and value[0] != "0":
        return Change(PARSE_NUMBER, int(value))
    if number_in(value) is None:
        return None
    # Not by way of a float, which would round large ones.
    exact = Decimal(value.strip())
    if exact.adjusted() > _MAX_EXPONENT and "e" in value.lower():
        return None
    if exact != exact.to_integral_value():
        return None
    return Change(PARSE_NUMBER, int(exact))


def _boolean(value: Any, *, exact: bool) -> Change | None:
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    found = BOOLEAN_TEXTS.get(word)
    if found is None and exact:
        found = _BOOLEAN_WORDS.get(word)
    return None if found is None else Change(PARSE_BOOLEAN, found)


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
    return Change(SPELLINGS[format_name], after)


def read_named_month(text: str) -> str | None:
    """Return the day that a text is, with the name of its month: `March 31, 2026`, `3 May 2026`."""
    words = " ".join(text.replace(",", " ").replace(".", " ").split())
    if len(words) > _MAX_DATE_CHARACTERS:
        return None
    for form in _NAMED_MONTHS:
        try:
            day = datetime.datetime.strptime(words, form)  # noqa: DTZ007 - a day has no zone
            return day.date().isoformat()
        except ValueError:
            continue
    return None


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


_NAMED_MONTHS: Final = ("%B %d %Y", "%b %d %Y", "%d %B %Y", "%d %b %Y")
_SPELLINGS: Final[
    dict[str, tuple[re.Pattern[str], type, Callable[[tuple[str | None, ...]], str | None]]]
] = {
    "date": (lazy_pattern(_DATE), datetime.date, _date),
    "time": (lazy_pattern(_TIME), datetime.time, _time),
    "date-time": (lazy_pattern(f"({_DATE})[Tt ]{_TIME}"), datetime.datetime, _date_time),
}
"""How a format may be written, the type that decides, and how it is spelled."""


# Numbers as people write them

_MAX_PLAIN_DIGITS: Final = 40
_SCALES: Final = {
    "k": 10**3, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12
}  # fmt: skip
_AMOUNT: Final = lazy_pattern(
    r"(?P<sign>(?<![\w.,)])[-+\u2212](?:\s(?=[$\u20ac\u00a3\u00a5]))?)?(?<![\w.,])"
    r"(?P<money>[$\u20ac\u00a3\u00a5][ \u00a0]?)?"
    r"(?P<digits>\d{1,40}(?:[.,'\u2019_\u00a0\u202f ]\d{1,40}){0,20}|\.\d{1,40})"
    r"(?P<exponent>[eE][+-]?\d{1,4})?(?P<fraction>\s?[/\u2044]\s?\d{1,20}(?![\d/]))?"
    r"(?P<vulgar>[\u00bc-\u00be\u2150-\u215e])?"
    r"(?P<suffix>\s?%|[kK]\b|\s(?:percent|thousand|million|billion|trillion)\b)?"
)
_PERCENT: Final = frozenset({"%", "percent"})
_VULGAR: Final = lazy_pattern(r"(?<![\w.,])[\u00bc-\u00be\u2150-\u215e]")
# Letters right behind a number: `5kg`, and not `3D-printed`.
_UNIT: Final = lazy_pattern(r"[^\W\d_]{1,6}(?:/[^\W\d_]{1,3})?(?![\w-])")
_POINTS: Final = frozenset(".,'_")
_GROUPS: Final = ",'\u2019_\u00a0\u202f "
_MONEY: Final = "$\u20ac\u00a3\u00a5 \u00a0\t"


class Amount(NamedTuple):
    """A number as a text writes it, and where."""

    start: int
    end: int
    value: int | float
    is_percent: bool = False


def find_amounts(text: str, limit: int) -> list[Amount]:
    """Return all numbers of a text; nothing when one of them is not clear, such as `1.2.3`."""
    amounts: list[Amount] = []
    at = 0
    while len(amounts) < limit:
        found = _AMOUNT.search(text, at)
        if found is None:
            break
        at = found.end()
        after = text[at : at + 1]
        if after.isdigit() or (after in _POINTS and text[at + 1 : at + 2].isdigit()):
            return []  # longer than any number
        if after.isalpha() and text[at - 1] not in "kK%" and not _UNIT.match(text, at):
            continue
        amounts += _read_amounts(found)
    if not amounts:
        for found in _VULGAR.finditer(text):
            amounts.append(Amount(*found.span(), unicodedata.numeric(found.group())))
    return amounts[:limit]


def read_amount(text: str) -> tuple[Amount, str] | None:
    """Return the one number that a text is, and the unit that is written with it, if any."""
    text = text.strip()
    if not text or len(text) > _MAX_DATE_CHARACTERS:
        return None
    amounts = find_amounts(text, 2)
    if len(amounts) != 1:
        return None
    before, after = text[: amounts[0].start].strip(_MONEY), text[amounts[0].end :].strip(_MONEY)
    return None if before else (amounts[0], after)


def _read_amounts(found: re.Match[str]) -> Iterable[Amount]:
    digits = found["digits"]
    start, end = found.start(), found.end()
    fraction, vulgar = found["fraction"], found["vulgar"]
    suffix = (found["suffix"] or "").strip().lower()
    sign = -1 if found["sign"] and found["sign"][0] != "+" else 1
    is_percent = suffix in _PERCENT
    if " " in digits and not _is_grouped(digits, " "):
        parts = digits.split(" ")
        if fraction and len(parts) == 2 and all(map(str.isdigit, parts)):
            share = _divide(parts[1], fraction)
            if share is not None:
                yield Amount(start, end, _simplify(sign * (int(parts[0]) + share)), is_percent)
            return
        at = found.start("digits")
        for part in parts:
            value = parse_digits(part)
            if value is not None:
                yield Amount(at, at + len(part), value)
            at += len(part) + 1
        return
    if fraction:
        share = _divide(digits, fraction)
        value = None if share is None else _simplify(sign * share)
    else:
        value = parse_digits(digits, found["exponent"] or "")
        if value is not None:
            value = sign * value
            if vulgar:
                value += sign * unicodedata.numeric(vulgar)
    if value is not None and suffix in _SCALES:
        value = _simplify(Fraction(str(value)) * _SCALES[suffix])
    if value is not None:
        yield Amount(start, end, value, is_percent)


def _divide(digits: str, fraction: str) -> Fraction | None:
    below = int(fraction.strip(" /\u2044\u00a0"))
    return Fraction(int(digits), below) if below and digits.isdigit() else None


def _simplify(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def parse_digits(text: str, exponent: str = "") -> int | float | None:
    """Return the number that digits with separators stand for; None when they are not one.

    A comma before three digits separates thousands, before any other count it is decimal; a point
    is decimal unless there are several.
    """
    if text.startswith("."):
        text = "0" + text
    for sign in _GROUPS:
        if sign in text and sign != ",":
            if not _is_grouped(text, sign):
                return None
            text = text.replace(sign, "")
    point = _use_point(text)
    if point is None:
        return None
    plain = point.lstrip("0") or "0"
    if len(plain) > _MAX_PLAIN_DIGITS or not plain.isascii():
        return None
    return number_in(("0" + plain if plain[0] == "." else plain) + exponent)


def _use_point(text: str) -> str | None:
    """Return digits with a decimal point at most; None when the separators are of no number."""
    commas, points = text.count(","), text.count(".")
    if commas and points:
        last = max(text.rfind(","), text.rfind("."))
        whole, decimals = text[:last], text[last + 1 :]
        other = "." if text[last] == "," else ","
        if text[last] in whole or not _is_grouped(whole, other):
            return None
        text = whole.replace(other, "") + "." + decimals
    elif commas:
        if _is_grouped(text, ","):
            text = text.replace(",", "")
        elif commas == 1:
            text = text.replace(",", ".")
        else:
            return None
    elif points > 1:
        if not _is_grouped(text, "."):
            return None
        text = text.replace(".", "")
    return text


def _is_grouped(text: str, sign: str) -> bool:
    """Tell whether a sign separates groups of three digits."""
    whole = text if sign == "." else text.partition(".")[0]
    if sign != "," and "," in whole:
        whole = whole.partition(",")[0]
    first, *groups = whole.split(sign)
    is_number = first.isdigit() and 0 < len(first) <= 3 and first != "0"
    return is_number and all(len(group) == 3 and group.isdigit() for group in groups)
