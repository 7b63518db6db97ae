"""Facts about models and providers, dated and sourced, and the presets that rest on them."""

from .catalog import (
    EMBEDDED_PREFIX,
    Catalog,
    Selectable,
    embedded_name,
    find_weights,
    is_weights_path,
    known_weights,
    matches_glob,
    select,
)
from .entries import (
    RESERVED_REQUEST_KEYS,
    Capabilities,
    Findings,
    ModelEntry,
    ProviderEntry,
    SamplingProfile,
    join_capabilities,
    split_capabilities,
)
from .merge import Merged, deep_merge, merge_presets
from .resolve import (
    STRATEGIES,
    ResolvedCapabilities,
    find_preset,
    presets_for,
    resolve_capabilities,
    select_profiles,
)

__all__ = [
    "EMBEDDED_PREFIX",
    "RESERVED_REQUEST_KEYS",
    "STRATEGIES",
    "Capabilities",
    "Catalog",
    "Findings",
    "Merged",
    "ModelEntry",
    "ProviderEntry",
    "ResolvedCapabilities",
    "SamplingProfile",
    "Selectable",
    "deep_merge",
    "embedded_name",
    "find_preset",
    "find_weights",
    "is_weights_path",
    "join_capabilities",
    "known_weights",
    "matches_glob",
    "merge_presets",
    "presets_for",
    "resolve_capabilities",
    "select",
    "select_profiles",
    "split_capabilities",
]
