"""Streamed replies: bytes cut anywhere fold into the message a whole reply would carry.

A stream is complete when a finish reason has been seen for its choice; `[DONE]` alone proves
nothing, and it may be missing. Anything less is `STREAM_TRUNCATED`: a finish is never invented.
Nothing may follow the finish but usage and the finish said again; servers that state it in every
chunk may go on with text.
"""

from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, cast

from surecall.base.errors import Code, JSONTextError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Defect
from surecall.text import decode, repair_surrogates, repair_surrogates_in
from surecall.wire.events import (
    CALL,
    END,
    PASS,
    TEXT,
    Event,
    EventReader,
    event_of,
    fields_of,
    may_have_halves,
)
from surecall.wire.partial_reply import HeldHalves, Kept, KeptText, KeptWords, Noted, text_of
from surecall.wire.records import RawReply, StreamDelta
from surecall.wire.replies import check_role, finish_word

from .replies import (
    PLAIN_FINISHES,
    REASONING_KEYS,
    check_reply,
    choices_ignored,
    find_repeated_keys,
    parse_body,
    parse_usage,
    split_parts,
)

_FUNCTION_FIELDS: Final = frozenset({"arguments", "name"})
_FORM_FIELDS: Final = frozenset({"content", "role", "tool_calls"})
_PIECE_FIELDS: Final = frozenset({"function", "index", "type"})
_CALL_FIELDS: Final = frozenset({"arguments", "function", "id", "index", "name"})


class PartialCall:
    """One call, as far as it has arrived."""

    __slots__ = (
        "_kept",
        "bare",
        "beside",
        "breaks",
        "extra",
        "id",
        "index",
        "is_text",
        "name",
        "runs",
    )

    def __init__(self, kept: Kept, index: int | None = None) -> None:
        kept.add_part()
        self._kept = kept
        self.index = index
        self.id: Any = None
        self.name: Any = None
        self.runs: list[Any] = []
        """What arrived as arguments: text that belongs together, or an object."""
        self.is_text = True
        self.breaks: list[int] = []
        """Where in `runs` the whole name was said again."""
        self.bare: set[str] = set()
        """Which of name and arguments came without the `function` wrapper."""
        self.extra: dict[str, Any] = {}
        self.beside: dict[str, Any] = {}
        """Other fields of the `function` wrapper."""

    def take(self, name: Any, arguments: Any) -> None:
        """Add one piece of the name and one of the arguments."""
        if name is not None and name != "":
            self._take_name(name)
        if arguments is None:
            return
        if isinstance(arguments, str):
            self._open_run().append(arguments)
        else:
            self._kept.add_part(arguments)
            self.runs.append(arguments)
            self.is_text = False

    def spoil(self, piece: Any) -> None:
        """Keep a piece that may be of the arguments but cannot be joined: they will be refused."""
        if not self.has_arguments:
            self.take(None, "{}")
        self.take(None, [piece])

    @property
    def has_arguments(self) -> bool:
        """Whether anything arrived as arguments but empty text."""
        return any(not isinstance(run, KeptText) or run for run in self.runs)

    def _take_name(self, name: Any) -> None:
        if self.name is None:
            self._kept.add_value(name)
            self.name = name
        elif name == self.name:
            if self.runs and self.runs[-1]:
                self.breaks.append(len(self.runs))
        elif isinstance(name, str) and isinstance(self.name, str):
            self.name += name
            self._kept.add_bytes(len(self.name))

    def _open_run(self) -> KeptText:
        """Return the text that the next piece continues."""
        if self.runs and self.breaks[-1:] != [len(self.runs)]:
            last = self.runs[-1]
            if isinstance(last, KeptText):
                return last
        if self.runs:
            self._kept.add_part()
        run = KeptText(self._kept)
        self.runs.append(run)
        return run

    @property
    def arguments(self) -> Any:
        """What arrived as arguments: text, one object, or nothing."""
        if self.is_text:
            return "".join(map(str, self.runs)) if self.runs else None
        text = "".join(str(run) for run in self.runs if isinstance(run, KeptText))
        objects = [run for run in self.runs if not isinstance(run, KeptText)]
        if not text.strip() and all(item == objects[0] for item in objects):
            return objects[0]
        if all(item == {} for item in objects):
            return text
        # Two things were said; written one after the other they are refused as not one object.
        return "".join(str(run) if isinstance(run, KeptText) else text_of(run) for run in self.runs)

    def render(self) -> list[dict[str, Any]]:
        """Return the call as a whole reply would carry it, or several that shared its place."""
        parts = self._split() or [self.arguments]
        return [self._entry(arguments) for arguments in parts]

    def _entry(self, arguments: Any) -> dict[str, Any]:
        entry: dict[str, Any] = {} if self.id is None else {"id": self.id}
        call = {**self.beside, "name": self.name, "arguments": arguments}
        bare = {key: call.pop(key) for key in sorted(self.bare)}
        return {**entry, **self.extra, **({"function": call} if call else {}), **bare}

    def _split(self) -> list[str]:
        """Part calls to one tool that share an index: each run is a whole object by itself."""
        if not self.breaks or not self.is_text:
            return []
        bounds = [0, *self.breaks, len(self.runs)]
        texts = ["".join(map(str, self.runs[a:b])) for a, b in pairwise(bounds)]
        texts = [repair_surrogates(text) for text in texts if text.strip()]
        return texts if len(texts) > 1 and all(map(_is_object, texts)) else []


class PartialCalls(Noted):
    """All calls of one reply, as far as they have arrived."""

    place = "/tool_calls"

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept)
        self.has_objects = False
        """Whether any arguments came as an object, in which a key can be repeated."""
        self._calls: list[PartialCall] = []
        self._by_index: dict[int, PartialCall] = {}
        self._by_id: dict[Any, PartialCall] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def take(self, delta: Any) -> None:
        """Add what one event brought in its `tool_calls`."""
        if isinstance(delta, dict):
            self._note(Code.CALLS_AS_OBJECT, "tool_calls is one object.")
            delta = [delta]
        entries = as_list(delta) if isinstance(delta, list) else [delta]
        touched: set[PartialCall] = set()
        for entry in entries:
            if isinstance(entry, dict):
                touched.add(self._take_entry(as_fields(entry), touched))
            else:
                note = f"A value of type {type(entry).__name__} is in the place of a call."
                self._note(Code.CALL_ENTRY_DROPPED, note)

    def add(self, index: int, arguments: str) -> bool:
        """Add a piece of arguments to a call that has begun; tell whether it has."""
        call = self._by_index.get(index)
        if call is None:
            return False
        last = call.runs[-1] if call.runs and not call.breaks else None
        if isinstance(last, KeptText):
            last.append(arguments)
        else:
            call.take(None, arguments)
        return True

    def render(self) -> list[dict[str, Any]]:
        """Return the calls in the order of their indexes, or of their arrival without these."""
        calls = self._calls
        if all(call.index is not None for call in calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        entries: list[dict[str, Any]] = []
        for call in calls:
            parts = call.render()
            if len(parts) > 1:
                self._note(Code.INDEX_NOT_USABLE, "Several calls came under one index.")
            entries += parts
        return entries

    def _take_entry(self, entry: dict[str, Any], touched: set[PartialCall]) -> PartialCall:
        function: Any = entry.get("function")
        inner = as_fields(function)
        name, arguments = inner.get("name"), inner.get("arguments")
        if function is not None and not isinstance(function, dict):
            note = f"A value of type {type(function).__name__} is in the place of a function."
            self._note(Code.CALL_ENTRY_DROPPED, note)
        bare: set[str] = set()
        if not name and entry.get("name"):
            name = entry["name"]
            bare.add("name")
        if arguments is None and entry.get("arguments") is not None:
            arguments = entry["arguments"]
            bare.add("arguments")
        index = entry.get("index")
        if type(index) is not int or index < 0:
            index = None
        call_id = entry.get("id")
        if isinstance(call_id, dict | list) or call_id == "":
            call_id = None
        call = self._find(index, call_id, name, touched)
        if call_id is not None and call.id is None:
            self._kept.add_value(call_id)
            call.id = call_id
            self._by_id[call_id] = call
        call.take(name, arguments)
        if function and not isinstance(function, dict):
            call.spoil(function)
        call.bare |= bare
        for key in inner.keys() - _FUNCTION_FIELDS:
            self._kept.put(call.beside, key, inner[key])
        self.has_objects = self.has_objects or not call.is_text
        for key, value in entry.items():
            if value is not None and key not in _CALL_FIELDS:
                self._kept.put(call.extra, key, value)
        return call

    def _find(
        self, index: int | None, call_id: Any, name: Any, touched: set[PartialCall]
    ) -> PartialCall:
        if index is None:
            return self._find_unnumbered(call_id, name, touched)
        call = self._by_index.get(index)
        if call is None:
            return self._begin(index)
        if call_id is not None and call.id is not None and call.id != call_id:
            known = self._by_id.get(call_id)
            if known is not None and known.index == index:
                self._by_index[index] = known
                return known
        elif not _is_new_name(call, name):
            return call
        self._note(Code.INDEX_NOT_USABLE, "Several calls came under one index.")
        return self._begin(index)

    def _find_unnumbered(self, call_id: Any, name: Any, touched: set[PartialCall]) -> PartialCall:
        self._note(Code.INDEX_NOT_USABLE, "A piece of a call came without an index.")
        if call_id is not None:
            call = self._by_id.get(call_id)
            if call is None and self._calls and self._calls[-1].id is None and not name:
                call = self._calls[-1]
        else:
            call = self._calls[-1] if self._calls else None
            if call is not None and name and call.name is not None and call.name != name:
                call = None
        # Entries of one event stand for different calls: nothing cuts a call inside an event.
        if call is None or call in touched or _is_new_name(call, name):
            return self._begin(None)
        return call

    def _begin(self, index: int | None) -> PartialCall:
        call = PartialCall(self._kept, index)
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _is_new_name(call: PartialCall, name: Any) -> bool:
    """Tell whether a name starts another call: it differs, and arguments have begun."""
    if not name or call.name is None or name == call.name:
        return False
    return call.has_arguments


def _is_object(text: str) -> bool:
    try:
        return isinstance(decode(text), dict)
    except JSONTextError:
        return False


_Kind: TypeAlias = Literal["text", "reasoning"]

_JOINED_DETAILS: Final = ("reasoning.text", "reasoning.summary")


class _PartialMessage(Noted):
    """The message as far as it has arrived."""

    place = "/content"

    def __init__(self, kept: Kept) -> None:
        super().__init__(kept)
        self.has_halves = False
        """Whether halves of surrogate pairs may be among the pieces."""
        self.calls = PartialCalls(kept)
        self._legacy: PartialCall | None = None
        self._texts: dict[str, KeptWords] = {}
        self._details: list[Any] = []
        self._extra: dict[str, Any] = {}
        self._halves = HeldHalves()

    def __bool__(self) -> bool:
        return bool(self.calls or self._legacy or any(self._texts.values()))

    @property
    def text(self) -> str:
        """The text so far."""
        return repair_surrogates(str(self._texts.get("content", "")))

    @property
    def calls_count(self) -> int:
        """How many calls have begun."""
        return len(self.calls) or int(self._legacy is not None)

    @property
    def defects(self) -> tuple[Defect, ...]:
        """What was odd about the pieces, each kind once."""
        return (*self._defects.values(), *self.calls.defects)

    def take(self, delta: dict[str, Any], shown: list[StreamDelta]) -> None:
        """Add what one event brought, and append what can be shown of it."""
        has_thought = False
        for key, value in delta.items():
            if value is None or key == "role":
                continue
            if key == "content":
                self._take_content(value, shown)
            elif key in REASONING_KEYS and isinstance(value, str):
                self._keep(key, value)
                if not has_thought:
                    self._show("reasoning", value, shown)
                has_thought = True
            elif key == "tool_calls":
                self.calls.take(value)
            else:
                self._take_other(key, value, shown)

    def add_text(self, text: str) -> None:
        """Add a piece of text that has no half of a character."""
        self._keep("content", text)

    def flush(self, shown: list[StreamDelta]) -> None:
        """Show what was held back, now that its other half cannot come any more."""
        self._halves.flush(shown)

    def render(self) -> dict[str, Any]:
        """Return the message as a whole reply would carry it."""
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for key, text in self._texts.items():
            message[key] = str(text)
        if self.calls:
            message["tool_calls"] = self.calls.render()
        if self._legacy is not None:
            arguments = self._legacy.arguments
            message["function_call"] = {"name": self._legacy.name, "arguments": arguments}
        if self._details:
            message["reasoning_details"] = [
                detail.render() if isinstance(detail, _Detail) else detail
                for detail in self._details
            ]
        message.update(self._extra)
        return repair_surrogates_in(message) if self.has_halves else message

    def _take_content(self, content: Any, shown: list[StreamDelta]) -> None:
        if isinstance(content, str):
            self._keep("content", content)
            self._show("text", content, shown)
        elif isinstance(content, list | dict):
            text, thought, note = split_parts(cast("Any", content))
            self._note(Code.CONTENT_AS_PARTS, note)
            self._keep("content", text)
            if thought:
                self._keep(REASONING_KEYS[0], thought)
                self._show("reasoning", thought, shown)
            self._show("text", text, shown)
        else:
            note = f"The content is of type {type(content).__name__}, not text."
            self._note(Code.CONTENT_NOT_USABLE, note)

    def _take_other(self, key: str, value: Any, shown: list[StreamDelta]) -> None:
        if key == "refusal" and isinstance(value, str):
            self._keep(key, value)
            if not self._texts.get("content"):
                self._show("text", value, shown, is_refusal=True)
        elif key == "function_call" and isinstance(value, dict):
            call = as_fields(value)
            self._legacy = self._legacy or PartialCall(self._kept)
            self._legacy.take(call.get("name"), call.get("arguments"))
            self.calls.has_objects = self.calls.has_objects or not self._legacy.is_text
        elif key == "reasoning_details" and isinstance(value, list):
            self._take_details(as_list(value))
        elif isinstance(value, list) and isinstance(self._extra.get(key), list):
            self._kept.add_value(value)
            self._extra[key].extend(value)
        else:
            self._kept.put(self._extra, key, value)

    def _take_details(self, details: list[Any]) -> None:
        """Collect reasoning that must be sent back whole: pieces of one thought are joined."""
        for item in details:
            detail = as_fields(item)
            if detail.get("type") not in _JOINED_DETAILS:
                self._kept.add_part(item)
                self._details.append(item)
                continue
            last = self._details[-1] if self._details else None
            if not isinstance(last, _Detail) or not last.continues(detail):
                last = _Detail(self._kept)
                self._details.append(last)
            last.take(detail)

    def _keep(self, key: str, text: str) -> None:
        kept = self._texts.get(key)
        if kept is None:
            kept = self._texts[key] = KeptWords(self._kept)
        kept.append(text)

    def _show(
        self, kind: _Kind, text: str, shown: list[StreamDelta], *, is_refusal: bool = False
    ) -> None:
        if self.has_halves:
            self._halves.show(kind, text, shown, is_refusal=is_refusal)
        elif text:
            shown.append(StreamDelta(kind, text, is_refusal=is_refusal))


class _Detail:
    """One thought of `reasoning_details`, in pieces."""

    def __init__(self, kept: Kept) -> None:
        kept.add_part()
        self._kept = kept
        self.fields: dict[str, Any] = {}
        self.texts: dict[str, KeptWords] = {}

    def continues(self, detail: dict[str, Any]) -> bool:
        """Tell whether the piece belongs to this thought."""
        return all(self.fields.get(key) == detail.get(key) for key in ("type", "index"))

    def take(self, detail: dict[str, Any]) -> None:
        for key, value in detail.items():
            if key in {"text", "summary"} and isinstance(value, str):
                self.texts.setdefault(key, KeptWords(self._kept)).append(value)
            elif value is not None or key not in self.fields:
                self._kept.put(self.fields, key, value)

    def render(self) -> dict[str, Any]:
        return {**self.fields, **{key: str(text) for key, text in self.texts.items()}}


_CALL_KEYS: Final = ("tool_calls", "function_call")
_TEXT_KEYS: Final = ("content", "refusal", *REASONING_KEYS)


class ChatReader(EventReader):
    """Reads one streamed reply."""

    has_choices = True
    parse_body = staticmethod(parse_body)

    def _begin(self) -> None:
        self._message = self._partial = _PartialMessage(self._kept)
        self._other_choices: set[int] = set()
        self._ended_choices: set[int] = set()
        self._has_delta = False
        self._has_role = False
        self._lists_content = False
        self._named: dict[Any, bool] = {}
        """The calls that have begun, by their numbers, and whether their name has come."""
        self._others: set[Any] = set()
        """Those of tools that are not functions."""
        self._has_finished = False
        self._id: str | None = None
        self.choice: int | None = None
        """The number of the reply that is read."""
        self.role_at = 0
        """Which event was the first to name the role."""

    def _add_more(self, kind: int, place: Any, text: str) -> None:
        if kind == CALL:
            self._message.calls.add(place, text)
        else:
            self._message.add_text(text)

    def _take_fields(
        self, fields: dict[str, Any], event: Event, shown: list[StreamDelta]
    ) -> int | None:
        data = event.data
        if may_have_halves(data):
            self._message.has_halves = True
        self._lists_content = False
        kind = self._take_chunk(fields, data, shown)
        if self._message.calls.has_objects and not self._repeated:
            self._repeated = find_repeated_keys(data)
        return END if self._has_finished and kind != CALL else kind

    def _take_done(self, shown: list[StreamDelta]) -> int:
        self.done = True
        self._message.flush(shown)
        return END

    def takes_finish(self, finish: str | None, *, is_named: bool) -> bool:
        """Tell whether clients look for calls in a reply that ends so."""
        return finish in _CALL_KEYS or (finish == "stop" and (is_named or self.is_legacy))

    def _has_ended(self) -> bool:
        if self._choices > 1:
            seen = {self.choice, *self._other_choices}
            return bool(self._ended_choices) and self._ended_choices >= seen
        return self.finish is not None

    def _render(self) -> RawReply:
        raw = RawReply(
            message=self._message.render(),
            finish_reason=self.finish,
            usage=self.usage,
            model=self.model,
            id=self._id,
            defects=(
                *choices_ignored(len(self._other_choices)),
                *self._message.defects,
                *self._repeated,
                *self._skipped_defects(),
            ),
        )
        check_reply(raw, has_role=self._has_role)
        return raw

    def write(self, event: Event) -> bytes:
        """Return an event in the form that clients read; content in parts becomes text."""
        return join_content(event.data) if self._lists_content else super().write(event)

    def _take_chunk(self, chunk: dict[str, Any], data: bytes, shown: list[StreamDelta]) -> int:
        if chunk.get("error") or chunk.get("object") == "error":
            raise self._read_error(chunk)
        if self._id is None:
            self._id = text_or_none(chunk.get("id"))
        if self.model is None:
            self.model = text_or_none(chunk.get("model"))
        if chunk.get("usage"):
            self.usage = parse_usage(chunk["usage"]) or self.usage
        choices: Any = chunk.get("choices") or []
        if choices.__class__ is not list:
            return self._refuse_event(data, "its choices are not a list.")
        kind = PASS
        for choice in choices:
            if choice.__class__ is not dict:
                return self._refuse_event(data, "a choice is not an object.")
            kind = self._take_choice(choice, data, shown) or kind
        if len(choices) == 1 and self.finish is None:
            self._look_for_more(choices[0])
        return kind

    def _take_choice(self, choice: dict[str, Any], data: bytes, shown: list[StreamDelta]) -> int:
        index = choice.get("index")
        finish = finish_word(choice.get("finish_reason"))
        if type(index) is int:
            if self.choice is None:
                self.choice = index
            elif index != self.choice:
                if index not in self._other_choices:
                    self._kept.add_part()
                    self._other_choices.add(index)
                self._note_end(finish, index)
                return PASS
        if choice.get("error"):
            raise self._read_error({"error": choice["error"]})
        kind = PASS
        piece: Any = choice.get("delta")
        if piece:
            self._has_delta = True
        elif choice.get("message"):
            # After deltas, a message is the whole said once more.
            self.is_odd = True
            self.has_calls = self.has_calls or b"_call" in data
            kind = CALL
            piece = None if self._has_delta and self._message else choice["message"]
        if piece:
            if piece.__class__ is not dict:
                return self._refuse_event(data, "its delta is not an object.")
            kind = self._take_piece(piece, finish, shown) or kind
        if finish is not None:
            # A plain end does not take back what was said about the end before.
            if self.finish in PLAIN_FINISHES:
                self.finish = finish
            self._message.flush(shown)
            self._note_end(finish, self.choice or 0)
        return kind

    def _look_for_more(self, choice: dict[str, Any]) -> None:
        """Note the text or the arguments of a chunk whose one choice brings nothing else."""
        delta = choice.get("delta")
        if delta.__class__ is not dict or choice.get("index") not in (None, self.choice):
            return
        fields = as_fields(delta)
        content, calls = fields.get("content"), fields.get("tool_calls")
        if bool(content) == bool(calls) or self.is_several or self._message.has_halves:
            return
        if any(value for key, value in fields.items() if key not in _FORM_FIELDS):
            return
        if isinstance(content, str) and content:
            self._more = TEXT, 0, content
        elif isinstance(calls, list) and len(as_list(calls)) == 1 and not self.is_odd:
            entry = as_fields(calls[0])
            index, function = entry.get("index"), as_fields(entry.get("function"))
            arguments = function.get("arguments")
            others = [value for key, value in function.items() if value and key != "arguments"]
            others += [value for key, value in entry.items() if value and key not in _PIECE_FIELDS]
            if type(index) is int and isinstance(arguments, str) and not others:
                self._more = CALL, index, arguments

    def _note_end(self, finish: str | None, index: int) -> None:
        if finish is not None:
            self._ended_choices.add(index)
            is_own = index == (self.choice or 0)
            is_last = len(self._ended_choices) >= self._choices
            self._has_finished = is_last if self._choices > 1 else self._has_finished or is_own

    def _take_piece(
        self, piece: dict[str, Any], finish: str | None, shown: list[StreamDelta]
    ) -> int:
        if "role" in piece:
            role = piece["role"]
            self.role_at = self.role_at or self.events
            if role:
                if not self._is_passed:
                    check_role(role)
                self._has_role = True
        has_calls = any(piece.get(key) for key in _CALL_KEYS)
        if self.finish is not None:
            if has_calls:
                raise self._refuse_order("has a call after the finish")
            if finish is None and any(piece.get(key) for key in _TEXT_KEYS):
                raise self._refuse_order("has text after the finish")
        if piece.get("content").__class__ is list:
            self._lists_content = True
        self._message.take(piece, shown)
        if has_calls:
            self.has_calls = True
            if self._is_passed:
                self._look_at_calls(piece)
            return CALL
        return PASS

    def _look_at_calls(self, delta: dict[str, Any]) -> None:
        """Find out whether clients understand the pieces of calls as they are."""
        calls: Any = delta.get("tool_calls")
        if calls:
            entries = as_list(calls) if isinstance(calls, list) else []
            is_usual = bool(entries) and not self.is_legacy
            self.is_odd = not (all(map(self._is_usual_piece, entries)) and is_usual) or self.is_odd
            return
        function = as_fields(delta.get("function_call"))
        is_again = bool(function.get("name")) and self._named.get(None, False)
        self._named[None] = self._named.get(None, False) or bool(function.get("name"))
        is_text = isinstance(function.get("arguments"), str | None)
        self.is_odd = self.is_odd or is_again or not (is_text and self.is_legacy)

    def _is_usual_piece(self, entry: Any) -> bool:
        fields = as_fields(entry)
        index, call_id, function = fields.get("index"), fields.get("id"), fields.get("function")
        is_usual = type(index) is int and isinstance(call_id, str | None)
        if type(index) is not int:
            return False
        if index not in self._named:
            is_usual = is_usual and index == len(self._named)
            if not fields.get("type"):
                self.untyped.append(len(self._named))
                is_usual = False
            self._named[index] = False
            if fields.get("type") == "custom" and function is None:
                self._others.add(index)
        elif call_id:
            is_usual = False
        if not isinstance(function, dict):
            return is_usual and function is None and index in self._others
        own = as_fields(function)
        if own.get("name"):
            is_usual = is_usual and not self._named[index]
            self._named[index] = True
        return is_usual and isinstance(own.get("arguments"), str | None)


def join_content(data: bytes) -> bytes:
    """Return a chunk whose content is text, where it came in parts."""
    fields = fields_of(data)
    joined: list[dict[str, Any]] = []
    for item in as_list(fields.get("choices")):
        choice = as_fields(item)
        delta = as_fields(choice.get("delta"))
        content = delta.get("content")
        if isinstance(content, list):
            text, thought, _ = split_parts(as_list(content))
            delta = {**delta, "content": text or None}
            if thought:
                delta["reasoning_content"] = thought
            choice = {**choice, "delta": delta}
        joined.append(choice)
    return event_of({**fields, "choices": joined})
