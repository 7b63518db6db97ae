"""Streamed replies: bytes cut anywhere fold into the output a whole reply would carry.

A stream is complete when the event that ends a response has been seen; anything less is
`STREAM_TRUNCATED`. That event carries the whole response, which wins over the pieces before it;
when the two differ, a defect says so. Nothing behind that event is read.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Defect
from surecall.text import encode, repair_surrogates, repair_surrogates_in
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
from surecall.wire.partial_reply import HeldHalves, Kept, KeptText, Noted
from surecall.wire.records import RawReply, Stated, StreamDelta
from surecall.wire.replies import refuse_reply

from .replies import (
    REASONING_BREAK,
    Output,
    check_roles,
    find_repeated_keys,
    parse_body,
    parse_response,
    parse_usage,
    read_finish,
)
from .writer import render_error

_Kind: TypeAlias = Literal["text", "reasoning"]
_Place: TypeAlias = tuple[str, int]

# The pieces of an item: the part they belong to, and the field of the item that holds the parts.
_PLACES: Final = {
    "output_text": "content",
    "refusal": "content",
    "reasoning_text": "content",
    "summary_text": "summary",
}
_WHAT: Final = {"arguments": "calls", "output_text": "text", "refusal": "text"}
_ITEM_TYPES: Final = {
    "arguments": "function_call",
    "output_text": "message",
    "reasoning_text": "reasoning",
    "refusal": "message",
    "summary_text": "reasoning",
}


def deltas_differ(what: str) -> Defect:
    """Return the finding that one thing was said twice, in different words."""
    note = f"The {what} at the end of the stream differs from what was streamed before."
    return Defect(Code.DELTAS_DIFFER, note, "/output")


class _PartialItem:
    """One item as far as it has arrived."""

    __slots__ = ("is_begun", "is_whole", "item", "key", "texts")

    def __init__(self, key: Any, item_type: Any) -> None:
        self.key = key
        self.item: dict[str, Any] = {"type": item_type if isinstance(item_type, str) else ""}
        self.is_begun = False
        self.is_whole = False
        self.texts: dict[_Place, KeptText] = {}

    def render(self) -> dict[str, Any]:
        """Return the item as a whole reply would carry it."""
        if self.is_whole:
            return self.item
        parts: dict[str, Any] = {}
        for (kind, _), kept in sorted(self.texts.items(), key=lambda entry: entry[0][1]):
            text = str(kept)
            if kind == "arguments":
                parts["arguments"] = text
            else:
                part = {"type": kind, "refusal" if kind == "refusal" else "text": text}
                parts.setdefault(_PLACES[kind], []).append(part)
        return {**self.item, **parts}


class PartialOutput(Noted):
    """The output as far as it has arrived."""

    place = "/output"

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept)
        self.has_halves = False
        """Whether halves of surrogate pairs may be among the pieces."""
        self._items: list[_PartialItem] = []
        self._by_key: dict[Any, _PartialItem] = {}
        self._by_item: dict[Any, _PartialItem] = {}
        self._has_words = False
        self._halves = HeldHalves()
        self._last_thought: Any = None
        self._shown_text = KeptText(kept)

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def text(self) -> str:
        """The text shown so far."""
        return repair_surrogates(str(self._shown_text))

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return sum(partial.item.get("type") == "function_call" for partial in self._items)

    @property
    def arguments(self) -> list[str]:
        """The arguments of the calls as they were streamed."""
        items = (partial.render() for partial in self._items)
        return [item.get("arguments", "") for item in items if item.get("type") == "function_call"]

    @property
    def is_whole(self) -> bool:
        """Whether every item was also sent whole."""
        return all(partial.is_whole for partial in self._items)

    def begin(self, key: Any, item: dict[str, Any], shown: list[StreamDelta]) -> None:
        """Take an item that has just begun; what it brings along are its first pieces."""
        partial = None if key is None else self._by_item.get(_identity(key, item))
        if partial is not None:  # begun once more: only what comes from now on counts
            partial.texts = {}
            self._note_index()
        else:
            partial = self._by_key.get(key)
            if key is None or partial is None or partial.is_begun:
                partial = self._open(key, item.get("type"))
        partial.is_begun = True
        self._kept.add_value(item)
        self._by_item[_identity(key, item)] = partial
        empty: dict[str, Any] = {place: [] for place in _PLACES.values() if place in item}
        partial.item = {**partial.item, **item, **empty}
        for kind, index, text in _texts(item):
            self._add(partial, (kind, index), text, shown)

    def add(self, key: Any, kind: str, index: int, piece: str, shown: list[StreamDelta]) -> None:
        """Take the next piece of a part."""
        self._add(self._find(key, _ITEM_TYPES[kind]), (kind, index), piece, shown)

    def replace(self, key: Any, kind: str, index: int, text: str, shown: list[StreamDelta]) -> None:
        """Take a part that is said once more as a whole, which wins over its pieces."""
        self._replace(self._find(key, _ITEM_TYPES[kind]), (kind, index), text, shown)

    def finish(self, key: Any, item: dict[str, Any], shown: list[StreamDelta]) -> None:
        """Take an item that is said once more as a whole, which wins over its pieces."""
        identity = _identity(key, item)
        partial = self._by_item.get(identity) or self._find(key, item.get("type"))
        if partial.is_whole and identity not in self._by_item:
            partial = self._open(key, item.get("type"))
        self._by_item[identity] = partial
        said = list(_texts(item))
        for kind in dict.fromkeys(kind for kind, _, _ in said):
            texts = [(index, text) for of, index, text in said if of == kind]
            streamed = sorted(index for of, index in partial.texts if of == kind)
            if len(streamed) != len(texts):
                streamed = [index for index, _ in texts]
            for index, (_, text) in zip(streamed, texts, strict=True):  # numbered in their own way
                self._replace(partial, (kind, index), text, shown)
        self._kept.add_value(item)
        partial.item = {**partial.item, **item}
        partial.is_begun = partial.is_whole = True

    def flush(self, shown: list[StreamDelta]) -> None:
        """Show what was held back, now that its other half cannot come any more."""
        if "text" in self._halves.flush(shown):
            self._shown_text.append("\ufffd")

    def catch_up(self, text: str, shown: list[StreamDelta], *, is_refusal: bool = False) -> None:
        """Show what the whole text has beyond what was shown."""
        so_far = self.text
        if len(text) > len(so_far) and text.startswith(so_far):
            shown.append(StreamDelta("text", text[len(so_far) :], is_refusal=is_refusal))

    def render(self) -> list[dict[str, Any]]:
        """Return the items as a whole reply would carry them."""
        partials = self._items
        if all(isinstance(partial.key, int) for partial in partials):
            partials = sorted(partials, key=lambda partial: partial.key)
        return [partial.render() for partial in partials]

    def _find(self, key: Any, item_type: Any) -> _PartialItem:
        """Return the partial of an item; without a usable key, that of the last one."""
        if key is None:
            self._note_index()
            key = self._items[-1].key if self._items else None
        return self._by_key.get(key) or self._open(key, item_type)

    def _open(self, key: Any, item_type: Any) -> _PartialItem:
        """Begin a partial; an item under a key that is taken is one more, not the same."""
        if key is None or key in self._by_key:
            self._note_index()
        self._kept.add_part(key)
        partial = _PartialItem(key, item_type)
        self._items.append(partial)
        self._by_key[key] = partial
        return partial

    def _add(
        self, partial: _PartialItem, place: _Place, text: str, shown: list[StreamDelta]
    ) -> None:
        self._text(partial, place).append(text)
        self._show(partial, place, text, shown)

    def _replace(
        self, partial: _PartialItem, place: _Place, text: str, shown: list[StreamDelta]
    ) -> None:
        so_far = str(partial.texts.get(place, ""))
        if place in partial.texts:
            if text == so_far:
                return
            partial.texts[place] = KeptText(self._kept)
        self._text(partial, place).append(text)
        if so_far:
            what = _WHAT.get(place[0], "reasoning")
            self._defects[f"{Code.DELTAS_DIFFER} {what}"] = deltas_differ(what)
        if text.startswith(so_far):
            self._show(partial, place, text[len(so_far) :], shown)

    def _text(self, partial: _PartialItem, place: _Place) -> KeptText:
        text = partial.texts.get(place)
        if text is None:
            self._kept.add_part()
            text = partial.texts[place] = KeptText(self._kept)
        return text

    def _note_index(self) -> None:
        note = "The events do not say clearly which items they are about."
        self._note(Code.INDEX_NOT_USABLE, note)

    def _show(
        self, partial: _PartialItem, place: _Place, text: str, shown: list[StreamDelta]
    ) -> None:
        part_kind = place[0]
        if part_kind == "arguments" or not text or (part_kind == "refusal" and self._has_words):
            return
        self._has_words = self._has_words or part_kind == "output_text"
        kind: _Kind = "text" if part_kind in {"output_text", "refusal"} else "reasoning"
        if kind == "reasoning":
            if self._last_thought not in {None, (partial, place)}:
                shown.append(StreamDelta(kind, REASONING_BREAK))
            self._last_thought = (partial, place)
        text = self._halves.show(kind, text, shown, is_refusal=part_kind == "refusal")
        if kind == "text":
            self._shown_text.append(text)


def _texts(item: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """Yield the texts that an item carries: kind, number of the part, words."""
    for field in ("summary", "content"):
        for index, part in enumerate(as_list(item.get(field))):
            fields = as_fields(part)
            kind = fields.get("type")
            text = fields.get("refusal" if kind == "refusal" else "text")
            if isinstance(kind, str) and _PLACES.get(kind) == field and isinstance(text, str):
                yield kind, index, text
    arguments = item.get("arguments")
    if item.get("type") == "function_call" and isinstance(arguments, str):
        yield "arguments", 0, arguments


def _identity(key: Any, item: dict[str, Any]) -> tuple[Any, str]:
    """Return what tells an item from others under the same key, which should be unique."""
    name = item.get("call_id") or item.get("id")
    return key, name if isinstance(name, str) else ""


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
        self.begun: dict[str, Any] = {}
        """The response as it was when it began."""
        self.items: list[tuple[Any, Any, dict[str, Any] | None]] = []
        """The events of items besides calls: their numbers, their places, and what is whole."""

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

    def _add_more(self, kind: int, place: Any, text: str) -> None:
        key, part, index = place
        if kind == CALL:
            self._calls[key].pieces.append(text)
        self._output.add(key, part, index, text, [])

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
        self._note_response({**self._response, **response})
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
                self._output.replace(_key(fields), part, _index(fields, numbered_by), text, shown)
        elif kind == "response.output_item.added":
            self._output.begin(_key(fields), as_fields(fields.get("item")), shown)
        elif kind == "response.output_item.done":
            item = as_fields(fields.get("item"))
            self._output.finish(_key(fields), item, shown)
            self._repeated = self._repeated or find_repeated_keys([item], data)
            if item.get("type") == "reasoning":
                shown.append(StreamDelta("reasoning", "", {"reasoning_items": self._whole([item])}))
        elif kind in _BEGINS:
            if kind == "response.created":
                if self._has_begun and not self._is_passed:
                    raise self._refuse_order("begins a second response")
                self._has_begun = True
            self._note_response(as_fields(fields.get("response")) or self._response)
        elif kind in _ENDS:
            self._end(kind, as_fields(fields.get("response")), data, shown)

    def _note_response(self, response: dict[str, Any]) -> None:
        self._response = response
        self.model = text_or_none(response.get("model"))
        self.usage = parse_usage(response.get("usage"))

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
        self._note_response({**begun, **response})
        if response.get("status") not in _BROKEN_OFF:  # whichever of the two says less is believed
            self._response["status"] = _ENDS[kind]
        output = as_list(response.get("output"))
        self.finish = read_finish(self._response)
        self._look_at_end(output, status if kind == "response.completed" else "incomplete")
        self._repeated = self._repeated or find_repeated_keys(output, data)
        if output and not self._output:
            for index, item in enumerate(output):
                if isinstance(item, dict):
                    self._output.finish(index, as_fields(item), shown)
        self._output.flush(shown)
        whole = Output({"output": self._whole(output)})
        self._output.catch_up(whole.text or "", shown, is_refusal=whole.is_refusal)

    def _final_output(self) -> tuple[list[Any], list[Defect]]:
        """Return the items of the reply, and what the two tellings of it differ in."""
        stated = self._response.get("output")
        streamed = self._whole(self._output.render())
        if not isinstance(stated, list):
            if not streamed and self._response["status"] == "completed":
                message = "The stream ended without any output."
                raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)
            return streamed, []
        final = self._whole(as_list(stated))
        if not streamed:
            return final, []
        if not final:
            return streamed, [deltas_differ("output")]
        before, after = (Output({"output": items}).words for items in (streamed, final))
        known = self._output.defects
        differing = [deltas_differ(what) for what in after if after[what] != before[what]]
        return final, [defect for defect in differing if defect not in known]

    def _whole(self, items: list[Any]) -> list[Any]:
        return repair_surrogates_in(items) if self._output.has_halves else items

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
