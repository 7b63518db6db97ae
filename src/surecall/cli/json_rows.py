"""JSON as people read it: on one line where it fits, else indented."""

from collections.abc import Iterator
from typing import Any, Final

from surecall.errors import JSONTextError
from surecall.jsontext import encode_text

from .terminal import escape_json, line_of

__all__ = ["indent_json"]

_PUNCTUATION: Final = "{}[],:"


def indent_json(value: Any, room: int) -> list[str]:
    """Return a JSON value as one line of at most `room` characters, or as indented lines."""
    try:
        parts = list(_parts_of(escape_json(encode_text(value))))
    except JSONTextError:
        return [line_of(repr(value))]
    whole = "".join(f"{part} " if part in {",", ":"} else part for part in parts)
    return [whole] if len(whole) <= room else _indented(parts)


def _indented(parts: list[str]) -> list[str]:
    rows: list[str] = []
    line, before, depth = "", "", 0
    for part in parts:
        if part in {"{", "["}:
            rows.append("  " * depth + line + part)
            line = ""
            depth += 1
        elif part in {"}", "]"}:
            depth -= 1
            if before in {"{", "["}:
                line = rows.pop()[2 * depth :] + part
            else:
                rows.append("  " * (depth + 1) + line)
                line = part
        elif part == ",":
            rows.append("  " * depth + line + part)
            line = ""
        else:
            line += ": " if part == ":" else part
        before = part
    return [*rows, line]


def _parts_of(text: str) -> Iterator[str]:
    """Yield the punctuation of compact JSON, and what stands between."""
    start = 0
    is_text = is_escaped = False
    for at, char in enumerate(text):
        if is_text:
            if is_escaped:
                is_escaped = False
            elif char == "\\":
                is_escaped = True
            elif char == '"':
                is_text = False
        elif char == '"':
            is_text = True
        elif char in _PUNCTUATION:
            if start < at:
                yield text[start:at]
            yield char
            start = at + 1
    if start < len(text):
        yield text[start:]
