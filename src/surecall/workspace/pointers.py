"""Paths into a workspace: JSON pointers, read a little more kindly than the standard does."""

from typing import Any, Final, cast

from msgspec import UNSET, UnsetType

from surecall.errors import Code, JSONTextError, WorkspaceError
from surecall.jsontext import parse_pointer
from surecall.jsontext.pointer import shown

__all__ = ["clean_pointer", "find_value", "is_under", "list_index", "split_path"]

_MAX_PARTS: Final = 64
_QUOTES: Final = "\"'`"


def clean_pointer(text: str) -> str:
    """Return a pointer as a model meant it: without quotes around it or `#` before it."""
    text = text.strip().strip(_QUOTES).strip()
    if text.startswith("#/"):
        text = text[1:]
    return text if text.startswith("/") else f"/{text}"


def split_path(pointer: str) -> tuple[str, ...]:
    """Return the parts of a path; empty ones at its end do not count.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, when it is no pointer or too deep.
    """
    try:
        parts = parse_pointer(pointer)
    except JSONTextError as error:
        raise WorkspaceError(Code.ARGUMENT_ERROR, error.message, hint=error.hint) from None
    count = len(parts)
    while count and not parts[count - 1]:
        count -= 1
    if count > _MAX_PARTS:
        message = f"the path {shown(pointer)} has more than {_MAX_PARTS} parts."
        raise WorkspaceError(Code.ARGUMENT_ERROR, message)
    return parts[:count]


def find_value(document: Any, parts: tuple[str, ...]) -> Any | UnsetType:
    """Return the value that the parts lead to, or `UNSET` when they lead nowhere."""
    value = document
    for part in parts:
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(part, UNSET)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            index = list_index(part, len(items))
            value = items[index] if index is not None and 0 <= index < len(items) else UNSET
        else:
            return UNSET
    return value


def list_index(part: str, length: int) -> int | None:
    """Return the index that a part names, counted from the end when it is negative.

    The index may lie outside the list; `None` means that the part is no number.
    """
    digits = part.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    index = int(part)
    return index + length if index < 0 else index


def is_under(parts: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Tell whether a path is the given one or lies below it."""
    return parts[: len(prefix)] == prefix
