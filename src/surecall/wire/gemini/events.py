"""Streamed replies: chunks cut anywhere fold into the content a whole reply would carry.

A stream is complete when a finish reason has been seen. Anything less is `STREAM_TRUNCATED`: a
finish is never invented. No call may follow it, and text only where its chunk says the finish
again. Without `alt=sse` the same chunks come as one JSON list, which is read when it has ended.
"""

from typing import Any, Final, Literal

from msgspec import Raw, Struct

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Usage
from surecall.text import decode, decoder_of
from surecall.wire.events import CALL, END, PASS, TEXT, Event, EventReader, may_have_halves
from surecall.wire.kept import HeldHalves
from surecall.wire.records import RawReply, Stated, StreamDelta
from surecall.wire.replies import decode_finite

from .names import member
from .replies import ReplyFold, find_repeated_keys, parse_body, parse_error_object, parse_usage

_ODD_NAMES: Final = (b'"function_call"', b'"finish_reason"')
"""Members in the other spelling, which clients do not look for."""


class _Part(Struct, gc=False, forbid_unknown_fields=True):
    text: str
    thought: Literal[True] | None = None


class _Content(Struct, gc=False):
    parts: tuple[_Part]
    role: Literal["model"] | None = None
    tool_calls: None = None


class _Candidate(Struct, gc=False):
    content: _Content
    index: Literal[0] = 0
    finishReason: None = None  # noqa: N815 - the name on the wire
    finish_reason: None = None


class _More(Struct, gc=False):
    """A chunk that only goes on with a text or a thought."""

    candidates: tuple[_Candidate]
    usageMetadata: Raw = Raw()  # noqa: N815 - the name on the wire
    usage_metadata: None = None
    error: None = None


_decode_more: Final = decoder_of(_More)


class GeminiReader(EventReader):
    """Reads one streamed reply; it is never done before the bytes end: usage may still follow."""

    has_choices = True
    parse_body = staticmethod(parse_body)
    parse_error = staticmethod(parse_error_object)
    takes_comments = False

    def _begin(self) -> None:
        self._fold = ReplyFold(self._headers, self._kept)
        self._partial = self._fold.parts
        self._halves = HeldHalves()
        self._late_usage = b""
        """The last figures that were not read yet."""
        self._seen: set[Any] = set()
        self._ended: set[Any] = set()

    @property
    def finish(self) -> str | None:
        """Why the model stopped, in the words of the records."""
        return self._fold.finish

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return self._fold.model

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        if self._late_usage:
            self._fold.usage = parse_usage(decode_finite(self._late_usage)) or self._fold.usage
            self._late_usage = b""
        return self._fold.usage

    def _goes_on(self) -> bool:
        fold = self._fold
        is_one = fold.index == 0 and self._choices == 1 and fold.finish is None
        return is_one and not self._halves.are_held

    def _read_usual(self, data: bytes) -> tuple[int, int, str] | None:
        chunk = _decode_more(data)
        part = chunk.candidates[0].content.parts[0]
        if len(chunk.usageMetadata):
            self._late_usage = bytes(chunk.usageMetadata)
        return (PASS if part.thought else TEXT), 0, part.text

    def _add_usual(self, kind: int, place: Any, text: str, count: int) -> bool:
        self._fold.parts.add_text(text, is_thought=kind == PASS)
        return True

    def _take_fields(
        self, fields: dict[str, Any], event: Event, shown: list[StreamDelta]
    ) -> int | None:
        if self._late_usage and member(fields, "usageMetadata"):
            self._late_usage = b""
        if fields.get("error"):
            raise self._read_error(fields)
        parts = self._fold.parts
        calls = parts.calls_count
        try:
            self._fold.take(fields, fallback=Code.STREAM_ERROR)
        except ProviderError as error:
            if error.code == Code.PROMPT_BLOCKED:
                self.stated = Stated(error, event.data)
            error.body = self._text_so_far() or error.body
            raise error from None
        for kind, piece in parts.take_new():
            self._halves.show(kind, piece, shown)
        self.is_odd = (
            self.is_odd or b'"function_call"' in event.data or b'"finish_reason"' in event.data
        )
        if self._choices > 1:
            self._note_ends(fields)
        if self._fold.finish is not None:
            self._halves.flush(shown)
        if parts.calls_count > calls:
            self.has_calls = True
            self._repeated = self._repeated or find_repeated_keys(event.data)
            return CALL
        if not fields.get("candidates") and member(fields, "promptFeedback"):
            self.has_calls = self.is_odd = True
            return CALL
        return END if self._is_finished() else PASS

    def _note_ends(self, chunk: dict[str, Any]) -> None:
        """Note which of several replies have come to their end."""
        for item in as_list(chunk.get("candidates")):
            candidate = as_fields(item)
            index = candidate.get("index")
            index = index if type(index) is int else 0
            self._seen.add(index)
            if member(candidate, "finishReason"):
                self._ended.add(index)

    def _is_finished(self) -> bool:
        if self._choices > 1:
            return len(self._ended) >= self._choices
        return self._fold.finish is not None

    def _state(self, error: ProviderError, value: Any) -> None:
        """Keep an error event; clients know it by how it begins."""
        stated = as_fields(value).get("error")
        super()._state(error, {"error": stated} if stated else value)

    def _decode(self, data: bytes | str) -> Any:
        """Decode a chunk; halves of characters are kept in text only, which is joined later."""
        if isinstance(data, bytes) and may_have_halves(data):
            kept: Any = decode(data, surrogates="keep")
            candidates = as_list(as_fields(kept).get("candidates"))
            contents = [as_fields(as_fields(item).get("content")) for item in candidates]
            parts = [part for content in contents for part in as_list(content.get("parts"))]
            if all(isinstance(as_fields(part).get("text"), str) for part in parts):
                return kept
        return decode(data, surrogates="replace")

    def _has_ended(self) -> bool:
        if self._choices > 1:
            return bool(self._ended) and self._ended >= self._seen
        return self._fold.finish is not None

    def _render(self) -> RawReply:
        self._fold.usage = self.usage
        self._fold.defects += (*self._repeated, *self._skipped_defects())
        return self._fold.render()
