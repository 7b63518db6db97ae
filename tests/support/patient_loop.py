"""A clock for event loops that a busy machine cannot hurry.

Deadlines of a test are short, and a machine with other work may take this process off its core for
seconds. Such a pause must not use up a deadline while the answer lies in a socket. So the clock of
a loop counts only what the loop waited for on purpose, and a little for the work of each turn. It
is never ahead of the real clock, so nothing ends too early.
"""

import asyncio
import selectors
import time
from threading import get_ident
from typing import Any, Final

__all__ = ["install"]

_TURN_S: Final = 0.02
"""At most so much counts for the callbacks of one turn; imports and models are built in some."""


class PatientSelector(selectors.DefaultSelector):
    """Waits as any other does, and keeps the clock of its loop."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = time.monotonic()
        self._worked_s = time.thread_time()
        self._thread = get_ident()

    def now(self) -> float:
        """Return the time of the loop."""
        if get_ident() != self._thread:
            return self._now_s
        return self._now_s + min(time.thread_time() - self._worked_s, _TURN_S)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait, and count that as far as it was asked for; half of it where something came."""
        self._now_s = self.now()
        began_s = time.monotonic()
        found = super().select(timeout)
        waited_s = time.monotonic() - began_s
        if timeout is not None:
            waited_s = min(waited_s, max(timeout, 0.0) / 2 if found else max(timeout, 0.0))
        self._now_s += waited_s
        self._thread, self._worked_s = get_ident(), time.thread_time()
        return found


def _now(loop: Any) -> float:
    selector = getattr(loop, "_selector", None)
    return selector.now() if isinstance(selector, PatientSelector) else time.monotonic()


def install() -> None:
    """Let all loops of asyncio that are made from now on have such a clock."""
    selectors.DefaultSelector = PatientSelector  # type: ignore[misc]
    asyncio.BaseEventLoop.time = _now  # type: ignore[method-assign]
