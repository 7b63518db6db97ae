"""A whole text, and what it says about every place in it: each is found once, when first asked."""

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from . import phrases

_MAX_LINE_HEAD: Final = 100
_MAX_LINE_TAIL: Final = 500
_ECHO: Final = re.compile(rf"<(/?)({'|'.join(phrases.ECHOES)}|examples?)\b", re.IGNORECASE)
_OTHER_PARTY: Final = re.compile(
    r"^[*#\[ ]{0,4}+(?:User|Human|Customer|Client|Q)\b[*\]]{0,3}+:", re.MULTILINE
)
_ASSIGNED: Final = re.compile(
    r"^[ \t]*+([^\W\d]\w*+)[ \t]*+=(?!=)|\bfor ([^\W\d]\w*+) in\b", re.MULTILINE
)


class Fence(Struct, frozen=True):
    """A block of code: where it and its body begin and end, and its language."""

    start: int
    body: int
    body_end: int
    end: int
    language: str


class Span(NamedTuple):
    """A part of a text."""

    start: int
    end: int


class Layout:
    """The text in which candidates for calls were found.

    Args:
        text: The whole text.
        candidates: Where they stand, in order.
    """

    def __init__(self, text: str, candidates: list[Span]) -> None:
        self.text = text
        self.candidates = candidates
        self._programs: dict[int, bool] = {}
        self._first: dict[re.Pattern[str], int] = {}

    def fence_at(self, at: int) -> Fence | None:
        """Return the block of code in whose body a place lies."""
        index = bisect_right(self._fences, at, key=lambda fence: fence.body) - 1
        fence = self._fences[index] if index >= 0 else None
        return fence if fence is not None and at < fence.body_end else None

    def line_of(self, start: int, end: int) -> tuple[str, str]:
        """Return what stands before and behind a place on its line, without a long middle."""
        begun = self.text.rfind("\n", 0, start) + 1
        over = self.text.find("\n", end)
        over = len(self.text) if over < 0 else over
        tail = start - _MAX_LINE_TAIL
        if tail > begun + _MAX_LINE_HEAD:
            head = self.text[begun : begun + _MAX_LINE_HEAD]
            before = f"{head} {self.text[tail:start]}"
        else:
            before = self.text[begun:start]
        return before, self.text[end : min(over, end + _MAX_LINE_TAIL)]

    def is_in_echo(self, at: int) -> bool:
        """Tell whether a place lies in an echoed result, an example or another party's words."""
        return _is_in(self._echoes, at) or _is_in(self._other_parties, at)

    def is_program(self, fence: Fence) -> bool:
        """Tell whether more than calls stands in a block of code."""
        if fence.start not in self._programs:
            body = self._blank(fence.body, fence.body_end)
            self._programs[fence.start] = bool(phrases.PROGRAM.search(body))
        return self._programs[fence.start]

    def has_text_outside(self, start: int, end: int) -> bool:
        """Tell whether the text has more than a place and the marks around it."""
        return bool(self._words) and (self._words.start < start or self._words.end > end)

    def has_text_before(self, at: int) -> bool:
        """Tell whether anything but white space stands before a place."""
        return len(self.text) - len(self.text.lstrip()) < at

    @cached_property
    def assigned_names(self) -> frozenset[str]:
        """The names that a text gives a value, as in `name = …` and `for name in …`."""
        return frozenset(it[1] or it[2] for it in _ASSIGNED.finditer(self.text))

    def first(self, pattern: re.Pattern[str]) -> int:
        """Return where a pattern is found first, or a place behind the end of the text."""
        if pattern not in self._first:
            found = pattern.search(self.text)
            self._first[pattern] = found.start() if found else len(self.text) + 1
        return self._first[pattern]

    def paragraph_of(self, start: int, end: int, limit: int) -> tuple[str, str]:
        """Return the lines above and below a place, up to an empty one, without its candidates."""
        above = self.text[max(0, start - limit) : start].rpartition("\n\n")[2]
        below = self.text[end : end + limit].partition("\n\n")[0]
        return self._blank(start - len(above), start), self._blank(end, end + len(below))

    def _blank(self, start: int, end: int) -> str:
        """Return a part of the text with a mark for every candidate in it."""
        parts: list[str] = []
        here = start
        index = bisect_right(self.candidates, start, key=lambda span: span.end)
        for begun, over in self.candidates[index:]:
            if begun >= end:
                break
            parts.append(self.text[here:begun])
            here = over
        parts.append(self.text[here:end])
        return "_".join(parts)

    @cached_property
    def _words(self) -> Span:
        around = f"{phrases.AROUND}{phrases.AFTER_AROUND}\n"
        start = len(self.text) - len(self.text.lstrip(around))
        return Span(start, len(self.text.rstrip(around)))

    @cached_property
    def _fences(self) -> list[Fence]:
        return find_fences(self.text)

    @cached_property
    def _echoes(self) -> list[Span]:
        spans: list[Span] = []
        opened: re.Match[str] | None = None
        for found in _ECHO.finditer(self.text):
            if opened is not None and not found[1]:
                spans.append(Span(opened.end(), found.end()))
            if not found[1]:
                opened = found
            elif opened is not None and found[2] == opened[2]:
                spans.append(Span(opened.end(), found.start()))
                opened = None
        if opened is not None:
            spans.append(Span(opened.end(), len(self.text)))
        return spans

    @cached_property
    def _other_parties(self) -> list[Span]:
        spans: list[Span] = []
        for said in _OTHER_PARTY.finditer(self.text):
            if spans and said.end() < spans[-1].end:
                continue
            end = self.text.find("\n\n", said.end())
            spans.append(Span(said.end(), len(self.text) if end < 0 else end))
        return spans


def _is_in(spans: list[Span], at: int) -> bool:
    index = bisect_right(spans, at, key=lambda span: span.start) - 1
    return index >= 0 and at <= spans[index].end


def find_fences(text: str) -> list[Fence]:
    """Return the fenced blocks of a text; one that is not closed goes to its end."""
    fences: list[Fence] = []
    opened: re.Match[str] | None = None
    for line in phrases.FENCE_LINE.finditer(text):
        if opened is None:
            opened = line
        elif line[1].startswith(opened[1]) and not line[2].strip():
            fences.append(_fence(opened, line.start(), line.end()))
            opened = None
    if opened is not None:
        fences.append(_fence(opened, len(text), len(text)))
    return fences


def _fence(opened: re.Match[str], body_end: int, end: int) -> Fence:
    language = opened[2].strip().lower()
    return Fence(opened.start(), opened.end() + 1, body_end, end, language)
