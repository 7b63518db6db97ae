"""Schemas to check values against."""

from typing import Any

__all__ = ["TASK", "of"]

TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "due_days": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["title"],
    "additionalProperties": False,
}


def of(**schema: Any) -> dict[str, Any]:
    """Return a schema with one property `x`."""
    return {"type": "object", "properties": {"x": schema}}
