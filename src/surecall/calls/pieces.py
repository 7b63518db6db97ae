"""What a text is read into, and the white space between the pieces."""

from typing import Final, Literal

from msgspec import Struct

from surecall.base.records import Receipt, clip
from surecall.text import TextBuffer

from .formats import TextCall


class TextPiece(Struct, frozen=True):
    """Text for a person to see, or reasoning."""

    kind: Literal["content", "reasoning", "reclassified"]
    """`reclassified`: all content so far turned out to be reasoning; `text` is empty."""
    text: str


class CallPiece(Struct, frozen=True):
    """A call, and the format it was written in."""

    call: TextCall
    format: str
    resolved: str | None
    """The name of the tool it means, when exactly one is meant."""
    written: str
    """The text it was read from."""
    in_open_reasoning: bool = False
    """Whether it stands in reasoning that was never closed: real if the model came to its end."""
    is_bare: bool = False
    """Whether it has no markers and is a call only as the end of the message."""
    ends_text: bool = False
    """Whether the text ended with it."""


Piece = TextPiece | CallPiece
"""A piece of text or a call, in the order of the reply."""


class PieceWriter:
    """Collects pieces; white space is held until it is known what follows it."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._space = TextBuffer()
        self._thought_space = TextBuffer()
        self._drops_space = False
        self.last_written = ""
        """The text of the last call, when nothing came after it."""
        self.thought_begun = False
        """Whether the reasoning that is open has any text."""
        self.has_reasoning = False
        self.has_text = False
        self.line_has_text = False
        """Whether there is visible text on the line that is being read."""
        self.calls = 0

    @property
    def is_after_call(self) -> bool:
        """Whether a call was added, and no text since."""
        return self.calls > 0 and self._drops_space

    def taken(self) -> list[Piece]:
        """Return the pieces collected since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def finish(self) -> None:
        """Show white space at the end, unless it belongs to a call or to reasoning."""
        only_space = not self.calls and not self.has_reasoning
        if self._space and (only_space or (self.has_text and not self._drops_space)):
            self._pieces.append(TextPiece("content", str(self._space)))
        self._space.clear()

    def show(self, text: str) -> None:
        """Add visible text."""
        newline = text.rfind("\n")
        line = text[newline + 1 :]
        self.line_has_text = (self.line_has_text and newline < 0) or bool(line.strip())
        if not text or text.isspace():  # without a look at all the space before it
            self._space.append(text)
            return
        text = str(self._space) + text
        shown = text.rstrip()
        self._space.clear()
        self._space.append(text[len(shown) :])
        if self._drops_space and not self.calls:
            shown = shown.lstrip()
        self._drops_space = False
        self.has_text = True
        self.last_written = ""
        self._pieces.append(TextPiece("content", shown))

    def begin_calls(self, *, trims: bool) -> None:
        """Decide about the white space before calls."""
        if self._space and not trims and self.has_text and not self._drops_space:
            self._pieces.append(TextPiece("content", str(self._space)))
        self._space.clear()
        self._drops_space = True

    def add_call(self, piece: CallPiece) -> None:
        """Add a call."""
        self.calls += 1
        self._pieces.append(piece)
        self.last_written = piece.written

    def drop_space(self) -> None:
        """Drop the white space before a fragment that is dropped too."""
        self._space.clear()

    def begin_thought(self) -> None:
        """Begin a block of reasoning."""
        self.thought_begun = False

    def think(self, text: str) -> None:
        """Add reasoning; white space around a block is no part of it."""
        if not self.thought_begun:
            text = text.lstrip()
            if not text:
                return
            if self.has_reasoning:
                text = "\n" + text
            self.thought_begun = True
            self.has_reasoning = True
        if text.isspace():
            self._thought_space.append(text)
            return
        text = str(self._thought_space) + text
        shown = text.rstrip()
        self._thought_space.clear()
        self._thought_space.append(text[len(shown) :])
        if shown:
            self._pieces.append(TextPiece("reasoning", shown))

    def end_thought(self) -> None:
        """End a block of reasoning; white space behind it belongs to it."""
        self._thought_space.clear()
        self.has_reasoning = True
        self.drop_space_ahead()

    def drop_space_ahead(self) -> None:
        """Drop the white space up to the next visible text, which begins a line."""
        self._drops_space = True
        self._space.clear()
        self.line_has_text = False

    def reclassify(self) -> None:
        """Turn all visible text so far into reasoning."""
        self._pieces.append(TextPiece("reclassified", ""))
        self.has_reasoning = True
        self.has_text = False


_WHY: Final = {
    "drop_answer_tag": "a tag around the whole answer is not a part of it",
    "drop_empty_markup": "markup for calls, without a call in it",
    "drop_end_token": "a token of the model's template, which is not text",
    "drop_invented_result": "the model made up what follows its calls",
}
_LOSSY: Final = frozenset({"drop_empty_markup", "drop_invented_result"})


class DroppedText:
    """What was left out of a text: neighbours of one kind together, for one receipt."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[tuple[str, TextBuffer]] = []

    def add(self, rule: str, text: str) -> None:
        """Note what a rule left out."""
        if not self._pieces or self._pieces[-1][0] != rule:
            self._pieces.append((rule, TextBuffer()))
        self._pieces[-1][1].append(text)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts of all that was left out, in order."""
        return tuple(
            Receipt(rule, "content", clip(said), "", rule not in _LOSSY, _WHY[rule])
            for rule, text in self._pieces
            if (said := str(text).strip())
        )
