"""Says in plain words why JSON text was refused, and where."""

import re
from typing import Final, Literal

import msgspec

from surecall.errors import Code, JSONTextError

from .surrogates import find_lone_surrogate

__all__ = ["MAX_DEPTH", "Source"]

MAX_DEPTH: Final = 128
"""How many containers may be nested in one another."""

_SNIPPET_CHARACTERS: Final = 24

# Finding the place costs Python time for every token: it is looked for only so far.
_SEARCHED_CHARACTERS: Final = 1 << 18

_BRACKETS: Final = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
_NUMBERS: Final = re.compile(r'\\.|"|-?(?:[0-9][0-9.eE+-]*+|Infinity|NaN)', re.DOTALL)

_WORDS: Final = (
    ("Expecting value", "where a value should be"),
    ("Expecting property name", "where a key in double quotes should be"),
    ("Expecting ':'", "where a ':' should be"),
    ("Expecting ','", "where a ',' or a closing bracket should be"),
    ("Extra data", "after the end of the value"),
)


class Source(msgspec.Struct, frozen=True):
    """Text under diagnosis, and how a place in it is told to the caller."""

    text: str
    """What was given, as text, without its byte order mark."""
    unit: Literal["byte", "character"]
    """What positions count: bytes when bytes were given."""
    had_mark: bool

    def malformed(self, message: str, index: int) -> JSONTextError:
        """Return the error for text that is not JSON, given the standard library's finding."""
        if not self.text.strip(" \t\n\r"):
            what = "only whitespace" if self.text else "empty"
            return JSONTextError(
                Code.INVALID_JSON,
                f"the text is {what}.",
                position=self._position(0),
                hint="Send one JSON value.",
            )
        index = min(index, len(self.text))
        hint = "Send strict JSON: keys and text in double quotes, no comments, no spare commas."
        return self._refusal(Code.INVALID_JSON, self._words(message, index), index, hint)

    def too_deep(self, end: int | None = None) -> JSONTextError | None:
        """Return an error when containers nest too deep before an index, if that can be seen."""
        depth = 0
        in_string = False
        end = _SEARCHED_CHARACTERS if end is None else min(end, _SEARCHED_CHARACTERS)
        for match in _BRACKETS.finditer(self.text, 0, end):
            mark = match[0]
            if mark == '"':
                in_string = not in_string
            elif in_string or mark[0] == "\\":
                continue
            elif mark in "[{":
                depth += 1
                if depth > MAX_DEPTH:
                    message = f"more than {MAX_DEPTH} containers are nested in one another"
                    hint = "Send a flatter value."
                    return self._refusal(Code.JSON_TOO_DEEP, message, match.start(), hint)
            elif depth:
                depth -= 1
        return None

    def lone_surrogate(self) -> JSONTextError:
        """Return the error for half of a surrogate pair."""
        message = "half of a surrogate pair is not a character"
        hint = "Send the whole character, or its two escapes next to each other."
        index = find_lone_surrogate(self.text, _SEARCHED_CHARACTERS)
        return self._refusal(Code.LONE_SURROGATE, message, index, hint)

    def number_too_long(self, literal: str) -> JSONTextError:
        """Return the error for an integer with too many digits."""
        message = f"an integer of {len(literal.lstrip('-'))} digits is too long to be kept exactly"
        index = self._index_of_number(literal)
        return self._refusal(Code.NUMBER_TOO_LONG, message, index, "Send it as a string.")

    def non_finite(self, literal: str) -> JSONTextError:
        """Return the error for a number that is no number or too large for a float."""
        shown = literal if len(literal) <= _SNIPPET_CHARACTERS else literal[:20] + "…"
        hint = "Send null, a string, or a number that a 64-bit float can hold."
        index = self._index_of_number(literal)
        return self._refusal(
            Code.NON_FINITE_NUMBER, f"the number {shown} is not finite", index, hint
        )

    def _refusal(
        self, code: Code, message: str, index: int | None, hint: str | None = None
    ) -> JSONTextError:
        if index is None:
            return JSONTextError(code, f"{message}.", hint=hint)
        position = self._position(index)
        message = f"{message}, at {self.unit} {position} near {self._snippet(index)}."
        return JSONTextError(code, message, position=position, hint=hint)

    def _index_of_number(self, literal: str) -> int | None:
        in_string = False
        for match in _NUMBERS.finditer(self.text, 0, _SEARCHED_CHARACTERS):
            if match[0] == '"':
                in_string = not in_string
            elif not in_string and self.text.startswith(literal, match.start()):
                return match.start()
        return None

    def _position(self, index: int) -> int:
        if self.unit == "character":
            return index + self.had_mark
        return len(self.text[:index].encode("utf-8")) + 3 * self.had_mark

    def _snippet(self, index: int) -> str:
        start = max(0, index - _SNIPPET_CHARACTERS)
        end = index + _SNIPPET_CHARACTERS
        before = "…" if start else ""
        after = "…" if end < len(self.text) else ""
        return repr(before + self.text[start:end] + after)

    def _words(self, message: str, index: int) -> str:
        at_end = index >= len(self.text)
        found = "the text ends" if at_end else f"found {self.text[index]!r}"
        for start, where in _WORDS:
            if message.startswith(start):
                return f"{found} {where}"
        if message.startswith("Unterminated string"):
            return "a string starts here and never ends"
        if message.startswith("Invalid control character") and not at_end:
            return f"a raw control character U+{ord(self.text[index]):04X} inside a string"
        if message.startswith("Invalid \\"):
            return "an escape inside a string that JSON does not know"
        if message.startswith("Illegal trailing comma"):
            return "a comma with no value after it"
        return message[:1].lower() + message[1:]
