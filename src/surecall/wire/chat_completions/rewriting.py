"""Chunks of a completion that are held back, written again."""

from collections.abc import Sequence
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolCall
from surecall.text import encode_text
from surecall.wire.events import event_of, fields_of, fields_or_none, same_event
from surecall.wire.rewriting import EventParts, EventRewriter

from .events import ChatReader
from .replies import is_function
from .writer import render_error

_CALL_KEYS: Final = ("tool_calls", "function_call")
_TEXT_KEYS: Final = ("content", "refusal")
_DONE: Final = b"[DONE]"
_HEAD: Final = ("id", "object", "created", "model", "system_fingerprint", "service_tier")


class ChatRewriter(EventRewriter[ChatReader]):
    """Writes chunks among those of one completion."""

    parts_text = True
    render_error = staticmethod(render_error)

    def part(self, data: bytes, thought: str, text: str) -> EventParts:
        """Part a chunk whose text turned out to be reasoning, all of it or its beginning."""
        fields = fields_of(data)
        choice = as_fields(as_list(fields.get("choices"))[0])
        delta = as_fields(choice.get("delta"))
        kept = {key: value for key, value in delta.items() if key not in _TEXT_KEYS}
        rest = b""
        if choice.get("finish_reason") or any(kept.values()):
            rest = event_of({**fields, "choices": [{**choice, "delta": kept}]})
        return EventParts(
            self._write_piece(fields, "reasoning_content", thought),
            self._write_piece(fields, "content", text),
            rest,
        )

    def _write_piece(self, fields: dict[str, Any], key: str, text: str) -> bytes:
        if not text:
            return b""
        head = {name: value for name, value in fields.items() if name not in ("choices", "usage")}
        choice = {"index": self._reader.choice or 0, "delta": {key: text}, "finish_reason": None}
        return event_of({**head, "choices": [choice]})

    def pulse(self, held: bytes) -> bytes:
        """Return a chunk with an empty text; some SDKs drop one without any."""
        return self._write_chunk(held, {"content": ""}, None)

    def stop(self, held: bytes) -> bytes:
        """Return the finish and the end of the stream."""
        return self._write_chunk(held, {}, "stop") + same_event(_DONE)

    def _write_chunk(self, held: bytes, delta: dict[str, Any], finish: str | None) -> bytes:
        fields = fields_or_none(held)
        head = {key: fields[key] for key in _HEAD if key in fields}
        index = self._reader.choice or 0
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": finish}
        return event_of({"object": "chat.completion.chunk", **head, "choices": [choice]})

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
    ) -> bytes:
        """Return the held chunks with these calls before the finish."""
        reader = self._reader
        count = sum(data.strip() != _DONE for data in held)
        lacks_role = not reader.role_at or reader.role_at > reader.events - count
        rewriting = _Rewriting(
            held,
            calls,
            text,
            note,
            index=reader.choice or 0,
            lacks_role=lacks_role,
            is_legacy=reader.is_legacy,
        )
        return rewriting.write()


class _Rewriting:
    """Writes held chunks of one completion once more, with other calls.

    Args:
        held: The data of the chunks.
        calls: The calls that the client gets.
        text: What comes in the place of the held text; `None` leaves it as it is.
        note: What comes behind all text.
        index: The number of the reply.
        lacks_role: Whether the client has not read the role yet.
        is_legacy: Whether the client looks for a call in `function_call`.
    """

    def __init__(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str,
        *,
        index: int,
        lacks_role: bool,
        is_legacy: bool,
    ) -> None:
        self._chunks = [(data, _read_held(data)) for data in held]
        self._calls = calls
        self._text = text
        self._index = index
        self._note = note
        self._field = "function_call" if is_legacy else "tool_calls"
        named = (delta["role"] for _, (_, _, delta) in self._chunks if "role" in delta)
        self._role: Any = next(named, None) if lacks_role else None
        """The role, as long as the client has not read it; clients join what comes twice."""
        self._others: dict[str, int] = {}
        """The calls of tools that are not functions, numbered anew; the others follow them."""
        for _, (_, _, delta) in self._chunks:
            for entry in as_list(delta.get("tool_calls")):
                if not is_function(as_fields(entry)):
                    self._others.setdefault(_number_of(entry), len(self._others))
        self._written: list[bytes] = []

    def write(self) -> bytes:
        """Return the chunks."""
        is_written = False
        for data, (fields, choice, delta) in self._chunks:
            if choice is None:
                self._written.append(same_event(data))
                continue
            finish = choice.get("finish_reason")
            if finish is not None and not is_written:
                is_written = True
                self._write_calls(fields)
            self._write_rest(data, fields, choice, delta)
        return b"".join(self._written)

    def _write_rest(
        self, data: bytes, fields: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any]
    ) -> None:
        """Write what a chunk has besides calls, and text that another takes the place of."""
        dropped = [key for key in _CALL_KEYS if key in delta]
        if self._text is not None:
            dropped += [key for key in _TEXT_KEYS if delta.get(key)]
        if "role" in delta and self._role is None:
            dropped.append("role")
        others = [
            {**as_fields(entry), "index": self._others[number]}
            for entry in as_list(delta.get("tool_calls"))
            if (number := _number_of(entry)) in self._others
        ]
        finish = choice.get("finish_reason")
        ended = self._field if self._calls or self._others else "stop"
        if finish is not None and finish != ended:
            choice = {**choice, "finish_reason": ended}
        elif not dropped:
            self._role = None if "role" in delta else self._role
            self._written.append(same_event(data))
            return
        kept = {key: value for key, value in delta.items() if key not in ("role", *dropped)}
        if others:
            kept["tool_calls"] = others
        if finish is None and not any(kept.values()):
            return
        shown = {key: value for key, value in choice.items() if key != "message"}
        self._send(fields, shown, kept)

    def _write_calls(self, fields: dict[str, Any]) -> None:
        head = {key: value for key, value in fields.items() if key != "usage"}
        place = {"index": self._index, "logprobs": None, "finish_reason": None}
        if said := (self._text or "") + self._note:
            self._send(head, place, {"content": said})
        for number, call in enumerate(self._calls, len(self._others)):
            function = {"name": call.name, "arguments": encode_text(call.arguments)}
            if self._field == "function_call":
                self._send(head, place, {self._field: function})
                continue
            entry = {"index": number, "id": call.id, "type": "function", "function": function}
            self._send(head, place, {self._field: [entry | call.extra | entry]})

    def _send(self, fields: dict[str, Any], choice: dict[str, Any], delta: dict[str, Any]) -> None:
        if self._role is not None:
            delta, self._role = {"role": self._role, **delta}, None
        choices = [{**choice, "delta": delta}]
        self._written.append(event_of({**fields, "choices": choices}))


def _number_of(entry: Any) -> str:
    """Return the index of a piece of a call, of whatever type it is, as a key."""
    return repr(as_fields(entry).get("index"))


def _read_held(data: bytes) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]:
    """Return what a held chunk has: all of it, its choice and what that brings, if any."""
    if data.strip() == _DONE:
        return {}, None, {}
    fields = fields_of(data)
    choice = next((as_fields(item) for item in as_list(fields.get("choices"))), None)
    shown = choice or {}
    return fields, choice, as_fields(shown.get("delta") or shown.get("message"))
