"""Named pure functions that adapt what is sent and what comes back, in six families."""

from .builtin import ResultContext
from .language import LanguageCheck, LanguagePolicy, canonical_language
from .output_tags import OutputTags
from .registry import FAMILIES, Family, TransformChain, TransformRegistry, canonical_transform_name

__all__ = [
    "FAMILIES",
    "Family",
    "LanguageCheck",
    "LanguagePolicy",
    "OutputTags",
    "ResultContext",
    "TransformChain",
    "TransformRegistry",
    "canonical_language",
    "canonical_transform_name",
]
