"""Where in the visible text a call stands, and whether it is only quoted there."""

import re
from typing import Final

from .base import Found
from .source import Source

__all__ = ["Surroundings"]

_MAX_LINE: Final = 200
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
_MAX_TAIL: Final = 4
_OPENED: Final = re.compile(r"(?:^|[\s(\[:])([\"'“‘«]|``?)\Z")
"""A quotation mark, or ticks of inline code, behind which a quotation begins and none ends."""
_QUOTING_LINES: Final = ("> ", "<!--")
_USER: Final = re.compile(r"[*#\[ ]{0,4}+(?:User|Human)\b[*\]]{0,3}+:")
_ASSISTANT: Final = re.compile(r"[*#\[ ]{0,4}+(?:Assistant|Model|AI)\b[*\]]{0,3}+:[* ]{0,3}+")
_OPEN_TAG: Final = re.compile(r"<([A-Za-z_][\w.:-]*+)(?:\s[^<>]*+)?>")
_VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta"})
_AROUND_CALLS: Final = re.compile(
    "tool|func|call|action|invoke|use|exec|answer|response|assistant", re.IGNORECASE
)
_EXAMPLES: Final = frozenset({"example", "examples"})


class Surroundings:
    """The line, the element and the turn in which the visible text has arrived.

    A call in quotation marks, in a quoted line, in the transcript of a dialogue or in an example
    is quoted. One without markers of its own is also no call as a part of a larger document, or
    as the subject of a sentence.
    """

    __slots__ = ("_element", "_line", "_previous", "_tail", "_user_spoke")

    def __init__(self) -> None:
        self._line = ""
        self._previous = ""
        self._tail = ""
        self._element = ""
        self._user_spoke = False

    def add(self, text: str, *, is_code: bool = False) -> None:
        """Take the next visible text."""
        if not text:
            return
        self._tail = (self._tail + text[-_MAX_TAIL:])[-_MAX_TAIL:]
        first, *lines = text.split("\n")
        self._line = (self._line + first)[:_MAX_LINE]
        for line in lines:
            if not is_code:
                self._end_line(self._line.strip())
            self._line = line[:_MAX_LINE]

    def end_call(self) -> None:
        """Take note that a call stands behind the visible text so far."""
        self._tail = ""

    def _end_line(self, line: str) -> None:
        if not line:
            return
        self._previous = line
        if _USER.match(line):
            self._user_spoke = True
        if self._element:
            if line.endswith(f"</{self._element}>"):
                self._element = ""
        elif (tag := _OPEN_TAG.fullmatch(line)) and not line.endswith("/>"):
            name = tag[1]
            if name.lower() not in _VOID and not _AROUND_CALLS.search(name):
                self._element = name

    def quote(self, source: Source, at: int, found: Found) -> bool:
        """Tell whether the calls that were found next are only quoted."""
        if self._line.lstrip().startswith(_QUOTING_LINES) or self._is_in_transcript():
            return True
        if self._element.lower() in _EXAMPLES:
            return True
        opened = _OPENED.search(self._tail)
        if opened is not None:
            closing = _QUOTES.get(opened[1])
            if closing is None or source.at_end(found.end) or source.starts(closing, found.end):
                return True
        if found.grade == "marked":
            return False
        if self._element and source.char(at) == "<":
            return True
        return found.grade == "damaged" and _goes_on_as_sentence(source, found.end)

    def _is_in_transcript(self) -> bool:
        if not self._user_spoke:
            return False
        line = self._line.strip()
        return bool(_ASSISTANT.match(line) if line else _ASSISTANT.fullmatch(self._previous))


def _goes_on_as_sentence(source: Source, at: int) -> bool:
    """Tell whether a small letter follows on the same line, as in `ping[ARGS]{} is a call`."""
    if source.char(at) != " ":
        return False
    following = source.char(at + 1)
    return following.isascii() and following.islower()
