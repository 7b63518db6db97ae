"""Streamed replies: bytes cut anywhere fold into the message a whole reply would carry.

A stream is complete when `message_stop` has come. Anything less is `STREAM_TRUNCATED`: an end is
never invented. A message begins once, and no content follows its stop reason.
"""

from typing import Any, Final, Literal, TypeAlias, cast

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Defect
from surecall.base.redaction import excerpt
from surecall.text import decode, decode_plain, repair_surrogates
from surecall.wire.events import (
    CALL,
    END,
    FRAME,
    PASS,
    PING,
    TEXT,
    Event,
    EventReader,
    event_of,
    may_have_halves,
)
from surecall.wire.partial_reply import HeldHalves, Kept, KeptText, KeptWords, Noted, text_of
from surecall.wire.records import RawReply, StreamDelta
from surecall.wire.replies import check_role

from .blocks import THOUGHT_BLOCKS, parse_arguments
from .replies import find_repeated_keys, parse_body, parse_fields, parse_usage, read_finish

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
        text = repair_surrogates(str(self.text))
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
        return repair_surrogates("".join(texts))

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


_CONTENT: Final = ("content_block_start", "content_block_delta")
_NO_REASON: Final = Defect(
    Code.UPSTREAM_BAD_EVENT, "The stream does not say why the model stopped.", "/stop_reason"
)
_BLOCK_ENDS: Final = frozenset(
    {"content_block_start", "content_block_stop", "message_delta", "message_stop"}
)


class MessagesReader(EventReader):
    """Reads one streamed reply."""

    end_is = "message_stop"
    is_named = True
    parse_body = staticmethod(parse_body)

    def _begin(self) -> None:
        self._blocks = self._partial = PartialBlocks(self._kept)
        self._fields: dict[str, Any] = {}
        self._has_stopped = False
        self._open_calls: set[Any] = set()
        self._counts: dict[str, Any] = {}
        self._halves = HeldHalves()
        self._numbered: bytes | None = None
        """The last event with the number that it lacked."""
        self.has_begun = False
        """Whether the event that begins a message has come."""
        self.last_index = -1
        """The number of the last block."""

    def _add_more(self, kind: int, place: Any, text: str) -> None:
        self._blocks.add(place, text)

    def takes_finish(self, finish: str | None, *, is_named: bool) -> bool:
        """Tell whether clients look for calls in a reply that ends so."""
        return finish == "tool_calls"

    def _take_fields(
        self, fields: dict[str, Any], event: Event, shown: list[StreamDelta]
    ) -> int | None:
        data = event.data
        kind = fields.get("type") or event.name
        if not isinstance(kind, str):
            return self._refuse_event(data, "its type is not text.")
        if self._is_passed and "index" not in fields and kind.startswith("content_block_"):
            fields = self._number(fields, kind)
        if kind == "content_block_delta" and not self._has_stopped:
            return self._take_piece(fields, data, shown)
        if kind == "error" or fields.get("error"):
            raise self._read_error(fields)
        if self._has_stopped and kind in _CONTENT:
            raise self._refuse_order("has content after the stop reason")
        if kind in _BLOCK_ENDS:
            self._end_thought(shown)
        if kind == "message_stop":
            self.done = True
            self._halves.flush(shown)
            lacks_end = bool(self._open_calls) or not self._has_stopped
            self.is_odd = self.is_odd or (self.has_calls and lacks_end)
            return END
        if kind == "content_block_start":
            return self._begin_block(fields, data, shown)
        if kind == "content_block_stop":
            return self._end_block(fields.get("index"))
        if kind == "message_start":
            return self._begin_message(fields, data, shown)
        if kind == "message_delta":
            return self._end_message(fields, data)
        self.is_odd = self.is_odd or kind.startswith("content_block")
        return PING if kind == "ping" else PASS

    def write(self, event: Event) -> bytes:
        """Return an event in the form that clients read; blocks have numbers, one by one."""
        numbered, self._numbered = self._numbered, None
        return super().write(event) if numbered is None else numbered

    def _number(self, fields: dict[str, Any], kind: str) -> dict[str, Any]:
        """Give an event the number of its block; blocks come one after the other."""
        index = self.last_index + (kind == "content_block_start")
        numbered = {**fields, "index": max(0, index)}
        self._numbered = event_of(numbered, kind)
        return numbered

    def _decode(self, data: bytes | str) -> Any:
        """Decode an event; halves of characters are kept in pieces only, which are joined later."""
        if isinstance(data, bytes) and may_have_halves(data):
            event: Any = decode(data, surrogates="keep")
            kind = as_fields(as_fields(event).get("delta")).get("type")
            if isinstance(kind, str) and kind in PIECES:
                return event
        return decode(data, surrogates="replace")

    def _render(self) -> RawReply:
        fields = {**self._fields, "content": self._blocks.render(), "usage": self._counts}
        if self._is_passed and fields.get("role") not in (None, ""):
            fields["role"] = "assistant"  # the client has whatever it was
        defects = (*self._blocks.defects, *self._repeated, *self._skipped_defects())
        if self._fields.get("stop_reason") is None and self._blocks.calls_count:
            # The event that says why the model stopped was lost, and perhaps more with it.
            defects = (*defects, _NO_REASON)
        raw = parse_fields(fields, defects)
        return replace(raw, message={"type": "message", "role": "assistant", **raw.message})

    def _begin_message(self, event: dict[str, Any], data: bytes, shown: list[StreamDelta]) -> int:
        message: Any = event.get("message")
        if self._is_passed:
            message = as_fields(message)
        elif not isinstance(message, dict):
            return self._refuse_event(data, "its message is not an object.")
        elif self.has_begun:
            raise self._refuse_order("begins a second message")
        self.has_begun = True
        fields = as_fields(message)
        self._check_role(fields)
        self._put_all(fields, fields.get("usage"))
        blocks = as_list(fields.get("content"))
        for index, block in enumerate(blocks):
            self._begin_block({"index": index, "content_block": block}, data, shown)
        if blocks:
            self.is_odd = self.has_calls = True
        return CALL if blocks else PASS

    def _end_message(self, event: dict[str, Any], data: bytes) -> int:
        delta: Any = event.get("delta")
        if delta and not isinstance(delta, dict):
            return self._refuse_event(data, "its delta is not an object.")
        fields = cast("dict[str, Any]", delta or {})
        self._check_role(fields)
        if fields.get("stop_reason") is not None:
            self._has_stopped = True
        self._put_all(fields, event.get("usage"))
        return END

    def _begin_block(self, event: dict[str, Any], data: bytes, shown: list[StreamDelta]) -> int:
        fields: Any = event.get("content_block")
        if not isinstance(fields, dict):
            return self._refuse_event(data, "its content block is not an object.")
        fields, index = as_fields(fields), event.get("index")
        block = self._blocks.begin(index, fields)
        if fields.get("input") and not self._repeated:
            self._repeated = find_repeated_keys(data)
        if block.text:
            self._show(block.field, str(block.text), shown)
        if index != self.last_index + 1:
            self.is_odd = True
        self.last_index = index if type(index) is int else self.last_index + 1
        if block.kind == "tool_use":
            self.has_calls = True
            self.is_odd = self.is_odd or fields.get("input") not in (None, {})
            self._open_calls.add(self.last_index)
            return CALL
        if block.kind != "text" or self.last_index > 0:
            return PASS
        self.begins_with_text = True
        return PASS if block.text else FRAME

    def _end_block(self, index: Any) -> int:
        if type(index) is not int or index not in self._open_calls:
            return PASS
        self._open_calls.discard(index)
        written = self._blocks.written(index)
        self.is_odd = self.is_odd or (bool(written) and decode_plain(written) is None)
        return CALL

    def _take_piece(self, event: dict[str, Any], data: bytes, shown: list[StreamDelta]) -> int:
        delta: Any = event.get("delta")
        if delta.__class__ is not dict:
            return self._refuse_event(data, "its delta is not an object.")
        index = event.get("index")
        if not self._blocks.can_take(index, delta):
            if self._is_passed and index not in self._open_calls:
                return PASS
            return self._refuse_event(data, "its delta is not a piece of the block.")
        piece = self._blocks.take(index, delta)
        if piece is None:
            return PASS
        field, text = piece
        if field != "input":
            self._show(field, text, shown)
            if field == "text" and self._numbered is None and not self._halves.are_held:
                self._more = TEXT, index, text
            return PASS
        if type(index) is not int or index not in self._open_calls:
            # Of a tool that the provider runs, or of no block.
            self.is_odd = self.is_odd or self.has_calls or index is None
            return CALL if self.has_calls else PASS
        self._more = (CALL, index, text) if self._numbered is None else None
        return CALL

    def _end_thought(self, shown: list[StreamDelta]) -> None:
        """Hand out the thought that has ended, which a client has to send back as it is."""
        block = self._blocks.take_ended_thought()
        if block is not None:
            shown.append(StreamDelta("reasoning", "", {"thinking_blocks": [block]}))

    def _check_role(self, fields: dict[str, Any]) -> None:
        if not self._is_passed:
            check_role(fields.get("role"))

    def _put_all(self, fields: dict[str, Any], counts: Any) -> None:
        self._put(self._fields, fields)
        self._put(self._counts, counts)
        self.finish = read_finish(self._fields.get("stop_reason"))
        self.model = text_or_none(self._fields.get("model"))
        self.usage = parse_usage(self._counts)

    def _put(self, target: dict[str, Any], fields: Any) -> None:
        """Add fields to those before: each count is a total, and one left out still holds."""
        for key, value in as_fields(fields).items():
            if value is not None:
                self._kept.put(target, key, value)

    def _show(self, field: str | None, text: str, shown: list[StreamDelta]) -> None:
        if field == "text":
            self._halves.show("text", text, shown)
        elif field == "thinking":
            self._halves.show("reasoning", text, shown)
