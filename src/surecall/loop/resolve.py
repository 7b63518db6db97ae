"""From what the caller said to what is in force: provider, presets, options, connection."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from surecall.config import Config
from surecall.errors import Code, ConfigError
from surecall.profiles import Catalog, find_preset, merge_presets, presets_for, select_profiles
from surecall.tools import Tool, ToolRegistry
from surecall.transforms import TransformChain, TransformRegistry
from surecall.transport import Deadlines, HttpTransport, RetryPolicy

from .options import Options, ResolvedOptions, resolve_options

__all__ = [
    "AUTO_PRESET",
    "ToolSource",
    "find_provider",
    "make_chain",
    "make_registry",
    "make_transport",
    "merge_options",
]

AUTO_PRESET: Final = "auto"
"""Stands for the presets that the catalog names for the provider and the model."""

ToolSource = ToolRegistry | Iterable[Tool[..., Any] | Callable[..., Any]]


def find_provider(config: Config, catalog: Catalog) -> str | None:
    """Name the provider: as configured, or by the host of the address."""
    if config.provider:
        return config.provider
    host = urlsplit(config.base_url or "").hostname
    return catalog.provider_at(host) if host else None


def merge_options(
    *,
    provider: str | None,
    model: str,
    presets: Iterable[str],
    profile: str | None,
    config: Config,
    overrides: Mapping[str, Any],
    catalog: Catalog,
) -> ResolvedOptions:
    """Merge presets, sampling profile, configuration and the caller's options, in that order."""
    layers: list[tuple[str, Mapping[str, Any]]] = []
    for name in presets:
        found = (
            presets_for(provider, model, catalog)
            if name == AUTO_PRESET
            else (find_preset(name, catalog),)
        )
        layers += [preset.layer for preset in found]
    if profile is not None:
        for chosen in select_profiles(profile, model, catalog=catalog):
            layers.append((f"profile:{chosen.id}", {"request_defaults": chosen.params}))
    if config.origins.get("stream", "default") != "default":
        layers.append((config.origins["stream"], {"stream": config.stream}))
    for name, value in config.options.items():
        layers.append((config.origins.get(f"options.{name}", "config"), {name: value}))
    layers.append(("caller", overrides))
    merged = merge_presets(layers)
    return resolve_options(merged.values, merged.origins)


def make_chain(registry: TransformRegistry, options: Options) -> TransformChain:
    """Look up the transforms that the options name."""
    return TransformChain.resolve(
        registry,
        messages=options.message_transforms,
        tools=options.tool_transforms,
        replies=options.response_transforms,
        calls=options.tool_call_transforms,
        results=options.tool_result_transforms,
    )


def make_registry(tools: ToolSource) -> ToolRegistry:
    """Take a registry as it is, or make one of tools and functions."""
    return tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)


def make_transport(config: Config) -> HttpTransport:
    """Open the door to the provider that the configuration names."""
    if not config.base_url:
        raise ConfigError(
            Code.INVALID_CONFIG,
            "there is no address of a provider.",
            hint="Pass base_url=... or transport=..., or set SURECALL_BASE_URL "
            "(for example http://127.0.0.1:8000/v1).",
        )
    return HttpTransport(
        config.base_url,
        api_key=config.api_key,
        api_prefix=config.api_prefix,
        headers=config.headers,
        deadlines=Deadlines(**_given(config.deadlines)),
        retry=RetryPolicy(**_given(config.retry)),
    )


def _given(settings: Any) -> dict[str, Any]:
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not None}
