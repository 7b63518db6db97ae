"""Streamed replies: bytes cut anywhere fold into the message a whole reply would carry.

A stream is complete when a finish reason has been seen for its choice; `[DONE]` alone is no proof,
and its absence is no fault. Anything less is `STREAM_TRUNCATED`: a finish is never invented.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError, ProviderError
from surecall.jsontext import SSEEvent, SSEReader, decode, mend_surrogates
from surecall.protocols.base import RawReply, StreamDelta
from surecall.protocols.faults import check_body, parse_error_object
from surecall.protocols.refusals import MAX_SNIPPET, refuse_reply, text_or_none
from surecall.records import Defect, Usage, clip
from surecall.redaction import redact

from .message_draft import MessageDraft
from .replies import choices_ignored, parse_body, parse_usage, repeated_keys

__all__ = ["ChatStreamFolder"]

_DONE: Final = "[DONE]"
_MARK: Final = b"\xef\xbb\xbf"
_BODY_STARTS: Final = b'{["<'
"""No line of an event stream begins so: the provider sent a plain body or a page."""
_MAX_PARTIAL_CHARS: Final = 20_000


class ChatStreamFolder:
    """Folds one streamed reply; feed it every chunk, then close it."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> None:
        self._headers = headers or {}
        self._skips = skip_bad_events
        self._reader = SSEReader()
        self._draft = MessageDraft()
        self._head: bytes = b""
        self._is_sniffed = False
        self._body: list[bytes] | None = None
        self._done = False
        self._is_closing = False
        self._events = 0
        self._skipped = 0
        self._choice: int | None = None
        self._other_choices: set[int] = set()
        self._has_delta = False
        self._repeated: tuple[Defect, ...] = ()
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._model: str | None = None
        self._id: str | None = None

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing more will come."""
        return self._done

    @property
    def skipped_events(self) -> int:
        """How many malformed events were passed over."""
        return self._skipped

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        shown: list[StreamDelta] = []
        if self._done:
            return shown
        if not self._is_sniffed:
            chunk = self._sniff(chunk)
        if self._body is not None:
            self._body.append(chunk)
            return shown
        for event in self._reader.feed(chunk):
            self._take_event(event, shown)
            if self._done:
                break
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
        if not self._done:
            for event in self._reader.close():
                self._take_event(event, [])
        if self._finish is None:
            raise self._incomplete()
        message = self._draft.render()
        return RawReply(
            message=message,
            finish_reason=self._finish,
            usage=self._usage,
            model=self._model,
            id=self._id,
            defects=(
                *choices_ignored(len(self._other_choices)),
                *self._draft.defects,
                *self._repeated,
                *self._skipped_defects(),
            ),
        )

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

    def _take_event(self, event: SSEEvent, shown: list[StreamDelta]) -> None:
        data = event.data
        if self._done or not data:
            return
        if data.startswith(_DONE) and data.strip() == _DONE:
            self._done = True
            self._draft.flush(shown)
            return
        self._events += 1
        try:
            chunk = decode(data, surrogates="keep")
        except JSONTextError as error:
            if event.event == "error":
                raise self._reported(data) from None
            self._refuse_event(data, error.message)
            return
        if event.event == "error":
            raise self._reported(chunk)
        if not isinstance(chunk, dict):
            self._refuse_event(data, "it is not a JSON object.")
            return
        if "\\ud" in data or "\\uD" in data:
            self._draft.has_halves = True
        self._take_chunk(cast("dict[str, Any]", chunk), data, shown)
        if self._draft.calls.has_objects and not self._repeated:
            self._repeated = repeated_keys(data)

    def _take_chunk(self, chunk: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        if chunk.get("error") or chunk.get("object") == "error":
            raise self._reported(chunk)
        if self._id is None:
            self._id = text_or_none(chunk.get("id"))
        if self._model is None:
            self._model = text_or_none(chunk.get("model"))
        if chunk.get("usage"):
            self._usage = parse_usage(chunk["usage"]) or self._usage
        choices: Any = chunk.get("choices") or ()
        if not isinstance(choices, list | tuple):
            self._refuse_event(data, "its choices are not a list.")
            return
        for choice in cast("list[Any]", choices):
            if not isinstance(choice, dict):
                self._refuse_event(data, "a choice is not an object.")
                return
            self._take_choice(cast("dict[str, Any]", choice), shown)

    def _take_choice(self, choice: dict[str, Any], shown: list[StreamDelta]) -> None:
        index = choice.get("index")
        if type(index) is int:
            if self._choice is None:
                self._choice = index
            elif index != self._choice:
                self._other_choices.add(index)
                return
        if choice.get("error"):
            raise self._reported(choice)
        delta = choice.get("delta")
        if delta and isinstance(delta, dict):
            self._draft.take(cast("dict[str, Any]", delta), shown)
            self._has_delta = True
        elif isinstance(choice.get("message"), dict) and not (self._has_delta and self._draft):
            # After deltas, a message is the whole said once more.
            self._draft.take(choice["message"], shown)
        finish = text_or_none(choice.get("finish_reason"))
        if finish is not None:
            self._finish = finish
            self._draft.flush(shown)

    def _refuse_event(self, data: str, why: str) -> None:
        if self._is_closing:  # the last event, cut short; the finish decides whether it matters
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
        state = f"{self._events} events and {self._draft.calls_count} begun calls"
        message = f"The stream ended without a finish reason after {state}."
        start = self._head.decode("utf-8", "replace") if not self._events else ""
        body = self._partial() or clip(start, MAX_SNIPPET)
        return refuse_reply(Code.STREAM_TRUNCATED, message, body)

    def _partial(self) -> str:
        return clip(self._draft.text, _MAX_PARTIAL_CHARS)

    def _skipped_defects(self) -> tuple[Defect, ...]:
        if not self._skipped:
            return ()
        return (Defect(Code.UPSTREAM_BAD_EVENT, f"{self._skipped} events were passed over."),)
