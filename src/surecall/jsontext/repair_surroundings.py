"""What stands around a value: fences and prose, or more of the value."""

import re
from typing import Final

from surecall.records import Receipt, clip

from .repair_found import Found
from .repair_patterns import FENCE
from .repair_signals import RefusedError
from .repair_walker import Edit

__all__ = ["BRACKET_RULES", "SEPARATOR", "STRAY", "has_fence_before", "surrounding_receipts"]

BRACKET_RULES: Final = frozenset(
    ("add_missing_comma", "drop_extra_comma", "drop_stray_closer", "fix_mismatched_closer")
)
"""With one of these, a bracket too many or too few is not the only thing that is wrong."""

SEPARATOR: Final = re.compile(r"[\s,;`~]*+(?:json[5lc]?\s*+)?+")
"""What may stand between values in a row."""
STRAY: Final = re.compile(r"[\s}\]);,]*+")
"""What may be left over right after a value."""

_MARK: Final = "\ufeff"
_FENCE_CHARACTERS: Final = 80
_FENCE_BEFORE: Final = re.compile(r"(?:`{3,}+|~{3,}+)[ \t]*+[\w.+#\-]*+\s*+\Z")
_KEY_BEFORE: Final = re.compile(r"[\"'”]\s*+[:=,]\s*+\Z")
_MORE_AFTER: Final = re.compile(r"\s*+[}\]]*+\s*+(?:,\s*+(?:[\"'{\[]|[\w$]++\s*+:)|:|[\"'])")
_KEY_AFTER: Final = re.compile(r"[\"'][\w$.\-]++[\"']\s*+:")


def has_fence_before(text: str, start: int, end: int) -> bool:
    """Tell whether a code fence opens right before `end`, and not before `start`."""
    before = text[max(start, end - _FENCE_CHARACTERS) : end]
    return bool(before) and _FENCE_BEFORE.search(before) is not None


def surrounding_receipts(
    text: str, chosen: Found, others: list[Found], lead: list[Edit]
) -> list[Receipt]:
    """Return receipts for what stood around the value; refuse what looks like more of it."""
    if chosen.start == 0 and chosen.end == len(text):
        return []
    if _KEY_BEFORE.search(text[max(0, chosen.start - 40) : chosen.start]):
        raise RefusedError("a key stands before the value", chosen.start)
    _refuse_more(text, chosen, others)
    start = min(one.start for one in (chosen, *others))
    end = max(one.end for one in (chosen, *others))
    receipts: list[Receipt] = []
    end = _drop_stray(text, end, chosen, receipts)
    if chosen.is_fenced:
        opener = _FENCE_BEFORE.search(text[max(0, start - _FENCE_CHARACTERS) : start])
        start -= len(opener[0]) if opener else 0
        closer = FENCE.match(text, end)
        end = closer.end() if closer else end
        inner = clip(text[chosen.start : chosen.end])
        receipts.append(Receipt("strip_code_fence", f"{start}:{end}", clip(text[start:end]), inner))
    first = len(_MARK) if text.startswith(_MARK) else 0
    noted = sum(edit[1] - edit[0] for edit in lead)
    for begin, finish, commented in ((first, start, noted), (end, len(text), 0)):
        prose = text[begin:finish].strip()
        if len(prose) > commented:
            receipts.append(Receipt("strip_prose", f"{begin}:{finish}", clip(prose), ""))
    return receipts


def _drop_stray(text: str, end: int, chosen: Found, receipts: list[Receipt]) -> int:
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
        receipts.append(Receipt(rule, f"{start}:{start + len(shown)}", clip(shown), ""))
    return end + len(found)


def _refuse_more(text: str, chosen: Found, others: list[Found]) -> None:
    """Refuse a value that ended too soon: what follows it looks like the rest of it."""
    ends = [one.start for one in others if one.start >= chosen.end]
    tail = text[chosen.end : min(ends, default=len(text))]
    goes_on = _MORE_AFTER.match(tail) and not (ends and SEPARATOR.fullmatch(tail))
    bare = tail.rstrip()
    is_closed_again = bare.strip("}]); \t\n\r") and bare[-1] in "}]"
    if goes_on or is_closed_again or _KEY_AFTER.search(tail):
        raise RefusedError("the text goes on like JSON after the value has ended", chosen.end)
