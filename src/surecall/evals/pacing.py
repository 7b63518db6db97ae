"""How fast an endpoint is asked: as fast as it answers, and slower each time it refuses.

A refusal that passes, such as a status of 429 or 503, is waited out and not given to the trial.
All trials that ask one endpoint share its pace. It falls by a factor with a refusal and rises by
a constant with time (AIMD). The time that a request waits is not the trial's own.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, TypeVar

from msgspec.structs import replace

from surecall.base.errors import ProviderError
from surecall.base.records import WireReply, WireRequest
from surecall.loop import pause_deadline
from surecall.models.transport import Transport, WireStream

T = TypeVar("T")

MAX_WAIT_S: Final = 300.0
"""How long a request that is refused again and again is waited for."""
_REFUSALS: Final = frozenset({429, 503, 529})
_BACK_OFF: Final = 0.7
_MIN_RATE: Final = 1 / 30
_RISE: Final = 0.1
"""Requests a second that are added in a second, or the share of the fastest pace below."""
_RISE_SHARE: Final = 0.01
_WINDOW_S: Final = 1.0


def is_pressed(error: ProviderError) -> bool:
    """Tell whether an endpoint refused because it was asked too much, and may be asked again."""
    return error.retryable and error.status in _REFUSALS


class Pace:
    """How fast one endpoint may be asked; without a limit until it refuses."""

    def __init__(self, max_wait_s: float = MAX_WAIT_S) -> None:
        self.rate: float | None = None
        """Requests a second."""
        self._max_wait_s = max_wait_s
        self._fastest = 0.0
        self._next_at = 0.0
        self._lowered_at = 0.0
        self._silent_since: float | None = None
        self._asked: deque[float] = deque()
        self._turn = asyncio.Lock()

    async def ask(self, attempt: Callable[[], Awaitable[T]]) -> tuple[T, int, float]:
        """Ask until there is an answer; return it, the attempts before it and the time waited.

        Raises:
            ProviderError: It is no refusal that passes, or waiting took too long.
        """
        arrived, refused_at, refusals, waited_s = time.monotonic(), 0.0, 0, 0.0
        while True:
            with pause_deadline():
                await self._take_turn()
            began = time.monotonic()
            waited_s += began - arrived
            try:
                answer = await attempt()
            except ProviderError as error:
                if not is_pressed(error):
                    self._note_answer()
                    raise
                arrived = time.monotonic()
                refused_at, refusals = refused_at or arrived, refusals + error.attempts
                self._note_refusal(began, error.retry_after_s or 0.0)
                self._check_patience(error, arrived - refused_at)
            else:
                self._note_answer()
                return answer, refusals, waited_s

    async def _take_turn(self) -> None:
        if self.rate is not None and not self._is_hopeless():
            async with self._turn:
                while (left := self._next_at - time.monotonic()) > 0:
                    if self._is_hopeless():
                        break
                    await asyncio.sleep(left)
                self._next_at = time.monotonic() + 1 / self.rate
        now = time.monotonic()
        self._asked.append(now)
        while self._asked[0] < now - _WINDOW_S:
            self._asked.popleft()

    def _is_hopeless(self) -> bool:
        """Tell whether the endpoint has refused everything for longer than anybody waits."""
        since = self._silent_since
        return since is not None and time.monotonic() - since > self._max_wait_s

    def _note_answer(self) -> None:
        self._silent_since = None
        if self.rate is not None:
            self.rate += max(_RISE, _RISE_SHARE * self._fastest) / self.rate

    def _note_refusal(self, began: float, retry_after_s: float) -> None:
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if began >= self._lowered_at:  # what was asked before tells of the same moment
            if self.rate is None:
                self.rate = self._fastest = max(1.0, len(self._asked) / _WINDOW_S)
            self.rate = max(_MIN_RATE, self.rate * _BACK_OFF)
            self._lowered_at = now
        if retry_after_s <= self._max_wait_s:
            self._next_at = max(self._next_at, now + retry_after_s)

    def _check_patience(self, error: ProviderError, refused_s: float) -> None:
        """Raise the refusal, and say how long it was waited for, once that is too long."""
        asked_s = error.retry_after_s or 0.0
        if refused_s + asked_s <= self._max_wait_s and not self._is_hopeless():
            return
        since = self._silent_since or time.monotonic()
        shown_s = max(refused_s, time.monotonic() - since)
        words = (
            f"It asks to wait {asked_s:g} s; --max-wait allows {self._max_wait_s:g} s."
            if asked_s > self._max_wait_s
            else f"It refused for {shown_s:.0f} s, also at {self.rate or 0:.2g} requests a second; "
            f"--max-wait allows {self._max_wait_s:g} s."
        )
        error.hint = f"{error.hint} {words}" if error.hint else words
        raise error


class PacedTransport:
    """Asks an endpoint at its pace, and counts how long a trial waited for it."""

    def __init__(self, inner: Transport, pace: Pace) -> None:
        self._inner = inner
        self._pace = pace
        self.waited_s = 0.0

    async def send(self, request: WireRequest) -> WireReply:
        """Send a request when it is its turn."""
        reply, refusals, waited_s = await self._pace.ask(lambda: self._inner.send(request))
        self.waited_s += waited_s
        return replace(reply, attempts=reply.attempts + refusals) if refusals else reply

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[WireStream, None]:
        """Open a stream when it is its turn."""
        async with AsyncExitStack() as stack:
            stream, refusals, waited_s = await self._pace.ask(
                lambda: stack.enter_async_context(self._inner.stream(request))
            )
            self.waited_s += waited_s
            stream.attempts += refusals
            yield stream

    async def aclose(self) -> None:
        """Close nothing: the transport inside belongs to whoever opened it."""
