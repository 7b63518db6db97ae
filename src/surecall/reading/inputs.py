"""A reply in whatever form somebody has it: text, JSON, an object of an SDK, a recorded stream."""

import re
from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.records import Defect, Reply, clip
from surecall.text import (
    SSEEvent,
    SSEReader,
    decode,
    decode_noting,
    encode,
    repair_surrogates,
    repair_surrogates_in,
)
from surecall.wire import DEFAULT_PROTOCOL, ChatCompletions, RawReply, find_protocol
from surecall.wire.replies import finish_word

from .documents import (
    Document,
    DocumentKind,
    tell_damaged,
    tell_document,
    tell_event,
    tell_other_role,
)

InputKind = DocumentKind | Literal["text"]
"""What was given: the text of a model, or one of the documents of a wire format."""

_HINT: Final = (
    "Give the model's text, or a message, a choice, a body or the recorded stream of a chat "
    "completion, a response, a message or generated content: as an object, as JSON, or as an "
    "object of an SDK."
)
_FIELD_STARTS: Final = ("data:", "event:", "id:", "retry:", ":")
_MARKS: Final = re.compile(
    r'"(?:candidates|choices|error|message|object|output|parts|role|tool_calls|type)"\s*+:'
)
_BLANKS: Final = "\ufeff \t\r\n"
_MAX_HEAD: Final = 4096
_MAX_EVENTS: Final = 20
_DONE: Final = "[DONE]"
_CHOICES: Final = {"chat_completions": "choices", "gemini": "candidates"}
_MESSAGE: Final = Document("message")
_PLAIN: Final = (str, NoneType, int, float, bool, bytes, type)
_chat: Final = ChatCompletions()


class ReplyInput(Struct, frozen=True, kw_only=True):
    """Something that holds a reply, and what it is."""

    kind: InputKind
    protocol: str = DEFAULT_PROTOCOL
    """The wire format, where it has one."""
    value: Any
    """Text of a model as it is; a document as bytes, or a message as an object."""
    has_halves: bool = False
    """Whether halves of characters were replaced in it."""


def tell_input(given: Any, protocol: str | None = None) -> ReplyInput:
    """Find out what was given, from its shape or with the wire format it is said to have.

    Args:
        given: Text, bytes, an object, an object of an SDK, or a list of events.
        protocol: The wire format, where the shape does not tell it.

    Raises:
        ConfigError: It is nothing that could hold a reply, or there is no such wire format.
    """
    if protocol is not None:
        find_protocol(protocol)
    if isinstance(given, str):
        return _tell_text(given, given, protocol)
    if isinstance(given, bytes | bytearray):
        return _tell_bytes(bytes(given), protocol)
    if given.__class__ is dict:
        known = _tell_plain(given, protocol)
        if known is not None:
            return known
    value = to_plain(given)
    if isinstance(value, dict):
        return _tell_object(as_fields(value), protocol)
    if isinstance(value, list):
        return _tell_list(as_list(value), protocol)
    raise _refuse(f"An object of type {type(given).__name__} is not a reply that can be read.")


def parse_input(found: ReplyInput, choice: int | None = None) -> Reply:
    """Return the reply in what was given.

    Args:
        found: What was given.
        choice: Which of several choices or candidates, counted from 0; by default the first.

    Raises:
        ProviderError: It is a document without a whole reply; the code says in which way.
        ConfigError: There is no such choice.
    """
    if found.kind == "text":
        _check_choice(choice, 1)
        return Reply(content=found.value)
    reply, is_repeated = _parse_document(found, choice)
    notes: tuple[Defect, ...] = ()
    if is_repeated:
        notes = (Defect(Code.DUPLICATE_KEY, "A key of the document has differing values."),)
    if found.has_halves:
        notes = (
            *notes,
            Defect(Code.LONE_SURROGATE, "A text of the reply has half of a character."),
        )
    return replace(reply, defects=(*reply.defects, *notes)) if notes else reply


def _parse_document(found: ReplyInput, choice: int | None) -> tuple[Reply, bool]:
    """Return the reply in a document, and whether a key of that document was repeated."""
    value, is_repeated = found.value, False
    if isinstance(value, dict):
        message = as_fields(value)
        _check_choice(choice, 1)
        finish = finish_word(message.get("finish_reason"))
        return _chat.parse_message(RawReply(message=message, finish_reason=finish)), False
    protocol = find_protocol(found.protocol)
    if choice is not None:
        value, is_repeated = _pick_choice(found, choice)
    if found.kind == "stream":
        folder = protocol.open_stream()
        folder.feed(value)
        return protocol.parse_message(folder.close()), is_repeated
    return protocol.parse_message(protocol.parse_body(value)), is_repeated


# Text


def _tell_bytes(data: bytes, protocol: str | None) -> ReplyInput:
    found = _tell_text(data.decode("utf-8", "replace"), data, protocol)
    return found if found.kind != "text" else replace(found, value=_decode_text(data))


def _tell_text(text: str, given: str | bytes, protocol: str | None) -> ReplyInput:
    """Tell a document from the text of a model, which may be JSON of its own."""
    head = text[:_MAX_HEAD].lstrip(_BLANKS)
    found: ReplyInput | None = None
    if head.startswith(_FIELD_STARTS):
        found = _tell_events(_to_bytes(given), protocol)
    elif head[:1] in ("{", "[") and (protocol is not None or _MARKS.search(text)):
        found = _tell_json(text, given, protocol)
    return found or ReplyInput(kind="text", value=text)


def _tell_json(text: str, given: str | bytes, protocol: str | None) -> ReplyInput | None:
    data = _to_bytes(given)
    try:
        value = decode(data, surrogates="replace")
    except JSONTextError:
        return _tell_lines(data, protocol) or _tell_cut(text, data, protocol)
    if isinstance(value, list):
        items = as_list(value)
        told = _told(items)
        if told and protocol in (None, told) and find_protocol(told).traits.streams_bodies:
            return ReplyInput(kind="body", protocol=told, value=data)
        return _tell_chunks(items, protocol)
    if not isinstance(value, dict):
        return None
    fields = as_fields(value)
    found = tell_document(fields, is_text=True)
    if role := tell_other_role(fields):
        if isinstance(given, str) and protocol is None:
            return None  # a model may write such an object, and text of a model is never refused
        raise _refuse_role(role)
    if protocol is not None and (found is None or found.protocol != protocol):
        found = Document("body", protocol)
    return None if found is None else _as_input(found, data)


def _tell_cut(text: str, data: bytes, protocol: str | None) -> ReplyInput | None:
    """Tell a document that is not JSON any more; nothing is put around it that could mend it."""
    found = tell_damaged(text[:_MAX_HEAD])
    if found is None and protocol is not None:
        found = Document("body", protocol)
    if found is None:
        return None
    return ReplyInput(kind=found.kind, protocol=found.protocol, value=data)


def _tell_events(data: bytes, protocol: str | None) -> ReplyInput | None:
    """Tell a stream of events from text that only looks like one."""
    data = _part_events(data)
    has_object = False
    for event in _first_events(data):
        if event.data.strip() == _DONE:
            return _as_stream(data, protocol or DEFAULT_PROTOCOL)
        fields = _fields_of(event.data)
        has_object = has_object or bool(fields)
        told = protocol or tell_event({"type": event.event, **fields})
        if told is not None and fields:
            return _as_stream(data, told)
        if told is None and _tell_error_event(fields):
            return _as_stream(data, DEFAULT_PROTOCOL)
    cut = tell_damaged(data[:_MAX_HEAD].decode("utf-8", "replace"))
    if cut is not None and not has_object:
        return _as_stream(data, protocol or cut.protocol)
    return None


def _tell_lines(data: bytes, protocol: str | None) -> ReplyInput | None:
    """Tell a stream that was kept as one JSON object a line."""
    lines = [line for line in data.splitlines() if line.strip()]
    objects = [_fields_of(line) for line in lines[:_MAX_EVENTS]]
    if len(objects) < 2 or not objects[0] or not objects[1]:
        return None
    told = protocol or _told(objects)
    events = b"".join(b"data: " + line + b"\n\n" for line in lines)
    return None if told is None else _as_stream(events, told)


def _first_events(data: bytes) -> Iterator[SSEEvent]:
    """Yield the first events; what is too large for one ends them."""
    reader = SSEReader()
    seen = 0
    for start in range(0, len(data), _MAX_HEAD * 16):
        for event in reader.feed(data[start : start + _MAX_HEAD * 16]):
            yield event
            seen += 1
            if seen >= _MAX_EVENTS:
                return
    yield from reader.close()


def _part_events(data: bytes) -> bytes:
    """Put blank lines between events that were kept without them."""
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = data.splitlines()
    if any(not line.strip() for line in lines):
        return data
    first = next((line for line in lines if line.startswith(b"data:")), b"")
    if not _fields_of(first[5:]):
        return data
    return b"".join(line + (b"\n\n" if line.startswith(b"data:") else b"\n") for line in lines)


def _tell_error_event(fields: dict[str, Any]) -> bool:
    found = tell_document(fields, is_text=True)
    return found is not None and bool(fields.get("error"))


def _fields_of(text: bytes | str) -> dict[str, Any]:
    try:
        return as_fields(decode(text, surrogates="replace"))
    except JSONTextError:
        return {}


# Objects


def _tell_plain(given: dict[str, Any], protocol: str | None) -> ReplyInput | None:
    """Tell a document that holds no object of an SDK, as most do, by what it is as JSON."""
    try:
        data = encode(given)
        fields = as_fields(decode(data))
    except JSONTextError:
        return None
    found = _tell_fields(fields, protocol)
    if found is None or found.kind == "stream" or tell_other_role(fields):
        return None
    if found == _MESSAGE:
        return ReplyInput(kind="message", value=fields) if fields == given else None
    return _as_input(found, data)


def _tell_fields(fields: dict[str, Any], protocol: str | None) -> Document | None:
    found = tell_document(fields, is_text=False)
    if protocol is not None and (found is None or found.protocol != protocol):
        return Document("body", protocol)
    return found


def _tell_object(fields: dict[str, Any], protocol: str | None) -> ReplyInput:
    if role := tell_other_role(fields):
        raise _refuse_role(role)
    found = _tell_fields(fields, protocol)
    if found is None:
        keys = ", ".join(clip(str(key), 40) for key in list(fields)[:5]) or "nothing"
        raise _refuse(f"An object with {keys} is not a reply that can be read.")
    whole = _without_halves(fields)
    if found == _MESSAGE:
        return ReplyInput(kind="message", value=whole, has_halves=whole is not fields)
    if found.kind == "stream":
        known = _as_stream(_render_events([whole]), found.protocol)
    else:
        known = _as_input(found, encode(whole))
    return known if whole is fields else replace(known, has_halves=True)


def _without_halves(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without halves of characters, which no JSON can have."""
    try:
        encode(fields)
    except JSONTextError as error:
        if error.code == Code.LONE_SURROGATE:
            return repair_surrogates_in(fields)
    return fields


def _tell_list(items: list[Any], protocol: str | None) -> ReplyInput:
    """Tell a list of events, or of the lines or chunks that a stream came in."""
    found = None
    if items and all(isinstance(item, str | bytes) for item in items):
        parts = [_to_bytes(item) for item in items]
        joint = b"" if any(b"\n" in part for part in parts) else b"\n"
        data = joint.join(parts)
        found = _tell_bytes(data, protocol)
    elif items:
        found = _tell_chunks(items, protocol)
    if found is None or found.kind != "stream":
        raise _refuse("A list is only read when it holds the events of one stream.")
    return found


def _tell_chunks(items: list[Any], protocol: str | None) -> ReplyInput | None:
    told = protocol or _told(items)
    if told is None or not all(isinstance(item, dict) for item in items):
        return None
    return _as_stream(_render_events(items), told)


def _told(items: list[Any]) -> str | None:
    """Return the wire format that the first events tell."""
    found = (tell_event(as_fields(item)) for item in items[:_MAX_EVENTS])
    return next((protocol for protocol in found if protocol is not None), None)


def _render_events(items: list[Any]) -> bytes:
    return b"".join(b"data: " + encode(item) + b"\n\n" for item in items)


def to_plain(value: Any, depth: int = 0) -> Any:
    """Return a value with every object of an SDK in it as plain data.

    Raises:
        ConfigError: An object cannot be written as data, or they nest without end.
    """
    if value.__class__ in _PLAIN or isinstance(value, _PLAIN):
        return cast("Any", value)
    if depth > MAX_JSON_DEPTH:
        raise _refuse(f"The reply has objects in one another, more than {MAX_JSON_DEPTH} deep.")
    if value.__class__ is dict or isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {key: to_plain(item, depth + 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [to_plain(item, depth + 1) for item in cast("list[Any]", value)]
    dumped = _dump(value)
    return value if dumped is None else to_plain(dumped, depth + 1)


def _dump(value: Any) -> Any:
    for name, options in (("model_dump", {"mode": "json", "warnings": False}), ("to_dict", {})):
        method = getattr(value, name, None)
        if callable(method):
            try:
                return method(**options)
            except Exception as error:
                kind = type(value).__name__
                raise _refuse(
                    f"{kind}.{name}() failed: {type(error).__name__}: {clip(str(error))}"
                ) from error
    return None


# Choices


def _pick_choice(found: ReplyInput, choice: int) -> tuple[bytes, bool]:
    """Return a document with one choice only, and whether a key in it was repeated."""
    key = _CHOICES.get(found.protocol)
    if key is None or found.kind not in ("body", "stream"):
        _check_choice(choice, 1)
        return found.value, False
    if found.kind == "body":
        decoded = decode_noting(found.value, surrogates="replace")
        chunks = [decoded.value]
        is_list = isinstance(decoded.value, list)
        if is_list:
            chunks = as_list(decoded.value)
        kept, count = _keep_choice(chunks, key, choice)
        _check_choice(choice, count)
        return encode(kept if is_list else kept[0]), bool(decoded.duplicates)
    reader = SSEReader()
    events = [event.data for event in (*reader.feed(found.value), *reader.close())]
    decoded_events = [decode_noting(data) for data in events if _fields_of(data)]
    kept, count = _keep_choice([event.value for event in decoded_events], key, choice)
    _check_choice(choice, count)
    ended = b"data: [DONE]\n\n" if _DONE in events else b""
    is_repeated = any(event.duplicates for event in decoded_events)
    return _render_events(kept) + ended, is_repeated


def _keep_choice(chunks: list[Any], key: str, choice: int) -> tuple[list[Any], int]:
    """Return the chunks with one choice only, and how many choices there were."""
    kept: list[Any] = []
    count = 0
    for chunk in chunks:
        fields = as_fields(chunk)
        entries = as_list(fields.get(key))
        numbers = [_number_of(entry, at) for at, entry in enumerate(entries)]
        if len(set(numbers)) < len(numbers):
            numbers = list(range(len(entries)))
        count = max([count, *(number + 1 for number in numbers)])
        pairs = zip(numbers, entries, strict=True)
        chosen = [entry for number, entry in pairs if number == choice]
        kept.append({**fields, key: chosen} if entries else chunk)
    return kept, count


def _number_of(entry: Any, position: int) -> int:
    index = as_fields(entry).get("index")
    return index if type(index) is int and index >= 0 else position


def _check_choice(choice: int | None, count: int) -> None:
    if choice is None or (type(choice) is int and 0 <= choice < max(count, 1)):
        return
    raise ConfigError(
        Code.INVALID_OPTION,
        f"there is no choice {choice!r:.40}: the reply has {count}.",
        hint="Choices are counted from 0.",
    )


# Shared


def _as_input(found: Document, data: bytes) -> ReplyInput:
    """Return a document as the body that it would come in, byte for byte."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    key = _CHOICES.get(found.protocol)
    if found.kind == "stream":
        data = b"data: " + b" ".join(data.splitlines()) + b"\n\n"
    elif key is not None:
        if found.kind == "message":
            inner = b"message" if key == "choices" else b"content"
            data = b'{"' + inner + b'":' + data + b"}"
        if found.kind in ("message", "choice"):
            data = b'{"' + key.encode() + b'":[' + data + b"]}"
    return ReplyInput(kind=found.kind, protocol=found.protocol, value=data)


def _as_stream(data: bytes, protocol: str) -> ReplyInput:
    return ReplyInput(kind="stream", protocol=protocol, value=data)


def _to_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else repair_surrogates(text).encode("utf-8")


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ConfigError(
            Code.INVALID_UTF8,
            f"the text is not UTF-8 at byte {error.start}.",
            hint="Save it as UTF-8; nothing is replaced silently.",
        ) from error


def _refuse(message: str) -> ConfigError:
    return ConfigError(Code.INVALID_REPLY, message, hint=_HINT)


def _refuse_role(role: str) -> ConfigError:
    return ConfigError(
        Code.INVALID_MESSAGE,
        f"the message has the role {role!r}; only what a model said is read.",
        hint="Give the assistant message.",
    )
