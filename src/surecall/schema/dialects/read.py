"""From a JSON Schema to its plain form: references written out, `allOf` merged."""

import re
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

from msgspec.structs import replace

from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MAX_SCHEMA_DEPTH
from surecall.schema.structure import (
    References,
    SchemaPath,
    json_types,
    listed_values,
)
from surecall.text import render_pointer

from .nodes import LIMITS, Losses, Node, allow_null, make_choice, measure, merge_nodes

_MAX_WRITTEN_OUT: Final = 5_000
_TEXTS: Final = ("title", "description", "default")
_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_OLD_DRAFTS: Final = ("draft-04", "draft-06", "draft-07")
_LEFT_OUT: Final = {
    "contains": "what an array must contain cannot be expressed",
    "dependencies": "dependencies between properties cannot be expressed",
    "dependentRequired": "dependencies between properties cannot be expressed",
    "dependentSchemas": "dependencies between properties cannot be expressed",
    "if": "conditions cannot be expressed",
    "not": "exclusions cannot be expressed",
    "patternProperties": "properties cannot be described by name patterns",
    "propertyNames": "property names cannot be limited",
    "unevaluatedItems": "elements beyond those described cannot be limited",
    "unevaluatedProperties": "properties beyond those described cannot be limited",
}


_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class _Where(NamedTuple):
    """The way to a schema."""

    path: SchemaPath = ()
    depth: int = 0
    is_inside: bool = False
    """Whether it applies to the same value as the schema around it."""
    chain: tuple[str, ...] = ()
    """The references that were followed to get here."""

    @property
    def place(self) -> str:
        return render_pointer(self.path)

    def below(self, *parts: str | int) -> "_Where":
        """Lead to a schema for a part of the value."""
        return _Where((*self.path, *parts), self.depth + 1, chain=self.chain)

    def apply(self, *parts: str | int) -> "_Where":
        """Lead to a schema for the same value; the first such step costs no depth."""
        depth = self.depth + self.is_inside
        return _Where((*self.path, *parts), depth, is_inside=True, chain=self.chain)


class SchemaReader:
    """Reads one schema; recursion is bounded by `MAX_SCHEMA_DEPTH`, whatever the schema does."""

    def __init__(self, root: dict[str, Any], losses: Losses, *, keeps_refs: bool) -> None:
        self._root = root
        self._losses = losses
        self._written_out = 0
        dialect = root.get("$schema")
        self._is_old = isinstance(dialect, str) and any(part in dialect for part in _OLD_DRAFTS)
        self._references = References(root)
        self._names: dict[str, str] = {}
        """References that are kept, and the names of their definitions."""
        self._kept = frozenset[str]()
        if keeps_refs:
            self._kept = self._references.find_kept(_MAX_WRITTEN_OUT)

    def read(self) -> tuple[Node, dict[str, Node]]:
        """Return the schema, and the definitions it still refers to, by their references."""
        node = self._read(self._root, _Where())
        definitions: dict[str, Node] = {}
        while len(definitions) < len(self._names):
            reference = list(self._names)[len(definitions)]
            path, target = self._references.find(reference)
            where = _Where(path, 1, chain=(reference,))
            definitions[self._keep(reference)] = self._read(target, where)
        for reference, found in definitions.items():
            definitions[reference] = self._follow(found, definitions)
        return self._follow(node, definitions), definitions

    def _keep(self, reference: str) -> str:
        """Return the reference to a definition that is kept, under a name that is free."""
        if reference not in self._names:
            tail = unquote(reference.rsplit("/", 1)[-1].lstrip("#"))
            name = plain = _NOT_A_NAME.sub("_", tail)[:60] or "Root"
            number = 2
            while name in self._names.values():
                name = f"{plain}_{number}"
                number += 1
            self._names[reference] = name
        return f"#/$defs/{self._names[reference]}"

    def _follow(self, node: Node, definitions: dict[str, Node]) -> Node:
        """Return what a node that is only a reference stands for."""
        for _ in definitions:
            if not node.ref:
                return node
            target = definitions[node.ref]
            node = replace(target, texts={**target.texts, **node.texts})
        if node.ref:
            self._losses.note(node, "$ref", "the reference only leads back to itself", "dropped")
            return Node(place=node.place)
        return node

    def _read(self, schema: Any, where: _Where) -> Node:
        place = where.place
        if isinstance(schema, bool):
            return Node(place=place) if schema else Node(place=place, types=())
        if not isinstance(schema, dict) or where.depth > MAX_SCHEMA_DEPTH:
            is_deep = where.depth > MAX_SCHEMA_DEPTH
            why = "it is nested too deeply" if is_deep else "it is not a schema"
            self._losses.note(place, "", why, "dropped")
            return Node(place=place)
        self._written_out += bool(where.chain)
        fields = cast("dict[str, Any]", schema)
        parts: list[Node] = []
        reference = fields.get("$ref")
        if isinstance(reference, str):
            if self._is_old:
                fields = {key: fields[key] for key in ("$ref", *_TEXTS) if key in fields}
            parts.append(self._read_reference(reference, where))
        for index, part in enumerate(as_list(fields.get("allOf"))):
            parts.append(self._read(part, where.apply("allOf", index)))
        parts += [
            self._read_choice(fields[keyword], keyword, where)
            for keyword in ("anyOf", "oneOf")
            if isinstance(fields.get(keyword), list)
        ]
        node = self._read_plain(fields, where)
        for part in parts:
            node = merge_nodes(node, part, self._losses)
        return allow_null(node) if fields.get("nullable") is True else node

    def _read_choice(self, items: list[Any], keyword: str, where: _Where) -> Node:
        choices = [
            self._read(item, where.apply(keyword, index)) for index, item in enumerate(items)
        ]
        if keyword == "oneOf" and len(choices) > 1:
            why = "that exactly one form must fit cannot be expressed; any may"
            self._losses.note(where.place, keyword, why, "weakened")
        return make_choice(where.place, choices)

    def _read_plain(self, fields: dict[str, Any], where: _Where) -> Node:
        place = where.place
        for keyword, why in _LEFT_OUT.items():
            if keyword in fields:
                self._losses.note(place, keyword, why, "dropped")
        node = Node(
            place=place,
            types=_types(fields.get("type")),
            enum=_enum(fields),
            limits=_limits(fields),
            required=_names(fields.get("required")),
            texts={key: fields[key] for key in _TEXTS if key in fields and _is_fit(key, fields)},
            ordering=_names(fields.get("propertyOrdering")),
        )
        if isinstance(fields.get("properties"), dict):
            node.properties = self._read_properties(fields["properties"], where)
        self._read_additional(node, fields, where)
        self._read_items(node, fields, where)
        if node.enum is not None:
            _narrow_to_enum(node)
        return measure(node)

    def _read_properties(self, properties: dict[str, Any], where: _Where) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for name, schema in properties.items():
            here = where.below("properties", name)
            node = self._read(schema, here)
            if node.is_nothing:
                why = "that a property must be absent cannot be expressed"
                self._losses.note(here.place, "false", why, "dropped")
                continue
            found[name] = node
        return found

    def _read_additional(self, node: Node, fields: dict[str, Any], where: _Where) -> None:
        schema = fields.get("additionalProperties", True)
        if schema is True or fields.get("patternProperties"):
            return
        inner = self._read(schema, where.below("additionalProperties"))
        if inner.is_nothing:
            node.additional = False
        elif not inner.is_any:
            node.additional = inner

    def _read_items(self, node: Node, fields: dict[str, Any], where: _Where) -> None:
        keyword, rest = "prefixItems", "items"
        if isinstance(fields.get("items"), list):
            keyword, rest = "items", "additionalItems"
        firsts = [
            self._read(item, where.below(keyword, index))
            for index, item in enumerate(as_list(fields.get(keyword)))
        ]
        others = self._read(fields.get(rest, True), where.below(rest))
        if others.is_nothing:
            node.limits["maxItems"] = min(len(firsts), node.limits.get("maxItems", len(firsts)))
        if not firsts:
            node.items = None if others.is_nothing or others.is_any else others
            return
        why = "elements cannot be described by position; each may be any of them"
        self._losses.note(node, keyword, why, "weakened")
        node.items = make_choice(where.below(keyword).place, [*firsts, others])

    def _read_reference(self, reference: str, where: _Where) -> Node:
        here = where.apply("$ref")
        path, target = self._references.find(reference)
        if target is None:
            why = "the reference leads to nothing in the schema"
            self._losses.note(where.place, "$ref", why, "dropped")
            return Node(place=here.place)
        is_full = not self._kept and self._written_out > _MAX_WRITTEN_OUT
        if here.depth and reference in self._kept:
            return Node(place=where.place, ref=self._keep(reference))
        if reference in where.chain or is_full:
            why = f"written out, the schema would {'be too large' if is_full else 'never end'}"
            self._losses.note(where.place, "$ref", why, "weakened")
            return Node(place=where.place, types=("object",) if _is_object(target) else None)
        return self._read(target, here._replace(path=path, chain=(*where.chain, reference)))


def _names(value: Any) -> tuple[str, ...]:
    return tuple(name for name in as_list(value) if isinstance(name, str))


def _is_fit(key: str, fields: dict[str, Any]) -> bool:
    return key == "default" or isinstance(fields[key], str)


def _is_object(schema: Any) -> bool:
    fields = as_fields(schema)
    return fields.get("type") == "object" or ("type" not in fields and "properties" in fields)


def _types(value: Any) -> tuple[str, ...] | None:
    names = [value] if isinstance(value, str) else as_list(value)
    known = [name.lower() for name in names if isinstance(name, str) and name.lower() in LIMITS]
    if "number" in known and "integer" in known:
        known.remove("integer")
    return tuple(dict.fromkeys(known)) or None


def _enum(fields: dict[str, Any]) -> list[Any] | None:
    found = listed_values(fields)
    if found is None or "const" not in fields or not isinstance(fields.get("enum"), list):
        return found
    const = fields["const"]
    return [item for item in fields["enum"] if item == const and type(item) is type(const)]


def _narrow_to_enum(node: Node) -> None:
    """Keep only the values whose type is allowed, and only the types that have a value."""
    values = node.enum or []
    if node.types is None:
        types = tuple(dict.fromkeys(json_types(item)[0] for item in values))
        if "number" in types and "integer" in types:
            types = tuple(kind for kind in types if kind != "integer")
    else:
        allowed = node.types
        values = [item for item in values if any(kind in allowed for kind in json_types(item))]
        types = tuple(k for k in allowed if any(k in json_types(item) for item in values))
    node.enum, node.types = (values, types) if values else (None, ())


def _limits(fields: dict[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for keyword in _NUMBERS:
        value = fields.get(keyword)
        if isinstance(value, int | float) and not isinstance(value, bool):
            limits[keyword] = value
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if fields.get(exclusive) is True and bound in limits:  # draft 4
            limits[exclusive] = limits.pop(bound)
    for keyword in _COUNTS:
        value = fields.get(keyword)
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1:
            limits[keyword] = int(value)
    for keyword in ("pattern", "format"):
        if isinstance(fields.get(keyword), str):
            limits[keyword] = fields[keyword]
    if fields.get("uniqueItems") is True:
        limits["uniqueItems"] = True
    return limits
