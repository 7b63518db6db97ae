"""The driver: order and concurrency of calls, deadlines, cancellation and events."""

import asyncio
import threading
from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, ConfigError, RunLimitError
from surecall.base.records import (
    CallRepeated,
    Event,
    Final,
    FixEmptyFinal,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestRetried,
    ModelRequestStarted,
    RunEnded,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
)
from surecall.loop import replay_trace
from surecall.models.transport import ScriptedReply, ScriptedTransport
from surecall.text import decode

from .toolbox import assistant, run_script, save, saved, tool_call


def calls(*names: str) -> dict[str, Any]:
    """Return a reply that calls these tools, each with its place as argument."""
    entries = [tool_call(name, {"n": at}, f"c{at}") for at, name in enumerate(names)]
    return assistant(None, *entries)


class Workshop:
    """Tools that note when they run, and of which some wait for each other."""

    def __init__(self, readers: int = 2) -> None:
        self.log: list[str] = []
        self.running = 0
        self.most = 0
        self.barrier = asyncio.Barrier(readers)

    def tools(self) -> list[Any]:
        """Return the tools."""

        @surecall.tool(effect="read")
        async def meet(n: int) -> int:
            """Return only when all readers are there."""
            self.log.append(f"meet {n}")
            await self.barrier.wait()
            self.log.append(f"met {n}")
            return n

        @surecall.tool(effect="read")
        async def read(n: int) -> int:
            """Give way to others, the earlier ones for longer."""
            self.running += 1
            self.most = max(self.most, self.running)
            for _ in range(10 - n):
                await asyncio.sleep(0)
            self.running -= 1
            self.log.append(f"read {n}")
            return n

        @surecall.tool(effect="write")
        async def write(n: int) -> int:
            """Give way to others, but run alone."""
            self.log.append(f"write {n} begins beside {self.running}")
            self.running += 1
            for _ in range(5):
                await asyncio.sleep(0)
            self.running -= 1
            self.log.append(f"write {n} ends")
            return n

        return [meet, read, write]


async def test_calls_that_only_read_run_beside_each_other() -> None:
    """Two readers that wait for each other both return."""
    shop = Workshop(readers=2)
    result = await run_script([calls("meet", "meet"), "done"], tools=shop.tools())
    assert [item.ok for item in result.results] == [True, True]
    assert shop.log[:2] == ["meet 0", "meet 1"]


async def test_results_are_in_the_order_of_the_calls() -> None:
    """The last reader is done first, and still comes last."""
    shop = Workshop()
    result = await run_script([calls("read", "read", "read"), "done"], tools=shop.tools())
    assert shop.log == ["read 2", "read 1", "read 0"]
    assert [item.call_id for item in result.results] == ["c0", "c1", "c2"]
    assert [item.envelope.data for item in result.results] == [{"value": n} for n in range(3)]
    ids = [message.tool_call_id for message in result.history if message.role == "tool"]
    assert ids == ["c0", "c1", "c2"]


async def test_calls_with_effects_run_alone_and_in_order() -> None:
    """A write waits for the reads before it, and the reads after it wait for it."""
    shop = Workshop()
    reply = calls("read", "read", "write", "write", "read")
    await run_script([reply, "done"], tools=shop.tools())
    assert shop.log == [
        "read 1",
        "read 0",
        "write 2 begins beside 0",
        "write 2 ends",
        "write 3 begins beside 0",
        "write 3 ends",
        "read 4",
    ]


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_concurrency_has_a_limit(limit: int) -> None:
    """No more readers run at once than the option says."""
    shop = Workshop()
    reply = calls(*["read"] * 5)
    await run_script([reply, "done"], tools=shop.tools(), max_concurrent_calls=limit)
    assert shop.most == limit


async def test_threads_of_blocking_tools_run_beside_each_other() -> None:
    """Readers that block meet in their threads."""
    barrier = threading.Barrier(2)

    @surecall.tool(effect="read")
    def meet(n: int) -> int:
        """Return only when both are there."""
        barrier.wait(5)
        return n

    result = await run_script([calls("meet", "meet"), "done"], tools=[meet])
    assert [item.ok for item in result.results] == [True, True]


# deadlines and cancellation


async def test_a_deadline_ends_the_run_with_a_valid_history() -> None:
    """The tool is cancelled; its call is told as unknown; the trace replays."""
    cancelled = asyncio.Event()

    @surecall.tool(effect="write")
    async def hang() -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    events: list[Event] = []
    reply = assistant(None, tool_call("hang"))
    with pytest.raises(RunLimitError) as caught:
        await run_script([reply], tools=[hang], deadline_s=0.02, on_event=events.append)
    error = caught.value
    assert (error.code, error.details) == (Code.DEADLINE_EXCEEDED, {"deadline_s": 0.02})
    assert cancelled.is_set()
    assert [message.role for message in error.history] == ["user", "assistant", "tool"]
    assert decode(error.history[-1].text)["errors"][0]["code"] == Code.OUTCOME_UNKNOWN
    assert error.trace.error.code == Code.DEADLINE_EXCEEDED
    assert [call.name for call in error.trace.turns[0].calls] == ["hang"]
    assert replay_trace(error.trace).same
    assert isinstance(events[-1], RunEnded)
    assert events[-1].code == "DEADLINE_EXCEEDED"


async def test_a_deadline_holds_while_the_model_is_asked() -> None:
    """The request is given up as well."""
    reply = ScriptedReply(message="late", delay_s=30)
    with pytest.raises(RunLimitError, match="DEADLINE_EXCEEDED") as caught:
        await run_script([reply], deadline_s=0.02)
    assert [message.role for message in caught.value.history] == ["user"]


async def test_the_late_result_of_a_blocking_tool_is_dropped() -> None:
    """A thread goes on after the deadline; what it returns reaches nobody."""
    go_on, done = threading.Event(), threading.Event()

    @surecall.tool(effect="write")
    def slow() -> str:
        """Return when it is allowed to."""
        go_on.wait(5)
        done.set()
        return "late"

    transport = ScriptedTransport([assistant(None, tool_call("slow")), "never"])
    with pytest.raises(RunLimitError) as caught:
        await run_script([], transport=transport, tools=[slow], deadline_s=0.02)
    go_on.set()
    assert await asyncio.to_thread(done.wait, 5)
    await asyncio.sleep(0)
    assert "late" not in str(caught.value.history)
    assert len(transport.requests) == 1


async def test_a_late_result_after_a_timeout_is_no_second_result() -> None:
    """The model is told of the timeout once; the thread's result is dropped."""
    go_on, done = threading.Event(), threading.Event()

    @surecall.tool(effect="write", timeout_s=0.02)
    def slow() -> str:
        """Return when it is allowed to."""
        go_on.wait(5)
        done.set()
        return "late"

    async def answer(request: Any) -> Any:
        if len(request.body["messages"]) == 1:
            return assistant(None, tool_call("slow"))
        go_on.set()
        await asyncio.to_thread(done.wait, 5)
        return "done"

    result = await run_script([], transport=ScriptedTransport(answer), tools=[slow])
    assert [item.envelope.error_codes for item in result.results] == [("TOOL_TIMEOUT",)]
    assert [message.role for message in result.history] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert "late" not in str(result.history)


async def test_cancelling_a_run_cancels_all_its_tools() -> None:
    """When the run is gone, no tool is left running."""
    started, stopped = asyncio.Semaphore(0), []

    @surecall.tool(effect="read")
    async def hang(n: int) -> None:
        """Wait for ever."""
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(n)

    task = asyncio.create_task(run_script([calls("hang", "hang")], tools=[hang]))
    await started.acquire()
    await started.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(stopped) == [0, 1]


# events


async def test_a_retried_request_is_told_with_both_attempts() -> None:
    """The refusal, the decision to go on without tools, and the second request."""
    events: list[Event] = []
    refused = ScriptedReply(status=400, message="no tools")
    await run_script([refused, "done"], fallback_retry_count=1, on_event=events.append, run_id="r")
    assert [type(event) for event in events] == [
        RunStarted,
        ModelRequestStarted,
        ModelRequestFailed,
        ModelRequestRetried,
        ModelRequestStarted,
        ModelRequestEnded,
        Final,
        RunEnded,
    ]
    started = [event for event in events if isinstance(event, ModelRequestStarted)]
    assert [(event.tools_count, event.request_attempts_left) for event in started] == [
        (2, 1),
        (0, 0),
    ]
    assert {event.run_id for event in events} == {"r"}
    assert [event.at_ms for event in events] == sorted(event.at_ms for event in events)


async def test_calls_events_and_repair_are_told() -> None:
    """Calls, the warning, the repair of an empty answer and the end."""
    events: list[Event] = []
    replies = [assistant(None, tool_call("look"))] * 3 + [assistant(""), "done"]
    await run_script(replies, on_event=events.append)
    kinds = [type(event) for event in events]
    turn = [ModelRequestStarted, ModelRequestEnded, ToolCallStarted, ToolCallEnded]
    warned = [ModelRequestStarted, ModelRequestEnded, CallRepeated, ToolCallStarted, ToolCallEnded]
    assert kinds == [
        RunStarted,
        *turn,
        *turn,
        *warned,
        ModelRequestStarted,
        ModelRequestEnded,
        FixEmptyFinal,
        ModelRequestStarted,
        ModelRequestEnded,
        Final,
        RunEnded,
    ]


async def test_the_warning_reaches_the_model_with_the_result() -> None:
    """The third equal call carries a warning beside its result, the others none."""
    transport = ScriptedTransport([assistant(None, tool_call("look"))] * 3 + ["done"])
    result = await run_script([], transport=transport)
    assert [len(item.envelope.warnings) for item in result.results] == [0, 0, 1]
    shown = decode(transport.requests[-1].body["messages"][-1]["content"])
    assert "one more repetition ends the run" in shown["warnings"][0]


async def test_a_listener_that_fails_changes_nothing() -> None:
    """What a listener raises is ignored, and the other one is still told."""
    told: list[Event] = []

    def broken(_event: Event) -> None:
        raise RuntimeError("listener")

    transport = ScriptedTransport([assistant(None, tool_call("save", {"text": "a"})), "done"])
    async with surecall.Session(
        model="m", preset=(), tools=[save], transport=transport, on_event=broken
    ) as session:
        result = await session.run("hi", on_event=told.append)
    assert result.text == "done"
    assert saved == ["a"]
    assert isinstance(told[-1], RunEnded)


async def test_an_error_in_the_setup_is_raised_as_it_is() -> None:
    """A script that is too short is a mistake of the test, not of a provider."""
    events: list[Event] = []
    with pytest.raises(ConfigError, match="INVALID_CONFIG"):
        await run_script([], on_event=events.append)
    assert isinstance(events[-1], RunEnded)
    assert events[-1].code == "INVALID_CONFIG"


async def test_a_model_request_that_failed_after_a_tool_does_not_run_the_tool_again() -> None:
    """Only the request is made again, without tools; the stored result goes out with it."""
    refused = ScriptedReply(status=503, message="busy")
    transport = ScriptedTransport(
        [assistant(None, tool_call("save", {"text": "a"})), refused, "done"]
    )
    result = await run_script([], transport=transport, fallback_retry_count=1)
    assert (result.text, saved) == ("done", ["a"])
    assert transport.requests[1].body["messages"] == transport.requests[2].body["messages"]
    assert "tools" not in transport.requests[2].body


async def test_no_call_of_a_reply_over_budget_runs() -> None:
    """Not even the calls that would have fitted."""
    reply = assistant(None, *[tool_call("save", {"text": str(n)}, f"c{n}") for n in range(3)])
    with pytest.raises(RunLimitError) as caught:
        await run_script([reply], max_tool_calls=2)
    assert (caught.value.code, saved) == (Code.CALL_BUDGET_EXCEEDED, [])
    assert [message.role for message in caught.value.history] == ["user"]
    assert len(caught.value.trace.turns[0].calls) == 3


async def test_ignored_calls_are_visible_in_the_trace() -> None:
    """With parallel calls off, one call runs and the other is on record."""
    reply = assistant(None, tool_call("look", id="a"), tool_call("save", {"text": "x"}, "b"))
    transport = ScriptedTransport([reply, "done"])
    result = await run_script(
        [], transport=transport, request_overrides={"parallel_tool_calls": False}
    )
    assert [call.id for call in result.trace.turns[0].ignored_calls] == ["b"]
    assert saved == []
    sent = transport.requests[1].body["messages"][1]["tool_calls"]
    assert [call["id"] for call in sent] == ["a"]
