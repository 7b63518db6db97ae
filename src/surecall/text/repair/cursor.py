"""The place in a text under repair: what was read, which brackets are open, what must change."""

from typing import Final, TypeAlias

from surecall.base.errors import Code
from surecall.base.limits import MAX_JSON_DEPTH

from .outcome import CutShortError, NonFinitePolicy, RefusedError, Steps
from .patterns import BLANKS, ENTRY_AHEAD, GAP, LINE_COMMENT

_DOUBLED: Final = "D"
"""An object opened by `{{`."""
OBJECTS: Final = frozenset(("}", _DOUBLED))
_CLOSERS: Final = {"}": "}", "]": "]", ")": ")", _DOUBLED: "}"}
_EMPTY_STRINGS: Final = ('""', "''")
_WRITTEN_CLOSERS: Final = {"}": "}", "]": "]", ")": "]", _DOUBLED: "}"}

MAX_RECEIPTS_PER_RULE: Final = 20
"""Further changes by the same rule are only counted."""

Edit: TypeAlias = tuple[int, int, str, str, bool]
"""One change: start, end, what is there afterwards, the rule, whether it is lossless."""


class Cursor:
    """Moves over a text, opens and closes its brackets, and notes what must change.

    Readers of entries and scalars move it; it is used for one value only.
    """

    # Defaults of the class: most values need none of them, and an instance is soon made.
    pos = 0
    has_evidence = False
    """Something was read that prose would not hold: quotes, a number, a literal."""
    is_committed = False
    """So much was read that what follows cannot be prose."""
    is_after = False
    """An entry was read, and not yet what separates it from the next."""
    is_quote_moved = False
    comma = -1
    """Where the comma is that nothing has followed so far."""
    done_at = 0
    """Where the last entry ends."""
    entry = 0
    """Where the entry begins that is being read."""

    def __init__(
        self,
        text: str,
        non_finite: NonFinitePolicy,
        steps: Steps,
        closers_at: int,
        *,
        is_fenced: bool = False,
    ) -> None:
        self.text = text
        self.non_finite: NonFinitePolicy = non_finite
        self.steps = steps
        self.closers_at = closers_at
        """Where the text ends but for closers, fences and blanks."""
        self.is_fenced = is_fenced
        self.edits: list[Edit] = []
        self.stack: list[str] = []
        """The brackets that are open, by their closers."""
        self._groups: list[tuple[int, bool]] = []

    def skip_gap(self, start: int) -> int:
        """Pass over blanks and comments; return where something else begins, or the end."""
        self.pos = start
        try:
            return self.advance()
        except CutShortError as cut:
            return len(self.text) if cut.kind != "comment" else start

    @property
    def ended_with_closer(self) -> bool:
        """Whether the last thing read is a closing bracket."""
        return self.done_at > 0 and self.text[self.done_at - 1] in "}])"

    def close_all(self, end: int, rule: str) -> None:
        """Note that all brackets that are open are closed at a place, with what that may lose."""
        closers = "".join([_WRITTEN_CLOSERS[closer] for closer in reversed(self.stack)])
        self.note(end, end, closers, rule, lossless=False)

    def is_in_object(self) -> bool:
        """Tell whether the innermost open bracket is that of an object."""
        return bool(self.stack) and self.stack[-1] in OBJECTS

    def note(self, start: int, end: int, after: str, rule: str, *, lossless: bool = True) -> None:
        """Note a change."""
        self.edits.append((start, end, after, rule, lossless))

    def drop_entry(self) -> None:
        """Leave out the entry that has no end, and the comma before it."""
        start = self.entry if self.comma < 0 else self.comma
        self.edits = [edit for edit in self.edits if edit[0] < start]
        self.note(start, len(self.text), "", "drop_cut_member", lossless=False)

    def drop_comma(self) -> None:
        """Leave out a comma that nothing follows."""
        if self.comma >= 0:
            while self.edits and self.edits[-1][0] == self.comma:
                self.edits.pop()
            self.note(self.comma, self.comma + 1, "", "drop_trailing_comma")
            self.comma = -1

    def end_entry(self, end: int) -> None:
        """Note that an entry ends here."""
        self.pos = self.done_at = end
        self.is_after = True
        self.comma = -1

    def end_entry_and_comma(self, end: int) -> None:
        """Note that an entry ends here, and pass over the comma if it follows at once."""
        self.done_at = end
        if self.text.startswith(",", end):
            self.comma = end
            self.is_after = False
            self.pos = end + 1
        else:
            self.comma = -1
            self.is_after = True
            self.pos = end

    def advance(self) -> int:
        """Pass over blanks and comments; raise when the text ends there."""
        text = self.text
        pos = self.pos
        while True:
            match = GAP.match(text, pos)
            assert match is not None
            if match.lastindex is None:
                break
            pos = match.start(1)
            end = self._skip_odd(pos)
            if end == pos:
                self.pos = pos
                return pos
            pos = end
        self.pos = pos = match.end()
        if pos >= len(text):
            kind = "after_entry" if self.is_after else "entry"
            raise CutShortError(kind, pos, "before all brackets are closed")
        return pos

    def note_group_comma(self) -> None:
        """Note that a comma follows, if what is open is a round bracket: then it is a tuple."""
        if self.stack[-1] == ")":
            self._groups[-1] = (self._groups[-1][0], True)

    def _skip_odd(self, pos: int) -> int:
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
            if text.endswith(_EMPTY_STRINGS, 0, pos):
                raise RefusedError("an empty string and a comment, or a string?", pos)
            end = match.end()
        self.note(pos, end, " ", "drop_comment")
        return end

    # Brackets

    def open(self, mark: str, pos: int) -> None:
        """Open the bracket at a place."""
        if len(self.stack) >= MAX_JSON_DEPTH:
            reason = f"more than {MAX_JSON_DEPTH} containers are nested in one another"
            raise RefusedError(reason, pos, Code.JSON_TOO_DEEP)
        self.pos = pos + 1
        self.comma = -1
        self.is_after = False
        if mark == "[":
            self.stack.append("]")
        elif mark == "(":
            self._groups.append((len(self.edits), False))
            self.note(pos, pos + 1, "[", "tuple_to_array")
            self.stack.append(")")
        else:
            match = BLANKS.match(self.text, pos + 1)
            second = match.end() if match else pos + 1
            if self.text.startswith("{", second):
                self.note(second, second + 1, "", "collapse_doubled_braces")
                self.stack.append(_DOUBLED)
                self.pos = second + 1
            else:
                self.stack.append("}")

    def close(self, mark: str) -> None:
        """Close what is open by the closing bracket at this place, or see what else it means."""
        pos = self.pos
        top = self.stack[-1]
        if _CLOSERS[top] != mark:
            self._close_mismatched(mark)
            return
        if self.comma >= 0:
            self.drop_comma()
        end = pos + 1
        if top == _DOUBLED:
            end = self._close_doubled(end)
        elif top == ")":
            self._close_group(pos, "]")
        self.stack.pop()
        self.end_entry(end)

    def _close_doubled(self, end: int) -> int:
        match = BLANKS.match(self.text, end)
        second = match.end() if match else end
        if self.text.startswith("}", second):
            self.note(second, second + 1, "", "collapse_doubled_braces")
            return second + 1
        if second < len(self.text):
            raise RefusedError("'{{' is not closed by '}}'", end)
        return end

    def _close_group(self, pos: int, closer: str) -> None:
        """Close a round bracket: around one item without a comma it means nothing."""
        index, has_comma = self._groups.pop()
        opened = self.edits[index]
        is_empty = self.text[opened[1] : pos].strip() == ""
        if has_comma or is_empty:
            self.note(pos, pos + 1, closer, "tuple_to_array")
        else:
            if any(edit[3] == "quote_bare_text" for edit in self.edits[index + 1 :]):
                raise RefusedError("round brackets around words: do they belong to the text?", pos)
            self.edits[index] = (opened[0], opened[1], "", "drop_parentheses", True)
            self.note(pos, pos + 1, "", "drop_parentheses")

    def _close_mismatched(self, mark: str) -> None:
        """Drop the closer, take it for another, or add the one before it: if only one fits."""
        pos = self.pos
        stack = self.stack
        parent = stack[-2] if len(stack) > 1 else None
        is_missing = parent is not None and _CLOSERS[parent] == mark
        ways = ["insert" if is_missing and self._count_closers(pos) < len(stack) else "replace"]
        follow = ENTRY_AHEAD.match(self.text, pos + 1)
        if follow and pos < self.closers_at:
            grandparent = stack[-3] if len(stack) > 2 else None
            frames = {"drop": stack[-1], "replace": parent}
            if is_missing:
                frames["insert"] = grandparent
            kind = follow.lastgroup or ""
            found = follow[kind]
            ways = [way for way, frame in frames.items() if _fits(frame, kind, found)]
            # A closer too many, or an opener too few? Only a brace after a plain item is clear.
            if ways == ["drop"] and not (mark == "}" and self.is_after):
                ways = []
        if len(ways) != 1 or ")" in (stack[-1], mark):
            raise RefusedError(f"{mark!r} closes nothing that is open here", pos)
        self._apply_mismatch(ways[0], pos)

    def _count_closers(self, pos: int) -> int:
        ahead = self.text[pos : pos + 4 * MAX_JSON_DEPTH]
        return ahead.count("}") + ahead.count("]")

    def _apply_mismatch(self, way: str, pos: int) -> None:
        if way == "drop":
            self.note(pos, pos + 1, " ", "drop_stray_closer")
            self.pos = pos + 1
            return
        self.drop_comma()
        closer = _WRITTEN_CLOSERS[self.stack.pop()]
        end = pos + 1 if way == "replace" else pos
        self.note(pos, end, closer, "fix_mismatched_closer", lossless=False)
        self.end_entry(end)


def _fits(frame: str | None, kind: str, found: str) -> bool:
    if frame is None:
        return False
    if kind == "closer":
        return _CLOSERS[frame] == found
    return (frame in OBJECTS) == (kind == "key")
