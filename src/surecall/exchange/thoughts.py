"""Reasoning in tags at the beginning of a text, split off as the text arrives.

A server that does not know the tags of its model sends them as text. What is split off here is what
the full reading takes as reasoning; the rest of the text stays as the model wrote it.
"""

import re
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from surecall.base.limits import MIB
from surecall.base.records import Reading, Receipt, Reply, clip
from surecall.calls import FORMATS, REASONING, ToolNames, find_openers
from surecall.calls.openers import pattern_of
from surecall.reading import ReadingLimits, ReplyReader
from surecall.text import TextBuffer
from surecall.wire.events import EventReader
from surecall.wire.rewriting import EventParts, EventRewriter

MOVE_RULE: Final = "move_reasoning"
_WHY: Final = "clients look for reasoning in the field that the format has for it"
_MAX_HELD_CHARS: Final = MIB
_MAX_SHOWN_CHARS: Final = 400
_MAX_TAGS: Final = 100
"""What looks like a tag behind so many others is text."""
_MAX_LEADING_BLANKS: Final = 1000
"""Behind more of them there is no reasoning: they would have to be held, and looked at again."""
_openers: Final = find_openers(ToolNames(), FORMATS)
_CLOSERS: Final = {
    opener: thinking.closers[0]
    for opener, thinking in REASONING.items()
    if not (_openers.may_begin_call(opener) or thinking.holds or opener[0].isalpha())
}
"""What ends reasoning, by the tag that begins it; words and the messages of a format are none."""
_BEGINNINGS: Final = frozenset(
    opener[:length] for opener in _CLOSERS for length in range(len(opener) + 1)
)
_OPENER: Final = re.compile(rf"\s{{0,{_MAX_LEADING_BLANKS}}}+({pattern_of(sorted(_CLOSERS))})")


def begins_thought(text: str) -> bool:
    """Tell whether a text begins with a tag of reasoning."""
    return _OPENER.match(text) is not None


def may_begin_thought(text: str) -> bool:
    """Tell whether a text has nothing yet but blanks and the beginning of such a tag."""
    start = text.lstrip()
    return start in _BEGINNINGS and len(text) - len(start) <= _MAX_LEADING_BLANKS


class Split(NamedTuple):
    """What was split off a text, and what is left of it."""

    thought: str
    text: str


class ThoughtSplitter:
    """Splits the reasoning that one text begins with off it; any cut of the text gives the same.

    Reasoning is given away as it comes. Only what may be a tag is held, and what follows the
    beginning of a call: it is a call if the reasoning never ends.

    Args:
        names: The tools that may be called.
    """

    def __init__(self, names: ToolNames) -> None:
        self._openers = find_openers(names, FORMATS)
        self._held: str = ""
        self._behind_call: TextBuffer | None = None
        """What is held from the beginning of a call on, but for its end, which is in `_held`."""
        self._behind_chars = 0
        self._takes_calls = True
        self._tags = 0
        self._space: list[str] = []
        """Blanks that belong to the reasoning if more of it comes."""
        self._thought: list[str] = []
        self._text: list[str] = []
        self._has_thought = False
        self._is_begun = False
        """Whether the reasoning that is open has any words."""
        self._shown = ""
        self.opener = ""
        """The tag of the reasoning that is open."""
        self.is_split = False
        """Whether the text began with reasoning."""
        self.is_done = False
        """Whether the reasoning has ended, and all further text is text."""

    @property
    def held_call(self) -> str:
        """What is held because a call may begin with it, which reasoning that never ends has."""
        return "" if self._behind_call is None else f"{self._behind_call}{self._held}"

    @property
    def receipt(self) -> Receipt:
        """The receipt of what was split off."""
        return Receipt(MOVE_RULE, "content", clip(self._shown), "", why=_WHY)

    def feed(self, text: str) -> Split:
        """Take the next text and return what is certain now."""
        if self.is_done:
            return Split("", text)
        self._held += text
        while not self.is_done and (self._think() if self.opener else self._look()):
            pass
        return self._take()

    def close(self) -> Split:
        """Return the rest: nothing more will come, and calls that are held are none."""
        self._say_behind_call()
        rest, self._held = self._held, ""
        if self.opener:
            self._say(rest)
        elif not self.is_done:
            self._text.append(rest.lstrip() if self.is_split else rest)
        self.is_done = True
        return self._take()

    def _take(self) -> Split:
        found = Split("".join(self._thought), "".join(self._text))
        self._thought.clear()
        self._text.clear()
        if len(self._shown) < _MAX_SHOWN_CHARS:
            self._shown += found.thought
        return found

    def _look(self) -> bool:
        """Look for a tag outside of reasoning; tell whether one was found."""
        held = self._held
        is_over = self._tags >= _MAX_TAGS
        if not is_over and (found := _OPENER.match(held)):
            self._tags += 1
            self._shown = self._shown or found[1]
            self.opener, self._held = found[1], held[found.end() :]
            self.is_split, self._is_begun = True, False
            return True
        if is_over or not may_begin_thought(held):
            self._text.append(held.lstrip() if self.is_split else held)
            self._held = ""
            self.is_done = True
        return False

    def _think(self) -> bool:
        """Take reasoning up to its end, or to what may be its end; tell whether it ended."""
        held, closer = self._held, _CLOSERS[self.opener]
        may_echo = not self._is_begun and self._tags < _MAX_TAGS
        if may_echo and (echo := _OPENER.match(held)):
            self._tags += 1
            self._held = held[echo.end() :]
            return True
        at = held.find(closer)
        if at >= 0:
            self._say_behind_call()
            self._say(held[:at])
            self._held = held[at + len(closer) :]
            self.opener = ""
            self._space.clear()
            return True
        if self._behind_call is not None:
            self._hold_call(held, len(closer) - 1)
            return False
        stop = self._openers.index.held_from(held, 0)
        call = self._find_call(held) if self._takes_calls else None
        if call is not None and call < stop:
            self._say(held[:call])
            self._behind_call, self._behind_chars = TextBuffer(), 0
            self._hold_call(held[call:], len(closer) - 1)
        else:
            self._say(held[:stop])
            self._held = held[stop:]
        return False

    def _find_call(self, text: str) -> int | None:
        found = self._openers.pattern_in_thought.finditer(text)
        may_call = self._openers.may_begin_call
        return next((match.start() for match in found if may_call(match[0])), None)

    def _hold_call(self, text: str, tail: int) -> None:
        assert self._behind_call is not None
        end = max(0, len(text) - tail)
        self._behind_call.append(text[:end])
        self._behind_chars += end
        self._held = text[end:]
        if self._behind_chars > _MAX_HELD_CHARS:
            self._takes_calls = False
            self._say_behind_call()

    def _say_behind_call(self) -> None:
        if self._behind_call is not None:
            self._say(str(self._behind_call))
            self._behind_call = None

    def _say(self, text: str) -> None:
        """Give reasoning away; blanks around it are no part of it."""
        if not self._is_begun:
            text = text.lstrip()
            if not text:
                return
            self._is_begun = True
            text = f"\n{text}" if self._has_thought else text
            self._has_thought = True
        if shown := text.rstrip():
            self._thought += [*self._space, shown]
            self._space.clear()
        self._space.append(text[len(shown) :])


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
    """The events of a text that begins with reasoning, rewritten while it is reasoning."""

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
