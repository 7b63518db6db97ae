"""Trials on a Ray cluster."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from surecall.base.errors import Code, ConfigError
from surecall.evals.records import Unit
from surecall.loop.stored import encode_kept

from .base import DEFAULT_CONCURRENCY, Deliver, Finished, Job, RunUnit, open_job
from .local import UnitPool
from .sharded import (
    Began,
    Failed,
    Ready,
    RunShard,
    ShardedExecutor,
    ShardWorker,
    WorkerDiedError,
    WorkerMessage,
    WorkerNews,
    failure_of,
    unpack,
)


def load_ray() -> Any:
    """Import Ray, or raise `ConfigError` with how to install it."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError(
            Code.EXTRA_MISSING,
            f"Ray cannot be imported: {error}.",
            hint="Run `pip install 'surecall[ray]'`, or use --engine processes.",
        ) from error
    return ray


@contextmanager
def connect_cluster(address: str | None, *, cpus: int | None = None) -> Generator[None]:
    """Be connected to a cluster; without an address one is started here and ended again.

    A connection that the program already has is used and left as it is.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield
        return
    settings: dict[str, Any] = {"address": address}
    if address is None:
        # What can be imported here can be imported there.
        path = os.pathsep.join(entry or os.curdir for entry in sys.path)
        settings = {
            "num_cpus": cpus,
            "include_dashboard": False,
            "runtime_env": {"env_vars": {"PYTHONPATH": path}},
        }
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
    except Exception as error:
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"there is no Ray cluster at {address or 'this machine'}: {error}.",
            hint="Check --ray-address, such as ray://host:10001 or host:6379.",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


class RayShardActor:
    """What runs on the cluster."""

    def __init__(self, job: bytes, concurrency: int) -> None:
        self._job = unpack(job, Job)
        self._pool = UnitPool(self._job, concurrency)
        self._stack = AsyncExitStack()
        self._run_unit: RunUnit | None = None

    async def open(self) -> bytes:
        """Open the job and say so, or say why it cannot be opened."""
        try:
            self._run_unit = await self._stack.enter_async_context(open_job(self._job))
        except Exception as error:
            return encode_kept(failure_of(error))
        return encode_kept(Ready())

    async def run(self, order: bytes) -> AsyncGenerator[bytes, None]:
        """Run a shard; yield what begins and what is finished."""
        shard: RunShard = unpack(order, RunShard)
        news: asyncio.Queue[WorkerMessage | None] = asyncio.Queue()
        running = asyncio.create_task(self._run_shard(shard.units, news))
        running.add_done_callback(lambda _: news.put_nowait(None))
        while (message := await news.get()) is not None:
            yield encode_kept(message)
        if (error := running.exception()) is not None:
            yield encode_kept(failure_of(error))

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
        super().__init__(job, workers=workers, concurrency=concurrency)
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
        return _RayWorker(ray, actor.remote(encode_kept(self.job), self.concurrency))


class _RayWorker:
    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    async def start(self) -> None:
        await self._receive(self._actor.open.remote())

    async def run(self, shard: Sequence[Unit]) -> AsyncIterator[WorkerNews]:
        try:
            async for reference in self._actor.run.remote(encode_kept(RunShard(shard))):
                message = await self._receive(reference)
                if isinstance(message, Began | Finished):
                    yield message
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDiedError from error

    async def _receive(self, reference: Any) -> WorkerMessage:
        try:
            message: WorkerMessage = unpack(await reference, WorkerMessage)
        except self._ray.exceptions.RayActorError as error:
            raise WorkerDiedError from error
        if isinstance(message, Failed):
            raise message.as_error()
        return message

    def drain(self) -> None:
        self._actor.drain.remote()

    async def stop(self) -> None:
        self._ray.kill(self._actor)
