"""Which kinds of schema errors a value has, for counting."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn

__all__ = ["KINDS", "list_error_kinds"]

KINDS: Final = ("missing", "enum", "type", "range", "unknown_key", "format", "other")
"""Every kind, in the order in which they are told."""

_KIND_OF: Final = {
    "additionalProperties": "unknown_key",
    "const": "enum",
    "dependentRequired": "missing",
    "enum": "enum",
    "format": "format",
    "pattern": "format",
    "propertyNames": "unknown_key",
    "required": "missing",
    "type": "type",
    "unevaluatedProperties": "unknown_key",
    **dict.fromkeys(
        (
            "additionalItems",
            "exclusiveMaximum",
            "exclusiveMinimum",
            "maxItems",
            "maxLength",
            "maxProperties",
            "maximum",
            "minItems",
            "minLength",
            "minProperties",
            "minimum",
            "multipleOf",
            "uniqueItems",
        ),
        "range",
    ),
}
_MAX_UNION_DEPTH: Final = 4


def list_error_kinds(schema: dict[str, Any], value: Any) -> tuple[str, ...]:
    """Return the kinds of errors that a value has under a schema, each once."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
        found = set(_kinds(validator.iter_errors(value), _MAX_UNION_DEPTH))
    except ValueError:  # not JSON, or a schema that cannot be used
        return ("other",)
    return tuple(kind for kind in KINDS if kind in found)


def _kinds(errors: Iterable[Any], depth: int) -> Iterator[str]:
    for error in errors:
        branches: list[list[Any]] | None = getattr(error.kind, "context", None)
        if branches and depth:
            yield from _union_kinds(branches, depth)
        else:
            yield _KIND_OF.get(error.kind.name, "other")


def _union_kinds(branches: list[list[Any]], depth: int) -> set[str]:
    """Return what is wrong with the branch that was meant: one that is not of another type."""
    found = [set(_kinds(branch, depth - 1)) for branch in branches]
    near = [kinds for kinds in found if "type" not in kinds]
    return set[str]().union(*(near or found))


def _refuse(_uri: str) -> NoReturn:
    raise ValueError("schemas are never fetched")
