"""Repair of JSON that a model wrote: lossless, with a receipt for every change, or refused.

Valid JSON is returned as it is. What can be read in one way only is repaired; what could mean
two things is refused, unless a guess is asked for: that is marked as likely. See `repair_json` for
the policy on text that ends too soon.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.text.codec import decode, decode_doubtful, decode_noting, decode_plain

from .repaired import (
    MAX_ARGUMENT_STEPS,
    Changes,
    CutPolicy,
    NonFinitePolicy,
    Repaired,
    Steps,
)
from .shortcuts import read_fenced, read_strictly, unescape_loosely

if TYPE_CHECKING:
    from .search import Search

__all__ = [
    "MAX_ARGUMENT_STEPS",
    "CutPolicy",
    "NonFinitePolicy",
    "Repaired",
    "number_spellings",
    "repair_json",
]

_CLOSED_STRINGS: Final = re.compile(r'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_STRING: Final = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"?+|\\.", re.DOTALL)
_MAX_NUMBER_CHARACTERS: Final = 400
_ROW: Final = re.compile(r"[}\]](?:[\s,;]|`{3,}+(?:json[5cl]?+)?+|~{3,}+)*+\Z")
_GUESSED: Final = frozenset((Code.INVALID_JSON, Code.DUPLICATE_KEY))
"""Refusals of the certain level after which it is worth guessing; the others are limits."""


def repair_json(
    text: str | bytes,
    *,
    cut: CutPolicy = "refuse",
    non_finite: NonFinitePolicy = "refuse",
    max_bytes: int | None = None,
    ended: bool | None = None,
    nested: Literal["decode", "keep"] = "decode",
    max_steps: int | None = None,
    guess: bool = False,
) -> Repaired:
    """Return the JSON value in a text, repaired where that loses nothing; nothing is raised.

        surecall.repair_json("{'city': 'Rome'}").value  # {'city': 'Rome'}

    A text that ends inside its value is `cut`. Its value is None, or, with `cut="close"`, what can
    be saved of it, marked by receipts that are not lossless.

    A value of which a part would have to be thrown away is `unreadable`; with `cut="close"` what
    can be saved of it is there as well.

    A bracket missing at the end is added, and the value is `whole`, only if at least one closing
    bracket is there: `{"a": {"b": 1}` is whole, `{"a": "x"` is cut. A closing code fence after the
    value proves as much. The receipt is `close_missing_brackets`, which is not lossless, and the
    value is `likely`: the text may have been meant to continue. If you know that it may be cut (a
    stream without its end, a token limit), say `ended=False`: then no value is `whole` unless its
    own last bracket or quote is there.

    Args:
        text: What the model wrote; bytes are read as UTF-8.
        cut: What becomes of a value that is cut.
        non_finite: What becomes of NaN and the infinities.
        max_bytes: Longer text is refused unread.
        ended: Whether the text is known to have come to its own end; None if nobody knows.
        nested: Whether a text that is itself one JSON object or array is decoded, at the top.
        max_steps: How many places may be looked at one by one, if fewer than a text of this
            length may have: each takes up to three microseconds.
        guess: Whether text that could mean several things is read by the likeliest of them: the
            level of acceptance is then likely instead of certain. The value is marked `likely`,
            with a `doubt` and the `alternatives` it beat; several values in a row become a list.
            With `cut="close"`, a last number or word is kept as it is. Text that can be read in
            one way only has the same value as without.
    """
    found = _repair_surely(
        text,
        cut=cut,
        non_finite=non_finite,
        max_bytes=max_bytes,
        ended=ended,
        nested=nested,
        max_steps=max_steps,
    )
    if not guess or (found.state == "whole" and not found.rest):
        return found
    if found.state == "whole" or (found.state == "cut" and cut == "refuse"):
        return _list_values(_as_text(text), found)
    if found.errors[0].code not in _GUESSED:
        return found
    if isinstance(found.value, str):
        return replace(found, certainty="likely", doubt=_find_doubt("close_cut_string"))
    text = _as_text(text)
    inner, rule = unescape_loosely(text)
    # The certain level took its share of the time already.
    steps = Steps(inner, None if max_steps is None else max_steps // 2)
    search = _load_search()(
        inner, cut, non_finite, steps, ended=ended is not False, nested=nested, level="likely"
    )
    likely = search.one()
    if likely.certainty != "likely":
        is_limit = likely.errors[0].code not in _GUESSED
        is_cut = likely.state == "cut" and found.value is None
        return likely if is_limit or is_cut else found
    if rule:
        likely = replace(likely, changes=Changes(text, [(0, len(text), inner, rule, True)]))
    if found.value is not None and found.value != likely.value:
        likely = replace(likely, alternatives=(*likely.alternatives, found.value))
    return likely


def _list_values(text: str, found: Repaired) -> Repaired:
    """Put values in a row into a list: the certain level takes the first of them."""
    extra = next((edit for edit in found.changes.edits if edit[3] == "extra_values"), None)
    if extra is None or extra[4] or not _ROW.search(text, 0, extra[0]):
        return found
    edits = [
        (*edit[:2], "[…]", "values_to_array", True) if edit is extra else edit
        for edit in found.changes.edits
    ]
    return replace(
        found,
        value=[found.value, *found.rest],
        changes=Changes(text, edits),
        rest=(),
        certainty="likely",
        doubt=_find_doubt("values_to_array"),
        alternatives=(found.value,),
    )


def _repair_surely(
    text: str | bytes,
    *,
    cut: CutPolicy,
    non_finite: NonFinitePolicy,
    max_bytes: int | None,
    ended: bool | None,
    nested: Literal["decode", "keep"],
    max_steps: int | None,
) -> Repaired:
    """Return the value of a text that can be read in one way only."""
    read = decode_noting
    # Text that begins with a letter, a digit or a quote is less than a brace.
    if max_bytes is None and type(text) is str and text >= "{":
        value = decode_plain(text)
        if value is not None:
            return Repaired(value)
        read = decode_doubtful
    strict = read_strictly(text, max_bytes, read, ended=ended is not False, nested=nested)
    if strict is not None:
        return strict
    text = _as_text(text)
    fenced = read_fenced(text)
    if fenced is not None:
        return fenced
    search = _load_search()
    steps = Steps(text, max_steps)
    whole = search(text, cut, non_finite, steps, ended=ended is not False, nested=nested)
    found = whole.one()
    if found.state == "unreadable" and (start := _open_string_start(text)) > 0:
        # What cannot be read may be the start of a string that the end of the text cut off.
        before = search(text[:start], cut, non_finite, steps, ended=False, nested=nested).one()
        return before if before.state == "cut" else found
    return whole.grade(found)


def _find_doubt(rule: str) -> str:
    from .certainty import DOUBTS

    return DOUBTS[rule]


def _open_string_start(text: str) -> int:
    """Return where a string in double quotes begins that never ends; -1 for none."""
    match = _CLOSED_STRINGS.match(text)
    end = match.end() if match else 0
    return end if end < len(text) else -1


@cache
def _load_search() -> "type[Search]":
    # Compiling its patterns takes a while, and most programs never need them.
    from .search import Search

    return Search


def _as_text(text: str | bytes) -> str:
    # Decoding as strict JSON came first: bytes that are not UTF-8 were refused by it.
    return text if isinstance(text, str) else text.decode("utf-8")


def number_spellings(text: str) -> dict[tuple[str, float], list[str]]:
    """Return the ways in which JSON text writes each number, by the name of its type and its value.

    Only when no number is outside its strings are those inside counted: it may be JSON in JSON.
    """
    from .literals import rewrite_number
    from .syntax import NUMBER

    outside = _STRING.sub('""', text)
    found: dict[tuple[str, float], list[str]] = {}
    for literal in dict.fromkeys(NUMBER.findall(outside) or NUMBER.findall(text)):
        written = rewrite_number(literal, 0) if len(literal) <= _MAX_NUMBER_CHARACTERS else None
        if written is None:
            continue
        try:
            value: Any = decode(written)
        except JSONTextError:  # beyond a float
            continue
        found.setdefault((value.__class__.__name__, value), []).append(literal)
    return found
