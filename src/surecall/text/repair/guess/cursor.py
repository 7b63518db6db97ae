"""The place in a text that is read by guess: the value so far, open brackets, what was changed."""

import re
from typing import Any, Final

from surecall.base.errors import Code
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.text.repair.cursor import Edit
from surecall.text.repair.outcome import NonFinitePolicy, RefusedError, Steps

from .ends import REOPENED, WS, Role

CLOSER_OF: Final = {"{": "}", "[": "]", "(": ")"}
_AHEAD: Final = 4096
"""How far brackets are counted to see which one is missing."""
_GAP: Final = re.compile(
    r"(?:[\s\ufeff\u200b\u2060]++|//[^\n\r]*+|\#(?![0-9a-fA-F]{3,8}+\s*+[,}\]])[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|<!--)*+"
)
_OBJECT_AFTER: Final = re.compile(rf"{WS},{WS}{{")
_BRACKETS: Final = re.compile(r"[{}\[\]]")


class Frame:
    """A bracket that is open, and what was read in it."""

    __slots__ = (
        "after",
        "closer",
        "comma",
        "extra",
        "has_comma",
        "is_implied",
        "items",
        "key",
        "key_start",
        "loose",
        "members",
        "start",
    )

    def __init__(self, closer: str, start: int, *, is_implied: bool = False) -> None:
        self.closer = closer
        self.start = start
        self.is_implied = is_implied
        """No bracket of it is in the text."""
        self.members: dict[str, Any] | None = {} if closer == "}" else None
        self.items: list[Any] = []
        self.key: str | None = None
        self.key_start = -1
        self.loose: list[tuple[int, int, Any]] = []
        """What is in the place of a key and has no value."""
        self.after = False
        """An entry was read, and not yet a comma behind it."""
        self.comma = -1
        self.has_comma = False
        self.extra = 0
        """Closing brackets that mean nothing, as an opening one before meant nothing."""


class LooseCursor:
    """Moves over a text and builds one value from it. It is used once.

    Args:
        text: The text.
        steps: The budget.
        non_finite: What becomes of NaN and the infinities.
        ended: Whether the text is known to have come to its own end.
        plain: Whether quotes and brackets are taken as they are: the second reading, that shows
            what else the text could mean.
    """

    def __init__(
        self,
        text: str,
        steps: Steps,
        non_finite: NonFinitePolicy,
        *,
        ended: bool = True,
        plain: bool = False,
    ) -> None:
        self.text = text
        self.steps = steps
        self.non_finite: NonFinitePolicy = non_finite
        self.ended = ended
        self.plain = plain
        self.pos: int = 0
        self.edits: list[Edit] = []
        self.value: Any = None
        self.has_value = False
        self.has_evidence = False
        """Something was read that prose would not hold: quotes, a number, a literal, a key."""
        self.cut = ""
        """Where the text ends, in words, when it ends inside the value."""
        self.frames: list[Frame] = []

    def note(self, start: int, end: int, after: str, rule: str, *, lossless: bool = True) -> None:
        """Note a change."""
        self.edits.append((start, end, after, rule, lossless))

    def skip_gap(self) -> bool:
        """Pass over blanks and comments; tell whether anything else follows."""
        match = _GAP.match(self.text, self.pos)
        assert match is not None
        found = match[0]
        if found and not found.isspace():
            self.note(*match.span(), " ", "drop_comment")
        self.pos = match.end()
        if self.pos >= len(self.text):
            return False
        return not (self.text.startswith("```", self.pos) and self.frames)

    def note_repeated(self, start: int, end: int, key: str) -> None:
        """Note that an earlier value of a key is given up."""
        self.note(start, end, key, "take_last_of_key", lossless=False)

    def fill_value(self, frame: Frame, pos: int) -> None:
        """Give the key that was read null."""
        self.note(pos, pos, "null", "fill_missing_value", lossless=False)
        self.add(None)

    def begin_entry(self, frame: Frame) -> None:
        """Note a comma that is missing before an entry."""
        if frame.after:
            self.note(self.pos, self.pos, ",", "add_missing_comma")
            frame.has_comma = True
            frame.after = False

    def add(self, value: Any) -> None:
        """Put a value where it belongs."""
        if not self.frames:
            self.value = value
            self.has_value = True
            return
        frame = self.frames[-1]
        frame.after = True
        if frame.members is None:
            frame.items.append(value)
            return
        if frame.key is None:
            frame.loose.append((self.pos, self.pos, value))
            return
        if frame.key in frame.members:
            self.note_repeated(frame.key_start, self.pos, frame.key)
        frame.members[frame.key] = value
        frame.key = None

    def is_open(self) -> bool:
        """Tell whether the end of the text would cut what is being read."""
        return not self.ended or any(not frame.is_implied for frame in self.frames)

    def find_role(self) -> Role:
        """Return where a string at this place is."""
        if not self.frames:
            return "top"
        return "object" if self.frames[-1].members is not None else "array"

    def open(self, mark: str) -> None:
        """Open the bracket at this place."""
        if len(self.frames) >= MAX_JSON_DEPTH:
            reason = f"more than {MAX_JSON_DEPTH} containers are nested in one another"
            raise RefusedError(reason, self.pos, Code.JSON_TOO_DEEP)
        self.frames.append(Frame(CLOSER_OF[mark], self.pos))
        self.pos += 1

    def close(self, mark: str) -> None:
        """Close what is open by the bracket at this place, or see what else it means."""
        frames = self.frames
        pos = self.pos
        top = frames[-1]
        if top.closer == mark:
            if top.extra and top.members and _OBJECT_AFTER.match(self.text, pos + 1):
                self._make_set_of_objects(top)
                return
            if top.extra and self.count_ahead(pos) >= len(frames):
                top.extra -= 1
                self.note(pos, pos + 1, "", "collapse_doubled_braces")
                self.pos = pos + 1
                return
            self.pos = pos + 1
            self.pop()
            return
        count = next(
            (n for n in range(1, len(frames) + 1) if frames[-n].closer == mark and n > 1), 0
        )
        ahead = self.count_ahead(pos + 1)
        ways = {"drop": len(frames), "replace": len(frames) - 1}
        if count:
            ways["insert"] = len(frames) - count
        if self.plain or mark == ")" or top.closer == ")":
            ways.pop("replace")
        way = min(reversed(ways), key=lambda one: abs(ways[one] - ahead))
        if way == "insert":
            for _ in range(count - 1):
                self.note(pos, pos, frames[-1].closer, "fix_mismatched_closer", lossless=False)
                self.pop()
            self.pos = pos + 1
            self.pop()
        elif way == "replace":
            self.note(pos, pos + 1, top.closer, "fix_mismatched_closer", lossless=False)
            self.pos = pos + 1
            self.pop()
        else:
            self.note(pos, pos + 1, "", "drop_stray_closer")
            self.pos = pos + 1

    def _make_set_of_objects(self, frame: Frame) -> None:
        """Read `{{"a": 1}, {"b": 2}}` as a list."""
        self.note(frame.start, frame.start + 1, "[", "set_to_array")
        frame.items = [frame.members]
        frame.members = None
        frame.extra = 0
        frame.after = True
        self.pos += 1

    def count_ahead(self, pos: int) -> int:
        """Return how many more brackets are closed than opened in what follows."""
        ahead = self.text[pos : pos + _AHEAD]
        self.steps.take(len(ahead) // 256, pos)
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

    def pop(self) -> None:
        """Close what is open; what it holds becomes a value of what is around it."""
        frame = self.frames[-1]
        if frame.key is not None:
            self.fill_value(frame, self.pos)
        if not frame.after and frame.comma >= 0:
            self.note(frame.comma, frame.comma + 1, "", "drop_trailing_comma")
        is_last = len(self.frames) == 1
        if is_last and frame.members and not self.plain and REOPENED.match(self.text, self.pos):
            self.note(self.pos - 1, self.pos, "", "drop_stray_closer")
            frame.after = True
            return
        self.frames.pop()
        value: Any = frame.items
        if frame.members is not None:
            value = self._finish_object(frame, frame.members)
        elif frame.closer == ")":
            is_one = len(frame.items) == 1 and not frame.has_comma
            value = frame.items[0] if is_one else frame.items
            rule = "drop_parentheses" if is_one else "tuple_to_array"
            self.note(frame.start, self.pos, "", rule)
        self.add(value)

    def _finish_object(self, frame: Frame, members: dict[str, Any]) -> Any:
        if frame.loose and not members and not self.plain:
            self.note(frame.start, self.pos, "[…]", "set_to_array")
            return [value for _, _, value in frame.loose]
        for start, end, _ in frame.loose:
            self.note(start, end, "", "key_without_value", lossless=False)
        return members

    def end_early(self) -> None:
        """Close everything at the end of the text, or of its code fence."""
        text = self.text
        end = self.pos
        frames = self.frames
        is_fenced = end < len(text)
        before = text[:end].rstrip()[-1:] if end < 512 else text[end - 512 : end].rstrip()[-1:]
        is_implied = len(frames) == 1 and frames[0].is_implied
        if not self.cut and not (is_fenced or is_implied) and not (self.ended and before in "}])"):
            self.cut = "before all brackets are closed"
        rule = "close_cut_brackets" if self.cut else "close_missing_brackets"
        closers = "".join([frame.closer for frame in reversed(frames)])
        while frames:
            frame = frames[-1]
            is_half = self.cut and not is_fenced
            if frame.key is not None and is_half:
                frame.key = None
                self.note(frame.key_start, end, "", "drop_cut_member", lossless=False)
            elif frame.loose and is_half and (frame.members or len(frame.loose) == 1):
                start, _, _ = frame.loose.pop()
                self.note(start, end, "", "drop_cut_member", lossless=False)
                frame.after = frame.after and frame.comma < start
            self.pop()
        self.note(end, end, closers, rule, lossless=is_implied)
