"""Text of a stream that may be a call, held back only as long as it may be."""

from collections.abc import Callable, Collection
from typing import Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.limits import MIB
from surecall.base.records import Defect, Reading
from surecall.calls import FORMATS, ToolNames, find_openers
from surecall.exchange.thoughts import begins_thought, may_begin_thought
from surecall.reading import (
    ReadEvent,
    ReadingLimits,
    ReplyReader,
    TextRead,
    TextWasReasoning,
)

_MAX_WATCHED_CHARS: Final = MIB
_UNREAD: Final = Defect(
    Code.READING_BUDGET_EXCEEDED,
    f"Only the first {_MAX_WATCHED_CHARS} characters of the text were looked at for calls.",
)


class TextWatch:
    """Watches the text of one reply; what cannot begin a call costs one search.

    Args:
        names: The tools that may be called.
        limits: How large arguments may be.
        used_ids: Returns the ids of earlier calls, which are not given again.
        finds_thoughts: Whether to stop at reasoning in tags that the text begins with.
    """

    def __init__(
        self,
        names: ToolNames,
        limits: ReadingLimits,
        used_ids: Callable[[], Collection[str]] = tuple,
        *,
        finds_thoughts: bool = False,
    ) -> None:
        self._names = names
        self._limits = limits
        self._used_ids = used_ids
        openers = find_openers(names, FORMATS)
        self._openers = openers.index
        self._has_opener = openers.are_in
        self._reader: ReplyReader | None = None
        self._past = bytearray()
        """Text that the reader has not seen, because nothing in it can begin a call.

        It is joined as it comes: kept in pieces, a long answer takes ten times as much memory.
        """
        self._tail = ""
        """The end of it, which may be the beginning of a mark."""
        self._whole = bytearray()
        """All text, once there is a reader."""
        self._content_chars = 0
        self._rest: list[str] = []
        """Content that was read and not passed on."""
        self._recent: list[str] = []
        """All text that was not passed on."""
        self.passed = 0
        """How many characters were passed on."""
        self._is_after_space = False
        """Whether white space that the reader may still hold was passed on already."""
        self._is_off = False
        self.is_at_start = finds_thoughts
        """Whether reasoning in tags may still begin, as nothing else has come."""
        self.begins_thought = False
        """Whether it began: all text so far is undecided, and this object is of no more use."""
        self.fed = 0
        """How many characters have come."""
        self.decided = 0
        """How many of them, from the first on, are certain to be no part of a call."""
        self.has_calls = False

    def pass_plain(self, text: str) -> bool:
        """Take text that is passed on at once, if no call can begin in it; tell whether it was."""
        found = self._tail + text
        if self._reader is not None or self._is_off or self._openers.may_begin(found):
            return False
        if self.is_at_start:
            if found.isspace():
                return False
            self.is_at_start = False
        self.fed += len(text)
        self._tail = ""
        self._past += _encode(found)
        self._recent.clear()
        self._rest.clear()
        self.decided = self.passed = self.fed
        if self.fed > _MAX_WATCHED_CHARS:
            self._give_up()
        return True

    def take_plain(self, text: str) -> bool:
        """Take text of several events at once, if no call can begin in it; tell whether it was."""
        if self._reader is not None or self.is_at_start or self._has_opener(self._tail + text):
            return False
        self.feed(text)
        return True

    def feed(self, text: str) -> None:
        """Take the text of the next event."""
        self.fed += len(text)
        self._recent.append(text)
        if self._is_off:
            self.decided = self.fed
            return
        if self.begins_thought:
            return
        reader = self._reader
        if reader is None:
            reader = self._feed_plain(text)
            if reader is None:
                return
        else:
            self._whole += _encode(text)
            self._take(reader.feed(text))
        self.has_calls = reader.has_calls
        if not self.has_calls:
            self.decided = max(self.decided, self.fed - reader.held_characters)
            if self.decided > _MAX_WATCHED_CHARS:
                self._give_up()

    @property
    def undecided(self) -> str:
        """All text that was not passed on."""
        return "".join(self._recent)

    def note_passed(self, position: int) -> None:
        """Note that the text up to a position, which is decided, was passed on."""
        if position == self.fed:
            if self._recent:
                self._is_after_space = self._recent[-1][-1:].isspace()
                self._recent.clear()
            self._rest.clear()
            self.passed = position
            return
        text = "".join(self._recent)
        at = position - self.passed
        decided = text[: self.decided - self.passed]
        if decided:
            self._is_after_space = decided[-1].isspace()
        self._rest = [decided[at:]]
        self._recent = [text[at:]] if at < len(text) else []
        self.passed = position

    def close(self, finish_reason: str | None) -> tuple[Reading, str | None]:
        """Return the reading of the whole text, and what of it besides calls was not passed on.

        Calls that the text only probably makes are found now, when most of it has been passed on;
        the rest is `None` where it stays as it is.
        """
        reader = self._reader
        if reader is None:
            defects = (_UNREAD,) if self._is_off else ()
            return Reading(finish_reason=finish_reason, defects=defects), ""
        before = reader.last_retraction
        reading = reader.close(finish_reason)
        unread = reading.content
        if reader.last_retraction is before:
            unread = unread[self._content_chars :]
        if self._is_after_space:
            unread = unread.lstrip()
        rest = "".join([*self._rest, unread])
        if reading.seen and not self._is_off:
            has_calls = bool(reading.calls)
            reader = ReplyReader(
                self._names, used_ids=self._used_ids(), limits=self._limits, accept="likely"
            )
            reading = reader.read_whole(_decode(self._whole), finish_reason)
            return reading, rest if has_calls else None
        if self._is_off:
            reading = replace(reading, defects=(*reading.defects, _UNREAD))
        return reading, rest

    def _feed_plain(self, text: str) -> ReplyReader | None:
        """Look for the first mark; without one, no reader is needed."""
        found = self._tail + text
        if self.is_at_start:
            self.begins_thought = begins_thought(found)
            if self.begins_thought or may_begin_thought(found):
                self._tail = found
                return None
        if not self._has_opener(found):
            self._take_found(found)
            return None
        self.is_at_start = False
        reader = self._reader = ReplyReader(
            self._names, used_ids=self._used_ids(), limits=self._limits
        )
        before = _decode(self._past)
        self._whole += _encode(before + found)
        plain, self._rest = self._rest, []
        self._take(reader.feed(before))
        self._rest = plain
        # Space that was passed on may be seen by the reader only now.
        is_passed = self.passed > self.fed - len(found)
        self._is_after_space = is_passed or before[-1:].isspace()
        self._past.clear()
        self._tail = ""
        self._take(reader.feed(found))
        return reader

    def _take_found(self, found: str) -> None:
        """Take text without any mark, of which only the end may be the beginning of one.

        Space at the end is passed on even so: before a call it says nothing.
        """
        at = self._openers.held_from(found, 0)
        if self.is_at_start and may_begin_thought(found):
            self._tail = found
            return
        self.is_at_start = False
        plain, self._tail = found[:at], found[at:]
        self._past += _encode(plain)
        shown = found if self._tail.isspace() else plain
        start = self.fed - len(found)
        self._rest.append(shown[max(0, self.decided - start) :])
        self.decided = max(self.decided, start + len(shown))
        if self.decided > _MAX_WATCHED_CHARS:
            self._give_up()

    def _take(self, events: list[ReadEvent]) -> None:
        for event in events:
            if isinstance(event, TextRead):
                self._content_chars += len(event.text)
                text = event.text.lstrip() if self._is_after_space else event.text
                self._is_after_space = self._is_after_space and not text
                self._rest.append(text)
            elif isinstance(event, TextWasReasoning):
                self._content_chars = 0

    def _give_up(self) -> None:
        """Look at no more text: so much of it is not the answer of a model that calls tools."""
        self._is_off = True
        self._reader = None
        self._past.clear()
        self._whole.clear()
        self._tail = ""
        self.decided = self.fed


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(data: bytearray) -> str:
    return data.decode("utf-8", "surrogatepass")
