"""Reasoning items: their text, and their place among the other items of a turn.

The API wants a reasoning item back directly before the item it led to. The records keep the
reasoning of a turn as one list, so an item that did not lead to what stands first in the turn
carries the id of the call it led to under a key of our own, which never leaves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from .shapes import as_fields, as_list

__all__ = [
    "OWN_REASONING_ID",
    "insert_reasoning",
    "is_sendable",
    "mark_places",
    "place_reasoning",
    "reasoning_parts",
    "render_reasoning",
]

OWN_REASONING_ID: Final = "rs_text_"
"""How ids begin of items that were made here from plain text: no provider knows them."""

_PLACE_KEY: Final = "_before"


def reasoning_parts(item: Mapping[str, Any]) -> list[str]:
    """Return the texts of a reasoning item: of its summary, then of the reasoning itself."""
    texts: list[str] = []
    for key in ("summary", "content"):
        for part in as_list(item.get(key)):
            text = as_fields(part).get("text") if isinstance(part, dict) else part
            if isinstance(text, str) and text:
                texts.append(text)
    return texts


def mark_places(items: Sequence[Mapping[str, Any]], *, has_text: bool) -> list[dict[str, Any]]:
    """Return the reasoning among the items of a turn, each marked with what it led to.

    Args:
        items: The items in the order in which the model made them.
        has_text: Whether the turn has text, which stands before its calls.
    """
    calls = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    first = None if has_text or not calls else calls[0]
    marked: list[dict[str, Any]] = []
    led_to: Any = None
    for item in reversed(items):
        if item.get("type") != "reasoning":
            led_to = item.get("call_id") if item.get("type") == "function_call" else None
        elif isinstance(led_to, str) and led_to != first:
            marked.append({**item, _PLACE_KEY: led_to})
        else:
            marked.append(dict(item))
    return marked[::-1]


def place_reasoning(
    items: Any,
) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """Return the items that stand first, and by the id of a call those that stand before it.

    What led to a call that is not there any more has no place: the API refuses it alone.
    """
    leading: list[dict[str, Any]] = []
    before: dict[str, list[dict[str, Any]]] = {}
    for item in as_list(items):
        if not isinstance(item, dict):
            continue
        fields = cast("dict[str, Any]", item)
        place = fields.get(_PLACE_KEY)
        if place is None:
            leading.append(render_reasoning(fields))
        elif isinstance(place, str):
            before.setdefault(place, []).append(render_reasoning(fields))
    return leading, before


def insert_reasoning(
    items: Any, output: Sequence[tuple[dict[str, Any], Any]]
) -> list[dict[str, Any]]:
    """Return an output with each reasoning item in its place.

    Args:
        items: The reasoning items.
        output: The other items; with a call the id that the model gave it.
    """
    placed, before = place_reasoning(items)
    for item, call_id in output:
        placed += before.pop(call_id, ()) if isinstance(call_id, str) else ()
        placed.append(item)
    return placed


def render_reasoning(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as its provider wrote it, without null members, which the API refuses."""
    return {key: value for key, value in item.items() if key != _PLACE_KEY and value is not None}


def is_sendable(item: Mapping[str, Any], *, stored: bool) -> bool:
    """Tell whether a server can use the item: by itself, or because it kept the reply."""
    if stored or item.get("encrypted_content"):
        return True
    return any(as_fields(part).get("text") for part in as_list(item.get("content")))
