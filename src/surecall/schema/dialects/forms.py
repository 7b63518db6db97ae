"""What the dialects share on the way out: settled types, remarks, roots, counts."""

from collections.abc import Iterator
from math import ceil, floor
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import JSONTextError
from surecall.jsontext import encode_text

from .nodes import LIMITS, Losses, Node, choice_of, json_types, measured

__all__ = [
    "flat_root",
    "joined",
    "limits_of",
    "remark",
    "rounded_bounds",
    "settled",
    "split_null",
    "values_of",
]

_MAX_REMARK: Final = 300
_PAIRS: Final = {
    "string": (("minLength", "maxLength"),),
    "array": (("minItems", "maxItems"),),
    "object": (("minProperties", "maxProperties"),),
}
_IMPLIED: Final = ("object", "array", "string", "number")


def settled(node: Node, losses: Losses) -> Node:
    """Return the node with types that say which of its keywords matter."""
    if node.choices or node.ref or node.is_any or node.is_nothing:
        return node
    if node.types is None:
        types = tuple(_implied_types(node))
        if not types:
            return Node(place=node.place, texts=node.texts)
        why = f"no type is given; {' or '.join(types)} is taken from its other keywords"
        losses.note(node, "type", why, "changed")
        node = replace(node, types=types)
    if node.enum is not None:
        if node.limits or node.items or node.properties is not None:
            why = "the values are listed; what else is said about them is left out"
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
    return choice_of(node.place, choices, node.texts), True


def rounded_bounds(limits: dict[str, Any]) -> dict[str, int]:
    """Return the smallest and the largest whole number that the limits allow."""
    lows: list[int] = []
    highs: list[int] = []
    if "minimum" in limits:
        lows.append(ceil(limits["minimum"]))
    if "exclusiveMinimum" in limits:
        lows.append(floor(limits["exclusiveMinimum"]) + 1)
    if "maximum" in limits:
        highs.append(floor(limits["maximum"]))
    if "exclusiveMaximum" in limits:
        highs.append(ceil(limits["exclusiveMaximum"]) - 1)
    bounds = {"minimum": max(lows)} if lows else {}
    return {**bounds, "maximum": min(highs)} if highs else bounds


def remark(texts: dict[str, Any], keyword: str, value: Any) -> None:
    """Tell in the description what the schema cannot say, when it is short."""
    try:
        told = value if isinstance(value, str) else encode_text(value)
    except JSONTextError:
        return
    if len(told) <= _MAX_REMARK:
        note = f"[{keyword}: {told}]"
        held = texts.get("description")
        texts["description"] = f"{held} {note}" if held else note


def flat_root(node: Node, losses: Losses) -> Node:
    """Return a choice of objects as one object that takes each of them."""
    if not node.choices:
        return node
    forms = [settled(choice, losses) for choice in node.choices]
    if any(form.types != ("object",) or form.enum is not None for form in forms):
        return node
    why = "at the top there can be no choice; its forms are laid over each other"
    is_closed = all(form.additional is False for form in forms)
    losses.note(node, "anyOf", why, "weakened" if is_closed else "changed")
    named: dict[str, list[Node]] = {}
    for form in forms:
        for name, inner in (form.properties or {}).items():
            named.setdefault(name, []).append(inner)
    return measured(
        Node(
            place=node.place,
            types=("object",),
            properties={name: choice_of(found[0].place, found) for name, found in named.items()},
            required=tuple(
                name for name in forms[0].required if all(name in form.required for form in forms)
            ),
            additional=False if is_closed else None,
            texts=node.texts,
        )
    )


def joined(choices: list[dict[str, Any]], texts: dict[str, Any]) -> dict[str, Any]:
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
    if kind in {"integer", "number"}:
        low = max((limits[k] for k in ("minimum", "exclusiveMinimum") if k in limits), default=None)
        high = min(
            (limits[k] for k in ("maximum", "exclusiveMaximum") if k in limits), default=None
        )
        if kind == "integer":
            bounds = rounded_bounds(limits)
            low, high = bounds.get("minimum"), bounds.get("maximum")
        return low is not None and high is not None and low > high
    return any(
        low in limits and high in limits and limits[low] > limits[high]
        for low, high in _PAIRS.get(kind, ())
    )
