r"""Regular expressions that a grammar for JSON text can take over.

The converter writes a pattern straight into the JSON string, so whatever may match a quote, a
backslash or a control character would let the model write broken JSON. Such patterns are refused,
as are those not anchored at both ends. `\d` and `\w` are written as classes.
"""

from typing import Final

__all__ = ["grammar_pattern"]

_MAX_PATTERN: Final = 1_000
_MAX_NESTING: Final = 20
_SETS: Final = {"d": "0-9", "w": "A-Za-z0-9_"}
_ESCAPABLE: Final = frozenset(".*+?()[]{}|^$-/")
_SPECIAL: Final = frozenset(".*+?()[]{}|^$")


def grammar_pattern(pattern: str) -> str | None:
    """Return the pattern as the converter reads it, or nothing when it cannot."""
    if len(pattern) > _MAX_PATTERN or len(pattern) < 2:
        return None
    if not (pattern.startswith("^") and pattern.endswith("$")) or pattern.endswith("\\$"):
        return None
    try:
        return f"^{_Scanner(pattern[1:-1]).run()}$"
    except _CannotBeSaidError:
        return None


class _CannotBeSaidError(Exception):
    pass


class _Scanner:
    """Goes through a pattern once; anything it does not know is refused."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nesting = 0

    def run(self) -> str:
        pieces: list[str] = []
        can_repeat = False
        while self._at < len(self._text):
            char = self._next()
            if char == "(":
                pieces.append(self._open_group())
                can_repeat = False
            elif char == ")":
                self._close_group()
                pieces.append(char)
                can_repeat = True
            elif char == "|":
                if not self._nesting:  # an anchor would belong to one side only
                    raise _CannotBeSaidError
                pieces.append(char)
                can_repeat = False
            elif char in "*+?{":
                if not can_repeat:
                    raise _CannotBeSaidError
                pieces.append(char if char != "{" else self._count())
                can_repeat = False
            else:
                pieces.append(self._atom(char))
                can_repeat = True
        if self._nesting:
            raise _CannotBeSaidError
        return "".join(pieces)

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _CannotBeSaidError
        self._at += 1
        return self._text[self._at - 1]

    def _open_group(self) -> str:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise _CannotBeSaidError
        if self._text.startswith("?:", self._at):
            self._at += 2
        elif self._text.startswith("?", self._at):
            raise _CannotBeSaidError
        return "(?:"

    def _close_group(self) -> None:
        self._nesting -= 1
        if self._nesting < 0:
            raise _CannotBeSaidError

    def _count(self) -> str:
        end = self._text.find("}", self._at)
        inner = self._text[self._at : end] if end >= 0 else ""
        low, _, high = inner.partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            raise _CannotBeSaidError
        if high and int(high) < int(low):
            raise _CannotBeSaidError
        self._at = end + 1
        return f"{{{inner}}}"

    def _atom(self, char: str) -> str:
        if char == "[":
            return self._class()
        if char == "\\":
            escaped = self._next()
            if escaped in _SETS:
                return f"[{_SETS[escaped]}]"
            return _literal(_unescaped(escaped))
        if char in _SPECIAL:
            raise _CannotBeSaidError
        return _literal(char)

    def _class(self) -> str:
        pieces: list[str] = []
        while (char := self._next()) != "]":
            if char == "\\":
                escaped = self._next()
                if escaped in _SETS:
                    pieces.append(_SETS[escaped])
                    continue
                char = _unescaped(escaped)
            elif char in "[^":
                raise _CannotBeSaidError
            pieces.append(self._range(char))
        if not pieces:
            raise _CannotBeSaidError
        return f"[{''.join(pieces)}]"

    def _range(self, low: str) -> str:
        following = self._text[self._at : self._at + 2]
        if len(following) < 2 or following[0] != "-" or following[1] in "]\\[":
            return _in_class(_plain(low))
        self._at += 2
        high = following[1]
        if high < low or any(low <= char <= high for char in '"\\\x7f'):
            raise _CannotBeSaidError
        return f"{_in_class(_plain(low))}-{_in_class(_plain(high))}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _unescaped(char: str) -> str:
    if char not in _ESCAPABLE:
        raise _CannotBeSaidError
    return char


def _plain(char: str) -> str:
    if char in '"\\\x7f' or char < " ":
        raise _CannotBeSaidError
    return char


def _literal(char: str) -> str:
    return f"\\{_plain(char)}" if char in _SPECIAL else _plain(char)


def _in_class(char: str) -> str:
    return f"\\{char}" if char in "]-^[" else char
