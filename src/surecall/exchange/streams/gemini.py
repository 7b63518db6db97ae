"""Streams of Gemini, each chunk a reply of its own that holds the next parts."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import RawCall, ToolCall, Usage
from surecall.exchange.thoughts import Split
from surecall.text import decoder_of
from surecall.wire.gemini.replies import parse_error_object, parse_usage

from .wire import (
    CALL,
    END,
    NOTHING,
    PASS,
    TEXT,
    THOUGHT,
    UNREADABLE,
    EventParts,
    Stated,
    Wire,
    event_of,
    fields_of,
    fields_or_none,
    is_there,
    same_event,
    value_of,
)

_HEAD: Final = ("modelVersion", "responseId", "createTime")
_CALL: Final = "functionCall"
_CALL_KEYS: Final = (_CALL, "function_call")


class _Call(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: Raw = NOTHING


class _Part(Struct, gc=False):
    text: str | None = None
    thought: bool | None = None
    functionCall: _Call | None = None  # noqa: N815 - the name on the wire
    function_call: Raw = NOTHING


class _Content(Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(Struct, gc=False):
    content: _Content | None = None
    finishReason: str | None = None  # noqa: N815 - the name on the wire
    finish_reason: Raw = NOTHING
    index: int = 0


class _Chunk(Struct, gc=False):
    candidates: list[_Candidate] | None = None
    usageMetadata: Raw = NOTHING  # noqa: N815 - the name on the wire
    modelVersion: str | None = None  # noqa: N815 - the name on the wire
    promptFeedback: Raw = NOTHING  # noqa: N815 - the name on the wire
    error: Raw = NOTHING


_decode: Final = decoder_of(_Chunk)


class GeminiWire(Wire):
    """The chunks of one reply, or of several at once."""

    parts_text = True

    def __init__(self, *args: Any, choices: int = 1) -> None:
        super().__init__(*args)
        self._expected = choices
        self._seen: set[int] = set()
        self._ended: set[int] = set()
        self._calls: list[_Call] = []
        self._usage: Raw = NOTHING

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return parse_usage(value_of(self._usage))

    @property
    def has_ended(self) -> bool:
        """Whether all replies came to their end."""
        return self.is_finished or (bool(self._ended) and self._ended >= self._seen)

    def calls(self) -> list[RawCall] | None:
        """Return the calls if nothing about them is odd; an id is not needed."""
        if self.is_odd:
            return None
        return [
            RawCall(call.id or f"{number}", call.name, bytes(call.args).decode() or "{}")
            for number, call in enumerate(self._calls)
        ]

    def _read_error(self, value: Any) -> ProviderError:
        """Return what an error event stands for; clients know it by how it begins."""
        error = as_fields(value).get("error")
        return super()._read_error({"error": error} if error else value)

    def _parse_error(self, value: Any) -> ProviderError:
        return parse_error_object(value, 200, self._headers, fallback=Code.STREAM_ERROR)

    def take(self, data: bytes, name: bytes) -> int:
        """Take the data of the next event, and return what it brought."""
        self.events += 1
        self.piece = ""
        if name == b"error":
            return self._take_unusual(data, name)
        try:
            chunk = _decode(data)
        except UNREADABLE:
            return self._take_unusual(data, name)
        if is_there(chunk.error):
            raise self._read_error(self._decode_whole(data))
        if is_there(chunk.usageMetadata):
            self._usage = chunk.usageMetadata
        self.model = chunk.modelVersion or self.model
        if not chunk.candidates:
            if is_there(chunk.promptFeedback):
                self._refuse_blocked(data)
                self.is_odd = True
                return CALL
            return END if self.is_finished else PASS
        return max([self._take_candidate(item) for item in chunk.candidates])

    def _refuse_blocked(self, data: bytes) -> None:
        """Raise why there is no answer, if the prompt was blocked: the chunk is all there is."""
        try:
            self.protocol.parse_body(data, self._headers)
        except ProviderError as error:
            if error.code == Code.PROMPT_BLOCKED:
                self.stated = Stated(error, data)
                raise

    def _take_candidate(self, candidate: _Candidate) -> int:
        if candidate.index and self._expected == 1:
            return PASS
        self._seen.add(candidate.index)
        kind = PASS
        for part in (candidate.content and candidate.content.parts) or ():
            if part.functionCall is not None:
                self.has_calls = True
                self._calls.append(part.functionCall)
                kind = CALL
            elif is_there(part.function_call):
                self.has_calls = self.is_odd = True
                kind = CALL
            elif part.text:
                if part.thought:
                    kind = max(kind, THOUGHT) if kind != TEXT else TEXT
                else:
                    self.piece += part.text
                    kind = kind if kind == CALL else TEXT
            else:
                continue
            if self.is_finished and kind != THOUGHT and not candidate.finishReason:
                self.is_odd = True
        if is_there(candidate.finish_reason):
            self.is_odd = True
            self._take_finish(str(value_of(candidate.finish_reason)), candidate.index)
        elif candidate.finishReason:
            self._take_finish(candidate.finishReason, candidate.index)
        return END if self.is_finished and kind != CALL else kind

    def _take_finish(self, finish: str, index: int) -> None:
        self.finish = self.finish or finish
        self._ended.add(index)
        self.is_finished = len(self._ended) >= self._expected

    def _take_odd(self, fields: dict[str, Any], data: bytes, name: bytes) -> int:
        if fields.get("error"):
            raise self._read_error(fields)
        kind = PASS
        for item in as_list(fields.get("candidates")):
            candidate = as_fields(item)
            for entry in as_list(as_fields(candidate.get("content")).get("parts")):
                part = as_fields(entry)
                if any(part.get(key) for key in _CALL_KEYS):
                    self.has_calls = self.is_odd = True
                    kind = CALL
                elif isinstance(text := part.get("text"), str) and not part.get("thought"):
                    self.piece += text
                    kind = max(kind, TEXT)
            if finish := candidate.get("finishReason") or candidate.get("finish_reason"):
                self.is_odd = True
                self._take_finish(str(finish), 0)
        return END if self.is_finished and kind != CALL else kind

    def part(self, data: bytes, split: Split) -> EventParts:
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
        thought = chunk({"text": split.thought, "thought": True})
        return EventParts(thought, chunk({"text": split.text}), rest)

    def pulse(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return a chunk with an empty text: the SDK takes one without any part for a fault."""
        return _write_empty(held, {})

    def stop(self, held: bytes, passed: Sequence[bytes]) -> bytes:
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
