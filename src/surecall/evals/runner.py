"""What an experiment tells while it runs, and what is known of it so far."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from .executors import Executor
from .jobs import Finished
from .records import Cell, Manifest, TrialRow, Unit
from .store import RunInfo, RunStore
from .taxonomy import was_unanswered


class _Count:
    """How some trials went so far."""

    def __init__(self) -> None:
        self.total: int = 0
        self.done = self.unanswered = self.errors = self.original_ok = self.strict_ok = 0

    def count(self, row: TrialRow) -> None:
        """Count one trial."""
        self.done += 1
        self.original_ok += row.original_ok
        self.strict_ok += row.strict_ok
        self.unanswered += was_unanswered(row)
        self.errors += row.is_error

    @property
    def judged(self) -> int:
        """How many trials say something about the model: all but those the endpoint failed."""
        return self.done - self.errors


class CellCount(_Count):
    """How the trials of one cell went so far."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    @property
    def is_over(self) -> bool:
        """Whether every trial of the cell is there."""
        return self.done >= self.total


class Tally(_Count):
    """Counts of the whole experiment, cell by cell."""

    def __init__(self, units: Iterable[Unit]) -> None:
        super().__init__()
        self.cells: dict[Cell, CellCount] = {}
        for unit in sorted(units, key=lambda unit: unit.index):  # they may be shuffled
            self.total += 1
            self._count_of(unit.cell).total += 1
        self.earlier = 0
        """Trials that were there before this process began."""
        self.input_tokens = self.output_tokens = 0
        self.cost_usd: float | None = None

    def add(self, row: TrialRow, *, is_earlier: bool = False) -> CellCount:
        """Count one trial and return the counts of its cell."""
        self.count(row)
        self.earlier += is_earlier
        self.input_tokens += row.usage.input_tokens
        self.output_tokens += row.usage.output_tokens
        if row.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + row.cost_usd
        cell = self._count_of(row.cell)
        cell.count(row)
        return cell

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

DRAIN_S: Final = 10.0
"""How long trials under way are waited for when the experiment is asked to stop."""

_MAX_WAITING: Final = 512


class UnitSource(Protocol):
    """What is run: a matrix, or anything else that has units."""

    @property
    def units(self) -> Sequence[Unit]:
        """All trials, in order."""
        ...


class Stop:
    """Asks a running experiment to stop: first gently, asked again at once."""

    def __init__(self, *, drain_s: float = DRAIN_S) -> None:
        self.drain_s = drain_s
        self._gently = asyncio.Event()
        self._now = asyncio.Event()

    @property
    def is_asked(self) -> bool:
        """Whether anybody asked."""
        return self._gently.is_set()

    def ask(self) -> None:
        """Ask to stop; to be called in the thread of the event loop."""
        if self._gently.is_set():
            self._now.set()
        self._gently.set()

    async def wait(self) -> None:
        """Wait until somebody asks."""
        await self._gently.wait()

    async def wait_for_now(self) -> None:
        """Wait until somebody asks again, or patience ends."""
        try:
            async with asyncio.timeout(self.drain_s):
                await self._now.wait()
        except TimeoutError:
            pass


class Outbox:
    """Finished trials on their way to the disk: taken together, however many there are."""

    def __init__(self, max_waiting: int = _MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._waiting: list[Finished] = []
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._is_closed = False

    async def put(self, finished: Finished) -> None:
        """Let a trial wait to be written; with too many of them, wait too."""
        while len(self._waiting) >= self._max_waiting:
            self._taken.clear()
            await self._taken.wait()
        self._waiting.append(finished)
        self._arrived.set()

    async def take(self) -> list[Finished]:
        """Take all that wait; nothing means that no more will come."""
        while not self._waiting and not self._is_closed:
            self._arrived.clear()
            await self._arrived.wait()
        batch, self._waiting = self._waiting, []
        self._taken.set()
        return batch

    def close(self) -> None:
        """Say that no more will come."""
        self._is_closed = True
        self._arrived.set()


async def run_experiment(
    matrix: UnitSource,
    manifest: Manifest,
    store: RunStore,
    *,
    executor: Executor,
    run_id: str | None = None,
    on_progress: OnProgress | None = None,
    stop: Stop | None = None,
) -> RunInfo:
    """Run what is not there yet of an experiment and return what there is then.

    Args:
        matrix: The trials, all of them.
        manifest: What makes this experiment what it is.
        store: Where finished trials are kept.
        executor: Where the trials run.
        run_id: The run to resume; a new one when it is None.
        on_progress: Called with every event, in the thread of the event loop.
        stop: Asks the experiment to stop.

    Raises:
        StoreError: `RUN_IN_USE` when another process works on the run, or a trial cannot be kept.
    """
    is_resumed = run_id is not None
    run_id = run_id or store.create(manifest)
    with store.hold(run_id):
        work = _Work(matrix.units, store, run_id, on_progress or (lambda _: None))
        work.count_earlier()
        work.tell(ExperimentStarted(run_id=run_id, tally=work.tally, resumed=is_resumed))
        try:
            await work.run(executor, stop or Stop())
        finally:
            is_over = work.tally.done >= work.tally.total
            store.finish(run_id, "complete" if is_over else "interrupted")
        info = store.info(run_id)
        work.tell(ExperimentEnded(info=info, tally=work.tally))
    return info


class _Work:
    """One process's share of a run."""

    def __init__(
        self, units: Sequence[Unit], store: RunStore, run_id: str, tell: OnProgress
    ) -> None:
        self._units = units
        self._store = store
        self._run_id = run_id
        self.tell = tell
        self.tally = Tally(units)
        self._done: set[int] = set()
        self._outbox = Outbox()

    def count_earlier(self) -> None:
        for row in self._store.rows(self._run_id):
            self.tally.add(row, is_earlier=True)
            self._done.add(row.index)

    async def run(self, executor: Executor, stop: Stop) -> None:
        waiting = [unit for unit in self._units if unit.index not in self._done]
        if not waiting:
            return
        running = asyncio.create_task(executor.run(waiting, self._outbox.put))
        running.add_done_callback(lambda _: self._outbox.close())
        watching = asyncio.create_task(self._watch(running, executor, stop))
        try:
            while batch := await self._outbox.take():
                await self._keep(batch)
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await self._keep(await self._outbox.take())
            raise
        finally:
            watching.cancel()
            if not running.done():  # what is finished cannot be kept: nothing more may be begun
                running.cancel()
            await asyncio.gather(running, watching, return_exceptions=True)
        if not running.cancelled():
            running.result()

    async def _watch(self, running: "asyncio.Task[None]", executor: Executor, stop: Stop) -> None:
        await stop.wait()
        self.tell(Stopping(run_id=self._run_id, how="draining"))
        executor.drain()
        await stop.wait_for_now()
        self.tell(Stopping(run_id=self._run_id, how="now"))
        running.cancel()

    async def _keep(self, batch: list[Finished]) -> None:
        """Write a batch in one transaction, and only then count it."""
        if not batch:
            return
        trials = [(finished.row, finished.body) for finished in batch]
        writing = asyncio.create_task(asyncio.to_thread(self._store.add, self._run_id, trials))
        try:
            fresh = await asyncio.shield(writing)
        except asyncio.CancelledError:
            # The thread cannot be stopped half way, and what it writes is to be counted.
            self._count(batch, await writing)
            raise
        self._count(batch, fresh)

    def _count(self, batch: list[Finished], fresh: tuple[int, ...]) -> None:
        left = set(fresh)
        for finished in batch:
            row = finished.row
            if row.index not in left:
                continue
            left.discard(row.index)
            count = self.tally.add(row)
            self.tell(TrialFinished(run_id=self._run_id, row=row, tally=self.tally))
            if count.is_over:
                self.tell(CellFinished(run_id=self._run_id, count=count, tally=self.tally))
