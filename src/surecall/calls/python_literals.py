"""The literals of Python: strings of every kind, numbers, and the words JSON has for some."""

import math
from collections.abc import Callable
from typing import Any, Final

from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt, clip
from surecall.text import repair_surrogates

from .formats import text_receipt

_SPACE: Final = lazy_pattern(r"[ \t\r\n\f]*+")
_NAME: Final = lazy_pattern(r"[^\W\d][\w-]*+(?:\.[^\W\d][\w-]*+)*+")
_KEYWORD: Final = lazy_pattern(r"[^\W\d][\w-]*+")
_STRING: Final = lazy_pattern(r"([rRuUfF]{0,2})(\"\"\"|'''|\"|')")
_STRING_STUB: Final = lazy_pattern(r"[rRuUfF]{1,2}\Z")
_WORD: Final = lazy_pattern(r"[+-]?+[\w.]++")
_EXPONENT: Final = lazy_pattern(r"[+-]?+[\d.][\d_.]*+[eE]\Z")
_DIGITS: Final = lazy_pattern(r"[+-]\d*+")
_INTEGER: Final = lazy_pattern(r"[+-]?+\d++(?:_\d++)*+")
_OTHER_BASE: Final = lazy_pattern(r"([+-]?+)0(?:[xX][0-9a-fA-F]++|[oO][0-7]++|[bB][01]++)")
_FLOAT: Final = lazy_pattern(
    r"[+-]?+(?:\d++(?:_\d++)*+\.?+(?:\d++(?:_\d++)*+)?+|\.\d++(?:_\d++)*+)(?:[eE][+-]?+\d++)?+"
)
_WORDS: Final = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None,
}  # fmt: skip
_MAX_DIGITS: Final = 4000
_MAX_RECEIPTS: Final = 16
_STEPS_PER_LOOK: Final = 64
_MARKS_PER_STEP: Final = 3
_SIMPLE: Final = {
    "\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b",
    "f": "\f", "v": "\v", "\n": "",
}  # fmt: skip
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_HEX_DIGITS: Final = lazy_pattern(r"[0-9a-fA-F]*+")
_OCTAL: Final = lazy_pattern(r"[0-7]{1,3}")
_STOPS: Final = {quote: lazy_pattern(rf"[\\{quote}]") for quote in "'\""}


class CutShort(Exception):  # noqa: N818 - a signal, not an error
    """The text ended inside what was being read."""


class NotLiteral(Exception):  # noqa: N818 - a signal, not an error
    """What stands here is not a call with literal arguments."""


class LiteralReader:
    """Reads names and literals one after the other."""

    def __init__(
        self, text: str, at: int, spend: Callable[[int], None], *, has_comments: bool = False
    ) -> None:
        self.text = text
        self._spend = spend
        self._steps = 0
        self.has_comments = has_comments
        self.at: int = at
        self.receipts: list[Receipt] = []
        self.padded: dict[str, str] = {}

    def note(self, rule: str, before: str, after: Any, why: str, *, lossless: bool = True) -> None:
        """Add a receipt, up to a limit."""
        if len(self.receipts) < _MAX_RECEIPTS:
            after = clip(after) if isinstance(after, str) else after
            self.receipts.append(text_receipt(rule, before, after, why, lossless=lossless))

    def count_step(self) -> None:
        """Count one value, comma, bracket or escape; see `Source.spend_on_marks`."""
        self._steps += 1
        if self._steps % _STEPS_PER_LOOK == 0:
            self._spend(_STEPS_PER_LOOK * _MARKS_PER_STEP)

    def peek(self) -> str:
        """Return the next character that is no white space."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at == len(self.text):
                raise CutShort
            if self.text[self.at] != "#" or not self.has_comments:
                return self.text[self.at]
            self.skip_comment()

    def char_after(self) -> str:
        """Return the character after the current one."""
        if self.at + 1 >= len(self.text):
            raise CutShort
        return self.text[self.at + 1]

    def skip_comment(self) -> None:
        """Move to the end of this line."""
        found = self.text.find("\n", self.at)
        self.at = len(self.text) if found < 0 else found

    def match_name(self) -> str:
        """Return the dotted name that stands here, without moving."""
        match = _NAME.match(self.text, self.at)
        return match.group() if match else ""

    def read_name(self) -> str:
        """Return the dotted name that stands here and move past it."""
        name = self.match_name()
        end = self.at + len(name)
        if end == len(self.text) or (self.text[end] == "." and end + 1 == len(self.text)):
            raise CutShort
        if not name:
            raise NotLiteral
        self.at = end
        return name

    def read_keyword(self) -> str:
        """Return the keyword and move past its `=`; an empty text when none stands here."""
        match = _KEYWORD.match(self.text, self.at)
        if match is None:
            return ""
        space = _SPACE.match(self.text, match.end())
        end = space.end() if space else match.end()
        if end == len(self.text):
            raise CutShort
        if self.text[end] != "=":
            return ""
        if end + 1 == len(self.text):
            raise CutShort
        if self.text[end + 1] == "=":
            raise NotLiteral
        self.at = end + 1
        return match.group()

    def read_scalar(self) -> Any:
        """Return the string, number or word that stands here and move past it."""
        if _STRING.match(self.text, self.at):
            return self._read_strings()
        if _STRING_STUB.match(self.text, self.at):
            raise CutShort
        match = _WORD.match(self.text, self.at)
        if match is None:
            if self.at + 1 == len(self.text) and self.text[self.at] in "+-":
                raise CutShort
            raise NotLiteral
        end = match.end()
        if _EXPONENT.match(match.group()) and (digits := _DIGITS.match(self.text, end)):
            end = digits.end()
        if end == len(self.text):
            raise CutShort
        word = self.text[self.at : end]
        value = _WORDS[word] if word in _WORDS else _number(word)
        if word in ("true", "false", "null"):
            self.note("json_word", word, value, "a JSON word among Python literals")
        self.at = end
        return value

    def padded_text(self, begun: int) -> str:
        """Return the number that was just read as it was written, if it had leading zeros."""
        word = self.text[begun : self.at]
        if len(word) < 2 or not word.isdecimal() or word[0] != "0":
            return ""
        why = "a whole number with leading zeros"
        self.note("leading_zeros", word, int(word), why, lossless=False)
        return word

    # strings

    def _read_strings(self) -> str:
        """Read a string, and those that follow it directly, as one."""
        parts = [self._read_string()]
        while self.peek() in "'\"":
            parts.append(self._read_string())
        text = "".join(parts)
        mended = repair_surrogates(text)
        if mended.count("\ufffd") > text.count("\ufffd"):
            raise NotLiteral
        return mended

    def _read_string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise NotLiteral
        prefix, quotes = match.group(1).lower(), match.group(2)
        begun, self.at = self.at, match.end()
        parts: list[str] = []
        stops = _STOPS[quotes[0]]
        while True:
            stop = stops.search(self.text, self.at)
            if stop is None:
                raise CutShort
            self.count_step()
            parts.append(self.text[self.at : stop.start()])
            self.at = stop.start()
            if stop.group() == "\\":
                parts.append(self._read_escape(raw="r" in prefix))
            elif self._closes(quotes):
                break
            else:
                parts.append(quotes[0])
                self.at += 1
        self.at += len(quotes)
        text = "".join(parts)
        if len(quotes) == 1 and "\n" in self.text[begun : self.at]:
            self.note("raw_newline", self.text[begun : self.at], text, "a newline in a string")
        return _without_placeholders(text) if "f" in prefix else text

    def _closes(self, quotes: str) -> bool:
        """Tell whether the quote here ends the string."""
        if self.text.startswith(quotes, self.at):
            return True
        if len(self.text) - self.at < 3:
            raise CutShort
        return False

    def _read_escape(self, *, raw: bool) -> str:
        begun = self.at
        if begun + 1 == len(self.text):
            raise CutShort
        char = self.text[begun + 1]
        self.at = begun + 2
        if raw:
            return "\\" + char
        if char in _SIMPLE:
            return _SIMPLE[char]
        if char in _HEX:
            return self._read_hex(begun, _HEX[char])
        octal = _OCTAL.match(self.text, begun + 1)
        if octal is None:
            return "\\" + char
        self.at = octal.end()
        return chr(int(octal.group(), 8))

    def _read_hex(self, begun: int, digits: int) -> str:
        end = self.at + digits
        match = _HEX_DIGITS.match(self.text, self.at, end)
        found = match.group() if match else ""
        if len(found) < digits:
            if self.at + len(found) == len(self.text):
                raise CutShort
            raise NotLiteral
        code = int(found, 16)
        if code > 0x10FFFF:
            raise NotLiteral
        self.at = end
        return chr(code)


def _without_placeholders(text: str) -> str:
    plain = text.replace("{{", "").replace("}}", "")
    if "{" in plain or "}" in plain:
        raise NotLiteral
    return text.replace("{{", "{").replace("}}", "}")


def _number(word: str) -> int | float:
    if len(word) > _MAX_DIGITS:
        raise NotLiteral
    if _INTEGER.fullmatch(word):
        return int(word.replace("_", ""))
    if _OTHER_BASE.fullmatch(word):
        return int(word, 0)
    if not _FLOAT.fullmatch(word):
        raise NotLiteral
    value = float(word.replace("_", ""))
    if not math.isfinite(value):
        raise NotLiteral
    return value
