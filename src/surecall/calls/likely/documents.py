"""Documents whose matter is calls: changes, programs, settings, lessons and tables.

They are told by their layout, which is the same in every language, and not by what they say.
"""

import re
from typing import Final

from surecall.base.patterns import lazy_pattern

from . import phrases
from .layout import Layout

_MAX_PARAGRAPH: Final = 600
_CHANGES: Final = lazy_pattern(
    r"^(?:@@ -\d|\+\+\+ |diff --git |<{7} |-(?!-)[^\n]{1,400}+\n\+(?!\+)[ \w]"
    r"|(?:#{1,6}+ ?+|\*\*)\[?+v?+\d{1,4}+\.\d|(?:v|version |release )\d{1,4}+\.\d"
    r"|[*+-] [0-9a-f]{7,40}+ )",
    re.MULTILINE | re.IGNORECASE,
)
_LESSON: Final = lazy_pattern(
    r"^[\W_]{0,6}+(?:exercise|lesson|chapter|quiz|homework|lab|module)\b[ #]{0,3}+\d",
    re.MULTILINE | re.IGNORECASE,
)
_SECTION: Final = lazy_pattern(r"^\[[\w .:/-]{1,60}+\][ \t]*+$", re.MULTILINE)
_MEMBER_LINE: Final = lazy_pattern(r"[ \t]{1,12}+(?:- )?+[\w-]++:[ \t]*+")
_PARENT_LINE: Final = lazy_pattern(r"^[ \t]{0,8}+[\w-]++:[ \t]*+$", re.MULTILINE)
"""In YAML, a key alone on its line, and keys with values under it."""
_TABLE_RULE: Final = lazy_pattern(
    r"^[ \t|+:]{0,8}+[-=]{3,}+[ \t:]{0,8}+[|+]|^[ \t]*+[-=]{3,}+[ \t]{1,20}+[-=]{3,}", re.MULTILINE
)
_CELL: Final = lazy_pattern(r"\S(?: {3,}|[ \t]*+\t[ \t]*+)\Z")
_NEXT_CELL: Final = lazy_pattern(r"[`*]{0,3}+(?:[ \t]*+\|(?!\|)| {2,}+[^\s#/]|[ \t]*+\t[^\s#/])")
_FIRST_CELL: Final = lazy_pattern(
    r"[`*]{0,4}+[\w.\-]{1,80}+[`*]{0,4}+(?:[ \t]*+\|| {2,}+[\[{(\"'])"
)
_PROGRAM: Final = lazy_pattern(
    r"^[ \t]*+(?:(?:async )?+def \w++\(|class \w++[:({]|import \w|from [\w.]++ import\b"
    r"|for \(|for \w++(?:, ?\w++)*+ in\b|with [\w.]++\(|try:|else:|try \{|finally:|except\b"
    r"|(?:if|elif|else if|while|switch|catch)\b[^\n]*+(?<=[:{])$|assert\b|function\b|raise \w"
    r"|(?:const|let|var) \w++ =|return\b[^\n]*+(?<=;)$|public |private |using [\w.]++;"
    r"|[})\]]{1,4}+;|expect\(|package \w|#include |[^\n]*+(?<=[)>] \{)$)",
    re.MULTILINE,
)
"""Lines that only programs have."""


def why_document(layout: Layout, start: int) -> str:
    """Return what kind of document a place is a part of; empty when it is in none."""
    if layout.first(_CHANGES) <= start:
        return "it is in a list of changes"
    if layout.first(_LESSON) <= start:
        return "it is in a lesson"
    return ""


def why_lines(layout: Layout, start: int, end: int) -> str:
    """Return what kind of document the lines around a place are; empty when they are none."""
    prefix, suffix = layout.line_of(start, end)
    if _is_in_table(layout, prefix, suffix, start):
        return "it is in a table"
    above, below = layout.paragraph_of(start, end, _MAX_PARAGRAPH)
    if _MEMBER_LINE.fullmatch(prefix) and _PARENT_LINE.search(above):
        return "it is in settings"
    if any(not phrases.AROUND_CALLS.search(it.group()) for it in _SECTION.finditer(above)):
        return "it is in settings"
    if _PROGRAM.search(f"{above}_{below}"):
        return "it is a part of a program"
    return ""


def _is_in_table(layout: Layout, prefix: str, suffix: str, start: int) -> bool:
    if _CELL.search(prefix) or _NEXT_CELL.match(suffix):
        return True
    if layout.first(_TABLE_RULE) > start:
        return False
    return "|" in prefix or _FIRST_CELL.match(layout.text, start) is not None
