"""Reading a reply as its text arrives, with the same result for every split."""

from collections.abc import Collection
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import Code
from surecall.formats import FORMATS, TAUGHT_FORMATS, CallPiece, Piece, TextReader, ToolNames
from surecall.jsontext import TextBuffer
from surecall.records import Defect, Reading, ToolCall

from .calls import CallReader, ReadingLimits
from .tools import ToolsLike, parse_tools
from .truncation import came_to_its_end, cut_cause, doubt_finish

__all__ = ["CallRead", "ReadEvent", "ReasoningRead", "ReplyReader", "TextRead", "TextWasReasoning"]


_MIN_BLANK_TAIL: Final = 16
"""White space that is no layout any more but a model that repeats itself."""
_OPEN_END: Final = "The text ends inside what may have been a longer value or quotation."
_GAVE_UP: Final = Defect(
    Code.READING_BUDGET_EXCEEDED,
    "The text has more markers than are looked at in one reply; the rest was taken as plain text.",
)


class TextRead(Struct, frozen=True):
    """Text to show now."""

    text: str


class ReasoningRead(Struct, frozen=True):
    """Reasoning text."""

    text: str


class TextWasReasoning(Struct, frozen=True):
    """All text shown so far turned out to be reasoning."""

    dropped_chars: int = 0
    """White space at its beginning, which is no part of the reasoning."""


class CallRead(Struct, frozen=True):
    """A call that is certain."""

    call: ToolCall


ReadEvent = TextRead | ReasoningRead | TextWasReasoning | CallRead


def _doubted(call: ToolCall, doubt: str) -> ToolCall:
    return call if call.arguments is None else replace(call, certainty="likely", doubt=doubt)


def _ends_blank(written: str) -> bool:
    return written[-_MIN_BLANK_TAIL:].isspace() and len(written) > _MIN_BLANK_TAIL


class ReplyReader:
    """Reads the text of one reply as it arrives.

    Args:
        tools: OpenAI tool objects, tool specs, a registry, or names that were prepared.
        generation_prompt: What the template had already opened, such as `<think>`.
        used_ids: Ids of earlier calls in the conversation, which are not given again.
        limits: How large arguments may be.
        taught: Whether the model was told to write its calls in fenced blocks, so that any such
            block may be one.
    """

    def __init__(
        self,
        tools: ToolsLike | ToolNames = None,
        generation_prompt: str | None = None,
        *,
        used_ids: Collection[str] = (),
        limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
        taught: bool = False,
    ) -> None:
        formats = TAUGHT_FORMATS if taught else FORMATS
        names = tools if isinstance(tools, ToolNames) else ToolNames(parse_tools(tools))
        self._text = TextReader(names, formats if names else (), generation_prompt)
        self._calls = CallReader(names, used_ids=used_ids, limits=limits)
        self._content = TextBuffer()
        self._reasoning = TextBuffer()
        self._read: list[ToolCall] = []
        self._waiting: CallPiece | None = None
        self._cause: str | None = None
        self._came_to_end = False
        self.last_retraction: TextWasReasoning | None = None
        """The last of these events, also of those that only the end of the text brought."""

    @property
    def held_characters(self) -> int:
        """How much text is held back, because it may be part of a call."""
        return self._text.held_characters

    def feed(self, chunk: str) -> list[ReadEvent]:
        """Take the next text and return what is certain now."""
        return self._take(self._text.feed(chunk))

    def close(self, finish_reason: str | None = None) -> Reading:
        """Return the reading of the whole reply; nothing more will come.

        Text that was told is the beginning of its content, unless it turns out only now that it
        was reasoning.
        """
        return self.read_whole("", finish_reason)

    def read_whole(self, text: str, finish_reason: str | None = None) -> Reading:
        """Return the reading of the reply, of which this is the rest, in one pass."""
        self._cause = cut_cause(finish_reason)
        self._came_to_end = came_to_its_end(finish_reason)
        self._take(self._text.read_whole(text))
        if self._waiting is not None:
            # Only the last call can be hurt by the end of the text, unless its own end is there.
            in_payload = self._text.ends_in_payload and not _ends_blank(self._waiting.written)
            in_payload = in_payload or self._waiting.call.may_go_on
            hurt = self._cause if in_payload else self._doubt(self._waiting)
            doubt = _OPEN_END if self._waiting.call.may_go_on else ""
            self._read.append(self._read_call(self._waiting, hurt, doubt))
            self._waiting = None
        if doubt := doubt_finish(finish_reason):
            self._read = [_doubted(call, doubt) for call in self._read]
        defects = tuple(self._calls.defects)
        if self._text.gave_up:
            defects = (*defects, _GAVE_UP)
        return Reading(
            calls=tuple(self._read),
            content=str(self._content),
            reasoning=str(self._reasoning) or None,
            defects=defects,
            finish_reason=finish_reason,
        )

    def _take(self, pieces: list[Piece]) -> list[ReadEvent]:
        events: list[ReadEvent] = []
        for piece in pieces:
            self._settle(events)
            if isinstance(piece, CallPiece):
                self._waiting = piece
            elif piece.kind == "content":
                self._content.append(piece.text)
                events.append(TextRead(piece.text))
            elif piece.kind == "reasoning":
                self._reasoning.append(piece.text)
                events.append(ReasoningRead(piece.text))
            else:
                events.append(self._retract())
        return events

    def _retract(self) -> TextWasReasoning:
        text = str(self._reasoning) + str(self._content)
        self._content.clear()
        self._reasoning.clear()
        self._reasoning.append(text.strip())
        self.last_retraction = TextWasReasoning(len(text) - len(text.lstrip()))
        return self.last_retraction

    def _read_call(self, piece: CallPiece, cut: str | None, doubt: str = "") -> ToolCall:
        ended = self._came_to_end and piece.ends_text
        return self._calls.read_text(piece, cut, ended=ended, doubt=doubt)

    def _doubt(self, piece: CallPiece) -> str | None:
        """A call that only the end of the message makes one is doubtful when that was cut off.

        In reasoning that did not close it may only have been thought about, and more text behind
        bare calls would make them part of that. A model that writes nothing but blank lines up to
        its limit has no more to say.
        """
        doubtful = piece.in_open_reasoning or (piece.is_bare and not _ends_blank(piece.written))
        return self._cause if doubtful else None

    def _settle(self, events: list[Any]) -> None:
        """A call that something follows is certain."""
        if self._waiting is not None:
            call = self._read_call(self._waiting, self._doubt(self._waiting))
            self._read.append(call)
            events.append(CallRead(call))
            self._waiting = None
