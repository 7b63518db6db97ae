"""Trials in several workers: shards, heartbeats, and what becomes of a worker that dies."""

import asyncio
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.evals.records import VERDICT_VERSION, TrialBody, TrialRow, Unit
from surecall.text import decode_own

from .base import DEFAULT_CONCURRENCY, Deliver, Finished, Job

MAX_DEATHS: Final = 3
"""How many workers one trial may take with it before it is given up."""

_SHARDS_PER_WORKER: Final = 3
_MAX_SHARD: Final = 256


class ShardBook:
    """Who has which units. A unit is in one place: waiting, dealt to one worker, or over."""

    def __init__(self, units: Iterable[Unit], *, workers: int, min_shard: int = 1) -> None:
        self._waiting = deque(units)
        self._suspects: deque[Unit] = deque()
        self._dealt: dict[int, Unit] = {}
        self._deaths: dict[int, int] = {}
        self._workers = max(workers, 1)
        self._min_shard = max(min_shard, 1)

    @property
    def has_waiting(self) -> bool:
        """Whether anything is left to be dealt."""
        return bool(self._waiting or self._suspects)

    @property
    def is_over(self) -> bool:
        """Whether nothing waits and nobody has anything."""
        return not (self._waiting or self._suspects or self._dealt)

    def deal(self) -> tuple[Unit, ...]:
        """Deal the next shard: large ones first, then smaller, so that all end together.

        A unit that was under way when a worker died is dealt alone, so that it takes no other
        with it and the blame is certain.
        """
        if self._suspects:
            shard = (self._suspects.popleft(),)
        else:
            share = len(self._waiting) // (self._workers * _SHARDS_PER_WORKER)
            size = min(max(share, self._min_shard), _MAX_SHARD, len(self._waiting))
            shard = tuple(self._waiting.popleft() for _ in range(size))
        self._dealt.update((unit.index, unit) for unit in shard)
        return shard

    def finish(self, index: int) -> bool:
        """Note that a unit is over; False when it was not dealt and must not count again."""
        return self._dealt.pop(index, None) is not None

    def lose(self, shard: Sequence[Unit], started: Iterable[int]) -> tuple[Unit, ...]:
        """Take back what a dead worker had not finished; return what is given up.

        When nothing is known to have been under way, because the worker could not tell any more,
        it is taken to be what it must have begun with.
        """
        left = [unit.index for unit in shard if unit.index in self._dealt]
        under_way = set(started) & set(left) or set(left[: self._min_shard])
        given_up: list[Unit] = []
        back: list[Unit] = []
        for unit in shard:
            if self._dealt.pop(unit.index, None) is None:
                continue
            if unit.index not in under_way:
                back.append(unit)
                continue
            deaths = self._deaths[unit.index] = self._deaths.get(unit.index, 0) + 1
            if deaths >= MAX_DEATHS:
                given_up.append(unit)
            else:
                self._suspects.append(unit)
        self._waiting.extendleft(reversed(back))
        return tuple(given_up)

    def leave(self, shard: Sequence[Unit]) -> None:
        """Forget what a worker did not begin because it was stopped."""
        for unit in shard:
            self._dealt.pop(unit.index, None)

    def clear(self) -> None:
        """Deal nothing more."""
        self._waiting.clear()
        self._suspects.clear()


def lost_trial(unit: Unit) -> Finished:
    """Record a unit that kills whatever runs it."""
    message = f"The process that ran this trial died {MAX_DEATHS} times."
    row = TrialRow(
        **asdict(unit),
        original_ok=False,
        strict_ok=False,
        outcome="error",
        verdict_version=VERDICT_VERSION,
        category="EXCEPTION",
        code=Code.WORKER_LOST,
        error=message,
    )
    return Finished(row, TrialBody(index=unit.index))


class Began(Struct, frozen=True, tag="began"):
    """A worker began with a unit."""

    index: int


WorkerNews = Began | Finished


class WorkerDiedError(Exception):
    """A worker is gone; what it had not finished must be run elsewhere."""


class ShardWorker(Protocol):
    """One process somewhere, with one event loop."""

    async def start(self) -> None:
        """Wait until it is ready.

        Raises:
            WorkerDiedError: The worker died before it could do anything.
            SurecallError: The job cannot be opened.
        """
        ...

    def run(self, shard: Sequence[Unit]) -> AsyncIterator[WorkerNews]:
        """Run a shard; tell what begins and what is finished, as it happens.

        Raises:
            WorkerDiedError: The worker died.
        """
        ...

    def drain(self) -> None:
        """Begin nothing more; `run` then ends early."""
        ...

    async def stop(self) -> None:
        """End the worker, whatever it is doing."""
        ...


def _count_cores() -> int:
    """Return how many processors this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else os.cpu_count() or 1


class ShardedExecutor(ABC):
    """What all executors with several workers have in common."""

    def __init__(
        self, job: Job, *, workers: int | None = None, concurrency: int = DEFAULT_CONCURRENCY
    ) -> None:
        self.job = job
        self.workers = max(workers or _count_cores(), 1)
        self.concurrency = max(concurrency // self.workers, 1)
        """How many trials one worker runs at once; all of them together as many as asked for."""
        self._book = ShardBook((), workers=1)
        self._open: set[ShardWorker] = set()
        self._changed = asyncio.Condition()
        self._is_draining = False

    @abstractmethod
    def make_worker(self) -> ShardWorker:
        """Make one worker that is to be started."""

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once."""
        self._book = ShardBook(units, workers=self.workers, min_shard=self.concurrency)
        if self._is_draining:
            return
        needed = min(self.workers, -(-len(units) // self.concurrency))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(needed):
                    group.create_task(self._keep_busy(deliver))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await self._stop_all()

    def drain(self) -> None:
        """Begin nothing more; what is under way is delivered."""
        self._is_draining = True
        self._book.clear()
        for worker in self._open:
            worker.drain()

    async def _keep_busy(self, deliver: Deliver) -> None:
        """Have one worker at a time run shard after shard; a new one follows one that died."""
        worker: ShardWorker | None = None
        while await self._wait_for_units():
            shard = self._book.deal()
            if worker is None:
                worker = await self._start_worker()
            if not await self._run_shard(worker, shard, deliver):
                self._open.discard(worker)
                await worker.stop()
                worker = None

    async def _start_worker(self) -> ShardWorker:
        for _ in range(MAX_DEATHS):
            worker = self.make_worker()
            self._open.add(worker)
            try:
                await worker.start()
            except WorkerDiedError:
                self._open.discard(worker)
                await worker.stop()
                continue
            if self._is_draining:
                worker.drain()
            return worker
        raise ConfigError(
            Code.WORKER_LOST,
            f"{MAX_DEATHS} workers died before they could begin.",
            hint="Run with --engine local to see why.",
        )

    async def _run_shard(
        self, worker: ShardWorker, shard: Sequence[Unit], deliver: Deliver
    ) -> bool:
        """Run a shard and return whether the worker lived."""
        began: set[int] = set()
        lives = True
        try:
            async for news in worker.run(shard):
                if isinstance(news, Began):
                    began.add(news.index)
                elif self._book.finish(news.row.index):
                    began.discard(news.row.index)
                    await deliver(news)
            self._book.leave(shard)
        except WorkerDiedError:
            lives = False
            for unit in self._book.lose(shard, began):
                await deliver(lost_trial(unit))
        if self._is_draining:
            self._book.clear()
        async with self._changed:
            self._changed.notify_all()
        return lives

    async def _wait_for_units(self) -> bool:
        """Wait until there is something to deal; False when all is over."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._book.has_waiting or self._book.is_over)
            return self._book.has_waiting

    async def _stop_all(self) -> None:
        workers, self._open = self._open, set()
        await asyncio.gather(*(worker.stop() for worker in workers))


class RunShard(Struct, frozen=True, tag="run"):
    """Run these units."""

    units: Sequence[Unit]


class Drain(Struct, frozen=True, tag="drain"):
    """Begin nothing more."""


class Leave(Struct, frozen=True, tag="leave"):
    """Stop everything and end."""


class Ready(Struct, frozen=True, tag="ready"):
    """The job is open."""


class ShardOver(Struct, frozen=True, tag="over"):
    """The shard is finished, or as much of it as was begun."""


class Beat(Struct, frozen=True, tag="beat"):
    """The worker lives."""


class Failed(Struct, frozen=True, tag="failed"):
    """The worker cannot work at all."""

    code: str
    message: str
    hint: str | None = None

    def as_error(self) -> SurecallError:
        """Return it as an error that can be raised."""
        return ConfigError(self.code, self.message, hint=self.hint)


Order = RunShard | Drain | Leave
WorkerMessage = Began | Finished | Ready | ShardOver | Beat | Failed


def failure_of(error: BaseException) -> Failed:
    """Say what kept a worker from working."""
    if isinstance(error, SurecallError):
        return Failed(error.code, error.message, error.hint)
    return Failed(Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def unpack(data: bytes, kind: Any) -> Any:
    """Return what was sent from one process to another: a job, an order, or what a worker said."""
    return msgspec.convert(decode_own(data), kind)
