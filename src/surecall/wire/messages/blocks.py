"""Content blocks: parts of a message, arguments and ids of calls, in both directions."""

import re
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote_to_bytes

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields
from surecall.base.records import clip
from surecall.text import decode_noting


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Return the object that JSON text holds; None unless it is one and says each thing once."""
    try:
        value, repeated = decode_noting(text)
    except JSONTextError:
        return None
    return as_fields(value) if isinstance(value, dict) and not repeated else None


_VALID: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_VALID: Final = re.compile(r"[^A-Za-z0-9_-]")
_MAX_SHOWN: Final = 40


def wire_id(call_id: str) -> str:
    """Return the id itself when the format takes it, else one that is always the same for it."""
    if _VALID.fullmatch(call_id):
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_NOT_VALID.sub('_', call_id[:_MAX_SHOWN]) or 'call'}_{digest}"


_Place: TypeAlias = Literal["assistant", "tool", "user"]

SERVER_BLOCKS: Final = frozenset(
    {
        "bash_code_execution_tool_result",
        "code_execution_tool_result",
        "container_upload",
        "mcp_tool_result",
        "mcp_tool_use",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    }
)
"""What the provider's own tools leave in an assistant message."""

THOUGHT_BLOCKS: Final = frozenset({"redacted_thinking", "thinking"})

_NATIVE: Final[dict[_Place, frozenset[str]]] = {
    "assistant": SERVER_BLOCKS,
    "tool": frozenset({"browser_state", "document", "image", "search_result", "tool_reference"}),
    "user": frozenset({"container_upload", "document", "image", "search_result"}),
}
_TEXT_FIELDS: Final = ("cache_control", "citations")
_FILE_FIELDS: Final = ("cache_control", "citations", "context")
_PDF: Final = "application/pdf"
_PLAIN: Final = "text/plain"


def render_parts(content: str | list[dict[str, Any]] | None, place: _Place) -> list[dict[str, Any]]:
    """Render content as blocks; text without words is left out, as the format refuses it.

    A part that has no block here, such as audio, becomes a line of text that says so.
    """
    if content is None or isinstance(content, str):
        content = [{"type": "text", "text": content or ""}]
    blocks = [_render_part(part, place) for part in content]
    return [block for block in blocks if block is not None]


def plain_text(blocks: list[dict[str, Any]]) -> str | None:
    """Return the text of a lone block that is nothing but text."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return None


def parse_block(block: dict[str, Any]) -> dict[str, Any]:
    """Turn a block of a request into a part; one that chat completions do not know stays."""
    block = {key: value for key, value in block.items() if value is not None}
    source: Any = block.get("source")
    part: dict[str, Any] | None = None
    if isinstance(source, dict):
        if block.get("type") == "image":
            part = _parse_image(as_fields(source), block)
        elif block.get("type") == "document":
            part = _parse_document(as_fields(source), block)
    return block if part is None else part


def _render_part(part: dict[str, Any], place: _Place) -> dict[str, Any] | None:
    given = part.get("type")
    kind = given if isinstance(given, str) else "text" if "text" in part else "unknown"
    if kind == "text":
        return _text_block(part.get("text"), part)
    if kind == "refusal":
        return _text_block(part.get("refusal"), {})
    if kind in _NATIVE[place]:
        return dict(part)
    block: dict[str, Any] | None = None
    if place != "assistant" and kind == "image_url":
        block = _render_image(part)
    elif place != "assistant" and kind == "file":
        block = _render_file(part)
    return block or _text_block(f"[A part of type {clip(kind, 40)} was left out.]", {})


def _text_block(text: Any, fields: dict[str, Any]) -> dict[str, Any] | None:
    if not isinstance(text, str) or not text.strip():
        return None
    return {"type": "text", "text": text, **_pick_set(fields, _TEXT_FIELDS)}


def _render_image(part: dict[str, Any]) -> dict[str, Any] | None:
    image: Any = part.get("image_url")
    url = as_fields(image).get("url") if isinstance(image, dict) else image
    if not isinstance(url, str) or not url:
        return None
    source: dict[str, Any] = {"type": "url", "url": url}
    data = _split_data_url(url)
    if data is not None:
        media_type = "image/jpeg" if data[0] == "image/jpg" else data[0]
        source = {"type": "base64", "media_type": media_type, "data": data[1]}
    return {"type": "image", "source": source, **_pick_set(part, ("cache_control",))}


def _parse_image(source: dict[str, Any], block: dict[str, Any]) -> dict[str, Any] | None:
    url = _data_url(source) if source.get("type") == "base64" else source.get("url")
    if not isinstance(url, str):
        return None
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": url}}
    return {**part, **_pick_set(block, ("cache_control",))}


def _render_file(part: dict[str, Any]) -> dict[str, Any] | None:
    file = as_fields(part.get("file"))
    source = _file_source(file)
    if source is None:
        return None
    block: dict[str, Any] = {"type": "document", "source": source}
    if isinstance(file.get("filename"), str) and file["filename"]:
        block["title"] = file["filename"]
    return {**block, **_pick_set(part, _FILE_FIELDS)}


def _file_source(file: dict[str, Any]) -> dict[str, Any] | None:
    file_id, url, data = file.get("file_id"), file.get("file_url"), file.get("file_data")
    if isinstance(file_id, str) and file_id:
        return {"type": "file", "file_id": file_id}
    if isinstance(url, str) and url:
        return {"type": "url", "url": url}
    if not isinstance(data, str) or not data:
        return None
    media_type, encoded = _split_data_url(data) or (_PDF, data)
    text = _decoded_text(encoded) if media_type == _PLAIN else None
    if text is not None:
        return {"type": "text", "media_type": _PLAIN, "data": text}
    return {"type": "base64", "media_type": media_type, "data": encoded}


def _parse_document(source: dict[str, Any], block: dict[str, Any]) -> dict[str, Any] | None:
    kind, data = source.get("type"), source.get("data")
    file: dict[str, Any] = {}
    if kind == "base64":
        file["file_data"] = _data_url(source)
    elif kind == "text" and isinstance(data, str):
        encoded = b64encode(data.encode("utf-8", "replace")).decode()
        file["file_data"] = f"data:{_PLAIN};base64,{encoded}"
    elif kind == "url":
        file["file_url"] = source.get("url")
    elif kind == "file":
        file["file_id"] = source.get("file_id")
    if not any(isinstance(value, str) for value in file.values()):
        return None
    if isinstance(block.get("title"), str):
        file["filename"] = block["title"]
    return {"type": "file", "file": file, **_pick_set(block, _FILE_FIELDS)}


def _split_data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 text of a `data:` URL."""
    if url[:5].lower() != "data:":
        return None
    head, _, data = url[5:].partition(",")
    media_type = head.partition(";")[0].strip().lower() or _PLAIN
    if head.lower().endswith(";base64"):
        return media_type, data
    return media_type, b64encode(unquote_to_bytes(data)).decode()


def _data_url(source: dict[str, Any]) -> str | None:
    media_type, data = source.get("media_type"), source.get("data")
    if not isinstance(media_type, str) or not isinstance(data, str):
        return None
    return f"data:{media_type};base64,{data}"


def _decoded_text(encoded: str) -> str | None:
    try:
        return b64decode(encoded, validate=True).decode()
    except ValueError:
        return None


def _pick_set(fields: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: fields[key] for key in keys if fields.get(key)}
