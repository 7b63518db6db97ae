"""Parts of a message that are not calls: text, images, sound, files."""

from typing import Any, Final
from urllib.parse import urlsplit

from surecall.errors import Code, RequestError

from .members import as_dict, member, shown

__all__ = ["parse_part", "render_part", "render_parts"]

_BY_SUFFIX: Final = {
    "gif": "image/gif",
    "heic": "image/heic",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "mp3": "audio/mp3",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "wav": "audio/wav",
    "webp": "image/webp",
}


def render_parts(content: str | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Render the content of a message.

    Raises:
        RequestError: `INVALID_MESSAGE`, when a part is of a kind that cannot be sent.
    """
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [render_part(part) for part in content or ()]


def render_part(part: dict[str, Any]) -> dict[str, Any]:
    """Render one part in the chat completions shape."""
    kind = part.get("type")
    if kind in {"text", "input_text", "output_text"} and isinstance(part.get("text"), str):
        return {"text": part["text"]}
    if kind == "image_url":
        image = part.get("image_url")
        url = image if isinstance(image, str) else as_dict(image).get("url")
        if isinstance(url, str):
            return _render_url(url)
    if kind == "input_audio":
        sound = as_dict(part.get("input_audio"))
        if isinstance(sound.get("data"), str):
            mime = f"audio/{sound.get('format') or 'wav'}"
            return {"inlineData": {"mimeType": mime, "data": sound["data"]}}
    if kind == "file":
        file = as_dict(part.get("file"))
        data = file.get("file_data") or file.get("file_id")
        if isinstance(data, str):
            return _render_url(data)
    raise RequestError(
        Code.INVALID_MESSAGE,
        f"A part of type {shown(kind)} cannot be sent to Gemini.",
        hint="Send text, image_url, input_audio or file parts, each with its data.",
    )


def parse_part(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a part in the chat completions shape, or None for a kind that is not known."""
    text = part.get("text")
    if isinstance(text, str):
        return {"type": "text", "text": text}
    data = as_dict(member(part, "inlineData"))
    if data:
        mime, raw = str(member(data, "mimeType") or ""), data.get("data")
        if not isinstance(raw, str):
            return None
        raw = raw.replace("-", "+").replace("_", "/")  # SDKs send the URL-safe alphabet
        if mime.startswith("audio/"):
            sound = {"data": raw, "format": mime.removeprefix("audio/")}
            return {"type": "input_audio", "input_audio": sound}
        return _as_url(f"data:{mime};base64,{raw}", mime)
    file = as_dict(member(part, "fileData"))
    url = member(file, "fileUri")
    return _as_url(url, str(member(file, "mimeType") or "")) if isinstance(url, str) else None


def _as_url(url: str, mime: str) -> dict[str, Any]:
    if mime.startswith("image/") or (not mime and _mime_of(url).startswith("image/")):
        return {"type": "image_url", "image_url": {"url": url}}
    key = "file_data" if url.startswith("data:") else "file_id"
    return {"type": "file", "file": {key: url}}


def _render_url(url: str) -> dict[str, Any]:
    if url.startswith("data:"):
        head, _, data = url.removeprefix("data:").partition(",")
        mime = head.partition(";")[0] or "application/octet-stream"
        return {"inlineData": {"mimeType": mime, "data": data}}
    mime = _mime_of(url)
    return {"fileData": {"mimeType": mime, "fileUri": url} if mime else {"fileUri": url}}


def _mime_of(url: str) -> str:
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return _BY_SUFFIX.get(path.rpartition(".")[2].lower(), "")
