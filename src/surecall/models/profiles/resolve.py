"""What the catalog says about one model: its capabilities, presets and sampling profiles."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean

from .catalog import Catalog, matches_glob, select
from .entries import (
    Capabilities,
    Findings,
    Preset,
    SamplingProfile,
    require_capabilities,
    split_capabilities,
)


class ResolvedCapabilities(NamedTuple):
    """Capabilities in force, and the origin of every field."""

    capabilities: Capabilities
    origins: dict[str, str]
    """`default`, `provider:ID`, `rule:ID`, `model:ID`, `probe:DATE` or `override`."""
    findings: Findings = Findings()
    """What else is known, without any influence on a run; `origins` covers it too."""


def resolve_capabilities(
    provider: str | None,
    model: str | None,
    overrides: Mapping[str, Any] | None = None,
    *,
    probed: Mapping[str, Any] | None = None,
    probed_on: str | Mapping[str, str] = "",
    catalog: Catalog | None = None,
) -> ResolvedCapabilities:
    """Resolve capabilities: what the caller says wins, then what a probe saw, then the catalog.

    Args:
        provider: The provider's name in the catalog.
        model: The model, as the provider names it.
        overrides: What the caller says.
        probed: What a probe that is still fresh found out.
        probed_on: The date of that probe, to be named as the origin; or the date of each field.
        catalog: What is known; the built-in catalog by default.
    """
    catalog = catalog or Catalog.builtin()
    layers: list[tuple[str, Mapping[str, Any]]] = []
    provider_entry = catalog.find_provider(provider) if provider else None
    if provider_entry:
        layers.append((f"provider:{provider_entry.id}", provider_entry.capabilities))
    if model:
        layers.extend(
            (f"rule:{rule.id}", rule.capabilities)
            for rule in catalog.matching_rules(provider, model)
        )
        entry = catalog.find(model)
        if entry:
            layers.append((f"model:{entry.id}", entry.capabilities))
    if probed:
        require_capabilities(probed, "a probe", Code.UNKNOWN_OPTION)
        for name, value in probed.items():
            date = probed_on if isinstance(probed_on, str) else probed_on.get(name, "")
            layers.append((f"probe:{date}", {name: value}))
    if overrides:
        require_capabilities(overrides, "an override", Code.UNKNOWN_OPTION)
        layers.append(("override", overrides))
    values: dict[str, Any] = {}
    names = (*Capabilities.__struct_fields__, *Findings.__struct_fields__)
    origins = dict.fromkeys(names, "default")
    for origin, layer in layers:
        values.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    capabilities, findings = split_capabilities(values)
    return ResolvedCapabilities(capabilities, origins, findings)


DEFAULT_PRESET: Final = "default_tool_calling"
"""The preset that is applied when none is named."""


Layer = Literal["default", "provider", "model"]


class Strategy(Struct, frozen=True):
    """A named choice of presets."""

    id: str
    tags: tuple[str, ...]
    layers: frozenset[Layer] = frozenset()
    meaning: str = ""
    """What it is, in a few words for a reader of a report."""


_PROVIDER_LAYERS: Final[frozenset[Layer]] = frozenset({"default", "provider"})
_ALL_LAYERS: Final[frozenset[Layer]] = frozenset({"default", "provider", "model"})

STRATEGIES: Final = (
    Strategy("raw", ("raw", "naked", "unoptimized"), meaning="replies as they are"),
    Strategy(
        "naive",
        ("rescue",),
        meaning="raw, and the outermost braces of a text taken as a call if they are one",
    ),
    Strategy("baseline", ("base",), _PROVIDER_LAYERS, "repair and coercion of structured calls"),
    Strategy(
        "production",
        ("prod", "recommended"),
        _ALL_LAYERS,
        "also calls in text, the model's workarounds and escalations",
    ),
    Strategy(
        "gated",
        ("fit",),
        _ALL_LAYERS,
        "production, and the model is asked whether a tool fits before it runs",
    ),
    Strategy(
        "guided",
        ("declared",),
        _ALL_LAYERS,
        "production, with what an application declares for each task",
    ),
)
"""From nothing switched on to everything, then with a question before each tool, and then with what
applications declare as well."""


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

    `baseline` leaves out the model's workarounds, `raw` and `naive` leave out everything.
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


DEFAULT_PROFILE = "default"
"""The sampling profile that changes nothing."""


def applicable(profiles: Sequence[SamplingProfile], model: str) -> tuple[SamplingProfile, ...]:
    """Return the profiles that are meant for a model, in order."""
    name = model.strip().lower()
    return tuple(
        profile
        for profile in profiles
        if any(matches_glob(glob.lower(), name) for glob in profile.applies_to)
    )


def select_profiles(
    expression: str,
    model: str,
    *,
    enforce_applicability: bool = True,
    catalog: Catalog | None = None,
) -> tuple[SamplingProfile, ...]:
    """Return the profiles the filter chooses for a model, or `default` when none is meant for it.

    With `enforce_applicability=False` everything the filter chooses is returned.
    """
    known = (catalog or Catalog.builtin()).sampling
    chosen = select(known, expression)
    if not enforce_applicability:
        return chosen
    fitting = applicable(chosen, model)
    if fitting:
        return fitting
    default = tuple(profile for profile in known if profile.id == DEFAULT_PROFILE)
    if not default:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"no profile chosen by {expression!r} is meant for {model!r}.",
            hint="Add a profile called 'default', or switch applicability off.",
        )
    return default
