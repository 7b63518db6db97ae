"""Streamed replies: bytes cut anywhere fold into the output a whole reply would carry.

A stream is complete when the event that ends a response has been seen; anything less is
`STREAM_TRUNCATED`. That event carries the whole response, which wins over the pieces before it;
when the two differ, a defect says so.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError, ProviderError
from surecall.jsontext import SSEEvent, SSEReader, decode, mend_surrogates
from surecall.protocols.base import RawReply, StreamDelta
from surecall.protocols.faults import check_body, parse_error_object
from surecall.protocols.refusals import MAX_SNIPPET, refuse_reply
from surecall.records import Defect, clip
from surecall.redaction import redact

from .drafts import OutputDraft, deltas_differ
from .output import parse_output
from .replies import parse_body, parse_response, repeated_keys
from .shapes import as_fields, as_list

__all__ = ["ResponsesStreamFolder"]

_DONE: Final = "[DONE]"
_MARK: Final = b"\xef\xbb\xbf"
_BODY_STARTS: Final = b'{["<'
"""No line of an event stream begins so: the provider sent a plain body or a page."""
_MAX_PARTIAL_CHARS: Final = 20_000

_ENDS: Final = {"response.completed": "completed", "response.incomplete": "incomplete"}
_BEGINS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})

# Which part of an item an event is about, and the field that numbers the part.
_DELTAS: Final = {
    "response.function_call_arguments.delta": ("arguments", ""),
    "response.output_text.delta": ("output_text", "content_index"),
    "response.reasoning_summary_text.delta": ("summary_text", "summary_index"),
    "response.reasoning_text.delta": ("reasoning_text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
}
_WHOLES: Final = {
    "response.function_call_arguments.done": ("arguments", "", "arguments"),
    "response.output_text.done": ("output_text", "content_index", "text"),
    "response.reasoning_summary_text.done": ("summary_text", "summary_index", "text"),
    "response.reasoning_text.done": ("reasoning_text", "content_index", "text"),
    "response.refusal.done": ("refusal", "content_index", "refusal"),
}


class ResponsesStreamFolder:
    """Folds one streamed reply; feed it every chunk, then close it."""

    def __init__(
        self, headers: Mapping[str, str] | None = None, *, skip_bad_events: bool = False
    ) -> None:
        self._headers = headers or {}
        self._skips = skip_bad_events
        self._reader = SSEReader()
        self._draft = OutputDraft()
        self._head: bytes = b""
        self._is_sniffed = False
        self._body: list[bytes] | None = None
        self._is_closing = False
        self._has_ended = False
        self._events = 0
        self._skipped = 0
        self._sequence: int | None = None
        self._has_gap = False
        self._response: dict[str, Any] = {}
        self._repeated: tuple[Defect, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing more will come."""
        return self._has_ended

    def feed(self, chunk: bytes) -> list[StreamDelta]:
        """Take the next bytes, cut anywhere, and return what can be shown now."""
        shown: list[StreamDelta] = []
        if self._has_ended:
            return shown
        if not self._is_sniffed:
            chunk = self._sniff(chunk)
        if self._body is not None:
            self._body.append(chunk)
            return shown
        for event in self._reader.feed(chunk):
            self._take_event(event, shown)
            if self._has_ended:
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
        if not self._has_ended:
            for event in self._reader.close():
                self._take_event(event, [])
        if not self._has_ended:
            raise self._incomplete()
        output, differing = self._final_output()
        defects = (*self._draft.defects.values(), *differing, *self._repeated)
        return parse_response(self._response, output, (*defects, *self._lost()))

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
        if self._has_ended or not data or data.strip() == _DONE:
            return
        self._events += 1
        try:
            value = decode(data, surrogates="keep")
        except JSONTextError as error:
            if event.event == "error":
                raise self._reported(data) from None
            self._refuse_event(data, error.message)
            return
        if not isinstance(value, dict):
            self._refuse_event(data, "it is not a JSON object.")
            return
        if "\\ud" in data or "\\uD" in data:
            self._draft.has_halves = True
        fields = cast("dict[str, Any]", value)
        kind = fields.get("type")
        if not isinstance(kind, str):
            kind = event.event
        if kind == "error" or fields.get("error"):
            raise self._reported(fields)
        self._count(fields.get("sequence_number"))
        self._take(kind, fields, data, shown)

    def _take(self, kind: str, fields: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        if kind in _DELTAS:
            part, numbered_by = _DELTAS[kind]
            piece = fields.get("delta")
            if not isinstance(piece, str):
                self._refuse_event(data, "its delta is not text.")
                return
            self._draft.add(_key(fields), part, _index(fields, numbered_by), piece, shown)
        elif kind in _WHOLES:
            part, numbered_by, name = _WHOLES[kind]
            text = fields.get(name)
            if isinstance(text, str):
                self._draft.settle(_key(fields), part, _index(fields, numbered_by), text, shown)
        elif kind == "response.output_item.added":
            self._draft.begin(_key(fields), as_fields(fields.get("item")), shown)
        elif kind == "response.output_item.done":
            item = as_fields(fields.get("item"))
            self._draft.finish(_key(fields), item, shown)
            self._repeated = self._repeated or repeated_keys([item], data)
        elif kind in _BEGINS:
            self._response = as_fields(fields.get("response")) or self._response
        elif kind == "response.failed" or kind in _ENDS:
            self._end(kind, as_fields(fields.get("response")), data, shown)

    def _end(
        self, kind: str, response: dict[str, Any], data: str, shown: list[StreamDelta]
    ) -> None:
        if kind == "response.failed" or response.get("status") == "failed" or response.get("error"):
            raise self._reported({"error": response.get("error")})
        self._has_ended = True
        begun = {key: self._response.get(key) for key in ("id", "model")}
        self._response = {**begun, **response}
        if response.get("status") != "incomplete":  # whichever of the two says less is believed
            self._response["status"] = _ENDS[kind]
        output = as_list(response.get("output"))
        self._repeated = self._repeated or repeated_keys(output, data)
        if output and not self._draft:
            for index, item in enumerate(output):
                if isinstance(item, dict):
                    self._draft.finish(index, as_fields(item), shown)
        self._draft.flush(shown)
        self._draft.catch_up(parse_output({"output": self._mended(output)}).text or "", shown)

    def _final_output(self) -> tuple[list[Any], list[Defect]]:
        """Return the items of the reply, and what the two tellings of it differ in."""
        told = self._response.get("output")
        streamed = self._mended(self._draft.render())
        if not isinstance(told, list):
            if not streamed and self._response["status"] == "completed":
                message = "The stream ended without any output."
                raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)
            return streamed, []
        final = self._mended(as_list(told))
        if not streamed:
            return final, []
        if not final:
            return streamed, [deltas_differ("output")]
        before, after = (parse_output({"output": items}).words for items in (streamed, final))
        known = self._draft.defects.values()
        differing = [deltas_differ(what) for what in after if after[what] != before[what]]
        return final, [defect for defect in differing if defect not in known]

    def _mended(self, items: list[Any]) -> list[Any]:
        return _mend(items) if self._draft.has_halves else items

    def _count(self, number: Any) -> None:
        if type(number) is not int:
            return
        if self._sequence is not None and number > self._sequence + 1:
            self._has_gap = True
        self._sequence = number

    def _lost(self) -> tuple[Defect, ...]:
        """Tell of events that were passed over, or of a gap that nothing else filled."""
        if self._skipped:
            note = f"{self._skipped} events were passed over."
        elif self._has_gap and not self._response.get("output") and not self._draft.is_whole:
            note = "The numbers of the events have a gap."
        else:
            return ()
        return (Defect(Code.UPSTREAM_BAD_EVENT, note),)

    def _refuse_event(self, data: str, why: str) -> None:
        if self._is_closing:  # the last event, cut short; it cannot be the one that ends the reply
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
        message = f"The stream ended without the event that ends a response, after {state}."
        start = self._head.decode("utf-8", "replace") if not self._events else ""
        body = self._partial() or clip(start, MAX_SNIPPET)
        return refuse_reply(Code.STREAM_TRUNCATED, message, body)

    def _partial(self) -> str:
        return clip(self._draft.text, _MAX_PARTIAL_CHARS)


def _key(fields: dict[str, Any]) -> Any:
    """Return what tells the item of an event from others."""
    index = fields.get("output_index")
    if type(index) is int:
        return index
    item_id = fields.get("item_id") or as_fields(fields.get("item")).get("id")
    return item_id if isinstance(item_id, str) else None


def _index(fields: dict[str, Any], name: str) -> int:
    index = fields.get(name)
    return index if type(index) is int else 0


def _mend(value: Any) -> Any:
    """Mend every text in a JSON value; the codec bounds how deep one event can nest."""
    if isinstance(value, str):
        return mend_surrogates(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {mend_surrogates(key): _mend(item) for key, item in items}
    if isinstance(value, list):
        return [_mend(item) for item in cast("list[Any]", value)]
    return value
