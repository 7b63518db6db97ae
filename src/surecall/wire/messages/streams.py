"""Streamed replies: bytes cut anywhere fold into the message a whole reply would carry.

A stream is complete when `message_stop` has come. Anything less is `STREAM_TRUNCATED`: an end is
never invented. A message begins once, and no content follows its stop reason.
"""

from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect
from surecall.text import SSEEvent, decode
from surecall.wire.base import RawReply, StreamDelta
from surecall.wire.replies import check_role
from surecall.wire.streams import EventFolder, HeldHalves, may_have_halves

from .partial_blocks import PIECES, PartialBlocks
from .replies import find_repeated_keys, parse_body, parse_fields

_CONTENT: Final = ("content_block_start", "content_block_delta")
_NO_REASON: Final = Defect(
    Code.UPSTREAM_BAD_EVENT, "The stream does not say why the model stopped.", "/stop_reason"
)
_BLOCK_ENDS: Final = frozenset(
    {"content_block_start", "content_block_stop", "message_delta", "message_stop"}
)


class MessagesStreamFolder(EventFolder):
    """Folds one streamed reply; feed it every chunk, then close it."""

    end_is = "message_stop"
    parse_body = staticmethod(parse_body)

    def _begin(self) -> None:
        self._blocks = self._partial = PartialBlocks(self._kept)
        self._fields: dict[str, Any] = {}
        self._has_begun = False
        self._has_stopped = False
        self._usage: dict[str, Any] = {}
        self._halves = HeldHalves()

    def _take_fields(
        self, fields: dict[str, Any], event: SSEEvent, shown: list[StreamDelta]
    ) -> None:
        data = event.data
        kind = fields.get("type") or event.event
        if not isinstance(kind, str):
            self._refuse_event(data, "its type is not text.")
            return
        if kind == "error" or fields.get("error"):
            raise self._read_error(fields)
        if self._has_stopped and kind in _CONTENT:
            raise self._refuse_order("has content after the stop reason")
        if kind in _BLOCK_ENDS:
            self._end_thought(shown)
        if kind == "message_stop":
            self._done = True
            self._halves.flush(shown)
        elif kind == "content_block_start":
            self._begin_block(fields, data, shown)
        elif kind == "content_block_delta":
            self._take_piece(fields, data, shown)
        elif kind == "message_start":
            self._begin_message(fields, data, shown)
        elif kind == "message_delta":
            self._end_message(fields, data)

    def _decode(self, data: str) -> Any:
        """Decode an event; halves of characters are kept in pieces only, which are joined later."""
        if may_have_halves(data):
            event: Any = decode(data, surrogates="keep")
            kind = as_fields(as_fields(event).get("delta")).get("type")
            if isinstance(kind, str) and kind in PIECES:
                return event
        return decode(data, surrogates="replace")

    def _render(self) -> RawReply:
        fields = {**self._fields, "content": self._blocks.render(), "usage": self._usage}
        defects = (*self._blocks.defects, *self._repeated, *self._skipped_defects())
        if self._fields.get("stop_reason") is None and self._blocks.calls_count:
            # The event that says why the model stopped was lost, and perhaps more with it.
            defects = (*defects, _NO_REASON)
        raw = parse_fields(fields, defects)
        return replace(raw, message={"type": "message", "role": "assistant", **raw.message})

    def _begin_message(self, event: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        message: Any = event.get("message")
        if not isinstance(message, dict):
            self._refuse_event(data, "its message is not an object.")
            return
        if self._has_begun:
            raise self._refuse_order("begins a second message")
        self._has_begun = True
        fields = as_fields(message)
        check_role(fields.get("role"))
        self._put(self._fields, fields)
        self._put(self._usage, fields.get("usage"))
        for index, block in enumerate(as_list(fields.get("content"))):
            self._begin_block({"index": index, "content_block": block}, data, shown)

    def _end_message(self, event: dict[str, Any], data: str) -> None:
        delta: Any = event.get("delta")
        if delta and not isinstance(delta, dict):
            self._refuse_event(data, "its delta is not an object.")
            return
        fields = cast("dict[str, Any]", delta or {})
        check_role(fields.get("role"))
        if fields.get("stop_reason") is not None:
            self._has_stopped = True
        self._put(self._fields, fields)
        self._put(self._usage, event.get("usage"))

    def _begin_block(self, event: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        fields: Any = event.get("content_block")
        if not isinstance(fields, dict):
            self._refuse_event(data, "its content block is not an object.")
            return
        fields = as_fields(fields)
        block = self._blocks.begin(event.get("index"), fields)
        if fields.get("input") and not self._repeated:
            self._repeated = find_repeated_keys(data)
        if block.text:
            self._show(block.field, str(block.text), shown)

    def _take_piece(self, event: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        delta: Any = event.get("delta")
        if not isinstance(delta, dict):
            self._refuse_event(data, "its delta is not an object.")
            return
        fields = as_fields(delta)
        if not self._blocks.can_take(event.get("index"), fields):
            self._refuse_event(data, "its delta is not a piece of the block.")
            return
        piece = self._blocks.take(event.get("index"), fields)
        if piece is not None:
            self._show(*piece, shown)

    def _end_thought(self, shown: list[StreamDelta]) -> None:
        """Hand out the thought that has ended, which a client has to send back as it is."""
        block = self._blocks.take_ended_thought()
        if block is not None:
            shown.append(StreamDelta("reasoning", "", {"thinking_blocks": [block]}))

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
