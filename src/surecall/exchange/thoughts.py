"""Reasoning in tags at the beginning of a text, split off as the text arrives.

A server that does not know the tags of its model sends them as text. What is split off here is what
the full reading takes as reasoning; the rest of the text stays as the model wrote it.
"""

import re
from typing import Final, NamedTuple

from surecall.base.limits import MIB
from surecall.base.records import Receipt, clip
from surecall.calls import FORMATS, REASONING, ToolNames, find_openers
from surecall.calls.openers import pattern_of
from surecall.text import TextBuffer

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
