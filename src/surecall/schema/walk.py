"""Every schema inside a schema, found by keyword, without recursion."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

__all__ = ["IN_PLACE_KEYWORDS", "SchemaPlace", "in_place_schemas", "walk_schema"]

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

IN_PLACE_KEYWORDS = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas are applied to the very value the outer schema is applied to."""


class SchemaPlace(NamedTuple):
    """One schema, and the way that leads to it."""

    path: tuple[str | int, ...]
    schema: dict[str, Any]

    @property
    def keywords(self) -> tuple[str, ...]:
        """The keywords on the way, without the names and indexes between them."""
        found: list[str] = []
        is_name = False
        for part in self.path:
            if is_name or isinstance(part, int):
                is_name = False
                continue
            found.append(part)
            is_name = part in _NAMED
        return tuple(found)


def walk_schema(root: dict[str, Any]) -> Iterator[SchemaPlace]:
    """Yield the schema and every schema in it, outer before inner, in document order."""
    stack = [SchemaPlace((), root)]
    while stack:
        place = stack.pop()
        yield place
        inner: list[SchemaPlace] = []
        for keyword, value in place.schema.items():
            inner.extend(_schemas_under(place.path, keyword, value))
        stack.extend(reversed(inner))


def in_place_schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas that are applied to the same value as this one."""
    for keyword in IN_PLACE_KEYWORDS:
        if keyword in schema:
            for place in _schemas_under((), keyword, schema[keyword]):
                yield place.schema


def _schemas_under(path: tuple[str | int, ...], keyword: str, value: Any) -> list[SchemaPlace]:
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        if keyword in _ONE:
            return [SchemaPlace((*path, keyword), members)]
        if keyword in _NAMED:
            return [
                SchemaPlace((*path, keyword, name), cast(dict[str, Any], item))
                for name, item in members.items()
                if isinstance(item, dict)
            ]
    elif isinstance(value, list) and keyword in _MANY:
        return [
            SchemaPlace((*path, keyword, index), cast(dict[str, Any], item))
            for index, item in enumerate(cast(list[Any], value))
            if isinstance(item, dict)
        ]
    return []
