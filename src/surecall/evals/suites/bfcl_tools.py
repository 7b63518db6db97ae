"""Functions as the leaderboard writes them, made into tools."""

from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.records import ToolSpec

__all__ = ["json_schema_of", "tool_names", "tools_of"]

_TYPES: Final = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "list": "array",
    "int": "integer",
    "bool": "boolean",
    "str": "string",
}
_NOT_SCHEMA: Final = frozenset({"optional"})
_MAX_NAME_CHARS: Final = 64


def tools_of(functions: Sequence[dict[str, Any]]) -> tuple[ToolSpec, ...]:
    """Return the tools that these functions are, under names that every provider takes."""
    return tuple(
        ToolSpec(
            name=name,
            description=function.get("description", ""),
            parameters=json_schema_of(function["parameters"]),
            effect="read",
        )
        for name, function in zip(tool_names(functions), functions, strict=True)
    )


def tool_names(functions: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return a name for each function, in order: letters, digits, `_` and `-`, all different."""
    taken: list[str] = []
    for function in functions:
        clean = "".join(
            c if (c.isascii() and c.isalnum()) or c in "_-" else "_" for c in function["name"]
        )
        name, number = clean[:_MAX_NAME_CHARS], 2
        while name in taken:
            name = f"{clean[: _MAX_NAME_CHARS - 4]}_{number}"
            number += 1
        taken.append(name)
    return tuple(taken)


def json_schema_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as JSON Schema: only the names of types differ."""
    schema: dict[str, Any] = {}
    for key, value in parameters.items():
        if key == "type":
            if value != "any":
                schema[key] = _TYPES.get(value, value)
        elif key == "properties":
            schema[key] = {name: json_schema_of(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            schema[key] = json_schema_of(cast("dict[str, Any]", value))
        elif key not in _NOT_SCHEMA:
            schema[key] = value
    return schema
