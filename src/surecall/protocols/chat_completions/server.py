"""What a client sends, understood as records: its messages and its request."""

from collections.abc import Mapping
from typing import Any, Final, cast, get_args

from surecall.errors import Code, JSONTextError, RequestError, did_you_mean
from surecall.jsontext import decode
from surecall.narrow import as_fields, as_list, other_fields
from surecall.protocols.server import invalid_message, invalid_request, show
from surecall.records import Message, ModelRequest, Role, ToolCall, ToolSpec, WireRequest

__all__ = ["parse_history_message", "parse_request"]

_ROLES: Final = frozenset[str](get_args(Role))
_KNOWN_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_HISTORY_CALL_FIELDS: Final = frozenset({"id", "type", "function", "index"})


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
    fields = _message_fields(item)
    role = fields.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        suggestion = did_you_mean(role, _ROLES) if isinstance(role, str) else None
        raise invalid_message(f"A message has the role {show(role)}.", suggestion)
    call_id = _text_field(fields, "tool_call_id", role)
    if role == "tool" and not call_id:
        raise invalid_message(
            "A tool message has no tool_call_id.", "Name the call that this message answers."
        )
    return Message(
        role=cast("Role", role),
        content=_history_content(fields.get("content"), role),
        tool_calls=_history_calls(fields.get("tool_calls"), role),
        tool_call_id=call_id,
        name=_text_field(fields, "name", role),
        extra=other_fields(fields, _KNOWN_FIELDS),
    )


def _message_fields(item: Any) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(cast("Mapping[str, Any]", item))
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        return cast("dict[str, Any]", dump(exclude_none=True))
    if hasattr(item, "role") and hasattr(item, "content"):
        return {key: getattr(item, key) for key in sorted(_KNOWN_FIELDS) if hasattr(item, key)}
    raise invalid_message(
        f"A value of type {type(item).__name__} is not a message.",
        "Use a Message, a dict with role and content, or plain text for the user.",
    )


def _history_content(content: Any, role: str) -> str | list[dict[str, Any]] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = list(as_list(content))
        if all(isinstance(part, dict) for part in parts):
            return parts
    raise invalid_message(
        f"The content of the {role} message is {show(content)}.",
        "Use text, a list of part objects, or null.",
    )


def _text_field(fields: dict[str, Any], key: str, role: str) -> str | None:
    value = fields.get(key)
    if value is None or isinstance(value, str):
        return value
    raise invalid_message(f"The {key} of the {role} message is {show(value)}.", "Use text.")


def _history_calls(calls: Any, role: str) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    if role != "assistant" or not isinstance(calls, list | tuple):
        raise invalid_message(
            f"The {role} message has tool_calls {show(calls)}.",
            "Only an assistant message has tool_calls, as a list.",
        )
    return tuple(_history_call(call) for call in as_list(calls))


def _history_call(item: Any) -> ToolCall:
    if isinstance(item, ToolCall):
        return item
    call = _members(item, ("id", "function"))
    function = _members(call.get("function"), ("name", "arguments"))
    call_id, name = call.get("id"), function.get("name")
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        raise invalid_message(
            f"A tool call in the history is {show(item)}.",
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
        extra=other_fields(call, _HISTORY_CALL_FIELDS),
    )


def _history_arguments(raw: Any) -> dict[str, Any] | None:
    if raw is None:
        return {}
    if isinstance(raw, str):
        try:
            raw = decode(raw)
        except JSONTextError:
            return None
    return as_fields(raw) if isinstance(raw, dict) else None


def _members(item: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(cast("Mapping[str, Any]", item))
    return {name: getattr(item, name, None) for name in names}


_OWN_FIELDS: Final = frozenset(
    {
        "function_call",
        "functions",
        "messages",
        "model",
        "parallel_tool_calls",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)
_CHOICES: Final[Mapping[str, str]] = {
    "any": "required",
    "auto": "auto",
    "none": "none",
    "required": "required",
}
_FUNCTION_EXTRA: Final = ("strict",)
_TOOL_EXTRA: Final = ("cache_control",)


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; fields that are not about structure become `params`.

    `stream_options` are left out: usage is asked for with every stream.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong.
    """
    body = request.body
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise invalid_request(f"model is {show(model)}.", "Name the model as text.")
    tools = _parse_tools(body)
    tools, choice = _parse_choice(body, tools)
    return ModelRequest(
        model=model,
        messages=_parse_messages(body.get("messages")),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=_switch(body, "parallel_tool_calls"),
        response_format=_parse_response_format(body.get("response_format")),
        params=other_fields(body, _OWN_FIELDS),
        stream=request.stream or bool(_switch(body, "stream")),
    )


def _parse_messages(items: Any) -> tuple[Message, ...]:
    if not isinstance(items, list) or not items:
        raise invalid_request(
            f"messages is {show(items)}.", "Send a list with at least one message."
        )
    messages: list[Message] = []
    legacy_id: str | None = None
    for index, item in enumerate(as_list(items)):
        if not isinstance(item, dict):
            raise invalid_request(
                f"messages[{index}] is {show(item)}.", "Each message is an object."
            )
        fields, legacy_id = _modern(as_fields(item), index, legacy_id)
        try:
            messages.append(parse_history_message(fields))
        except RequestError as error:
            message = f"messages[{index}]: {error.message}"
            raise RequestError(error.code, message, hint=error.hint) from error
    return tuple(messages)


def _modern(
    fields: dict[str, Any], index: int, legacy_id: str | None
) -> tuple[dict[str, Any], str | None]:
    """Write the older `function_call` and its result as the call and the result they are."""
    call = fields.get("function_call")
    if fields.get("role") == "assistant" and isinstance(call, dict):
        rest = {key: value for key, value in fields.items() if key != "function_call"}
        if rest.get("tool_calls"):
            return rest, None
        call_id = f"call_{index}"
        entry = {"id": call_id, "type": "function", "function": as_fields(call)}
        return {**rest, "tool_calls": [entry]}, call_id
    if fields.get("role") == "function":
        if legacy_id is None:
            raise RequestError(
                Code.INVALID_MESSAGE,
                f"messages[{index}] is the result of a function that was not called.",
                hint="Put it directly behind the assistant message with its function_call.",
            )
        rest = {key: value for key, value in fields.items() if key != "name"}
        return {**rest, "role": "tool", "tool_call_id": legacy_id}, None
    return fields, None


def _parse_tools(body: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    items, place = body.get("tools"), "tools"
    if items is None:
        items, place = body.get("functions"), "functions"
    if items is None:
        return ()
    if not isinstance(items, list):
        raise invalid_request(f"{place} is {show(items)}.", "Send a list of tools.")
    return tuple(
        _parse_tool(item, f"{place}[{index}]", legacy=place == "functions")
        for index, item in enumerate(as_list(items))
    )


def _parse_tool(item: Any, place: str, *, legacy: bool) -> ToolSpec:
    tool = as_fields(item)
    kind = tool.get("type", "function")
    if not legacy and kind != "function":
        raise invalid_request(
            f"{place} is a tool of type {show(kind)}.", "Only function tools can be carried."
        )
    inner: Any = tool if legacy else tool.get("function")
    function = as_fields(inner)
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise invalid_request(f"{place} has the name {show(name)}.", "Give every tool a name.")
    description, parameters = function.get("description"), function.get("parameters")
    if description is not None and not isinstance(description, str):
        raise invalid_request(f"{place} has the description {show(description)}.", "Use text.")
    if parameters is not None and not isinstance(parameters, dict):
        raise invalid_request(
            f"{place} has the parameters {show(parameters)}.", "Use a JSON Schema."
        )
    extra = {key: function[key] for key in _FUNCTION_EXTRA if function.get(key) is not None}
    extra |= {key: tool[key] for key in _TOOL_EXTRA if tool.get(key) is not None}
    return ToolSpec(
        name=name,
        description=description or "",
        parameters=cast("dict[str, Any]", parameters or {}),
        extra=extra,
    )


def _parse_choice(
    body: Mapping[str, Any], tools: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], str | dict[str, Any] | None]:
    choice, place = body.get("tool_choice"), "tool_choice"
    if choice is None:
        choice, place = body.get("function_call"), "function_call"
    if choice is None:
        return tools, None
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise invalid_request(f"{place} is {show(choice)}.", did_you_mean(choice, _CHOICES))
        return tools, _CHOICES[choice]
    fields = as_fields(choice)
    if fields.get("type") == "allowed_tools":
        return _allowed_tools(fields, tools)
    inner: Any = fields.get("function")
    named = as_fields(inner) if isinstance(inner, dict) else fields
    name = named.get("name")
    if not isinstance(name, str) or not name or fields.get("type", "function") != "function":
        raise invalid_request(
            f"{place} is {show(choice)}.", "Use auto, none, required, or name a function."
        )
    return tools, {"type": "function", "function": {"name": name}}


def _allowed_tools(
    fields: dict[str, Any], tools: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], str]:
    """Offer only the tools that are allowed, which is what such a choice means."""
    inner: Any = fields.get("allowed_tools")
    allowed = as_fields(inner)
    mode, entries = allowed.get("mode", "auto"), allowed.get("tools")
    if mode not in {"auto", "required"} or not isinstance(entries, list):
        raise invalid_request(
            "tool_choice allows tools without saying which, or in an unknown mode.",
            "Use the mode auto or required and a list of tools.",
        )
    names = {_name_in(entry) for entry in as_list(entries)}
    return tuple(tool for tool in tools if tool.name in names), mode


def _name_in(entry: Any) -> Any:
    fields = as_fields(entry)
    inner: Any = fields.get("function")
    name = as_fields(inner).get("name")
    return name if isinstance(name, str) else None


def _parse_response_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(as_fields(value).get("type"), str):
        raise invalid_request(f"response_format is {show(value)}.", "Use an object with a type.")
    fields = as_fields(value)
    return None if fields["type"] == "text" else fields


def _switch(body: Mapping[str, Any], key: str) -> bool | None:
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise invalid_request(f"{key} is {show(value)}.", "Use true or false.")
    return value
