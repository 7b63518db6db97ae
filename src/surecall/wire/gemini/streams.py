"""Streamed replies: chunks cut anywhere fold into the content a whole reply would carry.

A stream is complete when a finish reason has been seen. Anything less is `STREAM_TRUNCATED`: a
finish is never invented. No call may follow it, and text only where its chunk says the finish
again. Without `alt=sse` the same chunks come as one JSON list, which is read when it has ended.
"""

from typing import Any

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.text import SSEEvent, decode
from surecall.wire.base import RawReply, StreamDelta
from surecall.wire.streams import EventFolder, HeldHalves, may_have_halves

from .replies import ReplyFold, find_repeated_keys, parse_body, parse_error_object


class GeminiStreamFolder(EventFolder):
    """Folds one streamed reply; feed it every chunk, then close it.

    It is never done before the bytes end: usage may still follow the finish.
    """

    parse_body = staticmethod(parse_body)
    parse_error = staticmethod(parse_error_object)

    def _begin(self) -> None:
        self._fold = ReplyFold(self._headers, self._kept)
        self._partial = self._fold.parts
        self._halves = HeldHalves()

    def _take_fields(
        self, fields: dict[str, Any], event: SSEEvent, shown: list[StreamDelta]
    ) -> None:
        parts = self._fold.parts
        calls = parts.calls_count
        try:
            self._fold.take(fields, fallback=Code.STREAM_ERROR)
        except ProviderError as error:
            error.body = self._text_so_far() or error.body
            raise error from None
        for kind, piece in parts.take_new():
            self._halves.show(kind, piece, shown)
        if parts.calls_count > calls and not self._repeated:
            self._repeated = find_repeated_keys(event.data)
        if self._fold.finish is not None:
            self._halves.flush(shown)

    def _decode(self, data: str) -> Any:
        """Decode a chunk; halves of characters are kept in text only, which is joined later."""
        if may_have_halves(data):
            kept: Any = decode(data, surrogates="keep")
            candidates = as_list(as_fields(kept).get("candidates"))
            contents = [as_fields(as_fields(item).get("content")) for item in candidates]
            parts = [part for content in contents for part in as_list(content.get("parts"))]
            if all(isinstance(as_fields(part).get("text"), str) for part in parts):
                return kept
        return decode(data, surrogates="replace")

    def _has_ended(self) -> bool:
        return self._fold.finish is not None

    def _render(self) -> RawReply:
        self._fold.defects += (*self._repeated, *self._skipped_defects())
        return self._fold.render()
