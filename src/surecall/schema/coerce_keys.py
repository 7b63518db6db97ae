"""Names written in another case or style: what they have in common, and which one is meant."""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["MAX_NAME_CHARACTERS", "match_name", "plain_form"]

MAX_NAME_CHARACTERS: Final = 256

_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d"
_SEPARATORS: Final = re.compile(r"[_\-\s]++")
_EDGES: Final = "_- \t\r\n"


def plain_form(text: str) -> str:
    """Return what all spellings of a name share: `dueDays`, `due_days`, `Due-Days`, `due days`.

    A separator counts only between words: `-1` is not `1`, `_id` is not `id`, `1-2` is not `12`.
    """
    text = text.strip().casefold()
    core = text.strip(_EDGES)
    if not core or len(text) > MAX_NAME_CHARACTERS:
        return text
    start = text.index(core)
    parts = _SEPARATORS.split(core)
    joined = parts[0]
    for part in parts[1:]:
        joined += f"_{part}" if joined[-1].isdigit() and part[0].isdigit() else part
    return text[:start] + joined + text[start + len(core) :]


def match_name(name: str, known: Iterable[str], *, quoted: bool = False) -> list[str]:
    """Return the known names that a name may mean: one when it is clear, several when it is not.

    `quoted` forgives quotes around it, as in a key that was quoted twice.
    """
    if len(name) > MAX_NAME_CHARACTERS:
        return []
    bare = name.strip(_QUOTES + " \t\r\n") if quoted else name.strip()
    names = list(known)
    if bare in names:
        return [bare]
    form = plain_form(bare)
    return [item for item in names if plain_form(item) == form] if form else []
