"""Where JSON ends inside text, and what is left of calls when it was cut off."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, NamedTuple

from .source import MARKS_PER_LOOK, NeedMore, Source

_STRING: Final = r"\"(?:[^\"\\]++|\\.)*+\""
_SINGLE: Final = re.compile(r"'(?:[^'\\]++|\\.)*+'", re.DOTALL)
_BRACKETS: Final = _STRING + r"|[{}\[\]\"']"
_BRACKET: Final = re.compile(_BRACKETS, re.DOTALL)
_TOKEN: Final = re.compile(_STRING + r"|[{}\[\]:,\"']", re.DOTALL)
_BLANKS: Final = " \t\r\n"
_MAX_STOPS_INSIDE: Final = 128


class Extent(NamedTuple):
    """Where a JSON value ends, and what ended it."""

    end: int
    by: Literal["bracket", "doubt", "stop", "text"]
    """Its own last bracket, a marker that cannot be part of it, or the end of the text; `doubt`
    when so many markers stand in what seems to be strings that a quote must be missing."""
    first_stop: int = -1
    """Where a marker stands in what seems to be a string, when no bracket or stop ended it."""


def find_extent(source: Source, at: int, stops: Iterable[str] = ()) -> Extent:
    """Return where the object or array that begins here ends.

    A stop outside of a string ends it, whatever brackets are missing; one inside is text. When the
    strings never end, either the text was cut or a quote is missing: the caller decides.
    """
    tokens, stop = _patterns(tuple(stops))
    plain = source.plain_end(at)
    if plain is not None and (stop is None or not stop.search(source.text, at, plain)):
        return Extent(plain, "bracket")
    text, here, depth, first_stop, stops_inside, marks = source.text, at, 0, -1, 0, 0
    next_stop = -1
    while stops_inside <= _MAX_STOPS_INSIDE and (match := tokens.search(text, here)):
        before = here
        start, here = match.span()
        source.spend_on_text(here - before)
        kind = text[start]
        marks += 1
        if marks % MARKS_PER_LOOK == 0:
            source.spend_on_marks(2 * MARKS_PER_LOOK)  # each is a search, and more for a string
        if match.lastgroup == "stop":
            return Extent(start, "stop")
        if kind in "\"'":
            end = _string_end(text, start, here)
            over = len(text) if end is None else end
            next_stop = _next_start(stop, text, start, next_stop)
            inside = _starts(stop, text, start, over) if next_stop < over else []
            stops_inside += len(inside)
            first_stop = inside[0] if inside and first_stop < 0 else first_stop
            if end is None:
                source.spend_on_text(len(text) - start)
                break
            here = end
        elif kind in "{[":
            depth += 1
        elif kind in "}]":
            depth -= 1
            if depth <= 0:
                return Extent(here, "bracket")
    if stops_inside > _MAX_STOPS_INSIDE:
        return Extent(first_stop, "doubt", first_stop)
    if not source.final:
        raise NeedMore
    return Extent(len(text), "text", first_stop)


class Record(NamedTuple):
    """An object that has the name of a call."""

    start: int
    end: int | None
    """`None` when the text ended before it did."""
    name: str
    """The text of its name, with the quotes."""
    arguments: str | None
    """The text of its arguments, as far as they go."""


class _Frame:
    """An object or array that is open, and what it said so far."""

    __slots__ = (
        "arguments_at",
        "arguments_end",
        "key",
        "name",
        "name_key",
        "outermost",
        "start",
    )

    def __init__(self, start: int, *, outermost: bool) -> None:
        self.start = start
        self.outermost = outermost
        self.key: str | None = None
        self.name = ""
        self.name_key: str | None = None
        self.arguments_at = -1
        self.arguments_end: int | None = None

    def take_name(self, name: str) -> None:
        """Keep the first name; with two under one key, none is certain."""
        if self.name_key is None:
            self.name, self.name_key = name, self.key
        elif self.name_key == self.key and name != self.name:
            self.name = ""

    def record(self, text: str, end: int | None) -> Record:
        arguments = None
        if self.arguments_at >= 0:
            arguments = text[self.arguments_at : self.arguments_end].strip()
        return Record(self.start, end, self.name, arguments)


class Keys(NamedTuple):
    """What the keys of calls mean."""

    names: frozenset[str]
    arguments: frozenset[str]
    wrappers: frozenset[str]


def scan_records(text: str, keys: Keys, spend: Callable[[int], None]) -> list[Record]:
    """Return the objects that have the name of a call, as far as they go; none inside another.

    Args:
        text: JSON, as far as it can be told.
        keys: What the keys of calls mean.
        spend: Receives how many brackets, quotes and commas were passed over.
    """
    found: list[Record] = []
    stack: list[_Frame] = []
    here, word, tokens, marks = 0, "", _TOKEN, 0
    while match := tokens.search(text, here):
        start, here = match.span()
        kind = text[start]
        frame = stack[-1] if stack else None
        marks += 1
        if marks % MARKS_PER_LOOK == 0:
            spend(MARKS_PER_LOOK)
        if kind in "\"'":
            end = _string_end(text, start, here)
            if end is None:
                break
            word, here = text[start:end], end
            if frame and frame.key in keys.names:
                frame.take_name(word)
        elif kind in "{[":
            outermost = frame is None or (
                frame.outermost and (frame.key is None or frame.key in keys.wrappers)
            )
            stack.append(_Frame(start, outermost=outermost))
            word, tokens = "", _TOKEN if outermost else _BRACKET
        elif frame and kind == ":":
            frame.key, word = word[1:-1], ""
            if frame.key in keys.arguments and frame.arguments_at < 0:
                frame.arguments_at = here
        elif frame:
            if frame.key in keys.arguments and frame.arguments_end is None:
                frame.arguments_end = start
            frame.key, word = None, ""
            if kind != ",":
                stack.pop()
                _close(found, frame, text, here)
                tokens = _TOKEN if not stack or stack[-1].outermost else _BRACKET
    found.extend(frame.record(text, None) for frame in stack if frame.outermost and frame.name)
    return found


def _close(found: list[Record], frame: _Frame, text: str, end: int) -> None:
    if not frame.outermost or not frame.name:
        return
    while found and found[-1].start > frame.start:
        found.pop()
    found.append(frame.record(text, end))


def _string_end(text: str, start: int, end: int) -> int | None:
    """Return where a string ends; a single quote inside a word begins none."""
    if end - start > 1:
        return end
    if text[start] == '"':
        return None
    before = start - 1
    while before >= 0 and text[before] in _BLANKS:
        before -= 1
    if before >= 0 and text[before] not in "{[(,:=":
        return end
    single = _SINGLE.match(text, start)
    return single.end() if single else None


@lru_cache(maxsize=64)
def _patterns(stops: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    if not stops:
        return _BRACKET, None
    either = "|".join(re.escape(stop) for stop in sorted(stops, key=len, reverse=True))
    return re.compile(f"(?P<stop>{either})|{_BRACKETS}", re.DOTALL), re.compile(either)


def _next_start(stop: re.Pattern[str] | None, text: str, at: int, known: int) -> int:
    """Return where the next stop begins, if that is not known from an earlier look."""
    if known >= at:
        return known
    found = None if stop is None else stop.search(text, at)
    return len(text) if found is None else found.start()


def _starts(stop: re.Pattern[str] | None, text: str, start: int, end: int) -> list[int]:
    if stop is None:
        return []
    found = stop.finditer(text, start, end)
    return [match.start() for match in islice(found, _MAX_STOPS_INSIDE + 1)]
