"""`surecall diff`: what a later run does differently from an earlier one."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from surecall.errors import StoreError
from surecall.evals.diff import DiffResult, Judged, TrialPair, align_rows, diff_rows
from surecall.evals.diff_page import PairBodies, render_diff_html
from surecall.evals.gates import check_gates, parse_gate
from surecall.evals.metrics_records import AXES
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.store import RunInfo, RunStore
from surecall.files import explain_write_errors, write_whole

from .diff_page import show_diff
from .flags import output_flags
from .gate_page import show_gates
from .output import ExitCode, Output
from .run_store import open_run_store

__all__ = ["diff"]


@click.command
@click.argument("a")
@click.argument("b", default="@latest")
@click.option(
    "--verdict",
    "judged",
    type=click.Choice(["strict", "seed"]),
    default="strict",
    show_default=True,
    help="Which verdict to compare: what was done, or the original assertion.",
)
@click.option(
    "--across",
    multiple=True,
    metavar="AXIS",
    help=f"Pair trials whatever they have here; one of {', '.join(AXES)}. May be repeated.",
)
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help="Exit with 1 unless it holds.")
@click.option("--html", "html_file", metavar="FILE", help="Write a page with both transcripts.")
@click.option("--limit", type=click.IntRange(min=0), default=20, help="Trials listed of each kind.")
@click.option("--store", "store_file", metavar="FILE", help="The file with the runs.")
@output_flags
@click.pass_obj
def diff(
    output: Output,
    *,
    a: str,
    b: str,
    judged: Judged,
    across: tuple[str, ...],
    gates: tuple[str, ...],
    html_file: str | None,
    limit: int,
    store_file: str | None,
) -> ExitCode:
    """Compare run B with run A, trial by trial; B is the latest when it is left out.

    A run is named by its id, the beginning of one, a tag such as @baseline, or @latest~1. Gates are
    checked on B; a regression is measured from A unless the gate names another run.
    """
    parsed = [parse_gate(text, against=a) for text in gates]
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
            bodies = _bodies_of(store, info_a.id, info_b.id)
            page = render_diff_html(result, bodies=bodies)
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
            output.stderr.write(f"written: {html_file}\n")
        return
    runs: list[dict[str, Any]] = [
        {"id": info.id, "done": info.done, "units": info.units} for info in infos
    ]
    changes = {
        f"{change}_count": len(result.having(change))
        for change in ("newly_failing", "newly_passing", "changed_reason", "still_failing")
    }
    output.data(
        {"type": "diff", "runs": runs, **changes, **msgspec.to_builtins(result), "html": html_file}
    )
