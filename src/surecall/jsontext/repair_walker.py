"""What every part of the repairer shares: the place in the text, the open brackets, the edits."""

from typing import Final, TypeAlias

from .repair_patterns import GAP, LINE_COMMENT
from .repair_signals import CutShortError, Steps
from .repaired import NonFinitePolicy

__all__ = [
    "CLOSERS",
    "DOUBLED",
    "MAX_RECEIPTS_PER_RULE",
    "OBJECTS",
    "WRITTEN_CLOSERS",
    "Edit",
    "Walker",
]

DOUBLED: Final = "D"
"""An object opened by `{{`."""
OBJECTS: Final = frozenset(("}", DOUBLED))
CLOSERS: Final = {"}": "}", "]": "]", ")": ")", DOUBLED: "}"}
WRITTEN_CLOSERS: Final = {"}": "}", "]": "]", ")": "]", DOUBLED: "}"}

MAX_RECEIPTS_PER_RULE: Final = 20
"""Further changes by the same rule are only counted."""

Edit: TypeAlias = tuple[int, int, str, str, bool]
"""One change: start, end, what stands there afterwards, the rule, whether it is lossless."""


class Walker:
    """Walks over a text and notes what must change."""

    # Defaults of the class: most values need none of them, and an instance is soon made.
    pos = 0
    has_evidence = False
    """Something was read that prose would not hold: quotes, a number, a literal."""
    is_committed = False
    """So much was read that what follows cannot be prose."""
    _is_after = False
    _is_quote_moved = False
    _comma = -1
    _done_at = 0
    _entry = 0
    _tail = -1

    def __init__(
        self, text: str, non_finite: NonFinitePolicy, steps: Steps, *, is_fenced: bool = False
    ) -> None:
        self.text = text
        self.steps = steps
        self.non_finite: NonFinitePolicy = non_finite
        self.is_fenced = is_fenced
        self.edits: list[Edit] = []
        self.stack: list[str] = []
        """The brackets that are open, by their closers."""
        self._groups: list[tuple[int, bool]] = []

    def skip_gap(self, start: int) -> int:
        """Pass over blanks and comments; return where something else begins, or the end."""
        self.pos = start
        try:
            return self._gap()
        except CutShortError as cut:
            return len(self.text) if cut.kind != "comment" else start

    @property
    def ended_with_closer(self) -> bool:
        """Whether the last thing read is a closing bracket."""
        return self._done_at > 0 and self.text[self._done_at - 1] in "}])"

    @property
    def written_closers(self) -> str:
        """The closers of all brackets that are open."""
        return "".join([WRITTEN_CLOSERS[closer] for closer in reversed(self.stack)])

    def note(self, start: int, end: int, after: str, rule: str, *, lossless: bool = True) -> None:
        """Note a change."""
        self.edits.append((start, end, after, rule, lossless))

    def drop_entry(self) -> None:
        """Leave out the entry that has no end, and the comma before it."""
        start = self._entry if self._comma < 0 else self._comma
        self.edits = [edit for edit in self.edits if edit[0] < start]
        self.note(start, len(self.text), "", "drop_cut_member", lossless=False)

    def drop_comma(self) -> None:
        """Leave out a comma that nothing follows."""
        if self._comma >= 0:
            while self.edits and self.edits[-1][0] == self._comma:
                self.edits.pop()
            self.note(self._comma, self._comma + 1, "", "drop_trailing_comma")
            self._comma = -1

    def _done(self, end: int) -> None:
        """Note that an entry ends here."""
        self.pos = self._done_at = end
        self._is_after = True
        self._comma = -1

    def _go_on(self, end: int) -> None:
        """Note that an entry ends here, and pass over the comma if it follows at once."""
        self._done_at = end
        if self.text.startswith(",", end):
            self._comma = end
            self._is_after = False
            self.pos = end + 1
        else:
            self._comma = -1
            self._is_after = True
            self.pos = end

    def _gap(self) -> int:
        """Pass over blanks and comments; raise when the text ends there."""
        text = self.text
        pos = self.pos
        while True:
            match = GAP.match(text, pos)
            assert match is not None
            if match.lastindex is None:
                break
            pos = match.start(1)
            end = self._odd_end(pos)
            if end == pos:
                self.pos = pos
                return pos
            pos = end
        self.pos = pos = match.end()
        if pos >= len(text):
            kind = "after_entry" if self._is_after else "entry"
            raise CutShortError(kind, pos, "before all brackets are closed")
        return pos

    def _odd_end(self, pos: int) -> int:
        self.steps.take(1, pos)
        text = self.text
        if text[pos] not in "/#":
            self.note(pos, pos + 1, " ", "strip_invisible")
            return pos + 1
        if text.startswith("/*", pos):
            end = text.find("*/", pos + 2) + 2
            if end < 2:
                raise CutShortError("comment", pos, "inside a comment")
        else:
            match = LINE_COMMENT.match(text, pos)
            if match is None:
                return pos
            end = match.end()
        self.note(pos, end, " ", "drop_comment")
        return end
