"""`surecall eval vendors`: the same model at several endpoints, measured by one of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from surecall.cli.console import ExitCode, Output, select_fields
from surecall.cli.flags import (
    command_text,
    count_flag,
    invalid_option,
    pass_output,
    split_names,
    store_flag,
)
from surecall.cli.suggestions import (
    complete_models,
    complete_runs,
    complete_strategies,
    complete_suites,
)
from surecall.cli.terminal import line_of, make_table, styled
from surecall.evals.executors import DEFAULT_CONCURRENCY, LocalExecutor
from surecall.evals.experiments import choose_run, open_run_store
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.models import find_contenders
from surecall.evals.planning import Wanted, plan_experiment
from surecall.evals.records import Manifest
from surecall.evals.runner import CellFinished, ProgressEvent
from surecall.evals.stats import F1
from surecall.evals.vendors import CallFault, Comparison, Endpoint, VendorReport, compare_vendors
from surecall.evals.wording import describe_points, describe_rate, label_simulated
from surecall.models.config import load_config

from .progress import EvalDisplay
from .work import EvalWork, exit_code_of_trials

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


_STYLES: Final = {
    "worse": ("✗", "red"),
    "better": ("✓", "green"),
    "same as far as seen": ("✓", "green"),
    "too few to tell": ("?", "yellow"),
}


def show_vendors(output: Output, report: VendorReport) -> None:
    """Show all endpoints, the faults of their calls, and what each verdict rests on."""
    console = output.page()
    console.print(_figures(report))
    if report.noise is not None:
        console.print(f"trigger F1 of the reference with itself: {_score(report.noise)}")
    console.print()
    console.print(_faults(report))
    for endpoint in report.endpoints:
        console.print()
        console.print(_verdict(endpoint))
        for comparison in endpoint.comparisons:
            console.print(f"  {_words(comparison)}", soft_wrap=True)
    points = 100 * report.margin
    console.print(f"\nmargin: {points:g} points; intervals of differences at 98.3 %", style="dim")


def _figures(report: VendorReport) -> "Table":
    figures = ("trigger F1", "schema accuracy", "strict", "unanswered")
    table = make_table({"endpoint": ""} | dict.fromkeys(figures, "right"))
    for endpoint in (report.reference, *report.endpoints):
        name, score = _name(endpoint), "-"
        if endpoint.trigger is None:
            name += " (reference)"
        else:
            score = _score(endpoint.trigger)
        rates = (describe_rate(rate, 1) for rate in (endpoint.valid_before, endpoint.strict))
        table.add_row(name, score, *rates, f"{endpoint.unanswered.k}/{endpoint.unanswered.n}")
    return table


def _faults(report: VendorReport) -> "Table":
    table = make_table({"fault": "whole"})
    endpoints = (report.reference, *report.endpoints)
    for endpoint in endpoints:
        table.add_column(_name(endpoint), justify="right", overflow="fold")
    for fault in CallFault:
        found = [one for endpoint in endpoints for one in endpoint.faults if one.fault == fault]
        note = " (trials)" if found[0].of == "trials" else ""
        table.add_row(f"{fault}{note}", *(describe_rate(one.rate, 1) for one in found))
    return table


def _verdict(endpoint: Endpoint) -> "Text":
    assert endpoint.verdict is not None
    mark, style = _STYLES[endpoint.verdict]
    return styled((f"{mark} {endpoint.verdict}", style), f"  {_name(endpoint)}")


def _words(comparison: Comparison) -> str:
    counts = comparison.counts
    if counts.difference is None:
        return f"{comparison.measure}: no trial can be compared"
    points = describe_points(counts.difference, comparison.interval, " points")
    needed = f"; about {comparison.needed} trials would tell" if comparison.needed else ""
    return (
        f"{comparison.measure}: {counts.both + counts.only_b}/{counts.n} against "
        f"{counts.both + counts.only_a}/{counts.n}, {points}, "
        f"p = {comparison.test.p:.2g}: {comparison.verdict}{needed}"
    )


def _name(endpoint: Endpoint) -> str:
    return line_of(endpoint.label) + label_simulated(endpoint.simulated)


def _score(score: F1) -> str:
    if score.value is None:
        return "-"
    return f"{score.value:.3f} [{score.interval.low:.3f}, {score.interval.high:.3f}]"


@click.command
@click.option(
    "--reference",
    required=True,
    metavar="MODEL",
    shell_complete=complete_models,
    help="Endpoint to measure by.",
)
@click.option(
    "--against",
    "named",
    multiple=True,
    metavar="MODEL",
    shell_complete=complete_models,
    help="Endpoint to compare with it; list more after it, or repeat the option.",
)
@click.argument("others", nargs=-1, metavar="[MODEL]...", shell_complete=complete_models)
@click.option(
    "--suite",
    "suites",
    multiple=True,
    metavar="LIST",
    shell_complete=complete_suites,
    help="Suites to run. [default: state]",
)
@click.option("--scenarios", default="default", show_default=True, help="Scenarios to run.")
@click.option(
    "--strategy",
    "strategies",
    default="raw",
    show_default=True,
    shell_complete=complete_strategies,
    help="How replies are handled.",
)
@count_flag("--trials", "Trials of each case.", 5)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    help="Time limit of a trial, in seconds.",
)
@count_flag("--concurrency", "Trials at the same time per provider.", DEFAULT_CONCURRENCY)
@click.option(
    "--margin",
    type=click.FloatRange(0.001, 0.999),
    default=0.05,
    show_default=True,
    help="Smallest difference that matters.",
)
@click.option(
    "--run",
    "run",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Compare within a stored run; nothing is sent.",
)
@click.option("--new", is_flag=True, help="Start a new run even if there is one to resume.")
@store_flag
@pass_output
def vendors(
    output: Output,
    *,
    reference: str,
    named: tuple[str, ...],
    others: tuple[str, ...],
    suites: tuple[str, ...],
    concurrency: int,
    margin: float,
    run: str | None,
    new: bool,
    store_file: str | None,
    **wanted: Any,
) -> ExitCode:
    """Compare endpoints that serve the same model with one that you trust.

    Exits with 1 when one of them is worse. For example:

    surecall eval vendors --reference m@https://a.example/v1 --against m@https://b.example/v1
    """
    against = (*named, *others)
    with open_run_store(store_file, must_exist=run is not None) as store:
        if run is not None:
            info = store.info(store.resolve(run))
        else:
            labels = _endpoints((reference, *against))
            reference, *against = labels
            command = command_text("eval vendors", leave_out=("new",))
            experiment = plan_experiment(
                Wanted(
                    models=",".join(labels),
                    suites=split_names(",".join(suites)),
                    profiles="default",
                    fallbacks="best_effort",
                    concurrency=concurrency,
                    **wanted,
                ),
                load_config(),
                prices={},
                command=command,
            )
            work = EvalWork(output, [], store_file, resume=command)
            executor = LocalExecutor(experiment.job, concurrency=concurrency)
            chosen = choose_run(store, experiment.manifest, resume=None, is_new=new).run_id
            if chosen is None and not new:  # a comparison that is finished is shown again
                chosen = store.find_complete(experiment.manifest.hash)
            cells = _Cells(output, experiment.manifest)
            try:
                info = work.run(store, experiment, executor, chosen, cells)
            except KeyboardInterrupt:
                return work.cut_short(store)
            if not info.is_complete:
                return work.cut_short(store)
        report = compare_vendors(store.rows(info.id), reference, against, margin=margin)
        reached = exit_code_of_trials(tally_rows(store.rows(info.id)))
    if output.json:
        run_data = select_fields(info, "id", "done", "units")
        figures = msgspec.to_builtins(report)
        output.data({"type": "vendors", "run": run_data, "ok": report.ok, **figures})
    else:
        show_vendors(output, report)
        if not output.quiet:
            output.note(f"run {info.id}: {info.done} of {info.units} trials")
    return reached if report.ok else ExitCode(1)


def _endpoints(references: Sequence[str]) -> list[str]:
    """Return the labels of the endpoints, each of which must be one model."""
    if len(references) < 2:
        raise invalid_option(
            "there is nothing to compare with the reference.",
            "Name at least one endpoint with --against.",
        )
    found: list[str] = []
    for reference in references:
        contenders = find_contenders(reference)
        if len(contenders) != 1:
            raise invalid_option(
                f"{reference!r} names {len(contenders)} models.",
                "Name one model at one address, such as ID@https://HOST/v1.",
            )
        found.append(contenders[0].label)
    if len(set(found)) < len(found):
        raise invalid_option(
            "an endpoint is named twice.",
            "Name each endpoint once; to ask more often, raise --trials.",
        )
    return found


class _Cells(EvalDisplay):
    """One line, or one document, for each cell that is over."""

    def __init__(self, output: Output, manifest: Manifest) -> None:
        self._output = output
        self._simulated = frozenset(manifest.simulated)

    def tell(self, event: ProgressEvent) -> None:
        """Tell about a cell."""
        if not isinstance(event, CellFinished) or self._output.quiet:
            return
        cell, count = event.count.cell, event.count
        is_simulated = cell.model in self._simulated
        if self._output.json:
            figures = msgspec.to_builtins(cell) | select_fields(count, "done", "strict_ok")
            self._output.data({"type": "cell", **figures, "simulated": is_simulated})
        else:
            name = f"{cell.model} (simulated)" if is_simulated else cell.model
            self._output.note(f"{name} / {cell.scenario}: {count.strict_ok}/{count.done}")
