"""What `surecall eval` shows: the plan, the figures, the gates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from surecall.cli.console import ExitCode, Output, select_fields
from surecall.cli.event_lines import count_of
from surecall.cli.recommend import gain_data, show_gain
from surecall.cli.terminal import line_of, make_table, styled
from surecall.evals.clusters import METHOD
from surecall.evals.gains import list_helped_gains
from surecall.evals.gates import VERDICTS, GateReport, GateResult, describe_observed
from surecall.evals.matrix import Estimate
from surecall.evals.metrics import group_tasks, summarize_tallies
from surecall.evals.metrics.records import Group, Summary
from surecall.evals.metrics.tally import Tallies
from surecall.evals.original import RULE, list_tables
from surecall.evals.planning import Experiment
from surecall.evals.records import Task
from surecall.evals.store import RunInfo
from surecall.evals.wording import describe_cost, describe_rate, label_simulated

from .progress import duration_of

if TYPE_CHECKING:
    from rich.table import Table


_MARKS: Final = {"True": ("✓", "green"), "False": ("✗", "red"), "undecided": ("?", "yellow")}
_ROW_AXES: Final = ("profile", "strategy", "fallback")
_MAX_FAILURES: Final = 5
_MAX_ROWS: Final = 60


def show_gates(output: Output, report: GateReport) -> ExitCode:
    """Show the results of all gates, and return 1 when one of them failed."""
    if output.json:
        gates = [{**msgspec.to_builtins(result), "ok": result.ok} for result in report.results]
        output.data({"type": "gates", "ok": report.ok, "gates": gates})
    elif report.results:
        console = output.page()
        console.print(_table(report))
        undecided = sum(result.verdict == "undecided" for result in report.results if result.ok)
        if undecided:
            console.print(
                f"? {count_of(undecided, 'gate')} undecided and let through; "
                "--undecided fail stops them",
                style="yellow",
            )
        if not report.ok:
            failed = sum(not result.ok for result in report.results)
            console.print(f"✗ {failed} of {len(report.results)} gates failed")
    return ExitCode.OK if report.ok else ExitCode(1)


def _table(report: GateReport) -> "Table":
    columns = {"gate": "", "verdict": "whole", "observed": "whole", "note": "dim"}
    table = make_table(columns, optional=("note", "observed"))
    for result in report.results:
        notes = [note for note in (label_simulated(result.simulated, "{}"), result.note) if note]
        gate, verdict = line_of(result.gate.text), styled(_mark(result))
        table.add_row(gate, verdict, describe_observed(result), line_of("; ".join(notes)))
    return table


def _mark(result: GateResult) -> tuple[str, str]:
    is_open = result.verdict == "undecided"
    mark, style = _MARKS["undecided" if is_open and result.ok else str(result.ok)]
    return f"{mark} {VERDICTS[result.verdict]}", style


def plan_data(
    experiment: Experiment, guess: Estimate, run_id: str | None, *, done: int = 0
) -> dict[str, Any]:
    """Return what would run, as data."""
    return {
        "type": "plan",
        "run": run_id,
        "done": done,
        **experiment.matrix.describe(),
        **select_fields(experiment, "concurrency", "timeout_s"),
        "estimate": guess,
    }


def show_plan(
    output: Output, experiment: Experiment, guess: Estimate, run_id: str | None, *, done: int = 0
) -> None:
    """Show what would run, and what it would cost."""
    data = experiment.matrix.describe()
    console = output.page()
    table = make_table(dict.fromkeys(("model", *_ROW_AXES), ""))
    simulated = set(experiment.manifest.simulated)
    for row in data["rows"][:_MAX_ROWS]:
        mark = label_simulated("all" if row["model"] in simulated else "none")
        table.add_row(line_of(row["model"]) + mark, *(row[axis] for axis in _ROW_AXES))
    console.print(table)
    if len(data["rows"]) > _MAX_ROWS:
        console.print(f"… {len(data['rows']) - _MAX_ROWS} more", style="dim")
    console.print()
    rows = (
        (row["suite"], line_of(row["scenario"]), str(row["trials"])) for row in data["scenarios"]
    )
    console.print(make_table({"suite": "", "scenario": "", "trials": "right"}, rows))
    console.print()
    kept = f", {done} of them already finished in run {run_id}" if run_id else ""
    size = f"{count_of(data['trials'], 'trial')} in {count_of(data['cells'], 'cell')}"
    console.print(f"{size}{kept}", soft_wrap=True)
    cost = "cost unknown" if guess.cost_usd is None else f"${guess.cost_usd:.2f}"
    basis = f"based on {count_of(guess.known_trials, 'earlier trial')}"
    basis = basis if guess.known_trials else "a rough guess"
    console.print(
        f"about {guess.requests} requests, {guess.tokens} tokens, "
        f"{duration_of(guess.seconds)}, {cost} ({basis})",
        style="dim",
        soft_wrap=True,
    )


def summary_data(info: RunInfo, tallies: Tallies, resume: str) -> dict[str, Any]:
    """Return the results of an experiment, as data."""
    summary = summarize_tallies(tallies)
    return {
        "type": "summary",
        "run": info.id,
        "status": info.status,
        "trials": info.done,
        "units": info.units,
        "overall": _group_data(summary.overall),
        "controls": None if summary.controls is None else _group_data(summary.controls),
        "rows": [
            select_fields(task, "model", *_ROW_AXES) | _group_data(group)
            for task, group in group_tasks(tallies)
        ],
        "gains": gain_data(list_helped_gains(tallies)),
        "resume": None if info.is_complete else resume,
    }


def _group_data(group: Group) -> dict[str, Any]:
    return {
        **select_fields(group, "n", "errors", "simulated", "original", "strict", "answer"),
        **select_fields(group, "false_calls", "fabrications", "calls"),
        "failures": [
            {**msgspec.to_builtins(item.failure), **select_fields(item, "count", "example")}
            for item in group.failures
        ],
        "error_causes": [
            {**msgspec.to_builtins(item.failure), **select_fields(item, "count", "example")}
            for item in group.error_causes
        ],
        **select_fields(group.latency, "p50_ms", "p95_ms"),
        "cost_usd": group.costs.cost_usd,
        "cached_replies": group.costs.cached_replies,
    }


def show_summary(output: Output, info: RunInfo, tallies: Tallies) -> None:
    """Show the results of an experiment: rates with their intervals, and why trials failed."""
    console = output.page()
    rows = group_tasks(tallies)
    console.print(_rates(rows[:_MAX_ROWS]))
    if len(rows) > _MAX_ROWS:
        console.print(
            f"… {len(rows) - _MAX_ROWS} more: surecall eval report {info.id}", style="dim"
        )
    for title, found in list_tables(info.manifest, tallies).items():
        console.print(f"\n{title}", style="bold")
        console.print(
            make_table(dict.fromkeys(found.columns, ""), (map(line_of, row) for row in found.rows))
        )
        console.print(RULE, style="dim", soft_wrap=True)
    summary = summarize_tallies(tallies)
    for gain in list_helped_gains(tallies):
        console.print()
        show_gain(console, gain)
    if summary.controls is not None:
        passed = f"{summary.controls.strict.k}/{summary.controls.strict.n} passed"
        console.print(f"\ncontrols without tools: {passed}, not counted above", style="dim")
    if summary.overall.failures:
        console.print()
        console.print(_failures(summary))
    if summary.overall.fabrications:
        calls = count_of(summary.overall.fabrications, "call")
        console.print(f"✗ {calls} ran with something the model did not send", style="red")
    refused = summary.overall.outcomes["refused"]
    if refused:
        trials = count_of(refused, "trial")
        console.print(
            f"✗ the endpoint refused the request of {trials}, which are wrong",
            style="red",
            soft_wrap=True,
        )
    errors = info.errors
    if errors:
        causes = [item.failure.code for item in summary.overall.error_causes]
        why = f" ({', '.join(dict.fromkeys(causes))})" if causes else ""
        console.print(
            f"✗ the endpoint failed {count_of(errors, 'trial')}{why}, which count as wrong",
            style="red",
            soft_wrap=True,
        )
    cached = summary.overall.costs.cached_replies
    if cached:
        asked = summary.overall.costs.requests
        console.print(
            f"\n{cached} of {asked} replies came from the cache, at the time and cost of then",
            style="dim",
        )
    console.print(
        f"\nrun {info.id}: {info.done} of {count_of(info.units, 'trial')}, 95 % intervals {METHOD}",
        style="dim",
        soft_wrap=True,
    )


def _rates(rows: Sequence[tuple[Task, Group]]) -> "Table":
    axes = [axis for axis in _ROW_AXES if len({getattr(task, axis) for task, _ in rows}) > 1]
    columns = dict.fromkeys(("model", *axes), "")
    has_errors = any(group.errors for _, group in rows)
    errors = ("without errors", "errors") if has_errors else ()
    figures = ("strict", *errors, "answer", "original", "p50", "p95")
    columns |= dict.fromkeys(figures, "right whole")
    is_priced = any(group.costs.priced for _, group in rows)
    table = make_table(
        columns | ({"cost": "right whole"} if is_priced else {}),
        optional=("p50", "cost", "p95", "answer", "original"),
    )
    for task, group in rows:
        table.add_row(
            line_of(task.model) + label_simulated(group.simulated),
            *(line_of(getattr(task, axis)) for axis in axes),
            describe_rate(group.strict_of_all),
            *((describe_rate(group.strict), str(group.errors)) if has_errors else ()),
            f"{group.answer.k}/{group.answer.n}" if group.answer.n else "-",
            describe_rate(group.original_of_all),
            f"{group.latency.p50_ms:.0f} ms",
            f"{group.latency.p95_ms:.0f} ms",
            *([describe_cost(group.costs.cost_usd)] if is_priced else []),
        )
    return table


def _failures(summary: Summary) -> "Table":
    table = make_table(
        {"why trials failed": "", "where": "", "trials": "right", "example": "right dim"}
    )
    failures = summary.overall.failures
    for item in failures[:_MAX_FAILURES]:
        detail = f" ({line_of(item.failure.detail, 40)})" if item.failure.detail else ""
        code, layer = f"{item.failure.code}{detail}", str(item.failure.layer)
        table.add_row(code, layer, str(item.count), f"#{item.example}")
    if len(failures) > _MAX_FAILURES:
        table.add_row(f"… {len(failures) - _MAX_FAILURES} more kinds", style="dim")
    return table
