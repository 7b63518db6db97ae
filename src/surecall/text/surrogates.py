"""Text that arrives in pieces, and the halves of surrogate pairs that this leaves in it.

JSON may escape half a pair; UTF-8 cannot carry it. A stream may cut a pair between two events.
"""

import re
from collections.abc import Callable
from typing import Any, Final, cast

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF: Final = re.compile("[\ud800-\udfff]")
# No character, and in hardly any text: one of them can stand for something for a moment.
_NONCHARACTERS: Final = tuple(map(chr, range(0xFDD0, 0xFDF0)))

# An escaped backslash is consumed whole, so that what follows it is not taken for an escape.
_ESCAPES: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\\\"
    "|([\ud800-\udfff])"
)


def repair_surrogates(text: str) -> str:
    """Join neighbouring halves into their character and replace those left over by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return replace_halves(_PAIR.sub(_join_pair, text))
    return text


def replace_halves(text: str) -> str:
    """Replace every half of a pair by U+FFFD, and join none."""
    # Only an encoder that writes question marks is fast for a text of nothing but halves.
    mark = next((mark for mark in _NONCHARACTERS if mark not in text), None)
    if mark is None:
        return _HALF.sub("\ufffd", text)
    data = text.replace("?", mark).encode("utf-8", "replace")
    return data.decode("utf-8").replace("?", "\ufffd").replace(mark, "?")


def repair_surrogates_in(value: Any, repair: Callable[[str], str] = repair_surrogates) -> Any:
    """Repair every text in a JSON value; the codec bounds how deep a value can nest."""
    if isinstance(value, str):
        return repair(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {repair(key): repair_surrogates_in(item, repair) for key, item in items}
    if isinstance(value, list):
        return [repair_surrogates_in(item, repair) for item in cast("list[Any]", value)]
    return value


def find_lone_surrogate(text: str, end: int) -> int | None:
    """Return where JSON text has half a pair, escaped or raw, before an index."""
    for match in _ESCAPES.finditer(text, 0, end):
        if match.lastindex:
            return match.start()
    return None


def replace_lone_surrogates(text: str) -> str:
    """Return JSON text with every half of a pair replaced by U+FFFD."""
    return repair_surrogates(_ESCAPES.sub(_replace_half, text))


def _join_pair(match: re.Match[str]) -> str:
    high, low = match[0]
    return chr(0x10000 + ((ord(high) - 0xD800) << 10) + ord(low) - 0xDC00)


def _replace_half(match: re.Match[str]) -> str:
    return "\\ufffd" if match.lastindex == 1 else match[0]


class TextBuffer:
    """Text in one buffer of bytes: many short pieces weigh no more than one long text.

    `str()` gives the text, with halves of characters as they came.
    """

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def __bool__(self) -> bool:
        return bool(self._data)

    def __str__(self) -> str:
        return self._data.decode("utf-8", "surrogatepass")

    def append(self, piece: str) -> None:
        """Add the next piece."""
        self._data += piece.encode("utf-8", "surrogatepass")

    def clear(self) -> None:
        """Forget the text."""
        self._data = bytearray()
