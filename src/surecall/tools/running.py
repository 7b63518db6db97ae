"""Tools run: the calls of a turn in their order, each in the event loop or in a thread.

Blocking tools run in threads, so that the event loop never waits for them. A thread cannot be
killed. When a job is given up (timeout or cancellation) its thread continues
until the tool returns, and what it returns is dropped; the thread no longer counts towards the
limit, so tools that hang cannot starve those that do not, and being a daemon it does not keep
the process alive.
"""

import asyncio
import inspect
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from traceback import format_exception
from typing import Any, Final, Literal, NamedTuple

from surecall.base.background import Outcome, run_bounded
from surecall.base.errors import Code, ConfigError
from surecall.base.records import Effect, Envelope, ToolCall, ToolResult
from surecall.base.redaction import open_log, redact

from . import feedback
from .define import Tool, ToolContext, ToolFailed
from .outputs import envelope_of


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
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._set_result, outcome)

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


_log = open_log("surecall.tools")
_threads: Final = WorkerThreads()
_MAX_FRAMES: Final = 20
_MAX_TRACEBACK_CHARACTERS: Final = 8_000


class _Ran(NamedTuple):
    """How a tool ended, and whether its own code was started."""

    envelope: Envelope
    executed: bool
    traceback: str = ""
    """Where the tool's own code raised, for a developer."""


async def run_tool(
    tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext, timeout_s: float | None
) -> _Ran:
    """Run a tool with checked arguments; only cancellation and exits of the process are raised.

    Coroutine functions and quick tools run in the event loop, all others in a thread. A tool that
    is out of time, or whose run is cancelled, is cancelled; a thread cannot be, and a coroutine may
    not answer, so they go on, and what they return late is dropped.
    """
    if tool.binder is None:
        return _Ran(feedback.explain_not_implemented(tool.name), executed=False)
    try:
        start = tool.binder(arguments, context)
    except Exception as error:
        return _Ran(_failure(tool, error, at_call=True), executed=False, traceback=_trace(error))
    what = f"the tool {tool.name}"
    if tool.quick and not tool.is_async:
        outcome: Outcome | None = _call(start)
        if inspect.isawaitable(outcome.value):
            start = partial(_identity, outcome.value)
            outcome = await run_code(start, is_async=True, what=what, timeout_s=timeout_s)
    else:
        outcome = await run_code(start, is_async=tool.is_async, what=what, timeout_s=timeout_s)
    if outcome is None:
        return _Ran(feedback.explain_timeout(tool.spec, timeout_s or 0.0), executed=True)
    if outcome.error is not None:
        if not isinstance(outcome.error, Exception | asyncio.CancelledError):
            raise outcome.error
        # With no frame below the one that called, the call itself was refused.
        traceback = outcome.error.__traceback__
        at_call = traceback is not None and traceback.tb_next is None
        failure = _failure(tool, outcome.error, at_call=at_call)
        return _Ran(failure, executed=True, traceback=_trace(outcome.error))
    try:
        return _Ran(envelope_of(tool.name, outcome.value), executed=True)
    except Exception as error:
        return _Ran(feedback.explain_not_serializable(tool.spec, error), executed=True)


def _call(start: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(copy_context().run(start), None)
    except BaseException as error:  # whoever waits decides what to raise
        return Outcome(None, error)


def _failure(tool: Tool[..., Any], error: BaseException, *, at_call: bool) -> Envelope:
    if isinstance(error, ToolFailed):
        _log.debug("%s failed with %s", tool.name, error.code)
        return Envelope.failure(
            tool.name, error.code, str(error.message), hint=error.hint, data=error.data
        )
    is_about_arguments = isinstance(error, ValueError) or (at_call and isinstance(error, TypeError))
    code = Code.ARGUMENT_ERROR if is_about_arguments else Code.INTERNAL_ERROR
    level = logging.DEBUG if is_about_arguments else logging.ERROR
    if _log.isEnabledFor(level):
        # A log that cannot encode what an exception says would lose all of it.
        shown = error if _can_be_logged(error) else None
        _log.log(level, "%s raised %s", tool.name, type(error).__name__, exc_info=shown)
    return feedback.explain_exception(tool.name, code, error)


def _can_be_logged(error: BaseException) -> bool:
    try:
        str(error).encode()
    except Exception:
        return False
    return True


def _trace(error: BaseException) -> str:
    """Return the traceback of a tool that raised, fit for any log; empty for a chosen failure."""
    if isinstance(error, ToolFailed):
        return ""
    try:
        lines = format_exception(error, limit=-_MAX_FRAMES)
    except Exception:  # an exception that cannot even be shown
        return type(error).__name__
    text = "".join(lines).encode("utf-8", "backslashreplace").decode()
    return redact(text)[-_MAX_TRACEBACK_CHARACTERS:]


async def run_code(
    start: Callable[[], Any], *, is_async: bool, what: str, timeout_s: float | None = None
) -> Outcome | None:
    """Run code of others, in a thread unless it is asynchronous; `None` when out of time."""
    if not is_async:
        loop = asyncio.get_running_loop()
        until = None if timeout_s is None else loop.time() + timeout_s
        try:
            async with nullcontext() if until is None else asyncio.timeout_at(until):
                outcome = await _threads.run(start)
        except TimeoutError:
            return None
        if not inspect.isawaitable(outcome.value):
            return outcome
        start = partial(_identity, outcome.value)
        timeout_s = None if until is None else max(until - loop.time(), 0.0)
    return await run_bounded(start, what=what, timeout_s=timeout_s)


def _identity(value: Any) -> Any:
    return value


Execute = Callable[[ToolCall], Awaitable[ToolResult]]


async def run_calls(
    calls: Sequence[ToolCall],
    *,
    effect_of: Callable[[ToolCall], Effect | None],
    execute: Execute,
    max_concurrency: int = 8,
) -> tuple[ToolResult, ...]:
    """Run the calls of one turn and return their results in the order of the calls.

    Calls that only read run at the same time, at most `max_concurrency` at a time. A call with
    an effect runs alone: after all calls before it, before any call after it. Calls without an
    effect (`None`: they will be refused) hold nothing up.
    """
    if max_concurrency < 1:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"max_concurrency is {max_concurrency}.",
            hint="Give a whole number of at least 1.",
        )
    if len(calls) == 1:
        return (await execute(calls[0]),)
    results: list[ToolResult] = []
    batch: list[ToolCall] = []
    for call in calls:
        if effect_of(call) in ("read", None):
            batch.append(call)
            continue
        results += await _run_together(batch, execute, max_concurrency)
        batch = []
        results.append(await execute(call))
    results += await _run_together(batch, execute, max_concurrency)
    return tuple(results)


async def _run_together(
    calls: Sequence[ToolCall], execute: Execute, max_concurrency: int
) -> list[ToolResult]:
    if len(calls) <= 1:
        return [await execute(call) for call in calls]
    places = asyncio.Semaphore(max_concurrency)

    async def run(call: ToolCall) -> ToolResult:
        async with places:
            return await execute(call)

    tasks = [asyncio.ensure_future(run(call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        # After a failure or a cancellation nothing may still be running when this returns.
        if not all(task.done() for task in tasks):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
