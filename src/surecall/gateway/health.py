"""How an upstream does: whether it only fails, and whether it is left alone for a moment."""

import time
from collections.abc import Callable
from typing import Final

from surecall.base.errors import (
    ProviderConnectionError,
    ProviderError,
    ProviderStatusError,
    ProviderTimeoutError,
    SurecallError,
)
from surecall.base.redaction import open_log

_log = open_log("surecall.gateway")
_DOWN_FAILURES: Final = 3
_WINDOW_S: Final = 5.0
OPEN_S: Final = 2.0
_MIN_FAILURES: Final = 20
_MIN_SHARE: Final = 0.8


class Breaker:
    """Stops asking an upstream that only fails, and tries one request now and then.

    It opens when twenty requests failed within five seconds and they were most of all; two
    seconds later one request is let through, and closes it when it succeeds.
    """

    __slots__ = ("_clock", "_failed", "_opened_at", "_passed", "_since", "_trying")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = 0.0
        self._passed = 0
        self._failed = 0
        self._opened_at: float | None = None
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether requests are refused at the moment."""
        if self._opened_at is None:
            return False
        return self._trying or self._clock() - self._opened_at < OPEN_S

    def begin(self) -> bool:
        """Tell whether a request may be made; the first after a pause is a trial."""
        if self._opened_at is None:
            return True
        if self.is_open:
            return False
        self._trying = True
        return True

    def note(self, *, failed: bool) -> None:
        """Note how a request ended."""
        if self._opened_at is not None:
            self._trying = False
            if failed:
                self._opened_at = self._clock()
            else:
                self._opened_at = None
                self._passed = self._failed = 0
            return
        if not failed:
            self._passed += 1
            if not self._failed:
                return
        now = self._clock()
        if now - self._since > _WINDOW_S:
            self._since, self._passed, self._failed = now, 0, 0
        if failed:
            self._failed += 1
            share = self._failed / (self._failed + self._passed)
            if self._failed >= _MIN_FAILURES and share >= _MIN_SHARE:
                self._opened_at = now

    def release(self) -> None:
        """Note that a request ended without saying anything about the upstream."""
        self._trying = False


class Health:
    """Whether an upstream only fails: down after three failures in a row, until it answers.

        health.note(ProviderTimeoutError(Code.CONNECT_TIMEOUT, "…"))
        health.is_down  # False: it was the first

    Args:
        name: What the log calls it.
        has_own_key: Whether the gateway has a key for it, so that a refused key is a failure.
    """

    def __init__(self, name: str, *, has_own_key: bool) -> None:
        self._name = name
        self._has_own_key = has_own_key
        self.failures = 0
        """In a row, without an answer in between."""
        self.since = 0.0
        """When the first of them was, in seconds since 1970."""
        self.code = ""

    @property
    def is_down(self) -> bool:
        """Whether it has only failed for some time."""
        return self.failures >= _DOWN_FAILURES

    def note(self, error: SurecallError | None) -> bool:
        """Note how an attempt ended; tell whether it failed, as by no error of the client's own."""
        if error is None or not self._is_failure(error):
            if self.failures:
                if self.is_down:
                    _log.warning("The upstream %s answers again.", self._name)
                self.failures = 0
            return False
        if not self.failures:
            self.since = time.time()
        self.failures += 1
        self.code = str(error.code)
        if self.failures == _DOWN_FAILURES:
            _log.error(
                "The upstream %s is down: %d requests in a row failed, the last with %s.",
                self._name,
                self.failures,
                error.code,
            )
        return True

    def _is_failure(self, error: SurecallError) -> bool:
        if isinstance(error, ProviderConnectionError | ProviderTimeoutError):
            return True
        if isinstance(error, ProviderStatusError):
            status = error.status or 0
            return status >= 500 or (status in {401, 403} and self._has_own_key)
        return isinstance(error, ProviderError)  # its reply cannot be read
