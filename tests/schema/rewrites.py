"""Schemas and what becomes of them in a dialect."""

import copy
from dataclasses import dataclass, field
from typing import Any

from surecall.schema import Loss, rewrite_schema
from surecall.schema.dialects import Dialect

__all__ = ["TREE", "Rewrite", "assert_rewritten", "losses_of", "obj"]

TREE = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["children"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Rewrite:
    id: str
    schema: dict[str, Any]
    expected: dict[str, Any]
    losses: tuple[tuple[str, str, str], ...] = ()
    """Place, keyword and kind of each."""
    options: dict[str, int] = field(default_factory=dict[str, int])


def losses_of(losses: tuple[Loss, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return place, keyword and kind of each loss."""
    return tuple((loss.place, loss.keyword, loss.kind) for loss in losses)


def assert_rewritten(case: Rewrite, dialect: Dialect) -> None:
    """Rewrite once and again: both give what is expected, and what was given stays as it was."""
    given = copy.deepcopy(case.schema)
    rewritten = rewrite_schema(given, dialect, **case.options)
    assert rewritten.schema == case.expected
    assert losses_of(rewritten.losses) == case.losses
    assert given == case.schema
    assert rewrite_schema(rewritten.schema, dialect, **case.options).schema == case.expected


def obj(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": properties}
