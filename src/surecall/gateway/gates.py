"""How much is done at once: a gate lets so many in, lets some wait, and turns the rest away."""

import asyncio
from collections import deque

from surecall.base.errors import Code, ProviderStatusError


class Gate:
    """Lets a number of requests in at once; a few more wait in line, for a short time.

    Args:
        limit: How many may be inside.
        max_waiting: How many may wait.
        max_wait_s: How long each of them waits.
        what: What is full, in the words of the refusal.
    """

    __slots__ = ("_line", "inside", "limit", "max_wait_s", "max_waiting", "shed", "what")

    def __init__(self, limit: int, max_waiting: int, max_wait_s: float, what: str) -> None:
        self.limit = limit
        self.max_waiting = max_waiting
        self.max_wait_s = max_wait_s
        self.what = what
        self.inside = 0
        self.shed = 0
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._line)

    def try_enter(self) -> bool:
        """Enter if that is possible at once."""
        if self.inside < self.limit and not self._line:
            self.inside += 1
            return True
        return False

    def check_room(self) -> None:
        """Make sure that there is a place, inside or in line.

        Raises:
            ProviderStatusError: `OVERLOADED`: too many wait.
        """
        if self.inside >= self.limit and len(self._line) >= self.max_waiting:
            raise self._refuse()

    async def enter(self) -> None:
        """Enter, or wait for it.

        Raises:
            ProviderStatusError: `OVERLOADED`: too many wait, or it took too long.
        """
        if self.try_enter():
            return
        if len(self._line) >= self.max_waiting:
            raise self._refuse()
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            async with asyncio.timeout(self.max_wait_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                self.leave()  # it was let in just when it gave up
            elif turn in self._line:
                self._line.remove(turn)
            if isinstance(error, TimeoutError):
                raise self._refuse() from None
            raise

    def leave(self) -> None:
        """Leave; whoever waits longest takes the place."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.inside -= 1

    def _refuse(self) -> ProviderStatusError:
        self.shed += 1
        return overloaded(f"{self.what} is busy: {self.inside} requests are under way.")


def overloaded(message: str, retry_after_s: float = 1.0) -> ProviderStatusError:
    """Return the refusal of a request that came at a bad time."""
    return ProviderStatusError(
        Code.OVERLOADED,
        message,
        hint="Try again in a moment, or send less at once.",
        status=503,
        retryable=True,
        retry_after_s=retry_after_s,
    )


class RetryBudget:
    """How many retries may be under way: a share of all requests, and never fewer than a few."""

    __slots__ = ("_floor", "_retries", "_share", "live")

    def __init__(self, share: float, floor: int) -> None:
        self._share = share
        self._floor = floor
        self._retries = 0
        self.live = 0

    def try_begin(self) -> bool:
        """Begin a retry, if one may begin."""
        if self._retries >= max(self._floor, int(self.live * self._share)):
            return False
        self._retries += 1
        return True

    def end(self) -> None:
        """End a retry."""
        self._retries -= 1
