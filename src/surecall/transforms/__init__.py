"""Named pure functions that adapt what is sent and what comes back, in five families."""

from .builtin import ResultContext
from .registry import FAMILIES, Family, TransformChain, TransformRegistry, canonical_transform_name

__all__ = [
    "FAMILIES",
    "Family",
    "ResultContext",
    "TransformChain",
    "TransformRegistry",
    "canonical_transform_name",
]
