"""Background tasks that are started again when they die, and the metrics of several workers."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import msgpack

from surecall.base.files import make_private
from surecall.base.redaction import open_log
from surecall.gateway.log import explain
from surecall.gateway.telemetry import Metrics, SeriesSnapshot

_AGAIN_S: Final = 1.0

_log = open_log("surecall.gateway")


class Supervised:
    """Work in the background: if it dies, that is logged and counted, and it is started again.

        pruning = Supervised("removing old requests", prune_regularly, count)
        pruning.start()

    Args:
        name: What the log calls it.
        work: The work; when it returns, it is over until the next start.
        count: Is called for each death.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        count: Callable[[], object],
    ) -> None:
        self._name = name
        self._work = work
        self._count = count
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None
        self._is_stopped = False

    @property
    def is_running(self) -> bool:
        """Whether the work goes on, or is about to be started again."""
        return self._task is not None or self._again is not None

    def start(self) -> None:
        """Begin, unless it has begun already."""
        self._again = None
        if (self._task is None or self._task.done()) and not self._is_stopped:
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None or self._is_stopped:
            return
        self._count()
        _log.error(
            "The background task of %s failed and is started again: %s", self._name, explain(error)
        )
        self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self.start)

    async def wait(self) -> None:
        """Wait until the work is over; it is not started again from here."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """End the work, for good."""
        self._is_stopped = True
        if self._again is not None:
            self._again.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


_EVERY_S: Final = 1.0
_MAX_AGE_S: Final = 10.0
"""What is older was left by a worker that is no more."""

_Snapshot = tuple[SeriesSnapshot, ...]
_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder(_Snapshot).decode


class WorkerMetrics:
    """Shares the metrics of one worker with the others.

    Args:
        folder: Where workers meet.
        worker: The number of this one.
        metrics: Its own metrics.
    """

    def __init__(self, folder: Path, worker: int, metrics: Metrics) -> None:
        self._folder = folder
        self._path = folder / f"metrics.w{worker}"
        self._metrics = metrics

    async def run(self) -> None:
        """Leave the numbers of this worker, again and again."""
        while True:
            try:
                self.write()
            except OSError as error:
                _log.warning("Metrics cannot be shared through %s: %s", self._path, explain(error))
            await asyncio.sleep(_EVERY_S)

    def write(self) -> None:
        """Leave the numbers of this worker; a reader sees all of them or none."""
        self._folder.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(f"{self._path.suffix}.new")
        make_private(fresh)
        fresh.write_bytes(_encode(self._metrics.snapshot()))
        fresh.replace(self._path)

    def read_others(self) -> Iterable[_Snapshot]:
        """Return the numbers of the other workers, as of a moment ago."""
        found: list[_Snapshot] = []
        for path in self._folder.glob("metrics.w*"):
            if path == self._path or path.suffix == ".new":
                continue
            try:
                if time.time() - path.stat().st_mtime <= _MAX_AGE_S:
                    found.append(_decode(path.read_bytes()))
            except (OSError, msgspec.DecodeError):
                continue
        return found
