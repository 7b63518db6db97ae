"""The caller's messages on their way in."""

from collections.abc import Mapping
from typing import Any, Final, cast, get_args

from surecall.errors import Code, JSONTextError, RequestError, did_you_mean
from surecall.jsontext import decode
from surecall.records import Message, Role, ToolCall, clip

__all__ = ["parse_history_message"]

_ROLES: Final = frozenset[str](get_args(Role))
_KNOWN_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_CALL_FIELDS: Final = frozenset({"id", "type", "function", "index"})


def parse_history_message(item: Any) -> Message:
    """Turn what a caller put into the history into a `Message`.

    Args:
        item: A `Message`, a mapping in the chat completions shape, an object with `role` and
            `content`, or plain text, which is taken as the user's.

    Raises:
        RequestError: `INVALID_MESSAGE`, when it is none of these.
    """
    if isinstance(item, Message):
        return item
    if isinstance(item, str):
        return Message("user", item)
    fields = _fields(item)
    role = fields.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        suggestion = did_you_mean(role, _ROLES) if isinstance(role, str) else None
        raise _invalid(f"A message has the role {_show(role)}.", suggestion)
    call_id = _text_field(fields, "tool_call_id", role)
    if role == "tool" and not call_id:
        raise _invalid(
            "A tool message has no tool_call_id.", "Name the call that this message answers."
        )
    return Message(
        role=cast("Role", role),
        content=_history_content(fields.get("content"), role),
        tool_calls=_history_calls(fields.get("tool_calls"), role),
        tool_call_id=call_id,
        name=_text_field(fields, "name", role),
        extra={
            key: value
            for key, value in fields.items()
            if key not in _KNOWN_FIELDS and value is not None
        },
    )


def _fields(item: Any) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(cast("Mapping[str, Any]", item))
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        return cast("dict[str, Any]", dump(exclude_none=True))
    if hasattr(item, "role") and hasattr(item, "content"):
        return {key: getattr(item, key) for key in sorted(_KNOWN_FIELDS) if hasattr(item, key)}
    raise _invalid(
        f"A value of type {type(item).__name__} is not a message.",
        "Use a Message, a dict with role and content, or plain text for the user.",
    )


def _history_content(content: Any, role: str) -> str | list[dict[str, Any]] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = list(cast("list[Any]", content))
        if all(isinstance(part, dict) for part in parts):
            return parts
    raise _invalid(
        f"The content of the {role} message is {_show(content)}.",
        "Use text, a list of part objects, or null.",
    )


def _text_field(fields: dict[str, Any], key: str, role: str) -> str | None:
    value = fields.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _invalid(f"The {key} of the {role} message is {_show(value)}.", "Use text.")


def _history_calls(calls: Any, role: str) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    if role != "assistant" or not isinstance(calls, list | tuple):
        raise _invalid(
            f"The {role} message has tool_calls {_show(calls)}.",
            "Only an assistant message has tool_calls, as a list.",
        )
    return tuple(_history_call(call) for call in cast("list[Any]", calls))


def _history_call(item: Any) -> ToolCall:
    if isinstance(item, ToolCall):
        return item
    call = _members(item, ("id", "function"))
    function = _members(call.get("function"), ("name", "arguments"))
    call_id, name = call.get("id"), function.get("name")
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        raise _invalid(
            f"A tool call in the history is {_show(item)}.",
            "It needs an id and a function with name and arguments.",
        )
    raw = function.get("arguments")
    if isinstance(raw, str) and not raw.strip():
        raw = None
    arguments = _history_arguments(raw)
    return ToolCall(
        id=call_id,
        name=name,
        arguments=arguments,
        raw=raw,
        state="unreadable" if arguments is None else "whole",
        extra={
            key: value
            for key, value in call.items()
            if key not in _CALL_FIELDS and value is not None
        },
    )


def _history_arguments(raw: Any) -> dict[str, Any] | None:
    if raw is None:
        return {}
    if isinstance(raw, str):
        try:
            raw = decode(raw)
        except JSONTextError:
            return None
    return cast("dict[str, Any]", raw) if isinstance(raw, dict) else None


def _members(item: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(cast("Mapping[str, Any]", item))
    return {name: getattr(item, name, None) for name in names}


def _show(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, str | bool):
        return repr(clip(value, 80) if isinstance(value, str) else value)
    return f"a value of type {type(value).__name__}"


def _invalid(message: str, hint: str | None) -> RequestError:
    return RequestError(Code.INVALID_MESSAGE, message, hint=hint)
