"""Events of a response that are held back, written again, with new numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from surecall.base.errors import SurecallError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import ToolCall
from surecall.text import encode_text
from surecall.wire.events import EventCutter, event_of, fields_of, fields_or_none, same_event
from surecall.wire.rewriting import Begun, CallPiece, EventRewriter

from .events import ResponsesReader
from .writer import render_error

_CALL_TYPE: Final = "function_call"
_ARGUMENTS: Final = "response.function_call_arguments."
_ITEM_KEYS: Final = frozenset({"arguments", "call_id", "id", "name", "status", "type"})
_ENDS: Final = ("response.completed", "response.incomplete")


class ResponsesRewriter(EventRewriter[ResponsesReader]):
    """Writes events among those of one response."""

    render_error = staticmethod(render_error)

    def fail(self, error: SurecallError, held: bytes | None) -> bytes:
        """Return an error event and a failed response, or only that; nothing follows."""
        reader = self._reader
        number = -1 if reader.sequence is None else reader.sequence
        if held is not None and type(known := fields_of(held).get("sequence_number")) is int:
            number = known - 1
        stated = reader.stated
        own = stated if stated is not None and error is stated.error else None
        body = None if own is None else own.body
        if own is not None and body is None:
            is_first = reader.sequence is None and held is None
            return _number_event(own.data, None if is_first else number + 1)
        answer = self.render_error(error)
        told = as_fields((answer.body if body is None else fields_of(body))["error"])
        message = told.get("message")
        code = "rate_limit_exceeded" if answer.status == 429 else "server_error"
        response = {
            **reader.begun,
            "status": "failed",
            "error": {"code": code, "message": message},
        }
        failed = {"code": told.get("code"), "message": message, "param": None, "error": told}
        if own is not None:
            failed = fields_of(own.data)
        written = _write_event("error", number + 1, failed)
        return written + _write_event("response.failed", number + 2, {"response": response})

    def pulse(self, held: bytes) -> bytes:
        """Return an empty piece of the open text, or else the response as it is now."""
        fields = fields_or_none(held)
        kind, number = fields.get("type"), fields.get("sequence_number")
        reader = self._reader
        if not reader.begun or kind == "response.created":
            return b""
        if kind == "response.output_text.delta":
            return event_of({**fields, "delta": ""}, kind)
        if str(kind).startswith(_ARGUMENTS):  # whose item has begun
            names = ("item_id", "output_index", "sequence_number")
            empty = {name: fields[name] for name in names if name in fields}
            empty |= {"type": f"{_ARGUMENTS}delta", "delta": ""}
            return event_of(empty, f"{_ARGUMENTS}delta")
        items = _items_in(reader, number)
        shown: dict[str, Any] = {} if number is None else {"sequence_number": number}
        if any(item is None for item in items.values()):  # which the client has in pieces only
            return event_of({"type": "keepalive", **shown}, "keepalive")
        shown["response"] = {**reader.begun, "output": [items[place] for place in sorted(items)]}
        return event_of({"type": "response.in_progress", **shown}, "response.in_progress")

    def stop(self, held: bytes) -> bytes:
        """Return the event that ends a response, with all items that came to their end."""
        reader = self._reader
        items = _items_in(reader, fields_or_none(held).get("sequence_number"))
        output = [item for _, item in sorted(items.items()) if item is not None]
        number = 0 if reader.sequence is None else reader.sequence + 1
        response = {**reader.begun, "status": "completed", "output": output}
        return _write_event(_ENDS[0], number, {"response": response})

    def shift(self, data: bytes, count: int) -> bytes:
        """Return events with their numbers raised."""
        cutter = EventCutter()
        written: list[bytes] = []
        for event in cutter.feed(data):
            fields = fields_or_none(event.data) if event.data else {}
            number = fields.get("sequence_number")
            if type(number) is int:
                fields = {**fields, "sequence_number": number + count}
                written.append(event_of(fields, event.name))
            else:
                written.append(event.raw)
        return b"".join(written) + cutter.close().raw

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
        begun: Begun | None = None,
    ) -> bytes:
        """Return the held events with these calls before the end, all of them numbered anew."""
        return _Rewriting(held, calls, text, self._is_other, note, begun).write()

    def read_piece(self, fields: dict[str, Any]) -> CallPiece | None:
        """Return what an event brings of a call, if it begins the item of one or goes on."""
        place, kind = fields.get("output_index"), fields.get("type")
        if type(place) is not int:
            return None
        if kind == f"{_ARGUMENTS}delta":
            text = fields.get("delta")
            return CallPiece(place, text) if isinstance(text, str) else None
        item = as_fields(fields.get("item"))
        name, call_id = item.get("name"), item.get("call_id")
        if kind != "response.output_item.added" or item.get("type") != _CALL_TYPE:
            return None
        if item.get("arguments") not in (None, "") or not item.keys() <= _ITEM_KEYS:
            return None
        if not isinstance(name, str) or not isinstance(call_id, str):
            return None
        return CallPiece(place, "", name, call_id, item)


def _items_in(reader: ResponsesReader, number: Any) -> dict[int, dict[str, Any] | None]:
    """Return the items before the event of a number, by their places; nothing for open ones."""
    items: dict[int, dict[str, Any] | None] = {}
    for own, place, item in reader.items:
        is_before = type(own) is not int or type(number) is not int or own < number
        if type(place) is int and is_before:
            items[place] = item
    return items


def _write_event(kind: str, number: int, fields: dict[str, Any]) -> bytes:
    head = {"type": kind, "sequence_number": number}
    return event_of(head | fields | head, kind)


def _number_event(data: bytes, number: int | None) -> bytes:
    """Return an event with a number, if it has one and is not the first."""
    fields = fields_of(data)
    name = text_or_none(fields.get("type")) or "response.failed"
    if number is None or fields.get("sequence_number") in (None, number):
        return same_event(data, name)
    return event_of({**fields, "sequence_number": number}, name)


class _Rewriting:
    """Writes held events of one response once more, with other calls and new numbers.

    Args:
        held: The data of the events.
        calls: The calls that the client gets.
        text: What comes in the place of the held text; `None` leaves it as it is.
        is_other: Tells which calls are not those of functions, and stay.
        note: What comes behind all text.
        begun: A call whose beginning was passed on.
    """

    def __init__(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        is_other: Callable[[Any, Mapping[str, Any]], bool],
        note: str = "",
        begun: Begun | None = None,
    ) -> None:
        self._note = note
        self._begun = begun
        self._is_other = is_other
        self._events = [fields_of(data) for data in held]
        self._calls = calls
        self._text = text
        numbers = [item.get("sequence_number") for item in self._events]
        self._number = next((number for number in numbers if type(number) is int), 0)
        self._places: dict[Any, int | None] = {}
        self._items: dict[Any, dict[str, Any]] = {}
        """Items of calls, by their places: their ids are used again."""
        self._others: set[Any] = set()
        """The places of calls of tools that are not functions."""
        for event in self._events:
            item, place = as_fields(event.get("item")), event.get("output_index")
            if self._is_own(item):
                self._items[place] = item
            elif item.get("type") == _CALL_TYPE:
                self._others.add(place)
        places = [event["output_index"] for event in self._events if _has_place(event)]
        self._next = min(places, default=0)
        if begun is not None:
            self._places[begun.place], self._next = begun.place, begun.place + 1
        self._texts: dict[Any, str] = {}
        self._written: list[bytes] = []

    def write(self) -> bytes:
        """Return the events."""
        self._find_texts()
        begun = [] if self._begun is None else [self._go_on(self._begun)]
        for event in self._events:
            kind = str(event.get("type"))
            if kind in _ENDS:
                said = (self._text or "") + self._note
                written = [*begun, self._write_text(said)] if said else begun
                written += [self._write_call(call) for call in self._calls]
                self._end(event, kind, written)
            elif not self._is_call(event, kind):
                self._keep(event, kind)
        return b"".join(self._written)

    def _is_call(self, event: dict[str, Any], kind: str) -> bool:
        if self._begun is not None and event.get("output_index") == self._begun.place:
            return True
        if kind.startswith(_ARGUMENTS):
            return event.get("output_index") not in self._others
        return self._is_own(as_fields(event.get("item")))

    def _is_own(self, item: dict[str, Any]) -> bool:
        """Tell whether an item is the call of a function."""
        is_call = item.get("type") == _CALL_TYPE
        return is_call and not self._is_other(item.get("name"), item)

    def _find_texts(self) -> None:
        """Find what the parts of the text are without the calls that were in it."""
        if self._text is None:
            return
        deltas: dict[Any, list[str]] = {}
        wholes: dict[Any, str] = {}
        for event in self._events:
            key = (event.get("output_index"), event.get("content_index"))
            if event.get("type") == "response.output_text.delta":
                deltas.setdefault(key, []).append(str(event.get("delta")))
            elif event.get("type") == "response.output_text.done":
                wholes[key] = str(event.get("text"))
        rest = self._text
        for key, whole in wholes.items():
            held = "".join(deltas.get(key, ()))
            before = whole.removesuffix(held)  # what was passed on
            self._texts[key] = before + rest
            rest = ""

    def _keep(self, event: dict[str, Any], kind: str) -> None:
        key = (event.get("output_index"), event.get("content_index"))
        if kind == "response.output_text.delta" and self._text is not None:
            if not self._text:
                return
            event, self._text = {**event, "delta": self._text}, ""
        elif kind == "response.output_text.done" and key in self._texts:
            event = {**event, "text": self._texts[key]}
        elif kind == "response.content_part.done" and key in self._texts:
            event = {**event, "part": {**as_fields(event.get("part")), "text": self._texts[key]}}
        elif kind == "response.output_item.done":
            item = self._repair_item(as_fields(event.get("item")), event.get("output_index"))
            event = {**event, "item": item}
        if _has_place(event):
            event = {**event, "output_index": self._place(event["output_index"])}
        self._send(event, kind)

    def _place(self, index: Any) -> int:
        place = self._places.get(index)
        if place is None:
            place = self._places[index] = self._next
            self._next += 1
        return place

    def _repair_item(self, item: dict[str, Any], index: Any) -> dict[str, Any]:
        content = [
            {**as_fields(part), "text": self._texts[index, number]}
            if (index, number) in self._texts
            else part
            for number, part in enumerate(as_list(item.get("content")))
        ]
        return {**item, "content": content} if content else item

    def _write_text(self, text: str) -> dict[str, Any]:
        """Write an item for text that no held item has a place for."""
        item_id = f"msg_{self._number}"
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": item_id, "role": "assistant"}
        index = self._next
        self._next += 1
        place = {"item_id": item_id, "output_index": index, "content_index": 0}
        begun: dict[str, Any] = {**item, "status": "in_progress", "content": []}
        whole = {**part, "text": text}
        item |= {"status": "completed", "content": [whole]}
        self._send({"output_index": index, "item": begun}, "response.output_item.added")
        self._send({**place, "part": part}, "response.content_part.added")
        self._send({**place, "delta": text}, "response.output_text.delta")
        self._send({**place, "text": text}, "response.output_text.done")
        self._send({**place, "part": whole}, "response.content_part.done")
        self._send({"output_index": index, "item": item}, "response.output_item.done")
        return item

    def _write_call(self, call: ToolCall) -> dict[str, Any]:
        known = next(
            (item for item in self._items.values() if item.get("call_id") == call.id), None
        )
        item_id = text_or_none(as_fields(known).get("id")) or f"fc_{call.id}"
        arguments = encode_text(call.arguments)
        item: dict[str, Any] = {
            "type": _CALL_TYPE,
            "id": item_id,
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments,
            "status": "completed",
        }
        item = item | call.extra | item
        index = self._next
        self._next += 1
        begun = {**item, "arguments": "", "status": "in_progress"}
        self._send({"output_index": index, "item": begun}, "response.output_item.added")
        return self._go_on(Begun(index, item, arguments, arguments))

    def _go_on(self, call: Begun) -> dict[str, Any]:
        """Write the rest of a call that has begun."""
        arguments, index = call.arguments, call.place
        item = {**call.item, "arguments": arguments, "status": "completed"}
        place = {"item_id": text_or_none(item.get("id")) or "", "output_index": index}
        if call.rest:
            self._send({**place, "delta": call.rest}, f"{_ARGUMENTS}delta")
        self._send({**place, "arguments": arguments}, f"{_ARGUMENTS}done")
        self._send({"output_index": index, "item": item}, "response.output_item.done")
        return item

    def _end(self, event: dict[str, Any], kind: str, calls: list[dict[str, Any]]) -> None:
        response = as_fields(event.get("response"))
        output: list[Any] = []
        for index, item in enumerate(as_list(response.get("output"))):
            if not self._is_own(as_fields(item)):
                output.append(self._repair_item(as_fields(item), index))
        response = {**response, "output": [*output, *calls]}
        if kind != _ENDS[0]:
            kind = _ENDS[0]
            response |= {"status": "completed", "incomplete_details": None}
        self._send({**event, "response": response}, kind)

    def _send(self, event: dict[str, Any], kind: str) -> None:
        data = {**event, "type": kind, "sequence_number": self._number}
        self._number += 1
        self._written.append(event_of(data, kind))


def _has_place(event: dict[str, Any]) -> bool:
    return type(event.get("output_index")) is int
