"""Streams of chat completions."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Raw

from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import RawCall, ToolCall, Usage
from surecall.exchange.thoughts import Split
from surecall.text import encode_text
from surecall.wire.chat_completions.replies import parse_usage

from .chat_chunks import (
    Call,
    Choice,
    Delta,
    decode_chunk,
    decode_piece,
    decode_pieces,
    decode_text,
    decode_texts,
)
from .chat_rewriting import CALL_KEYS, TEXT_KEYS, ChatRewriting
from .pieces import PieceForm, find_form
from .wire import (
    CALL,
    END,
    NOTHING,
    PASS,
    TEXT,
    THOUGHT,
    UNREADABLE,
    EventParts,
    Wire,
    event_of,
    fields_of,
    fields_or_none,
    is_there,
    same_event,
    value_of,
)

_PLAIN_ENDS: Final = frozenset({"stop", "function_call", "end_turn", "eos"})


class _Partial:
    __slots__ = ("arguments", "id", "is_other", "name")

    def __init__(self) -> None:
        self.is_other = False
        """Whether it is of a tool that is not a function."""
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []


_FINISH: Final = b'"finish_reason":"'
_SPACED_FINISH: Final = b'"finish_reason": "'
_STYLE_BYTES: Final = 200
"""How much of the first chunk shows whether blanks are behind its colons."""
_NO_TEXT: Final = b'"tool_calls":'
"""What a chunk has that brings a call."""
_NO_PIECE: Final = b'"name":'
"""What a chunk has that begins another call."""
_DONE: Final = b"[DONE]"
_HEAD: Final = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_NEXT: Final = b"\n\ndata: "


def _decode_events(data: bytes, end: int, decode: Callable[[bytes], list[Any]]) -> list[Any]:
    """Return the events up to a place, each of one line; none if one is of another kind."""
    if end < 0:
        return []
    text = data[6:end]
    joined = text.replace(_NEXT, b",")
    if b"\n" in joined:
        return []
    try:
        chunks = decode(b"[%b]" % joined)
    except UNREADABLE:
        return []
    count = (len(text) - len(joined)) // (len(_NEXT) - 1) + 1
    return chunks if len(chunks) == count else []


class ChatWire(Wire):
    """The chunks of one completion, or of several at once."""

    parts_text = True

    def __init__(self, *args: Any, choices: int = 1, is_legacy: bool = False) -> None:
        super().__init__(*args)
        self._expected = choices
        self._is_legacy = is_legacy
        self._ended: set[int] = set()
        self._seen: set[int] = set()
        self._partial: dict[int, _Partial] = {}
        self._usage: Raw = Raw()
        self._choice: int | None = None
        self._growing = _Partial()
        """The call that the last piece belongs to."""
        self._form: PieceForm | None = None
        """How pieces of this call are written."""
        self._is_plain = False
        """Whether the first piece of the one reply has come, and its index is 0."""
        self._role_at: int = 0
        """Which event was the first to name the role."""

    @property
    def usage(self) -> Usage | None:
        """The tokens, as far as they are known."""
        return parse_usage(value_of(self._usage))

    def calls(self) -> list[RawCall] | None:
        """Return the calls if nothing about them is odd."""
        if self.is_odd:
            return None
        return [
            RawCall(call.id, call.name, "".join(call.arguments))
            for call in self._partial.values()
            if not call.is_other
        ]

    def take(self, data: bytes, name: bytes) -> int:
        """Take the data of the next event, and return what it brought."""
        self.events += 1
        self.piece = ""
        if name == b"error":
            return self._take_unusual(data, name)
        try:
            chunk = decode_chunk(data)
        except UNREADABLE:
            return self._take_unusual(data, name)
        if chunk.usage is not NOTHING and is_there(chunk.usage):
            self._usage = chunk.usage.copy()
        choices = chunk.choices
        if chunk.object == "error" or (chunk.error is not NOTHING and is_there(chunk.error)):
            raise self._read_error(self._decode_whole(data))
        if self.model is None:
            self.model = chunk.model
        if not choices:
            return END if self.is_finished else PASS
        if len(choices) == 1:
            return self._take_choice(choices[0], data)
        return max([self._take_choice(choice, data) for choice in choices])

    def take_text(self, event: bytes) -> str:
        """Take an event if it brings nothing but text, and return that."""
        if not self._is_plain or event[:6] != b"data: ":
            return ""
        try:
            chunk = decode_text(event[6:-2])
        except UNREADABLE:
            return ""
        self.events += 1
        self.piece = chunk.choices[0].delta.content
        return self.piece

    def take_texts(self, data: bytes) -> list[str]:
        """Take events at the beginning of these that bring nothing but text, all at once."""
        chunks, _ = self._decode_run(data, _NO_TEXT, decode_texts)
        self.events += len(chunks)
        return [chunk.choices[0].delta.content for chunk in chunks]

    def take_pieces(self, data: bytes) -> int:
        """Take events at the beginning of these that only go on with arguments, all at once."""
        taken = data.find(b"\n\n") + 2
        if not self.take_piece(data[:taken]):
            return 0
        if self._form is not None:
            texts, size = self._form.read_run(data[taken:])
            self._growing.arguments += texts
            self.events += len(texts)
            taken += size
        return taken + self._take_run(data[taken:])

    def _take_run(self, data: bytes) -> int:
        """Take events that only go on with arguments, whatever else they differ in."""
        chunks, size = self._decode_run(data, _NO_PIECE, decode_pieces)
        pieces = [chunk.choices[0].delta.tool_calls[0] for chunk in chunks]
        partial = self._partial
        if not partial.keys() >= {piece.index for piece in pieces}:
            return 0
        for piece in pieces:
            partial[piece.index].arguments.append(piece.function.arguments)
        self.events += len(chunks)
        return size

    def take_piece(self, event: bytes) -> bool:
        """Take an event if it only goes on with arguments, and tell whether it was."""
        if not self._is_plain or self.is_finished:
            return False
        return self.take_alike(event) or self._take_first_piece(event)

    def take_alike(self, event: bytes) -> bool:
        """Take an event if it differs from the last piece of arguments in these alone."""
        form = self._form
        text = None if form is None or self.is_finished else form.read(event)
        if text is None:
            return False
        self._growing.arguments.append(text)
        self.events += 1
        self.piece = ""
        return True

    def _take_first_piece(self, event: bytes) -> bool:
        """Take an event that only goes on with arguments, and learn how such events are written."""
        if event[:6] != b"data: ":
            return False
        try:
            piece = decode_piece(event[6:-2]).choices[0].delta.tool_calls[0]
        except UNREADABLE:
            return False
        call = self._partial.get(piece.index)
        if call is None:
            return False
        text = piece.function.arguments
        call.arguments.append(text)
        self.events += 1
        self.piece = ""
        if self._form is None or self._form.is_used:  # or else no two events are alike
            self._growing, self._form = call, find_form(event, text)
        return True

    def _decode_run(
        self, data: bytes, other: bytes, decode: Callable[[bytes], list[Any]]
    ) -> tuple[list[Any], int]:
        """Decode the events in front of the finish, or of the first with a mark, all at once.

        Data is long, so it is searched as seldom as possible, and for another mark only when
        something else was among the events.

        Returns:
            Them and how many bytes they have; none if any of them is not what is decoded here.
        """
        if not self._is_plain or data[:6] != b"data: ":
            return [], 0
        marked = data.find(_SPACED_FINISH if data.find(b'": ', 0, _STYLE_BYTES) >= 0 else _FINISH)
        end = data.rfind(_NEXT, 0, marked) if marked >= 0 else data.rfind(b"\n\n")
        chunks = _decode_events(data, end, decode)
        if not chunks and (marked := data.find(other, 0, max(end, 0))) >= 0:
            end = data.rfind(_NEXT, 0, marked)
            chunks = _decode_events(data, end, decode)
        return chunks, end + 2 if chunks else 0

    def _take_choice(self, choice: Choice, data: bytes) -> int:
        if choice.error is not NOTHING and is_there(choice.error):
            raise self._read_error({"error": value_of(choice.error)})
        index = choice.index
        if index != self._choice:
            if self._choice is None:
                self._choice = index
                self._is_plain = index == 0 and self._expected == 1
            elif self._expected == 1:
                return END if self.is_finished else PASS
        if self._expected > 1:
            self._seen.add(index)
        kind = PASS if choice.delta is None else self._take_delta(choice.delta)
        if choice.message is not NOTHING and is_there(choice.message):
            self.is_odd = True
            self.has_calls = self.has_calls or b"_call" in data
            kind = CALL
        if self.is_finished and kind in (TEXT, CALL) and not choice.finish_reason:
            self.is_odd = True
        if choice.finish_reason:
            self._take_finish(choice.finish_reason, index)
        return END if self.is_finished and kind != CALL else kind

    def _take_delta(self, delta: Delta) -> int:
        if delta.role is not NOTHING and not self._role_at:
            self._role_at = self.events
        if delta.content:
            self.piece = delta.content
        if delta.tool_calls:
            self._take_calls(delta.tool_calls)
            return CALL
        if delta.function_call is not NOTHING and is_there(delta.function_call):
            self._take_function(as_fields(value_of(delta.function_call)))
            return CALL
        return TEXT if delta.content else THOUGHT

    def _take_function(self, piece: dict[str, Any]) -> None:
        """Take a piece of the call in the older field; it has no id, and only some look for it."""
        self.has_calls = True
        call = self._partial.setdefault(0, _Partial())
        call.id = "0"
        name, arguments = piece.get("name"), piece.get("arguments")
        if not self._is_legacy or (name and call.name is not None):
            self.is_odd = True
        if isinstance(arguments, str | None):
            call.arguments.append(arguments or "")
        else:
            self.is_odd = True
        call.name = text_or_none(name) or call.name

    def _take_finish(self, finish: str, index: int) -> None:
        if self.finish is None or self.finish in _PLAIN_ENDS:
            self.finish = finish
        if self._expected > 1:
            self._ended.add(index)
            self.is_finished = len(self._ended) >= self._expected
        else:
            self.is_finished = True

    @property
    def has_ended(self) -> bool:
        """Whether all replies came to their end, also when they are fewer than were asked for."""
        return self.is_finished or (bool(self._ended) and self._ended >= self._seen)

    def _take_calls(self, calls: list[Call]) -> None:
        self.has_calls = True
        self.is_odd = self.is_odd or self._is_legacy
        for piece in calls:
            call = self._partial.get(piece.index)
            if call is None:
                call = self._partial[piece.index] = _Partial()
                if piece.index != len(self._partial) - 1:
                    self.is_odd = True
                call.id = piece.id
                call.is_other = piece.type == "custom" and piece.function is None
                if not piece.type:
                    self.untyped.append(len(self._partial) - 1)
                    self.is_odd = True
            elif piece.id:
                self.is_odd = True
            function = piece.function
            if function is None:
                self.is_odd = self.is_odd or not call.is_other
                continue
            if function.name:
                if call.name is not None:
                    self.is_odd = True
                call.name = function.name
            if function.arguments:
                call.arguments.append(function.arguments)

    def _take_done(self) -> int:
        self.done = True
        return END

    def _take_odd(self, fields: dict[str, Any], data: bytes, name: bytes) -> int:
        if fields.get("error"):
            raise self._read_error(fields)
        self.model = self.model or text_or_none(fields.get("model"))
        choices = fields.get("choices")
        if choices is None:
            return PASS
        if not isinstance(choices, list) or not all(isinstance(i, dict) for i in as_list(choices)):
            raise self._refuse(data, "its choices are not a list of objects.")
        kind = PASS
        for item in as_list(choices):
            choice = as_fields(item)
            if error := choice.get("error"):
                raise self._read_error({"error": error})
            piece = choice.get("delta") or choice.get("message")
            if piece and not isinstance(piece, dict):
                raise self._refuse(data, "its delta is not an object.")
            delta = as_fields(piece)
            if "role" in delta:
                self._role_at = self._role_at or self.events
            if any(delta.get(key) for key in CALL_KEYS):
                self.has_calls = self.is_odd = True
                kind = CALL
            elif content := delta.get("content"):
                self.piece = content if isinstance(content, str) else encode_text(content)
                kind = max(kind, TEXT)
            if finish := choice.get("finish_reason"):
                self.is_odd = True
                self.is_finished = True
                self.finish = self.finish or str(finish)
        if self.is_finished and kind != CALL:
            return END
        return kind

    def part(self, data: bytes, split: Split) -> EventParts:
        """Part a chunk whose text turned out to be reasoning, all of it or its beginning."""
        fields = fields_of(data)
        choice = as_fields(as_list(fields.get("choices"))[0])
        delta = as_fields(choice.get("delta"))
        kept = {key: value for key, value in delta.items() if key not in TEXT_KEYS}
        rest = b""
        if choice.get("finish_reason") or any(kept.values()):
            rest = event_of({**fields, "choices": [{**choice, "delta": kept}]})
        return EventParts(
            self._write_piece(fields, "reasoning_content", split.thought),
            self._write_piece(fields, "content", split.text),
            rest,
        )

    def _write_piece(self, fields: dict[str, Any], key: str, text: str) -> bytes:
        if not text:
            return b""
        head = {name: value for name, value in fields.items() if name not in ("choices", "usage")}
        choice = {"index": self._choice or 0, "delta": {key: text}, "finish_reason": None}
        return event_of({**head, "choices": [choice]})

    def pulse(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return a chunk with an empty text; some SDKs drop one without any."""
        return self._write_chunk(held, {"content": ""}, None)

    def stop(self, held: bytes, passed: Sequence[bytes]) -> bytes:
        """Return the finish and the end of the stream."""
        return self._write_chunk(held, {}, "stop") + same_event(_DONE)

    def _write_chunk(self, held: bytes, delta: dict[str, Any], finish: str | None) -> bytes:
        fields = fields_or_none(held)
        head = {key: fields[key] for key in _HEAD if key in fields}
        index = self._choice or 0
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": finish}
        return event_of({"object": "chat.completion.chunk", **head, "choices": [choice]})

    def rewrite(
        self,
        held: Sequence[bytes],
        calls: Sequence[ToolCall],
        text: str | None,
        note: str = "",
    ) -> bytes:
        """Return the held chunks with these calls before the finish."""
        lacks_role = not self._role_at or self._role_at > self.events - len(held)
        rewriting = ChatRewriting(
            held,
            calls,
            text,
            note,
            index=self._choice or 0,
            lacks_role=lacks_role,
            is_legacy=self._is_legacy,
        )
        return rewriting.write()
