"""Requests that a client sends, understood as records."""

from typing import Any, Final
from urllib.parse import unquote

from surecall.errors import Code, RequestError
from surecall.records import ModelRequest, ToolSpec, WireRequest

from .history import parse_contents, parse_instruction
from .members import as_dict, as_list, known_members, member, shown
from .names import own_name
from .schemas import parse_schema
from .settings import parse_choice, parse_config

__all__ = ["parse_request"]

_OWN_FIELDS: Final = known_members(
    "contents", "generationConfig", "model", "systemInstruction", "toolConfig", "tools"
)
_STREAMED: Final = "streamGenerateContent"


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; the model and whether it streams are in its path.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong.
    """
    body = request.body
    model, method = _parse_path(request.path)
    model = model or str(body.get("model") or "").removeprefix("models/")
    if not model:
        raise _invalid("The path names no model.", "Use /models/NAME:generateContent.")
    params, response_format = parse_config(as_dict(member(body, "generationConfig")))
    params |= {k: v for k, v in body.items() if k not in _OWN_FIELDS and v is not None}
    tools = _parse_tools(body.get("tools"))
    choice, allowed = parse_choice(as_dict(member(body, "toolConfig")))
    if allowed is not None:
        tools = tuple(tool for tool in tools if tool.name in allowed)
    messages = parse_contents(body.get("contents"))
    instruction = parse_instruction(member(body, "systemInstruction"))
    return ModelRequest(
        model=model,
        messages=(*instruction, *messages),
        tools=tools,
        tool_choice=choice if tools else None,
        response_format=response_format,
        params=params,
        stream=request.stream or method == _STREAMED,
    )


def _parse_path(path: str) -> tuple[str, str]:
    """Return the model and the method that a path names."""
    plain = unquote(path.partition("?")[0])
    name, _, method = plain.rpartition(":")
    _, found, model = name.partition("/models/")
    if not found:
        model = name.strip("/")
    return model, method


def _parse_tools(items: Any) -> tuple[ToolSpec, ...]:
    if items is None:
        return ()
    if isinstance(items, dict):
        items = [items]
    if not isinstance(items, list):
        raise _invalid(f"tools is {shown(items)}.", "Send a list of tools.")
    tools: list[ToolSpec] = []
    for index, item in enumerate(as_list(items)):
        declared = member(as_dict(item), "functionDeclarations")
        if not isinstance(declared, list):
            kinds = ", ".join(sorted(as_dict(item))) or shown(item)
            raise _invalid(
                f"tools[{index}] is {kinds}.", "Only function declarations can be carried."
            )
        tools += [
            _parse_tool(tool, f"tools[{index}].functionDeclarations[{number}]")
            for number, tool in enumerate(as_list(declared))
        ]
    return tuple(tools)


def _parse_tool(item: Any, place: str) -> ToolSpec:
    fields = as_dict(item)
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not name:
        raise _invalid(f"{place} has the name {shown(name)}.", "Give every function a name.")
    if description is not None and not isinstance(description, str):
        raise _invalid(f"{place} has the description {shown(description)}.", "Use text.")
    schema = member(fields, "parametersJsonSchema")
    if schema is None and fields.get("parameters") is not None:
        schema = parse_schema(fields["parameters"])
    return ToolSpec(name=own_name(name), description=description or "", parameters=as_dict(schema))


def _invalid(message: str, hint: str) -> RequestError:
    return RequestError(Code.INVALID_REQUEST, message, hint=hint)
