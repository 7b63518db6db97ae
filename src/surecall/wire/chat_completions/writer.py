"""Replies and errors as a server of the format answers them."""

from collections.abc import Mapping, Sequence
from time import time
from typing import Any, Final

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import RawCall, Reply, ToolCall, Usage
from surecall.text import encode_text, render_event
from surecall.wire.call_ids import CallIds
from surecall.wire.events import event_of, fields_of, fields_or_none, same_event
from surecall.wire.records import WireError
from surecall.wire.rewriting import Begun, CallPiece, EventParts, EventRewriter
from surecall.wire.server import (
    ERROR_TYPES,
    PAUSED_FINISH,
    arguments_text,
    error_reasons,
    error_text,
    finish_of,
    name_text,
    new_id,
    status_of,
)

from .events import ChatReader
from .replies import is_function

_DONE: Final = render_event("[DONE]")
_REASONING_KEY: Final = "reasoning_content"
_REASONING_KEYS: Final = frozenset({_REASONING_KEY, "reasoning", "thinking"})


def render_reply(reply: Reply, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Render a reply as a whole completion.

    What a client is to send back, such as signed thoughts, goes along as extra fields of the
    message.
    """
    ids = CallIds(seed=reply.id or "")
    text, refusal = (None, reply.content) if reply.is_refusal else (reply.content, None)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if reply.reasoning:
        message[_REASONING_KEY] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_render_call(call, ids) for call in reply.calls]
    for key, value in _echo_extra(reply).items():
        message.setdefault(key, value)
    body: dict[str, Any] = {
        "id": reply.id or new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time()),
        "model": reply.model or "",
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": _render_finish(reply),
            }
        ],
    }
    if reply.usage is not None:
        body["usage"] = _render_usage(reply.usage)
    return body


def render_error(error: SurecallError) -> WireError:
    """Render an error with the status and the shape that clients of the format know."""
    status = status_of(error)
    kind = "server_error" if status >= 500 else "invalid_request_error"
    code = error.provider_code if isinstance(error, ProviderError) else None
    fields = {
        "message": error_text(error),
        "type": ERROR_TYPES.get(status, kind),
        "param": None,
        "code": code or error.code,
        **error_reasons(error),
    }
    return WireError(status, {"error": fields})


class ChatStreamWriter:
    """Writes one reply as completion chunks.

    Usage goes into a last chunk without a choice, and only where the client asked for it.
    """

    def __init__(
        self,
        *,
        model: str,
        reply_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self._head: dict[str, Any] = {
            "id": reply_id or new_id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": int(time()),
            "model": model,
        }
        self._ids = CallIds(seed=reply_id or "")
        self._calls = 0
        asked = request or {}
        options = as_fields(asked.get("stream_options"))
        self._is_legacy = bool(asked.get("functions")) and not asked.get("tools")
        """Whether the client looks for a call in `function_call`."""
        self._tells_usage = request is None or options.get("include_usage") is True

    def begin(self) -> bytes:
        """Open the reply."""
        return self._chunk({"role": "assistant", "content": None, "refusal": None})

    def text(self, text: str) -> bytes:
        """Write a piece of the text."""
        return self._chunk({"content": text}) if text else b""

    def refusal(self, text: str) -> bytes:
        """Write a piece of a refusal."""
        return self._chunk({"refusal": text}) if text else b""

    def reasoning(self, text: str, extra: Mapping[str, Any] | None = None) -> bytes:
        """Write a piece of the reasoning; what is to be sent back goes along with the end."""
        return self._chunk({_REASONING_KEY: text}) if text else b""

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        if self._is_legacy:
            function = {"name": name_text(call), "arguments": arguments_text(call)}
            return self._chunk({"function_call": function})
        entry = {"index": self._calls, **_render_call(call, self._ids)}
        self._calls += 1
        return self._chunk({"tool_calls": [entry]})

    def pulse(self) -> bytes:
        """Write a chunk with an empty text; some SDKs drop one without any."""
        return self._chunk({"content": ""})

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        finish = _render_finish(reply, wrote_calls=self._calls > 0)
        if self._is_legacy and finish == "tool_calls":
            finish = "function_call"
        written = self._chunk(_echo_extra(reply), finish)
        if self._tells_usage and reply.usage is not None:
            usage = _render_usage(reply.usage)
            chunk: dict[str, Any] = {**self._head, "choices": [], "usage": usage}
            written += render_event(encode_text(chunk))
        return written + _DONE

    def fail(self, error: SurecallError) -> bytes:
        """Break the reply off with an error event; no end follows."""
        return render_event(encode_text(render_error(error).body))

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._tells_usage:
            chunk["usage"] = None
        return render_event(encode_text(chunk))


def _render_call(call: RawCall, ids: CallIds) -> dict[str, Any]:
    """Render a call; a client needs an id and text, also where the model gave neither."""
    function = {"name": name_text(call), "arguments": arguments_text(call)}
    wire = {"id": ids.assign_to(call), "type": "function", "function": function}
    return wire | call.extra | wire


def _render_finish(reply: Reply, *, wrote_calls: bool = False) -> str:
    """Render a finish reason; a turn that was paused has ended as far as clients can see."""
    if reply.finish_reason == PAUSED_FINISH:
        return "tool_calls" if reply.calls or wrote_calls else "stop"
    return finish_of(reply, wrote_calls=wrote_calls)


def _echo_extra(reply: Reply) -> dict[str, Any]:
    """Return what goes along besides text, calls and the reasoning that is written already."""
    return {
        key: value
        for key, value in reply.extra.items()
        if not (reply.reasoning and key in _REASONING_KEYS)
    }


def _render_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


_CALL_KEYS: Final = ("tool_calls", "function_call")
_TEXT_KEYS: Final = ("content", "refusal")
_FUNCTION_KEYS: Final = frozenset({"arguments", "name"})
_ENTRY_KEYS: Final = frozenset({"function", "id", "index", "type"})
_DONE_DATA: Final = b"[DONE]"
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
        return self._write_chunk(held, {}, "stop") + same_event(_DONE_DATA)

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
        begun: Begun | None = None,
    ) -> bytes:
        """Return the held chunks with these calls before the finish."""
        reader = self._reader
        count = sum(data.strip() != _DONE_DATA for data in held)
        lacks_role = not reader.role_at or reader.role_at > reader.events - count
        rewriting = _Rewriting(
            held,
            calls,
            text,
            note,
            index=reader.choice or 0,
            lacks_role=lacks_role,
            is_legacy=reader.is_legacy,
            begun=begun,
        )
        return rewriting.write()

    def read_piece(self, fields: dict[str, Any]) -> CallPiece | None:
        """Return what a chunk brings of the first call, if that is all it brings."""
        choices = as_list(fields.get("choices"))
        choice = as_fields(choices[0]) if len(choices) == 1 else {}
        delta = as_fields(choice.get("delta"))
        entries = as_list(delta.get("tool_calls"))
        entry = as_fields(entries[0]) if len(entries) == 1 else {}
        function = as_fields(entry.get("function"))
        stated = {key for key, value in delta.items() if value}
        named = {key: value for key, value in entry.items() if value not in (None, "")}
        is_usual = stated <= {"role", "tool_calls"} and function.keys() <= _FUNCTION_KEYS
        if not is_usual or not named.keys() <= _ENTRY_KEYS or choice.get("finish_reason"):
            return None
        name, text = function.get("name") or "", function.get("arguments") or ""
        call_id = named.get("id", "")
        if not all(isinstance(value, str) for value in (name, text, call_id)):
            return None
        if entry.get("index") != 0 or named.get("type", "function") != "function":
            return None
        return CallPiece(0, text, name, call_id, entry if "type" in named else None)


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
        begun: A call whose beginning was passed on.
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
        begun: Begun | None,
    ) -> None:
        self._begun = begun
        self._chunks = [(data, _read_held(data)) for data in held]
        self._calls = calls
        self._text = text
        self._index = index
        self._note = note
        self._field = "function_call" if is_legacy else "tool_calls"
        named = (delta["role"] for _, (_, _, delta) in self._chunks if "role" in delta)
        self._role: Any = next(named, None) if lacks_role else None
        """The role, as long as the client has not read it; clients join what comes twice."""
        self._others: dict[str, int] = {} if begun is None else {repr(begun.place): begun.place}
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
            if (number := _number_of(entry)) in self._others and not self._has_begun(number)
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
        if (begun := self._begun) is not None and begun.rest:
            entry = {"index": begun.place, "function": {"arguments": begun.rest}}
            self._send(head, place, {self._field: [entry]})
        if said := (self._text or "") + self._note:
            self._send(head, place, {"content": said})
        for number, call in enumerate(self._calls, len(self._others)):
            function = {"name": call.name, "arguments": encode_text(call.arguments)}
            if self._field == "function_call":
                self._send(head, place, {self._field: function})
                continue
            entry = {"index": number, "id": call.id, "type": "function", "function": function}
            self._send(head, place, {self._field: [entry | call.extra | entry]})

    def _has_begun(self, number: str) -> bool:
        return self._begun is not None and number == repr(self._begun.place)

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
    if data.strip() == _DONE_DATA:
        return {}, None, {}
    fields = fields_of(data)
    choice = next((as_fields(item) for item in as_list(fields.get("choices"))), None)
    shown = choice or {}
    return fields, choice, as_fields(shown.get("delta") or shown.get("message"))
