"""The plain form of a schema that dialects are written from: how nodes combine and settle."""

from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.schema.structure import json_types
from surecall.text import encode_text

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


def settle(node: Node, losses: Losses) -> Node:
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
    forms = [settle(choice, losses) for choice in node.choices]
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
