"""`surecall eval recommend`: which model a run speaks for, in one sentence, and why."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from surecall.evals.experiments import open_run_store
from surecall.evals.gains import Gain, list_gains
from surecall.evals.gates import MAX_ERRORS
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.recommendation import (
    Recommendation,
    bracket,
    dollars,
    duration,
    percent,
    recommend,
)
from surecall.evals.standings import Standing
from surecall.evals.store import RunInfo

from .console import Output, select_fields
from .flags import flag, max_errors_flag, pass_output, store_flag
from .suggestions import complete_runs, complete_strategies
from .terminal import line_of, make_table

if TYPE_CHECKING:
    from rich.console import Console


@click.command("recommend")
@click.argument("run", default="@latest", shell_complete=complete_runs)
@flag(
    "--strategy NAME",
    "Strategy to look at. [default: production, or one that is surely better]",
    complete=complete_strategies,
)
@flag("--verdict", "Verdict that decides.", choices=("strict", "original"), shown="strict")
@max_errors_flag
@store_flag
@pass_output
def recommend_model(
    output: Output,
    *,
    run: str,
    strategy: str | None,
    verdict: Any,
    max_errors: str | None,
    store_file: str | None,
) -> None:
    """Say which model a run speaks for, and why; RUN defaults to the latest.

    No model is named when the trials cannot tell: too few, too many models too close, or too many
    endpoint errors.
    """
    with open_run_store(store_file, must_exist=True) as store:
        info = store.info(store.resolve(run))
        tallies = tally_rows(store.rows(info.id))
    found = recommend(
        tallies, strategy=strategy, judged=verdict, max_errors=max_errors or MAX_ERRORS
    )
    gains = list_gains(tallies, found.strategy, verdict)
    if output.json:
        output.data(_render(info, found, gains))
        return
    console = output.page()
    console.print(line_of(found.sentence, 1000), style="bold", soft_wrap=True)
    if found.remark:
        console.print(line_of(found.remark, 1000), soft_wrap=True)
    console.print()
    rows = (_row(one) for one in found.standings.everyone)
    console.print(make_table(_COLUMNS, rows, optional=_LESS_IMPORTANT))
    console.print()
    for gain in gains:
        show_gain(console, gain, with_remarks=gain is gains[-1])
    if gains:
        console.print()
    for reason in found.why:
        console.print(line_of(reason, 1000), style="dim", soft_wrap=True)
    if not info.is_complete:
        console.print(
            f"The run is not complete: {info.done} of {info.units} trials.", style="yellow"
        )


_COLUMNS = (
    {"rank": "whole", "model": ""}
    | dict.fromkeys(("right", "false calls", "p95", "$ per 100", "errors"), "right whole")
    | {"same as the first?": ""}
)
_LESS_IMPORTANT = ("errors", "$ per 100", "p95", "false calls", "same as the first?")


def _row(one: Standing) -> tuple[str, ...]:
    low, high = one.places or (0, 0)
    return (
        "" if one.places is None else str(low) if low == high else f"{low}–{high}",
        line_of(one.name),
        f"{percent(one.rate.value)} {bracket(one)}",
        str(one.group.false_calls.k),
        duration(one.p95_ms),
        dollars(one.cost_per_100),
        _describe_errors(one),
        _describe_same(one),
    )


def _describe_errors(one: Standing) -> str:
    errors = one.group.errors
    return f"{errors} (without: {percent(one.rate_answered.value)})" if errors else "0"


def _describe_same(one: Standing) -> str:
    if one.simulated == "all":
        return "simulated"
    if not one.is_eligible:
        return "invented calls" if one.group.fabrications else "trials are missing"
    contest = one.against_first
    if contest is None:
        return "–"
    low, high = -100 * contest.interval.high, -100 * contest.interval.low
    words = "no" if contest.is_told else "undecided"
    return f"{words}: {-100 * contest.difference:.0f} lower [{low:.0f} to {high:.0f}]"


def _render(info: RunInfo, found: Recommendation, gains: Sequence[Gain]) -> dict[str, Any]:
    return {
        "type": "recommendation",
        "run": info.id,
        **select_fields(found, "strategy", "judged", "chosen", "sentence", "remark"),
        "why": list(found.why),
        "gains": gain_data(gains),
        "models": [
            {
                **select_fields(one, "name", "simulated", "rate", "rate_answered", "places"),
                **select_fields(one, "p95_ms", "cost_per_100", "is_eligible"),
                **select_fields(one.group, "false_calls", "errors"),
            }
            for one in found.standings.everyone
        ],
    }


_MAX_CHARS = 1000


def show_gain(console: "Console", gain: Gain, *, with_remarks: bool = True) -> None:
    """Show what a strategy adds, and where it is better or worse and what it costs if asked."""
    console.print(line_of(gain.sentence, _MAX_CHARS), style="bold", soft_wrap=True)
    for text in gain.remarks if with_remarks else ():
        console.print(line_of(text, _MAX_CHARS), soft_wrap=True)


def gain_data(gains: Iterable[Gain]) -> list[dict[str, Any]]:
    """Return what strategies add, as data."""
    return [
        {
            **select_fields(gain, "base", "strategy", "sentence", "advance", "setback", "cost"),
            "difference": gain.contest.difference,
            "interval": msgspec.to_builtins(gain.contest.interval),
            "p": gain.contest.p,
            "trials": gain.contest.counts.n,
        }
        for gain in gains
    ]
