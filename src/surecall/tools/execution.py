"""The order in which the calls of one turn run."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from surecall.errors import Code, ConfigError
from surecall.records import Effect, ToolCall, ToolResult

__all__ = ["run_calls"]

Execute = Callable[[ToolCall], Awaitable[ToolResult]]


async def run_calls(
    calls: Sequence[ToolCall],
    *,
    effect_of: Callable[[ToolCall], Effect | None],
    execute: Execute,
    max_concurrency: int = 8,
) -> tuple[ToolResult, ...]:
    """Run the calls of one turn and return their results in the order of the calls.

    Calls that only read run beside each other, at most `max_concurrency` at a time. A call with
    an effect runs alone: after all calls before it, before any call after it. Calls without an
    effect of their own (`None`: they will be refused) hold nothing up.
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
        results += await _run_beside(batch, execute, max_concurrency)
        batch = []
        results.append(await execute(call))
    results += await _run_beside(batch, execute, max_concurrency)
    return tuple(results)


async def _run_beside(
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
