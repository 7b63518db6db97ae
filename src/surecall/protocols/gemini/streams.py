"""Streamed replies: chunks cut anywhere fold into the content a whole reply would carry.

A stream is complete when a finish reason has been seen. Anything less is `STREAM_TRUNCATED`: a
finish is never invented. Without `alt=sse` the same chunks come as one JSON list, which is read
when it has ended.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from surecall.errors import Code, JSONTextError, ProviderError
from surecall.jsontext import SSEEvent, SSEReader, decode, mend_surrogates
from surecall.protocols.base import RawReply, StreamDelta
from surecall.protocols.faults import check_body
from surecall.protocols.refusals import MAX_SNIPPET, refuse_reply
from surecall.records import Defect, clip
from surecall.redaction import redact

from .faults import parse_error_object
from .members import as_dict, as_list
from .replies import ReplyFold, parse_body, repeated_keys

__all__ = ["GeminiStreamFolder"]

_MARK: Final = b"\xef\xbb\xbf"
_BODY_STARTS: Final = b'{["<'
"""No line of an event stream begins so: the provider sent a plain body or a page."""
_DONE: Final = "[DONE]"
"""The end in another format, which some servers write as well; it says nothing here."""
_MAX_PARTIAL_CHARS: Final = 20_000


class GeminiStreamFolder:
    """Folds one streamed reply; feed it every chunk, then close it."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> None:
        self._headers = headers or {}
        self._skips = skip_bad_events
        self._reader = SSEReader()
        self._fold = ReplyFold(self._headers)
        self._head: bytes = b""
        self._is_sniffed = False
        self._body: list[bytes] | None = None
        self._is_closing = False
        self._events = 0
        self._skipped = 0
        self._shown: list[StreamDelta] = []
        self._held: dict[Literal["text", "reasoning"], str] = {}

    @property
    def done(self) -> bool:
        """Always false: usage may still follow the finish, so only the end of the bytes is one."""
        return False

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        if not self._is_sniffed:
            chunk = self._sniff(chunk)
        if self._body is not None:
            self._body.append(chunk)
            return []
        for event in self._reader.feed(chunk):
            self._take_event(event)
        shown, self._shown = self._shown, []
        return shown

    def close(self) -> RawReply:
        """Return the reply.

        Raises:
            ProviderError: The stream ended before the reply did (`STREAM_TRUNCATED`, with the text
                so far in `body`), or what was sent is not a stream of a reply.
        """
        if self._body is not None:
            return parse_body(b"".join(self._body), self._headers)
        self._is_closing = True
        for event in self._reader.close():
            self._take_event(event)
        if self._fold.finish is None:
            raise self._incomplete()
        if self._skipped:
            note = f"{self._skipped} events were passed over."
            self._fold.defects += (Defect(Code.UPSTREAM_BAD_EVENT, note),)
        return self._fold.render()

    def _sniff(self, chunk: bytes) -> bytes:
        """Find out from the first bytes whether this is a stream of events at all."""
        chunk = self._head + chunk
        start = chunk.removeprefix(_MARK).lstrip()
        if not start or start == _MARK[: len(start)]:
            self._head = chunk
            return b""
        self._is_sniffed = True
        self._head = chunk[: 4 * MAX_SNIPPET]
        if start[0] in _BODY_STARTS:
            self._body = []
        return chunk

    def _take_event(self, event: SSEEvent) -> None:
        data = event.data
        if not data or data.strip() == _DONE:
            return
        self._events += 1
        try:
            chunk = _decoded(data)
        except JSONTextError as error:
            if event.event == "error":
                raise self._told(parse_error_object(data, 200, self._headers)) from None
            self._refuse_event(data, error.message)
            return
        if not isinstance(chunk, dict):
            self._refuse_event(data, "it is not a JSON object.")
            return
        calls = self._fold.parts.calls_count
        fields = as_dict(chunk)
        try:
            self._fold.take(fields, fallback=Code.STREAM_ERROR)
        except ProviderError as error:
            raise self._told(error) from None
        self._show()
        if self._fold.parts.calls_count > calls:
            self._fold.defects += repeated_keys(data)
        if self._fold.finish is not None:
            self._shown += [StreamDelta(kind, "\ufffd") for kind in self._held]
            self._held.clear()

    def _show(self) -> None:
        for kind, piece in self._fold.parts.taken():
            text = self._held.pop(kind, "") + piece
            if text and "\ud800" <= text[-1] <= "\udbff":
                self._held[kind] = text[-1]
                text = text[:-1]
            if text:
                self._shown.append(StreamDelta(kind, mend_surrogates(text)))

    def _refuse_event(self, data: str, why: str) -> None:
        if self._is_closing:  # the last event, cut short; the finish decides whether it matters
            return
        if self._skips:
            self._skipped += 1
            return
        message = f"Event {self._events} of the stream cannot be read: {why}"
        snippet = clip(mend_surrogates(data), MAX_SNIPPET)
        raise refuse_reply(Code.UPSTREAM_BAD_EVENT, message, snippet)

    def _told(self, error: ProviderError) -> ProviderError:
        error.body = redact(self._partial()) or error.body
        return error

    def _incomplete(self) -> ProviderError:
        fault = None if self._is_sniffed else check_body(self._headers, self._head)
        if fault is not None:
            return fault
        state = f"{self._events} events and {self._fold.parts.calls_count} calls"
        message = f"The stream ended without a finish reason after {state}."
        start = self._head.decode("utf-8", "replace") if not self._events else ""
        body = self._partial() or clip(start, MAX_SNIPPET)
        return refuse_reply(Code.STREAM_TRUNCATED, message, body)

    def _partial(self) -> str:
        return clip(self._fold.parts.text, _MAX_PARTIAL_CHARS)


def _decoded(data: str) -> Any:
    """Decode a chunk; halves of characters are kept in text only, which is joined later."""
    if "\\ud" not in data and "\\uD" not in data:
        return decode(data, surrogates="replace")
    kept: Any = decode(data, surrogates="keep")
    for candidate in as_list(as_dict(kept).get("candidates")):
        for part in as_list(as_dict(as_dict(candidate).get("content")).get("parts")):
            if not isinstance(as_dict(part).get("text"), str):
                return decode(data, surrogates="replace")
    return kept
