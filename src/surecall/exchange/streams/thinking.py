"""Streams whose text begins with reasoning in tags, which is passed on as reasoning."""

from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from surecall.base.records import Reading, Receipt, Reply
from surecall.calls import ToolNames
from surecall.exchange.thoughts import Split, ThoughtSplitter
from surecall.reading import ReadingLimits, ReplyReader
from surecall.wire.events import EventReader
from surecall.wire.rewriting import EventParts, EventRewriter


class LeadingThought:
    """The reasoning that the text of one stream begins with, if it does.

    Args:
        names: The tools that may be called.
        limits: How large arguments may be.
        used_ids: Returns the ids of earlier calls, which are not given again.
    """

    def __init__(
        self,
        names: ToolNames,
        limits: ReadingLimits,
        used_ids: Callable[[], Collection[str]],
    ) -> None:
        self._names = names
        self._limits = limits
        self._used_ids = used_ids
        self._splitter = ThoughtSplitter(names)
        self._received = 0
        self._said = 0
        self._rest = Split("", "")
        self.reading: Reading | None = None
        """The calls that reasoning without an end holds, once the reply came to its end."""
        self.is_delivered = False
        """Whether these are delivered."""

    @property
    def is_done(self) -> bool:
        """Whether all further text is text."""
        return self._splitter.is_done

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipt of what was passed on as reasoning."""
        return (self._splitter.receipt,) if self._splitter.is_split else ()

    @property
    def holds_call(self) -> bool:
        """Whether text is held because it is a call if the reasoning never ends."""
        return bool(self._splitter.held_call)

    @property
    def rest(self) -> str:
        """Reasoning that only the end of the reply brought."""
        if self.reading is not None and self.is_delivered:
            return self.reading.reasoning or ""
        return self._rest.thought

    def feed(self, text: str) -> Split:
        """Take the next text and return what is certain now."""
        self._received += len(text)
        split = self._splitter.feed(text)
        self._said += len(split.text)
        return split

    def end(self, finish_reason: str | None, *, has_calls: bool) -> Split:
        """Return what is left now that the reply came to its end.

        Args:
            finish_reason: Why the model stopped.
            has_calls: Whether there are calls besides those in the text.
        """
        held = self._splitter.held_call
        if held and not has_calls:
            opener, ids = self._splitter.opener, self._used_ids()
            reader = ReplyReader(self._names, opener, used_ids=ids, limits=self._limits)
            reading = reader.read_whole(held, finish_reason)
            self.reading = reading if reading.calls else None
        self._rest = self._splitter.close()
        return self._rest

    def close(self, reply: Reply) -> Reply:
        """Return a reply that came to its end without the reasoning that its text began with."""
        content = reply.content or ""
        late = self._splitter.feed(content[self._received :])
        rest = self.end(reply.finish_reason, has_calls=bool(reply.calls))
        self._rest = Split(late.thought + rest.thought, late.text + rest.text)
        if not self._splitter.is_split:
            return reply
        said = content[self._received - self._said : self._received] + self._rest.text
        return replace(reply, content=said or None)


class ThoughtEvents:
    """The events of a text that begins with reasoning, written anew while it is reasoning."""

    def __init__(
        self, reader: EventReader, writer: EventRewriter[Any], lead: LeadingThought
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._lead = lead
        self._last = b""
        """The data of the event that ended the reasoning."""
        self._has_ended = False
        self._has_rest = False

    @property
    def is_done(self) -> bool:
        """Whether all further text is text."""
        return self._lead.is_done

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipt of what was passed on as reasoning."""
        return self._lead.receipts

    def take(self, data: bytes, piece: str) -> tuple[EventParts, str]:
        """Take the data of an event and its text; return what it becomes, and the text in that."""
        split = self._lead.feed(piece)
        return self._writer.part(data, *split), split.text

    def hold(self, data: bytes, piece: str) -> tuple[EventParts, str]:
        """Do the same for the event that begins a call, or ends the reply."""
        self._last = data
        split = self._lead.feed(piece)
        if self._reader.has_calls or not self._lead.holds_call:
            self._has_ended = True
            rest = self._lead.end(None, has_calls=True)
            split = Split(split.thought + rest.thought, split.text + rest.text)
        return self._writer.part(data, *split), split.text

    def read_calls(self, finish_reason: str | None) -> Reading | None:
        """Return the calls in reasoning that never ended, now that the reply has; else nothing."""
        if not self._last or self._has_ended:
            return None
        self._has_ended = self._has_rest = True
        self._lead.end(finish_reason, has_calls=self._reader.has_calls)
        return self._lead.reading

    def write_rest(self, *, is_delivered: bool = False) -> bytes:
        """Return the events of what only the end of the reply brought.

        Args:
            is_delivered: Whether the calls in it are delivered.
        """
        if not self._has_rest:
            return b""
        self._lead.is_delivered = is_delivered
        return self._writer.part(self._last, self._lead.rest, "").thought
