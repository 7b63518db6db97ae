"""Reads one damaged JSON value from text and notes what must change to make it strict JSON.

The text is walked once, without recursion. Whatever is strict JSON already is passed over by one
regular expression; only what is not is looked at piece by piece. The outcome is a list of edits:
the text with its edits applied is strict JSON, and each edit becomes a receipt.
"""

import re
from itertools import islice
from typing import Final

from .repair_brackets import BracketReader
from .repair_patterns import (
    BARE_KEY,
    BARE_KEY_AHEAD,
    EXTRA_COLON,
    EXTRA_COMMAS,
    FENCE,
    ITEMS,
    KEY_AHEAD,
    LOOSE_ITEM,
    LOOSE_MEMBER,
    MEMBERS,
    PLAIN_ITEM,
    PLAIN_ITEMS,
    QUOTES,
    VALUE_AHEAD,
)
from .repair_scalars import DIGITS, STRING_PREFIXES
from .repair_signals import CutShortError, RefusedError
from .repair_strings import read_string
from .repair_walker import MAX_RECEIPTS_PER_RULE, OBJECTS

__all__ = ["Mender"]

_CHARACTERS_PER_STEP: Final = 256
_PLAIN_STARTS: Final = frozenset("{[\"'")
_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}


class Mender(BracketReader):
    """Reads one value; an instance is used for one value only."""

    def read(self, start: int) -> int:
        """Read the value that begins at `start` and return where it ends."""
        self.pos = start
        self._read_value()
        return self._read_on()

    def resume(self, position: int, stack: list[str]) -> int:
        """Do the same from a place on before which all is strict JSON; see `find_resumption`."""
        self.stack = stack
        self.is_committed = self.has_evidence = True
        self.pos = position
        mark = self.text[position]
        if mark == '"':
            raise CutShortError("string", position, "inside a string")
        if mark == ",":
            self._comma = position
            self.pos += 1
        else:
            self._read_value()
        return self._read_on()

    def _read_on(self) -> int:
        stack = self.stack
        steps = self.steps
        while stack:
            steps.left -= 1
            if steps.left < 0:
                steps.take(1, self.pos)
            if self._is_after:
                self._read_separator()
            elif stack[-1] in OBJECTS:
                self._read_member()
            else:
                self._read_item()
        return self.pos

    def _read_separator(self) -> None:
        text = self.text
        pos = self.pos
        mark = text[pos : pos + 1]
        if mark != "," and mark != "}" and mark != "]":
            pos = self._gap()
            mark = text[pos]
        if mark == "," or mark == ";":
            if mark == ";":
                self.note(pos, pos + 1, ",", "replace_comma")
            self._comma = pos
            self._is_after = False
            self.pos = pos + 1
            if self.stack[-1] == ")":
                self._groups[-1] = (self._groups[-1][0], True)
        elif mark in "}])":
            self._close(mark)
        elif self.is_fenced and FENCE.match(text, pos):
            raise CutShortError("after_entry", pos, "before all brackets are closed")
        else:
            self._add_comma(pos)

    def _add_comma(self, pos: int) -> None:
        text = self.text
        if self.stack[-1] in OBJECTS:
            is_next = KEY_AHEAD.match(text, pos) is not None
        else:
            is_next = VALUE_AHEAD.match(text, pos) is not None
            if is_next and text[pos] in "0123456789." and self._may_be_one_number(pos):
                raise RefusedError("a blank between digits: one number, or two?", pos)
        is_apart = pos > self._done_at or text[pos] in "{["
        if not (is_next and is_apart):
            raise RefusedError("something else where ',' or a closing bracket should be", pos)
        self.note(pos, pos, ",", "add_missing_comma")
        self._is_after = False
        if self.stack[-1] == ")":
            self._groups[-1] = (self._groups[-1][0], True)

    def _may_be_one_number(self, pos: int) -> bool:
        between = self.text[self._done_at : pos]
        return self.text[self._done_at - 1] in "0123456789." and "\n" not in between

    def _drop_extra_commas(self, pos: int) -> None:
        match = EXTRA_COMMAS.match(self.text, pos)
        assert match is not None
        self.note(pos, match.end(), " ", "drop_extra_comma")
        self.pos = match.end()

    # Entries

    def _read_member(self) -> None:
        text = self.text
        match = MEMBERS.match(text, self.pos)
        if match:
            self.is_committed = self.has_evidence = True
            self._go_on(match.end())
            return
        match = LOOSE_MEMBER.match(text, self.pos)
        if match:
            self._take_loose_member(match)
            return
        pos = self._gap()
        mark = text[pos]
        if mark in "}])":
            self._close(mark)
        elif mark in ",;":
            self._drop_extra_commas(pos)
        else:
            self._entry = pos
            is_quoted = self._read_key(pos, mark)
            self._read_colon(is_quoted)
            self.is_committed = True
            self._read_value()

    def _take_loose_member(self, match: re.Match[str]) -> None:
        """Take a key and its colon, with the value when that is simple."""
        self.is_committed = True
        self._entry = self.pos
        bare, key = match.group("bare", "key")
        if bare is not None:
            start, end = match.span("bare")
            self.edits.append((start, end, f'"{bare}"', "quote_key", True))
        else:
            self.has_evidence = True
            if key is not None:
                start, end = match.span("key")
                self.edits.append((start - 1, end + 1, f'"{key}"', "replace_quotes", True))
        kind = match.lastgroup
        if kind == "value" or kind == "word" or kind == "text":
            self._take_loose_value(match, kind)
        else:
            self.pos = match.end()
            self._read_value()

    def _take_loose_value(self, match: re.Match[str], kind: str) -> None:
        self.has_evidence = True
        if kind == "word":
            start, end = match.span(kind)
            self.edits.append((start, end, _LITERALS[match[kind]], "replace_literal", True))
        elif kind == "text":
            start, end = match.span(kind)
            self.edits.append((start - 1, end + 1, f'"{match[kind]}"', "replace_quotes", True))
        if self.stack[-1] == ")":
            self._done(match.end())
        else:
            self._go_on(match.end())

    def _read_item(self) -> None:
        match = ITEMS.match(self.text, self.pos)
        if match:
            self.has_evidence = True
            self._done(match.end())
            return
        match = PLAIN_ITEMS.match(self.text, self.pos) if self.stack[-1] == "]" else None
        if match:
            self._take_plain_items(match)
            return
        match = LOOSE_ITEM.match(self.text, self.pos)
        if match:
            self._take_loose_value(match, match.lastgroup or "")
            return
        pos = self._gap()
        mark = self.text[pos]
        if mark in "}])":
            self._close(mark)
        elif mark in ",;":
            self._drop_extra_commas(pos)
        else:
            self._entry = pos
            self._read_value()
            self.is_committed |= self.has_evidence

    def _take_plain_items(self, match: re.Match[str]) -> None:
        """Take plain strings in single quotes, and the commas behind them.

        The first are noted one by one, as many as there may be receipts, the others together.
        """
        text = self.text
        start, end = match.span()
        self._comma = text.rindex(",", start, end)
        self._done_at = text.rindex("'", start, self._comma) + 1
        first = islice(PLAIN_ITEM.finditer(text, start, end), MAX_RECEIPTS_PER_RULE)
        for item in first:
            self.note(*item.span(), f'"{item[1]}"', "replace_quotes")
        noted = self.edits[-1][1]
        if noted < self._done_at:
            others = text[noted : self._done_at].replace("'", '"')
            self.note(noted, self._done_at, others, "replace_quotes")
        self.steps.take(len(match[0]) // _CHARACTERS_PER_STEP, start)
        self.has_evidence = True
        self._is_after = False
        self.pos = end

    def _read_key(self, pos: int, mark: str) -> bool:
        """Read a key and tell whether it has quotes."""
        text = self.text
        if mark in QUOTES:
            self._take_string(pos, read_string(text, pos, "key", self.steps))
            return True
        match = BARE_KEY.match(text, pos)
        if match is None:
            self._refuse_ellipsis(pos)
            raise RefusedError("something else where a key should be", pos)
        end = match.end()
        ahead = BARE_KEY_AHEAD.match(text, end)
        if ahead is None:
            if end >= len(text.rstrip()):
                raise CutShortError("member", pos, "inside a key")
            if text[end] in "\"'" and match[0].lower() in STRING_PREFIXES:
                self._take_string(pos, read_string(text, end, "key", self.steps, match[0]))
                return True
            raise RefusedError("a key without ':'", pos)
        if text[end] in "\"'”’":
            self.note(pos, end + 1, f'"{match[0]}"', "add_missing_opening_quote")
            self._refuse_moved_quotes(pos)
            end += 1
        else:
            self.note(pos, end, f'"{match[0]}"', "quote_key")
        self.pos = end
        return False

    def _read_colon(self, is_quoted: bool) -> None:
        text = self.text
        try:
            pos = self._gap()
        except CutShortError as cut:
            raise CutShortError("member", cut.start, "after a key") from None
        mark = text[pos]
        if mark == ":":
            end = pos + 1
            if text.startswith("=", end):
                self.note(pos, end + 1, ":", "replace_colon")
                end += 1
        elif mark == "=":
            end = pos + 2 if text.startswith("=>", pos) else pos + 1
            self.note(pos, end, ":", "replace_colon")
        elif is_quoted:
            end = pos
            self.note(pos, pos, ":", "add_missing_colon")
        else:
            raise RefusedError("a key without ':'", pos)
        self.pos = end
        self._drop_extra_colon()

    def _drop_extra_colon(self) -> None:
        match = EXTRA_COLON.match(self.text, self.pos)
        if match:
            self.note(match.end() - 1, match.end(), " ", "drop_extra_colon")
            self.pos = match.end()

    # Values

    def _gap_before_value(self) -> int:
        try:
            return self._gap()
        except CutShortError as cut:
            kind = "member" if self.stack and self.stack[-1] in OBJECTS else "entry"
            raise CutShortError(kind, cut.start, "where a value should be") from None

    def _read_value(self) -> None:
        text = self.text
        pos = self.pos
        if text[pos : pos + 1] not in _PLAIN_STARTS:
            pos = self._gap_before_value()
        mark = text[pos]
        if mark in "{[(":
            if self.stack and self.stack[-1] not in OBJECTS:
                self.has_evidence = True
            self._open(mark, pos)
        elif mark in QUOTES:
            self.has_evidence = True
            self._take_string(pos, read_string(text, pos, self._role(), self.steps))
            self._done(self.pos)
        elif mark in DIGITS or mark in "+-.":
            self._read_number(pos)
        else:
            self._read_word(pos)
