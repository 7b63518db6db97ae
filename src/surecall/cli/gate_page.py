"""How gates are shown: one line each, and what the figures can and cannot tell."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from surecall.evals.gates import GateReport, GateResult

from .output import ExitCode, Output
from .terminal import line_of

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["gate_rows", "show_gates"]

_MARKS: Final = {
    "passed": ("✓ passed", "green"),
    "failed": ("✗ failed", "red"),
    "undecided": ("? passed, undecided", "yellow"),
    "empty": ("✗ nothing to check", "red"),
}
_LABELS: Final = {"none": "", "some": "partly simulated", "all": "simulated"}


def show_gates(output: Output, report: GateReport) -> ExitCode:
    """Show what became of all gates, and return 1 when one did not let the experiment through."""
    if output.json:
        output.data({"type": "gates", "ok": report.ok, "gates": gate_rows(report)})
    elif report.results:
        console = output.page()
        console.print(_table(report))
        if not report.ok:
            failed = sum(not result.ok for result in report.results)
            console.print(f"✗ {failed} of {len(report.results)} gates failed")
    return ExitCode.OK if report.ok else ExitCode(1)


def gate_rows(report: GateReport) -> list[dict[str, Any]]:
    """Return the results of gates as data."""
    return [{**msgspec.to_builtins(result), "ok": result.ok} for result in report.results]


def _table(report: GateReport) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("gate", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("observed", no_wrap=True)
    table.add_column("note", overflow="fold", style="dim")
    for result in report.results:
        mark, style = _MARKS[result.verdict]
        notes = [note for note in (_LABELS[result.simulated], result.note) if note]
        table.add_row(
            line_of(result.gate.text),
            Text(mark, style),
            _observed(result),
            line_of("; ".join(notes)),
        )
    return table


def _observed(result: GateResult) -> str:
    if result.observed is None:
        return "-"
    match result.gate.measure.kind:
        case "rate":
            text = f"{result.k}/{result.n} = {result.observed:.1%}"
        case "regression":
            text = f"{100 * result.observed:+.1f} points, {result.n} pairs"
        case _:
            text = f"{result.observed:g}"
    if result.interval is not None:
        text += f" [{100 * result.interval.low:.1f}, {100 * result.interval.high:.1f}]"
    return text if result.p is None else f"{text}, p = {result.p:.2g}"
