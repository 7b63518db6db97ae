"""A value that was found in a text, its changes applied, and their receipts."""

from operator import itemgetter
from typing import Final, NamedTuple

from surecall.records import CallState, Receipt, clip

from .repair_walker import Edit

__all__ = ["Found", "apply_edits", "edit_receipts"]

_MAX_RECEIPTS_PER_RULE: Final = 20
_MAX_SHOWN: Final = 200


class Found(NamedTuple):
    """One value, or what is left of it."""

    start: int
    end: int
    edits: list[Edit]
    state: CallState = "whole"
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


def edit_receipts(text: str, edits: list[Edit]) -> list[Receipt]:
    """Return a receipt for each change; many of one rule are summed up in the last of them."""
    if len(edits) <= _MAX_RECEIPTS_PER_RULE:
        return [_receipt(text, edit) for edit in edits]
    counts: dict[str, int] = {}
    receipts: list[Receipt] = []
    last: dict[str, int] = {}
    for edit in edits:
        rule = edit[3]
        count = counts[rule] = counts.get(rule, 0) + 1
        if count <= _MAX_RECEIPTS_PER_RULE:
            last[rule] = len(receipts)
            receipts.append(_receipt(text, edit))
    for rule, count in counts.items():
        if count > _MAX_RECEIPTS_PER_RULE:
            one = receipts[last[rule]]
            why = f"and {count - _MAX_RECEIPTS_PER_RULE} more of the same after it"
            receipts[last[rule]] = Receipt(
                one.rule, one.place, one.before, one.after, one.lossless, why
            )
    return receipts


def _receipt(text: str, edit: Edit) -> Receipt:
    start, end, after, rule, lossless = edit
    before = text[start:end]
    if end - start > _MAX_SHOWN or len(after) > _MAX_SHOWN:
        before, after = clip(before), clip(after)
    return Receipt(rule, f"{start}:{end}", before, after, lossless)
