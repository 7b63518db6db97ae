"""JSON values of unknown shape, taken as what they should be."""

from typing import Any, cast

__all__ = ["as_fields", "as_list"]


def as_fields(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return an array, or an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []
