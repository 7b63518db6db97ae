"""What messages and reasoning items hold, from the records to the format and back.

The API wants a reasoning item back directly before the item it led to. The records keep the
reasoning of a turn as one list, so an item that did not lead to what comes first in the turn
carries the id of the call it led to under a key of our own, which never leaves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from surecall.base.json_values import as_fields, as_list
from surecall.base.redaction import excerpt
from surecall.wire.server import invalid_message, show

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
        fields = as_fields(item)
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


_TextType: TypeAlias = Literal["input_text", "output_text"]

_BREAKPOINT: Final = "prompt_cache_breakpoint"
# Sequences, because a type that a client sends may be anything, also what has no hash.
_TEXT_TYPES: Final = ("input_text", "output_text", "text")
_NATIVE: Final[Mapping[_TextType, tuple[str, ...]]] = {
    "input_text": ("input_audio", "input_file", "input_image"),
    "output_text": ("refusal",),
}


def render_content(content: Any, text_type: _TextType = "input_text") -> str | list[dict[str, Any]]:
    """Render the content of a message.

    A part that has no place here becomes a line of text that says so. Cache hints of other
    formats are left out: the provider caches by itself.
    """
    if not isinstance(content, list):
        return content or ""
    return [_render_part(part, text_type) for part in cast("list[dict[str, Any]]", content)]


def _render_part(part: Mapping[str, Any], text_type: _TextType) -> dict[str, Any]:
    kind = part.get("type")
    takes_media = text_type == "input_text"
    if kind == "text":
        wire = _render_text(part.get("text"), text_type)
    elif kind == "image_url" and takes_media:
        wire = _render_image(part.get("image_url"))
    elif kind == "file" and takes_media:
        wire = {"type": "input_file", **as_fields(part.get("file"))}
    elif kind in _NATIVE[text_type]:
        return {key: value for key, value in part.items() if key != "cache_control"}
    else:
        shown = excerpt(kind, 40) if isinstance(kind, str) else "unknown"
        return _render_text(f"[A part of type {shown} was left out.]", text_type)
    if takes_media and _BREAKPOINT in part:
        wire[_BREAKPOINT] = part[_BREAKPOINT]
    return wire


def _render_text(text: Any, text_type: _TextType) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": text_type, "text": text if isinstance(text, str) else ""}
    return wire if text_type == "input_text" else {**wire, "annotations": []}


def _render_image(image: Any) -> dict[str, Any]:
    fields = as_fields(image)
    url = fields.get("url") if fields else image
    return {"type": "input_image", "detail": fields.get("detail") or "auto", "image_url": url}


def parse_content(content: Any, place: str) -> str | list[dict[str, Any]] | None:
    """Understand the content of a message or of a result.

    Raises:
        RequestError: `INVALID_MESSAGE`, when it is neither text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid_message(f"{place} is {show(content)}.", "Use text or a list of parts.")
    parts = as_list(content)
    return [_parse_part(part, f"{place}[{index}]") for index, part in enumerate(parts)]


def _parse_part(item: Any, place: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise invalid_message(f"{place} is {show(item)}.", "Each part is an object.")
    part = as_fields(item)
    kind = part.get("type")
    if kind in _TEXT_TYPES:
        if not isinstance(part.get("text"), str):
            stated = show(part.get("text"))
            raise invalid_message(f"{place} has the text {stated}.", "Use text.")
        parsed: dict[str, Any] = {"type": "text", "text": part["text"]}
    elif kind == "input_image" and isinstance(part.get("image_url"), str):
        image = {"url": part["image_url"]}
        if part.get("detail") not in (None, "auto"):
            image["detail"] = part["detail"]
        parsed = {"type": "image_url", "image_url": image}
    elif kind == "input_file":
        left_out = {"type", _BREAKPOINT}
        file = {key: value for key, value in part.items() if key not in left_out and value}
        parsed = {"type": "file", "file": file}
    else:
        return part
    if part.get(_BREAKPOINT):
        parsed |= {_BREAKPOINT: part[_BREAKPOINT], "cache_control": {"type": "ephemeral"}}
    return parsed
