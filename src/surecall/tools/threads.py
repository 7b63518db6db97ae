"""Threads in which blocking tools run, so that the event loop never waits for them.

A thread cannot be killed. When a job is given up (timeout or cancellation) its thread goes on
until the tool returns, and what it returns is dropped; the thread no longer counts towards the
limit, so tools that hang cannot starve those that do not, and being a daemon it does not keep
the process alive.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Literal

from surecall.apart import Outcome

__all__ = ["WorkerThreads"]


class _Job:
    __slots__ = ("_context", "_function", "_loop", "future", "state")

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self._function = function
        self._loop = loop
        self._context = copy_context()
        self.future: asyncio.Future[Outcome] = loop.create_future()
        self.state: Literal["waiting", "running", "done", "abandoned"] = "waiting"

    def run(self) -> Outcome:
        try:
            return Outcome(self._context.run(self._function), None)
        except BaseException as error:  # whoever waits in the loop decides what to raise
            return Outcome(None, error)

    def deliver(self, outcome: Outcome) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set_result, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    def _set_result(self, outcome: Outcome) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class WorkerThreads:
    """A bounded set of daemon threads, started when first needed and kept for the next job."""

    def __init__(self, max_threads: int = 64) -> None:
        self._max_threads = max_threads
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._waiting = 0
        self._idle = 0
        self._threads = 0

    async def run(self, function: Callable[[], Any]) -> Outcome:
        """Run the function in a thread, in a copy of the caller's context variables."""
        job = _Job(function, asyncio.get_running_loop())
        with self._lock:
            self._start_thread_if_short(self._waiting + 1)
            self._waiting += 1
        self._jobs.put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _abandon(self, job: _Job) -> None:
        with self._lock:
            if job.state == "running":
                self._threads -= 1
                with suppress(RuntimeError):
                    self._start_thread_if_short(self._waiting)
            if job.state != "done":
                job.state = "abandoned"

    def _start_thread_if_short(self, waiting: int) -> None:
        if waiting <= self._idle or self._threads >= self._max_threads:
            return
        try:
            threading.Thread(target=self._work, name="surecall-tool", daemon=True).start()
        except RuntimeError:  # the system has no thread to give: wait for one of ours
            if self._threads == 0:
                raise
            return
        self._threads += 1
        self._idle += 1

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            with self._lock:
                self._waiting -= 1
                if job.state == "abandoned":
                    continue
                self._idle -= 1
                job.state = "running"
            outcome = job.run()
            with self._lock:
                given_up = job.state == "abandoned"
                if not given_up:
                    job.state = "done"
                    # Free again before the result is out: the next job then finds this thread.
                    self._idle += 1
            job.deliver(outcome)
            del job, outcome
            if given_up:
                return
