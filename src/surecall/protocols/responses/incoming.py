"""Requests that a client sends, understood as records."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import did_you_mean
from surecall.records import Message, ModelRequest, ToolSpec, WireRequest

from .history import parse_input, state_not_kept
from .shapes import as_fields, as_list, invalid, show

__all__ = ["parse_request"]

_OWN_FIELDS: Final = frozenset(
    {
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "model",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
    }
)
_STATE_FIELDS: Final = ("background", "conversation", "previous_response_id", "prompt")
_ENCRYPTED: Final = "reasoning.encrypted_content"
_CHOICES: Final = ("auto", "none", "required")
_TOOL_EXTRA: Final = ("allowed_callers", "async", "cache_control", "defer_loading", "output_schema")


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; fields that are not about structure become `params`.

    Parameters get the names they have in the records: `max_output_tokens` is `max_tokens`,
    `reasoning.effort` is `reasoning_effort`, and `text.format` is the response format.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong;
            `STATE_NOT_KEPT` for a request that leans on what a server remembers.
    """
    body = request.body
    for key in _STATE_FIELDS:
        if body.get(key):
            raise state_not_kept(key)
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise invalid(f"model is {show(model)}.", "Name the model as text.")
    tools = _parse_tools(body.get("tools"))
    tools, choice = _parse_choice(body.get("tool_choice"), tools)
    text = _object(body, "text")
    return ModelRequest(
        model=model,
        messages=(*_parse_instructions(body), *parse_input(body.get("input"))),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=_switch(body, "parallel_tool_calls"),
        response_format=_parse_format(text.get("format")),
        params=_parse_params(body, text),
        stream=request.stream or bool(_switch(body, "stream")),
    )


def _parse_instructions(body: Mapping[str, Any]) -> tuple[Message, ...]:
    instructions = body.get("instructions")
    if instructions is None:
        return ()
    if not isinstance(instructions, str):
        raise invalid(f"instructions is {show(instructions)}.", "Use text.")
    return (Message("system", instructions),)


def _parse_params(body: Mapping[str, Any], text: Mapping[str, Any]) -> dict[str, Any]:
    params = {
        key: value for key, value in body.items() if key not in _OWN_FIELDS and value is not None
    }
    for key in _STATE_FIELDS:
        params.pop(key, None)
    if body.get("max_output_tokens") is not None:
        params["max_tokens"] = body["max_output_tokens"]
    reasoning = _object(body, "reasoning")
    if reasoning.get("effort") is not None:
        params["reasoning_effort"] = reasoning["effort"]
    left = {key: value for key, value in reasoning.items() if key != "effort" and value is not None}
    if left:
        params["reasoning"] = left
    if text.get("verbosity") is not None:
        params["verbosity"] = text["verbosity"]
    if _switch(body, "store"):
        params["store"] = True
    include = [item for item in as_list(body.get("include")) if item != _ENCRYPTED]
    if include:
        params["include"] = body["include"]
    return params


def _parse_tools(items: Any) -> tuple[ToolSpec, ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise invalid(f"tools is {show(items)}.", "Send a list of tools.")
    tools = enumerate(cast("list[Any]", items))
    return tuple(_parse_tool(item, f"tools[{index}]") for index, item in tools)


def _parse_tool(item: Any, place: str) -> ToolSpec:
    tool = as_fields(item)
    kind = tool.get("type")
    if kind != "function":
        raise invalid(
            f"{place} is a tool of type {show(kind)}.",
            "Only function tools can be carried; tools that the provider runs need the provider.",
        )
    tool = {**tool, **as_fields(tool.get("function"))}  # chat completions nest it
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(f"{place} has the name {show(name)}.", "Give every tool a name.")
    description, parameters = tool.get("description"), tool.get("parameters")
    if description is not None and not isinstance(description, str):
        raise invalid(f"{place} has the description {show(description)}.", "Use text.")
    if parameters is not None and not isinstance(parameters, dict):
        raise invalid(f"{place} has the parameters {show(parameters)}.", "Use a JSON Schema.")
    extra = {key: tool[key] for key in _TOOL_EXTRA if tool.get(key) is not None}
    if tool.get("strict") is True:
        extra["strict"] = True
    return ToolSpec(
        name=name,
        description=description or "",
        parameters=as_fields(parameters),
        extra=extra,
    )


def _parse_choice(
    choice: Any, tools: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], str | dict[str, Any] | None]:
    if choice is None:
        return tools, None
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise invalid(f"tool_choice is {show(choice)}.", did_you_mean(choice, _CHOICES))
        return tools, choice
    fields = as_fields(choice)
    kind, name = fields.get("type"), _name_in(fields)
    if kind == "allowed_tools":
        return _allowed_tools(fields, tools)
    if kind != "function" or name is None:
        raise invalid(
            f"tool_choice is {show(choice)}.", "Use auto, none, required, or name a function."
        )
    return tools, {"type": "function", "function": {"name": name}}


def _allowed_tools(
    fields: dict[str, Any], tools: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], str]:
    """Offer only the tools that are allowed, which is what such a choice means."""
    mode, entries = fields.get("mode"), fields.get("tools")
    if mode not in ("auto", "required") or not isinstance(entries, list):
        raise invalid(
            "tool_choice allows tools without saying which, or in an unknown mode.",
            "Use the mode auto or required and a list of tools.",
        )
    names = {_name_in(as_fields(entry)) for entry in cast("list[Any]", entries)}
    return tuple(tool for tool in tools if tool.name in names), mode


def _name_in(entry: dict[str, Any]) -> str | None:
    name = entry.get("name") or as_fields(entry.get("function")).get("name")
    return name if isinstance(name, str) and name else None


def _parse_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    fields = as_fields(value)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise invalid(f"text.format is {show(value)}.", "Use an object with a type.")
    if kind == "text":
        return None
    if kind != "json_schema":
        return fields
    schema = {key: item for key, item in fields.items() if key != "type" and item is not None}
    return {"type": "json_schema", "json_schema": schema}


def _object(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    if value is not None and not isinstance(value, dict):
        raise invalid(f"{key} is {show(value)}.", "Use an object.")
    return as_fields(value)


def _switch(body: Mapping[str, Any], key: str) -> bool | None:
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise invalid(f"{key} is {show(value)}.", "Use true or false.")
    return value
