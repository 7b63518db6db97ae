"""Where in the visible text a call stands, and whether it is only quoted there."""

import re
from collections import deque
from typing import Final

from .formats import Found
from .mentions import AROUND_CALLS, ECHOES, has_words
from .source import Source

_MAX_LINE: Final = 200
_MAX_LINES: Final = 16
_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "‘": "’",
    "«": "»",
    "»": "«",
    "‹": "›",
    "「": "」",
    "『": "』",
    "《": "》",
}
_PAIRED: Final = ('"', "“", "„", "«", "»", "‹", "「", "『", "《")
"""Those of them that are no apostrophes, so that they tell where a quotation began."""
_MAX_TAIL: Final = 4
_ENDS: Final = (".", "!", "。", "！")
_FINISHED: Final = (*_ENDS, ":", "：")
_PUNCTUATION: Final = (",", ".", ";", ":", "!", "?", ")")
_ITEM_MARKS: Final = ("-", "*", "+", "•", "|", "#", ">", "/", "$")
_OPENED: Final = re.compile(r"(?:^|[\s(\[:=])([\"'“„‘«»‹]|``?)\Z|([「『《])\Z")
"""A quotation mark, or ticks of inline code, behind which a quotation begins and none ends."""
_COMMENT: Final = ("<!--", "-->")
_USER: Final = re.compile(r"[*#\[ ]{0,4}+(?:User|Human)\b[*\]]{0,3}+:")
_ASSISTANT: Final = re.compile(r"[*#\[ ]{0,4}+(?:Assistant|Model|AI)\b[*\]]{0,3}+:[* ]{0,3}+")
_OPEN_TAG: Final = re.compile(r"<([A-Za-z_][\w.:-]*+)(?:\s[^<>]*+)?>")
_VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta"})
_EXAMPLES: Final = frozenset({"example", "examples", _COMMENT[0], *ECHOES})
_QUOTING_TAG: Final = re.compile(
    rf"<(/?)(?:examples?|{'|'.join(map(re.escape, ECHOES))})\b[^<>]{{0,100}}+>", re.IGNORECASE
)
_SPACES: Final = " \t\u00a0\u202f"


class Surroundings:
    """The line, the element and the turn in which the visible text has arrived.

    A call in quotation marks, in a quoted line, in the transcript of a dialogue or in an example
    is quoted. One without markers of its own is also no call as a part of a larger document, or
    as the subject of a sentence.
    """

    __slots__ = ("_element", "_line", "_lines", "_tail", "_user_spoke")

    def __init__(self) -> None:
        self._line = ""
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
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
        self._lines.append(line)
        may_close = _COMMENT[1] in line or len(self._line) >= _MAX_LINE
        if _USER.match(line):
            self._user_spoke = True
        if self._element:
            if self._element == _COMMENT[0]:
                self._element = "" if may_close else self._element
            elif line.endswith(f"</{self._element}>"):
                self._element = ""
        elif line.startswith(_COMMENT[0]):
            self._element = "" if may_close else _COMMENT[0]
        elif (tag := _OPEN_TAG.fullmatch(line)) and not line.endswith("/>"):
            name = tag[1]
            is_plain = name.lower() not in _VOID and not AROUND_CALLS.search(name)
            if is_plain or name.lower() in ECHOES:
                self._element = name

    def quote(self, source: Source, at: int, found: Found) -> bool:
        """Tell whether the calls that were found next are only quoted."""
        line = self._line.lstrip()
        if line.startswith("> ") or self._is_in_transcript():
            return True
        if self._element.lower() in _EXAMPLES or line.rfind(_COMMENT[0]) > line.rfind(_COMMENT[1]):
            return True
        if line and (_USER.match(line) or self._is_in_example_on_line()):
            return True
        opened = _OPENED.search(self._tail)
        if opened is not None:
            closing = _QUOTES.get(opened[opened.lastindex or 0])
            if closing is None or source.at_end(found.end) or source.starts(closing, found.end):
                return True
        if self._ends_quotation(source, found.end):
            return True
        if found.grade == "marked":
            return False
        if self._element and source.char(at) == "<":
            return True
        if found.grade == "bare":  # in an item of a list, a row of a table, or a comment of code
            return line[:1] in _ITEM_MARKS or line[:1].isdigit()
        if source.char(at) == "<" and _begins_sentence(line):
            return True
        return goes_on_as_sentence(source, found.end)

    def _is_in_example_on_line(self) -> bool:
        """Tell whether an element that quotes what it holds was opened on the line."""
        opened = None
        for tag in _QUOTING_TAG.finditer(self._line):
            opened = None if tag[1] else tag
        return opened is not None

    def stands_alone(self) -> bool:
        """Tell whether no words stand before what comes next, or a finished sentence above it."""
        if has_words(self._line):
            return False
        lead = next(filter(has_words, reversed(self._lines)), "")
        return not lead or lead.rstrip(" *_").endswith(_ENDS)

    def mention(self, source: Source, end: int) -> bool:
        """Tell whether the marker that ends here stands alone between quotation marks."""
        opened = _OPENED.search(self._tail)
        closing = _QUOTES.get(opened[opened.lastindex or 0]) if opened else None
        return closing is not None and source.starts(closing, end)

    @property
    def is_in_quotation(self) -> bool:
        """Whether a quotation was begun on the line and has not ended."""
        return bool(self._open_marks())

    def _ends_quotation(self, source: Source, at: int) -> bool:
        """Tell whether a quotation that began with other words on the line ends here."""
        marks = self._open_marks()
        if not marks or source.at_end(at):
            return False
        while not source.at_end(at) and source.char(at) in _SPACES:
            at += 1
        if not source.at_end(at) and source.char(at) in _PUNCTUATION:
            at += 1
        return not source.at_end(at) and bool(source.starts_any([_QUOTES[it] for it in marks], at))

    def _open_marks(self) -> list[str]:
        return [mark for mark in _PAIRED if mark in self._line and self._is_open(mark)]

    def _is_open(self, mark: str) -> bool:
        line, closing = self._line, _QUOTES[mark]
        if mark == closing:
            return len(line) < _MAX_LINE and line.count(mark) % 2 == 1
        # In another language it may be the mark that closes.
        closes = any(_QUOTES[other] == mark and other in line for other in _PAIRED)
        return not closes and line.rfind(mark) > line.rfind(closing)

    def _is_in_transcript(self) -> bool:
        if not self._user_spoke:
            return False
        line = self._line.strip()
        return bool(
            _ASSISTANT.match(line)
            if line
            else self._lines and _ASSISTANT.fullmatch(self._lines[-1])
        )


def _begins_sentence(line: str) -> bool:
    """Tell whether words before a call on its line are no sentence of their own."""
    return has_words(line) and not line.rstrip(" *_").endswith(_FINISHED)


def goes_on_as_sentence(source: Source, at: int) -> bool:
    """Tell whether a small letter follows on the same line, as in `ping[ARGS]{} is a call`."""
    if source.char(at) in _PUNCTUATION:
        at += 1
    if source.char(at) != " ":
        return False
    following = source.char(at + 1)
    return following.isascii() and following.islower()
