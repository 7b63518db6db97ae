"""Streamed replies: bytes cut anywhere fold into the output a whole reply would carry.

A stream is complete when the event that ends a response has been seen; anything less is
`STREAM_TRUNCATED`. That event carries the whole response, which wins over the pieces before it;
when the two differ, a defect says so. Nothing behind that event is read.
"""

from typing import Any, Final

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect
from surecall.text import SSEEvent, mend_surrogates_in
from surecall.wire.base import RawReply, StreamDelta
from surecall.wire.replies import refuse_reply
from surecall.wire.streams import EventFolder, may_have_halves

from .partial_output import PartialOutput, deltas_differ
from .replies import Output, find_repeated_keys, parse_body, parse_response

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


_BROKEN_OFF: Final = ("incomplete", "cancelled", "canceled")


class ResponsesStreamFolder(EventFolder):
    """Folds one streamed reply; feed it every chunk, then close it."""

    end_is = "the event that ends a response"
    parse_body = staticmethod(parse_body)

    def _begin(self) -> None:
        self._output = self._partial = PartialOutput(self._kept)
        self._sequence: int | None = None
        self._has_gap = False
        self._has_begun = False
        self._response: dict[str, Any] = {}

    def _take_fields(
        self, fields: dict[str, Any], event: SSEEvent, shown: list[StreamDelta]
    ) -> None:
        data = event.data
        if may_have_halves(data):
            self._output.has_halves = True
        kind = fields.get("type")
        if not isinstance(kind, str):
            kind = event.event
        if kind == "error" or fields.get("error"):
            raise self._read_error(fields)
        self._count(fields.get("sequence_number"))
        self._take(kind, fields, data, shown)

    def _render(self) -> RawReply:
        output, differing = self._final_output()
        if self._output:  # items were streamed, which only a response has
            self._response.setdefault("object", "response")
        defects = (*self._output.defects, *differing, *self._repeated)
        return parse_response(self._response, output, (*defects, *self._note_lost()))

    def _take(self, kind: str, fields: dict[str, Any], data: str, shown: list[StreamDelta]) -> None:
        if kind in _DELTAS:
            part, numbered_by = _DELTAS[kind]
            piece = fields.get("delta")
            if not isinstance(piece, str):
                self._refuse_event(data, "its delta is not text.")
                return
            self._output.add(_key(fields), part, _index(fields, numbered_by), piece, shown)
        elif kind in _WHOLES:
            part, numbered_by, name = _WHOLES[kind]
            text = fields.get(name)
            if isinstance(text, str):
                self._output.settle(_key(fields), part, _index(fields, numbered_by), text, shown)
        elif kind == "response.output_item.added":
            self._output.begin(_key(fields), as_fields(fields.get("item")), shown)
        elif kind == "response.output_item.done":
            item = as_fields(fields.get("item"))
            self._output.finish(_key(fields), item, shown)
            self._repeated = self._repeated or find_repeated_keys([item], data)
            if item.get("type") == "reasoning":
                shown.append(StreamDelta("reasoning", "", {"reasoning_items": self._mend([item])}))
        elif kind in _BEGINS:
            if kind == "response.created":
                if self._has_begun:
                    raise self._refuse_order("begins a second response")
                self._has_begun = True
            self._response = as_fields(fields.get("response")) or self._response
        elif kind == "response.failed" or kind in _ENDS:
            self._end(kind, as_fields(fields.get("response")), data, shown)

    def _end(
        self, kind: str, response: dict[str, Any], data: str, shown: list[StreamDelta]
    ) -> None:
        if kind == "response.failed" or response.get("status") == "failed" or response.get("error"):
            raise self._read_error({"error": response.get("error")})
        self._done = True
        begun = {key: self._response.get(key) for key in ("id", "model")}
        self._response = {**begun, **response}
        if response.get("status") not in _BROKEN_OFF:  # whichever of the two says less is believed
            self._response["status"] = _ENDS[kind]
        output = as_list(response.get("output"))
        self._repeated = self._repeated or find_repeated_keys(output, data)
        if output and not self._output:
            for index, item in enumerate(output):
                if isinstance(item, dict):
                    self._output.finish(index, as_fields(item), shown)
        self._output.flush(shown)
        whole = Output({"output": self._mend(output)})
        self._output.catch_up(whole.text or "", shown, is_refusal=whole.is_refusal)

    def _final_output(self) -> tuple[list[Any], list[Defect]]:
        """Return the items of the reply, and what the two tellings of it differ in."""
        stated = self._response.get("output")
        streamed = self._mend(self._output.render())
        if not isinstance(stated, list):
            if not streamed and self._response["status"] == "completed":
                message = "The stream ended without any output."
                raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)
            return streamed, []
        final = self._mend(as_list(stated))
        if not streamed:
            return final, []
        if not final:
            return streamed, [deltas_differ("output")]
        before, after = (Output({"output": items}).words for items in (streamed, final))
        known = self._output.defects
        differing = [deltas_differ(what) for what in after if after[what] != before[what]]
        return final, [defect for defect in differing if defect not in known]

    def _mend(self, items: list[Any]) -> list[Any]:
        return mend_surrogates_in(items) if self._output.has_halves else items

    def _count(self, number: Any) -> None:
        if type(number) is not int:
            return
        if self._sequence is not None and number > self._sequence + 1:
            self._has_gap = True
        self._sequence = number

    def _note_lost(self) -> tuple[Defect, ...]:
        """Tell of events that were passed over, or of a gap that nothing else filled."""
        skipped = self._skipped_defects()
        if skipped or not self._has_gap or self._response.get("output") or self._output.is_whole:
            return skipped
        return (Defect(Code.UPSTREAM_BAD_EVENT, "The numbers of the events have a gap."),)


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
