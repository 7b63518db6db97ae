"""Which document a JSON value is: a body, a choice, a message or an event of a wire format.

A model writes JSON, too: a call, an answer, even an object with `choices`. So what came as text is
only taken for a document when it has marks that no call has; an object that a program holds was not
written by a model, and is taken for what it is most like.

An error may be such a document, too: some servers send what they could not parse inside it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, cast

from surecall.base.errors import Code, JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Defect, Reading, Receipt, clip
from surecall.base.redaction import MASK
from surecall.calls import ToolNames
from surecall.text import decode
from surecall.wire import DEFAULT_PROTOCOL, RawReply, find_protocol

DocumentKind = Literal["message", "choice", "body", "stream"]


class Document(NamedTuple):
    """What a JSON value is, and of which wire format."""

    kind: DocumentKind
    protocol: str = DEFAULT_PROTOCOL


_CHAT_BODY: Final = Document("body")
OTHER_ROLES: Final = frozenset({"developer", "function", "system", "tool", "user"})
"""Who says a message that no model wrote."""
_MESSAGE_EVENT: Final = lazy_pattern("(?:message|content_block)_(?:start|delta|stop)")
_RESPONSE_EVENT: Final = "response."
_RESPONSE_MARKS: Final = frozenset(
    {"item", "item_id", "output_index", "response", "sequence_number"}
)
_CHUNK: Final = "chat.completion.chunk"
_COMPLETION: Final = "chat.completion"
_OUTPUT_ITEMS: Final = frozenset({"function_call", "message", "reasoning"})
_CHOICE_MARKS: Final = frozenset({"finish_reason", "logprobs", "message"})
_CANDIDATE_MARKS: Final = frozenset({"content", "finishReason", "finish_reason"})
_DELTA: Final = frozenset({"delta"})
_CHUNK_MARKS: Final = frozenset(
    {"modelVersion", "model_version", "responseId", "response_id", "usageMetadata"}
)
_ERROR_MARKS: Final = frozenset({"code", "status", "type"})
_DAMAGED: Final = (
    (lazy_pattern(r'"choices":\[\{"(?:delta|finish_reason|index|message)"'), Document("body")),
    (lazy_pattern(r'"candidates":\[\{"(?:content|finish)'), Document("body", "gemini")),
    (lazy_pattern(r'"object":"response"[,}]'), Document("body", "responses")),
    (lazy_pattern(r'"type":"message","role":"assistant"'), Document("body", "messages")),
    (lazy_pattern(r'^\{"role":"assistant"'), Document("message")),
)
_BLANKS: Final = lazy_pattern(r"\s++")


def tell_document(fields: dict[str, Any], *, is_text: bool) -> Document | None:
    """Return what an object is, or None when it is none of the documents.

    Args:
        fields: The object.
        is_text: Whether it came as text, which a model may have written.
    """
    if _has_messages(fields):
        return _CHAT_BODY
    protocol = tell_event(fields)
    if protocol is not None and not find_protocol(protocol).traits.streams_bodies:
        return Document("stream", protocol)
    found = _tell_body(fields) or _tell_error(fields) or _tell_part(fields)
    return found or (None if is_text else _tell_loosely(fields))


def tell_event(fields: dict[str, Any]) -> str | None:
    """Return the wire format of one event of a stream, or None when it tells nothing."""
    kind = fields.get("type")
    if isinstance(kind, str):
        if _MESSAGE_EVENT.fullmatch(kind):
            return "messages"
        if kind.startswith(_RESPONSE_EVENT) and not _RESPONSE_MARKS.isdisjoint(fields):
            return "responses"
    if fields.get("object") == _CHUNK or _entries_have(fields.get("choices"), _DELTA):
        return "chat_completions"
    if _has_messages(fields):
        return "chat_completions"
    if _entries_have(fields.get("candidates"), _CANDIDATE_MARKS):
        return "gemini"
    return "gemini" if not fields.keys().isdisjoint(_CHUNK_MARKS) else None


def tell_damaged(head: str) -> Document | None:
    """Return which document the beginning of text is from that is not valid JSON."""
    packed = _BLANKS.sub("", head)
    return next((found for pattern, found in _DAMAGED if pattern.search(packed)), None)


def tell_other_role(fields: dict[str, Any]) -> str:
    """Return the role of a message that no model wrote; empty when it is none."""
    role = fields.get("role")
    is_message = isinstance(role, str) and role in OTHER_ROLES and "content" in fields
    return str(role) if is_message else ""


def _tell_body(fields: dict[str, Any]) -> Document | None:
    said = fields.get("object")
    if said == _COMPLETION and "choices" in fields:
        return _CHAT_BODY
    if _entries_have(fields.get("candidates"), _CANDIDATE_MARKS):
        return Document("body", "gemini")
    if not as_list(fields.get("candidates")) and _member(fields, "promptFeedback"):
        return Document("body", "gemini")
    if said == "response" or ("status" in fields and _has_items(fields.get("output"))):
        return Document("body", "responses")
    is_blocks = fields.get("type") == "message" or "stop_reason" in fields
    if fields.get("role") == "assistant" and is_blocks and "content" in fields:
        return Document("body", "messages")
    return None


def _tell_error(fields: dict[str, Any]) -> Document | None:
    """Tell an error that a provider answered with: it has a message, and a code of some kind."""
    error = as_fields(fields.get("error"))
    if fields.get("type") == "error" and error:
        return Document("body", "messages")
    is_coded = isinstance(error.get("message"), str) and not error.keys().isdisjoint(_ERROR_MARKS)
    return Document("body") if is_coded else None


def _tell_part(fields: dict[str, Any]) -> Document | None:
    """Tell a choice, a candidate or a message from other objects."""
    content = as_fields(fields.get("content"))
    if isinstance(content.get("parts"), list) and _entries_have([fields], _CANDIDATE_MARKS):
        return Document("choice", "gemini")
    if fields.get("role") == "model" and isinstance(fields.get("parts"), list):
        return Document("message", "gemini")
    if as_fields(fields.get("message")).get("role") == "assistant":
        return Document("choice")
    if fields.get("role") == "assistant":
        has_blocks = _has_calls(fields.get("content")) and not fields.get("tool_calls")
        return Document("message", "messages" if has_blocks else DEFAULT_PROTOCOL)
    calls = as_list(fields.get("tool_calls"))
    if calls and "name" not in fields and all(map(_is_chat_call, calls)):
        return Document("message")
    return None


def _tell_loosely(fields: dict[str, Any]) -> Document | None:
    """Tell an object that a program holds by the one field that every such document has."""
    for key, found in _BY_FIELD.items():
        if fields.get(key) is not None:
            return found
    if isinstance(fields.get("message"), dict):
        return Document("choice")
    is_message = any(key in fields for key in ("content", "function_call", "tool_calls"))
    return Document("message") if is_message else None


_BY_FIELD: Final = {
    "choices": Document("body"),
    "candidates": Document("body", "gemini"),
    "output": Document("body", "responses"),
    "parts": Document("message", "gemini"),
    "error": Document("body"),
}


def _has_messages(fields: dict[str, Any]) -> bool:
    choices = fields.get("choices")
    if not choices:
        return False
    return _entries_have(choices, _CHOICE_MARKS) and not _entries_have(choices, _DELTA)


def _has_items(output: Any) -> bool:
    items = [as_fields(item).get("type") for item in as_list(output)]
    return any(isinstance(kind, str) and kind in _OUTPUT_ITEMS for kind in items)


def _has_calls(content: Any) -> bool:
    return any(as_fields(block).get("type") == "tool_use" for block in as_list(content))


def _is_chat_call(entry: Any) -> bool:
    """Tell a call of a provider, which has an id, from one that a model wrote as JSON."""
    call = as_fields(entry)
    return isinstance(call.get("id"), str) and isinstance(call.get("function"), dict)


def _entries_have(entries: Any, marks: frozenset[str]) -> bool:
    return any(not marks.isdisjoint(as_fields(entry)) for entry in as_list(entries))


def _member(fields: dict[str, Any], name: str) -> Any:
    snake = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)
    return fields.get(name) or fields.get(snake)


# A generation that the server could not parse, and sent inside its error

_OWN_FIELD: Final = "failed_generation"
_RAW: Final = ("error parsing tool call: raw='", "', err=")
_AT_POSITION: Final = "failed to parse input at pos "
_MAX_DIGITS: Final = 20
_CLIPPED: Final = " characters)"
_STATUSES: Final = frozenset({400, 422, 500})


def find_generation(body: str) -> str | None:
    """Return what the model wrote, out of the body of an error, or `None`.

    Only the forms in which servers are known to send it are looked for, each at the place where
    its server puts it: an error may also quote the request, which is not the model's.
    """
    if MASK in body:
        return None  # a secret was taken out: what is left is not what the model wrote
    try:
        document = decode(body)
    except JSONTextError:
        cut = body.lstrip().startswith("{") or body.endswith(_CLIPPED)
        return None if cut else _in_message(body.strip())
    for part in _error_parts(document):
        generation = part.get(_OWN_FIELD)
        if isinstance(generation, str) and generation.strip():
            return generation
    for message in _error_messages(document):
        generation = _in_message(message)
        if generation is not None:
            return generation
    return None


def rescue_reply(status: int | None, body: str | None) -> RawReply | None:
    """Return the generation in an error as the reply it would have been, or `None`."""
    generation = find_generation(body) if body and status in _STATUSES else None
    if generation is None:
        return None
    note = f"The provider answered {status}, with what the model wrote inside its error."
    return RawReply(
        message={"role": "assistant", "content": generation},
        defects=(Defect(Code.REPLY_IN_ERROR_BODY, note),),
    )


def may_be_rescued(reading: Reading, tools: ToolNames) -> bool:
    """Tell whether a reply from an error is nothing but whole calls of offered tools.

    Text beside the calls may be the rest of a value that quotes a call, so it is not trusted.
    """
    if not reading.calls or reading.content.strip():
        return False
    return all(
        call.state == "whole" and call.certainty == "certain" and call.name in tools.names
        for call in reading.calls
    )


def rescue_receipts(raw: RawReply) -> tuple[Receipt, ...]:
    """Return the receipt of a reply that was taken from an error."""
    return tuple(
        Receipt(
            "rescue_from_error_body",
            "body",
            None,
            clip(str(raw.message.get("content"))),
            why=defect.message,
        )
        for defect in raw.defects
        if defect.code == Code.REPLY_IN_ERROR_BODY
    )


def _error_parts(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of an error body that describe the error."""
    if isinstance(document, dict):
        fields = cast("dict[str, Any]", document)
        if isinstance(fields.get("error"), dict):
            yield fields["error"]
        yield fields


def _error_messages(document: Any) -> Iterator[str]:
    for part in _error_parts(document):
        for name in ("message", "error", "detail"):
            if isinstance(part.get(name), str):
                yield part[name].strip()


def _in_message(message: str) -> str | None:
    """Return the generation in an error message that begins as those of known servers do."""
    opener, closer = _RAW
    if _begins(message, opener):
        end = message.rfind(closer)
        return message[len(opener) : end] if end > len(opener) else None
    if not _begins(message, _AT_POSITION):
        return None
    digits, colon, generation = message[len(_AT_POSITION) :].partition(":")
    if not colon or len(digits) > _MAX_DIGITS or not digits.isdecimal():
        return None
    return generation.strip() or None


def _begins(text: str, opener: str) -> bool:
    return text[: len(opener)].lower() == opener.lower()
