"""The subset that OpenAI's strict mode takes: every object closed, every property required.

That holds for objects among listed values too, so these are written as the objects they are.
An optional property becomes one that may be null; whoever reads the arguments takes null for
absence, as coercion does. That makes the result stricter, so each such place is `changed`.
"""

from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.limits import MAX_SCHEMA_DEPTH
from surecall.schema.structure import add_definitions, json_types

from .nodes import (
    Losses,
    Node,
    add_remark,
    flatten_root,
    join_choices,
    limits_of,
    make_choice,
    measure,
    named_properties,
    resolve_types,
    values_of,
)

_MAX_PROPERTIES: Final = 5_000
_MAX_DEPTH: Final = 10
_MAX_ENUM: Final = 1_000
_MAX_CHARS: Final = 120_000
"""How long all names and listed texts may be together."""
_LONG_ENUM: Final = 250
_MAX_LONG_ENUM_CHARS: Final = 15_000
"""How long the texts of one list may be together, when it has more than `_LONG_ENUM`."""
_FORMATS: Final = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}
)
_KEPT: Final = frozenset(
    {"exclusiveMaximum", "exclusiveMinimum", "maxItems", "maximum", "minItems", "minimum"}
    | {"multipleOf"}
)
_LOOKAROUNDS: Final = ("(?=", "(?!", "(?<=", "(?<!")
_SCALARS: Final = ("string", "number", "boolean", "null")


def write_openai_strict(root: Node, definitions: dict[str, Node], losses: Losses) -> dict[str, Any]:
    """Write a schema as the strict mode takes it."""
    return _StrictWriter(losses).write_root(root, definitions)


class _StrictWriter:
    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._properties = 0
        self._values = 0
        self._chars = 0
        self._depth = 0

    def write_root(self, root: Node, definitions: dict[str, Node]) -> dict[str, Any]:
        if root.types == ("object",) and root.enum is not None:
            root = replace(_spell_out_all(root.enum, root.place, self._losses), texts=root.texts)
        root = resolve_types(flatten_root(root, self._losses), self._losses)
        if root.is_any:
            self._losses.note(root, "type", "the top level must be an object", "changed")
            root = Node(place=root.place, types=("object",), texts=root.texts)
        if root.types != ("object",):
            why = "the top level must be an object and nothing else"
            self._losses.note(root, "type", why, "over_limit")
        schema = self._write(root, 1)
        written = {name: self._write(node, 1) for name, node in definitions.items()}
        self._chars += sum(len(name.rsplit("/", 1)[-1]) for name in written)
        self._note_limits()
        return add_definitions(schema, written)

    def _note_limits(self) -> None:
        for count, limit, keyword, what in (
            (self._properties, _MAX_PROPERTIES, "properties", "properties"),
            (self._depth, _MAX_DEPTH, "properties", "levels"),
            (self._values, _MAX_ENUM, "enum", "listed values"),
            (self._chars, _MAX_CHARS, "properties", "characters in names and listed values"),
        ):
            if count > limit:
                why = f"{count} {what}; at most {limit} are accepted"
                self._losses.note("", keyword, why, "over_limit")

    def _write(self, node: Node, depth: int) -> dict[str, Any]:
        node = resolve_types(node, self._losses)
        texts = {key: node.texts[key] for key in ("title", "description") if key in node.texts}
        if node.ref:
            return {"$ref": node.ref}
        if node.choices:
            return join_choices([self._write(choice, depth) for choice in node.choices], texts)
        if node.is_any or node.is_nothing:
            why = "a value needs a type; it becomes a string, number, boolean or null"
            self._losses.note(node, "type", why, "changed")
            return join_choices([{"type": kind} for kind in _SCALARS], texts)
        types = [kind for kind in node.types or () if kind != "null"]
        has_null = len(types) < len(node.types or ())
        if not types:
            return {"type": "null", **texts}
        if len(types) == 1:
            return self._write_type(node, types[0], texts, depth, has_null=has_null)
        written = [self._write_type(node, kind, {}, depth) for kind in types]
        return join_choices([*written, {"type": "null"}] if has_null else written, texts)

    def _write_type(
        self, node: Node, kind: str, texts: dict[str, Any], depth: int, *, has_null: bool = False
    ) -> dict[str, Any]:
        wire: dict[str, Any] = {"type": [kind, "null"] if has_null else kind}
        values = values_of(node, kind)
        if values is not None:
            if kind in {"array", "object"}:
                written = self._write(_spell_out_all(values, node.place, self._losses), depth)
                return join_choices([written, {"type": "null"}] if has_null else [written], texts)
            self._count_values(node, values)
            wire["enum"] = [*values, None] if has_null else values
        for keyword, value in limits_of(node, kind).items():
            if _is_kept(kind, keyword, value):
                wire[keyword] = value
            else:
                why = f"{keyword} is not supported"
                self._losses.note(node, keyword, why, "dropped")
                add_remark(texts, keyword, value)
        if kind == "array":
            wire["items"] = self._write(node.items or Node(place=node.place), depth + 1)
        elif kind == "object":
            self._write_object(node, wire, depth)
        return {**wire, **texts}

    def _count_values(self, node: Node, values: list[Any]) -> None:
        chars = sum(len(value) for value in values if isinstance(value, str))
        self._values += len(values)
        self._chars += chars
        if len(values) > _LONG_ENUM and chars > _MAX_LONG_ENUM_CHARS:
            why = (
                f"{chars} characters in {len(values)} values; "
                f"at most {_MAX_LONG_ENUM_CHARS} are accepted for more than {_LONG_ENUM} values"
            )
            self._losses.note(node, "enum", why, "over_limit")

    def _write_object(self, node: Node, wire: dict[str, Any], depth: int) -> None:
        self._depth = max(self._depth, depth)
        if node.additional is not False:
            why = "only the described properties are allowed"
            self._losses.note(node, "additionalProperties", why, "changed")
        properties = named_properties(node)
        self._properties += len(properties)
        self._chars += sum(map(len, properties))
        wire["properties"] = {}
        for name, inner in properties.items():
            written = self._write(inner, depth + 1)
            if name not in node.required:
                why = f"every property is required; null means that {name!r} is absent"
                self._losses.note(node, "required", why, "changed")
                written = _nullable(written)
            wire["properties"][name] = written
        wire["required"] = list(properties)
        wire["additionalProperties"] = False


def _is_kept(kind: str, keyword: str, value: Any) -> bool:
    """Tell whether a limit can be said."""
    if keyword == "format":
        return kind == "string" and value in _FORMATS
    if keyword == "pattern":
        return not any(opener in value for opener in _LOOKAROUNDS)
    return keyword in _KEPT


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a written schema that also takes null."""
    if "anyOf" in schema:
        if any("null" in _type_list(item) for item in schema["anyOf"]):
            return schema
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    types = _type_list(schema)
    if "null" in types:
        return schema
    wire = {**schema, "type": [*types, "null"]}
    if "enum" in wire:
        wire["enum"] = [*wire["enum"], None]
    return wire


def _type_list(schema: dict[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else types


# Listed values


def _spell_out_all(values: list[Any], place: str, losses: Losses) -> Node:
    """Return a node that takes any of the values."""
    return make_choice(place, [_spell_out(value, place, losses) for value in values])


def _spell_out(value: Any, place: str, losses: Losses, depth: int = 0) -> Node:
    """Return a node that takes a value: objects by their properties, arrays by their elements."""
    if depth > MAX_SCHEMA_DEPTH:
        losses.note(place, "enum", "a listed value is nested too deeply", "weakened")
        return Node(place=place)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        properties = {name: _spell_out(item, place, losses, depth + 1) for name, item in members}
        return measure(
            Node(
                place=place,
                types=("object",),
                properties=properties,
                required=tuple(properties),
                additional=False,
            )
        )
    if isinstance(value, list):
        return _spell_out_array(cast("list[Any]", value), place, losses, depth)
    return Node(place=place, types=json_types(value)[:1], enum=[value])


def _spell_out_array(values: list[Any], place: str, losses: Losses, depth: int) -> Node:
    items = [_spell_out(item, place, losses, depth + 1) for item in values]
    if any(item != items[0] for item in items):
        why = "the order of the elements of a listed array cannot be expressed"
        losses.note(place, "enum", why, "weakened")
    # No element fits into an empty array; what it would be has to be said all the same.
    element = make_choice(place, items) if items else Node(place=place, types=("null",))
    limits = {"minItems": len(items), "maxItems": len(items)}
    return measure(Node(place=place, types=("array",), limits=limits, items=element))
