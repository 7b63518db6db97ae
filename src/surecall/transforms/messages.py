"""Transforms of outbound messages, in wire form, just before they are sent."""

from collections.abc import Callable
from typing import Any, Final, cast

__all__ = [
    "SKIP_SIGNATURE_VALIDATOR",
    "WireMessages",
    "assistant_tool_calls_content_null_if_blank",
    "assistant_tool_calls_reasoning_content_empty_if_missing",
    "assistant_tool_calls_signature_skip_validator_if_missing",
]

WireMessages = list[dict[str, Any]]

SKIP_SIGNATURE_VALIDATOR: Final = "skip_thought_signature_validator"
"""What stands in for a signature that is not there."""


def assistant_tool_calls_content_null_if_blank(messages: WireMessages) -> WireMessages:
    """Make blank text beside tool calls null."""
    return _map_calling(messages, _without_blank_content)


def assistant_tool_calls_reasoning_content_empty_if_missing(messages: WireMessages) -> WireMessages:
    """Give messages with tool calls an empty `reasoning_content` when they have none."""
    return _map_calling(messages, _with_reasoning_content)


def assistant_tool_calls_signature_skip_validator_if_missing(
    messages: WireMessages,
) -> WireMessages:
    """Give every tool call without a signature the value that skips its validation."""
    return _map_calling(messages, _with_signatures)


def _map_calling(
    messages: WireMessages, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> WireMessages:
    """Apply `change` to assistant messages that carry calls; keep the list when nothing changes."""
    changed = False
    result: WireMessages = []
    for message in messages:
        new = change(message) if _carries_calls(message) else message
        changed = changed or new is not message
        result.append(new)
    return result if changed else messages


def _carries_calls(message: dict[str, Any]) -> bool:
    calls = message.get("tool_calls")
    return message.get("role") == "assistant" and isinstance(calls, list) and calls != []


def _without_blank_content(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, str) and not content.strip():
        return {**message, "content": None}
    return message


def _with_reasoning_content(message: dict[str, Any]) -> dict[str, Any]:
    return message if "reasoning_content" in message else {**message, "reasoning_content": ""}


def _with_signatures(message: dict[str, Any]) -> dict[str, Any]:
    calls: list[Any] = message["tool_calls"]
    if not any(_lacks_signature(call) for call in calls):
        return message
    signed = [
        {**call, "signature": SKIP_SIGNATURE_VALIDATOR} if _lacks_signature(call) else call
        for call in calls
    ]
    return {**message, "tool_calls": signed}


def _lacks_signature(call: Any) -> bool:
    return isinstance(call, dict) and not cast("dict[str, Any]", call).get("signature")
