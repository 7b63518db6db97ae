"""The events of a run as an async iterator."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

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
        self._events: AsyncIterator[Event] | None = None

    @property
    def result(self) -> RunResult:
        """What the run returned."""
        if self._result is None:
            raise RuntimeError("the run has not ended; iterate over all its events first")
        return self._result

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._events is None:
            self._events = self._iterate()
        return self._events

    async def aclose(self) -> None:
        """Stop the run if it is still going."""
        close: Any = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    async def _iterate(self) -> AsyncIterator[Event]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._start(queue.put_nowait))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            self._result = await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
