"""Whether a call is whole, decided once.

A call is cut when its reply did not come to its own end, whatever its arguments look like, or when
its JSON ended in the middle of a value. A cut call never runs.
"""

import re
from collections.abc import Iterable
from string import hexdigits
from typing import Final

from surecall.errors import Code
from surecall.records import Defect, ErrorDetail

__all__ = ["cut_cause", "ended_mid_value", "truncated"]

_LIMIT: Final = "the reply reached its token limit"
_CAUSES: Final = {
    "content_filter": "the provider's content filter stopped the reply",
    "error": "the provider broke the reply off with an error",
    "length": _LIMIT,
    "max_tokens": _LIMIT,
    "model_length": _LIMIT,
}
_HINT: Final = "Nothing was run. Make the call again with less: shorter values, or several calls."

# Possessive: a string that never closes is given up at once.
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_WORDS: Final = ("true", "false", "null")
_HEX_DIGITS: Final = frozenset(hexdigits)
_NUMBER_ENDS: Final = frozenset({"-", ".", "e", "E", "e+", "e-", "E+", "E-"})


def cut_cause(finish_reason: str | None, defects: Iterable[Defect] = ()) -> str | None:
    """Return why no call of a reply can be trusted to be whole, or None."""
    if any(defect.code == Code.UPSTREAM_BAD_EVENT for defect in defects):
        return "a part of the reply was lost on the way"
    return _CAUSES.get(finish_reason.lower()) if finish_reason else None


def truncated(cause: str) -> ErrorDetail:
    """Return the refusal of a cut call, with advice for the model."""
    return ErrorDetail(
        Code.ARGUMENTS_TRUNCATED, f"The arguments are incomplete: {cause}.", hint=_HINT
    )


def ended_mid_value(text: str, position: int) -> bool:
    """Tell whether JSON text, refused at a position, is right up to its end and ends too soon."""
    tail = text[position:]
    if not tail:
        return True
    if tail[0] == '"':
        return _STRING.match(tail) is None
    if tail in _NUMBER_ENDS or any(word.startswith(tail) for word in _WORDS):
        return True
    # An escape such as `\u00e9` at the end, whole or not: the position is near its backslash.
    start, escape, digits = text[max(0, position - 2) :].rpartition("\\u")
    return bool(escape) and len(start) <= 2 and len(digits) <= 4 and set(digits) <= _HEX_DIGITS
