"""Whole bodies in this format: told to be clean, and written with what was put right in them."""

from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import ProviderError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import ToolCall, Usage
from surecall.text import decode, decoder_of
from surecall.wire.bodies import (
    Checks,
    Clean,
    Patched,
    Plan,
    Tokens,
    arguments_text,
    divide,
    found_clean,
    is_from_text,
    is_own,
    note_finish,
    rewrite_texts,
    texts_of,
)
from surecall.wire.server import new_id

from .content import OWN_REASONING_ID
from .replies import parse_usage


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Item(Struct):
    type: str
    content: list[_Part] | None = None
    role: str = "assistant"
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None


class _ResponsesUsage(Struct):
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    total_tokens: Tokens = 0


class _Response(Struct):
    output: list[_Item]
    status: str
    model: str | None = None
    usage: _ResponsesUsage | None = None
    error: Any = None


_decode_response: Final = decoder_of(_Response)
_ITEM_ENDS: Final = ("completed", None)


def read_clean(body: bytes, checks: Checks) -> Clean | None:
    """Return what a whole reply has, or `None` if it is not surely clean."""
    reply = _decode_response(body)
    if reply.error or reply.status not in ("completed", "incomplete"):
        return None
    texts: list[str] = []
    for item in reply.output:
        if item.type == "function_call":
            if reply.status != "completed" or item.status not in _ITEM_ENDS:
                return None
            if not checks.takes_call(item.call_id or "", item.name or "", item.arguments or ""):
                return None
        elif item.type == "message":
            if item.role != "assistant":
                return None
            texts += [part.text for part in item.content or () if part.text is not None]
        elif item.type != "reasoning":
            return None
    takes = checks.takes_words if checks.calls else checks.takes_text
    if not takes("".join(texts)):
        return None
    used = reply.usage
    usage = used and Usage(used.input_tokens, used.output_tokens, used.total_tokens)
    return found_clean(body, reply.model, usage, checks)


def patch_reply(document: dict[str, Any], plan: Plan) -> Patched:
    """Put the calls that were read into the endpoint's own document."""
    reading = plan.reading
    calls = list(plan.calls)
    patched: list[Any] = []
    from_text = is_from_text(reading)
    has_text = False
    for item in as_list(document.get("output")):
        fields = as_fields(item)
        kind = fields.get("type")
        if is_own(fields, "function_call", plan):
            if calls and not from_text and (call := calls.pop(0)) is not None:
                patched.append(_responses_call(fields, call))
        elif kind == "message" and from_text:
            if reading.content.strip() and not has_text:
                has_text = True
                part: dict[str, Any] = {
                    "type": "output_text",
                    "text": reading.content,
                    "annotations": [],
                }
                patched.append({**fields, "content": [part]})
        elif isinstance(item, dict):
            patched.append(item)
    if plan.note:
        patched.append(_responses_text(plan.note))
    patched += [_responses_call({}, call) for call in calls if call is not None]
    before, has_calls = document.get("status"), bool(plan.own)
    receipts = note_finish(before, "completed", "/status", has_calls=has_calls)
    ended: dict[str, Any] = {"output": patched, "status": "completed"}
    if "incomplete_details" in document:
        ended["incomplete_details"] = None
    return Patched({**document, **ended}, receipts)


def _responses_text(text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "completed"}
    return {**item, "content": [part]}


def _responses_call(item: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    own = {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments_text(call),
        "status": "completed",
    }
    return {"id": item.get("id") or new_id("fc_"), **item, **own}


def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place."""
    items = [as_fields(item) for item in as_list(document.get("output"))]
    said = [part for item in items if _is_message(item) for part in as_list(item.get("content"))]
    left = divide(texts_of(said, _is_text_part), text)
    output: list[Any] = []
    if thought:
        content = [{"type": "reasoning_text", "text": thought}]
        item_id = new_id(OWN_REASONING_ID)
        output.append({"type": "reasoning", "id": item_id, "summary": [], "content": content})
    for item in items:
        if _is_message(item):
            parts = rewrite_texts(as_list(item.get("content")), _is_text_part, left)
            if not parts:
                continue
            item = {**item, "content": parts}
        output.append(item)
    return {**document, "output": output}


def _is_message(item: dict[str, Any]) -> bool:
    return item.get("type") == "message"


def _is_text_part(part: dict[str, Any]) -> bool:
    return part.get("type") in ("output_text", "text")


_WAITING: Final = frozenset({"queued", "in_progress", "cancelled"})


def says_why(document: dict[str, Any], error: ProviderError) -> bool:
    """Tell whether a reply is one of the format, and says itself why it holds no answer."""
    return text_or_none(document.get("id")) is not None and document.get("status") == "failed"


def is_waiting(document: dict[str, Any]) -> bool:
    """Tell whether a reply only names a response in the background, which has no output yet."""
    return text_or_none(document.get("id")) is not None and document.get("status") in _WAITING


def goes_on(body: bytes) -> bool:
    """Tell whether a request asks for a response that goes on without the client."""
    if b'"background"' not in body:
        return False
    return as_fields(decode(body, surrogates="replace")).get("background") is True


def read_usage(document: dict[str, Any]) -> Usage | None:
    """Return the tokens of a reply that holds no answer."""
    return parse_usage(document.get("usage"))
