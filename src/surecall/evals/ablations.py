"""What can be switched off by itself, to see what it is worth."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.profiles import Catalog
from surecall.profiles.entries import canonical_name
from surecall.reading import READING_RULES
from surecall.transforms import TransformRegistry
from surecall.transforms.registry import Family

__all__ = [
    "OPTIONS_OFF",
    "TRANSFORM_FIELDS",
    "Ablation",
    "find_ablation",
    "list_ablations",
]

AblationKind = Literal["option", "preset", "transform", "rule"]

OPTIONS_OFF: Final[Mapping[str, Any]] = {
    "fallback_retry_count": 0,
    "fix_empty_final": False,
    "max_escalations": 0,
    "max_parse_retries": 0,
    "text_formats": False,
    "tool_prompting": "native",
}
"""Options that help a run, with the value that switches each off."""

TRANSFORM_FIELDS: Final[Mapping[Family, str]] = {
    "messages": "message_transforms",
    "tools": "tool_transforms",
    "replies": "response_transforms",
    "calls": "tool_call_transforms",
    "results": "tool_result_transforms",
}
"""The option that lists the transforms of each family."""


class Ablation(Struct, frozen=True):
    """One thing that a strategy `ablate:NAME` does without."""

    name: str
    kind: AblationKind
    field: str = ""
    """The option that it is switched off with."""

    @property
    def id(self) -> str:
        """The name of the strategy."""
        return f"ablate:{self.name}"

    @property
    def layer(self) -> dict[str, Any]:
        """The options that switch it off; none for a preset, which is left out."""
        match self.kind:
            case "option":
                return {self.name: OPTIONS_OFF[self.name]}
            case "transform":
                return {self.field: [f"!{self.name}"]}
            case "rule":
                return {self.field: [self.name]}
            case "preset":
                return {}


def list_ablations(catalog: Catalog | None = None) -> tuple[Ablation, ...]:
    """Return all that can be switched off: options, presets, transforms, rules."""
    catalog = catalog or Catalog.builtin()
    transforms = TransformRegistry.builtin()
    return (
        *(Ablation(name, "option", name) for name in OPTIONS_OFF),
        *(Ablation(preset.name, "preset") for preset in catalog.presets),
        *(
            Ablation(name, "transform", field)
            for family, field in TRANSFORM_FIELDS.items()
            for name in transforms.names(family)
        ),
        *(Ablation(name, "rule", "disabled_rules") for name in READING_RULES),
    )


def find_ablation(name: str, catalog: Catalog | None = None) -> Ablation:
    """Return what a name stands for."""
    catalog = catalog or Catalog.builtin()
    known = {ablation.name: ablation for ablation in list_ablations(catalog)}
    wanted = canonical_name(name)
    for preset in catalog.presets:
        if wanted in map(canonical_name, preset.aliases):
            wanted = preset.name
    if wanted not in known:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"there is nothing called {name!r} that could be switched off.",
            hint=did_you_mean(wanted, known),
        )
    return known[wanted]
