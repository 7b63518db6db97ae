"""Streams of responses, whose events have numbers and whose end says everything once more."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from surecall.errors import SurecallError
from surecall.jsontext import decoder_of, encode_text
from surecall.narrow import as_fields, as_list, text_or_none
from surecall.protocols.responses.replies import parse_usage
from surecall.records import RawCall, ToolCall, Usage

from .wire import (
    CALL,
    END,
    FRAME,
    NOTHING,
    PASS,
    PING,
    TEXT,
    THOUGHT,
    UNREADABLE,
    Wire,
    event_of,
    fields_of,
    is_there,
    value_of,
)

_CALL: Final = "function_call"
_CALLS: Final = frozenset({_CALL, "custom_tool_call"})
_ARGUMENTS: Final = "response.function_call_arguments."
_CUSTOM: Final = "response.custom_tool_call_input."
_ENDS: Final = ("response.completed", "response.incomplete")
_THOUGHTS: Final = ("response.reasoning", "response.refusal")


class _Item(Struct, gc=False):
    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None


class _Event(Struct, gc=False):
    type: str = ""
    sequence_number: int | None = None
    output_index: int | None = None
    delta: Any = None
    arguments: str | None = None
    item: _Item | None = None
    response: Raw = NOTHING
    error: Raw = NOTHING


class _Response(Struct, gc=False):
    status: str | None = None
    model: str | None = None
    output: list[_Item] | None = None
    usage: Raw = NOTHING
    error: Raw = NOTHING
    incomplete_details: Raw = NOTHING


class _Partial:
    __slots__ = ("done", "item", "pieces")

    def __init__(self, item: _Item) -> None:
        self.item = item
        self.pieces: list[str] = []
        self.done = False


_decode: Final = decoder_of(_Event)
_decode_response: Final = decoder_of(_Response)


class ResponsesWire(Wire):
    """The events of one response."""

    end_is = "the event that ends a response"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._calls: dict[int, _Partial] = {}
        self._sequence: int | None = None
        self._usage: Raw = NOTHING
        self._begun: Raw = NOTHING
        """The response as it was when it began."""

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return parse_usage(value_of(self._usage))

    def calls(self) -> list[RawCall] | None:
        """Return the calls if nothing about them is odd."""
        if self.is_odd or not all(call.done for call in self._calls.values()):
            return None
        return [
            RawCall(call.item.call_id, call.item.name, call.item.arguments)
            for call in self._calls.values()
            if call.item.type == _CALL
        ]

    def take(self, data: bytes, name: bytes) -> int:
        """Take the data of the next event, and return what it brought."""
        self.events += 1
        self.piece = ""
        if name == b"error":
            return self._take_unusual(data, name)
        try:
            event = _decode(data)
            return self._take(event, event.type or name.decode("utf-8", "replace"), data)
        except UNREADABLE:
            return self._take_unusual(data, name)

    def _take(self, event: _Event, kind: str, data: bytes) -> int:
        number = event.sequence_number
        if number is not None:
            self._count(number)
        if kind == "response.output_text.delta":
            if event.delta.__class__ is not str:
                raise self._refuse(data, "its delta is not text.")
            self.piece = event.delta
            return TEXT
        if kind.startswith((_ARGUMENTS, _CUSTOM)):
            return self._take_arguments(event, kind)
        if event.item is not None and event.item.type in _CALLS:
            return self._take_item(event, event.item, kind)
        if kind.startswith(_THOUGHTS):
            return THOUGHT
        if kind in _ENDS:
            return self._end(event.response, kind)
        if kind == "keepalive":
            return PING
        self._refuse_failed(event, kind, data)
        if is_there(event.response) and self._begun is NOTHING:
            self._begun = event.response.copy()
            self.model = _decode_response(event.response).model
        return self._take_frame(event, kind)

    def _take_frame(self, event: _Event, kind: str) -> int:
        """Take an event that begins or ends an item or a part of one."""
        is_message = event.item is not None and event.item.type == "message"
        if event.output_index or not (is_message or kind == "response.content_part.added"):
            return PASS
        self.begins_with_text = self.begins_with_text or is_message
        return FRAME if kind.endswith(".added") and self.begins_with_text else PASS

    @property
    def reply_id(self) -> str | None:
        """The id of the reply, which its end has to name once more."""
        return text_or_none(as_fields(value_of(self._begun)).get("id"))

    def _count(self, number: int) -> None:
        if self._sequence is not None and number != self._sequence + 1:
            self.is_odd = True
        self._sequence = number

    def _refuse_failed(self, event: _Event, kind: str, data: bytes) -> None:
        if kind == "error" or is_there(event.error):
            raise self._read_error(self._decode_whole(data))
        if kind == "response.failed":
            response = as_fields(value_of(event.response))
            raise self._read_error({"error": response.get("error")})

    def _take_arguments(self, event: _Event, kind: str) -> int:
        call = self._calls.get(-1 if event.output_index is None else event.output_index)
        self.has_calls = True
        if call is None or call.done:
            self.is_odd = True
        elif kind.endswith(".delta"):
            if event.delta.__class__ is str:
                call.pieces.append(event.delta)
            else:
                self.is_odd = True
        elif kind == f"{_ARGUMENTS}done" and event.arguments != "".join(call.pieces):
            self.is_odd = True
        return CALL

    def _take_item(self, event: _Event, item: _Item, kind: str) -> int:
        self.has_calls = True
        index = event.output_index
        if index is None:
            self.is_odd = True
        elif kind == "response.output_item.added":
            if index in self._calls or item.arguments:
                self.is_odd = True
            self._calls[index] = _Partial(item)
        elif kind == "response.output_item.done":
            call = self._calls.get(index)
            if call is None:
                self.is_odd = True
                return CALL
            begun = call.item
            same = (item.call_id, item.name) == (begun.call_id, begun.name)
            pieces = "".join(call.pieces)
            if not same or (item.type == _CALL and item.arguments != pieces):
                self.is_odd = True
            call.item, call.done = item, True
        return CALL

    def _end(self, written: Raw, kind: str) -> int:
        response = _decode_response(written) if is_there(written) else _Response()
        if response.status == "failed" or is_there(response.error):
            raise self._read_error({"error": value_of(response.error)})
        self.is_finished = self.done = True
        self._usage = response.usage
        self.model = response.model or self.model
        status = response.status or kind.removeprefix("response.")
        if kind != _ENDS[0] or status != "completed":
            reason = as_fields(value_of(response.incomplete_details)).get("reason")
            self.finish = text_or_none(reason) or "incomplete"
            self.is_odd = self.is_odd or self.has_calls
        else:
            self.finish = "tool_calls" if self.has_calls else "stop"
        stated = [item for item in response.output or () if item.type in _CALLS]
        streamed = [call.item for call in self._calls.values()]
        if [_words(item) for item in stated] != [_words(item) for item in streamed]:
            self.is_odd = True
            self.has_calls = self.has_calls or bool(stated)
        if any(item.status == "incomplete" for item in stated):
            self.is_odd = True
        return END

    def _take_odd(self, fields: dict[str, Any], data: bytes, name: bytes) -> int:
        kind = fields.get("type")
        kind = kind if isinstance(kind, str) else name.decode("utf-8", "replace")
        if kind in ("error", "response.failed") or fields.get("error"):
            error = as_fields(fields.get("response")).get("error")
            raise self._read_error({"error": error} if error else fields)
        number = fields.get("sequence_number")
        self._sequence = number if type(number) is int else self._sequence
        if kind == "response.output_text.delta":
            if not isinstance(text := fields.get("delta"), str):
                raise self._refuse(data, "its delta is not text.")
            self.piece = text
            return TEXT
        self.is_odd = True
        if kind in _ENDS:
            self.is_finished = self.done = True
            response = as_fields(fields.get("response"))
            self.has_calls = self.has_calls or b"_call" in data
            self.finish = text_or_none(response.get("status"))
            return END
        if kind.startswith((_ARGUMENTS, _CUSTOM)) or b"_call" in data:
            self.has_calls = True
            return CALL
        return PASS

    def fail(self, error: SurecallError, held: bytes | None) -> bytes:
        """Return an error event and a failed response; nothing follows."""
        answer = self.protocol.render_error(error)
        stated = as_fields(answer.body["error"])
        number = -1 if self._sequence is None else self._sequence
        if held is not None and type(known := fields_of(held).get("sequence_number")) is int:
            number = known - 1
        message = stated.get("message")
        code = "rate_limit_exceeded" if answer.status == 429 else "server_error"
        response = {
            **as_fields(value_of(self._begun)),
            "status": "failed",
            "error": {"code": code, "message": message},
        }
        failed = {"code": stated.get("code"), "message": message, "param": None, "error": stated}
        return b"".join(
            event_of({"type": kind, "sequence_number": number + place, **fields}, kind)
            for place, (kind, fields) in enumerate(
                (("error", failed), ("response.failed", {"response": response})), start=1
            )
        )

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        *,
        is_again: bool = False,
    ) -> bytes:
        """Return the held events with these calls before the end, all of them numbered anew."""
        return _Rewriting(held, calls, text, is_again=is_again).write()


class _Rewriting:
    """Writes held events of one response once more, with other calls."""

    def __init__(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        *,
        is_again: bool,
    ) -> None:
        self._is_again = is_again
        self._events = [fields_of(data) for data in held]
        self._calls = calls
        self._text = text
        numbers = [item.get("sequence_number") for item in self._events]
        self._number = next((number for number in numbers if type(number) is int), 0)
        self._places: dict[Any, int | None] = {}
        self._items: dict[Any, dict[str, Any]] = {}
        """Items of calls, by their places: their ids are used again."""
        for event in self._events:
            item = as_fields(event.get("item"))
            if item.get("type") == _CALL:
                self._items[event.get("output_index")] = item
        places = [event["output_index"] for event in self._events if _has_place(event)]
        self._next = min(places, default=0)
        self._texts: dict[Any, str] = {}
        self._written: list[bytes] = []

    def write(self) -> bytes:
        """Return the events."""
        self._settle_texts()
        for event in self._events:
            kind = str(event.get("type"))
            if kind in _ENDS:
                written = [self._write_text(self._text)] if self._text else []
                written += [self._write_call(call) for call in self._calls]
                self._end(event, kind, written)
            elif not self._is_call(event, kind):
                self._keep(event, kind)
        return b"".join(self._written)

    def _is_call(self, event: dict[str, Any], kind: str) -> bool:
        return kind.startswith(_ARGUMENTS) or as_fields(event.get("item")).get("type") == _CALL

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
            "type": _CALL,
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
        self._send({**place, "delta": arguments}, f"{_ARGUMENTS}delta")
        self._send({**place, "arguments": arguments}, f"{_ARGUMENTS}done")
        self._send({"output_index": index, "item": item}, "response.output_item.done")
        return item

    def _end(self, event: dict[str, Any], kind: str, calls: list[dict[str, Any]]) -> None:
        response = as_fields(event.get("response"))
        output: list[Any] = []
        for index, item in enumerate(as_list(response.get("output"))):
            if as_fields(item).get("type") != _CALL:
                output.append(self._mend_item(as_fields(item), index))
        response = {**response, "output": [*output, *calls]}
        if self._is_again and kind != _ENDS[0]:
            kind = _ENDS[0]
            response |= {"status": "completed", "incomplete_details": None}
        self._send({**event, "response": response}, kind)

    def _send(self, event: dict[str, Any], kind: str) -> None:
        data = {**event, "type": kind, "sequence_number": self._number}
        self._number += 1
        self._written.append(event_of(data, kind))


def _has_place(event: dict[str, Any]) -> bool:
    return type(event.get("output_index")) is int


def _words(item: _Item) -> tuple[str | None, str | None, str | None]:
    return item.call_id, item.name, item.arguments
