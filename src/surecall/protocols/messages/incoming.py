"""Requests that a client sends, understood as records."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.errors import Code, RequestError, did_you_mean
from surecall.records import Message, ModelRequest, ToolSpec, WireRequest, clip

from .conversation import parse_conversation, parse_system

__all__ = ["parse_request"]

_OWN_FIELDS: Final = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "stop_sequences",
        "stream",
        "system",
        "tool_choice",
        "tools",
    }
)
_CHOICES: Final[Mapping[str, str]] = {"any": "required", "auto": "auto", "none": "none"}
_CHOICE_KINDS: Final = (*_CHOICES, "tool")
_TOOL_FIELDS: Final = frozenset({"description", "input_schema", "name", "type"})


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; fields that are not about structure become `params`.

    Tools that only the provider itself can run, which have a type of their own, are refused.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong.
    """
    body = request.body
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise _invalid(f"model is {_show(model)}.", "Name the model as text.")
    items = body.get("messages")
    if not isinstance(items, list) or not items:
        raise _invalid(f"messages is {_show(items)}.", "Send a list with at least one message.")
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise _invalid(f"stream is {_show(stream)}.", "Use true or false.")
    messages: list[Message] = [
        *parse_system(body.get("system")),
        *parse_conversation(cast("list[Any]", items)),
    ]
    choice, parallel = _parse_choice(body.get("tool_choice"))
    params, response_format = _parse_params(body)
    return ModelRequest(
        model=model,
        messages=tuple(messages),
        tools=_parse_tools(body.get("tools")),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=response_format,
        params=params,
        stream=request.stream or bool(stream),
    )


def _parse_tools(items: Any) -> tuple[ToolSpec, ...]:
    if items is None:
        return ()
    if not isinstance(items, list):
        raise _invalid(f"tools is {_show(items)}.", "Send a list of tools.")
    tools = cast("list[Any]", items)
    return tuple(_parse_tool(item, f"tools[{index}]") for index, item in enumerate(tools))


def _parse_tool(item: Any, place: str) -> ToolSpec:
    tool = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    kind, name = tool.get("type"), tool.get("name")
    if kind not in (None, "custom"):
        raise _invalid(
            f"{place} is a tool of type {_show(kind)}.", "Only custom tools can be carried."
        )
    if not isinstance(name, str) or not name:
        raise _invalid(f"{place} has the name {_show(name)}.", "Give every tool a name.")
    description, schema = tool.get("description"), tool.get("input_schema")
    if description is not None and not isinstance(description, str):
        raise _invalid(f"{place} has the description {_show(description)}.", "Use text.")
    if not isinstance(schema, dict):
        raise _invalid(f"{place} has the input_schema {_show(schema)}.", "Use a JSON Schema.")
    return ToolSpec(
        name=name,
        description=description or "",
        parameters=cast("dict[str, Any]", schema),
        extra={
            key: value
            for key, value in tool.items()
            if key not in _TOOL_FIELDS and value is not None
        },
    )


def _parse_choice(value: Any) -> tuple[str | dict[str, Any] | None, bool | None]:
    if value is None:
        return None, None
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind, name = fields.get("type"), fields.get("name")
    if not isinstance(kind, str) or kind not in _CHOICE_KINDS:
        hint = did_you_mean(kind, _CHOICE_KINDS) if isinstance(kind, str) else _one_of_the_kinds()
        raise _invalid(f"tool_choice has the type {_show(kind)}.", hint)
    parallel = False if fields.get("disable_parallel_tool_use") is True else None
    if kind != "tool":
        return _CHOICES[kind], parallel
    if not isinstance(name, str) or not name:
        raise _invalid(f"tool_choice names {_show(name)}.", "Name a tool.")
    return {"type": "function", "function": {"name": name}}, parallel


def _one_of_the_kinds() -> str:
    return f"Use an object with the type {', '.join(_CHOICE_KINDS)}."


def _parse_params(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    params = {
        key: value for key, value in body.items() if key not in _OWN_FIELDS and value is not None
    }
    limit, stop = body.get("max_tokens"), body.get("stop_sequences")
    if limit is not None:
        if type(limit) is not int:
            raise _invalid(f"max_tokens is {_show(limit)}.", "Use a whole number.")
        params["max_tokens"] = limit
    if stop is not None:
        if not isinstance(stop, list):
            raise _invalid(f"stop_sequences is {_show(stop)}.", "Send a list of texts.")
        params["stop"] = stop
    metadata = _object(body, "metadata")
    if metadata.get("user_id") is not None:
        params["user"] = metadata["user_id"]
    output = dict(_object(body, "output_config"))
    effort, form = output.pop("effort", None), output.pop("format", None)
    if effort is not None:
        params["reasoning_effort"] = effort
    if output:
        params["output_config"] = output
    return params, _parse_format(form)


def _parse_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    schema = fields.get("schema")
    if fields.get("type") != "json_schema" or not isinstance(schema, dict):
        raise _invalid(f"output_config.format is {_show(value)}.", "Use json_schema with a schema.")
    named: dict[str, Any] = {"name": "answer", "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": named}


def _object(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(f"{key} is {_show(value)}.", "Use an object.")
    return cast("dict[str, Any]", value)


def _show(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return repr(clip(value, 80))
    return "empty" if value in ([], {}) else f"a value of type {type(value).__name__}"


def _invalid(message: str, hint: str) -> RequestError:
    return RequestError(Code.INVALID_REQUEST, message, hint=hint)
