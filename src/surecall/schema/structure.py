"""The structure of a schema: the schemas inside it, and where `$ref` and `allOf` lead.

Whoever follows a reference or joins what applies together does it here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

import msgspec

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.text import parse_pointer, resolve_pointer

SchemaPath = tuple[str | int, ...]

MAX_SCHEMA_NODES: Final = 5_000
_MAX_WALK: Final = 50_000

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

_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas are applied to the very value the outer schema is applied to."""
_WRITTEN_OUT = (
    *("additionalItems", "additionalProperties", "allOf", "anyOf", "items", "oneOf", "prefixItems"),
)
_NOT_JOINED: Final = ("$ref", "allOf", "$defs", "definitions", "$schema", "$id")
_NOT_PORTABLE: Final = ("$id", "id", "$dynamicRef", "$recursiveRef")


class SchemaPlace(NamedTuple):
    """One schema, and the way that leads to it."""

    path: SchemaPath
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
    for keyword in _IN_PLACE:
        if keyword in schema:
            for place in _schemas_under((), keyword, schema[keyword]):
                yield place.schema


def _schemas_under(path: SchemaPath, keyword: str, value: Any) -> list[SchemaPlace]:
    if keyword in _ONE and isinstance(value, dict):
        return [SchemaPlace((*path, keyword), cast("dict[str, Any]", value))]
    inner: Iterable[tuple[str | int, Any]] = ()
    if keyword in _NAMED:
        inner = as_fields(value).items()
    elif keyword in _MANY:
        inner = enumerate(as_list(value))
    return [
        SchemaPlace((*path, keyword, key), cast("dict[str, Any]", item))
        for key, item in inner
        if isinstance(item, dict)
    ]


def members_of(schema: Any) -> dict[str, Any]:
    """Return the properties of a schema; an empty object when it has none."""
    return as_fields(as_fields(schema).get("properties"))


def nests_deeper(root: Any, limit: int) -> bool:
    """Tell whether a value holds more than `limit` containers in one another."""
    level: list[Any] = [root] if isinstance(root, dict | list) else []
    for _ in range(limit):
        below: list[Any] = []
        for item in level:
            parts: Any = cast("dict[str, Any]", item).values() if isinstance(item, dict) else item
            below += [part for part in parts if isinstance(part, (dict, list))]
        if not below:
            return False
        level = below
    return True


def has_few_nodes(root: Any, limit: int) -> bool:
    """Tell whether a value has at most so many parts; stops counting beyond."""
    stack = [root]
    seen = 0
    while stack:
        value = stack.pop()
        seen += 1
        stack += as_fields(value).values() or as_list(value)
        if seen + len(stack) > limit:
            return False
    return True


def listed_values(schema: dict[str, Any]) -> list[Any] | None:
    """Return the values that `const` or `enum` allows; None when there is neither."""
    if "const" in schema:
        return [schema["const"]]
    options = schema.get("enum")
    return cast("list[Any]", options) if isinstance(options, list) else None


def json_types(value: Any) -> tuple[str, ...]:
    """Return the types a JSON value has, the one it is written as first."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("number", "integer") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case _:
            return ("object",)


class References:
    """The local references of one schema; nothing outside of it is ever looked up."""

    __slots__ = ("_anchors", "_root")

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._anchors: dict[str, SchemaPath] | None = None

    def resolve(self, reference: str) -> Any:
        """Return the schema a reference leads to, or None."""
        if not reference.startswith("#/"):
            return self.find(reference)[1]
        try:
            return resolve_pointer(self._root, unquote(reference[1:]))
        except JSONTextError:
            return None

    def find(self, reference: str) -> tuple[SchemaPath, Any]:
        """Return the place a reference leads to and the schema there, or None for a schema."""
        if reference in {"#", ""}:
            return (), self._root
        if reference.startswith("#/"):
            schema = self.resolve(reference)
            return (() if schema is None else parse_pointer(unquote(reference[1:]))), schema
        path = self._find_anchors().get(unquote(reference[1:])) if reference[0] == "#" else None
        schema: Any = None if path is None else self._root
        for part in path or ():
            schema = schema[part]
        return path or (), schema

    def list_facets(self, part: Any) -> list[dict[str, Any]]:
        """Return the schemas that all apply where a part does: its own, by `$ref`, by `allOf`."""
        facets: list[dict[str, Any]] = []
        seen: set[str] = set()
        stack: list[Any] = [part]
        while stack:
            item = stack.pop()
            if not isinstance(item, dict):
                continue
            schema = cast("dict[str, Any]", item)
            rest = {key: schema[key] for key in schema if key not in _NOT_JOINED}
            if rest:
                facets.append(rest if len(rest) < len(schema) else schema)
            if "allOf" in schema:
                stack.extend(reversed(as_list(schema["allOf"])))
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                stack.append(self.resolve(reference))
        return facets

    def join(self, part: Any) -> dict[str, Any]:
        """Return one schema for all that applies where a part does; inner parts stay as they are.

        Where two disagree, the first counts; types, properties and required names are combined.
        """
        result: dict[str, Any] = {}
        for facet in self.list_facets(part):
            for keyword, value in facet.items():
                known = result.get(keyword)
                if keyword == "properties" and isinstance(known, dict):
                    result[keyword] = {**value, **cast("dict[str, Any]", known)}
                elif keyword == "required" and isinstance(known, list):
                    result[keyword] = list(dict.fromkeys([*cast("list[str]", known), *value]))
                elif keyword == "type" and known is not None:
                    names = [known] if isinstance(known, str) else as_list(known)
                    common = [name for name in names if name == value or name in as_list(value)]
                    result[keyword] = common[0] if len(common) == 1 else common or known
                else:
                    result.setdefault(keyword, value)
        return result

    def extract(self, part: dict[str, Any]) -> dict[str, Any] | None:
        """Return a part as a schema that needs no other, with all that it refers to, or None."""
        names: dict[str, str] = {}
        copies: list[dict[str, Any]] = []
        pending: list[Any] = [part]
        while pending:
            copy: Any = msgspec.to_builtins(pending.pop(0))
            if not isinstance(copy, dict):
                return None
            copies.append(cast("dict[str, Any]", copy))
            for place in walk_schema(copies[-1]):
                schema = place.schema
                for keyword in ("$anchor", "$defs", "$schema", "definitions"):
                    schema.pop(keyword, None)
                reference = schema.get("$ref")
                if isinstance(reference, str):
                    if reference not in names:
                        names[reference] = f"#/$defs/{len(names)}"
                        pending.append(self.resolve(reference))
                    schema["$ref"] = names[reference]
                if not place.path:
                    schema.pop("$id", None)
                if any(word in schema for word in _NOT_PORTABLE):
                    return None
        whole = copies[0]
        if len(copies) > 1:
            whole["$defs"] = {str(number): item for number, item in enumerate(copies[1:])}
        if "$schema" in self._root:
            whole["$schema"] = self._root["$schema"]
        return whole

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
            for inner in _list_written_out(schema):
                sizes[origin] += 1
                reference = inner.get("$ref")
                if isinstance(reference, str):
                    found[reference] += 1
            budget -= sizes[origin]
            new = found.keys() - uses.keys()
            uses.update({reference: Counter() for reference in new})
            waiting += [(reference, self.resolve(reference)) for reference in sorted(new)]
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


def add_definitions(
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


def _list_written_out(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema that is written out with this one."""
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += cast("list[Any]", item)
        elif isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            yield fields
            stack += [fields[key] for key in _WRITTEN_OUT if key in fields]
            stack += members_of(fields).values()


def _find_circles(uses: dict[str, Counter[str]], sizes: dict[str, int]) -> frozenset[str]:
    """Return what leads back to itself, or lies between two that do; add up the sizes of others."""
    edges = {name: set(targets) for name, targets in uses.items()}
    forward, ends = _take_off_ends(edges)
    for name in ends:
        sizes[name] += sum(sizes[key] * count for key, count in uses[name].items())
    return frozenset(_take_off_ends(forward)[0])


def _take_off_ends(edges: dict[str, set[str]]) -> tuple[dict[str, set[str]], list[str]]:
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
