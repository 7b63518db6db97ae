"""Parts of a message: text, media, results of calls, and parts that arrive in pieces.

Results are objects in this format. Plain text goes under `output`, an error under `error`, as
Gemini asks for; an object is sent as it is, unless it could be mistaken for one of those.
"""

import re
from functools import cache
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from surecall.base.errors import Code, JSONTextError, RequestError
from surecall.base.json_values import (
    as_fields,
    as_list,
    build_fields,
    other_fields,
    pick_fields,
)
from surecall.base.redaction import mask_known
from surecall.text import decode, encode_text, repair_surrogates
from surecall.wire.partial_reply import Kept, KeptWords
from surecall.wire.server import show
from surecall.wire.substitutes import stand_in_name


@cache
def snake(name: str) -> str:
    """Return the other spelling of a name: `functionCall` becomes `function_call`."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def member(fields: dict[str, Any], name: str) -> Any:
    """Return a member by its name in camel case, however it is spelled."""
    value = fields.get(name)
    return fields.get(snake(name)) if value is None else value


def known_members(*names: str) -> frozenset[str]:
    """Return both spellings of all names."""
    return frozenset({*names, *(snake(name) for name in names)})


_MAX_CHARS: Final = 128
_MARK: Final = "_x_"
_FITS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_ESCAPED: Final = re.compile(r"_(_|[0-9a-f]{1,6}_)", re.ASCII)
_OTHER: Final = re.compile(r"[^A-Za-z0-9-]", re.ASCII)


def wire_name(name: str) -> str:
    """Return the name as the wire takes it."""
    if _stays(name):
        return name
    written = _MARK + _OTHER.sub(_escape, name)
    if name and len(written) <= _MAX_CHARS:
        return written
    return stand_in_name(name if name[:1].isalpha() else f"_{name}", _MAX_CHARS)


def own_name(name: str) -> str:
    """Return the name that was written, or the name itself when it was not changed."""
    if not name.startswith(_MARK) or len(name) > _MAX_CHARS:
        return name
    found = _ESCAPED.sub(_unescape, name[len(_MARK) :])
    is_ours = found and _MARK + _OTHER.sub(_escape, found) == name
    # What is written so does not look like a key until it is read.
    return mask_known(found) if is_ours and not _stays(found) else name


def _stays(name: str) -> bool:
    """Tell whether a name fits and could not be mistaken for a written one."""
    return bool(_FITS.fullmatch(name)) and own_name(name) == name


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return "__" if char == "_" else f"_{ord(char):x}_"


def _unescape(match: re.Match[str]) -> str:
    inner = match.group(1)
    if inner == "_":
        return "_"
    number = int(inner[:-1], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else match.group()


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


_OPEN: Final = ("data:", "http://", "https://")
_STORED: Final = "https://generativelanguage.googleapis.com/"


def render_parts(content: str | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Render the content of a message.

    Raises:
        RequestError: `INVALID_MESSAGE`, when a part is of a kind that cannot be sent.
    """
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [_render_part(part) for part in content or ()]


def _render_part(part: dict[str, Any]) -> dict[str, Any]:
    """Render one part in the chat completions shape."""
    kind = part.get("type")
    if kind in {"text", "input_text", "output_text"} and isinstance(part.get("text"), str):
        return {"text": part["text"]}
    if kind == "image_url":
        image = part.get("image_url")
        url = image if isinstance(image, str) else as_fields(image).get("url")
        if isinstance(url, str):
            return _render_url(url)
    if kind == "input_audio":
        sound = as_fields(part.get("input_audio"))
        if isinstance(sound.get("data"), str):
            mime = f"audio/{sound.get('format') or 'wav'}"
            return {"inlineData": {"mimeType": mime, "data": sound["data"]}}
    if kind == "file":
        file = as_fields(part.get("file"))
        data = file.get("file_data") or file.get("file_url") or file.get("file_id")
        if isinstance(data, str):
            return _render_url(data)
    raise RequestError(
        Code.INVALID_MESSAGE,
        f"A part of type {show(kind)} cannot be sent to Gemini.",
        hint="Send text, image_url, input_audio or file parts, each with its data.",
    )


def parse_part(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a part in the chat completions shape, or None for a kind that is not known."""
    text = part.get("text")
    if isinstance(text, str):
        return {"type": "text", "text": text}
    data = as_fields(member(part, "inlineData"))
    if data:
        mime, raw = str(member(data, "mimeType") or ""), data.get("data")
        if not isinstance(raw, str):
            return None
        raw = raw.replace("-", "+").replace("_", "/")  # SDKs send the URL-safe alphabet
        if mime.startswith("audio/"):
            sound = {"data": raw, "format": mime.removeprefix("audio/")}
            return {"type": "input_audio", "input_audio": sound}
        return _as_url(f"data:{mime};base64,{raw}", mime)
    file = as_fields(member(part, "fileData"))
    url = member(file, "fileUri")
    return _as_url(url, str(member(file, "mimeType") or "")) if isinstance(url, str) else None


def _as_url(url: str, mime: str) -> dict[str, Any]:
    """Return a reference to a file; what only Google can open goes by an id."""
    if url.startswith(_STORED) or not url.startswith(_OPEN):
        return {"type": "file", "file": {"file_id": url}}
    if mime.startswith("image/") or (not mime and _mime_of(url).startswith("image/")):
        return {"type": "image_url", "image_url": {"url": url}}
    key = "file_data" if url.startswith("data:") else "file_url"
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


def sign(part: dict[str, Any], signature: Any) -> dict[str, Any]:
    """Return a part with the signature of the thought that led to it, if there is one."""
    if isinstance(signature, str) and signature:
        return {**part, "thoughtSignature": signature}
    return part


_WRAPPERS: Final = ("output", "error", "result")


def render_response(text: str, *, is_error: bool) -> dict[str, Any]:
    """Render the text of a result."""
    found = object_in(text)
    if is_error:
        return {"error": text if found is None else found}
    if found is None or (len(found) == 1 and next(iter(found)) in _WRAPPERS):
        return {"output": text}
    return found


def parse_response(response: Any) -> tuple[str, bool]:
    """Return the text of a result, and whether it is an error."""
    if not isinstance(response, dict):
        return (response if isinstance(response, str) else encode_text(response)), False
    fields = as_fields(response)
    if len(fields) == 1 and next(iter(fields)) in _WRAPPERS:
        key, value = next(iter(fields.items()))
        if isinstance(value, str) or key == "error":
            return (value if isinstance(value, str) else encode_text(value)), key == "error"
    return encode_text(fields), False


def object_in(text: str) -> dict[str, Any] | None:
    """Return the object that JSON text holds, if it holds one."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = decode(text)
    except JSONTextError:
        return None
    return as_fields(value) if isinstance(value, dict) else None


_NOT_TEXT: Final = ("functionCall", "inlineData", "fileData")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")
_MORE: Final = "morePartialArgs"
"""Under which name pieces of arguments are held that came behind the first."""
_CALL: Final = known_members("functionCall")
_OF_PIECES: Final = known_members("partialArgs", "willContinue", _MORE)


def _join_pieces(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part whose call has its arguments, also where these came in pieces.

    What was cut, or is nowhere or twice, becomes text that nobody takes for arguments.
    """
    call = as_fields(member(part, "functionCall"))
    if call.keys().isdisjoint(_OF_PIECES):
        return part
    pieces = [*as_list(member(call, "partialArgs")), *as_list(call.get(_MORE))]
    is_cut = member(call, "willContinue") is True
    args = None if is_cut else build_fields(as_fields(call.get("args")), map(_read_piece, pieces))
    written = {**other_fields(call, _OF_PIECES), "args": "{" if args is None else args}
    return {**other_fields(part, _CALL), "functionCall": written}


def _read_piece(piece: Any) -> tuple[Any, Any]:
    values = (member(as_fields(piece), name) for name in _VALUES)
    return member(as_fields(piece), "jsonPath"), next((v for v in values if v is not None), None)


class PartialParts:
    """The parts of one reply, as far as they have arrived."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._parts: list[dict[str, Any]] = []
        self._texts: list[KeptWords | None] = []
        self._new: list[tuple[Literal["text", "reasoning"], str]] = []
        self.calls_count = 0

    @property
    def text(self) -> str:
        """The text so far, without thoughts."""
        pairs = zip(self._parts, self._texts, strict=True)
        found = [str(text) for part, text in pairs if text and not part.get("thought")]
        return repair_surrogates("".join(found))

    def take(self, parts: Any) -> None:
        """Add the parts of one chunk."""
        for item in as_list(parts):
            part = as_fields(item)
            text = part.get("text")
            if isinstance(text, str) and not any(member(part, name) for name in _NOT_TEXT):
                self._take_text(part, text)
                continue
            if isinstance(member(part, "functionCall"), dict):
                self.calls_count += 1
                if self._goes_on(part):
                    continue
                if isinstance(text, str) and text:  # a part should hold one of the two
                    self._take_text(pick_fields(part, ("text", "thought")), text)
                    part = other_fields(part, ("text", "thought"))
            self._begin(part, None)

    def add_text(self, text: str) -> None:
        """Add a piece of text."""
        self._take_text({}, text)
        self._new.clear()  # whoever reads it so shows it as well

    def take_new(self) -> list[tuple[Literal["text", "reasoning"], str]]:
        """Return the pieces of text that arrived since the last time."""
        found, self._new = self._new, []
        return found

    def render(self) -> list[dict[str, Any]]:
        """Return the parts as a whole reply would carry them."""
        return [
            _join_pieces(part) if text is None else {**part, "text": repair_surrogates(str(text))}
            for part, text in zip(self._parts, self._texts, strict=True)
        ]

    def _goes_on(self, part: dict[str, Any]) -> bool:
        """Tell whether this is more of the call before, whose arguments come in pieces."""
        call = as_fields(member(part, "functionCall"))
        held = as_fields(member(self._parts[-1], "functionCall")) if self._parts else {}
        if call.get("name") or member(held, "willContinue") is not True:
            return False
        self._kept.add_value(call)
        held.setdefault(_MORE, []).extend(as_list(member(call, "partialArgs")))
        held["willContinue"] = member(call, "willContinue") is True
        for name in part.keys() - _CALL:  # such as a signature
            self._kept.put(self._parts[-1], name, part[name])
        return True

    def _take_text(self, part: dict[str, Any], text: str) -> None:
        is_thought = part.get("thought") is True
        self._new.append(("reasoning" if is_thought else "text", text))
        last = self._texts[-1] if self._texts else None
        if last is not None:
            held = self._parts[-1]
            is_open = not member(held, "thoughtSignature")
            if is_open and (held.get("thought") is True) == is_thought:
                last.append(text)
                for key, value in part.items():
                    if key != "text":
                        self._kept.put(held, key, value)
                return
        begun = KeptWords(self._kept)
        begun.append(text)
        self._begin({key: part[key] for key in part if key != "text"}, begun)

    def _begin(self, part: dict[str, Any], text: KeptWords | None) -> None:
        self._kept.add_part(part)
        self._parts.append(part)
        self._texts.append(text)
