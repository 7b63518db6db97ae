"""From what the caller said to what is in force: provider, presets, options, connection."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, cast
from urllib.parse import urlsplit

from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, RequestError
from surecall.base.json_values import as_fields, is_plain
from surecall.base.redaction import excerpt
from surecall.models.config import Config
from surecall.models.profiles import (
    Catalog,
    ResolvedCapabilities,
    SamplingProfile,
    embedded_name,
    find_preset,
    find_weights,
    is_weights_path,
    merge_presets,
    presets_for,
    resolve_capabilities,
    select_profiles,
)
from surecall.models.transport import (
    EMBEDDED_DEADLINES,
    Deadlines,
    EmbeddedTransport,
    HttpTransport,
    RetryPolicy,
)
from surecall.reading import TRANSFORM_RULES
from surecall.reading.transforms import TransformChain, TransformRegistry, canonical_transform_name
from surecall.text import decode_own, encode
from surecall.tools import Tool, ToolProvider, ToolRegistry
from surecall.wire import DEFAULT_PROTOCOL, WireProtocol, find_protocol

from .options import Options, ResolvedOptions, fold_parameters, resolve_options

EMBEDDED_PROVIDER: Final = "embedded"
"""What the catalog calls the engine inside this process."""
AUTO_PRESET: Final = "auto"
"""Stands for the presets that the catalog names for the provider and the model."""

_SHAPED_TRANSFORMS: Final = ("message_transforms", "response_transforms", "tool_transforms")

_NO_PROVIDERS: Final = (Tool, FunctionType, list, tuple)
_SIMULATED: Final = {"faults": "--fault", "zoo": "--model"}
"""What the names of simulated models begin with, and the flag that serves one."""

ToolSource = ToolRegistry | ToolProvider | Iterable[object]
"""Tools as they are given; a checker may know a list of unlike ones as `list[object]` only."""


def find_provider(config: Config, catalog: Catalog) -> str | None:
    """Name the provider: as configured, or by the host of the address.

    A model that runs in this process has no address, whatever the configuration says.
    """
    if embedded_name(config.model) is not None:
        return EMBEDDED_PROVIDER
    if config.provider:
        return config.provider
    host = urlsplit(config.base_url or "").hostname
    return catalog.provider_at(host) if host else None


def choose_protocol(
    given: str | WireProtocol | None, config: Config, catalog: Catalog
) -> WireProtocol:
    """Choose the wire format: as given, as configured, or what the provider speaks.

    An address that ends in `/openai` is a provider's own door for chat completions.
    """
    if given is not None and not isinstance(given, str):
        return given
    name = given or config.protocol
    if name is None and not urlsplit(config.base_url or "").path.rstrip("/").endswith("/openai"):
        provider = find_provider(config, catalog)
        entry = catalog.find_provider(provider) if provider else None
        name = entry.protocol if entry else None
    return find_protocol(name or DEFAULT_PROTOCOL)


def refuse_shaped_transforms(
    protocol: WireProtocol, options: Options, origins: Mapping[str, str]
) -> None:
    """Refuse transforms the caller named that a wire format cannot take; presets may name them."""
    if protocol.takes_transforms:
        return
    for field in _SHAPED_TRANSFORMS:
        for name in getattr(options, field):
            if canonical_transform_name(name) in TRANSFORM_RULES:
                continue  # reading does it, whatever the wire format
            origin = origins.get(f"{field}.{name}") or origins.get(field, "caller")
            if not origin.startswith("preset:"):
                raise ConfigError(
                    Code.INVALID_OPTION,
                    f"{field} names {name!r} (from {origin}), but transforms of this kind edit "
                    f"chat completions, not {protocol.name}.",
                    hint="Leave it out, or use protocol='chat_completions'.",
                )


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
    presets = tuple(presets)
    is_usual = profile is None and not config.options
    if is_usual and config.origins.get("stream", "default") == "default":
        written = encode(overrides) if is_plain(overrides) else None
        if written is not None:
            return _resolve_usual(provider, model, presets, written, catalog)
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if profile is not None:
        layers += [
            (f"profile:{chosen.id}", {"request_defaults": chosen.params})
            for chosen in _choose_profiles(profile, model, catalog)
        ]
    if config.origins.get("stream", "default") != "default":
        layers.append((config.origins["stream"], {"stream": config.stream}))
    for name, value in config.options.items():
        origin = config.origins.get(f"options.{name}", "config")
        layers.append((origin, fold_parameters({name: value})))
    if overrides:
        layers.append(("caller", fold_parameters(overrides)))
    return _resolve_layers([*_preset_layers(provider, model, presets, catalog), *layers])


def _choose_profiles(expression: str, model: str, catalog: Catalog) -> tuple[SamplingProfile, ...]:
    try:
        return select_profiles(expression, model, catalog=catalog)
    except ConfigError as error:
        if error.code != Code.NOTHING_SELECTED:
            raise
        raise ConfigError(
            Code.INVALID_OPTION,
            f"there is no sampling profile {expression!r}.",
            hint=error.hint,
        ) from error


@lru_cache(maxsize=128)
def _resolve_usual(
    provider: str | None,
    model: str,
    presets: tuple[str, ...],
    overrides: bytes,
    catalog: Catalog,
) -> ResolvedOptions:
    """Resolve what presets and plain options say, as in most runs."""
    layers = _preset_layers(provider, model, presets, catalog)
    given = as_fields(decode_own(overrides))
    if given:
        layers.append(("caller", fold_parameters(given)))
    return _resolve_layers(layers)


def _preset_layers(
    provider: str | None, model: str, presets: tuple[str, ...], catalog: Catalog
) -> list[tuple[str, Mapping[str, Any]]]:
    found = (
        presets_for(provider, model, catalog)
        if name == AUTO_PRESET
        else (find_preset(name, catalog),)
        for name in presets
    )
    return [preset.layer for several in found for preset in several]


def _resolve_layers(layers: Iterable[tuple[str, Mapping[str, Any]]]) -> ResolvedOptions:
    merged = merge_presets(layers)
    return resolve_options(merged.values, merged.origins)


def find_capabilities(
    provider: str | None,
    model: str,
    overrides: Mapping[str, Any],
    probed: Mapping[str, Any],
    probed_on: Mapping[str, str],
    catalog: Catalog,
) -> ResolvedCapabilities:
    """Say what a model can do, by the caller, probes and the catalog."""
    written = encode(overrides) if not probed and is_plain(overrides) else None
    if written is not None:
        return _known_capabilities(provider, model, written, catalog)
    return resolve_capabilities(
        provider, model, overrides=overrides, probed=probed, probed_on=probed_on, catalog=catalog
    )


@lru_cache(maxsize=128)
def _known_capabilities(
    provider: str | None, model: str, overrides: bytes, catalog: Catalog
) -> ResolvedCapabilities:
    return resolve_capabilities(
        provider, model, overrides=as_fields(decode_own(overrides)), catalog=catalog
    )


def make_chain(registry: TransformRegistry | None, options: Options) -> TransformChain:
    """Look up the transforms that the options name; without a registry, among the built-in ones."""
    named = {
        "messages": options.message_transforms,
        "tools": options.tool_transforms,
        "replies": options.response_transforms,
        "calls": options.tool_call_transforms,
        "results": options.tool_result_transforms,
        "answers": options.answer_transforms,
    }
    if registry is None:
        return _builtin_chain(**named)
    return TransformChain.resolve(registry, **named)


@lru_cache(maxsize=128)
def _builtin_chain(**named: tuple[str, ...]) -> TransformChain:
    return TransformChain.resolve(TransformRegistry.builtin(), **named)


def make_registry(tools: ToolSource) -> tuple[ToolRegistry, tuple[ToolProvider, ...]]:
    """Take a registry as it is, or make one of tools and functions; providers stay apart."""
    if isinstance(tools, ToolRegistry):
        return tools, ()
    source = cast("Any", tools)
    if not _is_provider(source) and not _is_list(source):
        shown = getattr(source, "__name__", None) or excerpt(repr(source), 60)
        write = f"[{shown}]" if callable(source) else "[f, g], or leave it out"
        raise ConfigError(
            Code.INVALID_TOOL, f"tools must be a list, not {shown}.", hint=f"Write tools={write}."
        )
    given: tuple[Any, ...] = (tools,) if _is_provider(tools) else tuple(cast("Any", tools))
    providers = tuple(filter(_is_provider, given))
    if providers:
        given = tuple(item for item in given if not _is_provider(item))
    return ToolRegistry(given), providers


def _is_list(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return True
    return isinstance(given, Iterable) and not isinstance(given, str | Mapping | type)


def _is_provider(given: Any) -> bool:
    """Tell whether something provides tools; looking for the methods takes longer than a type."""
    return not isinstance(given, _NO_PROVIDERS) and isinstance(given, ToolProvider)


def make_embedded(config: Config) -> EmbeddedTransport:
    """Open a transport to the model in this process that the configuration names."""
    name = embedded_name(config.model)
    if not name:
        raise ConfigError(
            Code.UNKNOWN_MODEL,
            f"{config.model!r} names no embedded model.",
            hint="Write it like embedded:smollm2-135m or embedded:PATH.gguf.",
        )
    return EmbeddedTransport(
        name if is_weights_path(name) else find_weights(name),
        cache_dir=config.cache_dir,
        deadlines=replace(EMBEDDED_DEADLINES, **config.deadlines),
        **config.local,
    )


def make_transport(
    config: Config, protocol: WireProtocol | None = None
) -> HttpTransport | EmbeddedTransport:
    """Open a transport to the provider that the configuration names."""
    if embedded_name(config.model) is not None:
        if protocol is not None and protocol.name != DEFAULT_PROTOCOL:
            raise RequestError(
                Code.CAPABILITY_UNSUPPORTED,
                f"{config.model} runs in this process and supports {DEFAULT_PROTOCOL}, "
                f"not {protocol.name}.",
                hint="Leave the protocol out (protocol=..., --protocol, SURECALL_PROTOCOL).",
            )
        return make_embedded(config)
    if not config.base_url:
        raise ConfigError(
            Code.INVALID_CONFIG,
            "no provider address was given.",
            hint=_suggest_address(config.model or ""),
        )
    config.require_key()
    return HttpTransport(
        config.base_url,
        api_key=config.api_key,
        api_prefix=config.api_prefix,
        headers=config.headers,
        deadlines=Deadlines(**config.deadlines),
        retry=RetryPolicy(**config.retry),
        protocol=protocol,
        network=config.network,
        key_note=config.describe_key(),
    )


def _suggest_address(model: str) -> str:
    """Say how to name the provider of a model; its name may already be nearly right."""
    prefix, _, name = model.partition(":")
    if name and prefix in _SIMULATED:
        flag = _SIMULATED[prefix]
        return (
            f"{model} is simulated: begin `surecall faults serve {flag} {name}`, and name the "
            "address that it prints with --base-url."
        )
    known = [entry.id for entry in Catalog.builtin().providers] if name else []
    close = get_close_matches(prefix.lower(), known, n=1, cutoff=0.8)
    nearly = f"Did you mean {close[0]}:{name}? " if close else ""
    if "@" in model:
        nearly = "An address after @ begins with http:// or https://. "
    return nearly + (
        "Name the provider before the model, as in openrouter:vendor/model, write "
        "MODEL@http://127.0.0.1:8000/v1, or pass --base-url, base_url=... or transport=..., or "
        "set SURECALL_BASE_URL."
    )
