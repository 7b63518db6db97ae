"""Streamed replies: chunks cut anywhere fold into the content a whole reply would carry.

A stream is complete when a finish reason has been seen. Anything less is `STREAM_TRUNCATED`: a
finish is never invented. No call may follow it, and text only where its chunk says the finish
again. Without `alt=sse` the same chunks come as one JSON list, which is read when it has ended.
"""

from typing import Any, Final

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.text import decode
from surecall.wire.events import CALL, END, PASS, TEXT, Event, EventReader, may_have_halves
from surecall.wire.partial_reply import HeldHalves
from surecall.wire.records import RawReply, Stated, StreamDelta

from .parts import member
from .replies import ReplyFold, find_repeated_keys, parse_body, parse_error_object

_ODD_NAMES: Final = (b'"function_call"', b'"finish_reason"')
"""Members in the other spelling, which clients do not look for."""


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
        self._seen: set[Any] = set()
        self._ended: set[Any] = set()

    def _add_more(self, kind: int, place: Any, text: str) -> None:
        self._fold.parts.add_text(text)

    def _take_fields(
        self, fields: dict[str, Any], event: Event, shown: list[StreamDelta]
    ) -> int | None:
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
        finally:
            fold = self._fold
            self.finish, self.model, self.usage = fold.finish, fold.model, fold.usage
        new = parts.take_new()
        for kind, piece in new:
            self._halves.show(kind, piece, shown)
        self.is_odd = self.is_odd or any(name in event.data for name in _ODD_NAMES)
        if self._choices > 1:
            self._note_ends(fields)
        if self.finish is not None:
            self._halves.flush(shown)
        if parts.calls_count > calls:
            self.has_calls = True
            self._repeated = self._repeated or find_repeated_keys(event.data)
            return CALL
        if not fields.get("candidates") and member(fields, "promptFeedback"):
            self.has_calls = self.is_odd = True
            return CALL
        if self._is_finished():
            return END
        if len(new) == 1 and not (self.is_several or self._halves.are_held):
            self._look_for_more(fields, new[0][1])
        return PASS

    def _look_for_more(self, chunk: dict[str, Any], text: str) -> None:
        """Note the text of a chunk that brings nothing else."""
        candidates = as_list(chunk.get("candidates"))
        content = as_fields(as_fields(candidates[0]).get("content"))
        if len(candidates) == 1 and content.get("parts") == [{"text": text}]:
            self._more = TEXT, 0, text

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
        return self.finish is not None

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
        return self.finish is not None

    def _render(self) -> RawReply:
        self._fold.defects += (*self._repeated, *self._skipped_defects())
        return self._fold.render()
