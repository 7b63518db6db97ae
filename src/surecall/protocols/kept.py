"""What is kept of a streamed reply while it arrives, and how much that may be.

Text is counted in bytes, whatever else is kept is weighed, so that a stream without end is refused
long before memory is short.
"""

import sys
from typing import Any, Final, cast

from surecall.errors import Code, ProviderReplyError
from surecall.jsontext import TextBuffer

__all__ = ["Kept", "KeptText"]

_MAX_BYTES: Final = 6 * 1024 * 1024
_MAX_PARTS: Final = 25_000
"""Calls, blocks, items and other parts; one that holds nothing takes half a kilobyte."""
_MAX_WEIGHED_NODES: Final = 100_000


class Kept:
    """Counts what is kept of one reply; that of a streamed one is limited."""

    __slots__ = ("_bytes", "_max_bytes", "_max_parts", "_parts")

    def __init__(self, *, is_limited: bool = True) -> None:
        self._bytes = 0
        self._parts = 0
        self._max_bytes = _MAX_BYTES if is_limited else sys.maxsize
        self._max_parts = _MAX_PARTS if is_limited else sys.maxsize

    def add_bytes(self, count: int) -> None:
        """Count bytes that are kept, or copied again and again.

        Raises:
            ProviderReplyError: `STREAM_TOO_LARGE`.
        """
        self._bytes += count
        if self._bytes > self._max_bytes:
            raise _too_large(f"more than {self._max_bytes} bytes")

    def add_value(self, value: Any) -> None:
        """Count a value that is kept as it came."""
        self.add_bytes(_weigh(value))

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
            self._bytes -= _weigh(fields[name])
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


def _weigh(value: Any) -> int:
    """Return the bytes that a JSON value takes in memory; one of very many parts is estimated."""
    total = seen = 0
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        total += sys.getsizeof(item)
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            waiting += fields
            waiting += fields.values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)
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
