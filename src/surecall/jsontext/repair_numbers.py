"""Numbers and words as other languages write them."""

import re
from typing import Final

from surecall.errors import Code

from .repair_signals import RefusedError

__all__ = ["LITERALS", "NON_FINITE_WORDS", "is_text_in_digits", "rewrite_number"]

LITERALS: Final = {
    "true": "true",
    "false": "false",
    "null": "null",
    "none": "null",
    "nil": "null",
    "undefined": "null",
}
"""Words that stand for a JSON literal, in lower case."""

NON_FINITE_WORDS: Final = {
    "nan": "NaN",
    "+nan": "NaN",
    "-nan": "NaN",
    "infinity": "Infinity",
    "+infinity": "Infinity",
    "-infinity": "-Infinity",
    "inf": "Infinity",
    "+inf": "Infinity",
    "-inf": "-Infinity",
}

_MAX_CHARACTERS: Final = 4400
_DIGITS: Final = r"[0-9]++(?:_[0-9]++)*+"
_DECIMAL: Final = re.compile(
    rf"(?P<sign>[+-]?+)(?P<whole>(?:{_DIGITS})?+)(?P<dot>\.?+)(?P<part>(?:{_DIGITS})?+)"
    r"(?P<exponent>(?:[eE][+-]?+[0-9]++)?+)"
)
_BASED: Final = re.compile(
    r"(?P<sign>[+-]?+)0(?:[xX](?P<x16>[0-9a-fA-F]++(?:_[0-9a-fA-F]++)*+)"
    r"|[oO](?P<x8>[0-7]++(?:_[0-7]++)*+)|[bB](?P<x2>[01]++(?:_[01]++)*+))"
)
_TEXT_IN_DIGITS: Final = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[T ][0-9:.]++(?:Z|[+-][0-9:]++)?+)?+"
    r"|[0-9]++(?:\.[0-9]++){2,}+|[0-9]++[a-zA-Z%][\w%\-]*+"
)
_OTHER_NUMBER: Final = re.compile(r"0[xXoObB].*+|[0-9_.]++(?:[eE][+-]?+[0-9]*+|[nNlLfFdDjJ])")


def rewrite_number(literal: str, position: int) -> str | None:
    """Return the number as JSON writes it, or None when the text is no number."""
    if len(literal) > _MAX_CHARACTERS:
        raise RefusedError("a number has too many digits", position, Code.NUMBER_TOO_LONG)
    based = _BASED.fullmatch(literal)
    if based:
        base = based.lastgroup or "x16"
        number = int(based[base], int(base[1:]))
        try:
            return str(-number if based["sign"] == "-" else number)
        except ValueError:
            raise RefusedError(
                "a number has too many digits", position, Code.NUMBER_TOO_LONG
            ) from None
    found = _DECIMAL.fullmatch(literal)
    if found is None or not (found["whole"] or found["part"]):
        return None
    sign = "-" if found["sign"] == "-" else ""
    whole = found["whole"].replace("_", "").lstrip("0") or "0"
    part = f".{found['part'].replace('_', '') or '0'}" if found["dot"] else ""
    return f"{sign}{whole}{part}{found['exponent']}"


def is_text_in_digits(text: str) -> bool:
    """Tell whether bare text that begins with a digit cannot be meant as a number."""
    return _TEXT_IN_DIGITS.fullmatch(text) is not None and not _OTHER_NUMBER.fullmatch(text)
