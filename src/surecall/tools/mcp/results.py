"""What a server answered to a call: all of it is data, and none of it a hint or an instruction."""

from collections.abc import Mapping
from typing import Any

from surecall.base.errors import JSONTextError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.text import canonical_hash, decode


def read_data(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server answered as data: its structure if it sent one, else its texts.

    What the structure does not say again, such as a picture or a remark, is kept beside it.
    """
    structured = answer.get("structuredContent")
    parts = [_read_part(as_fields(part)) for part in as_list(answer.get("content"))]
    if structured is not None:
        more = _find_more(structured, parts)
        if more:
            return {"structured": structured, "content": more}
        return as_fields(structured) if isinstance(structured, dict) else {"value": structured}
    texts = [part["text"] for part in parts if part.keys() == {"text"}]
    if len(texts) == len(parts):
        return {"text": "\n".join(texts)}
    return {"content": parts}


def _find_more(structured: Any, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts that are not the structure, or something directly in it, as text again."""
    if not parts:
        return []
    said = {_mark(structured)}
    for value in as_fields(structured).values() if isinstance(structured, dict) else [structured]:
        said |= {_mark(value), *map(_mark, as_list(value))}
    said.discard(None)
    return [part for part in parts if not (part.keys() == {"text"} and _is_in(said, part["text"]))]


def _is_in(said: set[str | None], text: str) -> bool:
    if not text.strip() or _mark(text) in said:
        return True
    try:
        return _mark(decode(text)) in said
    except JSONTextError:
        return False


def _mark(value: Any) -> str | None:
    try:
        return canonical_hash(value)
    except SurecallError:
        return None


def _read_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the content; of what is not text only its kind and size."""
    kind = part.get("type")
    if kind == "text":
        return {"text": str(part.get("text", ""))}
    if kind == "resource":
        resource = as_fields(part.get("resource"))
        if isinstance(resource.get("text"), str):
            return {"uri": resource.get("uri"), "text": resource["text"]}
        return {"type": "resource", "uri": resource.get("uri"), **_measure(resource, "blob")}
    if kind == "resource_link":
        return {"type": "resource_link", "uri": part.get("uri"), "name": part.get("name")}
    return {"type": str(kind), **_measure(part, "data")}


def _measure(part: dict[str, Any], field: str) -> dict[str, Any]:
    encoded = part.get(field)
    size = len(encoded) * 3 // 4 if isinstance(encoded, str) else 0
    return {"mime_type": part.get("mimeType"), "bytes_left_out": size}
