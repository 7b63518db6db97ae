"""Streams of responses, whose events have numbers and whose end says everything once more."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Raw, Struct

from surecall.base.errors import ProviderError, SurecallError
from surecall.base.json_values import as_fields, text_or_none
from surecall.base.records import RawCall, ToolCall, Usage
from surecall.text import decoder_of, encode
from surecall.wire.responses.replies import parse_usage

from .events import read_event
from .responses_rewriting import ARGUMENTS, CALL_TYPE, ENDS, ResponsesRewriting
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
    Stated,
    Wire,
    event_of,
    fields_of,
    fields_or_none,
    is_there,
    same_event,
    value_of,
)

_CALLS: Final = frozenset({CALL_TYPE, "custom_tool_call"})
_ITEM: Final = b"response.output_item."
_CUSTOM: Final = "response.custom_tool_call_input."
_THOUGHTS: Final = ("response.reasoning", "response.refusal")


class _Item(Struct, gc=False):
    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    namespace: str | None = None


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

    def __init__(self, *args: Any, in_background: bool = False) -> None:
        super().__init__(*args)
        self._in_background = in_background
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
            if call.item.type == CALL_TYPE
            and not self.tools.is_other(call.item.name, {"namespace": call.item.namespace})
        ]

    def take(self, data: bytes, name: bytes) -> int:
        """Take the data of the next event, and return what it brought."""
        self.events += 1
        self.piece = ""
        before = self._sequence
        try:
            if name == b"error":
                return self._take_unusual(data, name)
            try:
                event = _decode(data)
                return self._take(event, event.type or name.decode("utf-8", "replace"), data)
            except UNREADABLE:
                return self._take_unusual(data, name)
        except ProviderError:
            self._sequence = before  # whatever takes its place has its number
            raise

    def _take(self, event: _Event, kind: str, data: bytes) -> int:
        number = event.sequence_number
        if number is not None:
            self._count(number)
        if kind == "response.output_text.delta":
            if event.delta.__class__ is not str:
                raise self._refuse(data, "its delta is not text.")
            self.piece = event.delta
            return TEXT
        if kind.startswith((ARGUMENTS, _CUSTOM)):
            return self._take_arguments(event, kind)
        if event.item is not None and event.item.type in _CALLS:
            return self._take_item(event, event.item, kind)
        if kind.startswith(_THOUGHTS):
            return THOUGHT
        if kind in ENDS:
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
            raise self._read_failed(data)

    def _read_failed(self, data: bytes) -> ProviderError:
        """Return what a failed response stands for, which goes on as it is."""
        response = as_fields(as_fields(self._decode_whole(data)).get("response"))
        error = self._parse_error({"error": response.get("error")})
        self._usage = Raw(encode(response.get("usage")))
        self.model = text_or_none(response.get("model")) or self.model
        if response:
            self.stated = Stated(error, data)
        return error

    def _read_error(self, value: Any) -> ProviderError:
        """Return what an error event stands for; it goes on as it is if clients know its form."""
        error, fields = self._parse_error(value), as_fields(value)
        inner = as_fields(fields.get("error"))
        message = text_or_none(inner.get("message")) or text_or_none(fields.get("message"))
        if fields.get("type") == "error" and message:
            told = inner or {key: fields.get(key) for key in ("message", "param", "code")}
            usual = as_fields(self.protocol.render_error(error).body["error"])
            self.stated = Stated(error, encode(fields), encode({"error": {**usual, **told}}))
        return error

    @property
    def goes_on(self) -> bool:
        """Whether the response goes on without the stream: clients ask for it by its id."""
        return self._in_background and self.reply_id is not None

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
        elif kind == f"{ARGUMENTS}done" and event.arguments != "".join(call.pieces):
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
            if not same or (item.type == CALL_TYPE and item.arguments != pieces):
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
        if kind != ENDS[0] or status != "completed":
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
            if kind == "response.failed":
                raise self._read_failed(data)
            raise self._read_error(fields)
        number = fields.get("sequence_number")
        self._sequence = number if type(number) is int else self._sequence
        if kind == "response.output_text.delta":
            if not isinstance(text := fields.get("delta"), str):
                raise self._refuse(data, "its delta is not text.")
            self.piece = text
            return TEXT
        self.is_odd = True
        if kind in ENDS:
            self.is_finished = self.done = True
            response = as_fields(fields.get("response"))
            self.has_calls = self.has_calls or b"_call" in data
            self.finish = text_or_none(response.get("status"))
            return END
        if kind.startswith((ARGUMENTS, _CUSTOM)) or b"_call" in data:
            self.has_calls = True
            return CALL
        return PASS

    def fail(self, error: SurecallError, held: bytes | None) -> bytes:
        """Return an error event and a failed response, or only that; nothing follows."""
        number = -1 if self._sequence is None else self._sequence
        if held is not None and type(known := fields_of(held).get("sequence_number")) is int:
            number = known - 1
        own = self.stated if self.stated is not None and error is self.stated.error else None
        body = None if own is None else own.body
        if own is not None and body is None:
            is_first = self._sequence is None and held is None
            return _number_event(own.data, None if is_first else number + 1)
        answer = self.protocol.render_error(error)
        stated = as_fields((answer.body if body is None else fields_of(body))["error"])
        message = stated.get("message")
        code = "rate_limit_exceeded" if answer.status == 429 else "server_error"
        response = {
            **as_fields(value_of(self._begun)),
            "status": "failed",
            "error": {"code": code, "message": message},
        }
        failed = {"code": stated.get("code"), "message": message, "param": None, "error": stated}
        if own is not None:
            failed = fields_of(own.data)
        written = _write_event("error", number + 1, failed)
        return written + _write_event("response.failed", number + 2, {"response": response})

    def pulse(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return an empty piece of the open text, or else the response as it is now."""
        fields = fields_or_none(held)
        kind, number = fields.get("type"), fields.get("sequence_number")
        begun = as_fields(value_of(self._begun))
        if not begun or kind == "response.created":
            return b""
        if kind == "response.output_text.delta":
            return event_of({**fields, "delta": ""}, kind)
        items = _items_in(passed, number)
        shown: dict[str, Any] = {} if number is None else {"sequence_number": number}
        if any(item is None for item in items.values()):  # which the client has in pieces only
            return event_of({"type": "keepalive", **shown}, "keepalive")
        shown["response"] = {**begun, "output": [items[place] for place in sorted(items)]}
        return event_of({"type": "response.in_progress", **shown}, "response.in_progress")

    def stop(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return the event that ends a response, with all items that came to their end."""
        items = _items_in(passed, fields_or_none(held).get("sequence_number"))
        output = [item for _, item in sorted(items.items()) if item is not None]
        begun = as_fields(value_of(self._begun))
        number = 0 if self._sequence is None else self._sequence + 1
        response = {**begun, "status": "completed", "output": output}
        return _write_event(ENDS[0], number, {"response": response})

    def shift(self, data: bytes, count: int) -> bytes:
        """Return events with their numbers raised."""
        *blocks, rest = data.split(b"\n\n")
        written: list[bytes] = []
        for block in blocks:
            body, name = read_event(block)
            fields = fields_or_none(body) if body else {}
            number = fields.get("sequence_number")
            if type(number) is int:
                fields = {**fields, "sequence_number": number + count}
                written.append(event_of(fields, name.decode("utf-8", "replace")))
            else:
                written.append(block + b"\n\n")
        return b"".join(written) + rest

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
    ) -> bytes:
        """Return the held events with these calls before the end, all of them numbered anew."""
        return ResponsesRewriting(held, calls, text, self.tools, note).write()


def _items_in(passed: Sequence[bytes], number: Any) -> dict[int, dict[str, Any] | None]:
    """Return the items before the event of a number, by their places; nothing for open ones."""
    items: dict[int, dict[str, Any] | None] = {}
    for event in passed:
        fields = fields_or_none(read_event(event)[0]) if _ITEM in event else {}
        place, own = fields.get("output_index"), fields.get("sequence_number")
        is_before = type(own) is not int or type(number) is not int or own < number
        if type(place) is int and is_before:
            is_done = fields.get("type") == "response.output_item.done"
            items[place] = as_fields(fields.get("item")) if is_done else None
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


def _words(item: _Item) -> tuple[str | None, str | None, str | None]:
    return item.call_id, item.name, item.arguments
