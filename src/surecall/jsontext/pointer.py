"""JSON pointers (RFC 6901): parse, render, resolve."""

import re
from collections.abc import Iterable
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError

__all__ = [
    "array_index",
    "json_type",
    "parse_pointer",
    "render_pointer",
    "resolve_parts",
    "resolve_pointer",
    "shown",
    "step_into",
]

_BAD_TILDE: Final = re.compile(r"~(?![01])")
_INDEX: Final = re.compile(r"(?:0|[1-9][0-9]{0,17})\Z", re.ASCII)
_MAX_SHOWN_KEYS: Final = 8
_MAX_SHOWN_CHARACTERS: Final = 60


def parse_pointer(text: str) -> tuple[str, ...]:
    """Return the unescaped parts of a pointer; the empty pointer has none."""
    if not text:
        return ()
    if not text.startswith("/"):
        hint = "A pointer is empty or starts with '/', like '/items/0/name'."
        raise _refusal(f"the pointer {shown(text)} does not start with '/'", position=0, hint=hint)
    bad = _BAD_TILDE.search(text)
    if bad:
        hint = "Write '~' as '~0' and '/' as '~1' inside a part."
        message = f"the pointer {shown(text)} has a '~' that is not '~0' or '~1'"
        raise _refusal(message, position=bad.start(), hint=hint)
    parts = text[1:].split("/")
    if "~" in text:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    return tuple(parts)


def render_pointer(parts: Iterable[str | int]) -> str:
    """Return the pointer that leads through the given keys and indexes."""
    return "".join(["/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts])


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Return the value a pointer leads to, or raise `INVALID_POINTER` saying where it ended."""
    return resolve_parts(document, parse_pointer(pointer))


def resolve_parts(document: Any, parts: tuple[str, ...]) -> Any:
    """Return the value that already parsed parts lead to."""
    value = document
    for count in range(len(parts)):
        value = step_into(value, parts, count)
    return value


def step_into(container: Any, parts: tuple[str, ...], count: int) -> Any:
    """Return the child that part number `count` names; the parts before it led here."""
    part = parts[count]
    if isinstance(container, dict):
        members = cast("dict[str, Any]", container)
        if part in members:
            return members[part]
        raise _missing_key(members, part, parts[:count])
    if isinstance(container, list):
        elements = cast("list[Any]", container)
        return elements[array_index(parts, count, len(elements))]
    kind = json_type(container)
    raise _refusal(f"{_place(parts[:count])} is {kind} and has no {shown(part)} in it")


def array_index(parts: tuple[str, ...], count: int, length: int) -> int:
    """Return the index below `length` that part number `count` names, or raise."""
    part = parts[count]
    array = _place(parts[:count])
    if part == "-":
        raise _refusal(f"'-' names no element of {array}, only the place after the last")
    if not _INDEX.match(part):
        hint = "An index is 0 or a positive whole number without leading zeros."
        raise _refusal(f"{shown(part)} is not an index of {array}", hint=hint)
    index = int(part)
    if index >= length:
        why = f"the last possible is {length - 1}" if length else "it is empty"
        raise _refusal(f"index {part} is out of range for {array}: {why}")
    return index


def _missing_key(container: dict[str, Any], part: str, before: tuple[str, ...]) -> JSONTextError:
    """Return the error for a key that is not there; it names some that are."""
    if not container:
        return _refusal(f"{_place(before)} has no key {shown(part)}: it is empty")
    keys = [shown(str(key)) for _, key in zip(range(_MAX_SHOWN_KEYS), container, strict=False)]
    more = ", …" if len(container) > _MAX_SHOWN_KEYS else ""
    message = f"{_place(before)} has no key {shown(part)}; it has {', '.join(keys)}{more}"
    return _refusal(message)


def _place(parts: tuple[str, ...]) -> str:
    """Return words for the value that parts lead to."""
    return f"the value at {shown(render_pointer(parts))}" if parts else "the document"


def shown(text: str) -> str:
    """Return the text quoted and bounded, fit for a message."""
    if len(text) > _MAX_SHOWN_CHARACTERS:
        text = text[: _MAX_SHOWN_CHARACTERS - 1] + "…"
    return repr(text)


def json_type(value: Any) -> str:
    """Return the JSON name of a value's type, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def _refusal(
    message: str, *, position: int | None = None, hint: str | None = None
) -> JSONTextError:
    return JSONTextError(Code.INVALID_POINTER, f"{message}.", position=position, hint=hint)
