"""What a request says instead of what a wire format or a provider does not take.

Arguments that cannot be read, names of tools with other characters, another name for the limit of
tokens, and a choice among some of the tools where the format has no word for it.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, Reply
from surecall.text import encode_text

from .server import tool_name_in

UNREADABLE_KEY: Final = "_unreadable_arguments"
"""The one key of arguments that stand for some that could not be read."""

_MAX_ECHO: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def stand_in_arguments(raw: Any) -> dict[str, Any]:
    """Return a small valid object that shows the start of arguments that could not be read."""
    return {UNREADABLE_KEY: _echo(raw)}


def stand_in_object(
    arguments: Any, parse: Callable[[str], dict[str, Any] | None]
) -> dict[str, Any]:
    """Return arguments as an object; what cannot be read is shown, and never made empty."""
    if isinstance(arguments, dict):
        return as_fields(arguments)
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    found = parse(arguments) if isinstance(arguments, str) else None
    return stand_in_arguments(arguments) if found is None else found


def stand_in_name(name: str, max_chars: int = 64, offered: Container[str] = ()) -> str:
    """Return a name that providers accept in history, though no such tool may exist.

    Args:
        name: The name that a call has.
        max_chars: How long a name may be.
        offered: Names of the tools of the same request; these stay, so that both agree.
    """
    if name in offered or (len(name) <= max_chars and _NAME.fullmatch(name)):
        return name
    return _NOT_IN_NAMES.sub("_", name[:max_chars]) or "unnamed"


def _echo(raw: Any) -> str:
    if not isinstance(raw, str):
        try:
            raw = encode_text(_preview(raw, 2))
        except JSONTextError:
            raw = f"({type(raw).__name__})"
    return raw[:_MAX_ECHO].encode("utf-8", "replace").decode()


def _preview(value: Any, levels: int) -> Any:
    """Return the first part of a value, at a cost that does not depend on its size."""
    if isinstance(value, str):
        return value[:_MAX_ECHO].encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        items = islice(cast("dict[Any, Any]", value).items(), 8 if levels else 0)
        return {str(key)[:_MAX_ECHO]: _preview(item, levels - 1) for key, item in items}
    if isinstance(value, list):
        head = as_list(value)[: 8 if levels else 0]
        return [_preview(item, levels - 1) for item in head]
    return value


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
    names = _map_names(dict.fromkeys(_names_in(request)), target)
    if not names:
        return request, names
    tools = tuple(replace(tool, name=names.get(tool.name, tool.name)) for tool in request.tools)
    messages = tuple(_rename_message(message, names) for message in request.messages)
    choice = _rename_choice(request.tool_choice, names)
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


def _names_in(request: ModelRequest) -> Iterator[str]:
    """Yield every name, those of the tools first."""
    yield from (tool.name for tool in request.tools)
    yield from (call.name for message in request.messages for call in message.tool_calls)


def _map_names(names: Iterable[str], target: str) -> dict[str, str]:
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


def _rename_message(message: Message, names: Mapping[str, str]) -> Message:
    if message.role == "tool" and message.name in names:
        return replace(message, name=names[message.name or ""])
    if not any(call.name in names for call in message.tool_calls):
        return message
    calls = [replace(call, name=names.get(call.name, call.name)) for call in message.tool_calls]
    return replace(message, tool_calls=tuple(calls))


def _rename_choice(
    choice: str | dict[str, Any] | None, names: Mapping[str, str]
) -> str | dict[str, Any] | None:
    fields = as_fields(as_fields(choice).get("function"))
    name = fields.get("name")
    if not isinstance(choice, dict) or not isinstance(name, str):
        return choice
    return {**choice, "function": {**fields, "name": names.get(name, name)}}


def name_limit(request: ModelRequest, field: str) -> ModelRequest:
    """Return a request whose limit of tokens has the name that a provider takes."""
    params = request.params
    if "max_tokens" not in params or field in params:
        return request
    renamed = {field if key == "max_tokens" else key: value for key, value in params.items()}
    return replace(request, params=renamed)


def keep_allowed(request: ModelRequest) -> ModelRequest:
    """Return a request that offers only the tools its choice allows, which is what that means."""
    choice = request.tool_choice
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return request
    inner: Any = choice.get("allowed_tools")
    allowed = as_fields(inner) if isinstance(inner, dict) else choice
    names = {tool_name_in(entry) for entry in as_list(allowed.get("tools"))}
    return replace(
        request,
        tools=tuple(tool for tool in request.tools if tool.name in names),
        tool_choice="required" if allowed.get("mode") == "required" else "auto",
    )
