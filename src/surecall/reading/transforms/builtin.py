"""The built-in transforms of what is sent: messages, tools, and envelopes of results."""

from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct

WireMessages = list[dict[str, Any]]

SKIP_SIGNATURE_VALIDATOR: Final = "skip_thought_signature_validator"
"""What stands in for a signature that is not there."""


def assistant_tool_calls_content_null_if_blank(messages: WireMessages) -> WireMessages:
    """Make blank text next to tool calls null."""
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


WireTools = list[dict[str, Any]]


def openai_tools_strip_function_descriptions(tools: WireTools) -> WireTools:
    """Leave out the description of every function tool; those of parameters stay."""
    if not any(_is_described(tool) for tool in tools):
        return tools
    return [_without_description(tool) if _is_described(tool) else tool for tool in tools]


def _is_described(tool: dict[str, Any]) -> bool:
    function = tool.get("function")
    return (
        tool.get("type") == "function" and isinstance(function, dict) and "description" in function
    )


def _without_description(tool: dict[str, Any]) -> dict[str, Any]:
    function = {key: value for key, value in tool["function"].items() if key != "description"}
    return {**tool, "function": function}


_DROPPED_WHEN_EMPTY: Final = ("warnings", "errors", "data")


class ResultContext(Struct, frozen=True):
    """Which call an envelope answers."""

    tool_name: str
    call_id: str


def tool_result_compact_envelope(
    envelope: dict[str, Any],
    context: ResultContext,
) -> dict[str, Any]:
    """Drop `warnings`, `errors` and `data` where they are empty."""
    empty = [name for name in _DROPPED_WHEN_EMPTY if name in envelope and _is_empty(envelope[name])]
    if not empty:
        return envelope
    return {key: value for key, value in envelope.items() if key not in empty}


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | dict | str) and not value)
