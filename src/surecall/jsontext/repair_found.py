"""A value that was found in a text, its changes applied, and their receipts."""

from operator import itemgetter
from typing import Final, NamedTuple

from surecall.records import CallState, Receipt, clip

from .repair_walker import MAX_RECEIPTS_PER_RULE, Edit

__all__ = ["Found", "apply_edits", "edit_receipts"]

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
    if len(edits) <= MAX_RECEIPTS_PER_RULE:
        return [_receipt(text, edit) for edit in edits]
    counts: dict[str, int] = {}
    receipts: list[Receipt] = []
    last: dict[str, int] = {}
    for edit in edits:
        rule = edit[3]
        count = counts[rule] = counts.get(rule, 0) + _changes(edit)
        if count <= MAX_RECEIPTS_PER_RULE:
            last[rule] = len(receipts)
            receipts.append(_receipt(text, edit))
    for rule, count in counts.items():
        if count > MAX_RECEIPTS_PER_RULE:
            one = receipts[last[rule]]
            why = f"and {count - MAX_RECEIPTS_PER_RULE} more of the same after it"
            receipts[last[rule]] = Receipt(
                one.rule, one.place, one.before, one.after, one.lossless, why
            )
    return receipts


def _changes(edit: Edit) -> int:
    """Return how many changes were noted as one: strings in a row begin with a comma."""
    after = edit[2]
    is_row = edit[3] == "replace_quotes" and not after.startswith('"')
    return after.count('"') // 2 if is_row else 1


def _receipt(text: str, edit: Edit) -> Receipt:
    start, end, after, rule, lossless = edit
    before = text[start:end]
    if end - start > _MAX_SHOWN or len(after) > _MAX_SHOWN:
        before, after = clip(before), clip(after)
    return Receipt(rule, f"{start}:{end}", before, after, lossless)
