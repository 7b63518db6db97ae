"""A stream in the client's own format: its events go on as they are, unless calls are damaged."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final

from surecall.errors import Code, ProviderError, ProviderReplyError, SurecallError
from surecall.exchange.judge import Judge
from surecall.exchange.policy import Policy
from surecall.exchange.prepare import Asked
from surecall.exchange.request import ClientRequest
from surecall.limits import MIB
from surecall.records import Reading, Receipt, Reply, ToolCall, Usage

from .chat import ChatWire
from .ends import KeptEvents, count_clean_calls, is_wanting
from .events import EventCutter, read_event
from .forms import EventForm
from .gemini import GeminiWire
from .messages import MessagesWire
from .responses import ResponsesWire
from .sides import Found, Side
from .thinking import LeadingThought, ThoughtEvents
from .watch import TextWatch
from .wire import CALL, END, PASS, PING, TEXT, THOUGHT, Wire

_MAX_HELD_BYTES: Final = 16 * MIB
_MIN_AT_ONCE: Final = 4
_ONLY_PIECES: Final = -1
"""In the place of how much text has come: that these events only go on with arguments."""
_COLON: Final = 0x3A
_WIRES: Final[Mapping[str, Any]] = {
    "chat_completions": ChatWire,
    "gemini": GeminiWire,
    "messages": MessagesWire,
    "responses": ResponsesWire,
}
_COUNTED: Final = ("chat_completions", "gemini")
_OWN: Final = Asked(body=b"")


class Passing(Side):
    """Passes the events of one stream on.

    Args:
        request: What the client asked.
        policy: What may be done.
        judge: Reads what is not clean.
        headers: Headers of the answer.
    """

    keeps_form = True

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
        counted = {"choices": request.choices} if several else {}
        self._wire: Wire = _WIRES[name](request.protocol, headers, **counted)
        self._is_relayed = several
        self._cutter = EventCutter()
        self._form = EventForm(name)
        self._watch: TextWatch | None = None
        looks = policy.text_formats and policy.allows("repair") and not several
        if looks and request.offers_tools:
            self._watch = self._open_watch(finds_thoughts=self._wire.parts_text)
        self._thoughts: ThoughtEvents | None = None
        """Writes the text anew, which began with reasoning."""
        self._is_thinking = False
        self._in_thought: Reading | None = None
        """The calls that reasoning without an end holds."""
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
    def receipts(self) -> tuple[Receipt, ...]:
        """What was changed in events that were passed on."""
        return () if self._thoughts is None else self._thoughts.receipts

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        return self._error is not None or self._wire.done

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self._wire.model

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return self._wire.usage

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those for the client."""
        if self._error is not None or self._wire.done:
            return b""
        cutter, wire = self._cutter, self._wire
        if self._is_holding and not cutter.partial and wire.take_alike(chunk):
            self._wait(chunk, _ONLY_PIECES)
            return b""
        if not self._is_thinking and cutter.is_event(chunk):
            if self._is_holding:
                return self._hold_event(chunk)
            text = wire.take_text(chunk)
            if text:
                return self._flow_text(chunk, text)
            data = chunk
        else:
            try:
                data = cutter.feed(chunk)
            except ProviderError as error:
                self._error = error
                return b""
        if data and not self._form.is_plain(data):
            data = b"".join(map(self._form.write, cutter.split_whole(data)))
        if not data:
            return b""
        return self._hold(data, 0, 0) if self._is_holding else self._flow(data)

    def _flow_text(self, event: bytes, text: str) -> bytes:
        """Pass one event of text on, unless a call may begin in it."""
        self._has_words = self._has_words or not text.isspace()
        if not self._has_kept_text:
            self._has_kept_text = not self._keeps_text
            self._kept.add(event)
        watch = self._watch
        if watch is None:
            return event
        if not watch.pass_plain(text):
            return self._release(event, [len(text)], text, [event[:-2]], 2)
        if not self._waiting:
            return event
        waited = [event for event, _ in self._waiting]
        self._waiting.clear()
        self._waiting_bytes = 0
        return b"".join((*waited, event))

    def _flow(self, data: bytes) -> bytes:
        """Pass on what is certain; what follows the beginning of a call is held.

        Most calls begin with the first or second event, so the others are cut apart only when
        these bring none.
        """
        cutter = self._cutter
        if self._is_thinking:
            return self._flow_thoughts(data)
        end = cutter.first_end(data, cutter.first_end(data, 0))
        if len(data) - end <= end:
            return self._flow_events(data)
        passed, rest = self._flow_events(data[:end]), data[end:]
        if self.done:
            return passed
        if self._is_holding:
            return passed + self._hold(rest, 0, 0)
        flow = self._flow_thoughts if self._is_thinking else self._flow_events
        return passed + flow(rest)

    def _flow_events(self, data: bytes) -> bytes:
        wire, watch = self._wire, self._watch
        texts: list[str] = []
        marks: list[int] = []
        blocks, gap = self._cutter.split(data)
        start = self._take_events(data, blocks, gap, texts, marks)
        passed = data[:start]
        text = "".join(texts)
        self._has_words = self._has_words or bool(text.strip())
        if watch is not None and (text or self._waiting):
            passed = self._release(passed, marks, text, blocks, gap)
        if self._is_holding and start < len(data) and self._error is None:
            end = self._cutter.first_end(data, start)
            passed += self._take_end(data[start:end])
            start, self._is_thinking = end if self._is_thinking else start, False
            return passed + self._hold(data, start, end)
        return passed

    # Reasoning that the text begins with

    def _take_end(self, event: bytes) -> bytes:
        """Take the first event that is held back, and return what of it goes on all the same."""
        watch, piece = self._watch, self._wire.piece
        begun = b""
        if piece and watch is not None and not self._is_thinking:
            watch.feed(piece)
            begun = self._begin_thoughts(watch)
        if not self._is_thinking:
            return b""
        assert self._thoughts is not None
        parts, text = self._thoughts.hold(read_event(event)[0], piece)
        said = self._pass_text(parts.text, text)
        self._wait(parts.rest, 0)
        return begun + parts.thought + said

    def _begin_thoughts(self, watch: TextWatch) -> bytes:
        """Write events that wait anew, if their text begins with reasoning."""
        if not watch.begins_thought:
            return b""
        text, waiting = watch.undecided, self._waiting
        self._waiting, self._waiting_bytes = [], 0
        self._watch = self._open_watch(finds_thoughts=False)
        names, limits = self._request.tools.names, self._policy.limits
        lead = LeadingThought(names, limits, self._judge.used_ids)
        self._thoughts = ThoughtEvents(self._wire, lead)
        self._is_thinking, self._has_words = True, False
        out: list[bytes] = []
        at = 0
        for event, end in waiting:
            out.append(self._think(event, text[at:end]))
            at = max(at, end)
        return b"".join(out)

    def _think(self, event: bytes, piece: str) -> bytes:
        """Pass an event on, whose text may be reasoning."""
        if not self._is_thinking or not piece:
            return self._pass_text(event, piece)
        assert self._thoughts is not None
        parts, text = self._thoughts.take(read_event(event)[0], piece)
        self._is_thinking = not self._thoughts.is_done
        return parts.rest + parts.thought + self._pass_text(parts.text, text)

    def _pass_text(self, event: bytes, text: str) -> bytes:
        self._has_words = self._has_words or bool(text.strip())
        return self._release(event, [len(text)], text, [event], 0) if event else b""

    def _flow_thoughts(self, data: bytes) -> bytes:
        """Pass events on as long as their text is reasoning."""
        wire, out, start = self._wire, list[bytes](), 0
        while start < len(data) and self._is_thinking:
            following = self._cutter.first_end(data, start)
            event = data[start:following]
            body, name = read_event(event)
            try:
                kind = wire.take(body, name) if body else PASS
            except SurecallError as error:
                self._error = error
                break
            start = following
            if kind in (CALL, END):
                self._is_holding = True
                out.append(self._take_end(event))
                self._is_thinking = False
                out.append(self._hold(data, start, start))
                break
            if kind != TEXT or self._keeps_text:
                self._kept.add(event)
            out.append(self._think(event, wire.piece))
        else:
            out.append(self._flow(data[start:]) if start < len(data) else b"")
        return b"".join(out)

    def _take_events(
        self, data: bytes, blocks: list[bytes], gap: int, texts: list[str], marks: list[int]
    ) -> int:
        """Take events up to the first that is held back, and return where that begins.

        Args:
            data: The events.
            blocks: The same, one by one.
            gap: How many bytes follow each of these.
            texts: Takes the pieces of text.
            marks: Takes how much text has come behind each event.
        """
        wire = self._wire
        start = chars = place = 0
        is_first = True
        size = len(data)
        while place < len(blocks):
            block = blocks[place]
            place += 1
            body, name = read_event(block)
            following = min(start + len(block) + gap, size)
            if body:
                try:
                    kind = wire.take(body, name)
                except SurecallError as error:
                    self._error = error
                    break
                if kind == TEXT:
                    texts.append(wire.piece)
                    chars += len(wire.piece)
                    if not self._has_kept_text:
                        self._has_kept_text = not self._keeps_text
                        self._kept.add(data[start:following])
                elif kind in (CALL, END):
                    self._is_holding = True
                    break
                elif kind in (PASS, THOUGHT):
                    self._kept.add(data[start:following])
            marks.append(chars)
            start = following
            if texts and is_first and len(blocks) - place >= _MIN_AT_ONCE:
                is_first = False
                more = wire.take_texts(data[start:])
                texts += more
                marks += [chars + count for count in accumulate(map(len, more))]
                chars = marks[-1]
                following = start + sum(map(len, blocks[place : place + len(more)]))
                following += gap * len(more)
                if self._keeps_text:
                    self._kept.add(data[start:following])
                start = following
                place += len(more)
        return start

    def _release(
        self, data: bytes, marks: list[int], text: str, blocks: list[bytes], gap: int
    ) -> bytes:
        """Return what of the events may be passed on now; the others wait for more text.

        Where a call may begin, every event is decided about by itself, however they came.
        """
        watch = self._watch
        assert watch is not None
        base = watch.fed
        is_plain = watch.take_plain(text)
        count = 0
        if is_plain and not self._waiting:
            count = bisect_right(marks, watch.decided - base)
            if count == len(marks):
                watch.settle(watch.fed)
                return data
            if count:
                watch.settle(base + marks[count - 1])
        start = sum(map(len, blocks[:count])) + gap * count
        out = [data[:start]]
        at = 0
        for block, mark in zip(blocks[count : len(marks)], marks[count:], strict=True):
            event = data[start : start + len(block) + gap]
            start += len(event)
            if not is_plain and mark > at:
                watch.feed(text[at:mark])
                at = mark
            if event[0] == _COLON:
                out.append(event)  # a comment, which has no place among the others
                continue
            self._wait(event, base + mark)
            if not watch.has_calls:
                out += self._release_waiting(watch)
        if watch.begins_thought:
            out.append(self._begin_thoughts(watch))
        self._is_holding = self._is_holding or watch.has_calls
        return b"".join(out)

    def _release_waiting(self, watch: TextWatch) -> list[bytes]:
        if not self._waiting or self._waiting[0][1] > watch.decided:
            return []
        count = bisect_right(self._waiting, watch.decided, key=itemgetter(1))
        released, self._waiting = self._waiting[:count], self._waiting[count:]
        if released:
            self._waiting_bytes -= sum(len(event) for event, _ in released)
            watch.settle(released[-1][1])
        return [event for event, _ in released]

    def _hold_event(self, event: bytes) -> bytes:
        """Hold one event back, unless it is a sign of life."""
        wire, watch = self._wire, self._watch
        if event[:6] != b"data: " or event.find(b"\n") < len(event) - 2:
            return self._hold(event, 0, 0)
        if wire.take_piece(event):
            self._wait(event, _ONLY_PIECES)
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
            self._wait(data[kept_from:start], _ONLY_PIECES)
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
            elif data[start] == _COLON:
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

    # the end

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
            if not wire.events:
                self._fold(b"")  # which says what is wrong with a body that holds no event
            raise wire.truncated()
        if self._thoughts is not None:
            self._in_thought = self._thoughts.read_calls(wire.finish)
        data = self.leave()
        if self._is_relayed:
            return Found(data=data, outcome="relayed")
        if wire.has_calls or wire.is_odd:
            return self._read_calls(data)
        if (reading := self._in_thought) is not None:
            reply = Reply(content=reading.content, finish_reason=wire.finish)
            return Found(reading=reading, reply=reply, data=data, text=reading.content)
        if self._watch is not None:
            reading, rest = self._watch.close(wire.finish)
            if reading.calls:
                reply = Reply(content=reading.content, finish_reason=wire.finish)
                return Found(reading=reading, reply=reply, data=data, text=rest)
        if is_wanting(wire, self._request, has_words=self._has_words):
            reply = self._fold(data)
            return Found(reading=self._judge.read(reply, _OWN), reply=reply, data=data)
        return Found(data=data)

    def _take_last(self, rest: bytes) -> None:
        """Take the last event, behind which the blank line is missing; it may be cut short."""
        if not rest.strip():
            return
        body, name = read_event(rest.rstrip(b"\r\n"))
        if not body:
            return
        try:
            self._wire.take(body, name)
        except SurecallError as error:
            if error.code != Code.UPSTREAM_BAD_EVENT:
                self._error = error
            return
        event = self._form.write(rest.rstrip(b"\r\n") + b"\n\n")
        if not self._is_thinking:
            self._has_words = self._has_words or bool(self._wire.piece.strip())
        begun = self._take_end(event)
        if self._is_thinking:
            self._waiting.insert(0, (begun, 0))
        else:
            self._wait(event, 0)

    def _read_calls(self, data: bytes) -> Found:
        calls = count_clean_calls(self._wire, self._request, self._policy.limits)
        if calls is not None:
            return Found(data=data, calls=calls)
        reply = self._fold(data)
        if not reply.calls and self._request.choice.wanted != "call":
            return Found(data=data)
        return Found(reading=self._judge.read(reply, _OWN), reply=reply, data=data)

    def _fold(self, data: bytes) -> Reply:
        return self._kept.fold(self._wire.protocol, self._headers, data)

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
        held = [event for event, place in self._waiting if place != _ONLY_PIECES]
        if not self._kept.may_echo(held):
            return None
        return self._fold(self.leave())

    def deliver(
        self, calls: Sequence[ToolCall], text: str | None, *, is_again: bool = False
    ) -> bytes:
        """Return the end of the stream with these calls."""
        held = list(self._held_events())
        written = self._wire.rewrite(held, calls, text, is_again=is_again)
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
