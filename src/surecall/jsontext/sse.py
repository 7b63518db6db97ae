"""Event streams (`text/event-stream`), read from bytes as they come and written.

Follows the WHATWG rules, with one addition: an event at the end of the stream counts even when
the blank line after it is missing, because providers leave it out.
"""

from typing import Final

import msgspec

from surecall.errors import Code, ProviderReplyError, SetupError

from .surrogates import mend_surrogates

__all__ = ["SSEEvent", "SSEReader", "render_comment", "render_event"]

_MAX_LINE_BYTES: Final = 16 * 1024 * 1024
_MAX_RETRY_DIGITS: Final = 10
_MARK: Final = b"\xef\xbb\xbf"


class SSEEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a stream."""

    data: str
    event: str = "message"
    id: str | None = None
    """The last id the stream has given, in this event or before it."""
    retry_ms: int | None = None
    """The waiting time this event asks for before a reconnection."""


class SSEReader:
    """Turns the bytes of an event stream into events; any split of the bytes gives the same.

    `comments` counts the comment lines seen. A line that is too long raises `STREAM_TOO_LARGE`,
    after the events that came before it were returned.
    """

    __slots__ = (
        "_at_start",
        "_data",
        "_event",
        "_id",
        "_is_broken",
        "_line_feed_belongs_before",
        "_max_line_bytes",
        "_partial",
        "_partial_bytes",
        "_retry_ms",
        "comments",
    )

    def __init__(self, max_line_bytes: int = _MAX_LINE_BYTES) -> None:
        self.comments = 0
        self._max_line_bytes = max_line_bytes
        self._at_start = True
        self._line_feed_belongs_before = False
        self._is_broken = False
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._data: list[bytes] = []
        self._event = ""
        self._id: str | None = None
        self._retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """Return the events that the chunk completes."""
        if self._is_broken:
            raise self._too_large()
        if self._line_feed_belongs_before and chunk:
            self._line_feed_belongs_before = False
            chunk = chunk.removeprefix(b"\n")
        has_return = b"\r" in chunk
        events: list[SSEEvent] = []
        if not has_return and b"\n" not in chunk:
            self._keep(chunk)
        else:
            if self._partial:
                chunk = b"".join((*self._partial, chunk))
                self._partial.clear()
                self._partial_bytes = 0
            if has_return:
                self._line_feed_belongs_before = chunk.endswith(b"\r")
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if self._at_start:
                self._at_start = False
                chunk = chunk.removeprefix(_MARK)
            self._read(chunk, events)
        if self._is_broken and not events:
            raise self._too_large()
        return events

    def close(self) -> list[SSEEvent]:
        """Return the event that the end of the stream completes, if there is one.

        Its last line may have been cut: whether the data is whole is for the caller to find out.
        """
        events = self.feed(b"\n")
        if not events:
            self._dispatch(events)
        return events

    def _read(self, chunk: bytes, events: list[SSEEvent]) -> None:
        """Read text whose lines end in line feeds and that starts at the start of a line."""
        blocks = chunk.split(b"\n\n")
        tail = blocks.pop()
        has_only_short_lines = len(chunk) <= self._max_line_bytes
        is_clean = not self._data and not self._event and self._retry_ms is None
        for block in blocks:
            if (
                is_clean
                and has_only_short_lines
                and block.startswith(b"data: ")
                and b"\n" not in block
            ):
                events.append(SSEEvent(block[6:].decode("utf-8", "replace"), "message", self._id))
                continue
            for line in block.split(b"\n"):
                self._take_line(line, events)
            self._dispatch(events)
            is_clean = True
            if self._is_broken:
                return
        *lines, rest = tail.split(b"\n")
        for line in lines:
            self._take_line(line, events)
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        """Keep the start of a line until its end comes."""
        if not piece:
            return
        self._partial.append(piece)
        self._partial_bytes += len(piece)
        # A mark is not part of the line, and is dropped only when the line is whole.
        may_be_marked = self._at_start and self._partial[0][0] == _MARK[0]
        if self._partial_bytes > self._max_line_bytes + len(_MARK) * may_be_marked:
            self._break()

    def _take_line(self, line: bytes, events: list[SSEEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        if self._is_broken:
            return
        if len(line) > self._max_line_bytes:
            self._break()
            return
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
        elif not field:
            self.comments += 1
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry_ms = int(value)

    def _dispatch(self, events: list[SSEEvent]) -> None:
        if self._data:
            data = b"\n".join(self._data).decode("utf-8", "replace")
            events.append(SSEEvent(data, self._event or "message", self._id, self._retry_ms))
            self._data.clear()
        self._event = ""
        self._retry_ms = None

    def _break(self) -> None:
        self._is_broken = True
        self._partial.clear()
        self._data.clear()

    def _too_large(self) -> ProviderReplyError:
        message = f"a line of the event stream is longer than {self._max_line_bytes} bytes."
        return ProviderReplyError(
            Code.STREAM_TOO_LARGE, message, hint="Raise `max_line_bytes` if such lines are meant."
        )


def render_event(data: str, *, event: str | None = None, id: str | None = None) -> bytes:  # noqa: A002 - the name of the field
    """Return one event as bytes; a carriage return in the data becomes a line feed."""
    lines: list[str] = []
    if event is not None:
        lines.append(f"event: {_checked(event, 'event name')}")
    if id is not None:
        lines.append(f"id: {_checked(id, 'event id')}")
    lines.extend(f"data: {line}" for line in _lines(data))
    return mend_surrogates("\n".join(lines) + "\n\n").encode("utf-8")


def render_comment(text: str = "") -> bytes:
    """Return a comment as bytes, which readers ignore: it keeps a connection alive."""
    lines = [f": {line}" for line in _lines(text)]
    return mend_surrogates("\n".join(lines) + "\n\n").encode("utf-8")


def _lines(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def _checked(value: str, what: str) -> str:
    if "\n" in value or "\r" in value or "\0" in value:
        message = f"the {what} {value[:60]!r} has a line break or NUL in it."
        raise SetupError(Code.INVALID_OPTION, message, hint="Leave them out.")
    return value
