"""The order in which the calls of one turn run."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from surecall.base.errors import Code, ConfigError
from surecall.base.records import Effect, Envelope, ToolCall, ToolResult
from surecall.tools import run_calls

from .calls import make_call

EFFECTS: dict[str, Effect | None] = {"r": "read", "w": "write", "x": "external", "n": None}


def _effect_of(call: ToolCall) -> Effect | None:
    return EFFECTS[call.name]


def _calls(names: str) -> list[ToolCall]:
    return [make_call(name, id=f"{name}{index}") for index, name in enumerate(names)]


def _result(call: ToolCall) -> ToolResult:
    return ToolResult(
        call_id=call.id, name=call.name, envelope=Envelope(ok=True, tool_name=call.name), text="{}"
    )


class Recorder:
    """Runs calls one step at a time and notes what runs beside what."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.together: list[frozenset[str]] = []

    async def execute(self, call: ToolCall) -> ToolResult:
        self.running.add(call.id)
        self.together.append(frozenset(self.running))
        for _ in range(5):
            await asyncio.sleep(0)
        self.running.discard(call.id)
        return _result(call)


@pytest.mark.parametrize(
    ("names", "widest"),
    [
        ("", []),
        ("r", [{"r0"}]),
        ("w", [{"w0"}]),
        ("rrr", [{"r0", "r1", "r2"}]),
        ("rnr", [{"r0", "n1", "r2"}]),
        ("ww", [{"w0"}, {"w1"}]),
        ("rwr", [{"r0"}, {"w1"}, {"r2"}]),
        ("rrwrr", [{"r0", "r1"}, {"w2"}, {"r3", "r4"}]),
        ("wrrx", [{"w0"}, {"r1", "r2"}, {"x3"}]),
    ],
)
async def test_reads_run_together_and_effects_alone(names: str, widest: list[set[str]]) -> None:
    """Each group is whole before the next begins; results keep the order of the calls."""
    recorder = Recorder()
    calls = _calls(names)
    results = await run_calls(calls, effect_of=_effect_of, execute=recorder.execute)
    assert [result.call_id for result in results] == [call.id for call in calls]
    seen = recorder.together
    assert [group for group in seen if not any(group < other for other in seen)] == widest


async def test_results_keep_the_order_of_calls_when_later_ones_finish_first() -> None:
    """The first read waits for the second to end."""
    second_done = asyncio.Event()

    async def execute(call: ToolCall) -> ToolResult:
        if call.id == "r0":
            await second_done.wait()
        else:
            second_done.set()
        return _result(call)

    results = await run_calls(_calls("rr"), effect_of=_effect_of, execute=execute)
    assert [result.call_id for result in results] == ["r0", "r1"]


async def test_an_effect_waits_for_all_reads_before_it() -> None:
    """The write starts only after both reads have ended, and the last read after the write."""
    log: list[str] = []
    release = asyncio.Event()

    async def execute(call: ToolCall) -> ToolResult:
        log.append(f"+{call.id}")
        if call.id in ("r0", "r1"):
            await release.wait()
        log.append(f"-{call.id}")
        return _result(call)

    task = asyncio.ensure_future(run_calls(_calls("rrwr"), effect_of=_effect_of, execute=execute))
    while len(log) < 2:
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
    assert log == ["+r0", "+r1"]
    release.set()
    await task
    assert log == ["+r0", "+r1", "-r0", "-r1", "+w2", "-w2", "+r3", "-r3"]


async def test_no_more_than_the_limit_run_at_once() -> None:
    """The eleven reads of one turn take turns."""
    recorder = Recorder()
    await run_calls(
        _calls("r" * 11), effect_of=_effect_of, execute=recorder.execute, max_concurrency=4
    )
    assert max(len(group) for group in recorder.together) == 4
    with pytest.raises(ConfigError) as caught:
        await run_calls([], effect_of=_effect_of, execute=recorder.execute, max_concurrency=0)
    assert caught.value.code == Code.INVALID_OPTION


def _waiting(started: list[str], stopped: list[str]) -> Callable[[ToolCall], Awaitable[ToolResult]]:
    async def execute(call: ToolCall) -> ToolResult:
        started.append(call.id)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            stopped.append(call.id)
        return _result(call)

    return execute


@pytest.mark.parametrize("names", ["r", "w", "rrr", "rw"])
async def test_cancellation_stops_all_that_run(names: str) -> None:
    """When it returns, nothing is running any more, and what had not begun never begins."""
    started: list[str] = []
    stopped: list[str] = []
    running = run_calls(_calls(names), effect_of=_effect_of, execute=_waiting(started, stopped))
    task = asyncio.ensure_future(running)
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    begun = [call.id for call in _calls(names) if call.name == names[0]]
    assert started == sorted(stopped) == begun


async def test_a_failure_stops_the_calls_beside_it() -> None:
    """Nothing is left running behind an error that should not have been raised."""
    stopped: list[str] = []
    waiting = _waiting([], stopped)

    async def execute(call: ToolCall) -> ToolResult:
        if call.id == "r2":
            raise RuntimeError("broken")
        return await waiting(call)

    with pytest.raises(RuntimeError, match="broken"):
        await run_calls(_calls("rrr"), effect_of=_effect_of, execute=execute)
    assert sorted(stopped) == ["r0", "r1"]


async def test_a_single_call_runs_in_the_callers_own_task() -> None:
    """No task is made for one call."""
    tasks: list[object] = []

    async def execute(call: ToolCall) -> ToolResult:
        tasks.append(asyncio.current_task())
        return _result(call)

    await run_calls(_calls("r"), effect_of=_effect_of, execute=execute)
    await run_calls(_calls("rw"), effect_of=_effect_of, execute=execute)
    assert tasks == [asyncio.current_task()] * 3
