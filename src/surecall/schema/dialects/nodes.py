"""The plain form of a schema that dialects are written from: read, combined, its types resolved."""

import re
from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import unquote

from msgspec import Struct, field
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MAX_SCHEMA_DEPTH
from surecall.schema.structure import (
    References,
    SchemaPath,
    json_types,
    listed_values,
)
from surecall.text import encode_text, render_pointer

LossKind = Literal["dropped", "weakened", "changed", "over_limit"]
"""How a schema differs from what it was rewritten from."""

_NUMBER_LIMITS: Final = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"}
)
LIMITS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": _NUMBER_LIMITS,
    "integer": _NUMBER_LIMITS,
    "array": frozenset({"minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"minProperties", "maxProperties"}),
    "boolean": frozenset(),
    "null": frozenset(),
}
"""The keywords that limit values of a type, besides those that hold schemas."""

_LOWER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_MAX_PRODUCT: Final = 16
_MAX_COPIES: Final = 400
_MAX_REMARK: Final = 300
_PAIRS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_ROUNDED: Final[dict[str, Callable[[float], int]]] = {
    "minimum": ceil,
    "exclusiveMinimum": lambda bound: floor(bound) + 1,
    "maximum": floor,
    "exclusiveMaximum": lambda bound: ceil(bound) - 1,
}
_IMPLIED: Final = ("object", "array", "string", "number")


class Loss(Struct, frozen=True):
    """One thing that a schema said and its rewritten form does not."""

    place: str
    """JSON pointer into the schema as it was given."""
    keyword: str
    why: str
    kind: LossKind
    """`dropped` and `weakened` accept more than before; `changed` may accept less or other values;
    `over_limit` was kept, and the provider is likely to refuse it."""


class Losses:
    """The losses of one rewriting, each once."""

    def __init__(self) -> None:
        self._found: dict[Loss, None] = {}

    def note(self, node: "Node | str", keyword: str, why: str, kind: LossKind) -> None:
        """Note one loss."""
        place = node if isinstance(node, str) else node.place
        self._found[Loss(place, keyword, why, kind)] = None

    def note_nothing(self, node: "Node") -> None:
        """Note that a schema which accepts nothing was left out."""
        self.note(node, "false", "a schema that accepts nothing cannot be expressed", "dropped")

    def list_all(self) -> tuple[Loss, ...]:
        """Return all losses, in the order in which they were found."""
        return tuple(self._found)


class Node(Struct, kw_only=True):
    """One schema in plain form; never changed after it was built."""

    place: str
    types: tuple[str, ...] | None = None
    """The types allowed; `None` is any, an empty one fits nothing."""
    enum: list[Any] | None = None
    choices: "list[Node] | None" = None
    limits: dict[str, Any] = field(default_factory=dict[str, Any])
    items: "Node | None" = None
    properties: "dict[str, Node] | None" = None
    required: tuple[str, ...] = ()
    additional: "Node | Literal[False] | None" = None
    """What other properties must fit; `None` is anything."""
    ref: str | None = None
    """A definition that is referred to because it contains itself."""
    texts: dict[str, Any] = field(default_factory=dict[str, Any])
    """`title`, `description`, `default`: no constraints."""
    ordering: tuple[str, ...] = ()
    size: int = 1

    @property
    def is_nothing(self) -> bool:
        """Whether no value fits."""
        return self.types == ()

    @property
    def is_any(self) -> bool:
        """Whether every value fits."""
        says = (self.choices, self.limits, self.items, self.required, self.ref)
        unset = (self.types, self.enum, self.properties, self.additional)
        return not any(says) and all(part is None for part in unset)

    def bare(self) -> "Node":
        """Return the node without its texts."""
        return replace(self, texts={}) if self.texts else self

    def children(self) -> "Iterable[Node]":
        """Yield the nodes directly inside."""
        yield from self.choices or ()
        if self.items:
            yield self.items
        yield from (self.properties or {}).values()
        if self.additional:
            yield self.additional


def named_properties(node: Node) -> dict[str, Node]:
    """Return the properties that are described, and those that are only required."""
    other = node.additional or Node(place=node.place)
    described = node.properties or {}
    return {**described, **{name: other for name in node.required if name not in described}}


def measure(node: Node) -> Node:
    """Return the node with its size counted from those of its children."""
    node.size = 1 + sum(child.size for child in node.children())
    return node


def allow_null(node: Node) -> Node:
    """Return a node that also takes null."""
    if node.is_any or node.is_nothing:
        return node
    if node.choices or node.ref or node.types is None:
        outer = node.texts
        inner = list(node.choices or [node.bare()])
        return make_choice(node.place, [*inner, Node(place=node.place, types=("null",))], outer)
    if "null" in node.types:
        return node
    enum = None if node.enum is None else [*node.enum, None]
    return replace(node, types=(*node.types, "null"), enum=enum)


def make_choice(place: str, choices: list[Node], texts: dict[str, Any] | None = None) -> Node:
    """Return what any of the choices takes; those that fit nothing are left out."""
    flat: list[Node] = []
    for choice in choices:
        flat.extend(choice.choices if choice.choices and not choice.texts else [choice])
    useful = [choice for choice in flat if not choice.is_nothing]
    texts = texts or {}
    if not useful:
        return Node(place=place, types=(), texts=texts)
    if any(choice.is_any for choice in useful):
        return Node(place=place, texts=texts)
    if len(useful) == 1:
        return replace(useful[0], texts={**useful[0].texts, **texts})
    return measure(Node(place=place, choices=useful, texts=texts))


def merge_nodes(first: Node, second: Node, losses: Losses) -> Node:
    """Return what both nodes take, or a little more; the texts of the first win."""
    texts = {**second.texts, **first.texts}
    if first.is_nothing or second.is_any:
        return replace(first, texts=texts)
    if second.is_nothing or first.is_any:
        return replace(second, texts=texts)
    if first.ref or second.ref:
        kept = first if first.ref else second
        if first.ref != second.ref:
            why = "a recursive schema cannot be combined with another one"
            losses.note(kept, "$ref", why, "weakened")
        return replace(kept, texts=texts)
    if first.choices or second.choices:
        return _merge_choices(first, second, texts, losses)
    return _merge_plain(first, second, texts, losses)


def _merge_choices(first: Node, second: Node, texts: dict[str, Any], losses: Losses) -> Node:
    lefts = first.choices or [first.bare()]
    rights = second.choices or [second.bare()]
    copies = len(lefts) * second.size + len(rights) * first.size
    if len(lefts) * len(rights) > _MAX_PRODUCT or copies > _MAX_COPIES:
        kept, left_out = (second, first) if first.choices else (first, second)
        why = "the choice is too large to be combined with the keywords next to it"
        losses.note(left_out, "anyOf", why, "weakened")
        return replace(kept, texts=texts)
    merged = [merge_nodes(left, right, losses) for left in lefts for right in rights]
    return make_choice(first.place, merged, texts)


def _merge_plain(first: Node, second: Node, texts: dict[str, Any], losses: Losses) -> Node:
    types = _common_types(first.types, second.types)
    enum = _common_values(first.enum, second.enum)
    if types == () or enum == []:
        return Node(place=first.place, types=(), texts=texts)
    if enum is not None and types is not None:
        enum = [item for item in enum if any(kind in types for kind in json_types(item))]
        types = tuple(kind for kind in types if any(kind in json_types(item) for item in enum))
    items = first.items or second.items
    if first.items and second.items:
        items = merge_nodes(first.items, second.items, losses)
    return measure(
        Node(
            place=first.place,
            types=() if enum == [] else types,
            enum=enum,
            limits=_common_limits(first, second, losses),
            items=items,
            properties=_all_properties(first, second, losses),
            required=tuple(dict.fromkeys((*first.required, *second.required))),
            additional=_common_additional(first, second, losses),
            texts=texts,
            ordering=first.ordering or second.ordering,
        )
    )


def _common_types(
    first: tuple[str, ...] | None, second: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    if first is None or second is None:
        return second if first is None else first
    found = [kind for kind in first if kind in second]
    if "integer" not in found and (
        ("integer" in first and "number" in second) or ("number" in first and "integer" in second)
    ):
        found.append("integer")
    return tuple(found)


def _common_values(first: list[Any] | None, second: list[Any] | None) -> list[Any] | None:
    if first is None or second is None:
        return second if first is None else first
    return [item for item in first if any(_same(item, other) for other in second)]


def _same(left: Any, right: Any) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _common_limits(first: Node, second: Node, losses: Losses) -> dict[str, Any]:
    limits = dict(first.limits)
    for keyword, value in second.limits.items():
        held = limits.get(keyword)
        if held is None:
            limits[keyword] = value
        elif keyword in _LOWER:
            limits[keyword] = max(held, value)
        elif keyword in _UPPER:
            limits[keyword] = min(held, value)
        elif held != value:
            why = f"only one {keyword} can be given, and another one also applies"
            losses.note(second, keyword, why, "dropped")
    return limits


def _all_properties(first: Node, second: Node, losses: Losses) -> dict[str, Node] | None:
    if first.properties is None or second.properties is None:
        return second.properties if first.properties is None else first.properties
    found = dict(first.properties)
    for name, node in second.properties.items():
        held = found.get(name)
        found[name] = node if held is None else merge_nodes(held, node, losses)
    return found


def _common_additional(first: Node, second: Node, losses: Losses) -> "Node | Literal[False] | None":
    left, right = first.additional, second.additional
    names, others = first.properties or {}, second.properties or {}
    if (left is not None and others.keys() - names.keys()) or (
        right is not None and names.keys() - others.keys()
    ):
        why = "properties named in one part are allowed even if another part forbids them"
        losses.note(first, "additionalProperties", why, "weakened")
    if left is False or right is False:
        return False
    if left is None or right is None:
        return right if left is None else left
    return merge_nodes(left, right, losses)


# On the way out


def resolve_types(node: Node, losses: Losses) -> Node:
    """Return the node with types that say which of its keywords matter."""
    if node.choices or node.ref or node.is_any or node.is_nothing:
        return node
    if node.types is None:
        types = tuple(_implied_types(node))
        if not types:
            return Node(place=node.place, texts=node.texts)
        why = f"no type is given; {' or '.join(types)} is inferred from the other keywords"
        losses.note(node, "type", why, "changed")
        node = replace(node, types=types)
    if node.enum is not None:
        if node.limits or node.items or node.properties is not None:
            why = "the values are listed; the other keywords about them are left out"
            losses.note(node, "enum", why, "dropped")
        node = Node(place=node.place, types=node.types, enum=node.enum, texts=node.texts)
    possible = tuple(kind for kind in node.types or () if not _contradicts(node, kind))
    return node if possible == node.types else replace(node, types=possible)


def limits_of(node: Node, kind: str) -> dict[str, Any]:
    """Return the limits that concern values of a type."""
    known = LIMITS[kind]
    return {key: value for key, value in node.limits.items() if key in known}


def values_of(node: Node, kind: str) -> list[Any] | None:
    """Return the listed values that are of a type."""
    if node.enum is None:
        return None
    return [item for item in node.enum if kind in json_types(item)]


def split_null(node: Node) -> tuple[Node, bool]:
    """Return a choice without null, and whether it had it."""
    choices = [item for item in node.choices or () if item.types != ("null",)]
    if len(choices) == len(node.choices or ()):
        return node, False
    return make_choice(node.place, choices, node.texts), True


def round_bounds(limits: dict[str, Any]) -> dict[str, int]:
    """Return the smallest and the largest whole number that the limits allow."""
    whole = {key: rounded(limits[key]) for key, rounded in _ROUNDED.items() if key in limits}
    lows, highs = _bounds_of(whole)
    bounds = {"minimum": max(lows)} if lows else {}
    return {**bounds, "maximum": min(highs)} if highs else bounds


def _bounds_of(limits: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    lows = [limits[key] for key in ("minimum", "exclusiveMinimum") if key in limits]
    return lows, [limits[key] for key in ("maximum", "exclusiveMaximum") if key in limits]


def add_remark(texts: dict[str, Any], keyword: str, value: Any) -> None:
    """Say in the description what the schema cannot express, when it is short."""
    try:
        shown = value if isinstance(value, str) else encode_text(value)
    except JSONTextError:
        return
    if len(shown) <= _MAX_REMARK:
        note = f"[{keyword}: {shown}]"
        held = texts.get("description")
        texts["description"] = f"{held} {note}" if held else note


def flatten_root(node: Node, losses: Losses) -> Node:
    """Return a choice of objects as one object that takes each of them."""
    if not node.choices:
        return node
    forms = [resolve_types(choice, losses) for choice in node.choices]
    if any(form.types != ("object",) or form.enum is not None for form in forms):
        return node
    why = "no choice is allowed at the top level; its forms are merged into one object"
    is_closed = all(form.additional is False for form in forms)
    losses.note(node, "anyOf", why, "weakened" if is_closed else "changed")
    named: dict[str, list[Node]] = {}
    for form in forms:
        for name, inner in (form.properties or {}).items():
            named.setdefault(name, []).append(inner)
    return measure(
        Node(
            place=node.place,
            types=("object",),
            properties={name: make_choice(found[0].place, found) for name, found in named.items()},
            required=tuple(
                name for name in forms[0].required if all(name in form.required for form in forms)
            ),
            additional=False if is_closed else None,
            texts=node.texts,
        )
    )


def join_choices(choices: list[dict[str, Any]], texts: dict[str, Any]) -> dict[str, Any]:
    """Return written choices as one schema; equal ones are written once."""
    distinct: list[dict[str, Any]] = []
    for choice in choices:
        for item in choice["anyOf"] if choice.keys() == {"anyOf"} else [choice]:
            if item not in distinct:
                distinct.append(item)
    if len(distinct) == 1:
        return {**distinct[0], **texts}
    return {**texts, "anyOf": distinct}


def _implied_types(node: Node) -> Iterator[str]:
    for kind in _IMPLIED:
        has_own = any(key in LIMITS[kind] for key in node.limits if key != "format")
        has_children = (kind == "array" and node.items is not None) or (
            kind == "object"
            and (node.properties is not None or node.required or node.additional is not None)
        )
        if has_own or has_children or (kind == "string" and "format" in node.limits):
            yield kind


def _contradicts(node: Node, kind: str) -> bool:
    """Tell whether the limits leave no value of a type; some engines never end on those."""
    limits = node.limits
    if kind == "integer":
        limits = round_bounds(limits)
    if kind in {"integer", "number"}:
        lows, highs = _bounds_of(limits)
        return bool(lows and highs) and max(lows) > min(highs)
    low, high = _PAIRS.get(kind, ("", ""))
    return low in limits and high in limits and limits[low] > limits[high]


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
            _restrict_to_enum(node)
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
            says_nothing = others.is_nothing or (others.is_any and not others.texts)
            node.items = None if says_nothing else others
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


def _restrict_to_enum(node: Node) -> None:
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
