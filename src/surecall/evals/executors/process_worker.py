"""The other side of `processes.py`: one worker process with one event loop."""

import asyncio
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

from surecall.evals.records import Unit

from .base import Finished, RunUnit, open_job
from .local import UnitPool
from .sharded import Began
from .wire import (
    Beat,
    Drain,
    Order,
    Ready,
    RunShard,
    ShardOver,
    failure_of,
    pack,
    unpack_job,
    unpack_order,
)

__all__ = ["BEAT_S", "work"]

BEAT_S: Final = 5.0


def work(connection: Connection, job: bytes, concurrency: int) -> None:
    """Take orders until told to leave, or until nobody is there to give any."""
    # Ctrl-C reaches all processes of a terminal; the main one decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(asyncio.CancelledError):
        asyncio.run(_Worker(connection, job, concurrency).run())
    connection.close()


class _Worker:
    def __init__(self, connection: Connection, job: bytes, concurrency: int) -> None:
        self._connection = connection
        self._job = unpack_job(job)
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
                    await self._pool.run(shard.units, self._told(run_unit), self._deliver)
                    self._send(ShardOver())
        except Exception as error:
            self._send(failure_of(error))
        finally:
            beats.cancel()

    def _told(self, run_unit: RunUnit) -> RunUnit:
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
            self._connection.send_bytes(pack(message))
        except OSError:
            os._exit(1)  # nobody listens any more

    def _listen(self, loop: asyncio.AbstractEventLoop, main: "asyncio.Task[None]") -> None:
        """Pass orders on to the event loop, from a thread of its own."""
        while True:
            try:
                order: Order = unpack_order(self._connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(1)  # the main process is gone
            if isinstance(order, RunShard):
                loop.call_soon_threadsafe(self._orders.put_nowait, order)
            elif isinstance(order, Drain):
                loop.call_soon_threadsafe(self._pool.drain)
            else:
                loop.call_soon_threadsafe(main.cancel)
                return
