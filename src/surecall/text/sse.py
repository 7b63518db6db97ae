"""Event streams (`text/event-stream`), read from bytes as they come and written.

Follows the WHATWG rules, with one addition: an event at the end of the stream counts even when
the blank line after it is missing, because providers leave it out.
"""

from typing import Final

import msgspec

from surecall.base.errors import Code, ProviderReplyError, SetupError
from surecall.base.limits import MAX_LINE_BYTES

from .surrogates import repair_surrogates

_MAX_SHORT_VALUE_BYTES: Final = 64 * 1024
"""Of every field but `data`."""
_MAX_RETRY_DIGITS: Final = 10
_MAX_FIELD_NAME_BYTES: Final = 6
"""Longer than the name of any field, with its colon."""
_SHORT_FIELDS: Final = frozenset({b"event", b"id", b"retry"})
_COLON: Final = 0x3A
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

    `comments` counts the comment lines seen. A line or an event that is too long raises
    `STREAM_TOO_LARGE`, after the events that came before it were returned. Never more than one
    event is kept, and of comments nothing.
    """

    def __init__(
        self,
        max_line_bytes: int = MAX_LINE_BYTES,
        *,
        max_event_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.comments = 0
        self._max_line_bytes = max_line_bytes
        self._max_event_bytes = max_event_bytes
        self._at_start = True
        self._line_feed_belongs_before = False
        self._refusal = ""
        self._partial = bytearray()
        self._partial_bytes = 0
        self._data: bytearray | None = None
        self._event = ""
        self._id: str | None = None
        self._retry_ms: int | None = None

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """Return the events that the chunk completes."""
        events: list[SSEEvent] = []
        if not self._refusal:
            if self._line_feed_belongs_before and chunk:
                self._line_feed_belongs_before = False
                chunk = chunk.removeprefix(b"\n")
            if b"\r" in chunk:
                self._line_feed_belongs_before = chunk.endswith(b"\r")
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if b"\n" in chunk:
                self._read(self._complete_line(chunk, events), events)
            else:
                self._keep(chunk)
        if self._refusal and not events:
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

    def _complete_line(self, chunk: bytes, events: list[SSEEvent]) -> bytes:
        """Take the line that had begun before the chunk, and return the rest of the chunk."""
        if self._partial:
            end, _, chunk = chunk.partition(b"\n")
            self._keep(end)
            line, self._partial, self._partial_bytes = self._partial, bytearray(), 0
            if self._at_start and line.startswith(_MARK):
                del line[: len(_MARK)]
            self._at_start = False
            self._take_line(line, events)
        elif self._at_start:
            self._at_start = False
            chunk = chunk.removeprefix(_MARK)
        return chunk

    def _read(self, chunk: bytes, events: list[SSEEvent]) -> None:
        """Read text whose lines end in line feeds and that starts at the start of a line."""
        if self._refusal:  # by the line before
            return
        blocks = chunk.split(b"\n\n")
        tail = blocks.pop()
        is_short = len(chunk) <= self._max_line_bytes and len(chunk) <= self._max_event_bytes
        is_clean = self._data is None and not self._event and self._retry_ms is None
        for block in blocks:
            if is_clean and is_short and b"\n" not in block:
                if block.startswith(b"data: "):
                    data = block[6:].decode("utf-8", "replace")
                    events.append(SSEEvent(data, "message", self._id))
                    continue
                if not block or block[0] == _COLON:
                    self.comments += bool(block)
                    continue
            for line in block.split(b"\n"):
                self._take_line(line, events)
            self._dispatch(events)
            is_clean = True
            if self._refusal:
                return
        *lines, rest = tail.split(b"\n")
        for line in lines:
            self._take_line(line, events)
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        """Keep the start of a line until its end comes; of a line without data, not all of it."""
        if not piece or self._refusal:
            return
        partial = self._partial
        # A mark is not part of the line, and is dropped only when the line is whole.
        mark_bytes = len(_MARK) * (self._at_start and (partial or piece)[0] == _MARK[0])
        is_data = partial.startswith(b"data:", mark_bytes)
        if is_data or len(partial) <= 2 * _MAX_SHORT_VALUE_BYTES:
            partial += piece
        self._partial_bytes += len(piece)
        if self._partial_bytes - mark_bytes > self._max_line_bytes:
            self._refuse("a line of the event stream", self._max_line_bytes)
        elif is_data:
            start = mark_bytes + 5
            start += partial[start : start + 1] == b" "
            before = 0 if self._data is None else len(self._data) + 1
            if before + len(partial) - start > self._max_event_bytes:
                self._refuse("an event of the stream", self._max_event_bytes)

    def _take_line(self, line: bytes | bytearray, events: list[SSEEvent]) -> None:
        if not line:
            self._dispatch(events)
            return
        if self._refusal:
            return
        if len(line) > self._max_line_bytes:
            self._refuse("a line of the event stream", self._max_line_bytes)
            return
        colon = line.find(b":", 0, _MAX_FIELD_NAME_BYTES)
        if colon == 0:
            self.comments += 1
            return
        end = len(line) if colon < 0 else colon
        start = end + 1
        if line[start : start + 1] == b" ":
            start += 1
        field = bytes(line[: min(end, _MAX_FIELD_NAME_BYTES)])
        if field == b"data":
            self._add_data(line, start)
        elif field in _SHORT_FIELDS:
            self._set_field(field, line[start:])

    def _add_data(self, line: bytes | bytearray, start: int) -> None:
        """Add the rest of the line to the data; a line of the reader's own is not copied."""
        if self._data is not None:
            self._data += b"\n"
            self._data += memoryview(line)[start:]
        elif isinstance(line, bytearray):
            del line[:start]
            self._data = line
        else:
            self._data = bytearray(memoryview(line)[start:])
        if len(self._data) > self._max_event_bytes:
            self._refuse("an event of the stream", self._max_event_bytes)

    def _set_field(self, field: bytes, value: bytes | bytearray) -> None:
        if len(value) > _MAX_SHORT_VALUE_BYTES:
            shown = field.decode()
            self._refuse(f"a field `{shown}` of the event stream", _MAX_SHORT_VALUE_BYTES)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self._retry_ms = int(value)

    def _dispatch(self, events: list[SSEEvent]) -> None:
        if self._data is not None:
            data = self._data.decode("utf-8", "replace")
            self._data = None
            events.append(SSEEvent(data, self._event or "message", self._id, self._retry_ms))
        self._event = ""
        self._retry_ms = None

    def _refuse(self, what: str, max_bytes: int) -> None:
        self._refusal = f"{what} is longer than {max_bytes} bytes."
        self._partial.clear()
        self._data = None

    def _too_large(self) -> ProviderReplyError:
        hint = "Raise `max_line_bytes` and `max_event_bytes` if such events are meant."
        return ProviderReplyError(Code.STREAM_TOO_LARGE, self._refusal, hint=hint)


def render_event(data: str, *, event: str | None = None, id: str | None = None) -> bytes:  # noqa: A002 - the name of the field
    """Return one event as bytes; a carriage return in the data becomes a line feed."""
    lines: list[str] = []
    if event is not None:
        lines.append(f"event: {_refuse_line_break(event, 'event name')}")
    if id is not None:
        lines.append(f"id: {_refuse_line_break(id, 'event id')}")
    lines.extend(f"data: {line}" for line in _split_lines(data))
    return repair_surrogates("\n".join(lines) + "\n\n").encode("utf-8")


def render_comment(text: str = "") -> bytes:
    """Return a comment as bytes, which readers ignore: it keeps a connection alive."""
    lines = [f": {line}" for line in _split_lines(text)]
    return repair_surrogates("\n".join(lines) + "\n\n").encode("utf-8")


def _split_lines(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def _refuse_line_break(value: str, what: str) -> str:
    if "\n" in value or "\r" in value or "\0" in value:
        message = f"the {what} {value[:60]!r} has a line break or NUL in it."
        raise SetupError(Code.INVALID_OPTION, message, hint="Leave them out.")
    return value
