"""Content blocks that arrive in pieces.

A piece belongs to the block with its index. A piece that its block cannot take, or that belongs
to no block, begins a block of its own kind: pieces are never dropped, and what they form is
judged when it is whole.
"""

from typing import Any, Final, Literal, TypeAlias, cast

from surecall.base.errors import Code
from surecall.base.json_values import as_list
from surecall.base.redaction import excerpt
from surecall.text import mend_surrogates
from surecall.wire.kept import Kept, KeptText, KeptWords, Noted, text_of

from .blocks import THOUGHT_BLOCKS, parse_arguments

_Field: TypeAlias = Literal["text", "thinking", "input"]

PIECES: Final[dict[str, tuple[str, _Field, str]]] = {
    "input_json_delta": ("partial_json", "input", "tool_use"),
    "text_delta": ("text", "text", "text"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
}
"""For each kind of piece: where it is, which field it continues, and the block it implies."""


class _PartialBlock:
    """One block, as far as it has arrived."""

    __slots__ = ("field", "fields", "has_pieces", "index", "is_shown", "kind", "text")

    def __init__(self, kept: Kept, index: int | None, fields: dict[str, Any]) -> None:
        kept.add_part(fields)
        self.index = index
        self.fields = dict(fields)
        kind = fields.get("type")
        self.kind = kind if isinstance(kind, str) else ""
        self.field: _Field | None = None
        self.has_pieces = False
        """Whether any piece came, be it an empty one."""
        self.is_shown = False
        if self.kind in {"text", "thinking"}:
            self.field = cast("_Field", self.kind)
        elif self.kind.endswith("tool_use"):
            self.field = "input"
        self.text = (KeptText if self.field == "input" else KeptWords)(kept)
        if self.field is not None and self.field != "input":
            start = self.fields.get(self.field)
            if isinstance(start, str):
                self.text.append(start)

    def render(self) -> dict[str, Any]:
        """Return the block as a whole reply would carry it."""
        if self.field is None:
            return self.fields
        text = mend_surrogates(str(self.text))
        if self.field != "input":
            return {**self.fields, self.field: text}
        start = self.fields.get("input")
        if start is None and self.has_pieces:
            start = ""
        return {**self.fields, "input": _whole_input(start, text)}


class PartialBlocks(Noted):
    """All blocks of one reply, as far as they have arrived."""

    place = "/content"

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept)
        self._blocks: list[_PartialBlock] = []
        self._by_index: dict[int, _PartialBlock] = {}

    @property
    def text(self) -> str:
        """The text so far."""
        texts = (str(block.text) for block in self._blocks if block.kind == "text")
        return mend_surrogates("".join(texts))

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return sum(block.kind == "tool_use" for block in self._blocks)

    def begin(self, index: Any, fields: dict[str, Any]) -> _PartialBlock:
        """Begin a block; two with one index are two blocks."""
        place = index if type(index) is int and index >= 0 else None
        if place is None or place in self._by_index:
            self._note(Code.INDEX_NOT_USABLE, "A block came without its own index.")
            place = None
        block = _PartialBlock(self._kept, place, fields)
        self._blocks.append(block)
        if type(index) is int:
            self._by_index[index] = block
        return block

    def can_take(self, index: Any, delta: dict[str, Any]) -> bool:
        """Tell whether nothing of text or arguments is lost when a piece is taken."""
        kind = delta.get("type")
        if not isinstance(kind, str):
            return False
        if kind in PIECES:
            key, field, _ = PIECES[kind]
            piece = delta.get(key)
            return isinstance(piece, str) or (piece is None and field != "input")
        block = self._find(index)
        return block is None or block.kind != "tool_use"

    def add(self, index: Any, piece: str) -> None:
        """Add a piece to the block that took the last one with this index."""
        block = self._find(index)
        assert block is not None
        block.text.append(piece)

    def take(self, index: Any, delta: dict[str, Any]) -> tuple[_Field, str] | None:
        """Add one piece; return its kind and text when it is text."""
        block = self._find(index)
        kind = delta.get("type")
        if isinstance(kind, str) and kind in PIECES:
            key, field, implied = PIECES[kind]
            piece = delta.get(key)
            if not isinstance(piece, str):
                return None
            if block is None or block.field != field:
                self._note(Code.INDEX_NOT_USABLE, "A piece came for a block that cannot take it.")
                block = self._stray(index, implied)
            block.text.append(piece)
            block.has_pieces = True
            return field, piece
        if kind == "signature_delta" and block is not None and block.field == "thinking":
            self._kept.put(block.fields, "signature", delta.get("signature"))
        elif kind == "citations_delta" and block is not None and block.field == "text":
            cited: Any = block.fields.get("citations")
            if not isinstance(cited, list):
                cited = block.fields["citations"] = []
            self._kept.add_part(delta.get("citation"))
            as_list(cited).append(delta.get("citation"))
        else:
            shown = excerpt(kind, 40) if isinstance(kind, str) else type(kind).__name__
            self._note(Code.PART_NOT_KNOWN, f"A piece is of the unknown kind {shown}.")
        return None

    def written(self, index: Any) -> str:
        """Return the text of a block as it came."""
        block = self._find(index)
        return "" if block is None else str(block.text)

    def take_ended_thought(self) -> dict[str, Any] | None:
        """Return the last block, once, when it is a thought; call it when the block has ended."""
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.is_shown or block.kind not in THOUGHT_BLOCKS:
            return None
        block.is_shown = True
        return block.render()

    def render(self) -> list[dict[str, Any]]:
        """Return the blocks in the order of their indexes, or of their arrival without these."""
        blocks = self._blocks
        if all(block.index is not None for block in blocks):
            blocks = sorted(blocks, key=lambda block: block.index or 0)
        return [block.render() for block in blocks]

    def _find(self, index: Any) -> _PartialBlock | None:
        if type(index) is int:
            return self._by_index.get(index)
        return self._blocks[-1] if self._blocks else None

    def _stray(self, index: Any, implied: str) -> _PartialBlock:
        block = _PartialBlock(self._kept, None, {"type": implied})
        self._blocks.append(block)
        if type(index) is int:
            self._by_index[index] = block
        return block


def _whole_input(start: Any, text: str) -> Any:
    """Return the arguments: an object where the pieces form exactly one, else what was written.

    No pieces behind an empty object is how the format streams a call without arguments.
    """
    if not text:
        return start
    found = parse_arguments(text)
    if start is None or start in ({}, ""):
        return text if found is None else found
    if found == start:
        return start
    # Two things were said; written one after the other they are refused as not one object.
    return (start if isinstance(start, str) else text_of(start)) + text
