"""Held events of a response, written once more with other calls."""

from collections.abc import Sequence
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import ToolCall
from surecall.exchange.request import CompiledTools
from surecall.text import encode_text

from .wire import event_of, fields_of

CALL_TYPE: Final = "function_call"
ARGUMENTS: Final = "response.function_call_arguments."
ENDS: Final = ("response.completed", "response.incomplete")


class ResponsesRewriting:
    """Writes held events of one response once more, with other calls and new numbers.

    Args:
        held: The data of the events.
        calls: The calls that the client gets.
        text: What comes in the place of the held text; `None` leaves it as it is.
        tools: The tools of the request; calls of those that are not functions stay.
        note: What comes behind all text.
    """

    def __init__(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        tools: CompiledTools,
        note: str = "",
    ) -> None:
        self._note = note
        self._tools = tools
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
            elif item.get("type") == CALL_TYPE:
                self._others.add(place)
        places = [event["output_index"] for event in self._events if _has_place(event)]
        self._next = min(places, default=0)
        self._texts: dict[Any, str] = {}
        self._written: list[bytes] = []

    def write(self) -> bytes:
        """Return the events."""
        self._settle_texts()
        for event in self._events:
            kind = str(event.get("type"))
            if kind in ENDS:
                said = (self._text or "") + self._note
                written = [self._write_text(said)] if said else []
                written += [self._write_call(call) for call in self._calls]
                self._end(event, kind, written)
            elif not self._is_call(event, kind):
                self._keep(event, kind)
        return b"".join(self._written)

    def _is_call(self, event: dict[str, Any], kind: str) -> bool:
        if kind.startswith(ARGUMENTS):
            return event.get("output_index") not in self._others
        return self._is_own(as_fields(event.get("item")))

    def _is_own(self, item: dict[str, Any]) -> bool:
        """Tell whether an item is the call of a function."""
        is_call = item.get("type") == CALL_TYPE
        return is_call and not self._tools.is_other(item.get("name"), item)

    def _settle_texts(self) -> None:
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
            item = self._mend_item(as_fields(event.get("item")), event.get("output_index"))
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

    def _mend_item(self, item: dict[str, Any], index: Any) -> dict[str, Any]:
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
            "type": CALL_TYPE,
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
        place = {"item_id": item_id, "output_index": index}
        added = {"output_index": index, "item": begun}
        self._send(added, "response.output_item.added")
        self._send({**place, "delta": arguments}, f"{ARGUMENTS}delta")
        self._send({**place, "arguments": arguments}, f"{ARGUMENTS}done")
        self._send({"output_index": index, "item": item}, "response.output_item.done")
        return item

    def _end(self, event: dict[str, Any], kind: str, calls: list[dict[str, Any]]) -> None:
        response = as_fields(event.get("response"))
        output: list[Any] = []
        for index, item in enumerate(as_list(response.get("output"))):
            if not self._is_own(as_fields(item)):
                output.append(self._mend_item(as_fields(item), index))
        response = {**response, "output": [*output, *calls]}
        if kind != ENDS[0]:
            kind = ENDS[0]
            response |= {"status": "completed", "incomplete_details": None}
        self._send({**event, "response": response}, kind)

    def _send(self, event: dict[str, Any], kind: str) -> None:
        data = {**event, "type": kind, "sequence_number": self._number}
        self._number += 1
        self._written.append(event_of(data, kind))


def _has_place(event: dict[str, Any]) -> bool:
    return type(event.get("output_index")) is int
