"""Schemas that pydantic models give of themselves, in the form the rest of the schemas have."""

from collections.abc import Callable
from typing import Any, cast

__all__ = ["render_model"]

_Named = Callable[[Any, str, Callable[[], dict[str, Any]]], dict[str, Any]]

_PREFIX = "#/$defs/"
_DATA = frozenset({"default", "enum", "examples", "required"})
_DROPPED = frozenset({"$defs", "discriminator", "title"})
# How pydantic starts the pattern of a Decimal; engines without look-around refuse it.
_LOOK_AHEAD = "(?!^[-+.]*$)"


def render_model(model: Any, schema: dict[str, Any], named: _Named) -> dict[str, Any]:
    """Return the schema of a model without titles, and with references only where it recurses."""
    return _Rendering(model, schema.get("$defs", {}), named).schema(schema)


class _Rendering:
    def __init__(self, model: Any, definitions: dict[str, Any], named: _Named) -> None:
        self._model = model
        self._definitions = definitions
        self._named = named

    def schema(self, node: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword not in _DROPPED:
                result.update(self._keyword(keyword, value))
        if "properties" in result:
            result.setdefault("additionalProperties", False)
        return result

    def _keyword(self, keyword: str, value: Any) -> dict[str, Any]:
        match keyword:
            case "$ref":
                return self._referenced(value)
            case "const":
                return {"enum": [value]}
            case "pattern":
                return {keyword: value.replace(_LOOK_AHEAD, "")}
            case "oneOf":
                return {"anyOf": self._value(value)}
            case "properties" | "patternProperties":
                return {keyword: {name: self._value(item) for name, item in value.items()}}
            case _:
                return {keyword: value if keyword in _DATA else self._value(value)}

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.schema(cast(dict[str, Any], value))
        if isinstance(value, list):
            return [self._value(item) for item in cast(list[Any], value)]
        return value

    def _referenced(self, reference: str) -> dict[str, Any]:
        name = reference.removeprefix(_PREFIX)
        if name not in self._definitions:
            return {"$ref": reference}
        key = (self._model, name)
        return self._named(key, name, lambda: self.schema(self._definitions[name]))
