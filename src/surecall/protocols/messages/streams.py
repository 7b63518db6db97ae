"""Streamed replies: bytes cut anywhere fold into the message a whole reply would carry.

A stream is complete when `message_stop` has come. Anything less is `STREAM_TRUNCATED`: an end is
never invented.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from surecall.errors import Code, JSONTextError, ProviderError
from surecall.jsontext import SSEEvent, SSEReader, decode, mend_surrogates
from surecall.protocols.base import RawReply, StreamDelta
from surecall.protocols.faults import check_body, parse_error_object
from surecall.protocols.refusals import MAX_SNIPPET, refuse_reply
from surecall.records import Defect, clip
from surecall.redaction import redact

from .block_drafts import BlockDrafts
from .replies import parse_body, raw_reply, repeated_keys

__all__ = ["MessagesStreamFolder"]

_DONE: Final = "[DONE]"
"""The end in another format, which some servers write as well; it says nothing here."""
_MARK: Final = b"\xef\xbb\xbf"
_BODY_STARTS: Final = b'{["<'
"""No line of an event stream begins so: the provider sent a plain body or a page."""
_MAX_PARTIAL_CHARS: Final = 20_000


class MessagesStreamFolder:
    """Folds one streamed reply; feed it every chunk, then close it."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> None:
        self._headers = headers or {}
        self._skips = skip_bad_events
        self._reader = SSEReader()
        self._head: bytes = b""
        self._is_sniffed = False
        self._body: list[bytes] | None = None
        self._done = False
        self._is_closing = False
        self._events = 0
        self._skipped = 0
        self._drafts = BlockDrafts()
        self._fields: dict[str, Any] = {"type": "message", "role": "assistant"}
        self._usage: dict[str, Any] = {}
        self._repeated: tuple[Defect, ...] = ()
        self._shown = _Shown()

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing more will come."""
        return self._done

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        if self._done:
            return []
        if not self._is_sniffed:
            chunk = self._sniff(chunk)
        if self._body is not None:
            self._body.append(chunk)
            return []
        for event in self._reader.feed(chunk):
            self._take_event(event)
            if self._done:
                break
        return self._shown.taken()

    def close(self) -> RawReply:
        """Return the reply.

        Raises:
            ProviderError: The stream ended before the reply did (`STREAM_TRUNCATED`, with the text
                so far in `body`), or what was sent is not a stream of a reply.
        """
        if self._body is not None:
            return parse_body(b"".join(self._body), self._headers)
        self._is_closing = True
        if not self._done:
            for event in self._reader.close():
                self._take_event(event)
        if not self._done:
            raise self._incomplete()
        fields = {**self._fields, "content": self._drafts.render(), "usage": self._usage}
        defects = (*self._drafts.defects, *self._repeated, *self._skipped_defects())
        return raw_reply(fields, defects)

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
        if self._done or not data or (data.startswith(_DONE) and data.strip() == _DONE):
            return
        self._events += 1
        try:
            value = _decoded(data)
        except JSONTextError as error:
            if event.event == "error":
                raise self._reported(data) from None
            self._refuse_event(data, error.message)
            return
        if not isinstance(value, dict):
            if event.event == "error":
                raise self._reported(value)
            self._refuse_event(data, "it is not a JSON object.")
            return
        fields = cast("dict[str, Any]", value)
        kind = fields.get("type") or event.event
        if kind == "error" or fields.get("error"):
            raise self._reported(fields)
        if kind == "message_stop":
            self._done = True
            self._shown.flush()
        elif kind == "content_block_start":
            self._begin_block(fields, data)
        elif kind == "content_block_delta":
            self._take_piece(fields, data)
        elif kind == "message_start":
            self._begin_message(fields, data)
        elif kind == "message_delta":
            self._take_fields(fields.get("delta"))
            self._take_usage(fields.get("usage"))

    def _begin_message(self, event: dict[str, Any], data: str) -> None:
        message: Any = event.get("message")
        if not isinstance(message, dict):
            self._refuse_event(data, "its message is not an object.")
            return
        fields = cast("dict[str, Any]", message)
        self._take_fields(fields)
        self._take_usage(fields.get("usage"))
        content: Any = fields.get("content")
        blocks = cast("list[Any]", content) if isinstance(content, list) else []
        for index, block in enumerate(blocks):
            self._begin_block({"index": index, "content_block": block}, data)

    def _begin_block(self, event: dict[str, Any], data: str) -> None:
        block: Any = event.get("content_block")
        if not isinstance(block, dict):
            self._refuse_event(data, "its content block is not an object.")
            return
        fields = cast("dict[str, Any]", block)
        draft = self._drafts.begin(event.get("index"), fields)
        if fields.get("input") and not self._repeated:
            self._repeated = repeated_keys(data)
        if draft.pieces:
            self._show(draft.field, draft.pieces[0])

    def _take_piece(self, event: dict[str, Any], data: str) -> None:
        delta: Any = event.get("delta")
        if not isinstance(delta, dict):
            self._refuse_event(data, "its delta is not an object.")
            return
        piece = self._drafts.take(event.get("index"), cast("dict[str, Any]", delta))
        if piece is not None:
            self._show(*piece)

    def _take_fields(self, fields: Any) -> None:
        if isinstance(fields, dict):
            items = cast("dict[str, Any]", fields).items()
            self._fields.update({key: value for key, value in items if value is not None})

    def _take_usage(self, usage: Any) -> None:
        """Add counts to those before: each is a total, and one that is left out still holds."""
        if isinstance(usage, dict):
            items = cast("dict[str, Any]", usage).items()
            self._usage.update({key: value for key, value in items if value is not None})

    def _show(self, field: str | None, text: str) -> None:
        if field == "text":
            self._shown.add("text", text)
        elif field == "thinking":
            self._shown.add("reasoning", text)

    def _refuse_event(self, data: str, why: str) -> None:
        if self._is_closing:  # the last event, cut short; the end decides whether it matters
            return
        if self._skips:
            self._skipped += 1
            return
        message = f"Event {self._events} of the stream cannot be read: {why}"
        snippet = clip(mend_surrogates(data), MAX_SNIPPET)
        raise refuse_reply(Code.UPSTREAM_BAD_EVENT, message, snippet)

    def _reported(self, value: Any) -> ProviderError:
        error = parse_error_object(value, 200, self._headers, fallback=Code.STREAM_ERROR)
        error.body = redact(self._partial()) or None
        return error

    def _incomplete(self) -> ProviderError:
        fault = None if self._is_sniffed else check_body(self._headers, self._head)
        if fault is not None:
            return fault
        state = f"{self._events} events and {self._drafts.calls_count} begun calls"
        message = f"The stream ended without message_stop after {state}."
        start = self._head.decode("utf-8", "replace") if not self._events else ""
        body = self._partial() or clip(start, MAX_SNIPPET)
        return refuse_reply(Code.STREAM_TRUNCATED, message, body)

    def _partial(self) -> str:
        return clip(self._drafts.text, _MAX_PARTIAL_CHARS)

    def _skipped_defects(self) -> tuple[Defect, ...]:
        if not self._skipped:
            return ()
        return (Defect(Code.UPSTREAM_BAD_EVENT, f"{self._skipped} events were passed over."),)


class _Shown:
    """What can be shown: half a character waits for its other half."""

    def __init__(self) -> None:
        self._deltas: list[StreamDelta] = []
        self._held: dict[Literal["text", "reasoning"], str] = {}

    def add(self, kind: Literal["text", "reasoning"], text: str) -> None:
        text = self._held.pop(kind, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held[kind] = text[-1]
            text = text[:-1]
        if text:
            self._deltas.append(StreamDelta(kind, mend_surrogates(text)))

    def flush(self) -> None:
        self._deltas += [StreamDelta(kind, "\ufffd") for kind in self._held]
        self._held.clear()

    def taken(self) -> list[StreamDelta]:
        deltas, self._deltas = self._deltas, []
        return deltas


def _decoded(data: str) -> Any:
    """Decode an event; halves of characters are kept in pieces only, which are joined later."""
    if "\\ud" not in data and "\\uD" not in data:
        return decode(data, surrogates="replace")
    kept: Any = decode(data, surrogates="keep")
    event = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
    delta: Any = event.get("delta")
    kind = cast("dict[str, Any]", delta).get("type") if isinstance(delta, dict) else None
    is_piece = kind in ("text_delta", "thinking_delta", "input_json_delta")
    return event if is_piece else decode(data, surrogates="replace")
