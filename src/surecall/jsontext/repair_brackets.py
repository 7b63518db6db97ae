"""Brackets: opened, closed, doubled, round, of the wrong kind."""

from surecall.errors import Code
from surecall.limits import MAX_JSON_DEPTH as MAX_DEPTH

from .repair_patterns import BLANKS, ENTRY_AHEAD
from .repair_scalars import ScalarReader
from .repair_signals import RefusedError
from .repair_walker import CLOSERS, DOUBLED, OBJECTS, WRITTEN_CLOSERS

__all__ = ["BracketReader"]


class BracketReader(ScalarReader):
    """Opens and closes containers."""

    def _open(self, mark: str, pos: int) -> None:
        if len(self.stack) >= MAX_DEPTH:
            reason = f"more than {MAX_DEPTH} containers are nested in one another"
            raise RefusedError(reason, pos, Code.JSON_TOO_DEEP)
        self.pos = pos + 1
        self._comma = -1
        self._is_after = False
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
                self.stack.append(DOUBLED)
                self.pos = second + 1
            else:
                self.stack.append("}")

    def _close(self, mark: str) -> None:
        pos = self.pos
        top = self.stack[-1]
        if CLOSERS[top] != mark:
            self._close_mismatched(mark)
            return
        if self._comma >= 0:
            self.drop_comma()
        end = pos + 1
        if top == DOUBLED:
            end = self._close_doubled(end)
        elif top == ")":
            self._close_group(pos, "]")
        self.stack.pop()
        self._done(end)

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
            self.edits[index] = (opened[0], opened[1], "", "drop_parentheses", True)
            self.note(pos, pos + 1, "", "drop_parentheses")

    def _close_mismatched(self, mark: str) -> None:
        """Drop the closer, take it for another, or add the one before it: if only one fits."""
        pos = self.pos
        stack = self.stack
        parent = stack[-2] if len(stack) > 1 else None
        if self._tail < 0:
            self._tail = len(self.text.rstrip(" \t\n\r}])`~;"))
        is_missing = parent is not None and CLOSERS[parent] == mark
        ways = ["insert" if is_missing and self._count_closers(pos) < len(stack) else "replace"]
        follow = ENTRY_AHEAD.match(self.text, pos + 1)
        if follow and pos < self._tail:
            grandparent = stack[-3] if len(stack) > 2 else None
            frames = {"drop": stack[-1], "replace": parent}
            if is_missing:
                frames["insert"] = grandparent
            kind = follow.lastgroup or ""
            found = follow[kind]
            ways = [way for way, frame in frames.items() if _fits(frame, kind, found)]
            # A closer too many, or an opener too few? Only a brace after a plain item is clear.
            if ways == ["drop"] and not (mark == "}" and self._is_after):
                ways = []
        if len(ways) != 1 or ")" in (stack[-1], mark):
            raise RefusedError(f"{mark!r} closes nothing that is open here", pos)
        self._apply_mismatch(ways[0], pos)

    def _count_closers(self, pos: int) -> int:
        ahead = self.text[pos : pos + 4 * MAX_DEPTH]
        return ahead.count("}") + ahead.count("]")

    def _apply_mismatch(self, way: str, pos: int) -> None:
        if way == "drop":
            self.note(pos, pos + 1, " ", "drop_stray_closer")
            self.pos = pos + 1
            return
        self.drop_comma()
        closer = WRITTEN_CLOSERS[self.stack.pop()]
        end = pos + 1 if way == "replace" else pos
        self.note(pos, end, closer, "fix_mismatched_closer", lossless=False)
        self._done(end)


def _fits(frame: str | None, kind: str, found: str) -> bool:
    if frame is None:
        return False
    if kind == "closer":
        return CLOSERS[frame] == found
    return (frame in OBJECTS) == (kind == "key")
