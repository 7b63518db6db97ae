"""Values that are not containers, as models write them: strings, numbers, words, bare text."""

from typing import Final

from surecall.errors import Code

from .repair_numbers import LITERALS, NON_FINITE_WORDS, is_text_in_digits, rewrite_number
from .repair_patterns import (
    BARE_TEXT,
    BARE_TEXT_END,
    BLANKS,
    KEY_AHEAD,
    LITERAL_END,
    NUMBER,
    NUMBER_TO_END,
    STRICT_NUMBER,
    VALUE_AHEAD,
    WORD,
)
from .repair_signals import CutShortError, RefusedError
from .repair_strings import Role, StringRead, read_string
from .repair_walker import OBJECTS, Walker

__all__ = ["DIGITS", "STRING_PREFIXES", "ScalarReader"]

DIGITS: Final = frozenset("0123456789")
STRING_PREFIXES: Final = frozenset(("b", "r", "u", "br", "rb"))
# The literals, and what is left of them without one of their letters.
_LIKE_LITERALS: Final = frozenset(
    word[:start] + word[end:]
    for word in LITERALS
    for start in range(len(word))
    for end in (start, start + 1)
)
_ELLIPSES: Final = ("...", "…")


class ScalarReader(Walker):
    """Reads one scalar at the place where it begins."""

    def _role(self) -> Role:
        if not self.stack:
            return "top"
        return "object" if self.stack[-1] in OBJECTS else "array"

    def _take_string(self, start: int, read: StringRead) -> None:
        self.pos = read.end
        if read.written is None:
            return
        first, *others = read.rules or ("replace_quotes",)
        self.note(start, read.end, read.written, first)
        for rule in others:
            self.note(start, read.end, read.written, rule)
        if "escape_inner_quotes" in read.rules or "add_missing_closing_quote" in read.rules:
            self._is_quote_moved = True

    def _refuse_moved_quotes(self, pos: int) -> None:
        if self._is_quote_moved:
            raise RefusedError("it cannot be told which quotes begin and end a string", pos)

    def _read_number(self, pos: int) -> None:
        text = self.text
        match = STRICT_NUMBER.match(text, pos) or NUMBER.match(text, pos)
        self._refuse_ellipsis(pos)
        if (self.stack or match is None) and NUMBER_TO_END.match(text, pos):
            raise CutShortError("member", pos, "inside a number")
        if match is None:
            self._read_word(pos)
            return
        literal = match[0]
        end = match.end()
        number = literal if match.re is STRICT_NUMBER else rewrite_number(literal, pos)
        if number is None or not (LITERAL_END.match(text, end) or self._has_entry_after(end)):
            self._read_bare_text(pos)
        else:
            self._take_number(pos, end, literal, number)

    def _has_entry_after(self, end: int) -> bool:
        """Tell whether blanks and then another entry follow: a comma was left out."""
        match = BLANKS.match(self.text, end)
        if match is None:
            return False
        is_object = bool(self.stack) and self.stack[-1] in OBJECTS
        return bool((KEY_AHEAD if is_object else VALUE_AHEAD).match(self.text, match.end()))

    def _take_number(self, pos: int, end: int, literal: str, number: str) -> None:
        self.has_evidence = True
        if number != literal:
            is_grouped = self._comma == pos - 1 and self.text[pos - 2] in DIGITS
            if is_grouped and literal[0] == "0" and len(literal) == 3:
                raise RefusedError("a comma between digits: one number, or two?", pos)
            self.note(pos, end, number, "rewrite_number")
        if len(number) > 300 or "e" in number or "E" in number:
            self._refuse_overflow(pos, end, number)
        self._done(end)

    def _refuse_overflow(self, pos: int, end: int, number: str) -> None:
        if number.lstrip("-").isdigit():
            return
        value = float(number)
        if value - value != 0:
            name = "-Infinity" if value < 0 else "Infinity"
            if self.edits and self.edits[-1][0] == pos:
                self.edits.pop()
            self._take_non_finite(pos, end, name)

    def _take_non_finite(self, pos: int, end: int, name: str) -> None:
        if self.non_finite == "refuse":
            shown = self.text[pos : min(end, pos + 24)]
            raise RefusedError(f"the number {shown} is not finite", pos, Code.NON_FINITE_NUMBER)
        is_text = self.non_finite == "text"
        after = f'"{name}"' if is_text else "null"
        self.note(pos, end, after, "replace_non_finite", lossless=is_text)
        self.has_evidence = True

    def _read_word(self, pos: int) -> None:
        text = self.text
        match = WORD.match(text, pos)
        if match is None:
            self._refuse_ellipsis(pos)
            raise RefusedError("something else where a value should be", pos)
        word = match[0]
        end = match.end()
        lowered = word.lower()
        if lowered in STRING_PREFIXES and self._is_string_prefix(end):
            self.has_evidence = True
            self._take_string(pos, read_string(text, end, self._role(), self.steps, word))
            self._done(self.pos)
            return
        literal = LITERALS.get(lowered)
        name = None if literal else NON_FINITE_WORDS.get(lowered)
        if (literal or name) and (LITERAL_END.match(text, end) or self._has_entry_after(end)):
            if end >= len(text) and self.stack:
                raise CutShortError("word", pos, "after a literal")
            if name:
                self._take_non_finite(pos, end, name)
            elif literal and literal != word:
                self.note(pos, end, literal, "replace_literal")
            self.has_evidence = True
            self._done(end)
        elif end >= len(text):
            raise CutShortError("word", pos, "inside a word")
        else:
            self._read_bare_text(pos)

    def _is_string_prefix(self, end: int) -> bool:
        if self.text[end : end + 1] not in {'"', "'"}:
            return False
        is_object = bool(self.stack) and self.stack[-1] in OBJECTS
        return not BARE_TEXT_END[is_object].match(self.text, end)

    def _read_bare_text(self, pos: int) -> None:
        """Take a plain word or phrase without quotes for text, if it is clear where it ends."""
        text = self.text
        match = BARE_TEXT.match(text, pos)
        if match is None or not self.stack:
            raise RefusedError("something else where a value should be", pos)
        end = match.end()
        phrase = match[0].rstrip(" \t")
        if end >= len(text):
            raise CutShortError("member", pos, "inside text without quotes")
        follows = BARE_TEXT_END[self.stack[-1] in OBJECTS].match(text, end)
        if follows is None or "..." in phrase or _is_like_literal(phrase):
            raise RefusedError("text without quotes that does not end clearly", pos)
        if phrase[0] in DIGITS and not is_text_in_digits(phrase):
            raise RefusedError("neither a number nor text", pos)
        after = f'"{phrase}"'
        if text[end] in "\"'":
            if self.stack[-1] not in OBJECTS:
                raise RefusedError("it cannot be told where this string begins", pos)
            self._refuse_moved_quotes(pos)
            self.note(pos, end + 1, after, "add_missing_opening_quote")
            self._done(end + 1)
        else:
            end = pos + len(phrase)
            self.note(pos, end, after, "quote_bare_text")
            self._done(end)

    def _refuse_ellipsis(self, pos: int) -> None:
        if self.text.startswith(_ELLIPSES, pos):
            raise RefusedError("an ellipsis stands for something that was left out", pos)


def _is_like_literal(phrase: str) -> bool:
    """Tell whether bare text is a literal, or may be one that was misspelt."""
    return phrase.replace(" ", "").lower() in _LIKE_LITERALS
