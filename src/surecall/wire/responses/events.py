"""Streamed replies: bytes cut anywhere fold into the output a whole reply would carry.

A stream is complete when the event that ends a response has been seen; anything less is
`STREAM_TRUNCATED`. That event carries the whole response, which wins over the pieces before it;
when the two differ, a defect says so. Nothing behind that event is read.
"""

from typing import Any, Final

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Defect, Usage
from surecall.text import encode, mend_surrogates_in
from surecall.wire.events import (
    CALL,
    END,
    FRAME,
    PASS,
    PING,
    TEXT,
    Event,
    EventReader,
    may_have_halves,
)
from surecall.wire.records import RawReply, Stated, StreamDelta
from surecall.wire.replies import refuse_reply

from .partial_output import PartialOutput, deltas_differ
from .replies import (
    Output,
    check_roles,
    find_repeated_keys,
    parse_body,
    parse_response,
    parse_usage,
    read_finish,
)
from .writer import render_error

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


_CALL_TYPE: Final = "function_call"
CALL_ITEMS: Final = frozenset({_CALL_TYPE, "custom_tool_call"})
"""The types of items that are calls of tools which the client runs."""
_ARGUMENTS_DELTA: Final = "response.function_call_arguments.delta"
_ARGUMENTS_DONE: Final = "response.function_call_arguments.done"
_CALL_PIECES: Final = ("response.function_call_arguments.", "response.custom_tool_call_input.")
_BROKEN_OFF: Final = ("incomplete", "cancelled", "canceled")


class _Call:
    """A call of a function or of a custom tool, as far as it has arrived."""

    __slots__ = ("is_done", "name", "pieces")

    def __init__(self, item: dict[str, Any]) -> None:
        self.name = (item.get("call_id"), item.get("name"))
        self.pieces: list[str] = []
        self.is_done = False


class ResponsesReader(EventReader):
    """Reads one streamed reply."""

    end_is = "the event that ends a response"
    is_named = True
    parse_body = staticmethod(parse_body)

    def _begin(self) -> None:
        self._output = self._partial = PartialOutput(self._kept)
        self._has_gap = False
        self._has_begun = False
        self._response: dict[str, Any] = {}
        self._calls: dict[Any, _Call] = {}
        self._finish: str | None = None
        self.begun: dict[str, Any] = {}
        """The response as it was when it began."""
        self.items: list[tuple[Any, Any, dict[str, Any] | None]] = []
        """The events of items besides calls: their numbers, their places, and what is whole."""

    @property
    def finish(self) -> str | None:
        """Why the model stopped, in the words of the records."""
        return self._finish

    @property
    def model(self) -> str | None:
        """The model that answered."""
        return text_or_none(self._response.get("model"))

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return parse_usage(self._response.get("usage"))

    @property
    def reply_id(self) -> str | None:
        """The id of the reply, which its end has to name once more."""
        return text_or_none(self.begun.get("id"))

    def take(self, event: Event) -> int:
        """Take the next event, which has data, and return what it brought."""
        before = self.sequence
        try:
            return super().take(event)
        except ProviderError:
            self.sequence = before  # whatever takes its place has its number
            raise

    def _add_more(self, kind: int, place: Any, text: str, count: int) -> None:
        key, part, index = place
        if kind == CALL:
            self._calls[key].pieces.append(text)
        self._output.add(key, part, index, text, [])
        if self.sequence is not None:
            self.sequence += count

    def _take_fields(
        self, fields: dict[str, Any], event: Event, shown: list[StreamDelta]
    ) -> int | None:
        data = event.data
        if may_have_halves(data):
            self._output.has_halves = True
        kind = text_or_none(fields.get("type")) or event.name
        self._count(fields.get("sequence_number"))
        if kind == "error" or fields.get("error"):
            raise self._read_error(fields)
        if kind == "response.failed":
            raise self._read_failed(fields, data)
        self._take(kind, fields, data, shown)
        if kind.startswith(_CALL_PIECES):
            return self._look_at_piece(kind, fields)
        item = fields.get("item")
        if item.__class__ is dict:
            return self._look_at_item(kind, fields, as_fields(item))
        if kind in _ENDS:
            return END
        if not self.begun and fields.get("response"):
            self.begun = as_fields(fields["response"])
        if kind == "response.content_part.added" and not fields.get("output_index"):
            return FRAME if self.begins_with_text else PASS
        return PING if kind == "keepalive" else PASS

    def _look_at_piece(self, kind: str, fields: dict[str, Any]) -> int:
        """Find out whether clients understand a piece of a call as it is."""
        self.has_calls = True
        call = self._calls.get(_place(fields))
        if call is None or call.is_done:
            self.is_odd = True
        elif kind.endswith(".delta"):
            call.pieces.append(str(fields.get("delta")))
            place = _place(fields)
            if kind == _ARGUMENTS_DELTA and place is not None and not self._output.has_halves:
                self._more = CALL, (place, "arguments", 0), call.pieces[-1]
        elif kind == _ARGUMENTS_DONE and fields.get("arguments") != "".join(call.pieces):
            self.is_odd = True
        return CALL

    def _look_at_item(self, kind: str, fields: dict[str, Any], item: dict[str, Any]) -> int:
        """Do the same for an item, which begins or is whole."""
        place, type_ = _place(fields), item.get("type")
        is_done = kind == "response.output_item.done"
        if not (isinstance(type_, str) and type_ in CALL_ITEMS):
            if self._is_passed:
                number = fields.get("sequence_number")
                self.items.append((number, place, item if is_done else None))
            if place or type_ != "message":
                return PASS
            self.begins_with_text = True
            return PASS if is_done else FRAME
        self.has_calls = True
        call = self._calls.get(place)
        if not is_done:
            self.is_odd = self.is_odd or place is None or call is not None
            self.is_odd = self.is_odd or bool(item.get("arguments"))
            self._calls[place] = _Call(item)
        elif call is None:
            self.is_odd = True
        else:
            is_same = call.name == (item.get("call_id"), item.get("name"))
            is_whole = type_ != _CALL_TYPE or item.get("arguments") == "".join(call.pieces)
            self.is_odd = self.is_odd or not (is_same and is_whole)
            call.is_done = True
        return CALL

    def _look_at_end(self, stated: list[Any], status: Any) -> None:
        """Find out whether the end says the same calls once more, and that they are whole."""
        calls = [item for item in map(as_fields, stated) if str(item.get("type")) in CALL_ITEMS]
        names = [(item.get("call_id"), item.get("name")) for item in calls]
        texts = [item.get("arguments") for item in calls if item.get("type") == _CALL_TYPE]
        begun = list(self._calls.values())
        is_same = names == [call.name for call in begun]
        is_same = is_same and texts == self._output.arguments and all(it.is_done for it in begun)
        is_cut = status != "completed" or any(it.get("status") == "incomplete" for it in calls)
        self.has_calls = self.has_calls or bool(calls)
        if self.has_calls and (is_cut or not is_same):
            self.is_odd = True

    def _read_failed(self, fields: dict[str, Any], data: bytes) -> ProviderError:
        """Return what a failed response stands for, which goes on as it is."""
        response = as_fields(fields.get("response"))
        error = self._read_error({"error": response.get("error")})
        self._response = {**self._response, **response}
        if response:
            self.stated = Stated(error, data)
        return error

    def _state(self, error: ProviderError, value: Any) -> None:
        """Keep an error event as it is if clients know its form."""
        fields = as_fields(value)
        inner = as_fields(fields.get("error"))
        message = text_or_none(inner.get("message")) or text_or_none(fields.get("message"))
        if fields.get("type") == "error" and message:
            told = inner or {key: fields.get(key) for key in ("message", "param", "code")}
            usual = as_fields(render_error(error).body["error"])
            self.stated = Stated(error, encode(fields), encode({"error": {**usual, **told}}))

    def _render(self) -> RawReply:
        output, differing = self._final_output()
        if self._output:  # items were streamed, which only a response has
            self._response.setdefault("object", "response")
        if not self._is_passed:
            check_roles(output)
        defects = (*self._output.defects, *differing, *self._repeated)
        return parse_response(self._response, output, (*defects, *self._note_lost()))

    def _take(
        self, kind: str, fields: dict[str, Any], data: bytes, shown: list[StreamDelta]
    ) -> None:
        if kind in _DELTAS:
            self._add_delta(kind, fields, data, shown)
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
                if self._has_begun and not self._is_passed:
                    raise self._refuse_order("begins a second response")
                self._has_begun = True
            self._response = as_fields(fields.get("response")) or self._response
        elif kind in _ENDS:
            self._end(kind, as_fields(fields.get("response")), data, shown)

    def _add_delta(
        self, kind: str, fields: dict[str, Any], data: bytes, shown: list[StreamDelta]
    ) -> None:
        part, numbered_by = _DELTAS[kind]
        piece, key, index = fields.get("delta"), _key(fields), _index(fields, numbered_by)
        if not isinstance(piece, str):
            self._refuse_event(data, "its delta is not text.")
            return
        self._output.add(key, part, index, piece, shown)
        if part == "output_text" and not self._output.has_halves:
            self._more = TEXT, (key, part, index), piece

    def _end(
        self, kind: str, response: dict[str, Any], data: bytes, shown: list[StreamDelta]
    ) -> None:
        if response.get("status") == "failed" or response.get("error"):
            raise self._read_error({"error": response.get("error")})
        self.done = True
        status = response.get("status") or _ENDS[kind]
        begun = {key: self._response.get(key) for key in ("id", "model")}
        self._response = {**begun, **response}
        if response.get("status") not in _BROKEN_OFF:  # whichever of the two says less is believed
            self._response["status"] = _ENDS[kind]
        output = as_list(response.get("output"))
        self._finish = read_finish(self._response)
        self._look_at_end(output, status if kind == "response.completed" else "incomplete")
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
        if self.sequence is not None and number != self.sequence + 1:
            self.is_odd = True
            self._has_gap = self._has_gap or number > self.sequence + 1
        self.sequence = number

    def _note_lost(self) -> tuple[Defect, ...]:
        """Tell of events that were passed over, or of a gap that nothing else filled."""
        skipped = self._skipped_defects()
        if skipped or not self._has_gap or self._response.get("output") or self._output.is_whole:
            return skipped
        return (Defect(Code.UPSTREAM_BAD_EVENT, "The numbers of the events have a gap."),)


def _place(fields: dict[str, Any]) -> int | None:
    index = fields.get("output_index")
    return index if type(index) is int else None


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
