"""Python literals in text: read in one pass, without running or recursing into anything."""

import re
from typing import Any, Final, NamedTuple, cast

from .coerce_values import number_in

__all__ = ["Literal", "parse_literal"]

_MAX_DEPTH: Final = 128
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_WORD: Final = re.compile(r"[A-Za-z]++")
_NUMBER: Final = re.compile(r"-?+[0-9][0-9.eE+\-]*+")
_PLAIN: Final = {"'": re.compile(r"[^'\\\n]*+"), '"': re.compile(r'[^"\\\n]*+')}
_HEX: Final = re.compile(r"[0-9A-Fa-f]++")

_WORDS: Final[dict[str, Any]] = {
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
    "null": None,
}
_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "0": "\0",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "/": "/",
    "\n": "",
}
_HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}
_CLOSERS: Final = {"[": "]", "(": ")", "{": "}"}


class Literal(NamedTuple):
    """A value that was written as a Python literal."""

    value: Any


class _NotALiteralError(Exception):
    pass


def parse_literal(text: str) -> Literal | None:
    """Return the JSON value of a whole text that is a Python literal, or None.

    Tuples and sets become lists; `true`, `false` and `null` are taken as words too. Names, calls,
    operators, prefixed or joined strings, keys that are not strings or are given twice, and
    numbers that JSON does not know make it no literal.
    """
    try:
        return Literal(_Parser(text).run())
    except _NotALiteralError:
        return None


class _Open:
    """A container that is not closed yet."""

    __slots__ = ("closer", "elements", "has_comma", "key", "members")

    def __init__(self, opener: str) -> None:
        self.closer = _CLOSERS[opener]
        self.elements: list[Any] = []
        self.members: dict[str, Any] | None = None
        self.key: str | None = None
        self.has_comma = False

    def add(self, value: Any) -> None:
        """Take the next element, or the value of the key before."""
        if self.key is None:
            self.elements.append(value)
            return
        assert self.members is not None
        if self.key in self.members:
            raise _NotALiteralError
        self.members[self.key] = value
        self.key = None

    def close(self) -> Any:
        """Return the finished value."""
        if self.key is not None or (self.members is not None and self.elements):
            raise _NotALiteralError
        if self.closer == "}" and not self.elements:
            return self.members or {}
        if self.closer == ")" and len(self.elements) == 1 and not self.has_comma:
            return self.elements[0]
        return self.elements


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def run(self) -> Any:
        stack: list[_Open] = []
        while True:
            self._skip_space()
            char = self._text[self._at : self._at + 1]
            if char in _CLOSERS:
                self._at += 1
                stack.append(_Open(char))
                if len(stack) > _MAX_DEPTH:
                    raise _NotALiteralError
                if not self._closes(stack[-1]):
                    continue
                value: Any = stack.pop().close()
            else:
                value = self._scalar(char)
            while True:
                if not stack:
                    return self._ended(value)
                if not self._attach(stack[-1], value):
                    break
                value = stack.pop().close()

    def _attach(self, parent: _Open, value: Any) -> bool:
        """Put a value into its container; tell whether the container ended after it."""
        self._skip_space()
        if parent.closer == "}" and parent.key is None and self._take(":"):
            if not isinstance(value, str) or parent.elements:
                raise _NotALiteralError
            parent.key = value
            parent.members = {} if parent.members is None else parent.members
            return False
        parent.add(value)
        if parent.members is not None and parent.elements:
            raise _NotALiteralError
        parent.has_comma = self._take(",")
        if self._closes(parent):
            return True
        if not parent.has_comma:
            raise _NotALiteralError
        return False

    def _closes(self, container: _Open) -> bool:
        self._skip_space()
        return self._take(container.closer)

    def _ended(self, value: Any) -> Any:
        self._skip_space()
        if self._at != len(self._text):
            raise _NotALiteralError
        return value

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _take(self, char: str) -> bool:
        taken = self._text.startswith(char, self._at)
        self._at += taken
        return taken

    def _scalar(self, char: str) -> Any:
        if char in _PLAIN:
            return self._string(char)
        word = _WORD.match(self._text, self._at)
        if word is not None and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        number = _NUMBER.match(self._text, self._at)
        value = number_in(number[0]) if number else None
        if number is None or value is None:
            raise _NotALiteralError
        self._at = number.end()
        return value

    def _string(self, quote: str) -> str:
        parts: list[str] = []
        self._at += 1
        while True:
            plain = cast("re.Match[str]", _PLAIN[quote].match(self._text, self._at))
            parts.append(plain[0])
            self._at = plain.end()
            if self._take(quote):
                return "".join(parts)
            if not self._take("\\"):
                raise _NotALiteralError
            parts.append(self._escape())

    def _escape(self) -> str:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char in _ESCAPES:
            if char == "0" and self._text[self._at : self._at + 1].isdigit():
                raise _NotALiteralError
            return _ESCAPES[char]
        length = _HEX_ESCAPES.get(char)
        if length is None:
            raise _NotALiteralError
        digits = self._text[self._at : self._at + length]
        if len(digits) != length or not _HEX.fullmatch(digits):
            raise _NotALiteralError
        self._at += length
        point = int(digits, 16)
        # Half a surrogate pair is no text; pairs belong to JSON, which was tried before.
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise _NotALiteralError
        return chr(point)
