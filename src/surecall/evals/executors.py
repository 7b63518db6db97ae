"""Where trials run: in this process, in several, or on a Ray cluster.

executor = ProcessExecutor(experiment.job, workers=4)
await executor.run(experiment.matrix.units, deliver)
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import Code, ConfigError, SurecallError

from .jobs import Finished, Job, RunUnit, open_job
from .records import TrialBody, TrialRow, Unit

DEFAULT_CONCURRENCY: Final = 8
"""Trials at once at each provider."""
MAX_DEATHS: Final = 3
"""How many workers one trial may take with it before it is given up."""
_LEAVE_S: Final = 2.0

Deliver = Callable[[Finished], Awaitable[None]]
"""Takes a finished trial; waits while too many have not been kept yet."""


class Executor(Protocol):
    """Runs units somewhere and delivers what becomes of them, in whatever order they end."""

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once; cancelling stops at once what is under way."""
        ...

    def drain(self) -> None:
        """Begin nothing more; `run` returns when what is under way has been delivered."""
        ...


class LocalExecutor:
    """Runs everything in this process, side by side up to what each provider takes.

    await LocalExecutor(job, concurrency=4).run(units, deliver)
    """

    def __init__(self, job: Job, *, concurrency: int = DEFAULT_CONCURRENCY) -> None:
        self.job = job
        self.concurrency = max(concurrency, 1)
        self._is_draining = False

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once."""
        if self._is_draining or not units:
            return
        lanes: dict[str, deque[Unit]] = {}
        limits: dict[str, int] = {}
        for unit in units:
            lane = self.job.lane_of(unit)
            lanes.setdefault(lane.name, deque()).append(unit)
            limits[lane.name] = min(lane.max_concurrency or self.concurrency, self.concurrency)
        async with self.open_units() as run_unit:
            try:
                async with asyncio.TaskGroup() as group:
                    for name, waiting in lanes.items():
                        for _ in range(min(limits[name], len(waiting))):
                            group.create_task(self._work_off(waiting, run_unit, deliver))
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None

    def drain(self) -> None:
        """Begin nothing more; what is under way is delivered."""
        self._is_draining = True

    def open_units(self) -> AbstractAsyncContextManager[RunUnit]:
        """Set up whatever runs a unit."""
        return open_job(self.job)

    async def _work_off(self, waiting: deque[Unit], run_unit: RunUnit, deliver: Deliver) -> None:
        """Run one unit after the other; the next waits until this one has been taken."""
        while waiting and not self._is_draining:
            await deliver(await run_unit(waiting.popleft()))


# several workers


class WorkerDiedError(Exception):
    """A worker is gone; what it had not finished must be run elsewhere."""


class Failed(Struct, frozen=True):
    """Why a worker cannot work at all, in a form that can be sent."""

    code: str
    message: str
    hint: str | None = None

    @classmethod
    def of(cls, error: BaseException) -> "Failed":
        """Describe an error."""
        if isinstance(error, SurecallError):
            return cls(error.code, error.message, error.hint)
        return cls(Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}")

    def as_error(self) -> ConfigError:
        """Return it as an error that can be raised."""
        return ConfigError(self.code, self.message, hint=self.hint)


class Worker(Protocol):
    """One process somewhere, with one event loop; whatever it cannot do because it died raises."""

    is_dead: bool

    @property
    def under_way(self) -> int:
        """How many units it has."""
        ...

    async def start(self) -> None:
        """Wait until the job is open."""
        ...

    async def run(self, unit: Unit) -> Finished:
        """Run a unit."""
        ...

    async def stop(self) -> None:
        """End the worker, whatever it is doing."""
        ...


class _WorkersExecutor(LocalExecutor):
    """Spreads units over workers; one that dies is replaced.

    A unit that was under way in it runs again in a worker that has no other, so that it takes none
    with it and the blame is certain.
    """

    def __init__(
        self, job: Job, *, workers: int | None = None, concurrency: int = DEFAULT_CONCURRENCY
    ) -> None:
        super().__init__(job, concurrency=concurrency)
        self.workers = max(workers or _count_cores(), 1)
        self._slots: list[asyncio.Task[Worker] | None] = []
        self._open: set[Worker] = set()
        self._alone = asyncio.Lock()
        self._spare: Worker | None = None
        """For one unit at a time, as long as there is one that a worker died with."""
        self._suspects = 0

    @abstractmethod
    def make_worker(self) -> Worker:
        """Begin to start a worker."""

    @asynccontextmanager
    async def open_units(self) -> AsyncGenerator[RunUnit, None]:
        """Have workers, each begun when there is something for it."""
        self._slots = [None] * self.workers
        try:
            yield self._run_unit
        finally:
            starting = [slot for slot in self._slots if slot is not None]
            for slot in starting:
                slot.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
            await asyncio.gather(*map(self._stop, tuple(self._open)))

    async def _run_unit(self, unit: Unit) -> Finished:
        worker = await self._find_worker()
        try:
            return await worker.run(unit)
        except WorkerDiedError:
            await self._stop(worker)
        self._suspects += 1
        try:
            return await self._run_alone(unit)
        finally:
            self._suspects -= 1
            if self._spare is not None and not self._suspects:
                spare, self._spare = self._spare, None
                await self._stop(spare)

    async def _run_alone(self, unit: Unit) -> Finished:
        for _ in range(1, MAX_DEATHS):
            async with self._alone:
                worker = self._spare = self._spare or await self._start_worker()
                try:
                    return await worker.run(unit)
                except WorkerDiedError:
                    self._spare = None
                    await self._stop(worker)
        return lost_trial(unit)

    async def _find_worker(self) -> Worker:
        """Return the worker with the least to do."""
        while True:
            place = min(range(self.workers), key=self._count_work)
            slot = self._slots[place]
            if slot is None or (slot.done() and (slot.exception() or slot.result().is_dead)):
                slot = self._slots[place] = asyncio.create_task(self._start_worker())
            worker = await asyncio.shield(slot)
            if not worker.is_dead:
                return worker

    def _count_work(self, place: int) -> int:
        slot = self._slots[place]
        is_there = slot is not None and slot.done() and not slot.exception()
        return slot.result().under_way if slot is not None and is_there else 0

    async def _start_worker(self) -> Worker:
        for _ in range(MAX_DEATHS):
            worker = self.make_worker()
            self._open.add(worker)
            try:
                await worker.start()
            except WorkerDiedError:
                await self._stop(worker)
                continue
            return worker
        raise ConfigError(
            Code.WORKER_LOST,
            f"{MAX_DEATHS} workers died before they could begin.",
            hint="Run with --engine local to see why.",
        )

    async def _stop(self, worker: Worker) -> None:
        if worker in self._open:
            self._open.discard(worker)
            await worker.stop()


def _count_cores() -> int:
    """Return how many processors this process may use."""
    count = getattr(os, "sched_getaffinity", None)
    return len(count(0)) if count is not None else os.cpu_count() or 1


def lost_trial(unit: Unit) -> Finished:
    """Record a unit that kills whatever runs it."""
    row = TrialRow(
        **asdict(unit),
        original_ok=False,
        strict_ok=False,
        outcome="error",
        category="EXCEPTION",
        code=Code.WORKER_LOST,
        error=f"The process that ran this trial died {MAX_DEATHS} times.",
    )
    return Finished(row, TrialBody(index=unit.index))


# processes of this machine


class ProcessExecutor(_WorkersExecutor):
    """Runs units in processes of this machine.

    await ProcessExecutor(job, workers=4).run(units, deliver)
    """

    @property
    def pids(self) -> set[int]:
        """The processes at work."""
        return {worker.pid for worker in self._open if isinstance(worker, _ProcessWorker)}

    def make_worker(self) -> Worker:
        """Begin to start a process."""
        return _ProcessWorker(self.job)


class _ProcessWorker:
    """A process, and what it was given; it sends None once it is ready."""

    def __init__(self, job: Job) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, job), daemon=True)
        with _block_interrupts():
            self._process.start()
        theirs.close()
        self.pid = self._process.pid or 0
        self.is_dead = False
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._waiting: dict[int, asyncio.Future[Finished]] = {}
        listener = threading.Thread(
            target=_listen, args=(self._connection, loop, self._note), daemon=True
        )
        listener.start()

    @property
    def under_way(self) -> int:
        return len(self._waiting)

    async def start(self) -> None:
        await self._ready

    async def run(self, unit: Unit) -> Finished:
        if self.is_dead:
            raise WorkerDiedError
        future = self._waiting[unit.index] = asyncio.get_running_loop().create_future()
        with suppress(OSError):  # it is gone; whoever reads from it finds out
            self._connection.send(unit)
        try:
            return await future
        finally:
            self._waiting.pop(unit.index, None)

    async def stop(self) -> None:
        self.is_dead = True
        with suppress(OSError):
            self._connection.send(None)
        await asyncio.to_thread(self._process.join, _LEAVE_S)
        if self._process.is_alive():
            self._process.kill()
            await asyncio.to_thread(self._process.join)
        self._connection.close()
        self._process.close()

    def _note(self, message: Finished | Failed | EOFError | None) -> None:
        """Give what the process says to whoever waits for it."""
        if isinstance(message, Finished):
            future = self._waiting.get(message.row.index)
            if future is not None and not future.done():
                future.set_result(message)
            return
        if message is None:
            if not self._ready.done():
                self._ready.set_result(None)
            return
        self.is_dead = True
        for future in (self._ready, *self._waiting.values()):
            if not future.done():
                is_end = isinstance(message, EOFError)
                future.set_exception(WorkerDiedError() if is_end else message.as_error())
                future.exception()  # nobody may be waiting any more


def _listen(
    connection: Connection, loop: asyncio.AbstractEventLoop, note: Callable[[Any], None]
) -> None:
    """Pass on what the other side says, from a thread of its own; an `EOFError` is its end."""
    while True:
        message: Any
        try:
            message = connection.recv()
        except (EOFError, OSError):
            message = EOFError()
        try:
            loop.call_soon_threadsafe(note, message)
        except RuntimeError:  # the loop has ended, and with it the interest
            return
        if isinstance(message, EOFError):
            return


def _work(connection: Connection, job: Job) -> None:
    """Run what is sent until asked to leave, or until nobody is there to ask."""
    # Ctrl-C reaches all processes of a terminal; the main one decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_take_orders(connection, job))
    connection.close()


async def _take_orders(connection: Connection, job: Job) -> None:
    orders: asyncio.Queue[Any] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    listener = threading.Thread(
        target=_listen, args=(connection, loop, orders.put_nowait), daemon=True
    )
    listener.start()

    def send(message: Any) -> None:
        try:
            connection.send(message)
        except OSError:
            os._exit(1)  # nobody listens any more

    try:
        async with open_job(job) as run_unit:
            running: set[asyncio.Task[None]] = set()

            async def run(unit: Unit) -> None:
                try:
                    send(await run_unit(unit))
                except Exception as error:
                    send(Failed.of(error))

            send(None)
            while isinstance(order := await orders.get(), Unit):
                task = asyncio.create_task(run(order))
                running.add(task)
                task.add_done_callback(running.discard)
            if isinstance(order, EOFError):
                os._exit(1)  # the main process is gone
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    except Exception as error:
        send(Failed.of(error))


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


# a Ray cluster


class RayExecutor(_WorkersExecutor):
    """Runs units on a Ray cluster.

    await RayExecutor(job, address="ray://host:10001").run(units, deliver)
    """

    def __init__(self, job: Job, *, address: str | None = None, **arguments: Any) -> None:
        super().__init__(job, **arguments)
        self._address = address

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once."""
        if units:
            with connect_cluster(self._address):
                await super().run(units, deliver)

    def make_worker(self) -> Worker:
        """Begin to start an actor somewhere on the cluster."""
        return _RayWorker(load_ray(), self.job)


class _RayWorker:
    """An actor, and how much it has to do."""

    def __init__(self, ray: Any, job: Job) -> None:
        self._ray = ray
        self._actor: Any = ray.remote(RayTrials).options(num_cpus=1, max_restarts=0).remote(job)
        self._under_way = 0
        self.is_dead = False

    @property
    def under_way(self) -> int:
        return self._under_way

    async def start(self) -> None:
        await self._ask(self._actor.open.remote())

    async def run(self, unit: Unit) -> Finished:
        self._under_way += 1
        try:
            return await self._ask(self._actor.run.remote(unit))
        finally:
            self._under_way -= 1

    async def stop(self) -> None:
        self.is_dead = True
        self._ray.kill(self._actor)

    async def _ask(self, reference: Any) -> Any:
        try:
            answer = await reference
        except self._ray.exceptions.RayActorError as error:
            self.is_dead = True
            raise WorkerDiedError from error
        if isinstance(answer, Failed):
            raise answer.as_error()
        return answer


class RayTrials:
    """What runs on the cluster."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._run_unit: RunUnit | None = None

    async def open(self) -> Failed | None:
        """Open the job, or say why it cannot be opened."""
        try:
            self._run_unit = await open_job(self._job).__aenter__()
        except Exception as error:
            return Failed.of(error)
        return None

    async def run(self, unit: Unit) -> Finished | Failed:
        """Run a unit."""
        assert self._run_unit is not None
        try:
            return await self._run_unit(unit)
        except Exception as error:
            return Failed.of(error)


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
