"""Whole replies: from bytes to the assistant message, and from the message to a `Reply`."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from msgspec import Raw, Struct

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list, count_or_none, other_fields
from surecall.base.records import Defect, RawCall, Reply, ToolCall, Usage
from surecall.base.redaction import excerpt
from surecall.text import decoder_of
from surecall.wire.errors import parse_error_object
from surecall.wire.records import RawReply
from surecall.wire.replies import (
    Found,
    check_role,
    check_says_something,
    count_detail,
    decode_object,
    finish_word,
    make_raw,
    make_usage,
    note_foreign_calls,
    refuse_reply,
    repeated_keys,
    start_of,
)
from surecall.wire.rewriting import (
    Checks,
    Clean,
    Patched,
    Plan,
    Tokens,
    divide,
    found_clean,
    is_from_text,
    is_own,
    list_found,
    note_finish,
    rewrite_texts,
    texts_of,
)
from surecall.wire.server import PAUSED_FINISH

from .blocks import SERVER_BLOCKS, THOUGHT_BLOCKS

_BESIDE_MESSAGE: Final = frozenset({"id", "model", "stop_reason", "usage"})
_CALL_FIELDS: Final = frozenset({"id", "input", "name", "type"})
find_repeated_keys: Final = partial(
    repeated_keys, inside=re.compile("/input(?:/|$)"), place="/content"
)
"""Return a finding when a key inside arguments was given differing values."""
_FINISHES: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}
_PAUSE_NOTE: Final = "The provider paused the turn; the model has not finished it."
STOP_REASONS: Final[Mapping[str, str]] = {
    "content_filter": "refusal",
    "eos": "end_turn",
    "function_call": "end_turn",
    "length": "max_tokens",
    "stop": "end_turn",
    "tool_calls": "end_turn",
}
"""What a finish reason of the records is called; any other stays. A reply with calls that ended
its turn says `tool_use`."""


def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
    """Find the assistant message in a whole body, which is the message itself.

    Raises:
        ProviderError: The body is not a reply; the code says in which way.
    """
    headers = headers or {}
    fields = decode_object(body, headers)
    if fields.get("type") == "error" or fields.get("error"):
        raise parse_error_object(fields, 200, headers)
    if "content" not in fields:
        message = "The provider's answer is not a message: it has no content."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    content: Any = fields["content"]
    blocks = as_list(content) if isinstance(content, list) else [content]
    has_inputs = any(isinstance(block, dict) and "input" in block for block in blocks)
    return parse_fields(fields, find_repeated_keys(body) if has_inputs else ())


def parse_fields(fields: dict[str, Any], defects: tuple[Defect, ...] = ()) -> RawReply:
    """Part a message, whole or put together from a stream, from what comes with it.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`, for a message that the model did not write, or
            one that says nothing and lacks the marks of a reply that ended so.
    """
    check_role(fields.get("role"))
    if fields.get("type") not in (None, "message"):
        message = "The provider's answer is not a message: its type says otherwise."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message)
    message = {
        key: value
        for key, value in fields.items()
        if key == "content" or (key not in _BESIDE_MESSAGE and value is not None)
    }
    finish, usage = finish_word(fields.get("stop_reason")), parse_usage(fields.get("usage"))
    raw = make_raw(message, finish, usage, fields, defects)
    is_marked = (
        bool(fields.get("type") and fields.get("role"))
        and raw.finish_reason is not None
        and fields.get("content") is not None
    )
    marks = "a type, a role, a stop reason or content"
    check_says_something(parse_message(raw), is_marked=is_marked, marks=marks)
    return raw


def parse_message(raw: RawReply) -> Reply:
    """Understand the assistant message; whatever shape it has, nothing is raised."""
    found = _Blocks()
    found.take_content(raw.message.get("content"))
    found.defects += note_foreign_calls(raw.message, "")
    if (raw.finish_reason or "").lower() == PAUSED_FINISH:
        found.note(Code.TURN_PAUSED, _PAUSE_NOTE, "/stop_reason")
    text = "".join(found.texts) if found.texts else None
    return found.make_reply(raw, text, read_finish(raw.finish_reason))


def read_finish(stop_reason: Any) -> str | None:
    """Return a stop reason in the words of the records."""
    finish = (finish_word(stop_reason) or "").lower()
    return _FINISHES.get(finish, finish) or None


def parse_usage(usage: Any) -> Usage | None:
    """Read token counts; tokens from and for the cache are part of the input."""
    counts = as_fields(usage)
    given = count_or_none(counts.get("input_tokens"))
    made = count_or_none(counts.get("output_tokens"))
    if given is None and made is None:
        return None
    cached = count_or_none(counts.get("cache_read_input_tokens")) or 0
    written = count_or_none(counts.get("cache_creation_input_tokens")) or 0
    given = (given or 0) + cached + written
    thoughts = count_detail(counts, "output_tokens_details", "thinking_tokens")
    return make_usage(given, made, reasoning=thoughts, cached=cached, cache_writes=written)


class _Blocks(Found):
    """What the blocks of an assistant message hold."""

    def take_content(self, content: Any) -> None:
        if isinstance(content, str):
            self.texts.append(content)
            self.note(
                Code.CONTENT_AS_TEXT, "The content is text, not a list of blocks.", "/content"
            )
        elif isinstance(content, list):
            for index, block in enumerate(as_list(content)):
                self._take_block(block, f"/content/{index}")
        elif isinstance(content, dict):
            note = "The content is one block, not a list of blocks."
            self.note(Code.CONTENT_NOT_USABLE, note, "/content")
            self._take_block(content, "/content")
        elif content is not None:
            note = f"The content is of type {type(content).__name__}, not a list of blocks."
            self.note(Code.CONTENT_NOT_USABLE, note, "/content")

    def _take_block(self, block: Any, place: str) -> None:
        if not isinstance(block, dict):
            note = f"A value of type {type(block).__name__} is in the place of a block."
            self.note(Code.CONTENT_NOT_USABLE, note, place)
            return
        fields = as_fields(block)
        given = fields.get("type")
        kind = given if isinstance(given, str) else type(given).__name__
        if kind == "text" and isinstance(fields.get("text"), str):
            self.texts.append(fields["text"])
        elif kind == "tool_use":
            self._take_call(fields, place)
        elif kind in THOUGHT_BLOCKS:
            self.extra.setdefault("thinking_blocks", []).append(fields)
            if isinstance(fields.get("thinking"), str):
                self.thoughts.append(fields["thinking"])
        elif kind == "text" or not isinstance(given, str):
            note = "A block has no type, or its text is not text."
            self.note(Code.CONTENT_NOT_USABLE, note, place)
        elif kind not in SERVER_BLOCKS:
            note = f"A block is of the unknown kind {excerpt(kind, 40)}."
            self.note(Code.PART_NOT_KNOWN, note, place)

    def _take_call(self, block: dict[str, Any], place: str) -> None:
        arguments = block.get("input")
        extra = other_fields(block, _CALL_FIELDS)
        beside = tuple(block.keys() - _CALL_FIELDS - extra.keys())
        call_id, name = block.get("id"), block.get("name")
        self.calls.append(RawCall(call_id, name, arguments, extra=extra, beside=beside))
        if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
            self.note(Code.ARGUMENTS_BLANK, "The call has no input.", place)
        elif isinstance(arguments, str):
            self.note(Code.ARGUMENTS_AS_TEXT, "The input is text, not an object.", place)


class _Block(Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()


class _MessagesUsage(Struct):
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_read_input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None


class _AnthropicMessage(Struct):
    content: list[_Block]
    type: str
    role: str
    stop_reason: str
    model: str | None = None
    usage: _MessagesUsage | None = None
    error: Any = None


_decode_message: Final = decoder_of(_AnthropicMessage)
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


def read_clean(body: bytes, checks: Checks) -> Clean | None:
    """Return what a whole reply has, or `None` if it is not surely clean."""
    reply = _decode_message(body)
    if reply.error or reply.type != "message" or reply.role != "assistant":
        return None
    texts: list[str] = []
    for block in reply.content:
        if block.type == "tool_use":
            if not checks.takes_call(block.id or "", block.name or "", bytes(block.input)):
                return None
        elif block.type == "text":
            if block.text is None:
                return None
            texts.append(block.text)
        elif block.type not in _THOUGHTS:
            return None
    if (reply.stop_reason == "tool_use") != bool(checks.calls):
        return None
    takes = checks.takes_words if checks.calls else checks.takes_text
    if not takes("".join(texts)):
        return None
    usage = None
    if used := reply.usage:
        cached = used.cache_read_input_tokens or 0
        written = used.cache_creation_input_tokens or 0
        given = used.input_tokens + cached + written
        total = given + used.output_tokens
        usage = Usage(given, used.output_tokens, total, 0, cached, written)
    return found_clean(body, reply.model, usage, checks)


def patch_reply(document: dict[str, Any], plan: Plan) -> Patched:
    """Put the calls that were read into the endpoint's own document."""
    reading = plan.reading
    content = document.get("content")
    blocks = as_list(content) if isinstance(content, list) else []
    calls = list(plan.calls)
    patched: list[Any] = []
    if is_from_text(reading) or not isinstance(content, list):
        kept = [block for block in blocks if as_fields(block).get("type") != "text"]
        patched = [block for block in kept if not is_own(as_fields(block), "tool_use", plan)]
        if plan.text.strip():
            patched.append({"type": "text", "text": plan.text})
        patched += [_messages_call({}, call) for call in plan.own]
    else:
        for block in blocks:
            fields = as_fields(block)
            if not is_own(fields, "tool_use", plan):
                patched.append(block)
            elif calls and (call := calls.pop(0)) is not None:
                patched.append(_messages_call(fields, call))
        if plan.note:
            patched.append({"type": "text", "text": plan.note})
    has_calls = any(as_fields(block).get("type") == "tool_use" for block in patched)
    reason = "tool_use" if has_calls else "end_turn"
    before = document.get("stop_reason")
    receipts = note_finish(before, reason, "/stop_reason", has_calls=has_calls)
    return Patched({**document, "content": patched, "stop_reason": reason}, receipts)


def _messages_call(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    own = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
    return {**block, **own}


def keep_found(document: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that begins with what the provider's own tools found in an earlier one.

    Thoughts and texts before that come along: signatures cover the whole turn, and texts cite it.
    """
    before = as_list(earlier.get("content"))
    answered = {str(as_fields(block).get("tool_use_id")) for block in before}

    def is_found(block: dict[str, Any]) -> bool:
        is_served = str(block.get("type")) in SERVER_BLOCKS and not is_call(block)
        return is_served or bool(block.get("citations"))

    def is_call(block: dict[str, Any]) -> bool:
        return str(block.get("type")).endswith("tool_use") and str(block.get("id")) not in answered

    content = document.get("content")
    said = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    found = list_found(before, is_found, is_call)
    return {**document, "content": [*found, *said]} if found else document


def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place."""
    blocks = as_list(document.get("content"))
    left = divide(texts_of(blocks, _is_text_block), text)
    block = {"type": "thinking", "thinking": thought, "signature": ""}
    blocks = rewrite_texts(blocks, _is_text_block, left)
    return {**document, "content": [block, *blocks] if thought else blocks}


def _is_text_block(block: dict[str, Any]) -> bool:
    return block.get("type") == "text"
