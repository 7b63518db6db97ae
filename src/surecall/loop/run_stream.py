"""The events of a run as an async iterator."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from surecall.records import Event

from .result import RunResult

__all__ = ["RunStream"]


class RunStream:
    """The events of one run, as they happen; `result` is there when they have ended.

    Leaving the loop early, or `aclose()`, cancels the run.
    """

    def __init__(self, start: Callable[[Callable[[Event], object]], Awaitable[RunResult]]) -> None:
        self._start = start
        self._result: RunResult | None = None
        # Only the loop over the events keeps them alive: leaving it closes them.
        self._events: weakref.ref[AsyncGenerator[Event, None]] | None = None

    @property
    def result(self) -> RunResult:
        """What the run returned."""
        if self._result is None:
            raise RuntimeError("the run has not ended; iterate over all its events first")
        return self._result

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._events is None:
            events = self._iterate()
            self._events = weakref.ref(events)
            return events
        events = self._events()
        if events is None:
            raise RuntimeError("the events of a run can be iterated over only once")
        return events

    async def aclose(self) -> None:
        """Stop the run if it is still going."""
        events = self._events() if self._events is not None else None
        if events is not None:
            await events.aclose()

    async def _iterate(self) -> AsyncGenerator[Event, None]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._start(queue.put_nowait))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            self._result = await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
