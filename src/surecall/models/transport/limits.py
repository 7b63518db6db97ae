"""The one timer of an attempt."""

import asyncio

from surecall.base.errors import Code, ProviderTimeoutError
from surecall.models.client.failures import deadline_passed
from surecall.models.client.limits import Deadlines


class Watch:
    """Cancels the waiting task when the deadline of the current phase passes.

    Moving a deadline back only stores a number: the timer looks at it when it fires. So an
    attempt costs one timer, however many chunks arrive.
    """

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._passed: Code | None = None
        self._total_due = self._loop.time() + deadlines.total_s
        self._watch_current_task()
        self._begin(Code.CONNECT_TIMEOUT, deadlines.connect_s)

    def sending(self) -> None:
        """The request is on its way; the answer is awaited from now.

        An answer may begin before the request was sent in full: then this changes nothing.
        """
        if self._code is Code.IDLE_TIMEOUT:
            return
        self._begin(Code.FIRST_BYTE_TIMEOUT, self._deadlines.first_byte_s)

    def receiving(self) -> None:
        """Something arrived; more is awaited from now."""
        self._begin(Code.IDLE_TIMEOUT, self._deadlines.idle_s)

    def resume(self) -> None:
        """Watch the current task again, after a `pause`."""
        self._watch_current_task()
        self.receiving()

    def pause(self) -> None:
        """Stop watching while nobody waits."""
        self._task = None

    def stop(self) -> None:
        """Stop watching for good; takes back a cancellation that was not needed."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        task, self._task = self._task, None
        if self._passed is not None and task is not None:
            task.uncancel()

    def convert(self) -> ProviderTimeoutError | None:
        """Return the error when a deadline passed and nobody else cancelled the task."""
        task, self._task = self._task, None
        if self._passed is None or task is None:
            return None
        if task.uncancel() > self._cancelling:
            return None
        total = self._passed is Code.TOTAL_TIMEOUT
        return deadline_passed(self._passed, self._deadlines.total_s if total else self._within_s)

    def _watch_current_task(self) -> None:
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0

    def _begin(self, code: Code, within_s: float) -> None:
        self._code = code
        self._within_s = within_s
        self._due = min(self._loop.time() + within_s, self._total_due)
        if self._handle is None or self._due < self._handle.when():
            self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._loop.call_at(self._due, self._on_timer)

    def _on_timer(self) -> None:
        self._handle = None
        if self._task is None or self._passed is not None:
            return
        now = self._loop.time()
        if now < self._due:
            self._arm()
            return
        self._passed = Code.TOTAL_TIMEOUT if now >= self._total_due else self._code
        self._task.cancel()
