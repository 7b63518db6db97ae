"""The start of a streamed reply, kept for its record where bodies are."""

from typing import Any, cast

from surecall.base.errors import JSONTextError
from surecall.base.redaction import drop_begun, redact
from surecall.gateway.records import MAX_BODY_BYTES
from surecall.text import decode


class StreamCopy:
    """Copies the events of a stream, up to what a record keeps of a body."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        """Copy the next bytes, as far as they are kept."""
        room = MAX_BODY_BYTES - len(self._data)
        if room > 0:
            self._data += data[:room]

    def read(self) -> bytes | None:
        """Return the copy; nothing when a secret is spread over events, where none would see it."""
        text = self._data.decode("utf-8", "surrogateescape")
        # What is cut, here or upstream, may end inside a secret.
        data = drop_begun(text).encode("utf-8", "surrogateescape")
        texts: dict[tuple[Any, ...], list[str]] = {}
        for line in data.split(b"\n"):
            if line.startswith(b"data:"):
                try:
                    _collect_texts(decode(line[5:], surrogates="replace"), (), texts)
                except JSONTextError:
                    continue
        joined = ("".join(pieces) for pieces in texts.values() if len(pieces) > 1)
        hides_secret = any(drop_begun(redact(text)) != text for text in joined)
        return None if hides_secret or not data else data


def _collect_texts(
    value: Any, place: tuple[Any, ...], found: dict[tuple[Any, ...], list[str]]
) -> None:
    """Add every text in a value to those that other events have at the same place."""
    if isinstance(value, str):
        found.setdefault(place, []).append(value)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            _collect_texts(item, (*place, key), found)
    elif isinstance(value, list):
        for at, item in enumerate(cast("list[Any]", value)):
            _collect_texts(item, (*place, at), found)
