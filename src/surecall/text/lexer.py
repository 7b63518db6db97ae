"""Finds where a JSON value ends, in text that arrives in pieces.

Brackets are counted and strings are passed over; nothing is checked beyond that, so that damaged
JSON has an extent too. A string is in double quotes, or, where a value or key may begin, in single
quotes. A number or word has an end only when something follows it, or the text is said to be over.
"""

import re
from typing import Final, Literal, TypeAlias

ScanState: TypeAlias = Literal["before", "inside", "complete"]
"""Where a scan of JSON text ended."""

_START: Final = re.compile(r"[^\s\ufeff]")
_MARK: Final = re.compile(r"[\"'{}\[\]]")
_IN_STRING: Final = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in "\"'"}
_SCALAR_END: Final = re.compile(r"[\s,:;{}\[\]()\"'`<]")
_BEFORE_QUOTE: Final = frozenset("{[(,:=")
# An apostrophe after more blanks than this begins a string wherever it is.
_LOOK_BACK: Final = 64


class ValueScanner:
    """Takes text in pieces and reports when the first JSON value in it is complete."""

    def __init__(self) -> None:
        self.state: ScanState = "before"
        """`before` the value, `inside` it, or `complete`."""
        self.depth = 0
        """How many brackets are open."""
        self.marks = 0
        """How many brackets and quotes were looked at one by one."""
        self._end: int | None = None
        self._seen = 0
        self._quote = ""
        self._is_escaped = False
        self._is_scalar = False
        self._last = ","

    def feed(self, text: str, start: int = 0) -> int | None:
        """Take more text; return where the value ends, counted over all text fed, or None.

        What is before `start` is counted and not looked at.
        """
        if self.state == "complete":
            return self._end
        end: int | None = start
        if self.state == "before":
            end = self._begin(text, start)
        while end is not None and self.state == "inside":
            if self._quote:
                end = self._in_string(text, end)
            elif self._is_scalar:
                end = self._in_scalar(text, end)
            else:
                end = self._in_container(text, end)
        tail = text[-_LOOK_BACK:].rstrip()
        if tail:
            self._last = tail[-1]
        self._seen += len(text)
        return self._end

    def close(self) -> int | None:
        """Say that no text follows; return where the value ends, or None when it is still open."""
        if self.state == "inside" and self._is_scalar:
            self._finish(self._seen)
        return self._end

    def _begin(self, text: str, position: int) -> int | None:
        match = _START.search(text, position)
        if match is None:
            return None
        self.state = "inside"
        mark = match[0]
        if mark in _IN_STRING:
            self._quote = mark
            return match.end()
        self._is_scalar = mark not in "{["
        return match.start()

    def _in_string(self, text: str, position: int) -> int | None:
        if self._is_escaped:
            if position >= len(text):
                return None
            self._is_escaped = False
            position += 1
        match = _IN_STRING[self._quote].match(text, position)
        position = match.end() if match else position
        if position >= len(text):
            return None
        self._is_escaped = text[position] == "\\"  # the last character: what it escapes will come
        if self._is_escaped:
            return None
        self._quote = ""
        if self.depth == 0:
            self._finish(self._seen + position + 1)
        return position + 1

    def _in_scalar(self, text: str, position: int) -> int | None:
        match = _SCALAR_END.search(text, position)
        if match is None:
            return None
        self._finish(self._seen + match.start())
        return match.start()

    def _in_container(self, text: str, position: int) -> int | None:
        match = _MARK.search(text, position)
        if match is None:
            return None
        mark = match[0]
        self.marks += 1
        if mark == '"' or (mark == "'" and self._may_begin_string(text, match.start())):
            self._quote = mark
        elif mark in "{[":
            self.depth += 1
        elif mark != "'":
            self.depth -= 1
            if self.depth <= 0:
                self._finish(self._seen + match.end())
        return match.end()

    def _may_begin_string(self, text: str, position: int) -> bool:
        """Tell an opening quote from an apostrophe by what is before it."""
        if position and not (nearest := text[position - 1]).isspace():
            return nearest in _BEFORE_QUOTE
        start = max(0, position - _LOOK_BACK)
        before = text[start:position].rstrip()
        if before:
            return before[-1] in _BEFORE_QUOTE
        return start > 0 or self._last in _BEFORE_QUOTE

    def _finish(self, end: int) -> None:
        self.state = "complete"
        self.depth = 0
        self._end = end


def scan_value_end(text: str, start: int = 0) -> int | None:
    """Return where the JSON value that begins at `start` ends, or None while it is open."""
    return ValueScanner().feed(text, start)
