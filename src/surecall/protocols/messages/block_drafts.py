"""Content blocks that arrive in pieces.

A piece belongs to the block with its index. A piece that its block cannot take, or that belongs
to no block, begins a block of its own kind: pieces are never dropped, and what they form is
judged when it is whole.
"""

from typing import Any, Final, Literal, TypeAlias, cast

from surecall.errors import Code, JSONTextError
from surecall.jsontext import encode_text, mend_surrogates
from surecall.protocols.kept import Kept, KeptText
from surecall.records import Defect, clip

from .blocks import THOUGHT_BLOCKS
from .inputs import parse_object

__all__ = ["BlockDraft", "BlockDrafts"]

_Field: TypeAlias = Literal["text", "thinking", "input"]

_PIECES: Final[dict[str, tuple[str, _Field, str]]] = {
    "input_json_delta": ("partial_json", "input", "tool_use"),
    "text_delta": ("text", "text", "text"),
    "thinking_delta": ("thinking", "thinking", "thinking"),
}
"""For each kind of piece: where it is, which field it continues, and the block it implies."""


class BlockDraft:
    """One block, as far as it has arrived."""

    __slots__ = ("field", "fields", "index", "is_told", "kind", "text")

    def __init__(self, kept: Kept, index: int | None, fields: dict[str, Any]) -> None:
        kept.add_part(fields)
        self.index = index
        self.fields = dict(fields)
        kind = fields.get("type")
        self.kind = kind if isinstance(kind, str) else ""
        self.field: _Field | None = None
        self.text = KeptText(kept)
        self.is_told = False
        if self.kind in {"text", "thinking"}:
            self.field = cast("_Field", self.kind)
        elif self.kind.endswith("tool_use"):
            self.field = "input"
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
        return {**self.fields, "input": _whole_input(self.fields.get("input"), text)}


class BlockDrafts:
    """All blocks of one reply, as far as they have arrived."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._drafts: list[BlockDraft] = []
        self._by_index: dict[int, BlockDraft] = {}
        self._defects: dict[str, Defect] = {}

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What was odd about the pieces, each kind once."""
        return tuple(self._defects.values())

    @property
    def text(self) -> str:
        """The text so far."""
        texts = (str(draft.text) for draft in self._drafts if draft.kind == "text")
        return mend_surrogates("".join(texts))

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return sum(draft.kind == "tool_use" for draft in self._drafts)

    def begin(self, index: Any, fields: dict[str, Any]) -> BlockDraft:
        """Begin a block; two with one index are two blocks."""
        place = index if type(index) is int and index >= 0 else None
        if place is None or place in self._by_index:
            self._note(Code.INDEX_NOT_USABLE, "A block came without an index of its own.")
            place = None
        draft = BlockDraft(self._kept, place, fields)
        self._drafts.append(draft)
        if type(index) is int:
            self._by_index[index] = draft
        return draft

    def can_take(self, index: Any, delta: dict[str, Any]) -> bool:
        """Tell whether nothing of text or arguments is lost when a piece is taken."""
        kind = delta.get("type")
        if not isinstance(kind, str):
            return False
        if kind in _PIECES:
            key, field, _ = _PIECES[kind]
            piece = delta.get(key)
            return isinstance(piece, str) or (piece is None and field != "input")
        draft = self._find(index)
        return draft is None or draft.kind != "tool_use"

    def take(self, index: Any, delta: dict[str, Any]) -> tuple[_Field, str] | None:
        """Add one piece; return its kind and text when it is text."""
        draft = self._find(index)
        kind = delta.get("type")
        if isinstance(kind, str) and kind in _PIECES:
            key, field, implied = _PIECES[kind]
            piece = delta.get(key)
            if not isinstance(piece, str):
                return None
            if draft is None or draft.field != field:
                self._note(Code.INDEX_NOT_USABLE, "A piece came for a block that cannot take it.")
                draft = self._stray(index, implied)
            draft.text.append(piece)
            return field, piece
        if kind == "signature_delta" and draft is not None and draft.field == "thinking":
            self._kept.put(draft.fields, "signature", delta.get("signature"))
        elif kind == "citations_delta" and draft is not None and draft.field == "text":
            cited: Any = draft.fields.get("citations")
            if not isinstance(cited, list):
                cited = draft.fields["citations"] = []
            self._kept.add_part(delta.get("citation"))
            cast("list[Any]", cited).append(delta.get("citation"))
        else:
            shown = clip(kind, 40) if isinstance(kind, str) else type(kind).__name__
            self._note(Code.PART_NOT_KNOWN, f"A piece is of the unknown kind {shown}.")
        return None

    def ended_thought(self) -> dict[str, Any] | None:
        """Return the last block, once, when it is a thought; call it when the block has ended."""
        draft = self._drafts[-1] if self._drafts else None
        if draft is None or draft.is_told or draft.kind not in THOUGHT_BLOCKS:
            return None
        draft.is_told = True
        return draft.render()

    def render(self) -> list[dict[str, Any]]:
        """Return the blocks in the order of their indexes, or of their arrival without these."""
        drafts = self._drafts
        if all(draft.index is not None for draft in drafts):
            drafts = sorted(drafts, key=lambda draft: draft.index or 0)
        return [draft.render() for draft in drafts]

    def _find(self, index: Any) -> BlockDraft | None:
        if type(index) is int:
            return self._by_index.get(index)
        return self._drafts[-1] if self._drafts else None

    def _stray(self, index: Any, implied: str) -> BlockDraft:
        draft = BlockDraft(self._kept, None, {"type": implied})
        self._drafts.append(draft)
        if type(index) is int:
            self._by_index[index] = draft
        return draft

    def _note(self, code: Code, message: str) -> None:
        self._defects.setdefault(code, Defect(code, message, "/content"))


def _whole_input(start: Any, text: str) -> Any:
    """Return the arguments: an object where the pieces form exactly one, else what was written.

    No pieces behind an empty object is how the format streams a call without arguments.
    """
    if not text:
        return start
    found = parse_object(text)
    if start is None or start in ({}, ""):
        return text if found is None else found
    if found == start:
        return start
    # Two things were said; written one after the other they are refused as not one object.
    return (start if isinstance(start, str) else _as_text(start)) + text


def _as_text(value: Any) -> str:
    try:
        return encode_text(value)
    except JSONTextError:
        return f"({type(value).__name__})"
