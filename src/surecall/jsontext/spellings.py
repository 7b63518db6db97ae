"""How a text writes its numbers."""

import re
from typing import Any, Final

from surecall.errors import JSONTextError

from .codec import decode

__all__ = ["number_spellings"]

_MAX_CHARACTERS: Final = 400
_STRING: Final = re.compile(r"\"(?:[^\"\\]++|\\.)*+\"?+|\\.", re.DOTALL)


def number_spellings(text: str) -> dict[tuple[str, float], list[str]]:
    """Return the ways in which JSON text writes each number, by the name of its type and its value.

    Only when no number stands outside its strings are those inside counted: it may be JSON in JSON.
    """
    # Compiling the patterns takes a while, and most programs never need them.
    from .repair_numbers import rewrite_number
    from .repair_patterns import NUMBER

    outside = _STRING.sub('""', text)
    found: dict[tuple[str, float], list[str]] = {}
    for literal in dict.fromkeys(NUMBER.findall(outside) or NUMBER.findall(text)):
        written = rewrite_number(literal, 0) if len(literal) <= _MAX_CHARACTERS else None
        if written is None:
            continue
        try:
            value: Any = decode(written)
        except JSONTextError:  # beyond a float
            continue
        found.setdefault((value.__class__.__name__, value), []).append(literal)
    return found
