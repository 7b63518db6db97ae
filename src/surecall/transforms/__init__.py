"""Named pure functions that adapt what is sent and what comes back, in five families."""

from .chain import TransformChain
from .registry import FAMILIES, Family, TransformRegistry, canonical_transform_name
from .results import ResultContext

__all__ = [
    "FAMILIES",
    "Family",
    "ResultContext",
    "TransformChain",
    "TransformRegistry",
    "canonical_transform_name",
]
