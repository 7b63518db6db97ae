"""Whole bodies in this format: told to be clean, and written with what was put right in them."""

from typing import Any, Final

from msgspec import Raw, Struct

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolCall, Usage
from surecall.text import decoder_of
from surecall.wire.bodies import (
    Checks,
    Clean,
    Patched,
    Plan,
    Tokens,
    divide,
    found_clean,
    is_from_text,
    is_own,
    note_finish,
    rewrite_texts,
    texts_of,
)


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


def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place."""
    blocks = as_list(document.get("content"))
    left = divide(texts_of(blocks, _is_text_block), text)
    block = {"type": "thinking", "thinking": thought, "signature": ""}
    blocks = rewrite_texts(blocks, _is_text_block, left)
    return {**document, "content": [block, *blocks] if thought else blocks}


def _is_text_block(block: dict[str, Any]) -> bool:
    return block.get("type") == "text"
