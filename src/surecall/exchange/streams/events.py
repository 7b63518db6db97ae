"""The bytes of an event stream, cut into events, each of which keeps its own bytes."""

import re
from typing import Final

from surecall.base.errors import Code, ProviderReplyError
from surecall.base.limits import MAX_LINE_BYTES, MIB
from surecall.text import SSEReader

MAX_STREAM_BYTES: Final = 128 * MIB
_BLANK_LINE: Final = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_MARK: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_EVENT: Final = b"event: "
_COLON: Final = 0x3A
_RETURN: Final = 0x0D
_FEED: Final = 0x0A
"""Numbers: Python looks for bytes in bytes only after it has failed to take them for a number."""


class EventCutter:
    """Cuts the bytes of one stream behind blank lines; any split of them gives the same events.

    A line, an event or a stream that is too long raises `STREAM_TOO_LARGE`.
    """

    __slots__ = ("_has_returns", "_max_event_bytes", "_max_stream_bytes", "_received", "partial")

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_LINE_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
    ) -> None:
        self.partial = bytearray()
        """The beginning of an event that waits for the rest of it."""
        self._has_returns = False
        self._received = 0
        self._max_event_bytes = max_event_bytes
        self._max_stream_bytes = max_stream_bytes

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return all whole events that are there now."""
        self._received += len(chunk)
        if self._received > self._max_stream_bytes:
            raise _too_large("The stream", self._max_stream_bytes)
        if not self._has_returns and _RETURN in chunk:
            self._has_returns = True
        partial = self.partial
        if not partial:
            end = self._last_end(chunk, 0)
            if end == len(chunk):
                return chunk
            partial += chunk[end:] if end else chunk
            data = chunk[:end]
        elif not self._has_returns and (found := chunk.rfind(b"\n\n")) >= 0:
            data = b"%b%b" % (partial, chunk[: found + 2])
            partial[:] = chunk[found + 2 :]
        else:
            searched = max(0, len(partial) - 3)
            partial += chunk
            end = self._last_end(partial, searched)
            data = bytes(partial[:end])
            del partial[:end]
        if len(partial) > self._max_event_bytes:
            raise _too_large("An event of the stream", self._max_event_bytes)
        return data

    def is_event(self, chunk: bytes) -> bool:
        """Tell whether the next bytes are one event and nothing else; if so, they are taken."""
        end = chunk.find(b"\n\n")
        if (
            end < 0
            or end != len(chunk) - 2
            or self.partial
            or self._has_returns
            or _RETURN in chunk
            or self._received + len(chunk) > self._max_stream_bytes
        ):
            return False
        self._received += len(chunk)
        return True

    def close(self) -> bytes:
        """Return the bytes behind the last whole event."""
        rest = bytes(self.partial)
        self.partial.clear()
        return rest

    def split(self, data: bytes) -> tuple[list[bytes], int]:
        """Return each of some whole events, and how many bytes follow each of them."""
        if not self._has_returns:
            blocks = data.split(b"\n\n")
            if not blocks[-1]:
                blocks.pop()
            return blocks, 2
        blocks, start = list[bytes](), 0
        for found in _BLANK_LINE.finditer(data):
            blocks.append(data[start : found.end()])
            start = found.end()
        if start < len(data):
            blocks.append(data[start:])
        return blocks, 0

    def first_end(self, data: bytes, start: int) -> int:
        """Return where the event ends that begins at a place."""
        if not self._has_returns:
            found = data.find(b"\n\n", start)
            return found + 2 if found >= 0 else len(data)
        blank = _BLANK_LINE.search(data, start)
        return blank.end() if blank is not None else len(data)

    def split_whole(self, data: bytes) -> list[bytes]:
        """Return each of some whole events with the line ends behind it."""
        blocks, gap = self.split(data)
        if not gap:
            return blocks
        last = b"" if data.endswith(b"\n\n") else blocks.pop()
        return [block + b"\n\n" for block in blocks] + ([last] if last else [])

    def read(self, data: bytes) -> list[tuple[bytes, bytes, int]]:
        """Return the data and the name of each of some whole events, and its size.

        One that is only a comment, or blank, has no data.
        """
        if self._has_returns:
            return [(*read_event(event), len(event)) for event in self.split(data)[0]]
        blocks = data.split(b"\n\n")
        last = blocks.pop()
        if data.count(b"\n") == 2 * len(blocks) and not last:  # every event is one line
            found = [
                (block[6:], b"", len(block) + 2)
                if block[:6] == _DATA
                else (*read_event(block), len(block) + 2)
                for block in blocks
            ]
        else:
            found = [(*read_event(block), len(block) + 2) for block in blocks]
        if last:
            found.append((*read_event(last), len(last)))
        return found

    def _last_end(self, data: bytes | bytearray, start: int) -> int:
        if not self._has_returns:
            return data.rfind(b"\n\n", start) + 2 if data.find(b"\n\n", start) >= 0 else 0
        end = 0
        for found in _BLANK_LINE.finditer(data, start):
            if found.end() < len(data) or not data.endswith(b"\r"):  # a line feed may follow
                end = found.end()
        return end


def read_event(block: bytes) -> tuple[bytes, bytes]:
    """Return the data and the name of one event; no data when it is only a comment or blank."""
    if block[:7] == _EVENT:
        line = block.find(b"\n") + 1
        is_plain = block[line : line + 6] == _DATA and block.find(b"\n", line) < 0
        if line and is_plain and _RETURN not in block:
            return block[line + 6 :], block[7 : line - 1]
    elif not block or (block[0] == _COLON and _FEED not in block and _RETURN not in block):
        return b"", b""
    block = block.rstrip(b"\r\n")
    if block[:5] == b"data:" and _FEED not in block and _RETURN not in block:
        return block[6 if block[5:6] == b" " else 5 :], b""
    events = SSEReader().feed(block.removeprefix(_MARK) + b"\n\n")
    if not events:
        return b"", b""
    event = events[-1]
    name = "" if event.event == "message" else event.event
    return event.data.encode("utf-8", "surrogatepass"), name.encode("utf-8", "surrogatepass")


def _too_large(what: str, max_bytes: int) -> ProviderReplyError:
    return ProviderReplyError(
        Code.STREAM_TOO_LARGE,
        f"{what} is longer than {max_bytes} bytes.",
        hint="Ask for less with `max_tokens`, or look at what the provider sends.",
    )
