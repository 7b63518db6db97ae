"""Requests that a client sends, understood as records."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import Code, RequestError, did_you_mean
from surecall.records import Message, ModelRequest, ToolSpec, WireRequest, clip

from .history import parse_history_message

__all__ = ["parse_request"]

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
        raise _invalid(f"model is {_show(model)}.", "Name the model as text.")
    tools = _parse_tools(body)
    tools, choice = _parse_choice(body, tools)
    return ModelRequest(
        model=model,
        messages=_parse_messages(body.get("messages")),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=_switch(body, "parallel_tool_calls"),
        response_format=_parse_response_format(body.get("response_format")),
        params={
            key: value
            for key, value in body.items()
            if key not in _OWN_FIELDS and value is not None
        },
        stream=request.stream or bool(_switch(body, "stream")),
    )


def _parse_messages(items: Any) -> tuple[Message, ...]:
    if not isinstance(items, list) or not items:
        raise _invalid(f"messages is {_show(items)}.", "Send a list with at least one message.")
    messages: list[Message] = []
    legacy_id: str | None = None
    for index, item in enumerate(cast("list[Any]", items)):
        if not isinstance(item, dict):
            raise _invalid(f"messages[{index}] is {_show(item)}.", "Each message is an object.")
        fields, legacy_id = _modern(cast("dict[str, Any]", item), index, legacy_id)
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
        entry = {"id": call_id, "type": "function", "function": cast("dict[str, Any]", call)}
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
        raise _invalid(f"{place} is {_show(items)}.", "Send a list of tools.")
    return tuple(
        _parse_tool(item, f"{place}[{index}]", legacy=place == "functions")
        for index, item in enumerate(cast("list[Any]", items))
    )


def _parse_tool(item: Any, place: str, *, legacy: bool) -> ToolSpec:
    tool = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    kind = tool.get("type", "function")
    if not legacy and kind != "function":
        raise _invalid(
            f"{place} is a tool of type {_show(kind)}.", "Only function tools can be carried."
        )
    inner: Any = tool if legacy else tool.get("function")
    function = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise _invalid(f"{place} has the name {_show(name)}.", "Give every tool a name.")
    description, parameters = function.get("description"), function.get("parameters")
    if description is not None and not isinstance(description, str):
        raise _invalid(f"{place} has the description {_show(description)}.", "Use text.")
    if parameters is not None and not isinstance(parameters, dict):
        raise _invalid(f"{place} has the parameters {_show(parameters)}.", "Use a JSON Schema.")
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
            raise _invalid(f"{place} is {_show(choice)}.", did_you_mean(choice, _CHOICES))
        return tools, _CHOICES[choice]
    fields = cast("dict[str, Any]", choice) if isinstance(choice, dict) else {}
    if fields.get("type") == "allowed_tools":
        return _allowed_tools(fields, tools)
    inner: Any = fields.get("function")
    named = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
    name = named.get("name")
    if not isinstance(name, str) or not name or fields.get("type", "function") != "function":
        raise _invalid(
            f"{place} is {_show(choice)}.", "Use auto, none, required, or name a function."
        )
    return tools, {"type": "function", "function": {"name": name}}


def _allowed_tools(
    fields: dict[str, Any], tools: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], str]:
    """Offer only the tools that are allowed, which is what such a choice means."""
    inner: Any = fields.get("allowed_tools")
    allowed = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    mode, entries = allowed.get("mode", "auto"), allowed.get("tools")
    if mode not in {"auto", "required"} or not isinstance(entries, list):
        raise _invalid(
            "tool_choice allows tools without saying which, or in an unknown mode.",
            "Use the mode auto or required and a list of tools.",
        )
    names = {_name_in(entry) for entry in cast("list[Any]", entries)}
    return tuple(tool for tool in tools if tool.name in names), mode


def _name_in(entry: Any) -> Any:
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    inner: Any = fields.get("function")
    name = cast("dict[str, Any]", inner).get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def _parse_response_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(
        cast("dict[str, Any]", value).get("type"), str
    ):
        raise _invalid(f"response_format is {_show(value)}.", "Use an object with a type.")
    fields = cast("dict[str, Any]", value)
    return None if fields["type"] == "text" else fields


def _switch(body: Mapping[str, Any], key: str) -> bool | None:
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise _invalid(f"{key} is {_show(value)}.", "Use true or false.")
    return value


def _show(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return repr(clip(value, 80))
    if value in ([], {}):
        return "empty"
    return f"a value of type {type(value).__name__}"


def _invalid(message: str, hint: str) -> RequestError:
    return RequestError(Code.INVALID_REQUEST, message, hint=hint)
