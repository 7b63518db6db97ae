"""How a comparison of two runs is shown at a terminal."""

from typing import TYPE_CHECKING, Final

from surecall.evals.diff import DiffResult, PairedRate, Side, TrialPair
from surecall.evals.diff_page import CHANGES

from .output import Output
from .terminal import bounded, line_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["show_diff"]

_STYLES: Final = {
    "better": "green",
    "worse": "red",
    "newly_failing": "red",
    "newly_passing": "green",
}
_MARKS: Final = {
    "newly_failing": "✗",
    "newly_passing": "✓",
    "changed_reason": "~",
    "still_failing": "·",
}
_LABELS: Final = {"none": "", "some": " (partly simulated)", "all": " (simulated)"}
_MAX_CONFIG: Final = 12
_MIN_ROOM: Final = 30


def show_diff(output: Output, result: DiffResult, limit: int, warnings: list[str]) -> None:
    """Show what changed: configuration, rates, then trials, at most `limit` of each kind."""
    from rich.text import Text

    console = output.page()
    console.print(Text(line_of(f"{result.a} → {result.b}"), "bold"), soft_wrap=True)
    for warning in warnings:
        console.print(Text(f"! {line_of(warning)}", "yellow"))
    _show_config(console, result)
    console.print()
    console.print(_rates(result))
    if result.only_a or result.only_b:
        console.print(
            f"without a partner: {result.only_a} trials of A, {result.only_b} of B", style="dim"
        )
    for change, heading in CHANGES.items():
        pairs = result.having(change)
        if pairs:
            console.print()
            console.print(Text(f"{heading}: {len(pairs)}", _STYLES.get(change, "bold")))
            _show_pairs(console, pairs, limit)


def _show_config(console: "Console", result: DiffResult) -> None:
    if not result.config:
        console.print("made with the same settings", style="dim")
        return
    console.print("made with other settings:")
    for line in result.config[:_MAX_CONFIG]:
        console.print(f"  {line_of(line)}", soft_wrap=True)
    if len(result.config) > _MAX_CONFIG:
        console.print(f"  and {len(result.config) - _MAX_CONFIG} more", style="dim")


def _rates(result: DiffResult) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(f"{result.judged} verdict", overflow="fold")
    for name in ("A", "B", "B less A [95 %]", "better/worse", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold")
    extra = () if result.controls is None else (result.controls,)
    for rate in (result.overall, *extra, *result.groups):
        words = rate.verdict + (f"; about {rate.needed} would" if rate.needed else "")
        table.add_row(*_figures(rate), Text(words, _STYLES.get(rate.verdict, "")))
    return table


def _figures(rate: PairedRate) -> tuple[str, ...]:
    counts = rate.counts
    name = rate.value if rate.axis in {"overall", "controls"} else f"{rate.axis} {rate.value}"
    points = "-"
    if counts.difference is not None:
        low, high = 100 * rate.interval.low, 100 * rate.interval.high
        points = f"{100 * counts.difference:+.1f} [{low:+.1f}, {high:+.1f}]"
    return (
        line_of(name) + _LABELS[rate.simulated],
        f"{counts.both + counts.only_a}/{counts.n}",
        f"{counts.both + counts.only_b}/{counts.n}",
        points,
        f"{counts.only_b}/{counts.only_a}",
        f"{rate.test.p:.2g}",
    )


def _show_pairs(console: "Console", pairs: tuple[TrialPair, ...], limit: int) -> None:
    for pair in pairs[:limit]:
        words = _words(pair)
        room = max(console.width - 4, _MIN_ROOM)
        console.print(f"  {_MARKS[pair.change]} {bounded(pair.title, room)}")
        console.print(f"    {bounded(words, room)}", style="dim")
    if len(pairs) > limit:
        console.print(f"  and {len(pairs) - limit} more; --limit shows them", style="dim")


def _words(pair: TrialPair) -> str:
    before, now = _why(pair.a), _why(pair.b)
    places = f"#{pair.a.index} → #{pair.b.index}"
    reason = pair.b.reason or pair.a.reason
    path = now if before == now else f"{before} → {now}"
    return f"{places}  {path}: {reason}" if reason else f"{places}  {path}"


def _why(side: Side) -> str:
    return f"{side.failure.layer}/{side.failure.code}" if side.failure is not None else "ok"
