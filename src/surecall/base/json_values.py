"""JSON values of an unknown shape, narrowed to the one that is expected."""

import math
import re
from collections.abc import Container, Iterable, Mapping
from itertools import groupby
from typing import Any, Final, cast

from surecall.base.limits import MAX_REPORTED_TOKENS

__all__ = [
    "as_fields",
    "as_list",
    "build_fields",
    "count_or_none",
    "is_plain",
    "other_fields",
    "pick_fields",
    "text_or_none",
]

_MAX_DEPTH: Final = 20
_MAX_EXACT: Final = 2**53

_DICT: Final[Any] = dict
_LIST: Final[Any] = list
"""Without types of their own, so that nothing has to be narrowed where every microsecond counts."""


def as_fields(value: Any) -> dict[str, Any]:
    """Return the value when it is an object, an empty one otherwise."""
    return value if isinstance(value, _DICT) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value when it is a list, an empty one otherwise."""
    return value if isinstance(value, _LIST) else []


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


def is_plain(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Tell whether a value is the same once it was JSON: only plain types, none of them odd."""
    kind = value.__class__
    if kind is str:
        return value.isascii() or value.isprintable()  # and so without half a character
    if kind is float:
        return math.isfinite(value)
    if kind is int:
        return abs(value) <= _MAX_EXACT
    if kind is dict and depth:
        fields = cast("dict[Any, Any]", value)
        texts = all(key.__class__ is str and is_plain(key) for key in fields)
        return texts and all(is_plain(each, depth - 1) for each in fields.values())
    if kind in (list, tuple) and depth:
        return all(is_plain(each, depth - 1) for each in cast("Iterable[Any]", value))
    return kind is bool or value is None


_MAX_PATH_CHARS: Final = 500
_PATH: Final = re.compile(r"\$(?:\.[^.\[\]'\"]+|\[[0-9]{1,6}\]|\['[^'\\]*'\])+")
_STEP: Final = re.compile(r"\.([^.\[\]'\"]+)|\[([0-9]+)\]|\['([^']*)'\]")


def build_fields(
    fields: dict[str, Any], values: Iterable[tuple[Any, Any]]
) -> dict[str, Any] | None:
    """Put values where their JSON paths say; `None` where one is no place, or was taken.

    Texts that follow each other at one path are joined.

    >>> build_fields({}, [("$.a", "x"), ("$.a", "y"), ("$.b[0].c", 1)])
    {'a': 'xy', 'b': [{'c': 1}]}
    """
    built: Any = {**fields}
    for path, same in groupby(values, lambda pair: pair[0]):
        found: list[Any] = [value for _, value in same]
        is_text = all(isinstance(value, str) for value in found)
        if not is_text and len(found) > 1:
            return None
        if not _put(built, path, "".join(found) if is_text else found[0]):
            return None
    return built


def _put(place: Any, path: Any, value: Any) -> bool:
    if not isinstance(path, str) or len(path) > _MAX_PATH_CHARS or not _PATH.fullmatch(path):
        return False
    steps = [int(at) if at else name or key for name, at, key in _STEP.findall(path)]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        fresh: Any = value if following is None else [] if isinstance(following, int) else {}
        is_list = type(place) is list
        if is_list is not isinstance(step, int) or type(place) not in (dict, list):
            return False
        if is_list and step == len(place):
            place.append(fresh)
        elif not is_list and step not in place:
            place[step] = fresh
        elif following is None or (is_list and step > len(place)):
            return False
        place = place[step]
    return True
