"""Plain checks that suites share: calls as they were made, and the declared final text.

No check guesses what a text means: it finds what a case declares, or it does not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from unicodedata import category, normalize, numeric

from surecall.base.json_values import as_fields
from surecall.base.records import ToolSpec, clip
from surecall.evals.as_made import MadeCall, find_text_calls, list_turns
from surecall.evals.cases import Attempt
from surecall.evals.records import Reason

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
    """Tell whether a text has a number; None if the text has none to compare."""
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


_BY_TYPE: Final[Mapping[str, Any]] = {
    "array": [],
    "boolean": True,
    "integer": 1,
    "null": None,
    "number": 1,
    "object": {},
}


def sample_value(schema: Any) -> Any:
    """Return a value that a simple schema allows."""
    fields = as_fields(schema)
    for key in ("const", "default"):
        if key in fields:
            return fields[key]
    for key in ("enum", "examples"):
        if fields.get(key):
            return fields[key][0]
    kind = fields.get("type")
    if kind in ("integer", "number"):
        return max(1, fields.get("minimum", 1))
    return _BY_TYPE.get(kind, "sample") if isinstance(kind, str) else "sample"


_MAX_SHOWN: int = 80


def list_attempts(attempt: Attempt) -> list[MadeCall]:
    """Return every call of a run: run, refused, left alone or only written down."""
    turns = list_turns(attempt.trace, _specs(attempt))
    return [call for turn in turns for call in (*turn.calls, *turn.unread)]


def check_one_by_one(attempt: Attempt) -> Iterator[Reason]:
    """Yield replies with several calls, where one at a time was ordered."""
    for turn in list_turns(attempt.trace, _specs(attempt)):
        count = len(turn.calls) + len(turn.unread)
        if count > 1:
            yield Reason("SEVERAL_CALLS_AT_ONCE", f"{count} calls in turn {turn.turn}")
            return


def check_written_calls(attempt: Attempt) -> Iterator[Reason]:
    """Yield a call that the last reply only writes down."""
    specs = _specs(attempt)
    is_written = any(
        call.is_text for turn in list_turns(attempt.trace, specs)[-1:] for call in turn.unread
    )
    is_shown = shows_call(attempt.text) or bool(find_text_calls(attempt.text, specs))
    if attempt.error is None and (is_written or is_shown):
        yield Reason("CALL_NOT_MADE", clip(attempt.text, _MAX_SHOWN))


def check_plain_answer(
    attempt: Attempt, wrong: list[Reason] | None = None, *, may_be_empty: bool = False
) -> list[Reason] | None:
    """Return what is wrong with a final text; None when there is none, or nothing was checked.

    Args:
        attempt: What happened.
        wrong: What the case's own checks found wrong; None when it declares none.
        may_be_empty: Whether a run without a final text is fine.
    """
    if attempt.error is not None or attempt.trace is None:
        return None
    text = attempt.text
    if says_nothing(text):
        return wrong if may_be_empty else [Reason("EMPTY_FINAL")]
    if shows_call(text) or find_text_calls(text, _specs(attempt)):
        return [*(wrong or ()), Reason("TEXT_CALL_LEAKED", clip(text, _MAX_SHOWN))]
    return wrong


def _specs(attempt: Attempt) -> list[ToolSpec]:
    return [tool.spec for tool in attempt.prepared.tools]
