"""The place in a text under repair: what was read, which brackets are open, what must change."""

import re
from typing import Final

from surecall.base.errors import Code
from surecall.base.limits import MAX_JSON_DEPTH

from .repaired import Certainty, CutShortError, Edit, NonFinitePolicy, RefusedError, Steps
from .syntax import BLANKS, GAP, LIKELY_KEY, LINE_COMMENT, QUOTED_ITEM, VALUE_AHEAD

_EMPTY_STRINGS: Final = ('""', "''")
_AHEAD: Final = 4096
"""How far brackets are counted to see which one is missing."""
_CHARACTERS_PER_STEP: Final = 256
_BRACKETS: Final = re.compile(r"[{}\[\]]")
_COMMENT_END: Final = re.compile(r"(?<=[ \t])[}\],]|[}\],](?=[ \t\n,}\]]|\Z)")
_FENCE_TAG: Final = re.compile(
    r"(?:`{3,}+|~{3,}+)(?:[ \t]*+(?:json[5lc]?+|\w++(?=[ \t]*+[\n\r])))?+"
)
_ODD: Final = "/#`~"
_COMMA: Final = re.compile(r"\s*+,\s*+")


class Frame:
    """A bracket that is open."""

    # Defaults of the class, as for the cursor.
    extra = 0
    """Braces that were opened with it and mean nothing."""
    size = 0
    """How many entries were read one by one."""
    has_comma = False
    edit = 0
    """Which edit wrote its bracket."""
    is_implied = False
    """No bracket of it is in the text."""

    def __init__(self, closer: str, start: int) -> None:
        self.closer = closer
        self.start = start
        self.is_object = closer == "}"

    @property
    def written(self) -> str:
        """The bracket that closes it in JSON."""
        return "}" if self.is_object else "]"


class Cursor:
    """Moves over a text, opens and closes its brackets, and notes what must change.

    What could mean two things is a `doubt`: the certain level refuses it, and the likely level
    goes on with the likeliest meaning. A cursor is used for one value only.
    """

    # Defaults of the class: most values need none of them, and an instance is soon made.
    pos = 0
    has_evidence = False
    """Something was read that prose would not hold: quotes, a number, a literal."""
    is_committed = False
    """So much was read that what follows cannot be prose."""
    is_after = False
    """An entry was read, and not yet what separates it from the next."""
    comma = -1
    """Where the comma is that nothing has followed so far."""
    done_at = 0
    """Where the last entry ends."""
    entry = 0
    """Where the entry begins that is being read."""
    value_at = 0
    """Where the value of the last member begins."""
    guesses = False
    """Whether the level is likely."""

    def __init__(
        self,
        text: str,
        non_finite: NonFinitePolicy,
        steps: Steps,
        *,
        level: Certainty = "certain",
        is_fenced: bool = False,
    ) -> None:
        self.text = text
        self.non_finite: NonFinitePolicy = non_finite
        self.steps = steps
        self.is_fenced = is_fenced
        if level == "likely":
            self.guesses = True
        self.edits: list[Edit] = []
        self.stack: list[Frame] = []
        """The brackets that are open."""

    def doubt(self, reason: str, position: int) -> None:
        """Refuse text that could mean two things, unless the likelier one is wanted."""
        if not self.guesses:
            raise RefusedError(reason, position)
        self.steps.take(1, position)

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
        closers = "".join([frame.written for frame in reversed(self.stack)])
        self.note(end, end, closers, rule, lossless=False)

    def is_in_object(self) -> bool:
        """Tell whether the innermost open bracket is that of an object."""
        return bool(self.stack) and self.stack[-1].is_object

    def note(self, start: int, end: int, after: str, rule: str, *, lossless: bool = True) -> None:
        """Note a change."""
        self.edits.append((start, end, after, rule, lossless))

    def drop(self, end: int, rule: str) -> None:
        """Leave out what is between this place and another, and go there."""
        self.note(self.pos, end, " ", rule, lossless=False)
        self.pos = end

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
                pos = match.end()
                break
            pos = match.start(1)
            end = self._skip_odd(pos)
            if end == pos:
                break
            pos = end
        self.pos = pos
        if pos >= len(text):
            kind = "after_entry" if self.is_after else "entry"
            raise CutShortError(kind, pos, "before all brackets are closed")
        return pos

    def _skip_odd(self, pos: int) -> int:
        self.steps.take(1, pos)
        text = self.text
        if text[pos] not in _ODD:
            self.note(pos, pos + 1, " ", "strip_invisible")
            return pos + 1
        if text[pos] in "`~":
            return self._skip_fence(pos)
        if text.startswith("/*", pos):
            end = text.find("*/", pos + 2) + 2
            if end < 2:
                raise CutShortError("comment", pos, "inside a comment")
        else:
            match = LINE_COMMENT.match(text, pos)
            if match is None:
                return pos
            if text.endswith(_EMPTY_STRINGS, 0, pos):
                self.doubt("an empty string and a comment, or a string?", pos)
            end = match.end()
            if self.guesses and end == len(text) and self.stack:
                # On the last line, what closes the brackets cannot all be part of the comment.
                closer = _COMMENT_END.search(text, pos)
                end = closer.start() if closer else end
        self.note(pos, end, " ", "drop_comment")
        return end

    def _skip_fence(self, pos: int) -> int:
        """Pass over a code fence inside brackets, unless it ends the one that they are in."""
        match = _FENCE_TAG.match(self.text, pos)
        if match is None or not self.guesses or self.is_fenced or not self.stack:
            return pos
        ahead = self.text[match.end() : match.end() + _AHEAD]
        self.steps.take(len(ahead) // _CHARACTERS_PER_STEP, pos)
        if "}" not in ahead and "]" not in ahead:
            # The fence ends the value, also where no fence begins it.
            kind = "after_entry" if self.is_after else "entry"
            raise CutShortError(kind, pos, "before all brackets are closed")
        self.note(pos, match.end(), " ", "strip_code_fence")
        return match.end()

    # Brackets

    def push(self, frame: Frame) -> None:
        """Go into a container.

        Raises:
            RefusedError: too many are open.
        """
        if len(self.stack) >= MAX_JSON_DEPTH:
            reason = f"more than {MAX_JSON_DEPTH} containers are nested in one another"
            raise RefusedError(reason, self.pos, Code.JSON_TOO_DEEP)
        self.comma = -1
        self.is_after = False
        self.stack.append(frame)

    def open(self, mark: str, pos: int) -> None:
        """Open the bracket at a place."""
        if mark == "[":
            self.push(Frame("]", pos))
        elif mark == "(":
            frame = Frame(")", pos)
            self.push(frame)
            frame.edit = len(self.edits)
            self.note(pos, pos + 1, "[", "tuple_to_array")
        else:
            frame = Frame("}", pos)
            self.push(frame)
            match = BLANKS.match(self.text, pos + 1)
            second = match.end() if match else pos + 1
            if self.text.startswith("{", second):
                self.drop_brace(frame, second)
                return
        self.pos = pos + 1

    def drop_brace(self, frame: Frame, pos: int) -> None:
        """Leave out a brace that was opened a second time."""
        frame.edit = len(self.edits)
        frame.extra += 1
        self.note(pos, pos + 1, "", "collapse_doubled_braces")
        self.pos = pos + 1

    def close(self, mark: str) -> None:
        """Close what is open by the closing bracket at this place, or see what else it means."""
        pos = self.pos
        top = self.stack[-1]
        if top.closer != mark:
            self._close_mismatched(mark)
            return
        if self.guesses and self._keep_open(top, pos):
            return
        if self.comma >= 0:
            self.drop_comma()
        end = pos + 1
        if top.extra:
            end = self._close_doubled(top, end)
        elif mark == ")":
            self._close_group(top, pos)
        self.stack.pop()
        self.end_entry(end)

    def _close_doubled(self, frame: Frame, end: int) -> int:
        text = self.text
        for _ in range(frame.extra):
            second = self._find_second(end)
            if text.startswith("}", second):
                self.note(second, second + 1, "", "collapse_doubled_braces")
                end = second + 1
            elif second < len(text):
                self.doubt("'{{' is not closed by '}}'", end)
                break
        return end

    def _find_second(self, end: int) -> int:
        match = BLANKS.match(self.text, end)
        second = match.end() if match else end
        is_fence = self.guesses and self.text[second : second + 1] in ("`", "~")
        return self.skip_gap(second) if is_fence else second

    def _close_group(self, frame: Frame, pos: int) -> None:
        """Close a round bracket: around one item without a comma it means nothing."""
        opened = self.edits[frame.edit]
        is_empty = self.text[opened[1] : pos].strip() == ""
        if frame.has_comma or is_empty:
            self.note(pos, pos + 1, "]", "tuple_to_array")
        else:
            if any(edit[3] == "quote_bare_text" for edit in self.edits[frame.edit + 1 :]):
                self.doubt("round brackets around words: do they belong to the text?", pos)
            self.edits[frame.edit] = (opened[0], opened[1], "", "drop_parentheses", True)
            self.note(pos, pos + 1, "", "drop_parentheses")

    def _keep_open(self, frame: Frame, pos: int) -> bool:
        """Leave out a closing bracket if what follows belongs to what it closes."""
        text = self.text
        comma = _COMMA.match(text, pos + 1)
        if comma is None or comma.end() >= len(text):
            return False
        parent = self.stack[-2] if len(self.stack) > 1 else None
        is_key = LIKELY_KEY.match(text, comma.end()) is not None
        if frame.is_object:
            is_early = is_key and (
                frame.size > 0
                if parent is None
                else not parent.is_object and not self._is_balanced(pos)
            )
        elif is_key or frame.closer != "]" or not self._is_item(comma.end()):
            is_early = False
        else:
            is_early = parent.is_object if parent else self.count_ahead(pos + 1) > 0
        if not is_early:
            return False
        end = pos + 1
        if not frame.is_object and text[comma.end()] == "[" and self._is_balanced(pos):
            # `"a": [1], [2]`: the list was closed and opened again.
            end = comma.end() + 1
            self.note(pos, end, ",", "fix_mismatched_closer", lossless=False)
            self.push(Frame("]", pos))
            self.stack.pop()
        else:
            self.note(pos, end, " ", "drop_stray_closer")
            self.done_at = end
            self.is_after = True
            self.drop_comma()
        self.pos = end
        return True

    def _is_item(self, pos: int) -> bool:
        pattern = QUOTED_ITEM if self.text[pos] == '"' else VALUE_AHEAD
        return pattern.match(self.text, pos) is not None

    def _is_balanced(self, pos: int) -> bool:
        return self.count_ahead(pos + 1) <= len(self.stack) - 1

    def reopen(self) -> None:
        """Leave out the bracket that closed the last entry: what follows belongs to it."""
        pos = self.done_at - 1
        self.note(pos, pos + 1, " ", "drop_stray_closer")
        comma = self.comma
        self.push(Frame(self.text[pos], pos))
        self.stack[-1].size = 1
        self.comma = comma

    def _close_mismatched(self, mark: str) -> None:
        """Drop the closer, take it for another, or add one before it.

        The way is taken behind which as many brackets are open as are closed later.
        """
        pos, stack = self.pos, self.stack
        depth, frame = len(stack), stack[-1]
        ways = {"drop": depth, "replace": depth - 1}
        if mark == ")" or frame.closer == ")":
            self.doubt(f"{mark!r} closes nothing that is open here", pos)
            ways.pop("replace")
        count = next((n for n in range(2, depth + 1) if stack[-n].closer == mark), 0)
        if count:
            ways["insert"] = depth - count
        ahead = self.count_ahead(pos + 1)
        way = min(reversed(ways), key=lambda way: abs(ways[way] - ahead))
        if way == "drop":
            self.note(pos, pos + 1, " ", "drop_stray_closer")
            self.pos = pos + 1
            return
        self.drop_comma()
        stack.pop()
        end = pos + 1 if way == "replace" else pos
        self.note(pos, end, frame.written, "fix_mismatched_closer", lossless=False)
        self.end_entry(end)

    def count_ahead(self, pos: int) -> int:
        """Return how many more brackets are closed than opened in what follows."""
        ahead = self.text[pos : pos + _AHEAD]
        self.steps.take(len(ahead) // _CHARACTERS_PER_STEP, pos)
        closed = ahead.count("}") + ahead.count("]")
        return closed - ahead.count("{") - ahead.count("[")

    def next_closer(self, pos: int) -> str:
        """Return the bracket that closes what is open here, as far as one can see."""
        depth = 0
        for match in _BRACKETS.finditer(self.text, pos, pos + _AHEAD):
            self.steps.take(1, pos)
            depth += 1 if match[0] in "{[" else -1
            if depth < 0:
                return match[0]
        return ""
