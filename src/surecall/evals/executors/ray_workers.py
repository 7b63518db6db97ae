"""Trials on a Ray cluster: one actor is one event loop, and a shard at a time is sent to it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

from surecall.evals.records import Unit

from .base import DEFAULT_CONCURRENCY, Deliver, Finished, Job, RunUnit, open_job
from .local import UnitPool
from .processes import usable_cores
from .ray_cluster import connect_cluster, load_ray
from .sharded import Began, ShardedExecutor, ShardWorker, WorkerDiedError, WorkerNews
from .wire import (
    Failed,
    Ready,
    RunShard,
    WorkerMessage,
    failure_of,
    pack,
    unpack_job,
    unpack_message,
    unpack_order,
)

__all__ = ["RayExecutor", "RayShardActor"]


class RayShardActor:
    """What runs on the cluster."""

    def __init__(self, job: bytes, concurrency: int) -> None:
        self._job = unpack_job(job)
        self._pool = UnitPool(self._job, concurrency)
        self._stack = AsyncExitStack()
        self._run_unit: RunUnit | None = None

    async def open(self) -> bytes:
        """Open the job and say so, or say why it cannot be opened."""
        try:
            self._run_unit = await self._stack.enter_async_context(open_job(self._job))
        except Exception as error:
            return pack(failure_of(error))
        return pack(Ready())

    async def run(self, order: bytes) -> AsyncGenerator[bytes, None]:
        """Run a shard; yield what begins and what is finished."""
        shard = unpack_order(order)
        assert isinstance(shard, RunShard)
        news: asyncio.Queue[WorkerMessage | None] = asyncio.Queue()
        running = asyncio.create_task(self._run_shard(shard.units, news))
        running.add_done_callback(lambda _: news.put_nowait(None))
        while (message := await news.get()) is not None:
            yield pack(message)
        if (error := running.exception()) is not None:
            yield pack(failure_of(error))

    async def drain(self) -> None:
        """Begin nothing more."""
        self._pool.drain()

    async def _run_shard(
        self, units: Sequence[Unit], news: "asyncio.Queue[WorkerMessage | None]"
    ) -> None:
        run_unit = self._run_unit
        assert run_unit is not None

        async def tell_and_run(unit: Unit) -> Finished:
            news.put_nowait(Began(unit.index))
            return await run_unit(unit)

        await self._pool.run(units, tell_and_run, news.put)


class RayExecutor(ShardedExecutor):
    """Runs shards on a Ray cluster; an actor that dies is replaced."""

    name = "ray"

    def __init__(
        self,
        job: Job,
        *,
        workers: int | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        address: str | None = None,
    ) -> None:
        super().__init__(job, workers=workers or usable_cores(), concurrency=concurrency)
        self._address = address

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once."""
        if not units:
            return
        with connect_cluster(self._address):
            await super().run(units, deliver)

    def make_worker(self) -> ShardWorker:
        """Begin to start an actor somewhere on the cluster."""
        ray = load_ray()
        actor: Any = ray.remote(RayShardActor).options(num_cpus=1, max_restarts=0)
        return _RayWorker(ray, actor.remote(pack(self.job), self.concurrency))


class _RayWorker:
    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    async def start(self) -> None:
        await self._hear(self._actor.open.remote())

    async def run(self, shard: Sequence[Unit]) -> AsyncIterator[WorkerNews]:
        try:
            async for reference in self._actor.run.remote(pack(RunShard(shard))):
                message = await self._hear(reference)
                if isinstance(message, Began | Finished):
                    yield message
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDiedError from error

    async def _hear(self, reference: Any) -> WorkerMessage:
        try:
            message = unpack_message(await reference)
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDiedError from error
        if isinstance(message, Failed):
            raise message.as_error()
        return message

    def drain(self) -> None:
        self._actor.drain.remote()

    async def stop(self) -> None:
        self._ray.kill(self._actor)
