"""The events of a run as an async iterator."""

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from surecall.records import Event, ReasoningDelta, TextDelta

from .result import RunResult

__all__ = ["RunStream"]

_MANY_EVENTS: Final = 256
_MAX_JOINED_CHARS: Final = 4096


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
        waiting = _WaitingEvents()
        task = asyncio.ensure_future(self._start(waiting.put))
        task.add_done_callback(lambda _: waiting.put(None))
        try:
            while (event := await waiting.get()) is not None:
                yield event
            self._result = await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class _WaitingEvents:
    """Events that nobody has read yet; when there are many, pieces of text are joined.

    So a reader that is slower than the model holds little more than the text it has not read.
    """

    def __init__(self) -> None:
        self._events: deque[Event | None] = deque()
        self._arrived = asyncio.Event()

    def put(self, event: Event | None) -> None:
        last = self._events[-1] if len(self._events) >= _MANY_EVENTS else None
        if (
            isinstance(event, TextDelta | ReasoningDelta)
            and isinstance(last, TextDelta | ReasoningDelta)
            and (type(event), event.turn) == (type(last), last.turn)
            and len(last.text) < _MAX_JOINED_CHARS
        ):
            self._events[-1] = replace(last, text=last.text + event.text)
        else:
            self._events.append(event)
        self._arrived.set()

    async def get(self) -> Event | None:
        while not self._events:
            self._arrived.clear()
            await self._arrived.wait()
        return self._events.popleft()
