"""A conversation as contents: two roles that take turns, and one instruction beside them."""

from collections.abc import Iterable
from typing import Any

from surecall.protocols.standins import stand_in_arguments
from surecall.records import Message, ToolCall

from .names import wire_name
from .parts import render_parts
from .results import render_response

__all__ = ["render_contents", "render_instruction"]


def render_instruction(messages: Iterable[Message]) -> dict[str, Any] | None:
    """Render what system and developer say, wherever in the conversation they say it."""
    parts: list[dict[str, Any]] = []
    for message in messages:
        if message.role in {"system", "developer"}:
            parts += render_parts(message.content)
    return {"parts": parts} if parts else None


def render_contents(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Render the turns; messages of one side that follow each other become one turn."""
    turns: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    results: list[Message] = []
    order: list[str] = []

    def add(role: str, parts: list[dict[str, Any]]) -> None:
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += parts
        elif parts:
            turns.append({"role": role, "parts": parts})

    def add_results() -> None:
        if results:
            add("user", _render_results(results, names, order))
            results.clear()

    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        add_results()
        if message.role == "assistant":
            order = [call.id for call in message.tool_calls]
            names.update({call.id: call.name for call in message.tool_calls})
            add("model", _render_assistant(message))
        elif message.role == "user":
            add("user", render_parts(message.content) or [{"text": ""}])
    add_results()
    return turns


def _render_assistant(message: Message) -> list[dict[str, Any]]:
    parts = render_parts(message.content)
    signature = message.extra.get("thought_signature")
    if isinstance(signature, str) and signature:
        if not parts:
            parts = [{"text": ""}]
        parts[-1] = {**parts[-1], "thoughtSignature": signature}
    return [*parts, *(_render_call(call) for call in message.tool_calls)]


def _render_call(call: ToolCall) -> dict[str, Any]:
    arguments = stand_in_arguments(call.raw) if call.arguments is None else call.arguments
    function = {"id": call.id, "name": wire_name(call.name), "args": arguments}
    signature = call.extra.get("thought_signature")
    if isinstance(signature, str) and signature:
        return {"functionCall": function, "thoughtSignature": signature}
    return {"functionCall": function}


def _render_results(
    results: list[Message], names: dict[str, str], order: list[str]
) -> list[dict[str, Any]]:
    """Render the results of a turn in the order of its calls, and then what came with them."""
    ranks = {call_id: rank for rank, call_id in enumerate(order)}
    beside: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for message in sorted(results, key=lambda item: ranks.get(item.tool_call_id or "", len(ranks))):
        call_id = message.tool_call_id or ""
        name = names.get(call_id) or message.name or "unknown"
        response = render_response(message.text, is_error=message.extra.get("is_error") is True)
        function = {"id": call_id, "name": wire_name(name), "response": response}
        parts.append({"functionResponse": function})
        if isinstance(message.content, list):
            beside += [item for item in render_parts(message.content) if "text" not in item]
    return [*parts, *beside]
