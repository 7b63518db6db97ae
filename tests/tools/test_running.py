"""Tools in the loop and in threads: blocking, timeouts, cancellation."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from surecall.base import background
from surecall.tools import tool

from .calls import dispatch, shown

USER: contextvars.ContextVar[str] = contextvars.ContextVar("USER", default="nobody")


async def test_a_blocking_tool_does_not_block_the_loop() -> None:
    """The tool waits for something that only the loop can do."""
    progressed = threading.Event()

    def block() -> str:
        return "free" if progressed.wait(5) else "blocked"

    task = asyncio.ensure_future(dispatch([block], "block"))
    await asyncio.sleep(0)
    progressed.set()
    assert (await task).envelope.data == {"value": "free"}


async def test_both_kinds_of_tool_see_the_context_variables_of_the_caller() -> None:
    """Also with a timeout, where a task stands between."""
    USER.set("ann")

    async def in_loop() -> str:
        return USER.get()

    def in_thread() -> str:
        return USER.get()

    for timeout_s in (None, 5.0):
        for function in (in_loop, in_thread):
            result = await dispatch([function], function.__name__, default_timeout_s=timeout_s)
            assert result.envelope.data == {"value": "ann"}


async def test_an_awaitable_from_a_plain_function_is_awaited() -> None:
    """A lambda around a coroutine is a tool as good as any."""

    async def later(error: Exception | None) -> str:
        if error:
            raise error
        return "there"

    result = await dispatch([tool(name="wrapped")(lambda: later(None))], "wrapped")
    assert result.envelope.data == {"value": "there"}
    refused = tool(name="wrapped")(lambda: later(ValueError("not there")))
    result = await dispatch([refused], "wrapped")
    assert result.envelope.error_codes == ("ARGUMENT_ERROR",)


async def test_a_coroutine_out_of_time_is_cancelled() -> None:
    """Cancellation is delivered to the tool, and the model is told."""
    cleaned: list[str] = []

    @tool(effect="read", timeout_s=0.01)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("yes")

    result = await dispatch([slow], "slow", default_timeout_s=100.0)
    error = shown(result)["errors"][0]
    assert error["code"] == "TOOL_TIMEOUT"
    assert error["message"] == "slow did not finish within 0.01 s and was stopped."
    assert error["hint"].startswith("Ask for less")
    assert shown(result)["data"] == {"timeout_s": 0.01}
    assert cleaned == ["yes"]
    assert result.executed


async def test_a_thread_out_of_time_goes_on_and_its_result_is_dropped() -> None:
    """One call has one result; what comes late is not a second one."""
    release = threading.Event()
    threads: list[threading.Thread] = []
    ended: list[str] = []

    def slow() -> str:
        threads.append(threading.current_thread())
        release.wait(5)
        ended.append("late")
        return "late"

    result = await dispatch([slow], "slow", default_timeout_s=0.3)
    error = shown(result)["errors"][0]
    assert error["code"] == "TOOL_TIMEOUT"
    assert error["hint"] == "It may have taken effect: find out before you call it again."
    assert ended == []
    release.set()
    threads[0].join(5)
    assert ended == ["late"]
    assert shown(result)["ok"] is False


@pytest.mark.parametrize("ends", ["result", "error"])
async def test_a_tool_that_ignores_cancellation_is_left_behind(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on; however the tool ends later, nothing more is heard of it."""
    monkeypatch.setattr(background, "_GRACE_S", 0.01)
    release = asyncio.Event()
    ended = asyncio.Event()

    @tool(timeout_s=0.01)
    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        if ends == "error":
            raise RuntimeError("late")
        return "late"

    result = await dispatch([stubborn], "stubborn")
    assert result.envelope.error_codes == ("TOOL_TIMEOUT",)
    assert not ended.is_set()
    release.set()
    await ended.wait()
    await asyncio.sleep(0)


async def test_a_tool_that_finishes_in_time_is_not_stopped() -> None:
    """The timeout of the tool takes the place of the default."""

    @tool(timeout_s=30)
    async def quick() -> str:
        await asyncio.sleep(0)
        return "done"

    result = await dispatch([quick], "quick", default_timeout_s=0.000_001)
    assert result.envelope.data == {"value": "done"}


async def test_a_timeout_inside_the_tool_is_the_tools_own_error() -> None:
    """Only our own limit is called a timeout of the tool."""

    @tool(timeout_s=30)
    async def impatient() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    result = await dispatch([impatient], "impatient")
    assert result.envelope.error_codes == ("INTERNAL_ERROR",)
    assert shown(result)["errors"][0]["message"] == "TimeoutError"


@pytest.mark.parametrize("timeout_s", [None, 30.0])
async def test_cancelling_the_run_cancels_the_tool(timeout_s: float | None) -> None:
    """It is the one exception that dispatching lets through."""
    started = asyncio.Event()
    cleaned: list[str] = []

    async def waiting() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("yes")

    task = asyncio.ensure_future(dispatch([waiting], "waiting", default_timeout_s=timeout_s))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["yes"]


@pytest.mark.parametrize("timeout_s", [None, 30.0])
async def test_cancelling_the_run_leaves_a_thread_behind(timeout_s: float | None) -> None:
    """The caller does not wait for what it cannot stop."""
    release = threading.Event()
    started = threading.Event()

    def waiting() -> None:
        started.set()
        release.wait(5)

    task = asyncio.ensure_future(dispatch([waiting], "waiting", default_timeout_s=timeout_s))
    while not started.is_set():
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()


@pytest.mark.parametrize("timeout_s", [None, 30.0])
async def test_a_cancellation_the_tool_met_on_its_own_is_an_error(timeout_s: float | None) -> None:
    """Nobody cancelled the run, so the run goes on."""

    async def in_loop() -> None:
        other = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(other.cancel)
        await other

    def in_thread() -> Any:
        raise asyncio.CancelledError

    for function in (in_loop, in_thread):
        result = await dispatch([function], function.__name__, default_timeout_s=timeout_s)
        assert result.envelope.error_codes == ("INTERNAL_ERROR",)
        assert shown(result)["errors"][0]["message"] == "CancelledError"


async def test_an_exit_asked_for_by_a_tool_is_not_swallowed() -> None:
    """Leaving the program is not an error to tell a model about."""

    def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await dispatch([leave], "leave")


async def test_a_quick_tool_runs_in_the_loop_as_any_other() -> None:
    """In no thread, in a context of its own, and what it raises or returns is the same."""
    USER.set("ann")

    @tool(quick=True)
    def look(what: str) -> str:
        if what == "none":
            raise ValueError("nothing there")
        found, _ = f"{USER.get()} on {threading.current_thread().name}", USER.set("bob")
        return found

    result = await dispatch([look], "look", {"what": "x"})
    assert result.envelope.data == {"value": f"ann on {threading.current_thread().name}"}
    assert USER.get() == "ann"
    result = await dispatch([look], "look", {"what": "none"})
    assert result.envelope.error_codes == ("ARGUMENT_ERROR",)
    assert result.executed

    async def later(what: str) -> str:
        return what

    result = await dispatch([tool(name="wrapped", quick=True)(lambda: later("there"))], "wrapped")
    assert result.envelope.data == {"value": "there"}
