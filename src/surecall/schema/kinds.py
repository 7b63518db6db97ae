"""Which Python types stand for which JSON, and how their parts are found."""

import collections.abc
import datetime
import decimal
import pathlib
import sys
import types
import typing
import uuid
from enum import Enum, Flag
from typing import Any, Final

import msgspec

from .fields import resolve_annotation

__all__ = [
    "BASE64_PATTERN",
    "CONVERTED_LEAVES",
    "DECIMAL_PATTERN",
    "LEAVES",
    "MAPPINGS",
    "SEQUENCES",
    "SETS",
    "alias_value",
    "enum_members",
    "union_members",
]

BASE64_PATTERN: Final = "^[A-Za-z0-9+/]*={0,2}$"
DECIMAL_PATTERN: Final = r"^-?[0-9]+(\.[0-9]+)?$"

LEAVES: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    # A number would lose digits on the way through a float.
    decimal.Decimal: {"type": "string", "pattern": DECIMAL_PATTERN},
    bytes: {"type": "string", "pattern": BASE64_PATTERN, "description": "Base64 text."},
    bytearray: {"type": "string", "pattern": BASE64_PATTERN, "description": "Base64 text."},
    pathlib.PurePath: {"type": "string"},
    pathlib.PurePosixPath: {"type": "string"},
    pathlib.Path: {"type": "string"},
    dict: {"type": "object", "additionalProperties": True},
    list: {"type": "array", "items": {}},
    tuple: {"type": "array", "items": {}},
    typing.Tuple: {"type": "array", "items": {}},  # noqa: UP006 - bare, it is not tuple[()]
    set: {"type": "array", "items": {}, "uniqueItems": True},
    frozenset: {"type": "array", "items": {}, "uniqueItems": True},
}

CONVERTED_LEAVES: Final = frozenset(
    {
        datetime.datetime,
        datetime.date,
        datetime.time,
        datetime.timedelta,
        uuid.UUID,
        decimal.Decimal,
        bytes,
        bytearray,
    }
)
"""Leaves that msgspec makes from their JSON form."""

SEQUENCES: Final[dict[Any, type | None]] = {
    list: None,
    collections.abc.Sequence: None,
    collections.abc.MutableSequence: None,
    collections.abc.Iterable: None,
    collections.abc.Collection: None,
    tuple: tuple,
}
"""Kinds of array, with the class to build where a list would not do."""

SETS: Final[dict[Any, type]] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}

MAPPINGS: Final = frozenset({dict, collections.abc.Mapping, collections.abc.MutableMapping})


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or nothing when it is no union."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return ()
    return tuple(item for item in typing.get_args(annotation) if item is not msgspec.UnsetType)


def enum_members(annotation: Any) -> tuple[Enum, ...]:
    """Return the members of an Enum class, or nothing when it is none."""
    if not isinstance(annotation, type) or not issubclass(annotation, Enum):
        return ()
    return () if issubclass(annotation, Flag) else tuple(annotation)


def alias_value(annotation: Any) -> tuple[Any] | None:
    """Return what a `type` alias stands for, in a tuple, or None when it is no alias."""
    alias = typing.get_origin(annotation) or annotation
    if type(alias).__name__ != "TypeAliasType":
        return None
    module = sys.modules.get(alias.__module__ or "")
    namespace = vars(module) if module else {}
    where = f"The alias {alias.__name__}"
    value = resolve_annotation(alias.__value__, namespace, {}, where)
    arguments = typing.get_args(annotation)
    if arguments and getattr(value, "__parameters__", ()):
        given = dict(zip(alias.__type_params__, arguments, strict=False))
        value = value[tuple(given.get(item, item) for item in value.__parameters__)]
    return (value,)
