"""How endpoints are compared at a terminal: figures, faults, verdicts."""

from typing import TYPE_CHECKING, Final

from surecall.evals.stats import F1, Rate
from surecall.evals.vendors import CallFault, Comparison, Endpoint, VendorReport

from .output import Output
from .terminal import line_of

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["show_vendors"]

_STYLES: Final = {
    "worse": ("✗", "red"),
    "better": ("✓", "green"),
    "same as far as seen": ("✓", "green"),
    "too few to tell": ("?", "yellow"),
}
_LABELS: Final = {"none": "", "some": " (partly simulated)", "all": " (simulated)"}


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
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("endpoint", overflow="fold")
    for name in ("trigger F1", "schema accuracy", "strict", "unanswered"):
        table.add_column(name, justify="right")
    for endpoint in (report.reference, *report.endpoints):
        is_reference = endpoint.trigger is None
        table.add_row(
            _name(endpoint) + (" (reference)" if is_reference else ""),
            "-" if endpoint.trigger is None else _score(endpoint.trigger),
            _rate(endpoint.valid_before),
            _rate(endpoint.strict),
            f"{endpoint.unanswered.k}/{endpoint.unanswered.n}",
        )
    return table


def _faults(report: VendorReport) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("fault", no_wrap=True)
    endpoints = (report.reference, *report.endpoints)
    for endpoint in endpoints:
        table.add_column(_name(endpoint), justify="right", overflow="fold")
    for fault in CallFault:
        found = [one for endpoint in endpoints for one in endpoint.faults if one.fault == fault]
        note = " (trials)" if found[0].of == "trials" else ""
        table.add_row(f"{fault}{note}", *(_rate(one.rate) for one in found))
    return table


def _verdict(endpoint: Endpoint) -> "Text":
    from rich.text import Text

    assert endpoint.verdict is not None
    mark, style = _STYLES[endpoint.verdict]
    return Text.assemble((f"{mark} {endpoint.verdict}", style), f"  {_name(endpoint)}")


def _words(comparison: Comparison) -> str:
    counts = comparison.counts
    if counts.difference is None:
        return f"{comparison.measure}: no trial can be compared"
    low, high = 100 * comparison.interval.low, 100 * comparison.interval.high
    needed = f"; about {comparison.needed} trials would do" if comparison.needed else ""
    return (
        f"{comparison.measure}: {counts.both + counts.only_b}/{counts.n} against "
        f"{counts.both + counts.only_a}/{counts.n}, {100 * counts.difference:+.1f} points "
        f"[{low:+.1f}, {high:+.1f}], p = {comparison.test.p:.2g}: {comparison.verdict}{needed}"
    )


def _name(endpoint: Endpoint) -> str:
    return line_of(endpoint.label) + _LABELS[endpoint.simulated]


def _rate(rate: Rate) -> str:
    if rate.value is None:
        return "-"
    low, high = 100 * rate.interval.low, 100 * rate.interval.high
    return f"{rate.k}/{rate.n} [{low:.1f}, {high:.1f}]"


def _score(score: F1) -> str:
    if score.value is None:
        return "-"
    return f"{score.value:.3f} [{score.interval.low:.3f}, {score.interval.high:.3f}]"
