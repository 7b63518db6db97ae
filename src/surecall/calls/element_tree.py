"""Values written as nested tags, and what they are under a schema."""

from collections.abc import Iterator
from typing import Any, cast

from surecall.schema import property_schema, type_text_value

_ITEM = "item"


class Node:
    """A tag with text, or with tags inside."""

    __slots__ = ("children", "key", "text")

    def __init__(self, key: str, text: str = "") -> None:
        self.key = key
        self.text = text
        self.children: list[Node] = []

    def all(self) -> Iterator["Node"]:
        """Yield the tag and all tags inside it."""
        yield self
        for child in self.children:
            yield from child.all()


def value_of(node: Node, schema: dict[str, Any] | None) -> Any:
    """Return the value of a tag; the depth of the tree is limited by whoever built it."""
    is_array = _is_type(schema, "array")
    if not node.children:
        if not node.text.strip() and is_array:
            return []
        if not node.text.strip() and _is_type(schema, "object"):
            return {}
        return type_text_value(node.text, schema)
    if is_array or all(child.key == _ITEM for child in node.children):
        inner = _items_schema(schema)
        return [value_of(child, inner) for child in node.children]
    return _object_of(node, schema)


def _object_of(node: Node, schema: dict[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    repeated: set[str] = set()
    for child in node.children:
        inner = None if schema is None else property_schema(schema, child.key)
        if child.key not in found:
            found[child.key] = value_of(child, inner)
            continue
        if child.key not in repeated and not isinstance(found[child.key], list):
            found[child.key] = [found[child.key]]
        repeated.add(child.key)
        found[child.key].append(value_of(child, _items_schema(inner)))
    return found


def _items_schema(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    items: Any = None if schema is None else schema.get("items")
    return cast("dict[str, Any]", items) if isinstance(items, dict) else None


def _is_type(schema: dict[str, Any] | None, name: str) -> bool:
    if schema is None:
        return False
    stated: Any = schema.get("type")
    return name in cast("list[Any]", stated) if isinstance(stated, list) else stated == name
