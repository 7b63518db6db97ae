"""Trials in this process, side by side up to what each provider takes."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from surecall.evals.records import Unit

from .base import DEFAULT_CONCURRENCY, Deliver, Job, Lane, RunUnit, open_job

_BACK_OFF: Final = 0.7
_CALM_ROUNDS: Final = 4
"""How often as many trials as the limit allows must end calmly before it rises by one."""


class AdaptiveLimit:
    """A limit that falls quickly and rises slowly; counts trials and knows no clock."""

    def __init__(self, max_limit: int) -> None:
        self.max_limit = max(max_limit, 1)
        self.limit = self.max_limit
        self.under_way = 0
        self._calm = 0
        self._echoes = 0

    @property
    def has_room(self) -> bool:
        """Whether one more may begin."""
        return self.under_way < self.limit

    def begin(self) -> None:
        """Note that a trial begins."""
        self.under_way += 1

    def end(self, *, is_pressed: bool) -> None:
        """Note that a trial ended, and whether its provider was pressed too hard."""
        self.under_way -= 1
        is_echo = self._echoes > 0
        self._echoes -= is_echo
        if not is_pressed:
            self._calm += 1
            if self._calm >= self.limit * _CALM_ROUNDS and self.limit < self.max_limit:
                self.limit += 1
                self._calm = 0
            return
        self._calm = 0
        if not is_echo:
            # What is under way now tells of the same moment and must not lower it again.
            self.limit = max(1, int(self.limit * _BACK_OFF))
            self._echoes = self.under_way


class LaneQueue:
    """The trials that wait in one lane, and its limit."""

    def __init__(self, lane: Lane, concurrency: int) -> None:
        allowed = lane.max_concurrency
        self.limit = AdaptiveLimit(concurrency if allowed is None else min(allowed, concurrency))
        self.waiting: deque[Unit] = deque()


class Lanes:
    """All lanes of one process; limits that were learned are kept from one shard to the next."""

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
            open_lanes = [lane for lane in open_lanes if lane.waiting and lane.limit.has_room]
            for lane in open_lanes:
                lane.limit.begin()
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
        is_pressed = False
        try:
            finished = await run_unit(unit)
            is_pressed = finished.is_pressed
            # The place in the lane is kept until the result has been taken: what cannot be
            # written yet must not pile up.
            await deliver(finished)
        finally:
            lane.limit.end(is_pressed=is_pressed)

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
