"""Text of strangers in the cells of a table that a spreadsheet may open."""

import unicodedata
from typing import Final

__all__ = ["disarm_text"]

_SIGNS: Final = frozenset("=+-@")
_PASSED_OVER: Final = frozenset("\"'`,;:|\N{REPLACEMENT CHARACTER}\u115f\u1160\u2800\u3164\uffa0")
"""Quotes, separators and letters that are blank: what may be dropped on the way to a formula."""
_PASSED_OVER_KINDS: Final = ("C", "M", "Z", "Pi", "Pf")
"""The same for whole kinds: controls and formats, marks on other characters, blanks, quotes."""


def disarm_text(text: str) -> str:
    """Return a text that no spreadsheet runs: with an apostrophe in front, if need be."""
    # Many readers take a NUL for the end of the text.
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{text}" if _may_be_formula(text) else text


def _may_be_formula(text: str) -> bool:
    """Tell whether a sign that begins a formula is the first thing to be seen, or a tab is."""
    if text.startswith(("\t", "\r")):
        return True
    for char in text:
        if unicodedata.normalize("NFKC", char)[:1] in _SIGNS:
            return True
        kind = unicodedata.category(char)
        if char not in _PASSED_OVER and not kind.startswith(_PASSED_OVER_KINDS):
            return False
    return False
