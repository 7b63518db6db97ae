"""Trials and settings as JSON under the names of the original experiment, with our own fields."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from surecall.base.json_values import as_fields, text_or_none
from surecall.evals.records import Manifest, Task, TrialBody, TrialRow
from surecall.evals.run_files import utc_text
from surecall.evals.run_source import Layout
from surecall.evals.store import RunInfo
from surecall.evals.wording import describe_reasons

NO_LANGUAGE_POLICY: Final = "off"
"""The original could demand a language; nothing here does."""

_RENAMED: Final = frozenset(
    {"cell", "simulated", "seed_ok", "category", "error", "text", "started_at"}
)
"""Fields of a row that a document has under other names."""
_TAGS: Final = "assistant_content_tool_call_tags_to_tool_calls"


def identify(layout: Layout, task: Task, model_base: str) -> dict[str, Any]:
    """Return the fields that say what was compared, under the names of the original."""
    return {
        "model": layout.label(task),
        "model_base": model_base,
        "strategy": task.strategy,
        "fallback_profile": task.fallback,
        "sampling_profile": task.profile,
        "simulated": task.model in layout.simulated,
    }


def error_text(row: TrialRow) -> str | None:
    """Return what went wrong by the loose verdict, worded as the original words it."""
    if row.original_ok or row.error is not None:
        return row.error
    return f"{row.category or 'ASSERTION_FAILED'}: {describe_reasons(row.original_reasons)}"


def reads_text(body: TrialBody | None) -> bool | None:
    """Tell whether calls were looked for in text; None when nothing says so."""
    options = _options(body)
    if not options:
        return None
    transforms = options.get("response_transforms") or ()
    # In runs of before, `true` is what `all` is now, and null read no text in an experiment.
    return options.get("text_formats") in (True, "auto", "all") or _TAGS in transforms


def render_trial(
    run_id: str, row: TrialRow, body: TrialBody | None, layout: Layout, model_base: str
) -> dict[str, Any]:
    """Return a trial with its transcript."""
    options = _options(body)
    policy = {"id": NO_LANGUAGE_POLICY, "enabled": False, "target_lang": None, "strict": False}
    of_original: dict[str, Any] = {
        **identify(layout, Task.of(row.cell), model_base),
        "empty_response_retry": {"max_retries": 0, "attempts": 1},
        "language_policy": policy,
        "llm_options_defaults": options.get("request_defaults", {}),
        "content_tag_tool_call_fallback": reads_text(body),
        "scenario": layout.scenario(row.cell),
        "trial": row.trial,
        "ok": row.original_ok,
        "elapsed_ms": row.elapsed_ms,
        "tool_use_mode": options.get("tool_use_mode"),
        "tools_enabled": bool(body and body.request.get("tools")),
        "context_tool_calling": options,
        "assistant_text": row.text,
        "draft": body.state.get("draft") if body else None,
        "error": error_text(row),
        "error_status": row.error_status,
        "error_body": None,
        "error_raw_body": None,
        "error_category": row.category,
        "history": _history(body) if body else [],
        "trace": body.transcript if body else (),
    }
    return of_original | _own_fields(run_id, row, body)


def _own_fields(run_id: str, row: TrialRow, body: TrialBody | None) -> dict[str, Any]:
    fields = msgspec.to_builtins(row)
    return {
        "run": run_id,
        "suite": row.cell.suite,
        "started_at": utc_text(row.started_at),
        **{name: value for name, value in fields.items() if name not in _RENAMED},
        "original_reasons": fields["seed_reasons"],
        "request": body.request if body else {},
        "config": body.config if body else {},
        "state": body.state if body else {},
    }


def _options(body: TrialBody | None) -> dict[str, Any]:
    return as_fields(body.config.get("options") if body else None)


def _history(body: TrialBody) -> list[Any]:
    """Return the conversation: what was asked first, then replies and results in turn."""
    history: list[Any] = []
    if body.request.get("system"):
        history.append({"role": "system", "content": body.request["system"]})
    history += body.request.get("messages") or ()
    for turn in body.transcript:
        if turn.get("raw") is not None:
            history.append(turn["raw"])
        results: list[dict[str, Any]] = turn.get("results", [])
        history += [_tool_message(result) for result in results]
    return history


def _tool_message(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": result.get("id", result.get("call_id")),
        "name": result.get("name"),
        "content": result.get("text"),
    }


_HTTP_CLIENT: Final = "httptools"
_NOT_SHOWN: Final = frozenset({"units", "units_hash", "places", "simulated"})
"""Fields of a manifest that say nothing to a reader, or are shown in another way."""


def model_base_of(manifest: Manifest, label: str) -> str:
    """Return what the provider calls a model."""
    return text_or_none(_contender(manifest, label).get("model")) or label


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
        **_own_settings(info, layout),
    }


def _own_settings(info: RunInfo, layout: Layout) -> dict[str, Any]:
    fields = msgspec.structs.asdict(info.manifest)
    return {
        "run": info.id,
        **{name: getattr(info, name) for name in ("status", "tags", "units", "done")},
        "ended_at": utc_text(info.ended_at),
        "simulated_models": [model for model in layout.models if model in layout.simulated],
        **{name: value for name, value in fields.items() if name not in _NOT_SHOWN},
        "manifest_hash": info.manifest.hash,
    }


def _contender(manifest: Manifest, label: str) -> dict[str, Any]:
    return as_fields(manifest.contenders.get(label))


def _option(manifest: Manifest, *names: str) -> Any:
    """Return an option of the whole experiment, wherever among the options it stands."""
    given = manifest.options
    tables = [given, as_fields(given.get("overrides")), as_fields(given.get("options"))]
    found = [table[name] for name in names for table in tables if table.get(name) is not None]
    return found[0] if found else None


def _filter(axes: dict[str, Any], name: str) -> str | None:
    value: Any = axes.get(name)
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in cast("Sequence[Any]", value))
    return None if value is None else str(value)


def _override(layout: Layout) -> bool | None:
    """Tell whether the fallback was switched on or off for everything."""
    only = layout.fallbacks[0] if len(layout.fallbacks) == 1 else None
    return {"fallback_on": True, "fallback_off": False}.get(only or "")
