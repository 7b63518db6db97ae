"""Counts as the original's summaries have them, with ours and the intervals beside them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from surecall.base.files import explain_write_errors
from surecall.base.json_values import as_fields, text_or_none
from surecall.evals.metrics import summarize_tallies
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies
from surecall.evals.records import Manifest, Task, TrialBody, TrialRow
from surecall.evals.run_source import (
    FileNames,
    Layout,
    RunSource,
    Spool,
    utc_text,
    write_object,
)
from surecall.evals.stats import CONFIDENCE, percentile, wilson
from surecall.evals.store import RunInfo, RunStore
from surecall.evals.wording import describe_reasons
from surecall.tools.outputs import encode_kept


def _render_counts(tally: Tally, prefix: str = "") -> dict[str, Any]:
    """Return the figures of a task; a rate of nothing is null."""
    times = tally.elapsed_ms + tally.censored_ms
    fields = {
        **_render_both(tally),
        "ok_rate": _rate(tally.original_ok, tally.n),
        "ms_p50": percentile(times, 0.5),
        "ms_p95": percentile(times, 0.95),
        "strict_ok_rate": _rate(tally.strict_ok, tally.judged),
    }
    return {f"{prefix}{name}": value for name, value in fields.items()}


def _render_both(tally: Tally) -> dict[str, Any]:
    """Return both verdicts: to the original a failed request is a run that is not ok."""
    return {
        "runs": tally.n,
        "errors": tally.errors,
        "ok": tally.original_ok,
        "ok_interval": _interval(tally.original_ok, tally.n),
        "strict_ok": tally.strict_ok,
        "strict_ok_interval": _interval(tally.strict_ok, tally.judged),
    }


def _render_scenarios(layout: Layout, tallies: Tallies) -> dict[str, Any]:
    """Return the figures of each scenario."""
    found: dict[str, dict[bool, list[Tally]]] = {}
    for (cell, control), tally in tallies.items():
        found.setdefault(layout.scenario(cell), {}).setdefault(control, []).append(tally)
    rendered: dict[str, Any] = {}
    for name, parts in found.items():
        whole = merge_tallies(tally for part in parts.values() for tally in part)
        unknown = whole.n - whole.original_ok - whole.categories.total()
        rendered[name] = {
            **_render_both(whole),
            "errors": dict(whole.categories) | ({"unknown": unknown} if unknown else {}),
            "control": [*parts][-1],
            "simulated_runs": whole.simulated,
        }
    return rendered


def _rate(k: int, n: int) -> float | None:
    return k / n if n else None


def _interval(k: int, n: int) -> list[float] | None:
    if not n:
        return None
    interval = wilson(k, n)
    return [interval.low, interval.high]


_IN_FORCE: Final = {
    "fix_empty_final": "fix_empty_final",
    "tool_use_mode": "tool_use_mode",
    "tool_failure_policy": "tool_failure_policy",
    "tool_calling_fallback_retry_count": "fallback_retry_count",
    "tool_allowlist": "tool_allowlist",
}
"""Values that are those of a trial, whoever set them; with several strategies, of the first."""
RUNS_FOLDER: Final = "runs"
"""Where the files of the single trials are."""

_MAX_SAMPLES: Final = 3


def write_json(
    store: RunStore, run_id: str, out: Path, gates: Sequence[Mapping[str, Any]] = ()
) -> tuple[Path, ...]:
    """Write the summaries, the figures, and a file for each trial into a folder.

    Args:
        store: Where the run is.
        run_id: Its id.
        out: The folder.
        gates: What became of the gates of the run, which the figures have as well.

    Returns:
        The summaries and the figures, and the folder with the trials.
    """
    source = RunSource(store, run_id)
    layout, tallies = source.layout, source.tallies
    names = ("summary", "summary_by_scenario", "summary_by_scenario_and_strategy", "figures")
    paths = [out / f"{name}.json" for name in names]
    with closing(Spool()) as spool:
        results = _Results(source, spool)
        results.write_trials(out)
        write_object(paths[0], _summary(source, results), depth=4)
    by_strategy = {
        strategy: _render_scenarios(
            layout, {key: tally for key, tally in tallies.items() if key[0].strategy == strategy}
        )
        for strategy in layout.strategies
    }
    write_object(paths[1], _render_scenarios(layout, tallies))
    write_object(paths[2], by_strategy)
    figures = msgspec.structs.asdict(summarize_tallies(tallies))
    write_object(paths[3], {**figures, "gates": gates})
    return (*paths, out / RUNS_FOLDER)


class _Results:
    """What the summary says of single trials; their entries lie in the spool."""

    def __init__(self, source: RunSource, spool: Spool) -> None:
        self.samples: dict[Task, list[Any]] = {task: [] for task in source.layout.tasks}
        self.reads_text: dict[Task, bool | None] = dict.fromkeys(source.layout.tasks)
        self.in_force: dict[str, Any] = {}
        """The options of the first trial with tools: those of a control are its own."""
        self.spool = spool
        self._source = source

    def write_trials(self, out: Path) -> None:
        """Write a file for each trial, and note what the summary says of it."""
        source, layout = self._source, self._source.layout
        names = FileNames(layout)
        for row in source.rows():
            body, task = source.body(row.index), Task.of(row.cell)
            base = model_base_of(source.info.manifest, row.cell.model)
            report = f"{RUNS_FOLDER}/{names.name(row)}"
            write_object(out / report, render_trial(source.run_id, row, body, layout, base))
            result = _render_result(layout, row, base, report)
            self.spool.append(task, encode_kept(result))
            if not row.original_ok and len(self.samples[task]) < _MAX_SAMPLES:
                self.samples[task].append(result)
            if not self.in_force and not row.control:
                self.in_force = _options(body)
            if self.reads_text[task] is None:
                self.reads_text[task] = reads_text(body)
        _remove_others(out / RUNS_FOLDER, names)


def _remove_others(folder: Path, names: FileNames) -> None:
    """Remove the trials of a run that was written to this folder before."""
    if not folder.is_dir():
        return
    with explain_write_errors(folder):
        with os.scandir(folder) as entries:  # one by one: there may be very many
            others = [entry.path for entry in entries if names.is_left_over(entry.name)]
        for path in others:
            os.unlink(path)


def _render_result(layout: Layout, row: TrialRow, base: str, report: str) -> dict[str, Any]:
    return {
        **identify(layout, Task.of(row.cell), base),
        "language_policy": NO_LANGUAGE_POLICY,
        "scenario": layout.scenario(row.cell),
        "trial": row.trial,
        "ok": row.original_ok,
        "elapsed_ms": row.elapsed_ms,
        "error": error_text(row),
        "error_hint": None,
        "error_status": row.error_status,
        "error_category": row.category,
        "report_path": report,
        "index": row.index,
        "suite": row.cell.suite,
        "case": row.case,
        "strict_ok": row.strict_ok,
        "strict_reasons": [reason.code for reason in row.strict_reasons],
        "code": row.code,
    }


def _summary(source: RunSource, results: _Results) -> dict[str, Any]:
    by_effort = [
        task.model
        for task, reads in results.reads_text.items()
        if task.fallback == "best_effort" and reads
    ]
    head = render_settings(source.info, source.layout) | {
        name: results.in_force[option]
        for name, option in _IN_FORCE.items()
        if option in results.in_force
    }
    head["best_effort_content_tag_tool_call_fallback_models"] = list(dict.fromkeys(by_effort))
    head["interval"] = {"method": "wilson", "confidence": CONFIDENCE}
    head["models"] = _list_models(source, results)
    return head


def _list_models(source: RunSource, results: _Results) -> Iterator[dict[str, Any]]:
    layout = source.layout
    for task in layout.tasks:
        cells = {key: tally for key, tally in source.tallies.items() if Task.of(key[0]) == task}
        tools, controls = (
            merge_tallies(tally for (_, control), tally in cells.items() if control is wanted)
            for wanted in (False, True)
        )
        yield {
            **identify(layout, task, model_base_of(source.info.manifest, task.model)),
            "language_policy": NO_LANGUAGE_POLICY,
            "language_enabled": False,
            "content_tag_tool_call_fallback": results.reads_text[task],
            **_render_counts(merge_tallies(cells.values())),
            **_render_counts(tools, "tool_"),
            **_render_counts(controls, "control_"),
            "scenarios": list(dict.fromkeys(layout.scenario(cell) for cell, _ in cells)),
            "run_results": results.spool.lines(task),
            "failure_samples": results.samples[task],
        }


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
    return options.get("text_formats") in ("auto", "all") or _TAGS in transforms


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
        **{name: _option(manifest, option) for name, option in _IN_FORCE.items()},
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
