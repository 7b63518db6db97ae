"""Trials in several processes of this machine."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Final

from surecall.evals.records import Unit
from surecall.loop.stored import encode_kept

from .base import DEFAULT_CONCURRENCY, Finished, Job, RunUnit, open_job
from .local import UnitPool
from .sharded import (
    Beat,
    Began,
    Drain,
    Failed,
    Leave,
    Order,
    Ready,
    RunShard,
    ShardedExecutor,
    ShardOver,
    ShardWorker,
    WorkerDiedError,
    WorkerMessage,
    WorkerNews,
    failure_of,
    unpack,
)

BEAT_S: Final = 5.0


def work(connection: Connection, job: bytes, concurrency: int) -> None:
    """Take orders until asked to leave, or until nobody is there to give any."""
    # Ctrl-C reaches all processes of a terminal; the main one decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(asyncio.CancelledError):
        asyncio.run(_Worker(connection, job, concurrency).run())
    connection.close()


class _Worker:
    def __init__(self, connection: Connection, job: bytes, concurrency: int) -> None:
        self._connection = connection
        self._job = unpack(job, Job)
        self._pool = UnitPool(self._job, concurrency)
        self._orders: asyncio.Queue[RunShard] = asyncio.Queue()

    async def run(self) -> None:
        main = asyncio.current_task()
        assert main is not None
        loop = asyncio.get_running_loop()
        listener = threading.Thread(target=self._listen, args=(loop, main), daemon=True)
        listener.start()
        beats = asyncio.create_task(self._beat())
        try:
            async with open_job(self._job) as run_unit:
                self._send(Ready())
                while True:
                    shard = await self._orders.get()
                    await self._pool.run(shard.units, self._announce(run_unit), self._deliver)
                    self._send(ShardOver())
        except Exception as error:
            self._send(failure_of(error))
        finally:
            beats.cancel()

    def _announce(self, run_unit: RunUnit) -> RunUnit:
        async def run(unit: Unit) -> Finished:
            self._send(Began(unit.index))
            return await run_unit(unit)

        return run

    async def _deliver(self, finished: Finished) -> None:
        self._send(finished)

    async def _beat(self) -> None:
        while True:
            self._send(Beat())
            await asyncio.sleep(BEAT_S)

    def _send(self, message: object) -> None:
        try:
            self._connection.send_bytes(encode_kept(message))
        except OSError:
            os._exit(1)  # nobody listens any more

    def _listen(self, loop: asyncio.AbstractEventLoop, main: "asyncio.Task[None]") -> None:
        """Pass orders on to the event loop, from a thread of its own."""
        while True:
            try:
                order: Order = unpack(self._connection.recv_bytes(), Order)
            except (EOFError, OSError):
                os._exit(1)  # the main process is gone
            if isinstance(order, RunShard):
                loop.call_soon_threadsafe(self._orders.put_nowait, order)
            elif isinstance(order, Drain):
                loop.call_soon_threadsafe(self._pool.drain)
            else:
                loop.call_soon_threadsafe(main.cancel)
                return


_LEASE_S: Final = 120.0
"""How long a worker may be silent; it says something every few seconds while its loop turns."""
_LEAVE_S: Final = 2.0


class ProcessExecutor(ShardedExecutor):
    """Runs shards in processes of this machine; one that dies is replaced."""

    name = "processes"

    def __init__(
        self,
        job: Job,
        *,
        workers: int | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        lease_s: float = _LEASE_S,
    ) -> None:
        super().__init__(job, workers=workers, concurrency=concurrency)
        self._lease_s = lease_s
        self.pids: set[int] = set()
        """The processes at work."""

    def make_worker(self) -> ShardWorker:
        """Begin to start a process."""
        return _ProcessWorker(self.job, self.concurrency, self._lease_s, self.pids)


class _ProcessWorker:
    def __init__(self, job: Job, concurrency: int, lease_s: float, pids: set[int]) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=work, args=(theirs, encode_kept(job), concurrency), daemon=True
        )
        with _block_interrupts():
            self._process.start()
        theirs.close()
        self._lease_s = lease_s
        self._pids = pids
        self._pids.add(self._process.pid or 0)
        self._inbox: asyncio.Queue[WorkerMessage | None] = asyncio.Queue()
        listener = threading.Thread(
            target=_listen,
            args=(self._connection, asyncio.get_running_loop(), self._inbox),
            daemon=True,
        )
        listener.start()

    async def start(self) -> None:
        while not isinstance(await self._receive(_LEASE_S), Ready):
            pass

    async def run(self, shard: Sequence[Unit]) -> AsyncIterator[WorkerNews]:
        self._send(RunShard(shard))
        while True:
            message = await self._receive(self._lease_s)
            if isinstance(message, Began | Finished):
                yield message
            elif isinstance(message, ShardOver):
                return

    async def _receive(self, patience_s: float) -> WorkerMessage:
        """Wait for what the worker says next."""
        try:
            async with asyncio.timeout(patience_s):
                message = await self._inbox.get()
        except TimeoutError:
            raise WorkerDiedError from None
        if message is None:
            raise WorkerDiedError
        if isinstance(message, Failed):
            raise message.as_error()
        return message

    def drain(self) -> None:
        self._send(Drain())

    async def stop(self) -> None:
        self._send(Leave())
        await asyncio.to_thread(self._process.join, _LEAVE_S)
        if self._process.is_alive():
            self._process.kill()
            await asyncio.to_thread(self._process.join)
        self._pids.discard(self._process.pid or 0)
        self._connection.close()
        self._process.close()

    def _send(self, order: Any) -> None:
        try:
            self._connection.send_bytes(encode_kept(order))
        except OSError:
            pass  # it is gone; whoever reads from it finds out


def _listen(
    connection: Connection,
    loop: asyncio.AbstractEventLoop,
    inbox: "asyncio.Queue[WorkerMessage | None]",
) -> None:
    """Pass on what a worker says, from a thread of its own; None is its end."""
    message: WorkerMessage | None = None
    while True:
        try:
            message = unpack(connection.recv_bytes(), WorkerMessage)
        except (EOFError, OSError):
            message = None
        try:
            loop.call_soon_threadsafe(inbox.put_nowait, message)
        except RuntimeError:  # the loop has ended, and with it the interest
            return
        if message is None:
            return


@contextmanager
def _block_interrupts() -> Generator[None]:
    """Let a process that is started here never see Ctrl-C; this one sees it afterwards."""
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    before = mask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)
