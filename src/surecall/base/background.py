"""Work that does not hold up the event loop: code of others in a task, long text in a thread.

A coroutine may swallow its cancellation, and whoever awaits it directly is not cancelled either.
One that runs apart is cancelled, given a moment, and then left behind: it stays referenced until
it ends, what it returns late is dropped, and the end of the event loop does not wait for it.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, TypeVar, cast

from surecall.base.errors import explain
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.redaction import open_log

__all__ = ["Outcome", "Supervised", "is_long", "read_in_thread", "run_at_once", "run_bounded"]

_T = TypeVar("_T")

_log = open_log("surecall.background")
_AGAIN_S: Final = 1.0
_GRACE_S: Final = 1.0
_CHARACTERS_PER_VALUE: Final = 64
_at_once: Final[ContextVar[bool]] = ContextVar("at_once", default=False)


class Outcome(NamedTuple):
    """The result of a function, or its exception."""

    value: Any
    error: BaseException | None


class _Task(asyncio.Task[Outcome]):
    """A task that may be left behind, so that its end is nothing to complain about."""

    def __del__(self) -> None:
        """Say nothing of a task that never ended; its outcome holds what it raised."""


_left_behind: Final[set[_Task]] = set()


async def run_bounded(
    start: Callable[[], Any], *, what: str, timeout_s: float | None = None
) -> Outcome | None:
    """Call a function, await what it returns, and return how that ended.

    Args:
        start: The function; it may be a coroutine function.
        what: Names the work in the log, should it have to be left behind.
        timeout_s: After so many seconds the work is cancelled, and `None` is returned.

    Raises:
        asyncio.CancelledError: The caller was cancelled; the work has ended or was left behind.
    """
    task = _Task(_capture_outcome(start))
    try:
        await asyncio.wait((task,), timeout=timeout_s)
    except asyncio.CancelledError:
        await _stop(task, what)
        raise
    if not task.done():
        await _stop(task, what)
        return None
    if task.cancelled():  # by itself: nobody else knows this task
        return Outcome(None, asyncio.CancelledError())
    return task.result()


async def read_in_thread(read: Callable[[], _T], *, is_long: bool) -> _T:
    """Return what a function that reads text returns; long text is read in a thread.

    Whoever waits can be cancelled meanwhile: the thread goes on, and what it returns is dropped.
    """
    if not is_long or _at_once.get():
        return read()
    return await asyncio.to_thread(read)


def run_at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """Return what a coroutine returns that waits for nothing but blocking calls of its own.

    No event loop is needed, and one that runs in this thread is not used.
    """
    token = _at_once.set(True)
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    finally:
        _at_once.reset(token)
        work.close()
    raise RuntimeError("the work waits for an event loop")


def is_long(value: Any) -> bool:
    """Tell whether plain data has much text, or so many values that they take as long to read."""
    left = MAX_INLINE_CHARACTERS
    waiting: list[Any] = [value]
    for item in waiting:  # grows while it is walked through
        left -= _CHARACTERS_PER_VALUE
        kind = item.__class__
        if kind is str:
            left -= len(item)
        elif kind is dict:
            waiting += item
            waiting += item.values()
        elif kind is list:
            waiting += item
        if left < 0:
            return True
    return False


async def _capture_outcome(start: Callable[[], Any]) -> Outcome:
    try:
        value = start()
        if inspect.isawaitable(value):
            value = await value
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Outcome(None, error)
    except BaseException as error:  # whoever waits decides what to raise
        return Outcome(None, error)
    return Outcome(value, None)


async def _stop(task: _Task, what: str) -> None:
    """Cancel the task and wait a moment for its end; leave it behind when it does not end."""
    task.cancel()
    try:
        await asyncio.wait((task,), timeout=_GRACE_S)
    finally:
        if not task.done():
            _leave(task, what)


def _leave(task: _Task, what: str) -> None:
    _log.warning("%s did not end when it was cancelled; it is left running", what)
    _left_behind.add(task)
    task.add_done_callback(_drop)
    asyncio._unregister_task(task)  # pyright: ignore - the loop would wait for it at its end


def _drop(task: "asyncio.Future[Outcome]") -> None:
    _left_behind.discard(cast("_Task", task))
    _log.info("abandoned work has ended; its result is dropped")


class Supervised:
    """Work in the background: if it dies, that is logged and counted, and it is started again.

        pruning = Supervised("removing old requests", prune_regularly, count)
        pruning.start()

    Args:
        name: Its name in the log.
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
