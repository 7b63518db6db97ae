"""Replies and errors as a server of the format answers them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from surecall.base.errors import SurecallError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import RawCall, Reply, ToolCall, Usage
from surecall.text import encode_text, render_event
from surecall.wire.call_ids import CallIds
from surecall.wire.events import event_of, fields_of, fields_or_none, same_event
from surecall.wire.records import WireError
from surecall.wire.rewriting import Begun, EventParts, EventRewriter
from surecall.wire.server import (
    error_reasons,
    error_text,
    finish_of,
    name_text,
    new_id,
    status_of,
)
from surecall.wire.substitutes import stand_in_object

from .bodies import GROUNDS
from .events import GeminiReader
from .parts import object_in, sign, wire_name
from .replies import FINISH_REASONS

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}


def render_reply(reply: Reply, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Render a reply as a whole body; a finish reason that the format has no word for is OTHER."""
    ids = CallIds()
    parts: list[dict[str, Any]] = []
    if reply.reasoning:
        parts.append({"text": reply.reasoning, "thought": True})
    signature = reply.extra.get("thought_signature")
    if reply.content or signature:
        parts.append(sign({"text": reply.content or ""}, signature))
    parts += [_render_call(call, ids) for call in reply.calls]
    chunk = _chunk(parts, reply.model or "", reply.id or new_id())
    return _add_finish(chunk, reply)


def render_error(error: SurecallError) -> WireError:
    """Render an error with the status and the shape that clients of the format know."""
    status = status_of(error)
    name = _STATUSES.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
    fields = {"code": status, "message": error_text(error), "status": name}
    return WireError(status, {"error": {**fields, **error_reasons(error)}})


class GeminiStreamWriter:
    """Writes one reply as chunks, each a reply of its own that holds the next piece."""

    def __init__(
        self,
        *,
        model: str,
        reply_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self._model = model
        self._id = reply_id or new_id()
        self._ids = CallIds()

    def begin(self) -> bytes:
        """Write nothing: the first chunk opens the reply."""
        return b""

    def text(self, text: str) -> bytes:
        """Write a piece of the text."""
        return self._event([{"text": text}]) if text else b""

    def refusal(self, text: str) -> bytes:
        """Write a piece of a refusal, which is text here; the finish reason says what it is."""
        return self.text(text)

    def reasoning(self, text: str, extra: Mapping[str, Any] | None = None) -> bytes:
        """Write a piece of the reasoning; signatures belong to what follows it."""
        return self._event([{"text": text, "thought": True}]) if text else b""

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        return self._event([_render_call(call, self._ids)])

    def pulse(self) -> bytes:
        """Write a chunk with an empty text: the SDK takes one without any part for a fault."""
        return self._event([{"text": ""}])

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        parts = [sign({"text": ""}, reply.extra.get("thought_signature"))]
        chunk = _add_finish(_chunk(parts, self._model, self._id), reply)
        return render_event(encode_text(chunk))

    def fail(self, error: SurecallError) -> bytes:
        """Break the reply off with an error; no end follows."""
        return render_event(encode_text(render_error(error).body))

    def _event(self, parts: list[dict[str, Any]]) -> bytes:
        return render_event(encode_text(_chunk(parts, self._model, self._id)))


def _chunk(parts: list[dict[str, Any]], model: str, reply_id: str) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {"candidates": [candidate], "modelVersion": model, "responseId": reply_id}


def _add_finish(chunk: dict[str, Any], reply: Reply) -> dict[str, Any]:
    reason = FINISH_REASONS.get(finish_of(reply), "OTHER")
    if reason == "STOP" and reply.is_refusal and not reply.calls:
        reason = FINISH_REASONS["content_filter"]
    chunk["candidates"][0]["finishReason"] = reason
    if reply.usage is not None:
        chunk["usageMetadata"] = _render_usage(reply.usage)
    return chunk


def _render_call(call: RawCall, ids: CallIds) -> dict[str, Any]:
    """Render a call; without an id its result is matched by the name and the order."""
    function: dict[str, Any] = {
        "name": wire_name(name_text(call)),
        "args": stand_in_object(call.arguments, object_in),
    }
    if isinstance(call.id, str) and call.id:
        function = {"id": ids.assign(call.id), **function}
    return sign({"functionCall": function}, call.extra.get("thought_signature"))


def _render_usage(usage: Usage) -> dict[str, Any]:
    counts = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": max(usage.output_tokens - usage.reasoning_tokens, 0),
        "totalTokenCount": usage.total_tokens,
    }
    if usage.reasoning_tokens:
        counts["thoughtsTokenCount"] = usage.reasoning_tokens
    if usage.cached_tokens:
        counts["cachedContentTokenCount"] = usage.cached_tokens
    return counts


_HEAD: Final = ("modelVersion", "responseId", "createTime")
_CALL: Final = "functionCall"
_CALL_KEYS: Final = (_CALL, "function_call")


class GeminiRewriter(EventRewriter[GeminiReader]):
    """Writes chunks among those of one reply."""

    parts_text = True
    render_error = staticmethod(render_error)

    def part(self, data: bytes, thought: str, text: str) -> EventParts:
        """Part a chunk whose text turned out to be reasoning, all of it or its beginning."""
        fields = fields_of(data)
        candidate, *others = as_list(fields.get("candidates"))
        candidate = as_fields(candidate)
        content = as_fields(candidate.get("content"))
        parts = [as_fields(part) for part in as_list(content.get("parts"))]
        kept = [part for part in parts if not part.get("text") or part.get("thought")]
        head = {key: value for key, value in fields.items() if key != "usageMetadata"}

        def chunk(part: dict[str, Any]) -> bytes:
            shown = {"content": {"role": "model", **content, "parts": [part]}, "index": 0}
            return event_of({**head, "candidates": [shown]}) if part["text"] else b""

        rest = b""
        if kept or candidate.get("finishReason") or candidate.get("finish_reason"):
            changed = {**candidate, "content": {"role": "model", **content, "parts": kept}}
            rest = event_of({**fields, "candidates": [changed, *others]})
        said = chunk({"text": thought, "thought": True})
        return EventParts(said, chunk({"text": text}), rest)

    def pulse(self, held: bytes) -> bytes:
        """Return a chunk with an empty text: the SDK takes one without any part for a fault."""
        return _write_empty(held, {})

    def stop(self, held: bytes) -> bytes:
        """Return the chunk that ends a reply."""
        return _write_empty(held, {"finishReason": "STOP"})

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
        begun: Begun | None = None,
    ) -> bytes:
        """Return the held chunks with these calls before the finish."""
        said = (text or "") + note
        written: list[bytes] = []
        is_written = False
        for data in held:
            fields = fields_of(data)
            candidates = as_list(fields.get("candidates"))
            candidate = as_fields(candidates[0]) if candidates else {}
            content = as_fields(candidate.get("content"))
            parts = [as_fields(part) for part in as_list(content.get("parts"))]
            kept = [part for part in parts if not _is_dropped(part, drops_text=text is not None)]
            finish = candidate.get("finishReason") or candidate.get("finish_reason")
            if len(kept) == len(parts) and (not finish or is_written):
                written.append(same_event(data))
                continue
            if finish and not is_written:
                is_written = True
                new = [{"text": said}] if said else []
                new += [_render_checked(call) for call in calls]
                kept = [part for part in kept if part.get("text") != ""] + new or kept
            if finish and finish != "STOP":
                candidate = {**candidate, "finishReason": "STOP"}
                candidate.pop("finish_reason", None)
                candidate.pop("finishMessage", None)
            if not kept and any(candidate.get(key) for key in GROUNDS):
                kept = [{"text": ""}]
            if kept or finish:
                changed = {**candidate, "content": {"role": "model", **content, "parts": kept}}
                written.append(event_of({**fields, "candidates": [changed, *candidates[1:]]}))
        return b"".join(written)


def _write_empty(held: bytes, finish: dict[str, str]) -> bytes:
    fields = fields_or_none(held)
    head = {key: fields[key] for key in _HEAD if key in fields}
    content = {"role": "model", "parts": [{"text": ""}]}
    return event_of({"candidates": [{"content": content, **finish, "index": 0}], **head})


def _is_dropped(part: dict[str, Any], *, drops_text: bool) -> bool:
    if any(key in part for key in _CALL_KEYS):
        return True
    return drops_text and bool(part.get("text")) and not part.get("thought")


def _render_checked(call: ToolCall) -> dict[str, Any]:
    function: dict[str, Any] = {"name": call.name, "args": call.arguments}
    if not call.id.startswith("tc_"):
        function = {"id": call.id, **function}
    part: dict[str, Any] = {_CALL: function}
    if signature := text_or_none(call.extra.get("thought_signature")):
        part["thoughtSignature"] = signature
    return part
