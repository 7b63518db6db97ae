"""Whole replies and errors, rendered for a client."""

from time import time
from typing import Any, Final
from uuid import uuid4

from surecall.jsontext import encode_text
from surecall.protocols.call_ids import CallIds
from surecall.protocols.chat_completions import render_fault
from surecall.protocols.endings import ending_of
from surecall.records import RawCall, Reply, Usage

from .reasoning import OWN_REASONING_ID, insert_reasoning

__all__ = [
    "ItemIds",
    "new_id",
    "render_call",
    "render_fault",
    "render_reply",
    "render_response",
    "render_response_head",
    "render_text",
    "render_thought",
]

_COMPLETE: Final = frozenset({"function_call", "stop", "tool_calls"})
_REASONS: Final = {"length": "max_output_tokens"}


class ItemIds:
    """Gives the items of one reply ids, which follow from the id of the reply.

    Args:
        reply_id: The id of the reply.
        seed: What ids of calls depend on that came without one: its own id, if it has one.
    """

    def __init__(self, reply_id: str, seed: str | None) -> None:
        self._stem = reply_id.removeprefix("resp_")
        self._count = 0
        self.calls = CallIds(seed=seed or "")

    def next(self, prefix: str) -> str:
        """Return the next id; the prefix says what kind of item it is for."""
        self._count += 1
        return f"{prefix}{self._stem}_{self._count}"


def render_reply(reply: Reply) -> dict[str, Any]:
    """Render a reply as a whole response."""
    reply_id = reply.id or new_id("resp_")
    ids = ItemIds(reply_id, reply.id)
    calls = [(render_call(call, ids), call.id) for call in reply.calls]
    said: list[tuple[dict[str, Any], Any]] = []
    if reply.reasoning and not reply.extra.get("reasoning_items"):
        said.append((render_thought(reply.reasoning, ids.next(OWN_REASONING_ID)), None))
    if reply.content or (reply.content is not None and not calls):
        text = render_text(reply.content, ids.next("msg_"), reply.extra.get("phase"))
        said.append((text, None))
    output = insert_reasoning(reply.extra.get("reasoning_items"), [*said, *calls])
    return render_response(reply, output, reply_id, reply.model or "", int(time()))


def render_response(
    reply: Reply, output: list[dict[str, Any]], reply_id: str, model: str, created_at: int
) -> dict[str, Any]:
    """Render the response object that ends a reply; the last item of a cut one is not complete."""
    response = render_response_head(reply_id, model, created_at)
    reason = ending_of(reply)
    if reason in _COMPLETE:
        response |= {"status": "completed", "completed_at": int(time())}
    else:
        details = {"reason": _REASONS.get(reason, reason)}
        response |= {"status": "incomplete", "incomplete_details": details}
        if output and "status" in output[-1]:
            output = [*output[:-1], {**output[-1], "status": "incomplete"}]
    response["output"] = output
    response["usage"] = None if reply.usage is None else _render_usage(reply.usage)
    return response


def render_response_head(reply_id: str, model: str, created_at: int) -> dict[str, Any]:
    """Render a response that has just begun; every field that clients count on is there."""
    return {
        "id": reply_id,
        "object": "response",
        "created_at": created_at,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
        "user": None,
    }


def render_text(text: str, item_id: str, phase: Any = None) -> dict[str, Any]:
    """Render a message item."""
    item: dict[str, Any] = {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }
    return {**item, "phase": phase} if phase else item


def render_thought(text: str, item_id: str) -> dict[str, Any]:
    """Render a reasoning item from plain text."""
    content = [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "id": item_id, "summary": [], "content": content}


def render_call(call: RawCall, ids: ItemIds) -> dict[str, Any]:
    """Render a call; a client needs an id and text, also where the model gave neither."""
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = encode_text({} if arguments is None else arguments)
    item: dict[str, Any] = {
        "type": "function_call",
        "id": ids.next("fc_"),
        "call_id": ids.calls.assign_to(call),
        "name": call.name if isinstance(call.name, str) else "",
        "arguments": arguments,
        "status": "completed",
    }
    for key, value in call.extra.items():
        item.setdefault(key, value)
    return item


def new_id(prefix: str) -> str:
    """Return an id that nothing else has."""
    return f"{prefix}{uuid4().hex}"


def _render_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
