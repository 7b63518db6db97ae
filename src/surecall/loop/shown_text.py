"""Text of a streamed turn, shown as soon as it is certain that it is no part of a call."""

import asyncio
from collections.abc import Callable

from surecall.protocols import StreamDelta
from surecall.reading import (
    CallRead,
    ReadEvent,
    ReasoningRead,
    ReplyReader,
    TextWasReasoning,
)
from surecall.records import Reading, ReasoningDelta, TextDelta, TextRetracted

from .asking import MAX_INLINE_CHARACTERS

__all__ = ["ShownText"]


class ShownText:
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
        self._thought_chars = 0
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
        self._think((read.reasoning or "")[self._thought_chars :])
        shown = self._text_chars
        if len(content) > shown and content.startswith(read.content[:shown]):
            self._emit(TextDelta, text=content[shown:])

    def _read_rest(self) -> tuple[list[ReadEvent], Reading]:
        events = self._reader.feed("".join(self._late)) if self._late else []
        return events, self._reader.close()

    def _show(self, event: ReadEvent) -> None:
        if isinstance(event, ReasoningRead):
            self._think(event.text)
        elif isinstance(event, CallRead):
            # Calls beside this one, in the field for them, would make it mere text: what follows
            # is shown when that is known.
            self._has_call = True
        elif isinstance(event, TextWasReasoning):
            self._retract(event)
        elif not self._has_call:
            self._text_chars += len(event.text)
            self._emit(TextDelta, text=event.text)

    def _think(self, text: str) -> None:
        if text:
            self._thought_chars += len(text)
            self._emit(ReasoningDelta, text=text)

    def _retract(self, retraction: TextWasReasoning) -> None:
        if self._text_chars:
            self._thought_chars += self._text_chars - retraction.dropped_chars
            self._text_chars = 0
            self._emit(TextRetracted)
