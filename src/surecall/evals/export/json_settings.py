"""What a run was made with, under the names of the original's `summary.json`."""

from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.evals.records import Manifest
from surecall.evals.store import RunInfo

from .files import utc_text
from .json_trial import NO_LANGUAGE_POLICY
from .layout import Layout

__all__ = ["model_base_of", "render_settings"]

_HTTP_CLIENT: Final = "aiohttp"


def model_base_of(manifest: Manifest, label: str) -> str:
    """Return what the provider calls a model."""
    model: Any = _contender(manifest, label).get("model")
    return model if isinstance(model, str) and model else label


def render_settings(info: RunInfo, layout: Layout) -> dict[str, Any]:
    """Return the head of the summary; what the original set and nobody sets here is null."""
    manifest = info.manifest
    axes = manifest.axes
    addresses = {_contender(manifest, label).get("base_url") for label in layout.models}
    base_url = addresses.pop() if len(addresses) == 1 else None
    return {
        "ts": utc_text(info.created_at),
        "base_url": base_url,
        "api_prefix": None,
        "http_adapter": _HTTP_CLIENT if base_url else None,
        "language_policy_filter": NO_LANGUAGE_POLICY,
        "language_policy_matrix": False,
        "language_policy_strict": False,
        "language_policies": [],
        "client_timeout": _option(manifest, "timeout_s", "deadline_s"),
        "client_open_timeout": _option(manifest, "connect_timeout_s"),
        "client_read_timeout": _option(manifest, "idle_timeout_s"),
        "fix_empty_final": _option(manifest, "fix_empty_final"),
        "tool_use_mode": _option(manifest, "tool_use_mode"),
        "tool_failure_policy": _option(manifest, "tool_failure_policy"),
        "tool_calling_fallback_retry_count": _option(manifest, "fallback_retry_count"),
        "tool_allowlist": _option(manifest, "tool_allowlist"),
        "request_overrides": _option(manifest, "request_overrides"),
        "sampling_profile_filter": _filter(axes, "profiles"),
        "sampling_profiles": layout.profiles,
        "sampling_profile_enforce_applicability": axes.get("enforce_applicability"),
        "llm_options_defaults_overrides": _option(manifest, "request_defaults"),
        "model_filter": _filter(axes, "models"),
        "selected_models": layout.models,
        "strategy_filter": _filter(axes, "strategies"),
        "strategy_matrix": len(layout.strategies) > 1,
        "strategies": layout.strategies,
        "content_tag_tool_call_fallback_global_override": _override(layout),
        "best_effort_content_tag_tool_call_fallback_models": [],
        "fallback_matrix": len(layout.fallbacks) > 1,
        "fallback_profiles": layout.fallbacks,
        "jobs": _option(manifest, "concurrency"),
        "trials_per_model": axes.get("trials"),
        "scenarios": layout.scenarios,
        "output_dir": ".",
        **_ours(info, layout),
    }


def _ours(info: RunInfo, layout: Layout) -> dict[str, Any]:
    manifest = info.manifest
    return {
        "run": info.id,
        "status": info.status,
        "tags": info.tags,
        "units": info.units,
        "done": info.done,
        "ended_at": utc_text(info.ended_at),
        "simulated_models": [model for model in layout.models if model in layout.simulated],
        "axes": manifest.axes,
        "options": manifest.options,
        "suites": manifest.suites,
        "contenders": manifest.contenders,
        "catalog": manifest.catalog,
        "package": manifest.package,
        "python": manifest.python,
        "command": manifest.command,
        "engine": manifest.engine,
        "manifest_hash": manifest.hash,
    }


def _contender(manifest: Manifest, label: str) -> dict[str, Any]:
    found = manifest.contenders.get(label)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _option(manifest: Manifest, *names: str) -> Any:
    """Return an option of the whole experiment, wherever among the options it stands."""
    tables = [manifest.options]
    for name in ("overrides", "options"):
        inner = manifest.options.get(name)
        if isinstance(inner, dict):
            tables.append(cast("dict[str, Any]", inner))
    found = [table[name] for name in names for table in tables if table.get(name) is not None]
    return found[0] if found else None


def _filter(axes: dict[str, Any], name: str) -> str | None:
    value: Any = axes.get(name)
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in cast("Sequence[Any]", value))
    return None if value is None else str(value)


def _override(layout: Layout) -> bool | None:
    """Tell whether the fallback was switched on or off for everything."""
    if layout.fallbacks == ("fallback_on",):
        return True
    return False if layout.fallbacks == ("fallback_off",) else None
