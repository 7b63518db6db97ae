"""Which presets a model at a provider gets."""

from typing import Final, Literal

from msgspec import Struct

from surecall.errors import Code, ConfigError, did_you_mean

from .catalog import Catalog
from .entries import Preset

__all__ = ["DEFAULT_PRESET", "STRATEGIES", "Strategy", "find_preset", "presets_for"]

DEFAULT_PRESET: Final = "default_tool_calling"


Layer = Literal["default", "provider", "model"]


class Strategy(Struct, frozen=True):
    """A named choice of presets."""

    id: str
    tags: tuple[str, ...]
    layers: frozenset[Layer] = frozenset()


STRATEGIES: Final = (
    Strategy("raw", ("raw", "naked", "unoptimized")),
    Strategy("baseline", ("base",), frozenset({"default", "provider"})),
    Strategy("production", ("prod", "recommended"), frozenset({"default", "provider", "model"})),
)
"""From nothing switched on to everything."""


def find_preset(name: str, catalog: Catalog | None = None) -> Preset:
    """Return a preset by its name or an alias."""
    return (catalog or Catalog.builtin()).preset(name)


def presets_for(
    provider: str | None,
    model: str | None,
    catalog: Catalog | None = None,
    *,
    strategy: str = "production",
) -> tuple[Preset, ...]:
    """Return the presets in force: the default, the provider's, and the model's workarounds.

    `baseline` leaves out the model's workarounds, `raw` leaves out everything.
    """
    catalog = catalog or Catalog.builtin()
    layers = _find_strategy(strategy).layers
    names: list[str] = []
    if "default" in layers:
        names.append(DEFAULT_PRESET)
    entry = catalog.find_provider(provider) if provider and "provider" in layers else None
    if entry and entry.preset:
        names.append(entry.preset)
    if model and "model" in layers:
        names.extend(_workarounds(catalog, provider, model))
    presets = {preset.name: preset for preset in map(catalog.preset, names)}
    return tuple(presets.values())


def _workarounds(catalog: Catalog, provider: str | None, model: str) -> list[str]:
    entry = catalog.find(model)
    names = list(entry.workarounds) if entry else []
    for rule in catalog.matching_rules(provider, model):
        names.extend(rule.workarounds)
    return names


def _find_strategy(name: str) -> Strategy:
    for strategy in STRATEGIES:
        if strategy.id == name.strip().lower():
            return strategy
    raise ConfigError(
        Code.INVALID_OPTION,
        f"there is no strategy {name!r}.",
        hint=did_you_mean(name, (strategy.id for strategy in STRATEGIES)),
    )
