"""Events of a message that are held back, written again."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from surecall.base.json_values import as_fields
from surecall.base.records import ToolCall
from surecall.text import encode_text
from surecall.wire.events import event_of, fields_of, fields_or_none, same_event
from surecall.wire.rewriting import EventRewriter

from .events import MessagesReader
from .writer import NOT_STOPPED, render_error

_TOOL_USE: Final = "tool_use"


class MessagesRewriter(EventRewriter[MessagesReader]):
    """Writes events among those of one message."""

    error_name = "error"
    render_error = staticmethod(render_error)

    def pulse(self, held: bytes) -> bytes:
        """Return an empty piece of the open text, or else that the message has not stopped."""
        fields = fields_or_none(held)
        if not self._reader.has_begun or fields.get("type") == "message_start":
            return b""
        if as_fields(fields.get("delta")).get("type") == "text_delta":
            delta = {"type": "text_delta", "text": ""}
            return event_of({**fields, "delta": delta}, "content_block_delta")
        return event_of(NOT_STOPPED, "message_delta")

    def stop(self, held: bytes) -> bytes:
        """Return the events that end a message."""
        usage = self._reader.usage
        delta = {"stop_reason": "end_turn", "stop_sequence": None}
        counts = {"output_tokens": usage.output_tokens if usage else 0}
        ended = {"type": "message_delta", "delta": delta, "usage": counts}
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
        places = _Places(self._reader.last_index, held, self._is_other)
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

    def __init__(
        self, last: int, held: Sequence[bytes], is_other: Callable[[Any, Mapping[str, Any]], bool]
    ) -> None:
        self._is_other = is_other
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
            is_call = kind == _TOOL_USE and not self._is_other(block.get("name"), block)
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
