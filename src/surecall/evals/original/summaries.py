"""Counts as the original's summaries have them, with ours and the intervals beside them."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from surecall.base.files import explain_write_errors
from surecall.evals.metrics import summarize_tallies
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies
from surecall.evals.records import Task, TrialRow
from surecall.evals.run_files import RawJson, Spool, render_object, write_object
from surecall.evals.run_source import FileNames, Layout, RunSource
from surecall.evals.stats import CONFIDENCE, percentile, wilson
from surecall.evals.store import RunStore
from surecall.loop.stored import encode_kept

from .documents import (
    NO_LANGUAGE_POLICY,
    error_text,
    identify,
    model_base_of,
    reads_text,
    render_settings,
    render_trial,
)


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
    with Spool() as spool:
        results = _Results(source, spool)
        results.write_trials(out)
        write_object(paths[0], _summary(source, results))
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
        self._source = source
        self._spool = spool
        self._begun: set[Task] = set()

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
            separator = b",\n      " if task in self._begun else b"\n      "
            self._begun.add(task)
            self._spool.append(task, separator + encode_kept(result))
            if not row.original_ok and len(self.samples[task]) < _MAX_SAMPLES:
                self.samples[task].append(result)
            if self.reads_text[task] is None:
                self.reads_text[task] = reads_text(body)
        _remove_others(out / RUNS_FOLDER, names)

    def entries(self, task: Task) -> Iterator[bytes]:
        """Yield the entries of a task's trials, as JSON."""
        yield b"["
        yield from self._spool.pieces(task)
        yield b"\n    ]"


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
    head = render_settings(source.info, source.layout)
    head["best_effort_content_tag_tool_call_fallback_models"] = list(dict.fromkeys(by_effort))
    head["interval"] = {"method": "wilson", "confidence": CONFIDENCE}
    head["models"] = RawJson(_entries(source, results))
    return head


def _entries(source: RunSource, results: _Results) -> Iterator[bytes]:
    layout, separator = source.layout, b"[\n    "
    for task in layout.tasks:
        cells = {key: tally for key, tally in source.tallies.items() if Task.of(key[0]) == task}
        tools, controls = (
            merge_tallies(tally for (_, control), tally in cells.items() if control is wanted)
            for wanted in (False, True)
        )
        yield separator
        fields = {
            **identify(layout, task, model_base_of(source.info.manifest, task.model)),
            "language_policy": NO_LANGUAGE_POLICY,
            "language_enabled": False,
            "content_tag_tool_call_fallback": results.reads_text[task],
            **_render_counts(merge_tallies(cells.values())),
            **_render_counts(tools, "tool_"),
            **_render_counts(controls, "control_"),
            "scenarios": list(dict.fromkeys(layout.scenario(cell) for cell, _ in cells)),
            "run_results": RawJson(results.entries(task)),
            "failure_samples": results.samples[task],
        }
        yield from render_object(fields, indent=2)
        separator = b",\n    "
    yield b"[]" if separator == b"[\n    " else b"\n  ]"
