"""A tool's own code is started, waited for, and its end told as an envelope."""

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from surecall.apart import Outcome, run_apart
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
from .threads import WorkerThreads

__all__ = ["Ran", "run_tool"]

_log = open_log("surecall.tools")
_threads: Final = WorkerThreads()


class Ran(NamedTuple):
    """How a tool ended, and whether its own code was started."""

    envelope: Envelope
    executed: bool


async def run_tool(
    tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext, timeout_s: float | None
) -> Ran:
    """Run a tool with checked arguments; only cancellation and exits of the process are raised.

    Coroutine functions run in the event loop, all others in a thread. A tool that is out of time,
    or whose run is cancelled, is cancelled; a thread cannot be, and a coroutine may not answer, so
    they go on, and what they return late is dropped.
    """
    if tool.binder is None:
        return Ran(explain_not_implemented(tool.name), executed=False)
    try:
        start = tool.binder(arguments, context)
    except Exception as error:
        return Ran(_failure(tool, error, at_call=True), executed=False)
    outcome = await _run(tool, start, timeout_s)
    if outcome is None:
        return Ran(explain_timeout(tool.spec, timeout_s or 0.0), executed=True)
    if outcome.error is not None:
        if not isinstance(outcome.error, Exception | asyncio.CancelledError):
            raise outcome.error
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


async def _run(
    tool: Tool[..., Any], start: Callable[[], Any], timeout_s: float | None
) -> Outcome | None:
    """Return how the tool ended, or `None` when it was stopped because it took too long."""
    if not tool.is_async:
        loop = asyncio.get_running_loop()
        until = None if timeout_s is None else loop.time() + timeout_s
        try:
            async with asyncio.timeout_at(until):
                outcome = await _threads.run(start)
        except TimeoutError:
            return None
        if not inspect.isawaitable(outcome.value):
            return outcome
        start = partial(_identity, outcome.value)
        timeout_s = None if until is None else max(until - loop.time(), 0.0)
    return await run_apart(start, what=f"the tool {tool.name}", timeout_s=timeout_s)


def _identity(value: Any) -> Any:
    return value
