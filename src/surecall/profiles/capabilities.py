"""What a model at a provider can do, and where each answer comes from."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from surecall.errors import Code

from .catalog import Catalog
from .entries import (
    Capabilities,
    Findings,
    require_capabilities,
    split_capabilities,
)

__all__ = ["ResolvedCapabilities", "resolve_capabilities"]


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
