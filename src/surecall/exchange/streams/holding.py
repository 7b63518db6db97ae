"""What is held back of a stream in the client's own format, and how the stream ends."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from surecall.base.errors import Code, ProviderReplyError, SurecallError
from surecall.base.limits import MIB
from surecall.base.records import Reading, Receipt, Reply, ToolCall, Usage
from surecall.exchange.documents import note_type
from surecall.exchange.history import has_own_id, is_signed
from surecall.exchange.judge import Judge
from surecall.exchange.own_words import is_in_background
from surecall.exchange.policy import Policy
from surecall.exchange.prepare import Asked
from surecall.exchange.readings import leave_others, with_receipts
from surecall.exchange.request import ClientRequest

from .chat import ChatWire
from .ends import KeptEvents, count_clean_calls, is_wanting
from .events import EventCutter
from .forms import EventForm
from .gemini import GeminiWire
from .messages import MessagesWire
from .responses import ResponsesWire
from .sides import Found, Side
from .thinking import ThoughtEvents
from .watch import TextWatch
from .wire import PASS, PING, Stated, Wire

ONLY_PIECES: Final = -1
"""In the place of how much text has come: that these events only go on with arguments."""
COLON: Final = 0x3A
_MAX_HELD_BYTES: Final = 16 * MIB
_WIRES: Final[Mapping[str, Any]] = {
    "chat_completions": ChatWire,
    "gemini": GeminiWire,
    "messages": MessagesWire,
    "responses": ResponsesWire,
}
_COUNTED: Final = ("chat_completions", "gemini")
_OWN: Final = Asked(body=b"")


class Holding(Side):
    """Holds the events of one stream back from the first call on, and writes its end.

    Args:
        request: What the client asked.
        policy: What may be done.
        judge: Reads what is not clean.
        headers: Headers of the answer.
    """

    def __init__(
        self,
        request: ClientRequest,
        policy: Policy,
        judge: Judge,
        headers: Mapping[str, str],
    ) -> None:
        self._request = request
        self._policy = policy
        self._judge = judge
        self._headers = headers
        name = request.protocol.name
        several = request.choices > 1 and name in _COUNTED
        options: dict[str, Any] = {"choices": request.choices} if several else {}
        if request.is_legacy:
            options["is_legacy"] = True
        if is_in_background(request):
            options["in_background"] = True
        self._wire: Wire = _WIRES[name](request.protocol, headers, **options)
        self._wire.tools = request.tools
        self._is_relayed = several
        self._cutter = EventCutter()
        self._form = EventForm(name)
        self._watch: TextWatch | None = None
        looks = policy.text_formats and policy.allows("repair") and not several
        # Numbered parts are written anew, and what a provider's own tools send is not among them.
        finds_thoughts = self._wire.parts_text or not request.tools.others
        if looks and request.offers_tools:
            self._watch = self._open_watch(finds_thoughts=finds_thoughts)
        self._thoughts: ThoughtEvents | None = None
        """Writes the text anew, which began with reasoning."""
        self._is_thinking = False
        self.early: bytearray | None = None
        """All bytes so far, as long as such reasoning may still begin."""
        if self._watch is not None and finds_thoughts and not self._wire.parts_text:
            self.early = bytearray()
        self._kept = KeptEvents()
        self._has_kept_text = False
        self._keeps_text = request.choice.wanted == "call"
        """Whether all text is kept: the model may have to read it, if that is all it says."""
        self._waiting: list[tuple[bytes, int]] = []
        """Events that are held back, and how much text had come with each."""
        self._waiting_bytes = 0
        self._is_holding = False
        self._error: SurecallError | None = None
        self._has_words = False
        """Whether there is any text besides blanks."""

    def _open_watch(self, *, finds_thoughts: bool) -> TextWatch:
        return TextWatch(
            self._request.tools.names,
            self._policy.limits,
            self._judge.used_ids,
            finds_thoughts=finds_thoughts,
        )

    @property
    def wire(self) -> Wire:
        """What reads the events."""
        return self._wire

    @property
    def stated(self) -> Stated | None:
        """Why there is no answer, in the words of the endpoint."""
        return self._wire.stated

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """What was changed in events that were passed on."""
        return () if self._thoughts is None else self._thoughts.receipts

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        return self._error is not None or self._wire.done or self.is_tagged

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self._wire.model

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return self._wire.usage

    def _hold_event(self, event: bytes) -> bytes:
        """Hold one event back, unless it is a sign of life."""
        wire, watch = self._wire, self._watch
        if event[:6] != b"data: " or event.find(b"\n") < len(event) - 2:
            event = event if self._form.is_plain(event) else self._form.write(event)
            return self._hold(event, 0, 0) if event else b""
        if wire.take_piece(event):
            self._wait(event, ONLY_PIECES)
            return b""
        try:
            kind = wire.take(event[6:-2], b"")
        except SurecallError as error:
            self._error = error
            return b""
        if kind == PING:
            return event
        if wire.piece and watch is not None:
            watch.feed(wire.piece)
        self._wait(event, 0)
        return b""

    def _hold(self, data: bytes, start: int, taken_to: int) -> bytes:
        """Hold events back until the end of the reply says what they are; comments go on.

        Args:
            data: Whole events.
            start: Where the first begins that is held back.
            taken_to: Where the first begins that was not looked at yet.
        """
        wire, watch = self._wire, self._watch
        out: list[bytes] = []
        texts: list[str] = []
        kept_from, start = start, taken_to
        taken = wire.take_pieces(data[start:] if start else data)
        if taken:
            self._wait(data[kept_from:start], 0)
            kept_from, start = start, start + taken
            self._wait(data[kept_from:start], ONLY_PIECES)
            kept_from = start
        for body, name, size in self._cutter.read(data[start:] if start else data):
            following = start + size
            kind = PASS
            if body:
                try:
                    kind = wire.take(body, name)
                except SurecallError as error:
                    self._error = error
                    break
                if wire.piece:
                    texts.append(wire.piece)
            elif data[start] == COLON:
                kind = PING
            if kind == PING:
                self._wait(data[kept_from:start], 0)
                out.append(data[start:following])
                kept_from = following
            start = following
            if wire.done:
                break
        self._wait(data[kept_from:start], 0)
        text = "".join(texts)
        self._has_words = self._has_words or bool(text.strip())
        if text and watch is not None:
            watch.feed(text)
        return b"".join(out)

    def _wait(self, data: bytes, text_end: int) -> None:
        if not data:
            return
        self._waiting.append((data, text_end))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > _MAX_HELD_BYTES:
            self._error = ProviderReplyError(
                Code.STREAM_TOO_LARGE,
                f"Calls of more than {_MAX_HELD_BYTES} bytes would have to be held back.",
                hint="Ask for less with `max_tokens`, or without streaming.",
            )
            self._waiting.clear()

    def pulse(self) -> bytes:
        """Return an event that says nothing if the client waits for what is held back."""
        is_held = self._is_holding or (bool(self._waiting) and self.early is None)
        if not is_held or self._error is not None:
            return b""
        data = self._wire.pulse(next(self._held_events(), b""), self._kept.events)
        if data:
            data = self.shift(data)
            self.pulses += 1
        return data

    def shift(self, data: bytes) -> bytes:
        """Return events of the endpoint numbered behind those that say nothing."""
        return self._wire.shift(data, self.pulses)

    # The end

    def close(self, error: SurecallError | None) -> Found:
        """Return what came, or raise why it is not whole."""
        wire = self._wire
        if self._error is None and not wire.done:
            if error is not None:
                self._error = error
            else:
                self._take_last(self._cutter.close())
        if self._error is not None:
            raise self._error
        if not wire.has_ended:
            if wire.goes_on:
                return Found()
            if not wire.events:
                self._fold(b"")  # which says what is wrong with a body that holds no event
            raise wire.truncated()
        in_thought = None
        if self._thoughts is not None:
            in_thought = self._thoughts.read_calls(wire.finish)
        data = self.leave()
        if self._is_relayed:
            return Found(data=data, outcome="relayed")
        if wire.has_calls or wire.is_odd:
            return self._read_calls(data)
        if (found := self._read_text(data, in_thought)) is not None:
            return found
        if is_wanting(wire, self._request, has_words=self._has_words):
            reply = self._fold(data)
            return Found(reading=self._judge.read(reply, _OWN), reply=reply, data=data)
        return Found(data=data)

    def cut_short(self) -> bool:
        """End a reply that stops in a call as if it had come to its end; tell whether it does."""
        wire = self._wire
        if self._error is not None or self._is_relayed or not wire.has_calls or wire.has_ended:
            return False
        held = next(self._held_events(), b"")
        self._waiting.append((wire.stop(held, self._kept.events), 0))
        return True

    @abstractmethod
    def _take_last(self, rest: bytes) -> None:
        """Take the last event, behind which the blank line is missing; it may be cut short."""

    def _read_text(self, data: bytes, in_thought: Reading | None) -> Found | None:
        """Return the calls that the text has, or reasoning that never ended; else nothing."""
        reading, rest = in_thought, "" if in_thought is None else in_thought.content
        if reading is None and self._watch is not None:
            reading, rest = self._watch.close(self._wire.finish)
        if reading is None or not reading.calls:
            return None
        reply = Reply(content=reading.content, finish_reason=self._wire.finish)
        return Found(reading=reading, reply=reply, data=data, text=rest)

    def _needs_ids(self) -> bool:
        """Tell whether signed calls have ids that other conversations may have."""
        made = self._wire.calls() or ()
        if all(has_own_id(str(call.id), str(call.name)) for call in made):
            return False
        reply = self.read_echoes()
        return reply is not None and any(call.id and is_signed(call.extra) for call in reply.calls)

    def _read_calls(self, data: bytes) -> Found:
        calls = count_clean_calls(self._wire, self._request, self._policy.limits)
        if calls is not None and not self._needs_ids():
            return Found(data=data, calls=calls)
        reply = self._fold(data)
        if not reply.calls and self._request.choice.wanted != "call":
            return Found(data=data)
        reading = self._judge.read(reply, _OWN)
        if self._wire.untyped:
            reading = with_receipts(reading, tuple(map(note_type, self._wire.untyped)))
        return Found(reading=reading, reply=reply, data=data)

    def _fold(self, data: bytes) -> Reply:
        reply = self._kept.fold(self._wire.protocol, self._headers, data)
        return leave_others(reply, self._request.tools)[0]

    @property
    def has_sent_text(self) -> bool:
        """Whether the client has any of the text; blanks do not count."""
        return self._has_words and (self._watch is None or self._watch.passed > 0)

    def leave(self) -> bytes:
        """Return the end of the stream as it came."""
        held = b"".join([event for event, _ in self._waiting])
        return held if self._thoughts is None else self._thoughts.write_rest() + held

    def read_echoes(self) -> Reply | None:
        """Return the reply if it has something that a client has to send back."""
        held = [event for event, place in self._waiting if place != ONLY_PIECES]
        if not self._kept.may_echo(held):
            return None
        return self._fold(self.leave())

    def deliver(
        self,
        calls: Sequence[ToolCall],
        text: str | None,
        *,
        note: str = "",
        is_again: bool = False,
    ) -> bytes:
        """Return the end of the stream with these calls."""
        written = self._wire.rewrite(list(self._held_events()), calls, text, note)
        if self._thoughts is None:
            return written
        return self._thoughts.write_rest(is_delivered=not is_again) + written

    def fail(self, error: SurecallError) -> bytes:
        """Break the stream off, in the way a client of the format notices."""
        return self._wire.fail(error, next(self._held_events(), None))

    def _held_events(self) -> Iterator[bytes]:
        for data, _ in self._waiting:
            for body, _, _ in self._cutter.read(data):
                if body:
                    yield body
