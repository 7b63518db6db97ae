"""The content of messages, from the records' parts to the format's and back."""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from surecall.errors import Code
from surecall.records import clip

from .shapes import as_fields, invalid, show

__all__ = ["parse_content", "render_content"]

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
        shown = clip(kind, 40) if isinstance(kind, str) else "unknown"
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
        raise invalid(
            f"{place} is {show(content)}.", "Use text or a list of parts.", Code.INVALID_MESSAGE
        )
    parts = cast("list[Any]", content)
    return [_parse_part(part, f"{place}[{index}]") for index, part in enumerate(parts)]


def _parse_part(item: Any, place: str) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise invalid(f"{place} is {show(item)}.", "Each part is an object.", Code.INVALID_MESSAGE)
    part = cast("dict[str, Any]", item)
    kind = part.get("type")
    if kind in _TEXT_TYPES:
        if not isinstance(part.get("text"), str):
            told = show(part.get("text"))
            raise invalid(f"{place} has the text {told}.", "Use text.", Code.INVALID_MESSAGE)
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
