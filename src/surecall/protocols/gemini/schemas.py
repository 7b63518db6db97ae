"""Schemas as clients of Gemini write them, turned into JSON Schema."""

from typing import Any, Final, cast

from surecall.limits import MAX_SCHEMA_DEPTH

from .members import snake

__all__ = ["parse_schema"]

_NAMES: Final = (
    *("additionalProperties", "anyOf", "maxItems", "maxLength", "maxProperties", "minItems"),
    *("minLength", "minProperties", "propertyOrdering"),
)
_BY_SNAKE: Final = {snake(name): name for name in _NAMES}
_COUNTS: Final = frozenset(
    {"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"}
)
_LEFT_OUT: Final = frozenset({"nullable", "propertyOrdering"})


def parse_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return a JSON Schema: types in lower case, null as a type, counts as numbers."""
    if not isinstance(schema, dict) or depth > MAX_SCHEMA_DEPTH:
        return {}
    fields = {_BY_SNAKE.get(k, k): v for k, v in cast("dict[str, Any]", schema).items()}
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if value is None or key in _LEFT_OUT:
            continue
        if key == "type" and isinstance(value, str):
            if value.upper() != "TYPE_UNSPECIFIED":
                found[key] = value.lower()
        elif key in _COUNTS and isinstance(value, str):
            found[key] = int(value) if value.isascii() and value.isdigit() else value
        elif key == "properties" and isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            found[key] = {name: parse_schema(item, depth + 1) for name, item in items}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            found[key] = parse_schema(value, depth + 1)
        elif key == "anyOf" and isinstance(value, list):
            found[key] = [parse_schema(item, depth + 1) for item in cast("list[Any]", value)]
        elif not (key == "format" and value == "enum"):
            found[key] = value
    return _with_null(found) if fields.get("nullable") is True else found


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str) and schema["type"] != "null":
        enum = {"enum": [*schema["enum"], None]} if isinstance(schema.get("enum"), list) else {}
        return {**schema, "type": [schema["type"], "null"], **enum}
    if isinstance(schema.get("anyOf"), list):
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return schema
