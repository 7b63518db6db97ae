"""The plain form of a schema that dialects are written from: nodes, and how they combine."""

from collections.abc import Iterable
from typing import Any, Final, Literal, cast

from msgspec import Struct, field
from msgspec.structs import replace

__all__ = [
    "LIMITS",
    "Loss",
    "LossKind",
    "Losses",
    "Node",
    "choice_of",
    "json_types",
    "measured",
    "merge_nodes",
    "spell_out",
    "spell_out_all",
    "with_null",
]

LossKind = Literal["dropped", "weakened", "changed", "over_limit"]

LIMITS: Final[dict[str, frozenset[str]]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "number": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"}
    ),
    "integer": frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"}
    ),
    "array": frozenset({"minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"minProperties", "maxProperties"}),
    "boolean": frozenset(),
    "null": frozenset(),
}
"""The keywords that limit values of a type, beside those that hold schemas."""

_LOWER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_MAX_PRODUCT: Final = 16
_MAX_COPIES: Final = 400


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

    def listed(self) -> tuple[Loss, ...]:
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
        return not (
            self.types is not None
            or self.enum is not None
            or self.choices
            or self.limits
            or self.items
            or self.properties is not None
            or self.required
            or self.additional is not None
            or self.ref
        )

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


def json_types(value: Any) -> tuple[str, ...]:
    """Return the types a value has, the narrowest first."""
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


def measured(node: Node) -> Node:
    """Return the node with its size counted from those of its children."""
    node.size = 1 + sum(child.size for child in node.children())
    return node


def with_null(node: Node) -> Node:
    """Return a node that also takes null."""
    if node.is_any or node.is_nothing:
        return node
    if node.choices or node.ref or node.types is None:
        outer = node.texts
        inner = list(node.choices or [node.bare()])
        return choice_of(node.place, [*inner, Node(place=node.place, types=("null",))], outer)
    if "null" in node.types:
        return node
    enum = None if node.enum is None else [*node.enum, None]
    return replace(node, types=(*node.types, "null"), enum=enum)


def choice_of(place: str, choices: list[Node], texts: dict[str, Any] | None = None) -> Node:
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
    return measured(Node(place=place, choices=useful, texts=texts))


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
            why = "a schema that contains itself cannot be combined with another"
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
        why = "the choice is too large to be written into each of its forms"
        losses.note(left_out, "anyOf", why, "weakened")
        return replace(kept, texts=texts)
    merged = [merge_nodes(left, right, losses) for left in lefts for right in rights]
    return choice_of(first.place, merged, texts)


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
    return measured(
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
            why = f"only one {keyword} can be given, and another one applies too"
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
        why = "properties named by one part are let through although another part limits them"
        losses.note(first, "additionalProperties", why, "weakened")
    if left is False or right is False:
        return False
    if left is None or right is None:
        return right if left is None else left
    return merge_nodes(left, right, losses)


_MAX_DEPTH: Final = 64


def spell_out_all(values: list[Any], place: str, losses: Losses) -> Node:
    """Return a node that takes any of the values."""
    return choice_of(place, [spell_out(value, place, losses) for value in values])


def spell_out(value: Any, place: str, losses: Losses, depth: int = 0) -> Node:
    """Return a node that takes a value: objects by their properties, arrays by their elements."""
    if depth > _MAX_DEPTH:
        losses.note(place, "enum", "a listed value is nested too deep", "weakened")
        return Node(place=place)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        properties = {name: spell_out(item, place, losses, depth + 1) for name, item in members}
        return measured(
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
    items = [spell_out(item, place, losses, depth + 1) for item in values]
    if any(item != items[0] for item in items):
        why = "the order of the elements of a listed array cannot be said"
        losses.note(place, "enum", why, "weakened")
    # No element fits into an empty array; what it would be has to be said all the same.
    element = choice_of(place, items) if items else Node(place=place, types=("null",))
    limits = {"minItems": len(items), "maxItems": len(items)}
    return measured(Node(place=place, types=("array",), limits=limits, items=element))
