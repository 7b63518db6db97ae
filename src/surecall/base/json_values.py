"""JSON values of an unknown shape, narrowed to the one that is expected."""

import math
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from surecall.base.limits import MAX_REPORTED_TOKENS

__all__ = [
    "as_fields",
    "as_list",
    "count_or_none",
    "other_fields",
    "pick_fields",
    "text_or_none",
    "write_plain",
]

_SCALARS: Final = (bool, int, str, type(None))


def as_fields(value: Any) -> dict[str, Any]:
    """Return the value when it is an object, an empty one otherwise."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value when it is a list, an empty one otherwise."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    """Return the value when it is text that says something."""
    return value if isinstance(value, str) and value else None


def count_or_none(value: Any) -> int | None:
    """Return the value when it is a number of tokens that one request may have."""
    return value if type(value) is int and 0 <= value <= MAX_REPORTED_TOKENS else None


def other_fields(fields: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Return the fields apart from the known ones and those that are null."""
    return {key: value for key, value in fields.items() if key not in known and value is not None}


def pick_fields(fields: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return the fields of these names that are not null."""
    return {key: fields[key] for key in keys if fields.get(key) is not None}


def write_plain(value: Any) -> bytes | None:
    """Return a plain value as JSON, by which equal ones are found; None for any other value."""
    try:
        return msgspec.json.encode(value) if _is_plain(value) else None
    except (ValueError, RecursionError):  # half of a character, or too deep
        return None


def _is_plain(value: Any) -> bool:
    kind = value.__class__
    if kind in _SCALARS:
        return True
    if kind is float:
        return math.isfinite(value)
    if kind is dict:
        fields = cast("dict[Any, Any]", value)
        return all(key.__class__ is str and _is_plain(each) for key, each in fields.items())
    return kind in (list, tuple) and all(map(_is_plain, cast("Iterable[Any]", value)))
