"""A value that was found in a text: its changes applied, and what is around it."""

import re
from operator import itemgetter
from typing import Final, NamedTuple

from .outcome import Edit, RefusedError
from .syntax import FENCE

BRACKET_RULES: Final = frozenset(
    ("add_missing_comma", "drop_extra_comma", "drop_stray_closer", "fix_mismatched_closer")
)
"""With one of these, a bracket too many or too few is not the only thing that is wrong."""

SEPARATOR: Final = re.compile(r"[\s,;`~]*+(?:json[5lc]?\s*+)?+")
"""What may be between values in a row."""
LIKELY_SEPARATOR: Final = re.compile(r"(?:[\s,;}\])]|`{3,}+(?:json[5cl]?+)?+|~{3,}+|//[^\n]*+)*+")
STRAY: Final = re.compile(r"[\s}\]);,]*+")
"""What may be left over right after a value."""

_MARK: Final = "\ufeff"
_FENCE_CHARACTERS: Final = 80
_FENCE_BEFORE: Final = re.compile(r"(?:`{3,}+|~{3,}+)[ \t]*+[\w.+#\-]*+\s*+\Z")
_KEY_BEFORE: Final = re.compile(r"[\"'”]\s*+[:=,]\s*+\Z")
_MORE_AFTER: Final = re.compile(r"\s*+[}\]]*+\s*+(?:,\s*+(?:[\"'{\[]|[\w$]++\s*+:)|:|[\"'])")
_KEY_AFTER: Final = re.compile(r"\"\s*+:|'[\w$.\-]++'\s*+:")


class Found(NamedTuple):
    """One value, or what is left of it."""

    start: int
    end: int
    edits: list[Edit]
    cut: str | None = None
    """Where the text ends, in words, when it ends inside the value."""
    is_fenced: bool = False
    has_evidence: bool = True


_start: Final = itemgetter(0)


def apply_edits(text: str, found: Found) -> str:
    """Return the value as strict JSON."""
    pieces: list[str] = []
    position = found.start
    # Some changes are noted late, such as a comma that turns out to be the last thing.
    for start, end, after, _, _ in sorted(found.edits, key=_start):
        if start >= position:
            pieces += (text[position:start], after)
            position = end
    pieces.append(text[position : found.end])
    return "".join(pieces)


def has_fence_before(text: str, start: int, end: int) -> bool:
    """Tell whether a code fence opens right before `end`, and not before `start`."""
    before = text[max(start, end - _FENCE_CHARACTERS) : end]
    return bool(before) and _FENCE_BEFORE.search(before) is not None


def note_around(text: str, chosen: Found, others: list[Found], lead: list[Edit]) -> list[Edit]:
    """Return as changes what was around the value; refuse what looks like more of it."""
    if chosen.start == 0 and chosen.end == len(text):
        return []
    if _KEY_BEFORE.search(text[max(0, chosen.start - 40) : chosen.start]):
        raise RefusedError("there is a key before the value", chosen.start)
    _refuse_more(text, chosen, others)
    start = min(one.start for one in (chosen, *others))
    end = max(one.end for one in (chosen, *others))
    edits: list[Edit] = []
    end = _drop_stray(text, end, chosen, edits)
    if others and edits and edits[-1][3] == "drop_stray_closer":
        raise RefusedError("brackets are wrong in more than one way", end)
    if chosen.is_fenced:
        opener = _FENCE_BEFORE.search(text[max(0, start - _FENCE_CHARACTERS) : start])
        start -= len(opener[0]) if opener else 0
        closer = FENCE.match(text, end)
        end = closer.end() if closer else end
        edits.append((start, end, text[chosen.start : chosen.end], "strip_code_fence", True))
    first = len(_MARK) if text.startswith(_MARK) else 0
    noted = sum(edit[1] - edit[0] for edit in lead)
    for begin, finish, commented in ((first, start, noted), (end, len(text), 0)):
        prose = text[begin:finish].strip()
        if len(prose) > commented:
            edits.append((begin, finish, "", "strip_prose", True))
    return edits


def _drop_stray(text: str, end: int, chosen: Found, edits: list[Edit]) -> int:
    """Note brackets and commas that are left over; return where they end."""
    stray = STRAY.match(text, end)
    found = stray[0] if stray else ""
    shown = found.strip()
    if shown:
        is_bracket = any(mark in shown for mark in "}])")
        if is_bracket and any(edit[3] in BRACKET_RULES for edit in chosen.edits):
            raise RefusedError("brackets are wrong in more than one way", end)
        start = end + found.index(shown[0])
        rule = "drop_stray_closer" if is_bracket else "drop_extra_comma"
        edits.append((start, start + len(shown), "", rule, True))
    return end + len(found)


def note_likely_around(text: str, taken: list[Found]) -> list[Edit]:
    """Return as changes what is around values and between them."""
    edits: list[Edit] = []
    at = 0
    for start, end in [*((one.start, one.end) for one in taken), (len(text), len(text))]:
        prose = text[at:start].strip(" \t\r\n")
        if prose:
            if not prose.strip("\ufeff\u200b\u2060\u00a0 "):
                rule = "strip_invisible"
            elif "```" in prose or "~~~" in prose:
                rule = "strip_code_fence"
            elif prose.strip("}]);, \t\r\n"):
                rule = "strip_prose"
            else:
                rule = "drop_stray_closer" if prose.strip(",; \t\r\n") else "drop_extra_comma"
            edits.append((at, start, "", rule, True))
        at = end
    return edits


def _refuse_more(text: str, chosen: Found, others: list[Found]) -> None:
    """Refuse a value that ended too soon: what follows it looks like the rest of it."""
    ends = [one.start for one in others if one.start >= chosen.end]
    tail = text[chosen.end : min(ends, default=len(text))]
    goes_on = _MORE_AFTER.match(tail) and not (ends and SEPARATOR.fullmatch(tail))
    bare = tail.rstrip()
    is_closed_again = bare.strip("}]); \t\n\r") and bare[-1] in "}]"
    if goes_on or is_closed_again or _KEY_AFTER.search(tail):
        raise RefusedError("the text continues like JSON after the value has ended", chosen.end)
