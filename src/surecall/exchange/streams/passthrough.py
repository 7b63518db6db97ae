"""A stream in the client's own format: its events go on as they are, unless calls are damaged."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

from surecall.base.errors import Code, ProviderError, ProviderReplyError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MIB
from surecall.base.records import RawCall, Reading, Receipt, Reply, ToolCall, Usage
from surecall.exchange.checks import takes_calls
from surecall.exchange.policy import Policy
from surecall.exchange.prepare import Asked
from surecall.exchange.reply_checker import ReplyChecker, leave_others
from surecall.exchange.request import ClientRequest
from surecall.exchange.signatures import has_own_id, is_signed
from surecall.exchange.thoughts import LeadingThought, ThoughtEvents
from surecall.exchange.verdict import StreamEnd
from surecall.reading.taught import with_receipts
from surecall.reading.truncation import came_to_its_end
from surecall.text import ObjectPrefix, continue_json
from surecall.wire import Stated
from surecall.wire.events import (
    CALL,
    END,
    FRAME,
    PASS,
    PING,
    Event,
    Run,
    cut_events,
    fields_or_none,
    may_have_halves,
)
from surecall.wire.rewriting import Begun, CallPiece, EventRewriter, note_finish, note_type

from .held_text import TextWatch

_STARTS: Final = {
    "array": "[",
    "boolean": "tf",
    "integer": "-0123456789",
    "null": "n",
    "number": "-0123456789",
    "object": "{",
    "string": '"',
}
"""What values of a type begin with."""


class BegunCall:
    """The first call of a stream, looked at as it comes; the first doubt ends that.

    Args:
        request: What the client asked.
        writer: Knows what the events of the format bring.
        used_ids: Returns the ids of the calls of the conversation.
    """

    def __init__(
        self,
        request: ClientRequest,
        writer: EventRewriter[Any],
        used_ids: Callable[[], Collection[str]],
    ) -> None:
        self._request = request
        self._writer = writer
        self._used_ids = used_ids
        self._first: CallPiece | None = None
        self._prefix = ObjectPrefix(_takes_any)
        self._pieces: list[str] = []
        self.size = 0
        """How many bytes of arguments there are without a doubt."""
        self.is_sound = True

    def take(self, data: bytes) -> bool:
        """Take the data of the next event; tell whether it may go on."""
        piece = None
        if self.is_sound and not may_have_halves(data):
            piece = self._writer.read_piece(fields_or_none(data))
        self.is_sound = piece is not None and self._fits(piece) and self._prefix.feed(piece.text)
        if piece is not None and self.is_sound:
            self._pieces.append(piece.text)
            self.size += len(piece.text.encode())
        return self.is_sound

    def go_on(self, calls: Sequence[ToolCall]) -> Begun | None:
        """Return how the call goes on to be the first of these; nothing if it cannot."""
        first, call = self._first, calls[0] if calls else None
        if first is None or call is None or first.item is None:
            return None
        if call.name != first.name:
            return None
        begun = "".join(self._pieces)
        rest = continue_json(begun, call.arguments)
        return None if rest is None else Begun(first.place, first.item, begun + rest, rest)

    def _fits(self, piece: CallPiece) -> bool:
        first = self._first
        if first is not None:
            return piece.place == first.place and not (piece.name or piece.call_id)
        request, tools = self._request, self._request.tools
        call_id = piece.call_id
        is_new = call_id == call_id.strip() != "" and call_id not in self._used_ids()
        is_offered = piece.name in tools.names and request.choice.takes(piece.name)
        if not (is_new and is_offered) or piece.item is None:
            return False
        if tools.is_other(piece.name, piece.item):
            return False
        schema = tools.names.parameters(piece.name) or {}
        if properties := as_fields(schema.get("properties")):
            self._prefix = ObjectPrefix(partial(_takes, properties))
        self._first = piece
        return True


def _takes(properties: dict[str, Any], name: str, start: str) -> bool:
    """Tell whether an argument of this name, whose value begins so, needs no repair."""
    if name not in properties:
        return False
    stated: Any = as_fields(properties[name]).get("type")
    kinds = [stated] if isinstance(stated, str) else as_list(stated)
    return not kinds or any(start in _STARTS.get(str(kind), start) for kind in kinds)


def _takes_any(_name: str, _start: str) -> bool:
    return True


_MAX_HELD_BYTES: Final = 16 * MIB
_MAX_EARLY_BYTES: Final = 256 * 1024
_CALL_ENDS: Final = frozenset({"tool_calls", "function_call", "malformed_function_call"})
_HARMLESS: Final = frozenset(
    {
        Code.CHOICES_IGNORED,
        Code.CONTENT_AS_PARTS,
        Code.LEGACY_FUNCTION_CALL,
        Code.PART_NOT_KNOWN,
        Code.TURN_PAUSED,
    }
)
"""What may be odd about a reply whose calls every client understands."""
_OWN: Final = Asked(body=b"")


class Passing:
    """Passes the events of one stream on, and holds them back from the first call on.

    Args:
        request: What the client asked.
        policy: What may be done.
        checker: Reads what is not clean.
        headers: Headers of the answer.
        clock: The time in seconds.
    """

    def __init__(
        self,
        request: ClientRequest,
        policy: Policy,
        checker: ReplyChecker,
        headers: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self.is_tagged = False
        """Whether reasoning in tags began that only `Translating` can pass on as reasoning."""
        self.has_begun = False
        """Whether the client has the beginning of a call, which cannot be taken back."""
        self.pulses = 0
        """How many events without content were sent between the events of the endpoint."""
        self._call: BegunCall | None = None
        """The first call, as long as it may go on before the reply has ended."""
        self._held_at = 0.0
        self._looked = 0
        """How many of the waiting events may go on with that call."""
        self._request = request
        self._policy = policy
        self._checker = checker
        protocol = request.protocol
        self._reader = protocol.open_stream(
            headers, is_passed=True, choices=request.choices, is_legacy=request.is_legacy
        )
        self._writer = protocol.open_rewriter(self._reader, is_other=request.tools.is_other)
        self._is_relayed = self._reader.is_several
        self._watch: TextWatch | None = None
        looks = policy.text_formats and policy.allows("repair") and not self._is_relayed
        # Numbered parts are written anew, and what a provider's own tools send is not among them.
        finds_thoughts = self._writer.parts_text or not request.tools.others
        if looks and request.offers_tools and not request.demands_form:
            self._watch = self._open_watch(finds_thoughts=finds_thoughts)
        self._thoughts: ThoughtEvents | None = None
        """Writes the text anew, which began with reasoning."""
        self._is_thinking = False
        self.early: bytearray | None = None
        """All bytes so far, as long as such reasoning may still begin."""
        if self._watch is not None and finds_thoughts and not self._writer.parts_text:
            self.early = bytearray()
        self._waiting: list[tuple[Event, int]] = []
        """Events that are held back, and how much text had come with each."""
        self._waiting_bytes = 0
        self._is_holding = False
        self._error: SurecallError | None = None
        self._has_words = False
        """Whether there is any text besides blanks."""
        self._reply: Reply | None = None

    def _open_watch(self, *, finds_thoughts: bool) -> TextWatch:
        return TextWatch(
            self._request.tools.names,
            self._policy.limits,
            self._checker.used_ids,
            finds_thoughts=finds_thoughts,
        )

    @property
    def stated(self) -> Stated | None:
        """Why there is no answer, in the words of the endpoint."""
        return self._reader.stated

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What was changed in events that were passed on."""
        return () if self._thoughts is None else self._thoughts.receipts

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        return self._error is not None or self._reader.done or self.is_tagged

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self._reader.model

    @property
    def reply_id(self) -> str | None:
        """The id of the reply, where its end has to name it once more."""
        return self._reader.reply_id

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return self._reader.usage

    # What goes on

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those for the client."""
        reader = self._reader
        if self._error is not None or reader.done:
            return b""
        if self.early is not None:
            self._keep_early(chunk)
        passed: list[bytes] = []
        try:
            for item in reader.read(chunk):
                passed.append(self._take_run(item) if isinstance(item, Run) else self._take(item))
                if self._error is not None or reader.done or self.is_tagged:
                    break
        except ProviderError as error:
            self._error = error
        if self._call is not None and self._error is None:
            passed.append(self._let_go(self._call))
        return passed[0] if len(passed) == 1 else b"".join(passed)

    def _let_go(self, call: BegunCall) -> bytes:
        """Return what of a call goes on already: nothing unless it is long, or comes slowly."""
        policy, waiting = self._policy, self._waiting
        is_late = self._clock() - self._held_at >= policy.hold_calls_s
        is_large = self._waiting_bytes > policy.hold_calls_bytes
        if not (is_late or is_large or self.has_begun) or not call.is_sound:
            return b""
        while self._looked < len(waiting) and call.is_sound:
            at = self._looked
            waiting[at : at + 1] = [(one, 0) for one in cut_events(waiting[at][0].raw)]
            data = waiting[at][0].data
            self._looked += not data or call.take(data)
        is_begun = call.size > 0 and (is_late or call.size > policy.hold_calls_bytes)
        if self._reader.is_odd or self._reader.untyped or not (self.has_begun or is_begun):
            return b""
        self.has_begun, self.early = True, None
        passed, self._waiting = waiting[: self._looked], waiting[self._looked :]
        self._looked = 0
        raw = b"".join([event.raw for event, _ in passed])
        self._waiting_bytes -= len(raw)
        return raw

    def _take_run(self, run: Run) -> bytes:
        """Take events that only go on with one text or one call, and return what goes on now."""
        pieces, watch = run.pieces, self._watch
        if run.kind == CALL:
            self._is_holding = True
            self._wait(Event(run.raw, b""), 0)
            return b""
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        if self._is_holding:
            return self._hold(Event(run.raw, b""), text)
        if not self._has_words:
            self._has_words = not text.isspace()
        if watch is None:
            return run.raw
        if self._is_thinking:
            return self._take_each(run.cut(len(pieces))[1:], pieces)
        if watch.pass_plain(text):
            return self._let_pass(run.raw)
        if len(pieces) == 1:
            return self._doubt(watch, Event(run.raw, b""), text)
        if not watch.take_plain(text):
            return self._take_each(run.cut(len(pieces))[1:], pieces)
        end, open_count = watch.fed, 0
        while open_count < len(pieces) and end > watch.decided:  # a call may begin at the end
            open_count += 1
            end -= len(pieces[-open_count])
        first, *last = run.cut(open_count)
        self._wait(first, end)
        for event, piece in zip(last, pieces[len(pieces) - open_count :], strict=True):
            end += len(piece)
            self._wait(event, end)
        return self._release(watch)

    def _take_each(self, events: list[Event], pieces: list[str]) -> bytes:
        out: list[bytes] = []
        for event, piece in zip(events, pieces, strict=True):
            out.append(self._send(event, piece))
            if self.is_tagged or self._error is not None:
                break
        return b"".join(out)

    def _keep_early(self, chunk: bytes) -> None:
        assert self.early is not None
        self.early += chunk
        is_at_start = self._watch is not None and self._watch.is_at_start
        if not is_at_start or len(self.early) > _MAX_EARLY_BYTES:
            self.early = None

    def _take(self, event: Event) -> bytes:
        """Take an event and return what of it goes on now."""
        reader = self._reader
        kind, piece = PING, ""
        if event.data:
            try:
                kind = reader.take(event)
            except SurecallError as error:
                self._error = error
                return b""
            piece = reader.piece
        raw = reader.write(event)
        if kind == PING:
            if event.data or event.raw[:1] == b":" or not (self._is_holding or self._waiting):
                return raw
            piece, kind = "", PASS
        if not raw:
            return b""
        if raw is not event.raw:
            event = event._replace(raw=raw)
        if kind in (CALL, END) and not self._is_holding:
            self._is_holding = True
            if kind == CALL and not piece:
                self._watch_call()
            return self._take_end(event, piece)
        return self._send(event, piece, is_framed=kind == FRAME)

    def _watch_call(self) -> None:
        """Look at the first call of the reply, if nothing before it is in doubt."""
        request, watch = self._request, self._watch
        said = "" if watch is None else watch.undecided
        if said.strip() or self._is_thinking or self._is_relayed:
            return
        if not request.offers_tools or request.is_legacy or request.restores_calls:
            return
        self._call = BegunCall(request, self._writer, self._checker.used_ids)
        self._held_at, self._looked = self._clock(), len(self._waiting)

    def _send(self, event: Event, piece: str, *, is_framed: bool = False) -> bytes:
        if self._is_holding:
            return self._hold(event, piece)
        if self._is_thinking:
            return self._think(event, piece)
        return self._flow(event, piece, is_framed=is_framed)

    def _flow(self, event: Event, text: str, *, is_framed: bool = False) -> bytes:
        """Pass one event on, unless a call may begin in its text or in that of one before it."""
        watch = self._watch
        if text and not self._has_words:
            self._has_words = not text.isspace()
        if watch is None:
            return event.raw
        if not text and not self._waiting and not (is_framed and self.early is not None):
            return event.raw
        if text and watch.pass_plain(text):
            return self._let_pass(event.raw)
        return self._doubt(watch, event, text, is_framed=is_framed)

    def _let_pass(self, raw: bytes) -> bytes:
        """Return events that are certain, behind those that waited for them."""
        if not self._waiting:
            return raw
        waited = [waiting.raw for waiting, _ in self._waiting]
        self._waiting.clear()
        self._waiting_bytes = 0
        return b"".join((*waited, raw))

    def _doubt(
        self, watch: TextWatch, event: Event, text: str, *, is_framed: bool = False
    ) -> bytes:
        """Let an event wait, in whose text a call may begin, and return what need not wait."""
        if text:
            watch.feed(text)
        # What began the reply waits for the first text.
        self._wait(event, max(watch.fed, is_framed and self.early is not None))
        released = b"" if watch.has_calls else self._release(watch)
        if watch.begins_thought:
            released += self._begin_thoughts(watch)
        self._is_holding = self._is_holding or watch.has_calls
        return released

    def _release(self, watch: TextWatch) -> bytes:
        """Return the waiting events of which the text is decided."""
        if not self._waiting or self._waiting[0][1] > watch.decided:
            return b""
        count = bisect_right(self._waiting, watch.decided, key=itemgetter(1))
        released, self._waiting = self._waiting[:count], self._waiting[count:]
        self._waiting_bytes -= sum(len(event.raw) for event, _ in released)
        watch.note_passed(released[-1][1])
        return b"".join([event.raw for event, _ in released])

    def _hold(self, event: Event, piece: str) -> bytes:
        """Hold an event back until the end of the reply says what it is."""
        if piece:
            self._has_words = self._has_words or not piece.isspace()
            if self._watch is not None:
                self._watch.feed(piece)
        self._wait(event, 0)
        return b""

    def _wait(self, event: Event, text_end: int) -> None:
        self._waiting.append((event, text_end))
        self._waiting_bytes += len(event.raw)
        if self._waiting_bytes > _MAX_HELD_BYTES:
            self._error = ProviderReplyError(
                Code.STREAM_TOO_LARGE,
                f"Calls of more than {_MAX_HELD_BYTES} bytes would have to be held back.",
                hint="Ask for less with `max_tokens`, or without streaming.",
            )
            self._waiting.clear()

    # Reasoning that the text begins with

    def _take_end(self, event: Event, piece: str) -> bytes:
        """Take the first event that is held back, and return what of it goes on all the same."""
        watch = self._watch
        begun = b""
        if piece and watch is not None and not self._is_thinking:
            watch.feed(piece)
            begun = self._begin_thoughts(watch)
        if not self._is_thinking:
            self._has_words = self._has_words or bool(piece.strip())
            self._wait(event, 0)
            return begun
        assert self._thoughts is not None
        self._is_thinking = False
        parts, text = self._thoughts.hold(event.data, piece)
        said = self._pass_text(parts.text, text)
        for rest in cut_events(parts.rest):
            self._wait(rest, 0)
        return begun + parts.thought + said

    def _begin_thoughts(self, watch: TextWatch) -> bytes:
        """Write events that wait anew, if their text begins with reasoning."""
        if not watch.begins_thought:
            return b""
        self.is_tagged = self._reader.begins_with_text and self.early is not None
        if self.is_tagged:
            return b""
        text, waiting = watch.undecided, self._waiting
        self._waiting, self._waiting_bytes = [], 0
        self._watch = self._open_watch(finds_thoughts=False)
        self._has_words = False
        if self._writer.parts_text:
            names, limits = self._request.tools.names, self._policy.limits
            lead = LeadingThought(names, limits, self._checker.used_ids)
            self._thoughts = ThoughtEvents(self._reader, self._writer, lead)
            self._is_thinking = True
        out: list[bytes] = []
        at = 0
        for event, end in waiting:
            out.append(self._think(event, text[at:end]))
            at = max(at, end)
        return b"".join(out)

    def _think(self, event: Event, piece: str) -> bytes:
        """Pass an event on, whose text may be reasoning."""
        if not self._is_thinking or not piece:
            return self._flow(event, piece)
        assert self._thoughts is not None
        data = event.data or cut_events(event.raw)[0].data
        parts, text = self._thoughts.take(data, piece)
        self._is_thinking = not self._thoughts.is_done
        return parts.rest + parts.thought + self._pass_text(parts.text, text)

    def _pass_text(self, raw: bytes, text: str) -> bytes:
        return b"".join([self._flow(event, text) for event in cut_events(raw)])

    # Signs of life

    def pulse(self) -> bytes:
        """Return an event that says nothing if the client waits for what is held back."""
        is_held = self._is_holding or (bool(self._waiting) and self.early is None)
        if not is_held or self._error is not None:
            return b""
        if self._call is not None and (gone := self._let_go(self._call)):
            return self.shift(gone)
        if self.has_begun and not self._waiting:
            return b""
        data = self._writer.pulse(next(self._held_events(), b""))
        if data:
            data = self.shift(data)
            self.pulses += 1
        return data

    def shift(self, data: bytes) -> bytes:
        """Return events of the endpoint numbered behind those that say nothing."""
        return self._writer.shift(data, self.pulses)

    # The end

    def close(self, error: SurecallError | None) -> StreamEnd:
        """Return what came, or raise why it is not whole."""
        reader = self._reader
        if self._error is None and not reader.done:
            if error is not None:
                self._error = error
            else:
                self._take_last(reader.rest())
        if self._error is not None:
            raise self._error
        if not reader.has_ended:
            if self._request.protocol.goes_on(self._request.body) and reader.reply_id is not None:
                return StreamEnd()  # clients ask for the rest by its id
            problem = reader.incomplete()
            problem.retryable = problem.retryable and not reader.events  # the client has some of it
            raise problem
        in_thought = None
        if self._thoughts is not None:
            in_thought = self._thoughts.read_calls(reader.finish)
        data = self.leave()
        if self._is_relayed:
            return StreamEnd(data=data, outcome="relayed")
        if reader.has_calls or reader.is_odd:
            return self._read_calls(data)
        if (found := self._read_text(data, in_thought)) is not None:
            return found
        if self._is_wanting():
            reply = self._fold()
            return StreamEnd(reading=self._checker.read(reply, _OWN), reply=reply, data=data)
        return StreamEnd(data=data)

    def _take_last(self, event: Event) -> None:
        """Take the last event, behind which the blank line is missing; it may be cut short."""
        if not event.data:
            return
        try:
            self._reader.take(event)
        except SurecallError as error:
            self._error = error
            return
        if self._reader.is_refused:
            return
        raw = self._reader.write(event._replace(raw=event.raw.rstrip(b"\r\n") + b"\n\n"))
        event = event._replace(raw=raw)
        was_holding, self._is_holding = self._is_holding, True
        if was_holding:
            self._hold(event, self._reader.piece)
            return
        begun = self._take_end(event, self._reader.piece)
        self._waiting[:0] = [(event, 0) for event in cut_events(begun)]

    def cut_short(self) -> bool:
        """End a reply that stops in a call as if it had come to its end; tell whether it does."""
        reader = self._reader
        if self._error is not None or self._is_relayed:
            return False
        if not reader.has_calls or reader.has_ended:
            return False
        stop = self._writer.stop(next(self._held_events(), b""))
        self._waiting += [(event, 0) for event in cut_events(stop)]
        return True

    def _is_wanting(self) -> bool:
        """Tell whether a reply without calls says nothing, or should have one."""
        if self._reader.finish in _CALL_ENDS:
            return True
        request = self._request
        if request.offers_tools and request.choice.wanted == "call":
            return True
        return not self._has_words and (request.offers_tools or request.has_calls)

    def _read_text(self, data: bytes, in_thought: Reading | None) -> StreamEnd | None:
        """Return the calls that the text has, or reasoning that never ended; else nothing."""
        finish = self._reader.finish
        reading, rest = in_thought, "" if in_thought is None else in_thought.content
        if reading is None and self._watch is not None:
            reading, rest = self._watch.close(finish)
        if reading is None or not reading.calls:
            return None
        reply = Reply(content=reading.content, finish_reason=finish)
        return StreamEnd(reading=reading, reply=reply, data=data, text=rest)

    def _read_calls(self, data: bytes) -> StreamEnd:
        reply = self._fold()
        if not reply.calls and self._request.choice.wanted != "call":
            return StreamEnd(data=data)
        finish = reply.finish_reason
        is_named = self._request.choice.only_tool is not None
        is_end_usual = self._reader.takes_finish(finish, is_named=is_named)
        is_usual = is_end_usual and not self._reader.is_odd
        if is_usual and takes_calls(
            self._request, reply, self._policy.limits, one_call=self._checker.one_call
        ):
            return StreamEnd(data=data, calls=len(reply.calls))
        reading = self._checker.read(reply, _OWN)
        receipts = tuple(map(note_type, self._reader.untyped))
        if not is_end_usual and came_to_its_end(finish):
            receipts += note_finish(finish, "tool_calls", "/finish_reason", has_calls=True)
        if receipts:
            reading = with_receipts(reading, receipts)
        is_usual = is_usual and all(defect.code in _HARMLESS for defect in reply.defects)
        is_usual = is_usual and all(map(_is_whole, reply.calls))
        is_usual = is_usual and not any(map(_needs_id, reply.calls))
        return StreamEnd(reading=reading, reply=reply, data=data, is_usual=is_usual)

    def _fold(self) -> Reply:
        if self._reply is None:
            reply = self._request.protocol.parse_message(self._reader.close())
            self._reply = leave_others(reply, self._request.tools)[0]
        return self._reply

    @property
    def has_sent_text(self) -> bool:
        """Whether the client has any of the text; blanks do not count."""
        return self._has_words and (self._watch is None or self._watch.passed > 0)

    def leave(self) -> bytes:
        """Return the end of the stream as it came."""
        held = b"".join([event.raw for event, _ in self._waiting])
        return held if self._thoughts is None else self._thoughts.write_rest() + held

    def read_echoes(self) -> Reply:
        """Return the reply, which may have something that a client has to send back."""
        return self._fold()

    def deliver(
        self,
        calls: Sequence[ToolCall],
        text: str | None,
        *,
        note: str = "",
        is_again: bool = False,
    ) -> bytes:
        """Return the end of the stream with these calls; without any it ends with a stop.

        Args:
            calls: The calls.
            text: What comes in the place of held text; `None` leaves it as it is.
            note: Lines about calls that are not delivered, which come behind all text.
            is_again: Whether all of it is from another reply, which came to its end.
        """
        begun = None
        if self.has_begun and self._call is not None:
            begun, calls = self._call.go_on(calls), calls[1:]
        written = self._writer.rewrite(list(self._held_events()), calls, text, note, begun)
        if self._thoughts is None:
            return written
        return self._thoughts.write_rest(is_delivered=not is_again) + written

    def can_deliver(self, calls: Sequence[ToolCall]) -> bool:
        """Tell whether the end of the stream can have these calls."""
        return not self.has_begun or (
            self._call is not None and self._call.go_on(calls) is not None
        )

    def fail(self, error: SurecallError) -> bytes:
        """Break the stream off, in the way a client of the format notices."""
        return self._writer.fail(error, next(self._held_events(), None))

    def _held_events(self) -> Iterator[bytes]:
        for event, _ in self._waiting:
            if event.data:
                yield event.data
            else:  # several events, or a comment
                yield from (held.data for held in cut_events(event.raw) if held.data)


def _is_whole(call: RawCall) -> bool:
    """Tell whether the arguments of a call are there, and look like an object."""
    written = call.arguments
    return isinstance(written, dict) or (isinstance(written, str) and written.lstrip()[:1] == "{")


def _needs_id(call: RawCall) -> bool:
    """Tell whether a call is signed, and has an id that other conversations may have."""
    if not call.id or not is_signed(call.extra):
        return False
    return not has_own_id(str(call.id), str(call.name))
