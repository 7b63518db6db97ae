"""Events of a run on their way to listeners, and streamed text without the calls in it."""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import Event, Reading, ReasoningDelta, TextDelta, TextRetracted
from surecall.base.redaction import open_log
from surecall.reading import (
    CallRead,
    ReadEvent,
    ReasoningRead,
    ReplyReader,
    TextWasReasoning,
)
from surecall.wire import StreamDelta

Listener = Callable[[Event], object]

_log = open_log("surecall.loop")


class EventEmitter:
    """Gives the events of one run to one listener; costs nothing when nobody listens."""

    def __init__(self, listener: Listener | None, run_id: str) -> None:
        self.run_id = run_id
        self.turn = 0
        self._listener = listener
        self._started = perf_counter()

    @property
    def has_listener(self) -> bool:
        """Whether anybody listens."""
        return self._listener is not None

    def now_ms(self) -> float:
        """Return the milliseconds since the run began."""
        return (perf_counter() - self._started) * 1000

    def emit(self, kind: type[Event], **fields: Any) -> None:
        """Emit an event of this kind."""
        if self._listener is not None:
            event = kind(run_id=self.run_id, turn=self.turn, at_ms=self.now_ms(), **fields)
            self._deliver(event)

    def emit_event(self, event: Event) -> None:
        """Emit an event that was decided without knowing run, turn and time."""
        if self._listener is not None:
            self._deliver(replace(event, run_id=self.run_id, turn=self.turn, at_ms=self.now_ms()))

    def _deliver(self, event: Event) -> None:
        assert self._listener is not None
        try:
            self._listener(event)
        except Exception:
            _log.debug("a listener failed on %s", type(event).__name__, exc_info=True)


def combine_listeners(first: Listener | None, second: Listener | None) -> Listener | None:
    """Return a listener that calls both; the second is called even if the first fails."""
    if first is None or second is None:
        return first or second

    def call_both(event: Event) -> None:
        try:
            first(event)
        finally:
            second(event)

    return call_both


class StreamedText:
    """Turns the deltas of one streamed reply into events, without the text of calls.

    Args:
        reader: Reads the text, as it arrives.
        emit: Takes the type of an event and its fields.
    """

    def __init__(self, reader: ReplyReader, emit: Callable[..., None]) -> None:
        self._reader = reader
        self._emit = emit
        # What was shown is the beginning of what the reader keeps.
        self._text_chars = 0
        self._reasoning_chars = 0
        self._late: list[str] = []
        self._is_fed = False
        self._has_call = False

    def feed(self, delta: StreamDelta) -> None:
        """Take what arrived and show what is certain now."""
        if delta.kind == "reasoning":
            self._emit(ReasoningDelta, text=delta.text)
            return
        self._is_fed = True
        if self._reader.held_characters > MAX_INLINE_CHARACTERS:
            # Looking at it again takes long: the rest is read when all of it is there.
            self._late.append(delta.text)
            return
        for event in self._reader.feed(delta.text):
            self._show(event)

    async def close(self, content: str) -> None:
        """Show what was held back and is part of the content, now that the reply has been read."""
        if not self._is_fed:
            return
        before = self._reader.last_retraction
        if self._reader.held_characters > MAX_INLINE_CHARACTERS:
            events, read = await asyncio.to_thread(self._read_rest)
        else:
            events, read = self._read_rest()
        for event in events:
            self._show(event)
            if isinstance(event, TextWasReasoning):
                before = event
        retraction = self._reader.last_retraction
        if retraction is not None and retraction is not before:
            self._retract(retraction)
        self._show_reasoning((read.reasoning or "")[self._reasoning_chars :])
        shown = read.content[: self._text_chars]
        if not content.startswith(shown) and read.content != content:
            # A part of it was read as a call only when all of it was there.
            self._emit(TextRetracted)
            shown = ""
        if len(content) > len(shown):
            self._emit(TextDelta, text=content[len(shown) :])

    def _read_rest(self) -> tuple[list[ReadEvent], Reading]:
        events = self._reader.feed("".join(self._late)) if self._late else []
        return events, self._reader.close()

    def _show(self, event: ReadEvent) -> None:
        if isinstance(event, ReasoningRead):
            self._show_reasoning(event.text)
        elif isinstance(event, CallRead):
            # Calls next to this one, in the field for them, would make it mere text: what follows
            # is shown when that is known.
            self._has_call = True
        elif isinstance(event, TextWasReasoning):
            self._retract(event)
        elif not self._has_call:
            self._text_chars += len(event.text)
            self._emit(TextDelta, text=event.text)

    def _show_reasoning(self, text: str) -> None:
        if text:
            self._reasoning_chars += len(text)
            self._emit(ReasoningDelta, text=text)

    def _retract(self, retraction: TextWasReasoning) -> None:
        if self._text_chars:
            self._reasoning_chars += self._text_chars - retraction.dropped_chars
            self._text_chars = 0
            self._emit(TextRetracted)
