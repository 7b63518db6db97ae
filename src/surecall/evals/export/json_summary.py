"""Counts as the original's summaries have them, with ours and the intervals beside them."""

import os
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from surecall.evals.metrics import summarize
from surecall.evals.records import TrialRow, encode_kept
from surecall.evals.stats import CONFIDENCE, percentile, wilson
from surecall.evals.store import RunStore
from surecall.files import explain_write_errors

from .files import RawJson, Spool, render_object, write_object
from .json_documents import (
    NO_LANGUAGE_POLICY,
    error_text,
    identify,
    model_base_of,
    reads_text,
    render_settings,
    render_trial,
)
from .source import FileNames, Layout, RunSource, Task, scan_layout


class Counts:
    """How many trials there were, how many were right, how long they took, and why they failed."""

    __slots__ = ("control", "elapsed_ms", "errors", "ok", "runs", "simulated", "strict_ok")

    def __init__(self) -> None:
        self.runs = self.ok = self.strict_ok = self.simulated = 0
        self.control = False
        self.elapsed_ms = array("d")
        self.errors: Counter[str] = Counter()

    def add(self, row: TrialRow) -> None:
        """Count a trial."""
        self.runs += 1
        self.ok += row.original_ok
        self.strict_ok += row.strict_ok
        self.simulated += row.simulated
        self.control = row.control
        self.elapsed_ms.append(row.elapsed_ms)
        if not row.original_ok:
            self.errors[row.category or "unknown"] += 1

    def render(self, prefix: str = "") -> dict[str, Any]:
        """Return the figures of a task; a rate of nothing is null."""
        fields = {
            **self._both(),
            "ok_rate": _rate(self.ok, self.runs),
            "ms_p50": percentile(self.elapsed_ms, 0.5),
            "ms_p95": percentile(self.elapsed_ms, 0.95),
            "strict_ok_rate": _rate(self.strict_ok, self.runs),
        }
        return {f"{prefix}{name}": value for name, value in fields.items()}

    def render_scenario(self) -> dict[str, Any]:
        """Return the figures of a scenario."""
        return {
            **self._both(),
            "errors": dict(self.errors),
            "control": self.control,
            "simulated_runs": self.simulated,
        }

    def _both(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "ok": self.ok,
            "ok_interval": _interval(self.ok, self.runs),
            "strict_ok": self.strict_ok,
            "strict_ok_interval": _interval(self.strict_ok, self.runs),
        }


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


def write_json(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write the summaries, the figures, and a file for each trial into a folder.

    Returns:
        The summaries and the figures, and the folder with the trials.
    """
    source = RunSource(store, run_id)
    layout = scan_layout(source.rows())
    names = ("summary", "summary_by_scenario", "summary_by_scenario_and_strategy", "figures")
    paths = [out / f"{name}.json" for name in names]
    with Spool() as spool:
        counted = _Counted(source, layout, spool)
        counted.write_trials(out)
        write_object(paths[0], _summary(source, layout, counted))
    by_strategy = {name: _render_all(found) for name, found in counted.strategies.items()}
    write_object(paths[1], _render_all(counted.scenarios))
    write_object(paths[2], by_strategy)
    write_object(paths[3], msgspec.structs.asdict(summarize(source.rows())))
    return (*paths, out / RUNS_FOLDER)


def _render_all(counts: dict[str, Counts]) -> dict[str, Any]:
    return {name: found.render_scenario() for name, found in counts.items()}


class _TaskCounts:
    """What is counted of one task."""

    def __init__(self) -> None:
        self.all, self.tools, self.controls = Counts(), Counts(), Counts()
        self.scenarios: dict[str, None] = {}
        self.samples: list[dict[str, Any]] = []
        self.reads_text: bool | None = None

    def add(self, row: TrialRow, scenario: str) -> None:
        self.all.add(row)
        (self.controls if row.control else self.tools).add(row)
        self.scenarios[scenario] = None


class _Counted:
    """The counts of all trials; their entries for the summary lie in the spool."""

    def __init__(self, source: RunSource, layout: Layout, spool: Spool) -> None:
        self.tasks: dict[Task, _TaskCounts] = {task: _TaskCounts() for task in layout.tasks}
        self.scenarios: dict[str, Counts] = {}
        self.strategies: dict[str, dict[str, Counts]] = {}
        self._source = source
        self._layout = layout
        self._spool = spool

    def write_trials(self, out: Path) -> None:
        """Write a file for each trial, and count it."""
        names = FileNames(self._layout)
        for row in self._source.rows():
            body = self._source.body(row.index)
            base = model_base_of(self._source.info.manifest, row.cell.model)
            report = f"{RUNS_FOLDER}/{names.name(row)}"
            document = render_trial(self._source.run_id, row, body, self._layout, base)
            write_object(out / report, document)
            self._count(row, _render_result(self._layout, row, base, report))
            task = self.tasks[Task.of(row.cell)]
            if task.reads_text is None:
                task.reads_text = reads_text(body)
        _remove_others(out / RUNS_FOLDER, names)

    def results(self, task: Task) -> Iterator[bytes]:
        """Yield the entries of a task's trials, as JSON."""
        yield b"["
        yield from self._spool.pieces(task)
        yield b"\n    ]"

    def _count(self, row: TrialRow, result: dict[str, Any]) -> None:
        key, scenario = Task.of(row.cell), self._layout.scenario(row.cell)
        task = self.tasks[key]
        separator = b",\n      " if task.all.runs else b"\n      "
        self._spool.append(key, separator + encode_kept(result))
        task.add(row, scenario)
        if not row.original_ok and len(task.samples) < _MAX_SAMPLES:
            task.samples.append(result)
        self.scenarios.setdefault(scenario, Counts()).add(row)
        of_strategy = self.strategies.setdefault(row.cell.strategy, {})
        of_strategy.setdefault(scenario, Counts()).add(row)


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


def _summary(source: RunSource, layout: Layout, counted: _Counted) -> dict[str, Any]:
    by_effort = [
        task.model
        for task, counts in counted.tasks.items()
        if task.fallback == "best_effort" and counts.reads_text
    ]
    head = render_settings(source.info, layout)
    head["best_effort_content_tag_tool_call_fallback_models"] = list(dict.fromkeys(by_effort))
    head["interval"] = {"method": "wilson", "confidence": CONFIDENCE}
    head["models"] = RawJson(_entries(source, layout, counted))
    return head


def _entries(source: RunSource, layout: Layout, counted: _Counted) -> Iterator[bytes]:
    separator = b"[\n    "
    for task, counts in counted.tasks.items():
        yield separator
        fields = {
            **identify(layout, task, model_base_of(source.info.manifest, task.model)),
            "language_policy": NO_LANGUAGE_POLICY,
            "language_enabled": False,
            "content_tag_tool_call_fallback": counts.reads_text,
            **counts.all.render(),
            **counts.tools.render("tool_"),
            **counts.controls.render("control_"),
            "scenarios": list(counts.scenarios),
            "run_results": RawJson(counted.results(task)),
            "failure_samples": counts.samples,
        }
        yield from render_object(fields, indent=2)
        separator = b",\n    "
    yield b"[]" if separator == b"[\n    " else b"\n  ]"
