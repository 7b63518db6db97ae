"""Held chunks of a chat completion, written once more with other calls."""

from collections.abc import Sequence
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolCall
from surecall.exchange.documents import is_function
from surecall.text import encode_text

from .wire import event_of, fields_of, same_event

CALL_KEYS: Final = ("tool_calls", "function_call")
TEXT_KEYS: Final = ("content", "refusal")
_DONE: Final = b"[DONE]"


class ChatRewriting:
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
        dropped = [key for key in CALL_KEYS if key in delta]
        if self._text is not None:
            dropped += [key for key in TEXT_KEYS if delta.get(key)]
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
