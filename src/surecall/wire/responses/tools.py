"""Tools of a client that are no plain functions, put as functions for other endpoints.

Functions of a namespace get its name in front, and a custom tool becomes a function with one text.
Their calls and results in the conversation follow, and `restore_call` puts a call of the reply back
into the client's words. What the provider itself would run is left out and named.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.text import decode, encode_text

_CUSTOM: Final = "custom"
_FUNCTION: Final = "function"
_NAMESPACE: Final = "namespace"
_INPUT: Final = "input"
_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {_INPUT: {"type": "string", "description": "The whole input of the tool."}},
    "required": [_INPUT],
    "additionalProperties": False,
}
_KEPT_ITEMS: Final = frozenset(
    {None, "function_call", "function_call_output", "item_reference", "message", "reasoning"}
)
_CUSTOM_CALL: Final = "custom_tool_call"
_CUSTOM_OUTPUT: Final = "custom_tool_call_output"


class Origin(NamedTuple):
    """What a function is to the client."""

    kind: str
    name: str
    namespace: str = ""


def list_origins(tools: Any) -> dict[str, Origin]:
    """Name each function that stands for a tool of the client, with what it stands for."""
    return {name: origin for name, origin, _ in _walk(tools) if name}


def restore_call(item: dict[str, Any], origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Return the call of a function as the call of the client's own tool."""
    origin = origins.get(item["name"])
    if origin is None:
        return item
    if origin.kind == _CUSTOM:
        rest = {key: value for key, value in item.items() if key != "arguments"}
        own = {"type": _CUSTOM_CALL, "name": origin.name, "input": _input_of(item["arguments"])}
        restored = {**rest, **own}
    else:
        restored = {**item, "name": origin.name}
    return {**restored, "namespace": origin.namespace} if origin.namespace else restored


def as_functions(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a request in which every tool is a function, and what had to be left out of it."""
    left_out = list(_left_out(document.get("tools")))
    walked = list(_walk(document.get("tools")))
    names = {origin: name for name, origin, _ in walked}
    changed = {**document, "tools": [tool for _, _, tool in walked]}
    if isinstance(items := document.get("input"), list):
        changed["input"] = [
            _item_as_function(item, names) for item in as_list(items) if _is_kept(item, left_out)
        ]
    if isinstance(choice := document.get("tool_choice"), dict):
        changed["tool_choice"] = _choice_as_function(as_fields(choice), names)
    return changed, tuple(dict.fromkeys(left_out))


def _walk(tools: Any) -> Iterator[tuple[str, Origin, dict[str, Any]]]:
    """Yield every function with its name, what it stands for, and how it is declared."""
    plain = (as_fields(tool) for tool in as_list(tools))
    taken = {str(tool.get("name")) for tool in plain if tool.get("type") == _FUNCTION}
    for entry in as_list(tools):
        tool = as_fields(entry)
        is_group = tool.get("type") == _NAMESPACE
        namespace = (text_or_none(tool.get("name")) or "") if is_group else ""
        for inner in as_list(tool.get("tools")) if is_group else (tool,):
            fields = as_fields(inner)
            kind, name = fields.get("type"), text_or_none(fields.get("name"))
            if kind not in (_CUSTOM, _FUNCTION) or name is None:
                if kind == _FUNCTION:  # nested, or refused where tools are read
                    yield "", Origin(_FUNCTION, ""), fields
                continue
            joined = _join(namespace, name)
            while joined in taken and (namespace or kind == _CUSTOM):
                joined += "_"
            taken.add(joined)
            declared = {**fields, "name": joined}
            if kind == _CUSTOM:
                declared = {
                    "type": _FUNCTION,
                    "name": joined,
                    "description": _describe(fields),
                    "parameters": dict(_PARAMETERS),
                }
            yield joined, Origin(str(kind), name, namespace), declared


def _join(namespace: str, name: str) -> str:
    if not namespace or name.startswith(namespace):
        return name
    return f"{namespace}{name}" if namespace.endswith("_") else f"{namespace}__{name}"


def _describe(tool: Mapping[str, Any]) -> str:
    """Tell in words what a function's schema cannot: the grammar of the text."""
    description = text_or_none(tool.get("description")) or ""
    form = as_fields(tool.get("format"))
    grammar = text_or_none(form.get("definition"))
    if grammar is None:
        return description
    syntax = text_or_none(form.get("syntax")) or "grammar"
    return f"{description}\n\nThe input follows this {syntax}:\n{grammar}".strip()


def _left_out(tools: Any) -> Iterator[str]:
    for entry in as_list(tools):
        tool = as_fields(entry)
        inner = as_list(tool.get("tools")) if tool.get("type") == _NAMESPACE else (tool,)
        kinds = (as_fields(item).get("type") for item in inner)
        yield from (f"tools.{kind}" for kind in kinds if kind not in (_CUSTOM, _FUNCTION))


def _is_kept(item: Any, left_out: list[str]) -> bool:
    kind = as_fields(item).get("type")
    if kind in _KEPT_ITEMS or kind in (_CUSTOM_CALL, _CUSTOM_OUTPUT):
        return True
    left_out.append(f"input.{kind}")
    return False


def _item_as_function(item: Any, names: Mapping[Origin, str]) -> Any:
    fields = as_fields(item)
    kind = fields.get("type")
    if kind == _CUSTOM_OUTPUT:
        return {**fields, "type": "function_call_output"}
    if kind not in (_CUSTOM_CALL, "function_call"):
        return item
    origin = _origin_of(_CUSTOM if kind == _CUSTOM_CALL else _FUNCTION, fields)
    fields = {key: value for key, value in fields.items() if key != "namespace"}
    if origin.name:
        fields["name"] = names.get(origin) or _join(origin.namespace, origin.name)
    if kind == _CUSTOM_CALL:
        text = fields.pop(_INPUT, "")
        fields |= {"type": "function_call", "arguments": encode_text({_INPUT: text})}
    return fields


def _choice_as_function(choice: dict[str, Any], names: Mapping[Origin, str]) -> dict[str, Any]:
    if choice.get("type") == "allowed_tools":
        tools = [_choice_as_function(as_fields(tool), names) for tool in as_list(choice["tools"])]
        return {**choice, "tools": tools}
    origin = _origin_of(str(choice.get("type")), choice)
    return {"type": _FUNCTION, "name": names[origin]} if origin in names else choice


def _origin_of(kind: str, fields: Mapping[str, Any]) -> Origin:
    name, namespace = text_or_none(fields.get("name")), text_or_none(fields.get("namespace"))
    return Origin(kind, name or "", namespace or "")


def _input_of(arguments: str) -> str:
    """Return the text for a custom tool; arguments of another form are the text themselves."""
    try:
        value = as_fields(decode(arguments)).get(_INPUT)
    except JSONTextError:
        value = None
    return value if isinstance(value, str) else arguments
