"""Replies and errors as a server of the format answers them."""

from collections.abc import Mapping
from typing import Any, Final, cast
from uuid import uuid4

from surecall.errors import SurecallError
from surecall.protocols.base import WireFault
from surecall.protocols.call_ids import CallIds
from surecall.protocols.endings import ending_of
from surecall.protocols.standins import stand_in_arguments, stand_in_name
from surecall.protocols.statuses import error_text, status_of
from surecall.records import RawCall, Reply, Usage

from .inputs import parse_object
from .turns import MAX_NAME_CHARS
from .wire_ids import wire_id

__all__ = [
    "call_ids",
    "new_id",
    "render_call",
    "render_fault",
    "render_reply",
    "render_stop_reason",
    "render_usage",
    "thoughts_of",
]

_STOP_REASONS: Final[Mapping[str, str]] = {
    "content_filter": "refusal",
    "eos": "end_turn",
    "function_call": "end_turn",
    "length": "max_tokens",
    "stop": "end_turn",
    "tool_calls": "end_turn",
}
_FAULT_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def render_reply(reply: Reply) -> dict[str, Any]:
    """Render a reply as a whole message.

    Reasoning that came without a signature gets an empty one: none is ever invented.
    """
    content = thoughts_of(reply.extra)
    if not content and reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": ""})
    if reply.content:
        content.append({"type": "text", "text": reply.content})
    ids = call_ids(reply.id)
    content += [render_call(call, ids) for call in reply.calls]
    return {
        "id": reply.id or new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": reply.model or "",
        "content": content,
        "stop_reason": render_stop_reason(reply),
        "stop_sequence": None,
        "usage": render_usage(reply.usage),
    }


def render_fault(error: SurecallError) -> WireFault:
    """Render an error with the status and the shape that clients of the format know."""
    status = status_of(error)
    kind = "api_error" if status >= 500 else "invalid_request_error"
    fields = {"type": _FAULT_TYPES.get(status, kind), "message": error_text(error)}
    return WireFault(status, {"type": "error", "error": fields})


def call_ids(reply_id: str | None) -> CallIds:
    """Return what gives the calls of a reply their ids."""
    return CallIds(wire_id, prefix="toolu_", seed=reply_id or "")


def render_call(call: RawCall, ids: CallIds) -> dict[str, Any]:
    """Render a call; a client needs an id and an object, also where the model gave neither."""
    name = call.name if isinstance(call.name, str) else ""
    return {
        "type": "tool_use",
        "id": ids.assign_to(call),
        "name": stand_in_name(name, MAX_NAME_CHARS),
        "input": _render_input(call.arguments),
    }


def render_stop_reason(reply: Reply, *, wrote_calls: bool = False) -> str:
    """Render a finish reason: clients look for calls when it is `tool_use`, and only then."""
    finish = ending_of(reply)
    reason = _STOP_REASONS.get(finish, finish)
    return "tool_use" if (reply.calls or wrote_calls) and reason == "end_turn" else reason


def render_usage(usage: Usage | None) -> dict[str, Any]:
    """Render token counts; clients of the format read them from every reply."""
    usage = usage or Usage()
    cached = min(usage.cached_tokens, usage.input_tokens)
    wire: dict[str, Any] = {
        "input_tokens": usage.input_tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens:
        wire["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return wire


def thoughts_of(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the thoughts that a client has to send back as they are."""
    blocks: Any = extra.get("thinking_blocks")
    items = cast("list[Any]", blocks) if isinstance(blocks, list) else []
    found = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
    return [{"signature": "", **item} if "thinking" in item else dict(item) for item in found]


def new_id(prefix: str) -> str:
    """Return an id that no other reply or call has."""
    return f"{prefix}{uuid4().hex}"


def _render_input(arguments: Any) -> dict[str, Any]:
    """Return arguments as an object; what cannot be read is shown, and never made empty."""
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        found = parse_object(arguments) if arguments.strip() else {}
    else:
        found = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None
    return stand_in_arguments(arguments) if found is None else found
