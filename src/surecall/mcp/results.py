"""What a server answered to a call: all of it is data, and none of it a hint or an instruction."""

from collections.abc import Mapping
from typing import Any

from surecall.narrow import as_fields, as_list


def read_data(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server answered as data: its structure if it sent one, else its texts."""
    structured = answer.get("structuredContent")
    if isinstance(structured, dict):
        return as_fields(structured)
    if structured is not None:
        return {"value": structured}
    parts = [_read_part(as_fields(part)) for part in as_list(answer.get("content"))]
    texts = [part["text"] for part in parts if part.keys() == {"text"}]
    if len(texts) == len(parts):
        return {"text": "\n".join(texts)}
    return {"content": parts}


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
