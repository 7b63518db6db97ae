"""A stream in the client's own format: its events go on as they are, unless calls are damaged."""

from bisect import bisect_right
from itertools import accumulate
from operator import itemgetter
from typing import Final

from surecall.base.errors import Code, ProviderError, SurecallError

from .events import read_event
from .holding import COLON, ONLY_PIECES, Holding
from .thinking import LeadingThought, ThoughtEvents
from .watch import TextWatch
from .wire import CALL, END, FRAME, PASS, TEXT, THOUGHT

_MIN_AT_ONCE: Final = 4
_MAX_EARLY_BYTES: Final = 256 * 1024


class Passing(Holding):
    """Passes the events of one stream on."""

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes and return those for the client."""
        if self._error is not None or self._wire.done:
            return b""
        cutter, wire = self._cutter, self._wire
        if self.early is not None:
            self._keep_early(chunk)
        if self._is_holding and not cutter.partial and wire.take_alike(chunk):
            self._wait(chunk, ONLY_PIECES)
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

    def _keep_early(self, chunk: bytes) -> None:
        assert self.early is not None
        self.early += chunk
        is_at_start = self._watch is not None and self._watch.is_at_start
        if not is_at_start or len(self.early) > _MAX_EARLY_BYTES:
            self.early = None

    def _flow_text(self, event: bytes, text: str) -> bytes:
        """Pass one event of text on, unless a call may begin in it."""
        self._has_words = self._has_words or not text.isspace()
        if not self._has_kept_text:
            self._has_kept_text = not self._keeps_text and self._has_words
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
        watch = self._watch
        texts: list[str] = []
        marks: list[int] = []
        blocks, gap = self._cutter.split(data)
        start = self._take_events(data, blocks, gap, texts, marks)
        passed = data[:start]
        text = "".join(texts)
        self._has_words = self._has_words or bool(text.strip())
        if watch is not None and (text or self._waiting or (marks and marks[-1])):
            passed = self._release(passed, marks, text, blocks, gap)
        if self.is_tagged:
            return passed
        if self._is_holding and start < len(data) and self._error is None:
            end = self._cutter.first_end(data, start)
            passed += self._take_end(data[start:end])
            start, self._is_thinking = end if self._is_thinking else start, False
            return passed + self._hold(data, start, end)
        return passed

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
        framed = 0
        """How much text has to come before what began it is passed on."""
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
                        has_words = bool(wire.piece.strip())
                        self._has_kept_text = not self._keeps_text and has_words
                        self._kept.add(data[start:following])
                elif kind in (CALL, END):
                    self._is_holding = True
                    break
                elif kind in (PASS, THOUGHT, FRAME):
                    self._kept.add(data[start:following])
                    framed = 1 if kind == FRAME and self.early is not None else framed
            marks.append(max(chars, framed))
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
            if event[0] == COLON:
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
        wire = self._wire
        self.is_tagged = wire.begins_with_text and self.early is not None
        if self.is_tagged:
            return b""
        text, waiting = watch.undecided, self._waiting
        self._waiting, self._waiting_bytes = [], 0
        self._watch = self._open_watch(finds_thoughts=False)
        self._has_words = False
        if wire.parts_text:
            names, limits = self._request.tools.names, self._policy.limits
            lead = LeadingThought(names, limits, self._judge.used_ids)
            self._thoughts = ThoughtEvents(wire, lead)
            self._is_thinking = True
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
            out.append(self._think(event, wire.piece if body else ""))
        else:
            out.append(self._flow(data[start:]) if start < len(data) else b"")
        return b"".join(out)
