"""How an experiment is followed: a table that fills, a line for each cell, or JSON."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from surecall.cli.console import Output, select_fields
from surecall.cli.event_lines import count_of
from surecall.cli.terminal import bounded
from surecall.evals.records import Cell, Manifest, TrialRow
from surecall.evals.runner import (
    CellCount,
    CellFinished,
    ExperimentEnded,
    ExperimentStarted,
    ProgressEvent,
    Stopping,
    Tally,
    TrialFinished,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text


_MAX_SHARE: Final = 0.008
"""Of one processor that drawing may take."""
_MIN_INTERVAL_S: Final = 0.25
_MAX_INTERVAL_S: Final = 5.0
_MAX_NAME: Final = 44
_MIN_COLUMN: Final = 9
_RESERVED_LINES: Final = 6


class EvalDisplay:
    """Shows nothing of an experiment; the others show something."""

    interval_s: float = _MAX_INTERVAL_S
    """How long to wait until `refresh` is called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def tell(self, event: ProgressEvent) -> None:
        """Take note of an event."""

    def refresh(self) -> None:
        """Draw what is known now."""


def make_display(
    output: Output, manifest: Manifest, store: str, *, is_plain: bool = False
) -> EvalDisplay:
    """Return the display for this terminal, pipe or program."""
    if output.json:
        return JsonLines(output, manifest, store)
    if output.quiet:
        return EvalDisplay()
    simulated = frozenset(manifest.simulated)
    if output.stderr.isatty() and not is_plain:
        return LiveMatrix(output, simulated)
    return LineByCell(output, simulated)


class JsonLines(EvalDisplay):
    """One document for everything that happens."""

    def __init__(self, output: Output, manifest: Manifest, store: str) -> None:
        self._output = output
        self._manifest = manifest
        self._store = store

    def tell(self, event: ProgressEvent) -> None:
        """Write the event; how it ended is in the summary."""
        match event:
            case ExperimentStarted():
                kind, data = "launch", self._launch_data(event)
            case TrialFinished():
                kind, data = "trial", _row_data(event.row)
            case CellFinished():
                kind, data = "cell", _cell_data(event.count)
            case Stopping():
                kind, data = "stopping", {"how": event.how}
            case _:
                return
        self._output.data({"type": kind, "run": event.run_id, **data})

    def _launch_data(self, event: ExperimentStarted) -> dict[str, Any]:
        tally = event.tally
        return {
            **select_fields(event, "resumed"),
            "units": tally.total,
            "done": tally.done,
            "cells": len(tally.cells),
            **select_fields(self._manifest, "simulated", "command", "engine", "package"),
            "store": self._store,
        }


def _row_data(row: TrialRow) -> dict[str, Any]:
    what = select_fields(row, "case", "trial", "simulated")
    verdict = select_fields(row, "original_ok", "strict_ok", "outcome", "code")
    return {
        "index": row.index,
        **msgspec.to_builtins(row.cell),
        **what,
        **verdict,
        "reasons": [reason.code for reason in row.strict_reasons],
        "elapsed_ms": row.elapsed_ms,
    }


def _cell_data(count: CellCount) -> dict[str, Any]:
    cell = msgspec.to_builtins(count.cell)
    figures = select_fields(count, "original_ok", "strict_ok", "unanswered", "errors")
    return {**cell, "trials": count.total, **figures}


class _ForPeople(EvalDisplay):
    """What both displays for people have in common."""

    def __init__(self, output: Output, simulated: frozenset[str]) -> None:
        self._output = output
        self._simulated = simulated
        self._started = time.monotonic()

    def tell(self, event: ProgressEvent) -> None:
        """Write what people should know at once."""
        match event:
            case ExperimentStarted():
                self._started = time.monotonic()
                self._begin(event)
            case Stopping(how="draining"):
                words = "stopping after the trials in progress; Ctrl-C again stops at once"
                self._output.note(words)
            case Stopping():
                self._output.note("stopping now")
            case _:
                pass

    def _begin(self, event: ExperimentStarted) -> None:
        tally = event.tally
        size = f"{count_of(tally.total, 'trial')} in {count_of(len(tally.cells), 'cell')}"
        kept = f", {tally.done} of them already finished" if event.resumed else ""
        self._output.note(f"run {event.run_id}: {size}{kept}")

    def _status(self, tally: Tally) -> str:
        parts = [f"{tally.done}/{tally.total} trials"]
        left = tally.remaining_s(time.monotonic() - self._started)
        if left is not None and tally.done < tally.total:
            parts.append(f"{duration_of(left)} left")
        parts.append(f"{tally.judged - tally.strict_ok} failed")
        if tally.errors:
            parts.append(count_of(tally.errors, "error"))
        if tally.cost_usd is not None:
            parts.append(f"${tally.cost_usd:.2f}")
        return " · ".join(parts)

    def _name(self, cell: Cell) -> str:
        return f"{cell.model} (simulated)" if cell.model in self._simulated else cell.model


class LineByCell(_ForPeople):
    """One line for each cell that is over: for logs and pipes."""

    def tell(self, event: ProgressEvent) -> None:
        """Write a line for a cell."""
        super().tell(event)
        if not isinstance(event, CellFinished):
            return
        count, cell = event.count, event.count.cell
        mark = "✓" if count.strict_ok == count.done else "✗"
        n = count.judged
        axes = (self._name(cell), cell.profile, cell.strategy, cell.fallback, cell.scenario)
        place = " / ".join(axes)
        counts = f"{count.strict_ok}/{n} strict, {count.original_ok}/{n} original"
        if count.errors:
            counts += f", {count_of(count.errors, 'error')}"
        self._output.note(f"{mark} {place}: {counts}  [{self._status(event.tally)}]")


class LiveMatrix(_ForPeople):
    """The matrix as a table that fills, redrawn seldom enough to cost next to nothing."""

    def __init__(
        self,
        output: Output,
        simulated: frozenset[str],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(output, simulated)
        self.interval_s = _MIN_INTERVAL_S
        self._console = output.people()
        self._clock = clock
        self._tally: Tally | None = None
        self._live: Live | None = None
        self._is_drawn = False

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self.refresh()
            self._live.stop()
            self._live = None

    def tell(self, event: ProgressEvent) -> None:
        """Note the counts; drawing is left to `refresh`."""
        super().tell(event)
        if isinstance(event, ExperimentStarted):
            from rich.live import Live

            self._tally = event.tally
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        elif isinstance(event, TrialFinished | ExperimentEnded):
            self._tally = event.tally

    def refresh(self) -> None:
        """Draw, and wait the longer the longer that took."""
        if self._live is None or self._tally is None:
            return
        before = self._clock()
        self._live.update(self.render(self._tally), refresh=True)
        took = self._clock() - before
        if self._is_drawn:  # the first time, most of it is the loading of what draws
            self.interval_s = min(max(took / _MAX_SHARE, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
        self._is_drawn = True

    def render(self, tally: Tally) -> "RenderableType":
        """Return the table and the line below it."""
        from rich.console import Group
        from rich.text import Text

        return Group(self._table(tally), Text(self._status(tally), "dim"))

    def _table(self, tally: Tally) -> "Table":
        from rich.table import Table

        rows: dict[tuple[str, ...], dict[str, CellCount]] = {}
        scenarios: dict[str, None] = {}
        for cell, count in tally.cells.items():
            key = (self._name(cell), cell.profile, cell.strategy, cell.fallback)
            rows.setdefault(key, {})[cell.scenario] = count
            scenarios[cell.scenario] = None
        differing = [at for at in range(4) if at == 0 or len({key[at] for key in rows}) > 1]
        columns = list(scenarios)
        room = self._console.width - _MAX_NAME - 12 * (len(differing) - 1)
        if len(columns) * (_MIN_COLUMN + 1) > room:
            columns = []
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("model", no_wrap=True, max_width=_MAX_NAME)
        for at in differing[1:]:
            table.add_column(("model", "profile", "strategy", "fallback")[at], no_wrap=True)
        for name in columns:
            table.add_column(name, justify="right", overflow="fold", min_width=_MIN_COLUMN)
        table.add_column("all", justify="right", no_wrap=True)
        shown = self._visible(rows)
        for key in shown:
            cells = rows[key]
            names = [bounded(key[at], _MAX_NAME) for at in differing]
            counts = [_count_text([cells[name]] if name in cells else []) for name in columns]
            table.add_row(*names, *counts, _count_text(cells.values()))
        if len(shown) < len(rows):
            table.add_row(f"… {len(rows) - len(shown)} more", style="dim")
        return table

    def _visible(self, rows: dict[tuple[str, ...], dict[str, CellCount]]) -> list[tuple[str, ...]]:
        """Return the rows that fit: those in progress before those finished or not started."""
        room = max(self._console.height - _RESERVED_LINES, 3)
        if len(rows) <= room:
            return list(rows)

        def rank(key: tuple[str, ...]) -> int:
            done = sum(count.done for count in rows[key].values())
            total = sum(count.total for count in rows[key].values())
            return 0 if 0 < done < total else 1 if done == total else 2

        chosen = set(sorted(rows, key=rank)[:room])
        return [key for key in rows if key in chosen]


def _count_text(counts: Iterable[CellCount]) -> "Text":
    """Return how many passed of those that are done; dots stand for what is to come."""
    from rich.text import Text

    listed = list(counts)
    done = sum(count.done for count in listed)
    total = sum(count.total for count in listed)
    ok = sum(count.strict_ok for count in listed)
    errors = sum(count.errors for count in listed)
    if not total:
        return Text("-", "dim")
    if not done:
        return Text("·", "dim")
    style = "green" if ok == done else "red" if not ok else "yellow"
    mark = "" if done == total else "…"
    beside = f" +{errors}!" if errors else ""
    return Text(f"{ok}/{done - errors}{mark}{beside}", style)


def duration_of(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 90:
        return f"{max(seconds, 0):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
