"""What a repair comes to: a value, a refusal, a text that ends too soon, or too much work."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import CallState, ErrorDetail, Receipt, clip

MAX_ARGUMENT_STEPS: Final = 8_000
"""How many places of the arguments of one call a repair may look at one by one: some 20 ms."""

CutPolicy: TypeAlias = Literal["refuse", "close"]
"""What becomes of a value that the end of the text cut: refused, or closed with loss."""

NonFinitePolicy: TypeAlias = Literal["refuse", "null", "text"]
"""What becomes of NaN and the infinities: an error, null, or their name as text."""

Certainty: TypeAlias = Literal["certain", "likely"]
"""Whether a value is the only reading of its text, or the best of several."""

CutKind: TypeAlias = Literal["entry", "after_entry", "member", "string", "word", "comment"]
"""What was being read when the text ended."""

Edit: TypeAlias = tuple[int, int, str, str, bool]
"""One change: start, end, what is there afterwards, the rule, whether it is lossless."""

MAX_RECEIPTS_PER_RULE: Final = 20
"""Further changes by the same rule are only counted."""

_FREE_STEPS: Final = 10_000
_CHARACTERS_PER_STEP: Final = 8
_MAX_SHOWN: Final = 200


class Changes:
    """What was changed in a text. The receipts are made when somebody asks for them."""

    __slots__ = ("_receipts", "edits", "text", "why")

    def __init__(self, text: str = "", edits: Sequence[Edit] = (), why: str = "") -> None:
        self.text = text
        self.edits = edits
        self.why = why
        """What there is to say of the values besides the one that was taken."""
        self._receipts: tuple[Receipt, ...] | None = None

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """A receipt for each change; many of one rule are summed up in the last of them."""
        if self._receipts is None:
            self._receipts = self._make_receipts() if self.edits else ()
        return self._receipts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changes) and self.receipts == other.receipts

    def __hash__(self) -> int:
        return hash(len(self.edits))

    def __repr__(self) -> str:
        return repr(self.receipts)

    def _make_receipts(self) -> tuple[Receipt, ...]:
        counts: dict[str, int] = {}
        receipts: list[Receipt] = []
        last: dict[str, int] = {}
        for edit in self.edits:
            rule = edit[3]
            count = counts[rule] = counts.get(rule, 0) + _count_changes(edit)
            if count <= MAX_RECEIPTS_PER_RULE:
                last[rule] = len(receipts)
                receipts.append(self._make_receipt(edit))
        for rule, count in counts.items():
            if count > MAX_RECEIPTS_PER_RULE:
                why = f"and {count - MAX_RECEIPTS_PER_RULE} more of the same after it"
                receipts[last[rule]] = replace(receipts[last[rule]], why=why)
        return tuple(receipts)

    def _make_receipt(self, edit: Edit) -> Receipt:
        start, end, after, rule, lossless = edit
        before = self.text[start:end]
        if rule == "strip_prose":
            before = before.strip()
        if len(before) > _MAX_SHOWN or len(after) > _MAX_SHOWN:
            before, after = clip(before), clip(after)
        why = self.why if rule == "extra_values" else ""
        return Receipt(rule, f"{start}:{end}", before, after, lossless, why)


def _count_changes(edit: Edit) -> int:
    """Return how many changes were noted as one: strings in a row begin with a comma."""
    after = edit[2]
    is_row = edit[3] == "replace_quotes" and not after.startswith('"')
    return after.count('"') // 2 if is_row else 1


_NOTHING: Final = Changes()


class Repaired(Struct, frozen=True):
    """What became of one JSON text."""

    value: Any = None
    """The value; None (also) when it was refused, see `state`."""
    state: CallState = "whole"
    """`whole`, `cut` (the text ends inside the value) or `unreadable`."""
    changes: Changes = _NOTHING
    """What was changed; `receipts` shows it."""
    errors: tuple[ErrorDetail, ...] = ()
    rest: tuple[Any, ...] = ()
    """Values besides the one that was taken, in the order of the text."""
    certainty: Certainty = "certain"
    """`likely` when the value is the best of several readings; see `repair_json`'s `guess`."""
    doubt: str = ""
    """Why a likely value is not certain, in one sentence."""
    alternatives: tuple[Any, ...] = ()
    """Other readings of the text, which a likely value beat; at most a handful."""

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """A receipt for each change; many of one rule are summed up in the last of them."""
        return self.changes.receipts


def refuse(error: ErrorDetail, state: CallState = "unreadable") -> Repaired:
    """Return what became of a text of which no value is taken."""
    return Repaired(state=state, errors=(error,))


def explain_repeated_key(pointer: str) -> ErrorDetail:
    """Return the error for a key with two values."""
    shown = pointer if len(pointer) <= 80 else pointer[:80] + "…"
    message = f"{shown!r} is given more than once, with differing values."
    return ErrorDetail(Code.DUPLICATE_KEY, message, "Send each key once.", pointer)


class CutShortError(Exception):
    """The text ended inside a value."""

    def __init__(self, kind: CutKind, start: int, what: str) -> None:
        super().__init__(what)
        self.kind: CutKind = kind
        self.start = start
        """Where the piece begins that has no end."""
        self.what = what


class RefusedError(Exception):
    """The text is not a value, or could be more than one."""

    def __init__(self, reason: str, position: int, code: Code = Code.INVALID_JSON) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.code = code


class Steps:
    """Counts the places in a text that are looked at one by one, and gives up after too many.

    One step takes up to about three microseconds. All that is read of one text shares one count.

    Args:
        text: The text; a longer one may take more steps.
        limit: How many it may take instead, at most.
    """

    __slots__ = ("left",)

    def __init__(self, text: str, limit: int | None = None) -> None:
        allowed = _FREE_STEPS + len(text) // _CHARACTERS_PER_STEP
        self.left = allowed if limit is None else min(limit, allowed)

    def take(self, count: int, position: int) -> None:
        """Count steps.

        Raises:
            RefusedError: there were too many.
        """
        self.left -= count
        if self.left < 0:
            reason = "the text needs more repairs than the limit allows"
            raise RefusedError(reason, position, Code.REPAIR_BUDGET_EXCEEDED)
