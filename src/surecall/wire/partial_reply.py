"""What is kept of a reply that arrives in pieces: its text, its parts, and what was odd about them.

Text is counted in bytes, whatever else is kept is weighed, so that a stream without end is refused
long before memory is short.
"""

import sys
from typing import Any, Final, Literal

from surecall.base.errors import Code, JSONTextError, ProviderReplyError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect
from surecall.text import TextBuffer, encode_text, repair_surrogates

from .records import StreamDelta

_MAX_BYTES: Final = 6 * 1024 * 1024
_MAX_PASSED_BYTES: Final = 24 * 1024 * 1024
_MAX_PASSED_WORDS_BYTES: Final = 4 * 1024 * 1024
"""Of the words of a reply that is passed on: the client has them."""
_MAX_PARTS: Final = 25_000
"""Calls, blocks, items and other parts; one that holds nothing takes half a kilobyte."""
_MAX_WEIGHED_NODES: Final = 100_000


class Kept:
    """Counts what is kept of one reply; that of a streamed one is limited.

    Args:
        is_limited: Whether it is.
        is_passed: Whether the client gets all words as they come, so that these need not be kept.
    """

    __slots__ = ("_bytes", "_max_bytes", "_max_parts", "_parts", "_words_bytes", "is_passed")

    def __init__(self, *, is_limited: bool = True, is_passed: bool = False) -> None:
        self._bytes = 0
        self._parts = 0
        self._words_bytes = 0
        self.is_passed = is_passed
        """Whether the client gets all words as they come."""
        max_bytes = _MAX_PASSED_BYTES if is_passed else _MAX_BYTES
        self._max_bytes = max_bytes if is_limited else sys.maxsize
        self._max_parts = _MAX_PARTS if is_limited else sys.maxsize

    def add_bytes(self, count: int) -> None:
        """Count bytes that are kept, or copied again and again.

        Raises:
            ProviderReplyError: `STREAM_TOO_LARGE`.
        """
        self._bytes += count
        if self._bytes > self._max_bytes:
            raise _too_large(f"more than {self._max_bytes} bytes")

    def takes_words(self, count: int) -> bool:
        """Count bytes of words, and tell whether these are kept."""
        if self.is_passed:
            self._words_bytes += count
            return self._words_bytes <= _MAX_PASSED_WORDS_BYTES
        self.add_bytes(count)
        return True

    def add_value(self, value: Any) -> None:
        """Count a value that is kept as it came."""
        self.add_bytes(_measure(value))

    def add_part(self, value: Any = None) -> None:
        """Count one more part of the reply, and the value that is kept of it."""
        self._parts += 1
        if self._parts > self._max_parts:
            raise _too_large(f"more than {self._max_parts} parts")
        if value is not None:
            self.add_value(value)

    def put(self, fields: dict[str, Any], name: str, value: Any) -> None:
        """Set a field; what it held before is no longer kept."""
        if name in fields:
            if fields[name] == value:
                return
            self._bytes -= _measure(fields[name])
        else:
            self.add_value(name)
        self.add_value(value)
        fields[name] = value


class KeptText(TextBuffer):
    """Text of a reply that arrives in pieces, all of which is counted."""

    __slots__ = ("_kept",)

    def __init__(self, kept: Kept) -> None:
        super().__init__()
        self._kept = kept

    def append(self, piece: str) -> None:
        """Add the next piece."""
        data = piece.encode("utf-8", "surrogatepass")
        self._kept.add_bytes(len(data))
        self._data += data


class KeptWords(TextBuffer):
    """Text and reasoning, of which the end may be missing where they are only passed on."""

    __slots__ = ("_kept",)

    def __init__(self, kept: Kept) -> None:
        super().__init__()
        self._kept = kept

    def append(self, piece: str) -> None:
        """Add the next piece."""
        data = piece.encode("utf-8", "surrogatepass")
        if self._kept.takes_words(len(data)):
            self._data += data


def _measure(value: Any) -> int:
    """Return the bytes that a JSON value takes in memory; one of very many parts is estimated."""
    if value.__class__ is str:
        return sys.getsizeof(value)
    total = seen = 0
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        total += sys.getsizeof(item)
        if isinstance(item, dict):
            fields = as_fields(item)
            waiting += fields
            waiting += fields.values()
        elif isinstance(item, list):
            waiting += as_list(item)
        seen += 1
        if seen == _MAX_WEIGHED_NODES:
            return total + total // seen * len(waiting)
    return total


def _too_large(what: str) -> ProviderReplyError:
    return ProviderReplyError(
        Code.STREAM_TOO_LARGE,
        f"The streamed reply has {what} that would have to be kept.",
        hint="Ask for less with `max_tokens`, or without streaming if such replies are meant.",
    )


def text_of(value: Any) -> str:
    """Return a value as JSON text; its type when it cannot be written."""
    try:
        return encode_text(value)
    except JSONTextError:
        return f"({type(value).__name__})"


class Noted:
    """What was odd about the pieces of a reply: each kind is noted once."""

    place = ""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._defects: dict[str, Defect] = {}

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What was odd about the pieces, each kind once."""
        return tuple(self._defects.values())

    def _note(self, code: Code, message: str) -> None:
        self._defects.setdefault(code, Defect(code, message, self.place))


class HeldHalves:
    """Shows text as it comes; half a character waits for its other half."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Literal["text", "reasoning"], str] = {}

    @property
    def are_held(self) -> bool:
        """Whether any waits."""
        return bool(self._held)

    def show(
        self,
        kind: Literal["text", "reasoning"],
        text: str,
        shown: list[StreamDelta],
        *,
        is_refusal: bool = False,
    ) -> str:
        """Append what can be shown now, and return it."""
        if self._held:
            text = self._held.pop(kind, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held[kind] = text[-1]
            text = text[:-1]
        if text:
            text = repair_surrogates(text)
            shown.append(StreamDelta(kind, text, is_refusal=is_refusal))
        return text

    def flush(self, shown: list[StreamDelta]) -> tuple[str, ...]:
        """Show a mark for every half whose other half cannot come any more; return their kinds."""
        kinds = tuple(self._held)
        shown += [StreamDelta(kind, "\ufffd") for kind in kinds]
        self._held.clear()
        return kinds
