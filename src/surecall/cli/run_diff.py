"""`surecall eval diff`: two runs compared, trial by trial."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from surecall.base.errors import StoreError
from surecall.base.files import explain_write_errors, write_whole
from surecall.evals.diff import DiffResult, Judged, Side, TrialPair, align_rows, diff_rows
from surecall.evals.diff_page import (
    CHANGES,
    PairBodies,
    describe_pair,
    list_rates,
    name_sentence,
    render_diff_html,
)
from surecall.evals.experiments import open_run_store
from surecall.evals.gates import check_gates, limit_errors, parse_gate
from surecall.evals.metrics.records import AXES
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.store import RunInfo, RunStore

from .console import ExitCode, Output, select_fields
from .eval.page import show_gates
from .flags import flag, max_errors_flag, pass_output, store_flag, undecided_flag
from .suggestions import complete_runs
from .terminal import bounded, line_of, make_table, styled

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


_STYLES: Final = {"better": "green", "worse": "red", "mixed": "red", "undecided": "yellow"}
_MARKS: Final = {
    "newly_failing": ("✗", "red"),
    "newly_passing": ("✓", "green"),
    "changed_reason": ("~", "bold"),
    "still_failing": ("·", "bold"),
}
_MAX_CONFIG: Final = 12
_MAX_WORDS: Final = 500
_MIN_ROOM: Final = 30


def show_diff(output: Output, result: DiffResult, limit: int, warnings: list[str]) -> None:
    """Show what changed: configuration, rates, then trials, at most `limit` of each kind."""
    console = output.page()
    console.print(line_of(f"{result.a} → {result.b}"), style="bold", soft_wrap=True)
    for warning in warnings:
        console.print(f"! {line_of(warning)}", style="yellow")
    _show_config(console, result)
    console.print()
    console.print(_rates(result))
    console.print(line_of(name_sentence(result), _MAX_WORDS), soft_wrap=True)
    if result.only_a or result.only_b:
        alone = f"{result.only_a} trials of A, {result.only_b} of B"
        console.print(f"without a partner: {alone}", style="dim")
    if result.errors:
        console.print(
            f"{result.errors} pairs met an endpoint error, which counts as wrong", style="dim"
        )
    for change, heading in CHANGES.items():
        pairs = result.having(change)
        if pairs:
            console.print()
            console.print(f"{heading}: {len(pairs)}", style=_MARKS[change][1])
            _show_pairs(console, pairs, limit)


def _show_config(console: "Console", result: DiffResult) -> None:
    if not result.config:
        console.print("same settings", style="dim")
        return
    console.print("different settings:")
    for line in result.config[:_MAX_CONFIG]:
        console.print(f"  {line_of(line)}", soft_wrap=True)
    if len(result.config) > _MAX_CONFIG:
        console.print(f"  and {len(result.config) - _MAX_CONFIG} more", style="dim")


def _rates(result: DiffResult) -> "Table":
    numbers = ("A", "B", "B minus A [95 %]", "better/worse", "p")
    columns = {f"{result.judged} verdict": ""}
    columns |= dict.fromkeys(numbers, "right whole") | {"verdict": ""}
    table = make_table(columns, optional=("p", "better/worse", "A", "B"))
    for rate in list_rates(result):
        name, *figures, words = describe_pair(rate)
        table.add_row(
            line_of(name),
            *figures,
            styled((line_of(words, 500), _STYLES.get(rate.verdict, ""))),
        )
    return table


def _show_pairs(console: "Console", pairs: tuple[TrialPair, ...], limit: int) -> None:
    for pair in pairs[:limit]:
        words = _words(pair)
        room = max(console.width - 4, _MIN_ROOM)
        console.print(f"  {_MARKS[pair.change][0]} {bounded(pair.title, room)}")
        console.print(f"    {bounded(words, room)}", style="dim")
    if len(pairs) > limit:
        console.print(f"  and {len(pairs) - limit} more; raise --limit to see them", style="dim")


def _words(pair: TrialPair) -> str:
    before, now = _why(pair.a), _why(pair.b)
    places = f"#{pair.a.index} → #{pair.b.index}"
    reason = pair.b.reason or pair.a.reason
    path = now if before == now else f"{before} → {now}"
    return f"{places}  {path}: {reason}" if reason else f"{places}  {path}"


def _why(side: Side) -> str:
    return f"{side.failure.layer}/{side.failure.code}" if side.failure is not None else "ok"


@click.command
@click.argument("a", shell_complete=complete_runs)
@click.argument("b", default="@latest", shell_complete=complete_runs)
@flag(
    "--verdict",
    "Which verdict to compare: what was done, or the original.",
    to="judged",
    choices=("strict", "original"),
    shown="strict",
)
@flag(
    "--across AXIS",
    f"Pair trials that differ in this: one of {', '.join(AXES)}. May be repeated.",
    multiple=True,
)
@flag("--gate EXPR", "Exit with 1 unless this holds.", to="gates", multiple=True)
@undecided_flag
@max_errors_flag
@flag("--html FILE", "Write a page with both transcripts.", to="html_file")
@flag("--limit", "Trials listed of each kind.", type=click.IntRange(min=0), default=20)
@store_flag
@pass_output
def diff(
    output: Output,
    *,
    a: str,
    b: str,
    judged: Judged,
    across: tuple[str, ...],
    gates: tuple[str, ...],
    undecided: Any,
    max_errors: str | None,
    html_file: str | None,
    limit: int,
    store_file: str | None,
) -> ExitCode:
    """Compare run B with run A, trial by trial; B defaults to the latest run.

    Name a run by its id, the start of one, a tag such as @baseline, or @latest~1. Gates are checked
    on B; a regression is measured from A unless the gate names another run.
    """
    parsed = [parse_gate(text, against=a, undecided=undecided) for text in gates]
    if max_errors is not None:
        parsed.append(limit_errors(max_errors))
    with open_run_store(store_file, must_exist=True) as store:
        info_a, info_b = (store.info(store.resolve(name)) for name in (a, b))
        result = diff_rows(
            store.rows(info_a.id),
            store.rows(info_b.id),
            a=_name(a, info_a),
            b=_name(b, info_b),
            judged=judged,
            across=across,
            config=info_a.manifest.differences(info_b.manifest),
        )
        if html_file is not None:
            page = render_diff_html(result, bodies=_bodies_of(store, info_a.id, info_b.id))
            with explain_write_errors(html_file), write_whole(html_file) as file:
                file.write(page.encode("utf-8"))
        _tell(output, result, (info_a, info_b), limit, html_file)
        if not parsed:
            return ExitCode.OK

        def rows_of(name: str) -> Iterator[TrialRow]:
            rows = store.rows(store.resolve(name))
            return align_rows(rows, store.rows(info_b.id), across) if across else rows

        report = check_gates(parsed, store.rows(info_b.id), rows_of=rows_of)
        return show_gates(output, report)


def _name(reference: str, info: RunInfo) -> str:
    return info.id if info.id.startswith(reference) else f"{reference} ({info.id})"


def _bodies_of(store: RunStore, run_a: str, run_b: str) -> PairBodies:
    def body(run: str, index: int) -> TrialBody | None:
        try:
            return store.body(run, index)
        except StoreError:
            return None  # nothing was kept of this trial but its row

    def both(pair: TrialPair) -> tuple[TrialBody | None, TrialBody | None]:
        return body(run_a, pair.a.index), body(run_b, pair.b.index)

    return both


def _tell(
    output: Output,
    result: DiffResult,
    infos: tuple[RunInfo, RunInfo],
    limit: int,
    html_file: str | None,
) -> None:
    unfinished = [
        f"{info.id} is not complete: {info.done} of {info.units} trials."
        for info in infos
        if not info.is_complete
    ]
    if not output.json:
        show_diff(output, result, limit, unfinished)
        if html_file is not None and not output.quiet:
            output.note(f"written: {html_file}")
        return
    runs = [select_fields(info, "id", "done", "units") for info in infos]
    changes = {f"{change}_count": len(result.having(change)) for change in CHANGES}
    found = {**changes, **msgspec.to_builtins(result)}
    output.data({"type": "diff", "runs": runs, **found, "html": html_file})
