"""Where the references of a schema lead, and which of them lead back to themselves."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import unquote

from surecall.errors import JSONTextError
from surecall.jsontext import parse_pointer, resolve_pointer

from .walk import walk_schema

__all__ = ["References", "SchemaPath", "used_definitions"]

SchemaPath = tuple[str | int, ...]

_MAX_WALK: Final = 50_000
_FOLLOWED: Final = ("additionalItems", "additionalProperties", "allOf", "anyOf", "items", "oneOf")
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class References:
    """The references of one schema."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._anchors: dict[str, SchemaPath] | None = None
        self.names: dict[str, str] = {}
        """References that are kept, and the names of their definitions."""

    def target(self, reference: str) -> tuple[SchemaPath, Any]:
        """Return the schema a reference leads to and its place; nothing when there is none."""
        if reference in {"#", ""}:
            return (), self._root
        if not reference.startswith("#"):
            return (), None
        if not reference.startswith("#/"):
            path = self._find_anchors().get(reference[1:])
            return (path, _at(self._root, path)) if path is not None else ((), None)
        pointer = unquote(reference[1:])
        try:
            return parse_pointer(pointer), resolve_pointer(self._root, pointer)
        except JSONTextError:
            return (), None

    def keep(self, reference: str) -> str:
        """Return the reference to a definition of its own, under a name that is free."""
        if reference not in self.names:
            tail = unquote(reference.rsplit("/", 1)[-1].lstrip("#"))
            name = plain = _NOT_A_NAME.sub("_", tail)[:60] or "Root"
            number = 2
            while name in self.names.values():
                name = f"{plain}_{number}"
                number += 1
            self.names[reference] = name
        return f"#/$defs/{self.names[reference]}"

    def find_kept(self, max_nodes: int) -> frozenset[str]:
        """Return the references to keep: those in circles, or all where the whole is too large."""
        uses: dict[str, Counter[str]] = {}
        sizes: dict[str, int] = {}
        budget = _MAX_WALK
        waiting: list[tuple[str, Any]] = [("", self._root)]
        while waiting:
            origin, schema = waiting.pop()
            found = uses[origin] = Counter[str]()
            sizes[origin] = 1
            for inner in _followed(schema):
                sizes[origin] += 1
                reference = inner.get("$ref")
                if isinstance(reference, str):
                    found[reference] += 1
            budget -= sizes[origin]
            new = found.keys() - uses.keys()
            uses.update({reference: Counter() for reference in new})
            waiting += [(reference, self.target(reference)[1]) for reference in sorted(new)]
            if budget <= 0:
                return frozenset(uses.keys() - {""})
        circles = _find_circles(uses, sizes)
        is_large = any(
            sizes[name] + sum(n * sizes[key] for key, n in uses[name].items() if key not in circles)
            > max_nodes
            for name in (*circles, "")
        )
        return frozenset(uses.keys() - {""}) if is_large else circles

    def _find_anchors(self) -> dict[str, SchemaPath]:
        if self._anchors is None:
            self._anchors = {
                name: place.path
                for place in walk_schema(self._root)
                for keyword in ("$anchor", "$dynamicAnchor")
                if isinstance(name := place.schema.get(keyword), str)
            }
        return self._anchors


def used_definitions(
    schema: dict[str, Any], definitions: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the schema with those definitions under `$defs` that it refers to in some way."""
    used: dict[str, dict[str, Any]] = {}
    waiting = [schema]
    while waiting:
        for place in walk_schema(waiting.pop()):
            reference = place.schema.get("$ref")
            if isinstance(reference, str) and reference in definitions and reference not in used:
                used[reference] = definitions[reference]
                waiting.append(definitions[reference])
    if not used:
        return schema
    return {**schema, "$defs": {key.rsplit("/", 1)[-1]: used[key] for key in used}}


def _followed(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema that is written out with this one."""
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += cast("list[Any]", item)
        elif isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            yield fields
            stack += [fields[key] for key in (*_FOLLOWED, "prefixItems") if key in fields]
            properties: Any = fields.get("properties")
            if isinstance(properties, dict):
                stack += list(cast("dict[str, Any]", properties).values())


def _find_circles(uses: dict[str, Counter[str]], sizes: dict[str, int]) -> frozenset[str]:
    """Return what leads back to itself, or lies between two that do; add up the sizes of others."""
    edges = {name: set(targets) for name, targets in uses.items()}
    forward, ends = _without_ends(edges)
    for name in ends:
        sizes[name] += sum(sizes[key] * count for key, count in uses[name].items())
    return frozenset(_without_ends(forward)[0])


def _without_ends(edges: dict[str, set[str]]) -> tuple[dict[str, set[str]], list[str]]:
    """Take away what leads nowhere, again and again; return the rest turned around, and those."""
    back: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets & back.keys():
            back[target].add(name)
    counts = {name: len(targets & back.keys()) for name, targets in edges.items()}
    ends = [name for name, count in counts.items() if not count]
    for end in ends:  # grows while it is gone through
        for name in back[end]:
            counts[name] -= 1
            if not counts[name]:
                ends.append(name)
    return {name: back[name] for name, count in counts.items() if count}, ends


def _at(document: Any, path: SchemaPath) -> Any:
    for part in path:
        document = document[part]
    return document
