"""What a final text is asked for in plain checks: some text, a word, a number, no call.

What a text means is nowhere guessed: a check either finds what a case declares, or it does not.
"""

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import category, normalize, numeric

_AROUND: Final = " \t\r\n\"'`*_.,!。！“”«»()"
_NUMBER: Final = re.compile(r"[-−]?[.,]?\d++(?:[.,]\d++)*+")
_THOUSANDS: Final = re.compile(r"[-−]?\d{1,3}(?:,\d{3})++(?:\.\d++)?+\Z")
_WORD: Final = re.compile(r"[^\W_]++(?:['’][^\W\d_]++)?+")
_CALL_MARKS: Final = (
    "<tool_call",
    "</tool_call",
    "<function",
    "<invoke",
    "<|tool",
    "<|python_tag|>",
    "[tool_calls]",
    "functools[",
    '"tool_calls"',
    '"arguments"',
    "```tool",
)


def says_nothing(text: str) -> bool:
    """Tell whether a text has no letter, digit or sign that a reader could see."""
    return not any(category(char)[0] in "LNS" for char in text)


def shows_call(text: str) -> bool:
    """Tell whether a text for the user has the marks of a call; naming a tool is none."""
    lowered = text.lower()
    return any(mark in lowered for mark in _CALL_MARKS)


def is_word(text: str, word: str) -> bool:
    """Tell whether a text is one word, whatever case, quotes, emphasis or stop it has."""
    return text.strip(_AROUND).casefold() == word


def list_words(text: str) -> list[str]:
    """Return the words of a text without case."""
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


def list_numbers(text: str) -> list[float]:
    """Return the numbers that are written in digits; without any, those that are one sign.

    A comma before three digits groups thousands, any other is a decimal point.

    Example:
        >>> list_numbers("1,250 of ７"), list_numbers("七"), list_numbers("seven")
        ([1250.0, 7.0], [7.0], [])
    """
    text = normalize("NFKC", text)
    found = [_read_number(match.group()) for match in _NUMBER.finditer(text)]
    return found or [numeric(char) for char in text if numeric(char, None) is not None]


def _read_number(written: str) -> float:
    plain = written.replace("−", "-")
    plain = plain.replace(",", "" if _THOUSANDS.match(plain) else ".")
    if plain.count(".") > 1:
        plain = plain.replace(".", "")
    return float(plain)


def states_number(text: str, number: float) -> bool | None:
    """Tell whether a number is among those of a text; None if the text has none to compare."""
    found = list_numbers(text)
    return any(abs(each - number) <= _MAX_OFF for each in found) if found else None


def states_all(text: str, values: Iterable[str | float]) -> bool | None:
    """Tell whether a text holds every value; None where numbers are asked for and it has none."""
    folded = text.casefold()
    held = [
        each.casefold() in folded if isinstance(each, str) else states_number(text, each)
        for each in values
    ]
    if False in held:
        return False
    return None if None in held else True


_MAX_OFF: Final = 0.005
"""Numbers are the same when they are at two decimals: half a cent."""
