"""Numbers inside words: with units, currencies, separators, fractions, percent, or spelled out."""

import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

from surecall.base.patterns import lazy_pattern
from surecall.schema.coerce.values import number_in

from .words import MAX_MENTIONS, MAX_WORDS_CHARS, Mention, Named, find_options, settle

_MAX_DIGITS: Final = 40

_NUMBER: Final = lazy_pattern(
    r"(?P<sign>(?<![\w.,)])[-+\u2212](?:\s(?=[$\u20ac\u00a3\u00a5]))?)?(?<![\w.,])"
    r"[$\u20ac\u00a3\u00a5]?[ \u00a0]?"
    r"(?P<digits>\d{1,40}(?:[.,'\u2019_\u00a0\u202f ]\d{1,40}){0,20}|\.\d{1,40})"
    r"(?P<exponent>[eE][+-]?\d{1,4})?(?P<fraction>\s?[/\u2044]\s?\d{1,20}(?![\d/]))?"
    r"(?P<vulgar>[\u00bc-\u00be\u2150-\u215e])?"
    r"(?P<suffix>\s?%|k\b|K\b|\s(?:percent|thousand|million|billion|trillion)\b)?"
)
_VULGAR: Final = lazy_pattern(r"(?<![\w.,])[\u00bc-\u00be\u2150-\u215e]")
_SCALES: Final = {
    "k": 10**3, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12
}  # fmt: skip
_PERCENT: Final = frozenset({"%", "percent"})
_NUMBER_WORDS: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty",
)  # fmt: skip
# Letters right behind a number: `5kg`, and neither `3D-printed` nor `3rd`.
_UNIT: Final = lazy_pattern(r"(?!(?:st|nd|rd|th)\b)[^\W\d_]{1,6}(?:/[^\W\d_]{1,3})?(?![\w-])")
_ORDINAL: Final = lazy_pattern(r"(?<![\w.,-])(\d{1,9})(?:st|nd|rd|th)\b")
_POINTS: Final = frozenset(".,'_")
_GROUPS: Final = ",'\u2019_\u00a0\u202f "


class Amount(NamedTuple):
    """A number as a text writes it."""

    value: int | float
    is_percent: bool = False


def find_number(text: str) -> Named | None:
    """Return the number in a text, as an `Amount`; or all, if none stands out."""
    if len(text) > MAX_WORDS_CHARS:
        return None
    mentions = find_numbers(text)
    if not mentions:
        words = [(Amount(value), (word,)) for value, word in enumerate(_NUMBER_WORDS)]
        mentions = find_options(text, words)
    return settle(mentions, text, by_first=False)


def find_numbers(text: str) -> list[Mention]:
    """Return all numbers of a text; nothing when one of them is not clear, such as `1.2.3`."""
    mentions: list[Mention] = []
    at = 0
    while len(mentions) < MAX_MENTIONS:
        found = _NUMBER.search(text, at)
        if found is None:
            break
        at = found.end()
        after = text[at : at + 1]
        if after.isdigit() or (after in _POINTS and text[at + 1 : at + 2].isdigit()):
            return []  # longer than any number
        if after.isalpha() and text[at - 1] not in "kK%" and not _UNIT.match(text, at):
            continue
        if text.endswith("out of ", 0, found.start("digits")):
            continue  # `7 out of 10`
        for start, end, amount in _amounts(found):
            if amount is not None:
                mentions.append(Mention(start, end, amount))
    if mentions:
        return mentions
    for found in _VULGAR.finditer(text):
        amount = Amount(unicodedata.numeric(found.group()))
        mentions.append(Mention(found.start(), found.end(), amount))
    mentions += [
        Mention(found.start(), found.end(), Amount(int(found[1])))
        for found in _ORDINAL.finditer(text)
    ]
    return mentions[:MAX_MENTIONS]


def _amounts(found: re.Match[str]) -> Iterable[tuple[int, int, Amount | None]]:
    digits = found["digits"]
    start, end = found.start("sign" if found["sign"] else "digits"), found.end()
    fraction, vulgar = found["fraction"], found["vulgar"]
    suffix = (found["suffix"] or "").strip().lower()
    sign = -1 if found["sign"] and found["sign"][0] != "+" else 1
    is_percent = suffix in _PERCENT
    if " " in digits and not _is_grouped(digits, " "):
        parts = digits.split(" ")
        if fraction and len(parts) == 2 and all(map(str.isdigit, parts)):
            share = _divide(parts[1], fraction)
            whole = None if share is None else _simplify(sign * (int(parts[0]) + share))
            yield start, end, None if whole is None else Amount(whole, is_percent)
            return
        at = found.start("digits")
        for part in parts:
            value = parse_digits(part)
            yield at, at + len(part), None if value is None else Amount(value)
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
        scaled = Fraction(str(value)) * _SCALES[suffix]
        value = _simplify(scaled)
    yield start, end, None if value is None else Amount(value, is_percent)


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
    if len(plain) > _MAX_DIGITS or not plain.isascii():
        return None
    return number_in(("0" + plain if plain[0] == "." else plain) + exponent)


def _use_point(text: str) -> str | None:
    """Return digits with a decimal point at most; None when the separators are not those of one."""
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
