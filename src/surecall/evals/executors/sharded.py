"""Trials on several workers: shards are dealt out, results come back one by one."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct

from surecall.errors import Code, ConfigError
from surecall.evals.records import Unit

from .base import DEFAULT_CONCURRENCY, Deliver, Finished, Job
from .shards import MAX_DEATHS, ShardBook, lost_trial

__all__ = ["Began", "ShardWorker", "ShardedExecutor", "WorkerDiedError", "WorkerNews"]


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


class ShardedExecutor(ABC):
    """What all executors with several workers have in common."""

    def __init__(self, job: Job, *, workers: int, concurrency: int = DEFAULT_CONCURRENCY) -> None:
        self.job = job
        self.workers = max(workers, 1)
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
