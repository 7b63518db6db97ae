"""Trials in this process, side by side up to what each provider takes."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from surecall.evals.records import Unit

from .base import DEFAULT_CONCURRENCY, Deliver, Job, Lane, RunUnit, open_job


class LaneQueue:
    """The trials that wait in one lane, and how many of it are under way."""

    def __init__(self, lane: Lane, concurrency: int) -> None:
        allowed = lane.max_concurrency
        self.max_under_way = max(concurrency if allowed is None else min(allowed, concurrency), 1)
        self.under_way = 0
        self.waiting: deque[Unit] = deque()

    @property
    def is_startable(self) -> bool:
        """Whether one more waits and may begin."""
        return bool(self.waiting) and self.under_way < self.max_under_way


class Lanes:
    """All lanes of one process."""

    def __init__(self, job: Job, concurrency: int) -> None:
        self._job = job
        self._concurrency = concurrency
        self._queues: dict[str, LaneQueue] = {}

    def queue(self, units: Iterable[Unit]) -> None:
        """Let units wait, each in its lane, in order."""
        for unit in units:
            self.lane(unit).waiting.append(unit)

    def lane(self, unit: Unit) -> LaneQueue:
        """Return the lane of a unit."""
        lane = self._job.lane_of(unit)
        if lane.name not in self._queues:
            self._queues[lane.name] = LaneQueue(lane, self._concurrency)
        return self._queues[lane.name]

    def startable(self) -> Iterator[tuple[Unit, LaneQueue]]:
        """Yield units that may begin now, the lanes in turn; each is taken as it is yielded."""
        open_lanes = list(self._queues.values())
        while open_lanes:
            open_lanes = [lane for lane in open_lanes if lane.is_startable]
            for lane in open_lanes:
                lane.under_way += 1
                yield lane.waiting.popleft(), lane

    def clear(self) -> None:
        """Let nothing more wait."""
        for lane in self._queues.values():
            lane.waiting.clear()


class UnitPool:
    """Runs units in this event loop, within the limits of their lanes."""

    def __init__(self, job: Job, concurrency: int) -> None:
        self._lanes = Lanes(job, concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._is_draining = False

    def drain(self) -> None:
        """Begin nothing more."""
        self._is_draining = True
        self._lanes.clear()

    async def run(self, units: Sequence[Unit], run_unit: RunUnit, deliver: Deliver) -> None:
        """Run the units and deliver each; returns when all have been."""
        if not self._is_draining:
            self._lanes.queue(units)
        try:
            while True:
                for unit, lane in self._lanes.startable():
                    task = asyncio.create_task(self._run_one(unit, lane, run_unit, deliver))
                    self._tasks.add(task)
                    task.add_done_callback(self._note_end)
                if self._failure is not None:
                    raise self._failure
                if not self._tasks:
                    return
                self._changed.clear()
                await self._changed.wait()
        finally:
            await self._stop()

    async def _run_one(
        self, unit: Unit, lane: LaneQueue, run_unit: RunUnit, deliver: Deliver
    ) -> None:
        try:
            finished = await run_unit(unit)
            # The place in the lane is kept until the result has been taken: what cannot be
            # written yet must not pile up.
            await deliver(finished)
        finally:
            lane.under_way -= 1

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
        self._changed.set()

    async def _stop(self) -> None:
        self._lanes.clear()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class LocalExecutor:
    """Runs everything in this process."""

    name = "local"

    def __init__(self, job: Job, *, concurrency: int = DEFAULT_CONCURRENCY) -> None:
        self._job = job
        self._concurrency = concurrency
        self._pool: UnitPool | None = None
        self._is_draining = False

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once."""
        self._pool = UnitPool(self._job, self._concurrency)
        if self._is_draining or not units:
            return
        async with open_job(self._job) as run_unit:
            await self._pool.run(units, run_unit, deliver)

    def drain(self) -> None:
        """Begin nothing more; what is under way is delivered."""
        self._is_draining = True
        if self._pool is not None:
            self._pool.drain()
