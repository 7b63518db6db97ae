"""How much is done: so many requests at once, and as much for a key as it may still use.

Budgets of keys are taken from the common ledger in shares, and spent without waiting.

Requests are taken before they are made, so that there are never more than the limit. Tokens are
only known when a request is over: those of the requests under way may go beyond it.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Final

from surecall.base.errors import Code, ProviderStatusError, StoreError, explain
from surecall.base.redaction import open_log
from surecall.store.records.ledger import Ledger, MemoryLedger, Window


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


class RecentFailures:
    """Which requests have just failed: whoever repeats one retries without the gateway's help.

    >>> failures = RecentFailures()
    >>> failures.note("key", b"{}")
    >>> failures.take("key", b"{}"), failures.take("key", b"{}")
    (True, False)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed_at: OrderedDict[tuple[str, bytes], float] = OrderedDict()

    def note(self, whose: str, body: bytes) -> None:
        """Note a request that failed."""
        self._failed_at[whose, _digest(body)] = self._clock()
        if len(self._failed_at) > _MAX_FAILURES:
            self._failed_at.popitem(last=False)

    def take(self, whose: str, body: bytes) -> bool:
        """Tell whether a request has just failed, and forget that it has."""
        if not self._failed_at:
            return False
        failed_at = self._failed_at.pop((whose, _digest(body)), None)
        return failed_at is not None and self._clock() - failed_at < _REPEATED_WITHIN_S


def _digest(body: bytes) -> bytes:
    """Return what stands for a body; of a long one its beginning and its end count."""
    ends = (
        body
        if len(body) <= 2 * _DIGESTED_BYTES
        else body[:_DIGESTED_BYTES] + body[-_DIGESTED_BYTES:]
    )
    return blake2b(b"%d:%b" % (len(body), ends), digest_size=16).digest()


_MAX_FAILURES: Final = 1000
_REPEATED_WITHIN_S: Final = 60.0
"""The longest wait of most clients between two tries."""
_DIGESTED_BYTES: Final = 64 * 1024

SHARE: Final = 50
"""A process takes one part of so many of a limit at a time."""
_MAX_REQUESTS: Final = 100
_FLUSH_S: Final = 0.25
_IDLE_S: Final = 5.0

_SLEW_S: Final = 1.0
"""How much a clock may be put right at once without being taken for set."""
_BELIEVED_AFTER_S: Final = 600.0

_log = open_log("surecall.gateway")


def _tick() -> float:
    """Return seconds that only go on, also while the machine sleeps, where it can tell."""
    boot: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


def share_of(window: Window, limit: int) -> int:
    """Return how much a process takes at a time."""
    share = max(1, limit // SHARE)
    return min(share, _MAX_REQUESTS) if window.resource == "requests" else share


class SteadyClock:
    """The time of day, going on evenly: a clock that is set begins no new day or minute.

    A time that differs is believed once the clock has kept it for ten minutes.

    Args:
        wall: Seconds since 1970, which somebody may set.
        ticks: Seconds that only go on.
    """

    __slots__ = ("_ahead_s", "_claimed_s", "_since", "_ticks", "_wall")

    def __init__(
        self, wall: Callable[[], float] = time.time, ticks: Callable[[], float] = _tick
    ) -> None:
        self._wall = wall
        self._ticks = ticks
        self._ahead_s = wall() - ticks()
        self._claimed_s = self._ahead_s
        """How far the clock is ahead by what it says now."""
        self._since = 0.0

    def now(self) -> float:
        """Return the seconds since 1970."""
        ticks = self._ticks()
        ahead_s = self._wall() - ticks
        if abs(ahead_s - self._ahead_s) <= _SLEW_S:
            self._ahead_s = self._claimed_s = ahead_s
        elif abs(ahead_s - self._claimed_s) > _SLEW_S:
            self._claimed_s, self._since = ahead_s, ticks
        elif ticks - self._since >= _BELIEVED_AFTER_S:
            self._ahead_s = ahead_s
        return ticks + self._ahead_s


class _Account:
    """What this process has of one window."""

    __slots__ = ("is_empty_until_s", "left", "limit", "lock", "used_at_s")

    def __init__(self) -> None:
        self.left = 0
        """Taken and not used yet; below zero is used and not counted yet."""
        self.limit = 0
        self.lock = asyncio.Lock()
        self.used_at_s = 0.0
        self.is_empty_until_s = 0.0


class Budgets:
    """The shares of one process.

    Args:
        ledger: Where processes count together; by default this one counts for itself.
        clock: What says which day and minute it is.
    """

    def __init__(self, ledger: Ledger | None = None, clock: SteadyClock | None = None) -> None:
        self.clock = clock or SteadyClock()
        self._ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self._accounts: dict[Window, _Account] = {}
        self._task: asyncio.Task[None] | None = None

    def has(self, window: Window) -> bool:
        """Tell whether something is left of the share that this process has."""
        account = self._accounts.get(window)
        return account is not None and account.left > 0

    def spend(self, window: Window, amount: int) -> None:
        """Use something; more than the share becomes a debt."""
        account = self._accounts.get(window)
        if account is None:
            account = self._accounts[window] = _Account()
        account.left -= amount
        account.used_at_s = time.monotonic()

    async def refill(self, window: Window, limit: int) -> bool:
        """Take another share of a limit; tell whether there was one.

        Raises:
            ProviderStatusError: `OVERLOADED`: nobody knows at the moment.
        """
        account = self._accounts.get(window)
        if account is None:
            account = self._accounts[window] = _Account()
        async with account.lock:
            if account.left > 0:
                return True
            if account.is_empty_until_s > time.monotonic():
                return False
            account.limit = limit
            if not await self._take(window, account, share_of(window, limit)):
                raise overloaded("The budget of the key cannot be checked at the moment.")
            if account.left <= 0:
                account.is_empty_until_s = time.monotonic() + _FLUSH_S
            return account.left > 0

    async def _take(self, window: Window, account: _Account, amount: int) -> bool:
        """Count what is owed and take an amount; tell whether the ledger could be reached."""
        owed, account.left = -account.left, 0
        try:
            account.left += await self._ledger.take(window, account.limit, amount, owed)
        except StoreError as error:
            account.left -= owed
            _log.warning("Budgets cannot be counted: %s", explain(error))
            return False
        return True

    async def open(self) -> None:
        """Begin to count debts regularly, and to give back what is not used."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Count everything that is owed, and give the rest back."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.flush(idle_s=0.0)
        await self._ledger.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_S)
            await self.flush()

    async def flush(self, *, idle_s: float = _IDLE_S) -> None:
        """Count debts, give shares back that nobody uses, and forget windows that are over."""
        now, now_s = self.clock.now(), time.monotonic()
        for window, account in list(self._accounts.items()):
            is_idle = account.left > 0 and now_s - account.used_at_s >= idle_s
            if account.left < 0 or (is_idle and window.end > now):
                async with account.lock:
                    if account.left:
                        await self._take(window, account, 0)
            if window.end <= now and account.left >= 0:
                del self._accounts[window]
