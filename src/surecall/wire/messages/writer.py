"""Replies and errors as a server of the format answers them, whole or as events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from surecall.base.errors import SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import RawCall, Reply, ToolCall, Usage
from surecall.text import encode_text, render_event, repair_surrogates
from surecall.wire.call_ids import CallIds
from surecall.wire.events import event_of, fields_of, fields_or_none, same_event
from surecall.wire.records import WireError
from surecall.wire.rewriting import Begun, CallPiece, EventRewriter
from surecall.wire.server import (
    ERROR_TYPES,
    error_reasons,
    error_text,
    finish_of,
    name_text,
    new_id,
    status_of,
)
from surecall.wire.substitutes import stand_in_name, stand_in_object

from .blocks import parse_arguments, wire_id
from .events import MessagesReader
from .replies import STOP_REASONS
from .requests import MAX_NAME_CHARS

NOT_STOPPED: Final[Mapping[str, Any]] = {
    "type": "message_delta",
    "delta": {"stop_reason": None, "stop_sequence": None},
    "usage": {"output_tokens": 0},
}
"""The event that changes nothing of a message, where no block is open that could take a piece."""
_ERROR_TYPES: Final = {**ERROR_TYPES, 402: "billing_error", 409: "conflict_error"}


def render_reply(reply: Reply, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Render a reply as a whole message.

    Reasoning that came without a signature gets an empty one: none is ever invented.
    """
    content = _thoughts_of(reply.extra)
    if not content and reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": ""})
    if reply.content:
        content.append({"type": "text", "text": reply.content})
    ids = _call_ids(reply.id)
    content += [_render_call(call, ids) for call in reply.calls]
    return {
        "id": reply.id or new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": reply.model or "",
        "content": content,
        "stop_reason": _render_stop_reason(reply),
        "stop_sequence": None,
        "usage": _render_usage(reply.usage),
    }


def render_error(error: SurecallError) -> WireError:
    """Render an error with the status and the shape that clients of the format know."""
    status = status_of(error)
    kind = "api_error" if status >= 500 else "invalid_request_error"
    fields = {"type": _ERROR_TYPES.get(status, kind), "message": error_text(error)}
    return WireError(status, {"type": "error", "error": {**fields, **error_reasons(error)}})


def _call_ids(reply_id: str | None) -> CallIds:
    """Return what gives the calls of a reply their ids."""
    return CallIds(wire_id, prefix="toolu_", seed=reply_id or "")


def _render_call(call: RawCall, ids: CallIds) -> dict[str, Any]:
    """Render a call; a client needs an id and an object, also where the model gave neither."""
    return {
        "type": "tool_use",
        "id": ids.assign_to(call),
        "name": stand_in_name(name_text(call), MAX_NAME_CHARS),
        "input": stand_in_object(call.arguments, parse_arguments),
    }


def _render_stop_reason(reply: Reply, *, wrote_calls: bool = False) -> str:
    """Render a finish reason: clients look for calls when it is `tool_use`, and only then."""
    finish = finish_of(reply)
    reason = STOP_REASONS.get(finish, finish)
    if reason != "end_turn":
        return reason
    if reply.calls or wrote_calls:
        return "tool_use"
    return "refusal" if reply.is_refusal else reason


def _render_usage(usage: Usage | None) -> dict[str, Any]:
    """Render token counts; clients of the format read them from every reply."""
    usage = usage or Usage()
    cached = min(usage.cached_tokens, usage.input_tokens)
    written = min(usage.cache_write_tokens, usage.input_tokens - cached)
    wire: dict[str, Any] = {
        "input_tokens": usage.input_tokens - cached - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens:
        wire["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return wire


def _thoughts_of(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the thoughts that a client has to send back as they are."""
    items = as_list(extra.get("thinking_blocks"))
    found = [as_fields(item) for item in items if isinstance(item, dict)]
    return [{"signature": "", **item} if "thinking" in item else dict(item) for item in found]


_Kind: TypeAlias = Literal["text", "thinking"]


class MessagesStreamWriter:
    """Writes one reply as events, block after block.

    The signature of a thought belongs into its block, before the block ends. A thought whose
    words were written and followed by something else before its signature came stays unsigned.
    """

    def __init__(
        self,
        *,
        model: str,
        reply_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self._model = model
        self._id = reply_id or new_id("msg_")
        self._ids = _call_ids(reply_id)
        self._index = -1
        self._open: _Kind | None = None
        self._words: list[str] = []
        """The words of the thought that is being written."""
        self._unsigned: set[str] = set()
        self._thoughts: list[dict[str, Any]] = []
        self._has_calls = False

    def begin(self) -> bytes:
        """Open the reply."""
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _render_usage(None),
        }
        return _event("message_start", message=message)

    def text(self, text: str) -> bytes:
        """Write a piece of the text."""
        if not text:
            return b""
        opened = self._switch("text", {"type": "text", "text": ""})
        return opened + self._delta({"type": "text_delta", "text": repair_surrogates(text)})

    def refusal(self, text: str) -> bytes:
        """Write a piece of a refusal, which is text here; the stop reason says what it is."""
        return self.text(text)

    def reasoning(self, text: str, extra: Mapping[str, Any] | None = None) -> bytes:
        """Write a piece of the reasoning, and end the thoughts that `extra` holds."""
        blocks = [block for block in _thoughts_of(extra or {}) if block not in self._thoughts]
        stated = "".join(block["thinking"] for block in blocks if _is_readable(block))
        written = b""
        if "".join([*self._words, text]) != stated:  # the words are not only those of the blocks
            written = self._think(text)
        return written + b"".join([self._end_thought(block) for block in blocks])

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        self._has_calls = True
        block = _render_call(call, self._ids)
        begun = self._close() + self._start({**block, "input": {}})
        delta = {"type": "input_json_delta", "partial_json": encode_text(block["input"])}
        return begun + self._delta(delta) + self._stop()

    def pulse(self) -> bytes:
        """Write an empty piece of the open text, or else that the message has not stopped."""
        if self._open == "text":
            return self._delta({"type": "text_delta", "text": ""})
        return render_event(encode_text(NOT_STOPPED), event="message_delta")

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        written = self.reasoning("", reply.extra) + self._close()
        reason = _render_stop_reason(reply, wrote_calls=self._has_calls)
        delta = {"stop_reason": reason, "stop_sequence": None}
        ended = _event("message_delta", delta=delta, usage=_render_usage(reply.usage))
        return written + ended + _event("message_stop")

    def fail(self, error: SurecallError) -> bytes:
        """Break the reply off with an error event; no end follows."""
        return render_event(encode_text(render_error(error).body), event="error")

    def _think(self, text: str) -> bytes:
        if not text:
            return b""
        opened = self._begin_thought()
        self._words.append(text)
        return opened + self._delta({"type": "thinking_delta", "thinking": repair_surrogates(text)})

    def _begin_thought(self) -> bytes:
        return self._switch("thinking", {"type": "thinking", "thinking": "", "signature": ""})

    def _end_thought(self, block: dict[str, Any]) -> bytes:
        """Write what is not written yet of a thought, and its signature."""
        self._thoughts.append(block)
        if not _is_readable(block):
            return self._close() + self._start(block) + self._stop()
        thought, signature = block["thinking"], block["signature"]
        if thought and any(thought in words for words in self._unsigned):
            return b""
        written = b"" if thought.startswith("".join(self._words)) else self._close()
        rest = thought[len("".join(self._words)) :]
        written += self._begin_thought() + self._think(rest)
        if isinstance(signature, str) and signature:
            written += self._delta({"type": "signature_delta", "signature": signature})
            self._words.clear()
        return written + self._close()

    def _switch(self, kind: _Kind, block: dict[str, Any]) -> bytes:
        if self._open == kind:
            return b""
        opened = self._close() + self._start(block)
        self._open = kind
        return opened

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        if self._words:
            self._unsigned.add("".join(self._words))
            self._words.clear()
        return self._stop()

    def _start(self, block: dict[str, Any]) -> bytes:
        self._index += 1
        return _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _stop(self) -> bytes:
        return _event("content_block_stop", index=self._index)


def _is_readable(block: dict[str, Any]) -> bool:
    return block.get("type") == "thinking" and isinstance(block.get("thinking"), str)


def _event(kind: str, **fields: Any) -> bytes:
    return render_event(encode_text({"type": kind, **fields}), event=kind)


_TOOL_USE: Final = "tool_use"
_EMPTY: Final = {"input_json_delta": "partial_json", "text_delta": "text"}
_BLOCK_KEYS: Final = frozenset({"caller", "id", "input", "name", "type"})


class MessagesRewriter(EventRewriter[MessagesReader]):
    """Writes events among those of one message."""

    error_name = "error"
    render_error = staticmethod(render_error)

    def pulse(self, held: bytes) -> bytes:
        """Return an empty piece of the open text, or else that the message has not stopped."""
        fields = fields_or_none(held)
        if not self._reader.has_begun or fields.get("type") == "message_start":
            return b""
        kind = as_fields(fields.get("delta")).get("type")
        if kind in _EMPTY:
            delta = {"type": kind, _EMPTY[kind]: ""}
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
        begun: Begun | None = None,
    ) -> bytes:
        """Return the held events with these calls before the end; blocks are numbered anew."""
        said = (text or "") + note
        written: list[bytes] = []
        places = _Places(self._reader.last_index, held, self._is_other)
        if begun is not None:
            places.open, places.next, places.has_calls = None, begun.place + 1, True
        is_written = is_ended = False
        for data in held:
            fields = fields_of(data)
            kind = str(fields.get("type"))
            if begun is not None and fields.get("index") == begun.place:
                continue
            if not kind.startswith("content_block"):
                if begun is not None and not is_ended and kind != "ping":
                    is_ended = True
                    delta = {"type": "input_json_delta", "partial_json": begun.rest}
                    written[:0] = _block(begun.place, None, delta)
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

    def read_piece(self, fields: dict[str, Any]) -> CallPiece | None:
        """Return what an event brings of a call, if it begins the block of one or goes on."""
        place, kind = fields.get("index"), fields.get("type")
        if type(place) is not int:
            return None
        if kind == "content_block_delta":
            delta = as_fields(fields.get("delta"))
            text = delta.get("partial_json")
            is_usual = delta.get("type") == "input_json_delta" and isinstance(text, str)
            return CallPiece(place, str(text)) if is_usual else None
        block = as_fields(fields.get("content_block"))
        name, call_id = block.get("name"), block.get("id")
        if kind != "content_block_start" or block.get("type") != _TOOL_USE:
            return None
        if block.get("input") != {} or not block.keys() <= _BLOCK_KEYS:
            return None
        if not isinstance(name, str) or not isinstance(call_id, str):
            return None
        return CallPiece(place, "", name, call_id, block)


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
