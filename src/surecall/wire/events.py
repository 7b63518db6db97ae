"""The events of a streamed reply: what each brought, together with the bytes it was.

One reader of each wire format is all that looks at them. Who folds a stream keeps what the events
brought; who passes it on keeps their bytes; whoever writes it in another way uses both.

The first bytes tell whether it is a stream at all; an event that cannot be read is refused or
passed over; a stream that ends before its reply does is `STREAM_TRUNCATED`. What the events mean
is for each format to say.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderReplyError,
    ProviderStatusError,
)
from surecall.base.json_values import as_fields, text_or_none
from surecall.base.limits import MAX_LINE_BYTES, MIB
from surecall.base.records import Defect, Usage
from surecall.base.redaction import excerpt
from surecall.text import SSEReader, decode, decoder_of, encode, repair_surrogates

from .errors import check_body, parse_error_object
from .partial_reply import Kept
from .records import RawReply, Stated, StreamDelta
from .replies import MAX_SNIPPET, decode_finite, make_finite, refuse_reply

PASS: Final = 0
"""Nothing that decides anything."""
TEXT: Final = 1
"""A piece of the text, which is in `piece`."""
CALL: Final = 2
"""A piece of a call."""
END: Final = 3
"""What ends the reply: the finish, and what comes behind it."""
PING: Final = 4
"""A sign of life, which has no place among the other events."""
FRAME: Final = 5
"""The beginning of a reply that begins with text, of which nothing has come yet."""

MAX_STREAM_BYTES: Final = 128 * MIB
_BLANK_LINE: Final = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_MARK: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_EVENT: Final = b"event: "
_DONE: Final = b"[DONE]"
_COLON: Final = 0x3A
_RETURN: Final = 0x0D
_FEED: Final = 0x0A
"""Numbers: Python looks for bytes in bytes only after it has failed to take them for a number."""
_BODY_STARTS: Final = b'{["<'
"""No line of an event stream begins so: the provider sent a plain body or a page."""
_MAX_PARTIAL_CHARS: Final = 20_000
_MAX_HEAD_BYTES: Final = 16 * 1024
_MAX_BODY_BYTES: Final = 16 * MIB
_LARGE_EVENT_BYTES: Final = 512 * 1024
_MAX_RUN_BYTES: Final = 32 * 1024
_MAX_LATE: Final = 256
_MAX_CONTAINERS: Final = 200_000
_MAX_VALUES: Final = 2_000_000


UNREADABLE: Final = (ValueError, RecursionError)
"""What decoding an event of another form than expected raises."""


class Event(NamedTuple):
    """One event of a stream."""

    raw: bytes
    """Its bytes, with the blank line behind it."""
    data: bytes
    """What it carries; nothing when it is only a comment, or blank."""
    name: str = ""
    is_plain: bool = False
    """Whether it is one line of data, behind its name if it has one, in the usual form."""


class EventCutter:
    """Cuts the bytes of one stream behind blank lines; any split of them gives the same events.

    An event or a stream that is too long raises `STREAM_TOO_LARGE`.
    """

    __slots__ = ("_max_event_bytes", "_max_stream_bytes", "_partial", "has_returns", "received")

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_LINE_BYTES,
        max_stream_bytes: int = MAX_STREAM_BYTES,
    ) -> None:
        self._partial = bytearray()
        """The beginning of an event that waits for the rest of it."""
        self.has_returns = False
        """Whether any line ends in a carriage return."""
        self.received = 0
        self._max_event_bytes = max_event_bytes
        self._max_stream_bytes = max_stream_bytes

    def take(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those of all events that are whole now."""
        self.received += len(chunk)
        if self.received > self._max_stream_bytes:
            raise _too_large("The stream", self._max_stream_bytes)
        if not self.has_returns and _RETURN in chunk:
            self.has_returns = True
        partial = self._partial
        if not partial and not self.has_returns and chunk.endswith(b"\n\n"):
            return chunk
        searched = max(0, len(partial) - 3)
        partial += chunk
        end = self._last_end(partial, searched)
        whole = bytes(partial[:end])
        del partial[:end]
        if len(partial) > self._max_event_bytes:
            raise _too_large("An event of the stream", self._max_event_bytes)
        return whole

    def cut(self, data: bytes, start: int = 0) -> Event:
        """Return the event that begins at a place of bytes that `take` returned."""
        if self.has_returns:
            found = _BLANK_LINE.search(data, start)
            end = len(data) if found is None else found.end()
            return _read(data[start:end], data[start:end])
        if data[start] == _COLON and b"data" not in data:
            return Event(data[start:], b"")  # comments alone, which may be very many
        end = data.find(b"\n\n", start) + 2
        return _read(data[start : end - 2], data[start:end])

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return all events that are whole now."""
        data, at = self.take(chunk), 0
        events: list[Event] = []
        while at < len(data):
            events.append(self.cut(data, at))
            at += len(events[-1].raw)
        return events

    def close(self) -> Event:
        """Return what is behind the last whole event; it may have been cut."""
        rest = bytes(self._partial)
        self._partial.clear()
        return _read(rest.rstrip(b"\r\n"), rest) if rest.strip() else Event(b"", b"")

    def _last_end(self, data: bytes | bytearray, start: int) -> int:
        if not self.has_returns:
            return data.rfind(b"\n\n", start) + 2 if data.find(b"\n\n", start) >= 0 else 0
        end = 0
        for found in _BLANK_LINE.finditer(data, start):
            if found.end() < len(data) or not data.endswith(b"\n\r"):  # a line feed may follow
                end = found.end()
        return end


def cut_events(data: bytes) -> list[Event]:
    """Return the events of some bytes, all of which are whole."""
    return EventCutter().feed(data) if data else []


def _read(block: bytes, raw: bytes) -> Event:
    """Return the event of a block of lines."""
    if block[:6] == _DATA:
        if _FEED not in block and _RETURN not in block:
            return Event(raw, block[6:], "", True)  # noqa: FBT003 - names take time
    elif block[:7] == _EVENT:
        line = block.find(b"\n") + 1
        is_plain = block[line : line + 6] == _DATA and block.find(b"\n", line) < 0
        if line and is_plain and _RETURN not in block:
            name = str(block[7 : line - 1], "utf-8", "replace")
            return Event(raw, block[line + 6 :], name, True)  # noqa: FBT003 - names take time
    elif not block or (block[0] == _COLON and _FEED not in block and _RETURN not in block):
        return Event(raw, b"")
    events = SSEReader().feed(block.removeprefix(_MARK).rstrip(b"\r\n") + b"\n\n")
    if not events:
        return Event(raw, b"")
    event = events[-1]
    name = "" if event.event == "message" else event.event
    return Event(raw, event.data.encode("utf-8", "surrogatepass"), name)


def _too_large(what: str, max_bytes: int) -> ProviderReplyError:
    return ProviderReplyError(
        Code.STREAM_TOO_LARGE,
        f"{what} is longer than {max_bytes} bytes.",
        hint="Ask for less with `max_tokens`, or look at what the provider sends.",
    )


class Run(NamedTuple):
    """Events that only went on with one text, or with the arguments of one call."""

    kind: int
    raw: bytes
    pieces: list[str]
    tail: bytes
    """The part after the text of each."""

    def cut(self, count: int) -> list[Event]:
        """Return the last events one by one, behind one that holds all before them."""
        last = self.raw.rsplit(self.tail, count + 1)[-count - 1 : -1]
        at = len(self.raw) - sum(map(len, last)) - count * len(self.tail)
        return [Event(self.raw[:at], b""), *cut_events(self.raw[at:])]


class _Form(NamedTuple):
    """How an event is written: the bytes around its text, in which another one may stand."""

    start: bytes
    """With a hole in the place of its number, if it has one."""
    end: bytes
    kind: int
    place: Any


_HOLE: Final = b"\0"
_NUMBERS_AS: Final = (b'"sequence_number":%d', b'"sequence_number": %d')
_decode_texts: Final = decoder_of(list[str])


def _find_form(raw: bytes, more: tuple[int, Any, str], number: int | None) -> _Form | None:
    """Return the form of an event that was read in full, if it can be told from its bytes."""
    kind, place, text = more
    if not text or _HOLE in raw or may_have_halves(raw):
        return None
    written = encode(text)
    start, found, end = raw.partition(written)
    if not found or written in end or b"\\" in start or b"\\" in end:
        return None  # the text may be elsewhere, written in another way
    start, end = start + b'"', b'"' + end
    if number is not None:
        style = next((style for style in _NUMBERS_AS if raw.count(style % number) == 1), b"")
        numbered = style and start.replace(style % number, style.replace(b"%d", _HOLE))
        if not numbered or _HOLE not in numbered:
            return None
        start = numbered
    return _Form(start, end, kind, place)


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


class EventReader(ABC):
    """Reads one streamed reply.

    Feed it every chunk and close it to fold the reply; or take one event after the other to learn
    what each brought, and close it if the whole is wanted.

    Args:
        headers: Headers of the answer.
        skip_bad_events: Whether events that cannot be read are passed over.
        is_passed: Whether the client gets the events as they come.
        choices: How many replies were asked for; only the first is read, but all have to end.
        is_legacy: Whether the client looks for a call in an older field, where there is one.
    """

    end_is: str = "a finish reason"
    """What a stream of this format must have to be complete, in words."""
    is_named: bool = False
    """Whether clients of this format look for the name of every event."""
    has_choices: bool = False
    """Whether several replies can be asked for at once."""
    takes_comments: bool = True
    """Whether clients of this format take comments."""
    parse_body: Callable[[bytes, Mapping[str, str]], RawReply]
    """Reads a plain body that came instead of a stream."""
    parse_error: Callable[..., ProviderStatusError] = staticmethod(parse_error_object)
    """Understands an error event."""
    _partial: _Partial
    """The reply, as far as it has arrived."""

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        *,
        skip_bad_events: bool = False,
        is_passed: bool = False,
        choices: int = 1,
        is_legacy: bool = False,
    ) -> None:
        self._headers = headers or {}
        self._skips = skip_bad_events
        self._cutter = EventCutter()
        self._is_passed = is_passed
        self._kept = Kept(is_passed=is_passed)
        self._choices = choices if self.has_choices else 1
        self.is_legacy = is_legacy
        """Whether the client looks for a call in an older field."""
        self._head: bytes = b""
        self._undecided: bytes = b""
        self._is_sniffed = False
        self._body: bytearray | None = None
        self.done = False
        """Whether the provider said that nothing more will come."""
        self._is_closing = False
        self._skipped = 0
        self._form: _Form | None = None
        """How the last event was written, if it only went on."""
        self._late: list[str] = []
        """What came in runs and is not added to the reply yet."""
        self._more: tuple[int, Any, str] | None = None
        """What such an event brought: whether a text or arguments, where, and which."""
        self.sequence: int | None = None
        """The number of the last event, where the format numbers these."""
        self._repeated: tuple[Defect, ...] = ()
        self.events = 0
        """How many events with data have come."""
        self.finish: str | None = None
        """Why the model stopped, in the words of the records."""
        self.model: str | None = None
        """The model that answered."""
        self.usage: Usage | None = None
        """The tokens, as far as they are known."""
        self.piece = ""
        """The text that the last event brought."""
        self.is_odd = False
        """Whether something came that not every client of the format understands as it is."""
        self.has_calls = False
        """Whether any piece of a call has come, of whatever tool."""
        self.untyped: list[int] = []
        """The numbers of calls that came without their type, where the format has one."""
        self.begins_with_text = False
        """Whether text is the first part of the reply, where the format numbers these."""
        self.is_refused = False
        """Whether the last event was cut, so that it is left out."""
        self.stated: Stated | None = None
        """Why there is no answer, where the endpoint says so in a form that clients know."""
        self._begin()

    @property
    def came_whole(self) -> bool:
        """Whether a plain body came where a stream was asked for."""
        return self._body is not None

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return self._partial.calls_count

    @property
    def is_several(self) -> bool:
        """Whether several replies were asked for."""
        return self._choices > 1

    @property
    def has_ended(self) -> bool:
        """Whether the reply came to its end, now that nothing more will come."""
        return self._has_ended()

    # folding

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        shown: list[StreamDelta] = []
        if self.done:
            return shown
        for item in self.read(chunk):
            if isinstance(item, Run):
                if item.kind == TEXT:
                    shown += [StreamDelta("text", piece) for piece in item.pieces if piece]
            elif item.data:
                self._take_event(item, shown)
            if self.done:
                break
        return shown

    def close(self) -> RawReply:
        """Return the reply.

        Raises:
            ProviderError: The stream ended before the reply did (`STREAM_TRUNCATED`, with the text
                so far in `body`), or what was sent is not a stream of a reply.
        """
        if self._body is not None:
            return self.parse_body(bytes(self._body), self._headers)
        if not self.done:
            event = self.rest()
            if event.data:
                self._take_event(event, [])
        if not self._has_ended():
            raise self.incomplete()
        return self._render()

    # event by event

    def read(self, chunk: bytes) -> Iterable[Event | Run]:
        """Take the next bytes and return the events that are whole now; none of a plain body.

        Each has to be taken before the next is asked for, but for those of a run.

        Raises:
            ProviderError: They are too many.
        """
        if not self._is_sniffed:
            chunk = self._sniff(chunk)
        if self._body is not None:
            self._take_body(chunk)
            return ()
        data, form = self._cutter.take(chunk), self._form
        run = None
        if form is not None and data:
            run = self._read_run(form, data[:_MAX_RUN_BYTES])
            if run is not None and run.raw is data:
                return (run,)
        return self._read_on(data, run)

    def _read_on(self, data: bytes, found: Event | Run | None) -> Iterator[Event | Run]:
        at = 0
        while at < len(data):
            if found is None and self._form is not None:
                found = self._read_run(self._form, data[at : at + _MAX_RUN_BYTES])
            found = found or self._cutter.cut(data, at)
            at += len(found.raw)
            yield found
            found = None

    def rest(self) -> Event:
        """Return what is behind the last whole event, now that nothing more will come."""
        self._is_closing = True
        self._add_late()
        return self._cutter.close()

    def take(self, event: Event) -> int:
        """Take the next event, which has data, and return what it brought.

        Raises:
            ProviderError: It is an error, or cannot be read.
        """
        shown: list[StreamDelta] = []
        kind = self._take_event(event, shown)
        if not shown:
            self.piece = ""
            return kind
        if len(shown) == 1:
            only = shown[0]
            self.piece = only.text if only.kind == "text" and not only.is_refusal else ""
        else:
            texts = [it.text for it in shown if it.kind == "text" and not it.is_refusal]
            self.piece = "".join(texts)
        return kind or (TEXT if self.piece else PASS)

    def _read_run(self, form: _Form, data: bytes) -> Run | None:
        """Read the first events of some that differ from the last one in their text alone."""
        start, tail, kind, _ = form
        number = self.sequence
        texts: list[bytes] = []
        size = 0
        if number is None:
            if not data.startswith(start):
                return None
            text, found, rest = data.removeprefix(start).partition(tail)
            if found and not rest and text[-1:] != b"\\":
                texts, size = [text], len(data)  # as events come that the model is still writing
            else:
                texts, size = _split_texts(data, start, tail)
        if not texts:
            head: bytes = start
            for block in data.split(tail)[:-1]:
                if number is not None:
                    head = start.replace(_HOLE, b"%d" % (number + len(texts) + 1))
                if not block.startswith(head) or block[-1:] == b"\\":  # which may hide its end
                    break
                texts.append(block[len(head) :])
                size += len(block) + len(tail)
        try:
            pieces = _decode_texts(b'["%b"]' % b'","'.join(texts))
        except UNREADABLE:
            return None
        count = len(pieces)
        if not count or count != len(texts):
            return None
        self.events += count
        if number is not None:
            self.sequence = number + count
        self._late += pieces
        if len(self._late) > _MAX_LATE:
            self._add_late()
        return Run(kind, data if size == len(data) else data[:size], pieces, tail)

    def _add_late(self) -> None:
        """Add what came in runs to the reply."""
        if self._late and self._form is not None:
            text, self._late = "".join(self._late), []
            self._add_more(self._form.kind, self._form.place, text)

    def write(self, event: Event) -> bytes:
        """Return an event in the form that the official clients of the format read.

        The rules of event streams allow more than these clients understand: some take no comments,
        some look for the name of every event, some want a blank behind the colon.
        """
        raw = event.raw
        if event.is_plain and bool(event.name) == self.is_named:
            return raw
        if not (event.data or self.takes_comments):
            return b""
        plain = raw.replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n\n"
        if b"\r" not in plain:
            same = _read(plain[:-2], plain)
            if same.is_plain and bool(same.name) == self.is_named:
                return raw
        if not event.data:
            blocks = plain[:-2].split(b"\n\n") if self.takes_comments and b"\r" not in plain else ()
            is_read = all(block[:1] == b":" and b"\n" not in block for block in blocks)
            return raw if blocks and is_read else b""
        name = event.name
        if self.is_named:
            name = text_or_none(fields_or_none(event.data).get("type")) or name
        elif name != "error":
            name = ""
        return same_event(event.data, name)

    # what each format says

    @property
    def reply_id(self) -> str | None:
        """The id of the reply, where its end has to name it once more."""
        return None

    @abstractmethod
    def _begin(self) -> None:
        """Make what the events are folded into; `_partial` is the reply."""

    @abstractmethod
    def _add_more(self, kind: int, place: Any, text: str) -> None:
        """Add the text of events which are like one that only went on."""

    @abstractmethod
    def _take_fields(
        self, fields: dict[str, Any], event: Event, shown: list[StreamDelta]
    ) -> int | None:
        """Take what one event brought, and return what that is, besides text."""

    @abstractmethod
    def _render(self) -> RawReply:
        """Return the reply, which came to its end."""

    def takes_finish(self, finish: str | None, *, is_named: bool) -> bool:
        """Tell whether clients look for calls in a reply that ends so.

        Args:
            finish: Why the model stopped, in the words of the records.
            is_named: Whether one tool was demanded by its name.
        """
        return finish in ("stop", "tool_calls")

    def _has_ended(self) -> bool:
        """Tell whether the reply came to its own end."""
        return self.done

    def _decode(self, data: bytes | str) -> Any:
        """Decode an event; halves of characters are kept, to be joined with what follows."""
        return decode(data, surrogates="keep")

    def _take_done(self, shown: list[StreamDelta]) -> int:
        """Take `[DONE]`, which says nothing in most formats, though some servers write it."""
        return PASS

    # what they share

    def _sniff(self, chunk: bytes) -> bytes:
        """Find out from the first bytes whether this is a stream of events at all.

        Space may go on without end before it is known; what cuts events takes it as it comes.
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

    def _take_event(self, event: Event, shown: list[StreamDelta]) -> int:
        data = event.data
        self._add_late()
        if data[:1] == b"[" and data.strip() == _DONE:
            return self._take_done(shown)
        self.events += 1
        self._form = self._more = None
        if len(data) > _LARGE_EVENT_BYTES:
            _refuse_many_values(data)
        try:
            event, value = self._decode_event(event)
        except JSONTextError as error:
            if event.name == "error":
                raise self._read_error(data.decode("utf-8", "replace")) from None
            return self._refuse_event(data, error.message)
        if event.name == "error":
            raise self._read_error(value)
        if value.__class__ is not dict:
            return self._refuse_event(data, "it is not a JSON object.")
        kind = self._take_fields(value, event, shown) or PASS
        more = self._more
        if more is not None and event.is_plain and bool(event.name) is self.is_named:
            self._form = _find_form(event.raw, more, self.sequence)
        return kind

    def _decode_event(self, event: Event) -> tuple[Event, Any]:
        """Return an event and its value, with null for figures that are not finite."""
        try:
            return event, self._decode(event.data)
        except JSONTextError as problem:
            data = make_finite(event.data) if problem.code == Code.NON_FINITE_NUMBER else None
            if data is None:
                data = event.data.decode("utf-8", "replace").encode()
                if data == event.data:
                    raise
            return event._replace(data=data), self._decode(data)

    def _refuse_event(self, data: bytes, why: str) -> int:
        if self._is_closing:  # the last event, cut short; the end decides whether it matters
            self.is_refused = True
            return PASS
        if self._skips:
            self._skipped += 1
            return PASS
        message = f"Event {self.events} of the stream cannot be read: {why}"
        snippet = excerpt(repair_surrogates(data.decode("utf-8", "replace")), MAX_SNIPPET)
        raise refuse_reply(Code.UPSTREAM_BAD_EVENT, message, snippet)

    def _refuse_order(self, why: str) -> ProviderError:
        """Return the error for an event that may not come at this place of the stream."""
        message = f"Event {self.events} of the stream {why}."
        return refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, self._text_so_far())

    def _read_error(self, value: Any) -> ProviderError:
        """Return what an error event stands for; it goes on as it is if clients know its form."""
        error = self.parse_error(value, 200, self._headers, fallback=Code.STREAM_ERROR)
        error.body = self._text_so_far() or None
        self._state(error, value)
        return error

    def _state(self, error: ProviderError, value: Any) -> None:
        fields = as_fields(value)
        if text_or_none(as_fields(fields.get("error")).get("message")):
            data = encode({key: item for key, item in fields.items() if key != "choices"})
            self.stated = Stated(error, data, data)

    def incomplete(self) -> ProviderError:
        """Return the error of a stream that ended before its reply."""
        error = None if self._is_sniffed else check_body(self._headers, self._head)
        if error is not None:
            return error
        state = f"{self.events} events and {self._partial.calls_count} begun calls"
        message = f"The stream ended without {self.end_is} after {state}."
        start = self._head.decode("utf-8", "replace") if not self.events else ""
        body = self._text_so_far() or excerpt(start, MAX_SNIPPET)
        return refuse_reply(Code.STREAM_TRUNCATED, message, body)

    def _text_so_far(self) -> str:
        return excerpt(self._partial.text, _MAX_PARTIAL_CHARS)

    def _skipped_defects(self) -> tuple[Defect, ...]:
        if not self._skipped:
            return ()
        return (Defect(Code.UPSTREAM_BAD_EVENT, f"{self._skipped} events were passed over."),)


def _split_texts(data: bytes, start: bytes, tail: bytes) -> tuple[list[bytes], int]:
    """Return the texts of events that stand between the same bytes, and the size of these events.

    Nothing is returned where events one by one have to show which of them do.
    """
    *texts, last = data[len(start) :].split(tail + start)
    end = last.find(tail)
    size = len(data) - len(last) + end + len(tail)
    if end < 0 or data.count(tail, 0, size) > len(texts) + 1 or b"\\" + tail in data:
        return [], 0
    return [*texts, last[:end]], size


def _refuse_many_values(data: bytes) -> None:
    """Refuse a large event that would become far larger, and take long, when it is decoded."""
    containers = data.count(b"{") + data.count(b"[")
    if containers > _MAX_CONTAINERS or data.count(b",") > _MAX_VALUES:
        raise ProviderReplyError(
            Code.STREAM_TOO_LARGE,
            f"An event of the stream has more than {_MAX_CONTAINERS} objects and lists, "
            f"or more than {_MAX_VALUES} values.",
            hint="Look at what the provider sends; no reply is made of so many.",
        )


def may_have_halves(data: bytes) -> bool:
    """Tell whether halves of surrogate pairs may be in the text of an event."""
    return b"\\ud" in data or b"\\uD" in data


_NUMBERS: Final = ("index", "output_index", "content_index", "sequence_number")


def fields_of(data: bytes) -> dict[str, Any]:
    """Return the object that an event carries, without numbers of parts that are none."""
    fields = as_fields(decode_finite(data))
    if any(isinstance(fields.get(name), list | dict) for name in _NUMBERS):
        odd = (list, dict)
        fields = {
            key: item
            for key, item in fields.items()
            if key not in _NUMBERS or not isinstance(item, odd)
        }
    return fields


def fields_or_none(data: bytes) -> dict[str, Any]:
    """Return the object that an event carries, and nothing where it carries none."""
    try:
        return fields_of(data)
    except JSONTextError:
        return {}


def event_of(value: Any, name: str = "") -> bytes:
    """Return one event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encode(value) + b"\n\n"


def same_event(data: bytes, name: str = "") -> bytes:
    """Return an event with the data it had."""
    lines = data.split(b"\n")
    head = f"event: {name}\n".encode() if name else b""
    return head + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
