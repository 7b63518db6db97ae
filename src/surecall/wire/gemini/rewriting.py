"""Chunks that are held back, written again."""

from collections.abc import Sequence
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import ToolCall
from surecall.wire.events import event_of, fields_of, fields_or_none, same_event
from surecall.wire.rewriting import EventParts, EventRewriter

from .events import GeminiReader
from .writer import render_error

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
                new += [_render_call(call) for call in calls]
                kept = [part for part in kept if part.get("text") != ""] + new or kept
            if finish and finish != "STOP":
                candidate = {**candidate, "finishReason": "STOP"}
                candidate.pop("finish_reason", None)
                candidate.pop("finishMessage", None)
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


def _render_call(call: ToolCall) -> dict[str, Any]:
    function: dict[str, Any] = {"name": call.name, "args": call.arguments}
    if not call.id.startswith("tc_"):
        function = {"id": call.id, **function}
    part: dict[str, Any] = {_CALL: function}
    if signature := text_or_none(call.extra.get("thought_signature")):
        part["thoughtSignature"] = signature
    return part
