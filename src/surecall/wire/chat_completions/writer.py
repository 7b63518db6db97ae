"""Replies and errors as a server of the format answers them."""

from collections.abc import Mapping
from time import time
from typing import Any, Final

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.json_values import as_fields
from surecall.base.records import RawCall, Reply, Usage
from surecall.text import encode_text, render_event
from surecall.wire.call_ids import CallIds
from surecall.wire.records import WireError
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
