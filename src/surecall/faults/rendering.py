"""A planned reply as one of the four wire formats writes it, with everything that is wrong with it.

The server side of a format writes a clean reply only, so it is given marks in place of what may be
broken: ids, names, arguments and empty texts. Then each mark is replaced by what is planned.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from surecall.base.errors import Code, JSONTextError, ProviderStatusError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import RawCall, Reply, Usage
from surecall.models.transport.scripted import render_chunks, render_completion
from surecall.text import decode, encode_text, render_event
from surecall.wire import ChatCompletions
from surecall.wire.gemini.replies import FINISH_REASONS
from surecall.wire.messages.replies import STOP_REASONS

from .replies import Occasion, PlannedReply

CHAT: Final = ChatCompletions().name

_ID_PREFIXES: Final = {CHAT: "chatcmpl-", "messages": "msg_", "responses": "resp_"}
_PIECE_CHARS: Final = 12
_EMPTY_TEXT: Final = "fault-empty"
_MARK: Final = "fault-arguments-of"
_CLOCKS: Final = frozenset({"created", "created_at", "completed_at"})
_TEXT_KEYS: Final = frozenset({"delta", "partial_json"})
_OBJECT_KEYS: Final = frozenset({"args", "input"})
_REASON_KEYS: Final = {"messages": "stop_reason", "gemini": "finishReason"}
_STOP_REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    "messages": {**STOP_REASONS, "tool_calls": "tool_use"},
    "gemini": FINISH_REASONS,
}


def render_body(reply: PlannedReply, occasion: Occasion) -> Any:
    """Return the whole body of a reply."""
    if occasion.protocol.name == CHAT:
        return _render_completion(reply, occasion)
    marked = occasion.protocol.render_reply(_mark_reply(reply, occasion), occasion.settings)
    return _Marks(reply, occasion).fill(marked)


def render_reply_chunks(reply: PlannedReply, occasion: Occasion) -> list[Any]:
    """Return the chunks of a streamed chat completion."""
    return render_chunks(_render_completion(reply, occasion))


def render_chunk(chunk: Any) -> bytes:
    """Return a chunk of a streamed chat completion as an event; text stays as it is."""
    return render_event(chunk if isinstance(chunk, str) else encode_text(chunk))


def render_events(reply: PlannedReply, occasion: Occasion) -> list[bytes]:
    """Return the events of a streamed reply in a format other than chat completions."""
    clean = _mark_reply(reply, occasion)
    writer = occasion.protocol.open_writer(
        model=occasion.request.model, reply_id=clean.id, request=occasion.settings or None
    )
    written = [writer.begin(), writer.reasoning(clean.reasoning or "", clean.extra)]
    written += [writer.text(piece) for piece in _cut(clean.content or "")]
    written += [*(writer.call(call) for call in clean.calls), writer.end(clean)]
    marks = _Marks(reply, occasion)
    events = [
        event
        for name, value in _split_events(b"".join(written))
        for event in _split_arguments(name, marks.fill(value))
    ]
    return _write_numbered(events)


def render_failure(occasion: Occasion, status: int, message: str, *, number: int) -> list[bytes]:
    """Return the events that break a stream off; the first is the event of this number.

    In chat completions it is what routers send, which says the status.
    """
    if occasion.protocol.name == CHAT:
        return [render_chunk({"error": {"message": message, "code": status}})]
    error = ProviderStatusError(
        Code.HTTP_STATUS, message, status=status, provider_code="server_error"
    )
    model, reply_id = occasion.request.model, _reply_id(occasion)
    writer = occasion.protocol.open_writer(model=model, reply_id=reply_id)
    marks = _Marks(occasion.reply, occasion)
    events = [(name, marks.fill(value)) for name, value in _split_events(writer.fail(error))]
    return _write_numbered(events, number)


def _render_completion(reply: PlannedReply, occasion: Occasion) -> dict[str, Any]:
    completion = render_completion(reply.message, reply.finish_reason, reply.usage)
    return completion | {"id": _reply_id(occasion), "model": occasion.request.model}


def _mark_reply(reply: PlannedReply, occasion: Occasion) -> Reply:
    """Return the planned reply as a clean one, with marks for what may be broken in it."""
    content = reply.message.get("content")
    thought = reply.message.get("reasoning_content") or reply.message.get("reasoning")
    counts = reply.usage or {}
    return Reply(
        content=(content or _EMPTY_TEXT) if isinstance(content, str) else None,
        reasoning=thought if isinstance(thought, str) else None,
        calls=tuple(
            _mark_call(index, as_fields(call.get("function")), occasion)
            for index, call in enumerate(reply.calls)
        ),
        finish_reason=reply.finish_reason,
        usage=Usage(
            input_tokens=counts.get("prompt_tokens", 0),
            output_tokens=counts.get("completion_tokens", 0),
            total_tokens=counts.get("total_tokens", 0),
        ),
        model=occasion.request.model,
        id=_reply_id(occasion),
    )


def _mark_call(index: int, function: dict[str, Any], occasion: Occasion) -> RawCall:
    """Return a call with marks; one of a tool that is not a function shows the writer its name."""
    name, arguments = _mark("name", index), {_MARK: index}
    given = function.get("name")
    if occasion.settings and any(tool.name == given for tool in occasion.request.tools):
        name, own = given, as_fields(_as_value(function.get("arguments")))
        arguments = own if own.keys() == {"input"} else arguments  # the text of a custom tool
    return RawCall(id=_mark("id", index), name=name, arguments=arguments)


def _reply_id(occasion: Occasion) -> str:
    return _ID_PREFIXES.get(occasion.protocol.name, "") + occasion.reply_id


def _mark(what: str, index: int) -> str:
    return f"fault-call-{what}-{index}"


class _Marks:
    """Puts what a reply has in the places of its marks."""

    def __init__(self, reply: PlannedReply, occasion: Occasion) -> None:
        self._texts: dict[str, Any] = {_EMPTY_TEXT: ""}
        self._arguments: dict[str, Any] = {}
        for index, call in enumerate(reply.calls):
            function = as_fields(call.get("function"))
            self._texts[_mark("id", index)] = call.get("id", UNSET)
            self._texts[_mark("name", index)] = function.get("name", UNSET)
            self._arguments[encode_text({_MARK: index})] = function.get("arguments", UNSET)
        name = occasion.protocol.name
        reason = reply.finish_reason or ""
        self._reason_key = _REASON_KEYS.get(name)
        self._reason = _STOP_REASONS.get(name, {}).get(reason, reason)

    def fill(self, value: Any, key: str = "") -> Any:
        """Return a value with every mark in it replaced."""
        if isinstance(value, str):
            if value in self._arguments:
                return _as_text(self._arguments[value], key)
            return self._texts.get(value, value)
        if isinstance(value, list):
            return [self.fill(item) for item in as_list(value)]
        if not isinstance(value, dict):
            return value
        fields = as_fields(value)
        if key in _OBJECT_KEYS and _MARK in fields:
            return _as_value(self._arguments[encode_text(fields)])
        members = {name: self._member(name, item) for name, item in fields.items()}
        return {name: item for name, item in members.items() if item is not UNSET}

    def _member(self, name: str, value: Any) -> Any:
        if name in _CLOCKS:
            return 0
        if name == self._reason_key and value is not None:
            return self._reason
        return self.fill(value, name)


def _as_text(arguments: Any, key: str) -> Any:
    """Return arguments for a place that holds their text; a piece of a stream can hold no other."""
    if isinstance(arguments, str) or key not in _TEXT_KEYS:
        return arguments
    return "" if arguments is UNSET else encode_text(arguments)


def _as_value(arguments: Any) -> Any:
    """Return arguments for a place that holds an object; any other text stays text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = decode(arguments)
        return value if encode_text(value) == arguments else arguments
    except JSONTextError:
        return arguments


def _split_events(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the value of each event."""
    for event in data.split(b"\n\n"):
        lines = event.split(b"\n")
        if lines[-1].startswith(b"data: "):
            name = lines[0].removeprefix(b"event: ").decode() if len(lines) > 1 else ""
            yield name, decode(lines[-1].removeprefix(b"data: "))


def _split_arguments(name: str, value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield an event with the arguments of a call as several small ones."""
    delta = as_fields(value.get("delta"))
    if name.endswith("function_call_arguments.delta"):
        yield from ((name, {**value, "delta": piece}) for piece in _cut(str(value["delta"])))
    elif "partial_json" in delta:
        for piece in _cut(str(delta["partial_json"])) or [""]:
            yield name, {**value, "delta": {**delta, "partial_json": piece}}
    else:
        yield name, value


def _write_numbered(events: list[tuple[str, Any]], first: int = 0) -> list[bytes]:
    """Return events as bytes; where they carry numbers, these are in order again."""
    written: list[bytes] = []
    for number, (name, value) in enumerate(events, first):
        if "sequence_number" in value:
            value = {**value, "sequence_number": number}
        written.append(render_event(encode_text(value), event=name or None))
    return written


def _cut(text: str) -> list[str]:
    return [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)]
