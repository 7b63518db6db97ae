"""Streams of messages, block after block."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from surecall.base.json_values import as_fields, text_or_none
from surecall.base.records import RawCall, ToolCall, Usage
from surecall.exchange.request import CompiledTools
from surecall.text import decoder_of, encode_text
from surecall.wire.messages.replies import parse_usage
from surecall.wire.messages.writer import NOT_STOPPED

from .wire import (
    CALL,
    END,
    FRAME,
    NOTHING,
    PASS,
    PING,
    TEXT,
    THOUGHT,
    UNREADABLE,
    Wire,
    event_of,
    fields_of,
    fields_or_none,
    is_there,
    same_event,
    value_of,
)

_TOOL_USE: Final = "tool_use"
_EMPTY: Final = (b"", b"null", b"{}")


class _Delta(Struct, gc=False):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Block(Struct, gc=False):
    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    input: Raw = NOTHING
    toolset_name: str | None = None


class _Event(Struct, gc=False):
    type: str = ""
    index: int | None = None
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: Raw = NOTHING
    usage: Raw = NOTHING
    error: Raw = NOTHING


class _Partial:
    __slots__ = ("id", "is_other", "name", "pieces", "stopped")

    def __init__(self, block: _Block, *, is_other: bool) -> None:
        self.is_other = is_other
        self.id = block.id
        self.name = block.name
        self.pieces: list[str] = []
        self.stopped = False


_decode: Final = decoder_of(_Event)


class MessagesWire(Wire):
    """The events of one message."""

    end_is = "the event that ends a message"
    error_name = "error"
    blank_is_empty = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._calls: dict[int, _Partial] = {}
        self._last_index = -1
        self._has_begun = False
        self._usage: dict[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return parse_usage(self._usage)

    def calls(self) -> list[RawCall] | None:
        """Return the calls if nothing about them is odd."""
        if self.is_odd or (self._calls and self.finish is None):
            return None
        if not all(call.stopped for call in self._calls.values()):
            return None
        return [
            RawCall(call.id, call.name, "".join(call.pieces))
            for call in self._calls.values()
            if not call.is_other
        ]

    def take(self, data: bytes, name: bytes) -> int:
        """Take the data of the next event, and return what it brought."""
        self.events += 1
        self.piece = ""
        if name == b"error":
            return self._take_unusual(data, name)
        try:
            event = _decode(data)
        except UNREADABLE:
            return self._take_unusual(data, name)
        kind = event.type or name.decode("utf-8", "replace")
        if kind == "content_block_delta" and event.delta is not None and self.finish is None:
            return self._take_delta(event, event.delta)
        if kind == "error" or is_there(event.error):
            raise self._read_error(self._decode_whole(data))
        return self._take_frame(event, kind)

    def _take_frame(self, event: _Event, kind: str) -> int:
        """Take an event that begins or ends something."""
        if kind == "ping":
            return PING
        if kind == "content_block_start" and event.content_block is not None:
            return self._take_block(event, event.content_block)
        if kind == "content_block_stop":
            call = self._calls.get(-1 if event.index is None else event.index)
            if call is None:
                return PASS
            call.stopped = True
            return CALL
        if kind == "message_start":
            return self._take_start(as_fields(value_of(event.message)))
        if kind == "message_delta":
            if event.delta is not None and event.delta.stop_reason is not None:
                self.finish = event.delta.stop_reason
            self._put_usage(value_of(event.usage))
            return END
        if kind == "message_stop":
            self.is_finished = self.done = True
            return END
        self.is_odd = self.is_odd or kind.startswith("content_block")
        return PASS

    def _take_delta(self, event: _Event, delta: _Delta) -> int:
        if delta.type == "text_delta":
            self.piece = delta.text or ""
            return TEXT
        if delta.type == "input_json_delta":
            call = self._calls.get(-1 if event.index is None else event.index)
            if call is None or call.stopped:
                if self.has_calls or event.index is None:
                    self.is_odd = True
                return CALL if self.has_calls else PASS  # of a tool that the provider runs
            call.pieces.append(delta.partial_json or "")
            return CALL
        return THOUGHT

    def _take_block(self, event: _Event, block: _Block) -> int:
        index = event.index
        if index is None or index != self._last_index + 1 or self.finish is not None:
            self.is_odd = True
        self._last_index = self._last_index + 1 if index is None else index
        if block.type == _TOOL_USE:
            self.has_calls = True
            if bytes(block.input) not in _EMPTY or self._last_index in self._calls:
                self.is_odd = True
            is_other = self.tools.is_other(block.name, {"toolset_name": block.toolset_name})
            self._calls[self._last_index] = _Partial(block, is_other=is_other)
            return CALL
        if block.type != "text":
            return PASS
        is_first = self._last_index == 0
        self.begins_with_text = self.begins_with_text or is_first
        self.piece = block.text or ""
        return TEXT if block.text else FRAME if is_first else PASS

    def _take_start(self, message: dict[str, Any]) -> int:
        self._has_begun = True
        self.model = self.model or text_or_none(message.get("model"))
        self._put_usage(message.get("usage"))
        if message.get("content"):
            self.is_odd = self.has_calls = True
            return CALL
        return PASS

    def _put_usage(self, usage: Any) -> None:
        for key, value in as_fields(usage).items():
            if value is not None:
                self._usage[key] = value

    def _take_odd(self, fields: dict[str, Any], data: bytes, name: bytes) -> int:
        kind = fields.get("type") or name.decode("utf-8", "replace")
        if kind == "error" or fields.get("error"):
            raise self._read_error(fields)
        delta = as_fields(fields.get("delta"))
        if kind == "content_block_delta" and isinstance(text := delta.get("text"), str):
            self.piece = text
            return TEXT
        self.is_odd = True
        if kind == "message_delta":
            self.finish = text_or_none(delta.get("stop_reason")) or self.finish
            return END
        if kind == "message_stop":
            self.is_finished = self.done = True
            return END
        block = as_fields(fields.get("content_block"))
        if block.get("type") == _TOOL_USE or delta.get("type") == "input_json_delta":
            self.has_calls = True
            return CALL
        return PASS

    def pulse(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return an empty piece of the open text, or else that the message has not stopped."""
        fields = fields_or_none(held)
        if not self._has_begun or fields.get("type") == "message_start":
            return b""
        if as_fields(fields.get("delta")).get("type") == "text_delta":
            delta = {"type": "text_delta", "text": ""}
            return event_of({**fields, "delta": delta}, "content_block_delta")
        return event_of(NOT_STOPPED, "message_delta")

    def stop(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return the events that end a message."""
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        usage = {"output_tokens": self._usage.get("output_tokens") or 0}
        ended = {"type": "message_delta", "delta": delta, "usage": usage}
        return event_of(ended, "message_delta") + event_of({"type": "message_stop"}, "message_stop")

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
    ) -> bytes:
        """Return the held events with these calls before the end; blocks are numbered anew."""
        said = (text or "") + note
        written: list[bytes] = []
        places = _Places(self._last_index, held, self.tools)
        is_written = False
        for data in held:
            fields = fields_of(data)
            kind = str(fields.get("type"))
            if not kind.startswith("content_block"):
                if kind in ("message_delta", "message_stop") and not is_written:
                    is_written = True
                    written += _write(places, calls, said)
                delta = as_fields(fields.get("delta"))
                reason = delta.get("stop_reason")
                ended = _TOOL_USE if calls or places.has_calls else "end_turn"
                if kind == "message_delta" and reason != ended:
                    delta = {**delta, "stop_reason": ended}
                    written.append(event_of({**fields, "delta": delta}, kind))
                else:
                    written.append(same_event(data, kind))
                continue
            index = places.of(fields, drops_text=text is not None)
            if index is None:
                continue
            if kind == "content_block_stop" and index == places.open and said:
                continue  # more of it follows
            written.append(event_of({**fields, "index": index}, kind))
        return b"".join(written)


class _Places:
    """The numbers of the blocks behind those that were passed on."""

    def __init__(self, last: int, held: Sequence[bytes], tools: CompiledTools) -> None:
        self._tools = tools
        events = [fields_of(data) for data in held]
        starts = [item.get("index") for item in events if item.get("type") == "content_block_start"]
        before = last - len(starts)
        others = [
            item["index"]
            for item in events
            if isinstance(item.get("index"), int)
            and item["index"] not in starts
            and item["index"] <= before
        ]
        firsts = [index for index in starts if isinstance(index, int)]
        self.open: int | None = others[0] if others else None
        """The block that had begun before, and was not closed."""
        self.next = min([*firsts, before + 1])
        if self.open is not None:
            self.next = self.open + 1
        self._numbers: dict[Any, int | None] = {}
        self.has_calls = False
        """Whether a call of a tool that is not a function stays."""

    def of(self, fields: dict[str, Any], *, drops_text: bool) -> int | None:
        """Return the new number of the block of an event, unless the block is left out."""
        index = fields.get("index")
        if index == self.open and index is not None:
            is_text = as_fields(fields.get("delta")).get("type") == "text_delta"
            return None if is_text and drops_text else self.open
        if fields.get("type") == "content_block_start":
            block = as_fields(fields.get("content_block"))
            kind = block.get("type")
            is_call = kind == _TOOL_USE and not self._tools.is_other(block.get("name"), block)
            if is_call or (kind == "text" and drops_text):
                self._numbers[index] = None
            else:
                self._numbers[index] = self.take()
                self.has_calls = self.has_calls or kind == _TOOL_USE
        nameless = self._numbers.get(None)  # a block that began without a number
        return self._numbers.get(index, nameless)

    def take(self) -> int:
        """Return the number of the next block."""
        self.next += 1
        return self.next - 1


def _write(places: _Places, calls: Sequence[ToolCall], text: str) -> list[bytes]:
    written: list[bytes] = []
    if text:
        delta = {"type": "text_delta", "text": text}
        if places.open is None:
            written += _block(places.take(), {"type": "text", "text": ""}, delta)
        else:
            written += _block(places.open, None, delta)
    for call in calls:
        block: dict[str, Any] = {"type": _TOOL_USE, "id": call.id, "name": call.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": encode_text(call.arguments)}
        written += _block(places.take(), block, delta)
    return written


def _block(index: int, block: dict[str, Any] | None, delta: dict[str, Any]) -> list[bytes]:
    start = {"type": "content_block_start", "index": index, "content_block": block}
    piece = {"type": "content_block_delta", "index": index, "delta": delta}
    stop = {"type": "content_block_stop", "index": index}
    events = [start, piece, stop] if block is not None else [piece, stop]
    return [event_of(event, str(event["type"])) for event in events]
