"""What an experiment tells while it runs, and what is known of it so far."""

from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import Struct

from .records import Cell, TrialRow, Unit
from .store import RunInfo
from .taxonomy import Layer, layer_of

__all__ = [
    "CellCount",
    "CellFinished",
    "ExperimentEnded",
    "ExperimentStarted",
    "OnProgress",
    "ProgressEvent",
    "Stopping",
    "Tally",
    "TrialFinished",
    "was_unanswered",
]

_UNHEARD: Final = frozenset({Layer.SETUP, Layer.CONNECTION, Layer.PROVIDER, Layer.REPLY})


def was_unanswered(row: TrialRow) -> bool:
    """Tell whether a trial says nothing about the model, because it was never heard."""
    return (
        row.code is not None and row.turns <= 1 and not row.calls and layer_of(row.code) in _UNHEARD
    )


class CellCount:
    """How the trials of one cell went so far."""

    __slots__ = ("cell", "done", "original_ok", "strict_ok", "total", "unanswered")

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.total = 0
        self.done = 0
        self.original_ok = 0
        self.strict_ok = 0
        self.unanswered = 0

    @property
    def is_over(self) -> bool:
        """Whether every trial of the cell is there."""
        return self.done >= self.total

    def add(self, row: TrialRow) -> None:
        """Count one trial."""
        self.done += 1
        self.original_ok += row.original_ok
        self.strict_ok += row.strict_ok
        self.unanswered += was_unanswered(row)


class Tally:
    """Counts of the whole experiment, cell by cell."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.cells: dict[Cell, CellCount] = {}
        self.total = 0
        for unit in units:
            self.total += 1
            self._count_of(unit.cell).total += 1
        self.done = 0
        self.earlier = 0
        """Trials that were there before this process began."""
        self.original_ok = 0
        self.strict_ok = 0
        self.unanswered = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost_usd: float | None = None

    def add(self, row: TrialRow, *, is_earlier: bool = False) -> CellCount:
        """Count one trial and return the counts of its cell."""
        self.done += 1
        self.earlier += is_earlier
        self.original_ok += row.original_ok
        self.strict_ok += row.strict_ok
        self.unanswered += was_unanswered(row)
        self.input_tokens += row.usage.input_tokens
        self.output_tokens += row.usage.output_tokens
        if row.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row.cost_usd
        count = self._count_of(row.cell)
        count.add(row)
        return count

    @property
    def unanswered_cells(self) -> tuple[Cell, ...]:
        """The cells of which no trial got an answer."""
        counts = self.cells.values()
        return tuple(c.cell for c in counts if c.done and c.unanswered == c.done)

    def remaining_s(self, elapsed_s: float) -> float | None:
        """Guess how long the rest takes, from the pace so far."""
        fresh = self.done - self.earlier
        if fresh == 0:
            return None
        return elapsed_s / fresh * (self.total - self.done)

    def _count_of(self, cell: Cell) -> CellCount:
        if cell not in self.cells:
            self.cells[cell] = CellCount(cell)
        return self.cells[cell]


class ExperimentStarted(Struct, frozen=True, kw_only=True):
    """Trials begin."""

    run_id: str
    tally: Tally
    resumed: bool


class TrialFinished(Struct, frozen=True, kw_only=True):
    """A trial is on disk, and from now on it counts."""

    run_id: str
    row: TrialRow
    tally: Tally


class CellFinished(Struct, frozen=True, kw_only=True):
    """The last trial of a cell is on disk."""

    run_id: str
    count: CellCount
    tally: Tally


class Stopping(Struct, frozen=True, kw_only=True):
    """Nothing more is begun: gently, what is under way is waited for; otherwise not."""

    run_id: str
    how: Literal["draining", "now"]


class ExperimentEnded(Struct, frozen=True, kw_only=True):
    """Nothing more happens."""

    info: RunInfo
    tally: Tally


ProgressEvent = ExperimentStarted | TrialFinished | CellFinished | Stopping | ExperimentEnded
OnProgress = Callable[[ProgressEvent], None]
