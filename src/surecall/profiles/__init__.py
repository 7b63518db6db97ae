"""Facts about models and providers, dated and sourced, and the presets that rest on them."""

from .capabilities import ResolvedCapabilities, resolve_capabilities
from .catalog import Catalog
from .entries import (
    Capabilities,
    Findings,
    JSONStability,
    ModelEntry,
    ModelRule,
    Preset,
    ProviderEntry,
    SamplingProfile,
    join_capabilities,
    split_capabilities,
)
from .fields import LIST_FIELDS, OBJECT_FIELDS, PRESET_FIELDS, RESERVED_REQUEST_KEYS
from .filters import Selectable, matches_glob, select
from .merge import Merged, deep_merge, merge_presets
from .presets import DEFAULT_PRESET, STRATEGIES, Strategy, find_preset, presets_for
from .sampling import DEFAULT_PROFILE, applicable, select_profiles
from .weights import (
    EMBEDDED_PREFIX,
    embedded_name,
    find_weights,
    is_weights_path,
    known_weights,
    parse_weights,
)

__all__ = [
    "DEFAULT_PRESET",
    "DEFAULT_PROFILE",
    "EMBEDDED_PREFIX",
    "LIST_FIELDS",
    "OBJECT_FIELDS",
    "PRESET_FIELDS",
    "RESERVED_REQUEST_KEYS",
    "STRATEGIES",
    "Capabilities",
    "Catalog",
    "Findings",
    "JSONStability",
    "Merged",
    "ModelEntry",
    "ModelRule",
    "Preset",
    "ProviderEntry",
    "ResolvedCapabilities",
    "SamplingProfile",
    "Selectable",
    "Strategy",
    "applicable",
    "deep_merge",
    "embedded_name",
    "find_preset",
    "find_weights",
    "is_weights_path",
    "join_capabilities",
    "known_weights",
    "matches_glob",
    "merge_presets",
    "parse_weights",
    "presets_for",
    "resolve_capabilities",
    "select",
    "select_profiles",
    "split_capabilities",
]
