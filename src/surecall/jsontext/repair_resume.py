"""Finds where to begin with a text that is strict JSON until it ends: at its last entry."""

import re
from typing import Final, NamedTuple

from surecall.limits import MAX_JSON_DEPTH as MAX_DEPTH

from .codec import is_start_of_json

__all__ = ["Resumption", "find_resumption"]

_ENDS: Final = {"{": "}", "[": "]"}
_ROUNDS: Final = 8
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_NO_BRACKETS: Final = dict.fromkeys(map(ord, " \t\n\r,:+-.0123456789Eaeflnrstu"))


class Resumption(NamedTuple):
    """A place before which everything is strict JSON."""

    position: int
    """Where a comma or an opening bracket stands, or the quote of a value that has no end."""
    stack: list[str]
    """The closers of the brackets that are open there."""


def find_resumption(text: str) -> Resumption | None:
    """Return the last place to begin at in a text that is the start of strict JSON.

    None for any other text, and for one that has no such place but its first character.
    """
    if text[-1] == _ENDS[text[0]] or not is_start_of_json(text):
        return None
    # Every other part stands outside the strings.
    parts = (_ESCAPE.sub("__", text) if "\\" in text else text).split('"')
    last = len(parts) - 1
    end = len(text)
    if last % 2:
        end -= len(parts[last]) + 1
        last -= 1
        if parts[last].rstrip()[-1:] == ":":
            return _resumption(end, "".join(parts[::2]))
    while (found := _last_mark(parts[last])) < 0:
        end -= len(parts[last]) + len(parts[last - 1]) + 2
        last -= 2
    position = end - len(parts[last]) + found
    return _resumption(position, "".join(parts[:last:2]) + parts[last][:found])


def _resumption(position: int, outside: str) -> Resumption | None:
    brackets = outside.translate(_NO_BRACKETS)
    # Pairs go quickly where few are nested; each round passes over all that is left.
    for _ in range(_ROUNDS):
        fewer = brackets.replace("{}", "").replace("[]", "")
        if fewer == brackets:
            break
        brackets = fewer
    opened: list[str] = []
    for mark in brackets:
        if mark in _ENDS:
            opened.append(_ENDS[mark])
        elif len(opened) > MAX_DEPTH - _ROUNDS:
            return None  # it was nested too deep before
        else:
            opened.pop()
    # Nothing is open at the first character.
    return Resumption(position, opened) if opened else None


def _last_mark(part: str) -> int:
    return max(part.rfind(","), part.rfind("{"), part.rfind("["))
