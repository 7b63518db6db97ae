"""A tool's own code is started, waited for, and its end told as an envelope."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from surecall.errors import Code
from surecall.records import Envelope
from surecall.redaction import open_log

from .define import Tool, ToolContext, ToolFailed
from .envelopes import envelope_of
from .feedback import (
    explain_exception,
    explain_not_implemented,
    explain_not_serializable,
    explain_timeout,
)
from .threads import Outcome, WorkerThreads

__all__ = ["Ran", "run_tool"]

_log = open_log("surecall.tools")
_threads: Final = WorkerThreads()
_CANCEL_GRACE_S: Final = 1.0


class Ran(NamedTuple):
    """How a tool ended, and whether its own code was started."""

    envelope: Envelope
    executed: bool


async def run_tool(
    tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext, timeout_s: float | None
) -> Ran:
    """Run a tool with checked arguments; only cancellation and exits of the process are raised.

    Coroutine functions run in the event loop, all others in a thread. A tool that is out of time
    is cancelled; a thread cannot be, so it goes on, and what it returns late is dropped.
    """
    if tool.binder is None:
        return Ran(explain_not_implemented(tool.name), executed=False)
    try:
        start = tool.binder(arguments, context)
    except Exception as error:
        return Ran(_failure(tool, error, at_call=True), executed=False)
    outcome = await _within(timeout_s, _run_in_loop if tool.is_async else _run_in_thread, start)
    if outcome is None:
        return Ran(explain_timeout(tool.spec, timeout_s or 0.0), executed=True)
    if outcome.error is not None:
        # With no frame below the one that called, the call itself was refused.
        traceback = outcome.error.__traceback__
        at_call = traceback is not None and traceback.tb_next is None
        return Ran(_failure(tool, outcome.error, at_call=at_call), executed=True)
    try:
        return Ran(envelope_of(tool.name, outcome.value), executed=True)
    except Exception as error:
        return Ran(explain_not_serializable(tool.spec, error), executed=True)


def _failure(tool: Tool[..., Any], error: BaseException, *, at_call: bool) -> Envelope:
    _log.debug("%s raised %s", tool.name, type(error).__name__, exc_info=error)
    if isinstance(error, ToolFailed):
        return Envelope.failure(
            tool.name, error.code, str(error.message), hint=error.hint, data=error.data
        )
    is_about_arguments = isinstance(error, ValueError) or (at_call and isinstance(error, TypeError))
    code = Code.ARGUMENT_ERROR if is_about_arguments else Code.INTERNAL_ERROR
    return explain_exception(tool.name, code, error)


async def _within(
    timeout_s: float | None, run: Callable[[Callable[[], Any]], Any], start: Callable[[], Any]
) -> Outcome | None:
    """Return how it ended, or `None` when it was stopped because it took too long."""
    if timeout_s is None:
        return await run(start)
    task: asyncio.Task[Outcome] = asyncio.ensure_future(run(start))
    try:
        await asyncio.wait((task,), timeout=timeout_s)
        if task.done():
            return task.result()
        return None
    finally:
        # A task of its own, because a tool may answer cancellation late or not at all.
        if not task.done():
            task.add_done_callback(_drop_late)
            task.cancel()
            await asyncio.wait((task,), timeout=_CANCEL_GRACE_S)


def _drop_late(task: asyncio.Task[Outcome]) -> None:
    if not task.cancelled():
        _log.debug("a tool that was out of time ended late; its result is dropped")
        task.exception()


async def _run_in_loop(start: Callable[[], Any]) -> Outcome:
    try:
        value = start()
        if inspect.isawaitable(value):
            value = await value
    except asyncio.CancelledError as error:
        if _is_being_cancelled():
            raise
        return Outcome(None, error)
    except Exception as error:
        return Outcome(None, error)
    return Outcome(value, None)


async def _run_in_thread(start: Callable[[], Any]) -> Outcome:
    outcome = await _threads.run(start)
    if inspect.isawaitable(outcome.value):
        return await _run_in_loop(lambda: outcome.value)
    error = outcome.error
    if error is not None and not isinstance(error, Exception | asyncio.CancelledError):
        raise error
    return outcome


def _is_being_cancelled() -> bool:
    """Tell a cancellation of this task from one that the tool met on its own."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
