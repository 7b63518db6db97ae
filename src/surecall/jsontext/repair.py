"""Repair of JSON that a model wrote: lossless, with a receipt for every change, or refused.

Valid JSON is returned as it is. What can be read in one way only is repaired; what could mean
two things is refused, and never guessed at. See `repair_json` for the policy on text that ends
too soon.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from surecall.errors import Code, JSONTextError
from surecall.records import ErrorDetail, Receipt, clip

from .codec import Decoded, decode_doubtful, decode_noting, decode_plain
from .repaired import CutPolicy, NonFinitePolicy, Repaired, repeated_key

if TYPE_CHECKING:
    from .repair_search import Search
    from .repair_signals import Steps

__all__ = ["repair_json", "repair_json_all"]

_MARK: Final = "\ufeff"
_ENDS: Final = {"{": "}", "[": "]"}
_PLAIN_STARTS: Final = frozenset('"-0123456789tfn')
_FENCE_START: Final = re.compile(r"([^{\[`~]*+)(?:`{3,}+|~{3,}+)[ \t]*+[\w.+#\-]*+\s*+(?=[{\[])")
_FENCE_END: Final = re.compile(r"\s*+(`{3,}+|~{3,}+)[^{\[`~]*+\Z")
_CLOSED_STRINGS: Final = re.compile(r'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_REPAIRABLE: Final = frozenset((Code.INVALID_JSON, Code.NON_FINITE_NUMBER))


def repair_json(
    text: str | bytes,
    *,
    cut: CutPolicy = "refuse",
    non_finite: NonFinitePolicy = "refuse",
    max_bytes: int | None = None,
    ended: bool = True,
    nested: Literal["decode", "keep"] = "decode",
    max_steps: int | None = None,
) -> Repaired:
    """Return the JSON value in a text, repaired where that loses nothing; nothing is raised.

    A text that ends inside its value is `cut`. Its value is None, or, with `cut="close"`, what can
    be saved of it, marked by receipts that are not lossless.

    Brackets missing at the end are added, and the value is `whole`, only if `ended` is true and
    at least one closing bracket is there: `{"a": {"b": 1}` is whole, `{"a": "x"` is cut. A closing
    code fence after the value proves as much. The receipt is `close_missing_brackets`, which is not
    lossless: what was written may still have been meant to go on. Who knows that the text may be
    cut (a stream without its end, a token limit) says `ended=False`: then no value is `whole`
    unless its own last bracket or quote is there.

    Args:
        text: What the model wrote; bytes are read as UTF-8.
        cut: What becomes of a value that is cut.
        non_finite: What becomes of NaN and the infinities.
        max_bytes: Longer text is refused unread.
        ended: Whether the text is known to have come to its own end.
        nested: Whether a text that is itself one JSON object or array is decoded, at the top.
        max_steps: How many places may be looked at one by one, if fewer than a text of this
            length may have: each takes up to three microseconds.
    """
    decode = decode_noting
    # Text that begins with a letter, a digit or a quote is less than a brace.
    if max_bytes is None and type(text) is str and text >= "{":
        value = decode_plain(text)
        if value is not None:
            return Repaired(value)
        decode = decode_doubtful
    strict = _read_strictly(text, max_bytes, decode, ended=ended, nested=nested)
    if strict is not None:
        return strict
    text = _as_text(text)
    fenced = _read_fenced(text)
    if fenced is not None:
        return fenced
    search, steps = _search()
    count = steps(text, max_steps)
    found = search(text, cut, non_finite, count, ended=ended, nested=nested).one()
    if found.state == "unreadable" and (start := _open_string_start(text)) > 0:
        # What cannot be read may be the start of a string that the end of the text cut off.
        before = search(text[:start], cut, non_finite, count, ended=False, nested=nested).one()
        return before if before.state == "cut" else found
    return found


def _open_string_start(text: str) -> int:
    """Return where a string in double quotes begins that never ends; -1 for none."""
    match = _CLOSED_STRINGS.match(text)
    end = match.end() if match else 0
    return end if end < len(text) else -1


def repair_json_all(
    text: str | bytes,
    *,
    cut: CutPolicy = "refuse",
    non_finite: NonFinitePolicy = "refuse",
    max_bytes: int | None = None,
    ended: bool = True,
) -> tuple[Repaired, ...]:
    """Return every JSON value in a text, such as one a line, each as `repair_json` would."""
    strict = _read_strictly(text, max_bytes, decode_noting, ended=ended, nested="keep")
    if strict is not None:
        return (strict,)
    text = _as_text(text)
    search, steps = _search()
    return search(text, cut, non_finite, steps(text), ended=ended, nested="keep").every()


@cache
def _search() -> "tuple[type[Search], type[Steps]]":
    # Compiling its patterns takes a while, and most programs never need them.
    from .repair_search import Search
    from .repair_signals import Steps

    return Search, Steps


def _read_strictly(
    text: str | bytes,
    max_bytes: int | None,
    decode: Callable[..., Decoded],
    *,
    ended: bool,
    nested: str,
) -> Repaired | None:
    """Return what became of strict JSON, or None when the text needs repair."""
    if max_bytes is None and isinstance(text, str) and not _may_be_strict(text):
        return None
    try:
        value, repeated = decode(text, max_bytes=max_bytes)
    except JSONTextError as error:
        if error.code in _REPAIRABLE:
            return None
        return Repaired(
            state="unreadable", errors=(ErrorDetail(error.code, error.message, error.hint),)
        )
    if repeated:
        return Repaired(state="unreadable", errors=(repeated_key(repeated[0]),))
    kind: Any = value.__class__
    if (kind is str and nested == "decode") or (not ended and (kind is int or kind is float)):
        return None
    return Repaired(value)


def _read_fenced(text: str) -> Repaired | None:
    """Return the strict JSON in the only code fence of a text, or None."""
    opening = _FENCE_START.match(text)
    if opening is None:
        return None
    start = opening.end()
    end = text.rfind(_ENDS[text[start]]) + 1
    closing = _FENCE_END.match(text, end)
    if closing is None or end <= start:
        return None
    inner = text[start:end]
    value: Any = decode_plain(inner)  # begins with a bracket: it cannot be null
    if value is None:
        try:
            value, repeated = decode_doubtful(inner)
        except JSONTextError:
            return None
        if repeated:
            return Repaired(state="unreadable", errors=(repeated_key(repeated[0]),))
    first, last = opening.end(1), closing.end(1)
    shown = clip(text[first:last])
    fence = Receipt("strip_code_fence", f"{first}:{last}", shown, clip(inner))
    before, after = text[:first].strip(), text[last:].strip()
    receipts = [fence]
    if before:
        receipts.append(Receipt("strip_prose", f"0:{first}", clip(before), ""))
    if after:
        receipts.append(Receipt("strip_prose", f"{last}:{len(text)}", clip(after), ""))
    return Repaired(value, "whole", tuple(receipts))


def _may_be_strict(text: str) -> bool:
    """Tell by the ends of the text whether decoding is worth a try."""
    bare = text.strip(" \t\n\r")
    first = bare[:1]
    end = _ENDS.get(first)
    if end is None:
        return first in _PLAIN_STARTS or first == _MARK
    if bare[-1] != end:
        return False
    second = bare[1]
    return first == "[" or second in '"} \t\n\r'


def _as_text(text: str | bytes) -> str:
    # Decoding as strict JSON came first: bytes that are not UTF-8 were refused by it.
    return text if isinstance(text, str) else text.decode("utf-8")
