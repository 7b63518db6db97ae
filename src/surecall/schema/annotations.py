"""What one annotation says in JSON Schema: its type, its limits and its default."""

import collections.abc
import datetime
import decimal
import math
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import Iterable
from enum import Enum, Flag
from pathlib import PurePath
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from .fields import resolve_annotation


class Rendered(Struct, frozen=True):
    """A value that has a JSON form."""

    value: Any


def render_default(value: Any) -> Rendered | None:
    """Return the JSON form of a value, or None when it has none."""
    try:
        built = msgspec.to_builtins(value, order="deterministic", enc_hook=_render_other)
        return Rendered(_as_json(built))
    except (TypeError, ValueError, RecursionError):
        return None


def _render_other(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError


def _as_json(value: Any) -> Any:
    """Return a built-in value with lists for tuples; raise when JSON cannot say it."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        if all(isinstance(key, str) for key in members):
            return {key: _as_json(item) for key, item in members.items()}
    elif isinstance(value, str | int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError


_KEYWORDS: dict[str, dict[str, str]] = {
    "ge": {"integer": "minimum", "number": "minimum"},
    "gt": {"integer": "exclusiveMinimum", "number": "exclusiveMinimum"},
    "le": {"integer": "maximum", "number": "maximum"},
    "lt": {"integer": "exclusiveMaximum", "number": "exclusiveMaximum"},
    "multiple_of": {"integer": "multipleOf", "number": "multipleOf"},
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
    "pattern": {"string": "pattern"},
}


class Constraints(Struct, frozen=True):
    """What was said about a type besides the type itself."""

    description: str = ""
    limits: dict[str, Any] = {}
    """By the attribute they came from, such as `ge`."""
    keywords: dict[str, Any] = {}
    """Keywords to add as they are."""


def read_constraints(metadata: Iterable[Any]) -> Constraints:
    """Read the metadata of an `Annotated` type; objects that say nothing are passed over."""
    texts: list[str] = []
    limits: dict[str, Any] = {}
    keywords: dict[str, Any] = {}
    for item in _flat(metadata):
        if isinstance(item, str):
            texts.append(item)
            continue
        said = (getattr(item, attribute, None) for attribute in ("description", "documentation"))
        texts.extend(text for text in said if isinstance(text, str))
        for attribute in _KEYWORDS:
            if (limit := getattr(item, attribute, None)) is not None:
                limits[attribute] = limit
        examples = getattr(item, "examples", None)
        if isinstance(examples, list) and (rendered := render_default(examples)) is not None:
            keywords["examples"] = rendered.value
        if isinstance(extra := getattr(item, "extra_json_schema", None), dict):
            keywords.update(cast(dict[str, Any], extra))
    return Constraints(" ".join(" ".join(texts).split()), limits, keywords)


def apply_constraints(schema: dict[str, Any], constraints: Constraints) -> str | None:
    """Add the constraints to a schema in place; return the first one that does not fit, or None."""
    for attribute, limit in constraints.limits.items():
        if not _fits(attribute, limit):
            return f"{attribute}={limit!r}"
        branches = [branch for branch in _branches(schema) if _keyword(attribute, branch)]
        if not branches:
            return f"{attribute}={limit!r}"
        for branch in branches:
            branch[_keyword(attribute, branch)] = getattr(limit, "pattern", limit)
    if constraints.description:
        schema["description"] = constraints.description
    schema.update(constraints.keywords)
    return None


def _flat(metadata: Iterable[Any]) -> Iterable[Any]:
    for item in metadata:
        yield item
        # A pydantic field keeps its limits in a list of its own.
        inner = getattr(item, "metadata", None)
        if isinstance(inner, list):
            yield from inner


def _fits(attribute: str, limit: Any) -> bool:
    if attribute == "pattern":
        return isinstance(getattr(limit, "pattern", limit), str)
    return isinstance(limit, int | float) and not isinstance(limit, bool)


def _branches(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return schema.get("anyOf", [schema])


def _keyword(attribute: str, branch: dict[str, Any]) -> str:
    kind = branch.get("type")
    return _KEYWORDS[attribute].get(kind, "") if isinstance(kind, str) else ""


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
    """Return the members of a union, or nothing when it is not a union."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return ()
    return tuple(item for item in typing.get_args(annotation) if item is not msgspec.UnsetType)


def enum_members(annotation: Any) -> tuple[Enum, ...]:
    """Return the members of an Enum class, or nothing when it is not one."""
    if not isinstance(annotation, type) or not issubclass(annotation, Enum):
        return ()
    return () if issubclass(annotation, Flag) else tuple(annotation)


def alias_value(annotation: Any) -> tuple[Any] | None:
    """Return what a `type` alias stands for, in a tuple, or None when it is not an alias."""
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
