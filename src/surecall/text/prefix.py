"""The beginning of a JSON object: whether text in pieces is one, and how it goes on."""

import re
from collections.abc import Callable
from typing import Any, Final, cast

from .codec import decode_plain, encode_text

_MAX_DEPTH: Final = 100
_MAX_SCALAR: Final = 400
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_LOW: Final = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_IN_STRING: Final = re.compile(
    r'(?:[^"\\\x00-\x1f\ud800-\udfff]++|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    rf"|\\u[dD][89abAB][0-9a-fA-F]{{2}}{_LOW})*+"
)
_HALF_ESCAPE: Final = re.compile(
    r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}"
    r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?))?"
)
_SCALAR: Final = re.compile(r"[-+.0-9A-Za-z]*+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_HALF_NUMBER: Final = re.compile(
    r"-?(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?|(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?[eE][+-]?[0-9]*+)?"
)
_WORDS: Final = ("true", "false", "null")
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[^"\s]++|\s++', re.DOTALL)


class ObjectPrefix:
    """Tells whether text that arrives in pieces begins a plain JSON object, and has not ended it.

    Args:
        takes: Tells, by a name of the object itself and the first character of its value, whether
            both may be there.
    """

    def __init__(self, takes: Callable[[str, str], bool]) -> None:
        self._takes = takes
        self._open: list[set[str] | None] = []
        """The containers that are open: the names of an object so far, or none for a list."""
        self._wanted = "{"
        """What may come next: `{`, a name `n`, `:`, a value `v`, or `,`; `"` is inside a value."""
        self._may_close = False
        self._rest = ""
        """What is not read yet, as it may go on."""
        self._name: list[str] | None = None
        """The pieces of a name that has begun."""
        self._last = ""
        """The last name of the object itself."""

    def feed(self, text: str) -> bool:
        """Take the next piece; tell whether all text so far is such a beginning."""
        text, self._rest, at = self._rest + text, "", 0
        while at < len(text):
            if self._wanted == '"':
                found = self._go_on_string(text, at)
            else:
                at = _end(_SPACE, text, at)
                if at == len(text):
                    return True
                found = self._take_mark(text, at)
            if found is None:
                return False
            if found < 0:  # the rest may go on
                return True
            at = found
        return True

    def _go_on_string(self, text: str, at: int) -> int | None:
        end = _end(_IN_STRING, text, at)
        if self._name is not None:
            self._name.append(text[at:end])
        if end == len(text):
            return -1
        if text[end] == '"':
            return end + 1 if self._end_string() else None
        self._rest = text[end:]
        return -1 if _HALF_ESCAPE.fullmatch(self._rest) else None

    def _end_string(self) -> bool:
        if self._name is None:
            self._wanted, self._may_close = ",", True
            return True
        name = decode_plain(f'["{"".join(self._name)}"]')
        names = self._open[-1]
        if not isinstance(name, list) or names is None:
            return False
        word = cast("list[str]", name)[0]
        if word in names:
            return False
        names.add(word)
        if len(self._open) == 1:
            self._last = word
        self._name, self._wanted = None, ":"
        return True

    def _take_mark(self, text: str, at: int) -> int | None:
        mark, wanted = text[at], self._wanted
        if wanted == "{":
            return self._push(mark, at) if mark == "{" else None
        if mark in "]}" and self._may_close:
            return self._pop(mark, at)
        if wanted == "n":
            if mark != '"':
                return None
            self._name, self._wanted, self._may_close = [], '"', False
            return at + 1
        if wanted == "v":
            return self._take_value(text, at)
        if mark != wanted:
            return None
        is_name = mark == "," and self._open[-1] is not None
        self._wanted, self._may_close = ("n" if is_name else "v"), False
        return at + 1

    def _take_value(self, text: str, at: int) -> int | None:
        mark = text[at]
        if len(self._open) == 1 and not self._takes(self._last, mark):
            return None
        if mark in "{[":
            return self._push(mark, at)
        if mark == '"':
            self._wanted = '"'
            return at + 1
        end = _end(_SCALAR, text, at)
        word = text[at:end]
        if end == len(text) and len(word) < _MAX_SCALAR:
            self._rest = word
            is_half = _HALF_NUMBER.fullmatch(word) or any(one.startswith(word) for one in _WORDS)
            return -1 if is_half else None
        if word not in _WORDS and not _NUMBER.fullmatch(word):
            return None
        self._wanted, self._may_close = ",", True
        return end

    def _push(self, mark: str, at: int) -> int | None:
        if len(self._open) == _MAX_DEPTH:
            return None
        self._open.append(set() if mark == "{" else None)
        self._wanted, self._may_close = ("n" if mark == "{" else "v"), True
        return at + 1

    def _pop(self, mark: str, at: int) -> int | None:
        names = self._open.pop()
        if (mark == "}") is (names is None) or not self._open:
            return None
        self._wanted, self._may_close = ",", True
        return at + 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def continue_json(begun: str, value: Any) -> str | None:
    """Return what has to follow the beginning of a JSON text to make it a value, if anything can.

    Args:
        begun: The text, of which everything is right so far.
        value: The whole value; its objects have their names in the order of the text.
    """
    written: list[str] = []
    for found in _TOKEN.finditer(begun):
        token = found[0]
        if token.isspace():
            continue
        if token[0] == '"':
            is_open = found.end() == len(begun) and not _is_closed(token)
            plain = decode_plain(f'[{token}"]' if is_open else f"[{token}]")
            if not isinstance(plain, list):
                return None
            token = encode_text(plain[0])
            token = token[:-1] if is_open else token
        written.append(token)
    so_far, whole = "".join(written), encode_text(value)
    if not whole.startswith(so_far):
        return None
    rest = whole[len(so_far) :]
    return rest if decode_plain(begun + rest) == value else None


def _is_closed(token: str) -> bool:
    """Tell whether the last character of a string is a quote that nothing escapes."""
    body = token[1:-1]
    slashes = len(body) - len(body.rstrip("\\"))
    return len(token) > 1 and token[-1] == '"' and slashes % 2 == 0
