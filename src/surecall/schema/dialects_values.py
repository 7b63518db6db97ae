"""Listed values that are objects or arrays, said without listing them."""

from typing import Any, Final, cast

from .dialects_nodes import Losses, Node, choice_of, json_types, measured

__all__ = ["spell_out", "spell_out_all"]

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
