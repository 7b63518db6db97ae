"""Background tasks that are started again when they die."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from surecall.base.redaction import open_log

from .log import explain

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
