"""Types and the schemas they have."""

from dataclasses import dataclass
from typing import Any

__all__ = ["INTEGER", "NULL", "STRING", "Case"]

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}


@dataclass(frozen=True)
class Case:
    id: str
    annotation: Any
    expected: dict[str, Any]
