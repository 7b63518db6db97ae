"""What folding a stream of server-sent events has in common in every wire format.

The first bytes tell whether it is a stream at all; an event that cannot be read is refused or
passed over; a stream that ends before its reply does is `STREAM_TRUNCATED`. What the events mean
is for each format to say. Text that is kept is counted in bytes, whatever else is kept is weighed,
so that a stream without end is refused long before memory is short.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol

from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderReplyError,
    ProviderStatusError,
)
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect
from surecall.base.redaction import excerpt
from surecall.text import SSEEvent, SSEReader, TextBuffer, decode, encode_text, mend_surrogates

from .base import RawReply, StreamDelta
from .errors import check_body, parse_error_object
from .replies import MAX_SNIPPET, make_finite, refuse_reply

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


_DONE: Final = "[DONE]"
_MARK: Final = b"\xef\xbb\xbf"
_BODY_STARTS: Final = b'{["<'
"""No line of an event stream begins so: the provider sent a plain body or a page."""
_MAX_PARTIAL_CHARS: Final = 20_000
_MAX_HEAD_BYTES: Final = 16 * 1024
_MAX_BODY_BYTES: Final = 16 * 1024 * 1024
_LARGE_EVENT_CHARS: Final = 512 * 1024
_MAX_CONTAINERS: Final = 200_000
_MAX_VALUES: Final = 2_000_000


class _Partial(Protocol):
    """A reply, as far as it has arrived."""

    @property
    def text(self) -> str:
        """The text so far."""
        ...

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        ...


class EventFolder(ABC):
    """Folds one streamed reply; feed it every chunk, then close it."""

    end_is: str = "a finish reason"
    """What a stream of this format must have to be complete, in words."""
    parse_body: Callable[[bytes, Mapping[str, str]], RawReply]
    """Reads a plain body that came instead of a stream."""
    parse_error: Callable[..., ProviderStatusError] = staticmethod(parse_error_object)
    """Understands an error event."""
    _partial: _Partial
    """The reply, as far as it has arrived."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> None:
        self._headers = headers or {}
        self._skips = skip_bad_events
        self._reader = SSEReader()
        self._kept = Kept()
        self._head: bytes = b""
        self._undecided: bytes = b""
        self._is_sniffed = False
        self._body: bytearray | None = None
        self._done = False
        self._is_closing = False
        self._events = 0
        self._skipped = 0
        self._repeated: tuple[Defect, ...] = ()
        self._begin()

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing more will come."""
        return self._done

    @property
    def came_whole(self) -> bool:
        """Whether a plain body came where a stream was asked for."""
        return self._body is not None

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        shown: list[StreamDelta] = []
        if self._done:
            return shown
        if not self._is_sniffed:
            chunk = self._sniff(chunk)
        if self._body is not None:
            self._take_body(chunk)
            return shown
        for event in self._reader.feed(chunk):
            self._take_event(event, shown)
            if self._done:
                break
        return shown

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return self._partial.calls_count

    def close(self) -> RawReply:
        """Return the reply.

        Raises:
            ProviderError: The stream ended before the reply did (`STREAM_TRUNCATED`, with the text
                so far in `body`), or what was sent is not a stream of a reply.
        """
        if self._body is not None:
            return self.parse_body(bytes(self._body), self._headers)
        self._is_closing = True
        if not self._done:
            for event in self._reader.close():
                self._take_event(event, [])
        if not self._has_ended():
            raise self._incomplete()
        return self._render()

    # what each format says

    @abstractmethod
    def _begin(self) -> None:
        """Make what the events are folded into; `_partial` is the reply."""

    @abstractmethod
    def _take_fields(
        self, fields: dict[str, Any], event: SSEEvent, shown: list[StreamDelta]
    ) -> None:
        """Take what one event brought."""

    @abstractmethod
    def _render(self) -> RawReply:
        """Return the reply, which came to its end."""

    def _has_ended(self) -> bool:
        """Tell whether the reply came to its own end."""
        return self._done

    def _decode(self, data: str) -> Any:
        """Decode an event; halves of characters are kept, to be joined with what follows."""
        return decode(data, surrogates="keep")

    def _take_done(self, shown: list[StreamDelta]) -> None:  # noqa: B027 - nothing is right
        """Take `[DONE]`, which says nothing in most formats, though some servers write it."""

    # what they share

    def _sniff(self, chunk: bytes) -> bytes:
        """Find out from the first bytes whether this is a stream of events at all.

        Space may go on without end before it is known; an event reader takes it as it comes.
        """
        self._head = (self._head + chunk)[:_MAX_HEAD_BYTES]
        found = self._undecided + chunk
        start = found.removeprefix(_MARK).lstrip()
        if not start or start == _MARK[: len(start)]:
            self._undecided = start and found
            return chunk
        self._is_sniffed = True
        if start[0] in _BODY_STARTS:
            self._body = bytearray()
            return found
        return chunk

    def _take_body(self, chunk: bytes) -> None:
        assert self._body is not None
        self._body += chunk
        if len(self._body) > _MAX_BODY_BYTES:
            self._body.clear()
            raise ProviderReplyError(
                Code.STREAM_TOO_LARGE,
                f"A body of more than {_MAX_BODY_BYTES} bytes came where a stream was asked for.",
                hint="Ask without streaming if replies of this size are meant.",
            )

    def _take_event(self, event: SSEEvent, shown: list[StreamDelta]) -> None:
        data = event.data
        if self._done or not data:
            return
        if data.startswith(_DONE) and data.strip() == _DONE:
            self._take_done(shown)
            return
        self._events += 1
        if len(data) > _LARGE_EVENT_CHARS:
            _refuse_many_values(data)
        try:
            event, value = self._decode_event(event)
        except JSONTextError as error:
            if event.event == "error":
                raise self._read_error(data) from None
            self._refuse_event(data, error.message)
            return
        if event.event == "error":
            raise self._read_error(value)
        if not isinstance(value, dict):
            self._refuse_event(data, "it is not a JSON object.")
            return
        self._take_fields(as_fields(value), event, shown)

    def _decode_event(self, event: SSEEvent) -> tuple[SSEEvent, Any]:
        """Return an event and its value, with null for figures that are not finite."""
        try:
            return event, self._decode(event.data)
        except JSONTextError as problem:
            data = event.data.encode("utf-8", "replace")
            finite = make_finite(data) if problem.code == Code.NON_FINITE_NUMBER else None
            if finite is None:
                raise
            event = replace(event, data=finite.decode())
            return event, self._decode(event.data)

    def _refuse_event(self, data: str, why: str) -> None:
        if self._is_closing:  # the last event, cut short; the end decides whether it matters
            return
        if self._skips:
            self._skipped += 1
            return
        message = f"Event {self._events} of the stream cannot be read: {why}"
        snippet = excerpt(mend_surrogates(data), MAX_SNIPPET)
        raise refuse_reply(Code.UPSTREAM_BAD_EVENT, message, snippet)

    def _refuse_order(self, why: str) -> ProviderError:
        """Return the error for an event that may not come at this place of the stream."""
        message = f"Event {self._events} of the stream {why}."
        return refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, self._text_so_far())

    def _read_error(self, value: Any) -> ProviderError:
        error = self.parse_error(value, 200, self._headers, fallback=Code.STREAM_ERROR)
        error.body = self._text_so_far() or None
        return error

    def _incomplete(self) -> ProviderError:
        error = None if self._is_sniffed else check_body(self._headers, self._head)
        if error is not None:
            return error
        state = f"{self._events} events and {self._partial.calls_count} begun calls"
        message = f"The stream ended without {self.end_is} after {state}."
        start = self._head.decode("utf-8", "replace") if not self._events else ""
        body = self._text_so_far() or excerpt(start, MAX_SNIPPET)
        return refuse_reply(Code.STREAM_TRUNCATED, message, body)

    def _text_so_far(self) -> str:
        return excerpt(self._partial.text, _MAX_PARTIAL_CHARS)

    def _skipped_defects(self) -> tuple[Defect, ...]:
        if not self._skipped:
            return ()
        return (Defect(Code.UPSTREAM_BAD_EVENT, f"{self._skipped} events were passed over."),)


def _refuse_many_values(data: str) -> None:
    """Refuse a large event that would become far larger, and take long, when it is decoded."""
    containers = data.count("{") + data.count("[")
    if containers > _MAX_CONTAINERS or data.count(",") > _MAX_VALUES:
        raise ProviderReplyError(
            Code.STREAM_TOO_LARGE,
            f"An event of the stream has more than {_MAX_CONTAINERS} objects and lists, "
            f"or more than {_MAX_VALUES} values.",
            hint="Look at what the provider sends; no reply is made of so many.",
        )


def may_have_halves(data: str) -> bool:
    """Tell whether halves of surrogate pairs may be in the text of an event."""
    return "\\ud" in data or "\\uD" in data


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
            text = mend_surrogates(text)
            shown.append(StreamDelta(kind, text, is_refusal=is_refusal))
        return text

    def flush(self, shown: list[StreamDelta]) -> tuple[str, ...]:
        """Show a mark for every half whose other half cannot come any more; return their kinds."""
        kinds = tuple(self._held)
        shown += [StreamDelta(kind, "\ufffd") for kind in kinds]
        self._held.clear()
        return kinds
