"""Reads one value from text that may be damaged in any way, by the likeliest meaning of each part.

Unlike the reader of the certain tier it refuses nothing but what the limits forbid. The text is
walked once, without recursion; the value is built as it goes, and every change is noted.
"""

import re
from typing import Any, Final

from surecall.errors import Code, JSONTextError
from surecall.jsontext.codec import decode, decode_noting
from surecall.limits import MAX_JSON_DEPTH

from . import patterns
from .cursor import Edit
from .judge import (
    COLON,
    KEY_AHEAD,
    QUOTED_KEY,
    REOPENED,
    VALUE_AHEAD,
    WS,
    Role,
    find_end,
)
from .outcome import NonFinitePolicy, RefusedError, Steps
from .scalars import DIGITS, LITERALS, NON_FINITE_WORDS, rewrite_number
from .strings import close_string, write_content

_CLOSER_OF: Final = {"{": "}", "[": "]", "(": ")"}
_CLOSERS: Final = frozenset("}])")
_AHEAD: Final = 4096
"""How far brackets are counted to see which one is missing."""

_GAP: Final = re.compile(
    rf"(?:[\s\ufeff\u200b\u2060]++|//[^\n\r]*+|\#(?![0-9a-fA-F]{{3,8}}+\s*+[,}}\]])[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|<!--)*+"
)
_GAP_ONLY: Final = re.compile(WS)
_DOTS: Final = re.compile(r"\.{3,}+|…")
_DOTS_ALONE: Final = re.compile(rf"(?:\.{{3,}}+|…){WS}(?:[,}}\]]|\Z)")
_BARE_KEY: Final = re.compile(r"[^\s\"'`“”‘’:=,;{}\[\]]++(?:[ \t]++[^\s\"'`“”:=,;{}\[\]]++)*+")
_QUOTE_COLON: Final = re.compile(rf"[\"'”’`]{WS}(?::|=)")
_CALL: Final = re.compile(
    r"(?:new[ \t]++)?+[a-zA-Z_$][\w$.]*+\((?=\s*+(?:[\"'{\[(]|-?+[0-9]|true|false|null|[a-z]++=))"
)
_STRING_PREFIX: Final = re.compile(rf"[bBrRuU]{{1,2}}+(?=[\"'](?!{WS}[,:}}\]]))")
_BARE_STOP: Final = re.compile(r"[^,;}\]\n\r\"/#{]*+")
_AFTER_COMMA: Final = re.compile(
    rf"{WS}(?:[}}\],;]|\Z|/[/*]|\#|\.\.\.|…|{{|{KEY_AHEAD.pattern}|[\w$]++\Z|\"[^\"\n]*+\"?+{WS}(?:\Z|[,}}]))"
)
_AFTER_QUOTE: Final = re.compile(rf"{WS}(?:[,;}}\]]|\Z|[\n\r])")
_NUMBER_END: Final = re.compile(rf"{WS}(?:[,;}}\])]|/[/*]|\#|`{{3}}|\Z)|[ \t]*+[\n\r]")
_HALF_NUMBER: Final = re.compile(r"([+-]?+[0-9][0-9_]*+(?:\.[0-9]++)?+)(?:\.|\.?+[eE][+-]?+)?+\Z")
_GROUPED: Final = re.compile(r"([0-9]{1,3}(?:,[0-9]{3})++(?:\.[0-9]++)?+)(?=\s*+(?:[}\n]|,\s|\Z))")
_DOUBLED_QUOTE: Final = re.compile(r"\"\"(?=[^\s\",:}\]+])")
_DOUBLED_END: Final = re.compile(rf"([^\"\n]*+)\"\"(?={WS}(?:[,:}}\]]|\Z))")
_JOINT: Final = re.compile(rf"{WS}\+{WS}(?=[\"'`}}\],]|\Z)")
_ESCAPED_STRING: Final = re.compile(r"\\\"((?:[^\"\\\n]++|\\(?!\"))*+)\\?+\"")
_REGEX: Final = re.compile(rf"/(?:[^/\\\n]++|\\.)++/[a-z]*+(?={WS}[,}}\]])")
_OBJECT_AFTER: Final = re.compile(rf"{WS},{WS}{{")
_BRACKETS: Final = re.compile(r"[{}\[\]]")


class _Frame:
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

    def is_empty(self) -> bool:
        return not (self.members or self.items or self.loose)


class TolerantReader:
    """Reads one value. It is used once.

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
        self.pos = 0
        self.edits: list[Edit] = []
        self.value: Any = None
        self.has_value = False
        self.has_evidence = False
        """Something was read that prose would not hold: quotes, a number, a literal, a key."""
        self.cut = ""
        """Where the text ends, in words, when it ends inside the value."""
        self._frames: list[_Frame] = []

    def read(self, start: int, implied: str = "") -> int:
        """Read the value at a place and return where it ends.

        Args:
            start: Where it begins.
            implied: The closing bracket of a container whose brackets are both missing.
        """
        self.pos = start
        if implied:
            self._frames.append(_Frame(implied, start, is_implied=True))
            self.note(start, start, "{" if implied == "}" else "[", "add_outer_brackets")
        else:
            self._read_value()
        while self._frames:
            self.steps.take(1, self.pos)
            if self._skip_gap():
                self._read_entry()
            else:
                self._end_early()
        return self.pos

    def note(self, start: int, end: int, after: str, rule: str, *, lossless: bool = True) -> None:
        """Note a change."""
        self.edits.append((start, end, after, rule, lossless))

    # Moving

    def _skip_gap(self) -> bool:
        """Pass over blanks and comments; tell whether anything else follows."""
        match = _GAP.match(self.text, self.pos)
        assert match is not None
        found = match[0]
        if found and not found.isspace():
            self.note(*match.span(), " ", "drop_comment")
        self.pos = match.end()
        if self.pos >= len(self.text):
            return False
        return not (self.text.startswith("```", self.pos) and self._frames)

    def _read_entry(self) -> None:
        mark = self.text[self.pos]
        frame = self._frames[-1]
        if mark in _CLOSERS:
            self._close(mark)
        elif mark == "," or mark == ";":
            self._read_comma(mark)
        elif self._read_strictly(frame):
            return
        elif frame.members is not None and frame.key is None:
            self._read_key(frame, mark)
        else:
            self._read_value()

    def _read_strictly(self, frame: _Frame) -> bool:
        """Pass over entries that are strict JSON, many at once."""
        is_object = frame.members is not None
        if frame.key is not None or self.plain:
            return False
        match = (patterns.MEMBERS if is_object else patterns.ITEMS).match(self.text, self.pos)
        if match is None:
            return False
        body = f"{{{match[0]}}}" if is_object else f"[{match[0]}]"
        found: Any
        try:
            found, repeated = decode_noting(body)
        except JSONTextError:
            return False
        self._begin_entry(frame)
        for pointer in repeated:
            self._note_repeated(*match.span(), pointer)
        if frame.members is None:
            frame.items += found
        else:
            for key in frame.members.keys() & found.keys():
                self._note_repeated(*match.span(), key)
            frame.members |= found
        frame.after = self.has_evidence = True
        self.pos = match.end()
        return True

    def _note_repeated(self, start: int, end: int, key: str) -> None:
        self.note(start, end, key, "take_last_of_key", lossless=False)

    def _read_comma(self, mark: str) -> None:
        frame = self._frames[-1]
        pos = self.pos
        self.pos = pos + 1
        if frame.key is not None:
            self._fill_value(frame, pos)
        if not frame.after:
            self.note(pos, pos + 1, "", "drop_extra_comma")
            return
        if mark == ";":
            self.note(pos, pos + 1, ",", "replace_comma")
        frame.after = False
        frame.has_comma = True
        frame.comma = pos

    def _fill_value(self, frame: _Frame, pos: int) -> None:
        self.note(pos, pos, "null", "fill_missing_value", lossless=False)
        self._add(None)

    def _begin_entry(self, frame: _Frame) -> None:
        if frame.after:
            self.note(self.pos, self.pos, ",", "add_missing_comma")
            frame.has_comma = True
            frame.after = False

    def _add(self, value: Any) -> None:
        """Put a value where it belongs."""
        if not self._frames:
            self.value = value
            self.has_value = True
            return
        frame = self._frames[-1]
        frame.after = True
        if frame.members is None:
            frame.items.append(value)
            return
        if frame.key is None:
            frame.loose.append((self.pos, self.pos, value))
            return
        if frame.key in frame.members:
            self._note_repeated(frame.key_start, self.pos, frame.key)
        frame.members[frame.key] = value
        frame.key = None

    # Brackets

    def _open(self, mark: str) -> None:
        if len(self._frames) >= MAX_JSON_DEPTH:
            reason = f"more than {MAX_JSON_DEPTH} containers are nested in one another"
            raise RefusedError(reason, self.pos, Code.JSON_TOO_DEEP)
        self._frames.append(_Frame(_CLOSER_OF[mark], self.pos))
        self.pos += 1

    def _close(self, mark: str) -> None:
        frames = self._frames
        pos = self.pos
        top = frames[-1]
        if top.closer == mark:
            if top.extra and top.members and _OBJECT_AFTER.match(self.text, pos + 1):
                self._make_set_of_objects(top)
                return
            if top.extra and self._count_ahead(pos) >= len(frames):
                top.extra -= 1
                self.note(pos, pos + 1, "", "collapse_doubled_braces")
                self.pos = pos + 1
                return
            self.pos = pos + 1
            self._pop()
            return
        count = next(
            (n for n in range(1, len(frames) + 1) if frames[-n].closer == mark and n > 1), 0
        )
        ahead = self._count_ahead(pos + 1)
        ways = {"drop": len(frames), "replace": len(frames) - 1}
        if count:
            ways["insert"] = len(frames) - count
        if self.plain or mark == ")" or top.closer == ")":
            ways.pop("replace")
        way = min(reversed(ways), key=lambda one: abs(ways[one] - ahead))
        if way == "insert":
            for _ in range(count - 1):
                self.note(pos, pos, frames[-1].closer, "fix_mismatched_closer", lossless=False)
                self._pop()
            self.pos = pos + 1
            self._pop()
        elif way == "replace":
            self.note(pos, pos + 1, top.closer, "fix_mismatched_closer", lossless=False)
            self.pos = pos + 1
            self._pop()
        else:
            self.note(pos, pos + 1, "", "drop_stray_closer")
            self.pos = pos + 1

    def _make_set_of_objects(self, frame: _Frame) -> None:
        """Read `{{"a": 1}, {"b": 2}}` as a list."""
        self.note(frame.start, frame.start + 1, "[", "set_to_array")
        frame.items = [frame.members]
        frame.members = None
        frame.extra = 0
        frame.after = True
        self.pos += 1

    def _count_ahead(self, pos: int) -> int:
        """Return how many more brackets are closed than opened in what follows."""
        ahead = self.text[pos : pos + _AHEAD]
        self.steps.take(len(ahead) // 256, pos)
        closed = ahead.count("}") + ahead.count("]")
        return closed - ahead.count("{") - ahead.count("[")

    def _pop(self) -> None:
        """Close what is open; what it holds becomes a value of what is around it."""
        frame = self._frames[-1]
        if frame.key is not None:
            self._fill_value(frame, self.pos)
        if not frame.after and frame.comma >= 0:
            self.note(frame.comma, frame.comma + 1, "", "drop_trailing_comma")
        is_last = len(self._frames) == 1
        if is_last and frame.members and not self.plain and REOPENED.match(self.text, self.pos):
            self.note(self.pos - 1, self.pos, "", "drop_stray_closer", lossless=False)
            frame.after = True
            return
        self._frames.pop()
        value: Any = frame.items
        if frame.members is not None:
            value = self._finish_object(frame, frame.members)
        elif frame.closer == ")":
            is_one = len(frame.items) == 1 and not frame.has_comma
            value = frame.items[0] if is_one else frame.items
            rule = "drop_parentheses" if is_one else "tuple_to_array"
            self.note(frame.start, self.pos, "", rule)
        self._add(value)

    def _finish_object(self, frame: _Frame, members: dict[str, Any]) -> Any:
        if frame.loose and not members and not self.plain:
            self.note(frame.start, self.pos, "[…]", "set_to_array")
            return [value for _, _, value in frame.loose]
        for start, end, _ in frame.loose:
            self.note(start, end, "", "key_without_value", lossless=False)
        return members

    def _end_early(self) -> None:
        """Close everything at the end of the text, or of its code fence."""
        text = self.text
        end = self.pos
        frames = self._frames
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
            self._pop()
        self.note(end, end, closers, rule, lossless=is_implied)

    # Keys

    def _read_key(self, frame: _Frame, mark: str) -> None:
        text = self.text
        pos = self.pos
        if match := _DOTS.match(text, pos):
            self._drop_dots(frame, match)
        elif mark == "{":
            self._read_brace_for_key(frame)
        elif mark in "[(:=":
            self.pos = pos + 1
            self.note(pos, pos + 1, "", "drop_stray_text", lossless=False)
        else:
            self._begin_entry(frame)
            frame.key_start = pos
            prefix = _STRING_PREFIX.match(text, pos)
            if mark == "\\" and (match := _ESCAPED_STRING.match(text, pos)):
                self.pos = match.end()
                key = self._take_content(pos, match.start(1), match.end(1), "replace_quotes")
                self._end_key(frame, key, is_quoted=True)
            elif mark in patterns.QUOTES or prefix:
                key = self._read_string("key", prefix[0] if prefix else "")
                self._end_key(frame, key, is_quoted=True)
            else:
                self._read_bare_key(frame)

    def _drop_dots(self, frame: _Frame, match: re.Match[str]) -> None:
        self.note(*match.span(), "", "drop_ellipsis", lossless=False)
        self.pos = match.end()
        comma = _GAP_ONLY.match(self.text, self.pos)
        if not frame.after and comma and self.text.startswith(",", comma.end()):
            self.pos = comma.end() + 1

    def _read_brace_for_key(self, frame: _Frame) -> None:
        """Read a brace where a key should be: a doubled one, or one before it is missing."""
        parent = self._frames[-2] if len(self._frames) > 1 else None
        if frame.members and parent is not None and parent.members is None:
            self.note(self.pos, self.pos, "}", "fix_mismatched_closer", lossless=False)
            self._pop()
            return
        frame.extra += 1
        self.note(self.pos, self.pos + 1, "", "collapse_doubled_braces")
        self.pos += 1

    def _read_bare_key(self, frame: _Frame) -> None:
        text = self.text
        pos = self.pos
        match = _BARE_KEY.match(text, pos)
        if match is None:
            self.note(pos, pos + 1, "", "drop_stray_text", lossless=False)
            self.pos = pos + 1
            return
        end = match.end()
        key = match[0]
        if _QUOTE_COLON.match(text, end):
            self.note(pos, end + 1, f'"{key}"', "add_missing_opening_quote")
            self.pos = end + 1
            self._end_key(frame, key, is_quoted=True)
            return
        self.pos = end
        if COLON.match(text, end):
            self.note(pos, end, f'"{key}"', "quote_key")
        self._end_key(frame, key, is_quoted=False)

    def _end_key(self, frame: _Frame, key: str, *, is_quoted: bool) -> None:
        """Read what is between a key and its value."""
        text = self.text
        end = self.pos
        match = COLON.match(text, end)
        if match is None and self._skip_gap():
            match = COLON.match(text, self.pos)
        if match:
            if match[0].strip() != ":":
                self.note(*match.span(), ":", "replace_colon")
            frame.key = key
            self.has_evidence = True
            self.pos = match.end()
            return
        is_next = self._skip_gap() and text[self.pos] not in ",;}])"
        is_value = is_next and (is_quoted or text[self.pos] in "\"'{[" or text[self.pos] in DIGITS)
        if is_next and KEY_AHEAD.match(text, self.pos):
            is_value = False
        if is_value:
            self.note(end, self.pos, ":", "add_missing_colon")
            frame.key = key
            return
        if is_next and not is_quoted:
            self.note(frame.key_start, end, "", "drop_stray_text", lossless=False)
            return
        value: Any = key if is_quoted else self._make_scalar(key)
        frame.loose.append((frame.key_start, end, value))
        frame.after = True

    # Values

    def _read_value(self) -> None:
        text = self.text
        pos = self.pos
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.key is None:
            self._begin_entry(frame)
        mark = text[pos]
        if mark in _CLOSER_OF:
            self._open(mark)
        elif mark == "\\" and (match := _ESCAPED_STRING.match(text, pos)):
            self.pos = match.end()
            self._add(self._take_content(pos, match.start(1), match.end(1), "replace_quotes"))
        elif mark in patterns.QUOTES:
            self._add_string("")
        elif prefix := _STRING_PREFIX.match(text, pos):
            self._add_string(prefix[0])
        elif frame is not None and frame.members is None and (dots := _DOTS.match(text, pos)):
            self._drop_dots(frame, dots)
        elif match := _CALL.match(text, pos):
            self.note(*match.span(), "(", "unwrap_call_value", lossless=False)
            self.pos = match.end() - 1
            self._open("(")
        elif mark == "/" and (match := _REGEX.match(text, pos)):
            self.pos = match.end()
            self._add_bare(match[0], pos, is_quote=False)
        elif (mark in DIGITS or mark in "+-.") and self._read_number(frame):
            return
        else:
            self._read_bare(frame)

    def _is_open(self) -> bool:
        """Tell whether the end of the text would cut what is being read."""
        return not self.ended or any(not frame.is_implied for frame in self._frames)

    def _find_role(self) -> Role:
        if not self._frames:
            return "top"
        return "object" if self._frames[-1].members is not None else "array"

    def _add_string(self, prefix: str) -> None:
        start = self.pos
        value = self._read_string(self._find_role(), prefix)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and frame.closer == "]" and not self.plain:
            colon = COLON.match(self.text, self.pos)
            if colon and colon[1] == ":":
                self._read_key_in_array(frame, start, value, colon.end())
                return
        self._add(value)

    def _read_key_in_array(self, frame: _Frame, start: int, key: str, end: int) -> None:
        """Read a key where an item should be: a bracket is missing before it, or is another."""
        parent = self._frames[-2] if len(self._frames) > 1 else None
        if not frame.items and not frame.loose:
            frame.members = {}
            self.note(frame.start, frame.start + 1, "{", "fix_mismatched_closer", lossless=False)
        elif parent is not None and parent.members is not None and self._next_closer(end) != "]":
            self.note(start, start, "]", "fix_mismatched_closer", lossless=False)
            frame.after = True
            self._pop()
            frame = parent
        else:
            self.note(start, start, "{", "fix_mismatched_closer", lossless=False)
            frame = _Frame("}", start, is_implied=True)
            self._frames.append(frame)
        frame.key, frame.key_start = key, start
        frame.after = False
        self.pos = end

    def _next_closer(self, pos: int) -> str:
        """Return the bracket that closes what is open here, as far as one can see."""
        depth = 0
        for match in _BRACKETS.finditer(self.text, pos, pos + _AHEAD):
            self.steps.take(1, pos)
            depth += 1 if match[0] in "{[" else -1
            if depth < 0:
                return match[0]
        return ""

    def _read_string(self, role: Role, prefix: str = "") -> str:
        """Read a string, and those that are joined to it by a plus sign."""
        start = self.pos
        text = self.text
        quote = start + len(prefix)
        self.has_evidence = True
        if prefix:
            self.note(start, quote, "", "drop_string_prefix")
        value = self._read_wrapped(quote)
        if value is None:
            value = self._read_one_string(quote, role, is_raw="r" in prefix.lower())
        while role != "key" and (match := _JOINT.match(text, self.pos)):
            self.note(*match.span(), "", "join_strings")
            if match.end() >= len(text) or text[match.end()] not in patterns.QUOTES:
                self.pos = match.end()
                break
            value += self._read_one_string(match.end(), role, is_raw=False)
        return value

    def _read_wrapped(self, start: int) -> str | None:
        """Read a string in three quotes, or in two where one is meant."""
        text = self.text
        mark = text[start]
        if mark in "\"'" and text.startswith(mark * 3, start):
            end = text.find(mark * 3, start + 3)
            if end >= 0:
                self.pos = end + 3
                return self._take_content(start, start + 3, end, "replace_quotes")
        elif _DOUBLED_QUOTE.match(text, start):
            match = _DOUBLED_END.match(text, start + 2)
            if match:
                self.pos = match.end()
                return self._take_content(start, start + 2, match.end(1), "replace_quotes")
        return None

    def _read_one_string(self, start: int, role: Role, *, is_raw: bool) -> str:
        text = self.text
        closers = "".join([one.closer for one in reversed(self._frames) if not one.is_implied])
        end = find_end(text, start, role, self.steps, closers, plain=self.plain)
        self.pos = end.after
        if end.rule == "close_cut_string":
            self.cut = "inside a string" if role != "key" else "inside a key"
            written = close_string(text, start, self.steps, is_raw=is_raw)
            if role != "key":
                self.note(start, len(text), written, "close_cut_string", lossless=False)
            return self._decode_string(written, start)
        rule = end.rule or ("" if text[start] == '"' else "replace_quotes")
        return self._take_content(start, start + 1, end.content, rule, is_raw=is_raw)

    def _take_content(
        self, start: int, begin: int, end: int, rule: str, *, is_raw: bool = False
    ) -> str:
        written, rules = write_content(
            self.text[begin:end], self.steps, is_raw=is_raw, is_cut=True
        )
        for one in dict.fromkeys([rule, *rules] if rule else rules):
            self.note(start, self.pos, written, one)
        return self._decode_string(written, start)

    def _decode_string(self, written: str, start: int) -> str:
        try:
            return str(decode(written))
        except JSONTextError as error:
            raise RefusedError(error.message, start, error.code) from None

    def _read_number(self, frame: _Frame | None) -> bool:
        text = self.text
        pos = self.pos
        if self._is_open() and (half := _HALF_NUMBER.match(text, pos)):
            self.cut = "inside a number"
            number = rewrite_number(half[1], pos)
            self.note(pos, len(text), number or "", "keep_cut_value", lossless=False)
            self.pos = len(text)
            self._add(decode(number or "null"))
            return True
        grouped = _GROUPED.match(text, pos)
        if frame is not None and frame.members is not None and grouped:
            end, literal = grouped.end(), grouped[1].replace(",", "")
        else:
            match = patterns.NUMBER.match(text, pos)
            if match is None:
                return False
            end, literal = match.end(), match[0].rstrip("eE")
            if not self._has_end(frame, end):
                return False
        number = rewrite_number(literal, pos)
        if number is None:
            return False
        value = self._make_number(number, pos)
        if number != text[pos:end]:
            self.note(pos, end, number, "rewrite_number")
        self.pos = end
        self.has_evidence = True
        self._add(value)
        return True

    def _has_end(self, frame: _Frame | None, end: int) -> bool:
        text = self.text
        if _NUMBER_END.match(text, end):
            return True
        if frame is None:
            return False
        if text[end] == '"':
            return QUOTED_KEY.match(text, end) is not None
        if not text[end].isspace():
            return False
        match = _GAP_ONLY.match(text, end)
        at = match.end() if match else end
        ahead = KEY_AHEAD if frame.members is not None else VALUE_AHEAD
        return ahead.match(text, at) is not None

    def _make_number(self, number: str, pos: int) -> Any:
        try:
            return decode(number)
        except JSONTextError as error:
            if error.code == Code.NON_FINITE_NUMBER:
                return self._make_non_finite(number, pos)
            raise RefusedError(error.message, pos, error.code) from None

    def _make_non_finite(self, name: str, pos: int) -> Any:
        if self.non_finite == "refuse":
            raise RefusedError(f"the number {name[:24]} is not finite", pos, Code.NON_FINITE_NUMBER)
        is_text = self.non_finite == "text"
        self.note(pos, self.pos, name if is_text else "null", "replace_non_finite", lossless=is_text)
        return name if is_text else None

    # Text without quotes

    def _read_bare(self, frame: _Frame | None) -> None:
        text = self.text
        pos = self.pos
        end, is_quote = self._find_bare_end(frame)
        phrase = text[pos:end].rstrip()
        self.pos = end + is_quote
        if not phrase:
            self.pos = max(self.pos, pos + 1)
            self.note(pos, self.pos, "", "drop_stray_text", lossless=False)
            return
        if end >= len(text) and self._is_open():
            self._keep_cut(phrase, pos)
            return
        lowered = phrase.lower()
        if lowered in LITERALS:
            literal = LITERALS[lowered]
            self.has_evidence = True
            if literal != phrase:
                self.note(pos, end, literal, "replace_literal")
            self._add(decode(literal))
        elif lowered in NON_FINITE_WORDS:
            self._add(self._make_non_finite(NON_FINITE_WORDS[lowered], pos))
        else:
            self._add_bare(phrase, pos, is_quote=is_quote)

    def _add_bare(self, phrase: str, pos: int, *, is_quote: bool) -> None:
        value: Any = phrase
        if is_quote and phrase[0] in "0123456789-" and patterns.STRICT_NUMBER.fullmatch(phrase):
            value = self._make_number(phrase, pos)
            self.note(pos + len(phrase), self.pos, "", "drop_stray_quote")
        else:
            rule = "add_missing_opening_quote" if is_quote else "quote_bare_text"
            self.note(pos, self.pos, f'"{phrase}"', rule)
        self._add(value)

    def _keep_cut(self, phrase: str, pos: int) -> None:
        """Keep a word that the end of the text may have cut."""
        end = len(self.text)
        self.cut = "inside a word"
        names = {value for name, value in LITERALS.items() if name.startswith(phrase.lower())}
        if len(names) == 1:
            literal = names.pop()
            self.note(pos, end, literal, "complete_cut_literal", lossless=False)
            self._add(decode(literal))
        elif phrase in ("-", "+", "."):
            self.note(pos, end, "", "drop_cut_member", lossless=False)
            self._frames[-1].key = None
        else:
            self.note(pos, end, f'"{phrase}"', "keep_cut_value", lossless=False)
            self._add(phrase)

    def _find_bare_end(self, frame: _Frame | None) -> tuple[int, bool]:
        """Return where text without quotes ends, and whether a quote is there."""
        text = self.text
        start = at = self.pos
        is_object = frame is not None and frame.members is not None
        while True:
            self.steps.take(1, at)
            match = _BARE_STOP.match(text, at)
            at = match.end() if match else at
            mark = text[at : at + 1]
            if mark == "" or mark in "}]\n\r":
                break
            if frame is None and mark != '"':
                pass
            elif mark == "," or mark == ";":
                if not is_object or _AFTER_COMMA.match(text, at + 1):
                    break
                if text[start:at].strip().lower() in LITERALS:
                    break
            elif mark == '"':
                if _AFTER_QUOTE.match(text, at + 1):
                    is_inner = text.count('"', start, at) % 2
                    return (at + 1, False) if is_inner else (at, True)
                if at > start and QUOTED_KEY.match(text, at):
                    break
            elif mark in "/#":
                is_apart = at > start and text[at - 1].isspace()
                if is_apart and (mark == "#" or text[at : at + 2] in ("//", "/*")):
                    break
            elif mark == "{" and at > start and text[at + 1 : at + 2] in ('"', "'", "}"):
                break
            at += 1
        if frame is not None and frame.closer == ")":
            at = self._end_at_parenthesis(start, at)
        return at, False

    def _end_at_parenthesis(self, start: int, end: int) -> int:
        found = self.text.find(")", start, end)
        return end if found < 0 else found

    def _make_scalar(self, phrase: str) -> Any:
        lowered = phrase.lower()
        if lowered in LITERALS:
            return decode(LITERALS[lowered])
        number = rewrite_number(phrase, self.pos) if phrase[0] in "0123456789+-." else None
        return phrase if number is None else self._make_number(number, self.pos)
