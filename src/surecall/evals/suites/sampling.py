"""Values for arguments of which a case says nothing."""

from collections.abc import Mapping
from typing import Any, Final

from surecall.base.json_values import as_fields

__all__ = ["sample_value"]

_BY_TYPE: Final[Mapping[str, Any]] = {
    "array": [],
    "boolean": True,
    "integer": 1,
    "null": None,
    "number": 1,
    "object": {},
}


def sample_value(schema: Any) -> Any:
    """Return a value that a simple schema allows."""
    fields = as_fields(schema)
    for key in ("const", "default"):
        if key in fields:
            return fields[key]
    for key in ("enum", "examples"):
        if fields.get(key):
            return fields[key][0]
    kind = fields.get("type")
    if kind in ("integer", "number"):
        return max(1, fields.get("minimum", 1))
    return _BY_TYPE.get(kind, "sample") if isinstance(kind, str) else "sample"
