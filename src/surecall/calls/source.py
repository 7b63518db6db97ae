"""Text that may still be arriving, and questions whose answers cannot change later."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from surecall.base.limits import MAX_JSON_DEPTH
from surecall.schema import property_schema, type_text_value
from surecall.text import ValueScanner

from .names import ToolNames

_T = TypeVar("_T")
_SPACES = " \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*+")
_TO_BRACKET = re.compile(r"(?:[^\"'{}\[\]]++|\"(?:[^\"\\]++|\\.)*+\")*+", re.DOTALL)
MAX_QUESTIONS = 4_000
"""Questions a reader may ask about one opener; a call with 100 short arguments takes 1,300."""
MAX_MARKS = 200_000
"""Brackets and quotes of JSON that are passed over for one opener."""
MARKS_PER_LOOK = 100
"""They are counted in batches of so many."""
_CHARACTERS_PER_MARK = 32
"""So many characters between them count as one more."""
_SCANNED_CHARACTERS = 1 << 16
_LONGER_THAN_LITERALS = 256
_TOO_DEEP = -1
_IN_DOUBT = -2
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{0,512}+")


class NeedMore(Exception):  # noqa: N818 - a signal, not an error
    """The text so far does not decide; more of it may come."""


class TooMuchWork(Exception):  # noqa: N818 - a signal, not an error
    """A reader asked more questions about one opener than any real call needs."""


@lru_cache(maxsize=256)
def _any_of(literals: tuple[str, ...] | frozenset[str]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Return the literals, the longest first, and a pattern that finds them."""
    ordered = tuple(sorted(literals, key=len, reverse=True))
    alternatives = "|".join(re.escape(literal) for literal in ordered)
    return ordered, re.compile(alternatives)


@lru_cache(maxsize=16)
def _run_of(character: str) -> re.Pattern[str]:
    return re.compile(re.escape(character) + "*+")


def spend_nothing(_marks: int) -> None:
    """Count nothing: the text is read once, see `Source.spend_on_marks`."""


class Source:
    """The text of a reply, as much of it as is there, and the tools it may call."""

    __slots__ = ("_known", "_marks", "_places", "_questions", "final", "text", "tools")

    def __init__(self, text: str, tools: ToolNames, *, final: bool) -> None:
        self.text = text
        self.tools = tools
        self.final = final
        self._questions = 0
        self._marks = 0
        self._known: dict[tuple[object, int], tuple[Any, int]] = {}
        self._places: dict[str | tuple[str, ...] | frozenset[str], tuple[int, int]] = {}

    def begin(self) -> None:
        """Start counting the questions anew, for the next opener."""
        self._questions = 0
        self._marks = 0

    @property
    def questions(self) -> int:
        """How many questions the reader of this opener has asked."""
        return self._questions

    @property
    def marks(self) -> int:
        """How many brackets and quotes of JSON were passed over for it."""
        return self._marks

    def once(self, read: Callable[["Source", int], _T], at: int) -> _T:
        """Return what a reader finds here; asked again it is not read again, but counts as much.

        What follows each of many openers is often the same: values in a row, for instance.
        """
        known = self._known.get((read, at))
        if known is None:
            before = self._questions
            found = read(self, at)
            self._known[read, at] = found, self._questions - before
            return found
        self._questions += known[1]
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork
        return known[0]

    def spend(self, questions: int) -> None:
        """Count work that was done without asking."""
        self._questions += questions
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork

    def spend_on_marks(self, marks: int) -> None:
        """Count brackets and quotes of JSON that were passed over one by one."""
        self._marks += marks
        if self._marks > MAX_MARKS:
            raise TooMuchWork

    def spend_on_text(self, characters: int) -> None:
        """Count what is between two brackets or quotes, when it is long."""
        if characters >= _CHARACTERS_PER_MARK:
            self.spend_on_marks(characters // _CHARACTERS_PER_MARK)

    # These are asked most often by far, so each counts for itself what it asks.

    def _count(self) -> None:
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork

    def at_end(self, at: int) -> bool:
        """Tell whether the text ends here for good."""
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork
        if at < len(self.text):
            return False
        if not self.final:
            raise NeedMore
        return True

    def char(self, at: int) -> str:
        """Return the character here, or an empty text at the end."""
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork
        if at < len(self.text):
            return self.text[at]
        if not self.final:
            raise NeedMore
        return ""

    def starts(self, literal: str, at: int) -> bool:
        """Tell whether the literal stands here."""
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork
        if self.text.startswith(literal, at):
            return True
        if not self.final and literal.startswith(self.text[at : at + len(literal)]):
            raise NeedMore
        return False

    def starts_any(self, literals: Iterable[str], at: int) -> str:
        """Return the longest of the literals that stands here, or an empty text."""
        known = literals if isinstance(literals, (tuple, frozenset)) else tuple(literals)
        ordered, pattern = _any_of(known)
        if self.final or (ordered and at + len(ordered[0]) <= len(self.text)):
            match = pattern.match(self.text, at)
            found = match.group() if match else ""
            self._questions += ordered.index(found) + 1 if found else len(ordered)
            if self._questions > MAX_QUESTIONS:
                raise TooMuchWork
            return found
        for literal in ordered:
            if self.starts(literal, at):
                return literal
        return ""

    def find(self, literal: str, at: int) -> int:
        """Return where the literal stands next, or -1."""
        self._count()
        found = self._known_place(literal, at)
        if found is None:
            found = self.text.find(literal, at)
            self._places[literal] = at, found
        if found < 0 and not self.final:
            raise NeedMore
        return found

    def find_any(self, literals: Iterable[str], at: int) -> tuple[int, str]:
        """Return where the first of the literals stands next, and which; -1 for none.

        None of the literals may be part of another one other than as its beginning.
        """
        self._count()
        literals = literals if isinstance(literals, frozenset) else tuple(literals)
        found = self._known_place(literals, at)
        if found is None:
            match = _any_of(literals)[1].search(self.text, at)
            found = -1 if match is None else match.start()
            self._places[literals] = at, found
        if found < 0:
            if not self.final:
                raise NeedMore
            return -1, ""
        return found, self.starts_any(literals, found)

    def _known_place(self, what: str | tuple[str, ...] | frozenset[str], at: int) -> int | None:
        """Return what was found before, if looking from here on would find the same.

        Each of many openers may ask for the same literal, which is far away or nowhere.
        """
        start, found = self._places.get(what, (-1, -1))
        return found if 0 <= start <= at and (found < 0 or at <= found) else None

    def run_end(self, character: str, at: int) -> int:
        """Return where a run of one character that begins here ends."""
        match = _run_of(character).match(self.text, at)
        end = match.end() if match else at
        self.at_end(end)
        return end

    def skip_space(self, at: int) -> int:
        """Return where the next character that is no white space stands."""
        self._questions += 2  # where it stands, and whether the text ends there
        if self._questions > MAX_QUESTIONS:
            raise TooMuchWork
        text = self.text
        if at < len(text) and text[at] not in _SPACES:
            return at
        match = _SPACE.match(text, at)
        end = match.end() if match else at
        if end >= len(text) and not self.final:
            raise NeedMore
        return end

    def read_name(self, at: int) -> tuple[str, int]:
        """Return the name that stands here and where it ends; names may hold `. : / -`."""
        self._count()
        match = _NAME.match(self.text, at)
        end = match.end() if match else at
        self.at_end(end)
        return self.text[at:end], end

    def value_end(self, at: int) -> int | None:
        """Return where the JSON value that begins here ends; `None` when it is cut off."""
        self._count()
        is_bracket = self.text.startswith(("{", "["), at)
        end = self._bracket_end(at) if is_bracket else _IN_DOUBT
        if end == _IN_DOUBT:
            end = self._scanned_end(at)
        if end == _TOO_DEEP:
            self.spend(2 * MAX_JSON_DEPTH)
            return None
        if end is None and not self.final:
            raise NeedMore
        return end

    def plain_end(self, at: int) -> int | None:
        """Return where an object or array ends that has no string in single quotes, if it does."""
        end = self._bracket_end(at)
        return None if end is not None and end < 0 else end

    def _bracket_end(self, at: int) -> int | None:
        """Return where an object or array ends, `None` when it is open, or why it is unknown."""
        text, here, depth, marks = self.text, at, 0, 0
        while (match := _TO_BRACKET.match(text, here)) and match.end() < len(text):
            self.spend_on_text(match.end() - here)
            here = match.end() + 1
            mark = text[here - 1]
            if mark in "{[":
                depth += 1
                if depth > MAX_JSON_DEPTH:
                    return _TOO_DEEP
            elif mark in "}]":
                depth -= 1
                if depth == 0:
                    return here
            elif mark == '"':
                break  # a string that does not end
            else:  # an apostrophe: a quote or not, the scanner knows
                return _IN_DOUBT
            marks += 1
            if marks == MARKS_PER_LOOK:
                marks = 0
                self.spend_on_marks(MARKS_PER_LOOK)
        self.spend_on_text(len(text) - here)
        return None

    def _scanned_end(self, at: int) -> int | None:
        scanner = ValueScanner()
        for start in range(at, len(self.text), _SCANNED_CHARACTERS):
            seen = scanner.marks
            end = scanner.feed(self.text[start : start + _SCANNED_CHARACTERS])
            self.spend_on_marks(scanner.marks - seen)
            if end is not None:
                return at + end
        return None

    def begun_at_end(self, literals: Iterable[str], at: int) -> str:
        """Return what stands here, if it begins one of the literals and the text ends with it."""
        if not self.final:
            return ""
        tail = self.text[at : at + _LONGER_THAN_LITERALS]
        return tail if tail and any(literal.startswith(tail) for literal in literals) else ""

    def line_end(self, at: int) -> int:
        """Return where this line ends (the place of its newline, or the end of the text)."""
        found = self.find("\n", at)
        return len(self.text) if found < 0 else found

    def rest_is_blank(self, at: int) -> bool:
        """Tell whether nothing but white space follows."""
        end = self.skip_space(at)
        return self.at_end(end)

    def schema_of(self, name: str, key: str) -> dict[str, Any] | None:
        """Return the schema of a parameter of a tool, when both are known."""
        parameters = self.tools.parameters(name)
        return None if parameters is None else property_schema(parameters, key)

    def typed(self, name: str, values: Mapping[str, str]) -> dict[str, Any]:
        """Return text values as the tool's schema types them."""
        return {
            key: type_text_value(text, self.schema_of(name, key)) for key, text in values.items()
        }
