"""Names of tools between two wire formats: one mapping for tools, choice and history, and back."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.records import Message, ModelRequest, Reply, ToolCall

from .standins import stand_in_name

__all__ = ["rename_tools", "restore_names"]

_OPENAI: Final = (64, re.compile(r"[A-Za-z0-9_-]+", re.ASCII))
_RULES: Final[Mapping[str, tuple[int, re.Pattern[str]]]] = {
    "chat_completions": _OPENAI,
    "gemini": (128, re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*", re.ASCII)),
    "messages": (128, re.compile(r"[A-Za-z0-9_-]+", re.ASCII)),
    "responses": _OPENAI,
}
"""For each format how long a name may be, and what it is made of."""


def rename_tools(request: ModelRequest, target: str) -> tuple[ModelRequest, dict[str, str]]:
    """Return a request whose names the target takes, and the names that were changed.

    A format that is not known here takes every name.
    """
    names = _mapping(dict.fromkeys(_names(request)), target)
    if not names:
        return request, names
    tools = tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools)
    messages = tuple(_renamed(message, names) for message in request.messages)
    choice = _renamed_choice(request.tool_choice, names)
    return replace(request, tools=tools, messages=messages, tool_choice=choice), names


def restore_names(reply: Reply, renamed: Mapping[str, str]) -> Reply:
    """Return a reply whose calls have the names that the client knows."""
    own = {there: here for here, there in renamed.items()}
    if not any(isinstance(call.name, str) and call.name in own for call in reply.calls):
        return reply
    calls = (
        replace(call, name=own.get(call.name, call.name)) if isinstance(call.name, str) else call
        for call in reply.calls
    )
    return replace(reply, calls=tuple(calls))


def _names(request: ModelRequest) -> Iterator[str]:
    """Yield every name, those of the tools first."""
    yield from (tool.name for tool in request.tools)
    yield from (call.name for message in request.messages for call in message.tool_calls)


def _mapping(names: Iterable[str], target: str) -> dict[str, str]:
    names = [name for name in names if name]
    if target not in _RULES:
        return {}
    max_chars, pattern = _RULES[target]
    unfit = [name for name in names if len(name) > max_chars or not pattern.fullmatch(name)]
    used = set(names) - set(unfit)
    found: dict[str, str] = {}
    for name in unfit:
        plain = stand_in_name(name, max_chars)
        if not pattern.fullmatch(plain):  # a first letter that the target refuses
            plain = f"_{plain}"[:max_chars]
        given, number = plain, 1
        while given in used:
            number += 1
            tail = f"_{number}"
            given = plain[: max_chars - len(tail)] + tail
        used.add(given)
        found[name] = given
    return found


def _renamed(message: Message, names: Mapping[str, str]) -> Message:
    if message.role == "tool" and message.name in names:
        return replace(message, name=names[message.name or ""])
    if any(call.name in names for call in message.tool_calls):
        return replace(message, tool_calls=tuple(_call(call, names) for call in message.tool_calls))
    return message


def _call(call: ToolCall, names: Mapping[str, str]) -> ToolCall:
    return replace(call, name=names.get(call.name, call.name))


def _renamed_choice(
    choice: str | dict[str, Any] | None, names: Mapping[str, str]
) -> str | dict[str, Any] | None:
    function: Any = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(function, dict):
        return choice
    fields = cast("dict[str, Any]", function)
    name = fields.get("name")
    if not isinstance(name, str):
        return choice
    return {**choice, "function": {**fields, "name": names.get(name, name)}}
