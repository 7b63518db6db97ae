"""Runs end when they must, whatever the code does that they wait for."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import surecall
from surecall.base import background
from surecall.base.errors import Code, RunLimitError
from surecall.base.records import Event, RunEnded, WireReply, WireRequest
from surecall.loop import MemoryJournal, replay_trace
from surecall.loop.journal import RecordedIntent, RecordedResult
from surecall.models.transport import ScriptedTransport
from surecall.tools import ApprovalDecision

from .toolbox import assistant, look, run_script, saved, tool_call

pytestmark = pytest.mark.timeout(60)


class Stubborn:
    """Code that does not end when it is cancelled, only when it is released."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.running = 0
        self.cancelled = 0

    async def work(self) -> str:
        """Go on until released."""
        self.running += 1
        self.started.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        self.running -= 1
        return "late"

    async def end(self) -> None:
        """Release the work and wait until nothing of it is left."""
        self.release.set()
        while self.running or background._left_behind:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a whole second in a test."""
    monkeypatch.setattr(background, "_GRACE_S", 0.02)


class StubbornTransport:
    """A transport that swallows cancellation, whole and streamed."""

    def __init__(self, stubborn: Stubborn) -> None:
        self.stubborn = stubborn

    async def send(self, request: WireRequest) -> WireReply:
        """Never answer."""
        await self.stubborn.work()
        raise AssertionError(request)

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[Any, None]:
        """Never open."""
        await self.stubborn.work()
        yield request

    async def aclose(self) -> None:
        """Nothing is open."""


Start = Callable[[Stubborn, dict[str, Any]], Awaitable[Any]]


def in_tool(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Run a tool with effects that swallows cancellation."""

    @surecall.tool(effect="write")
    async def stuck() -> str:
        """Never end."""
        return await stubborn.work()

    return run_script([assistant(None, tool_call("stuck"))], tools=[stuck], **options)


def in_awaitable(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Run a plain function that returns an awaitable which swallows cancellation."""
    stuck = surecall.tool(name="stuck", effect="write")(lambda: stubborn.work())  # noqa: PLW0108 - a plain function is wanted
    return run_script([assistant(None, tool_call("stuck"))], tools=[stuck], **options)


def in_finally(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Run a tool that is cancelled at once and then does not come to the end of its clean-up."""

    @surecall.tool(effect="write")
    async def stuck() -> str:
        try:
            stubborn.started.set()
            return await asyncio.Event().wait() and ""
        finally:
            await stubborn.work()

    return run_script([assistant(None, tool_call("stuck"))], tools=[stuck], **options)


def in_tools(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Run several readers at the same time, each of which swallows cancellation."""

    @surecall.tool(effect="read")
    async def stuck(n: int) -> str:
        return await stubborn.work()

    calls = [tool_call("stuck", {"n": n}, f"c{n}") for n in range(20)]
    return run_script([assistant(None, *calls)], tools=[stuck], **options)


def in_approver(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Ask an approver that swallows cancellation."""

    async def approve(request: object) -> ApprovalDecision:
        await stubborn.work()
        return ApprovalDecision(approved=True)

    script = [assistant(None, tool_call("look"))]
    return run_script(script, tools=[look], approver=approve, **options)


def in_transport(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Ask a transport that swallows cancellation."""
    return run_script([], transport=StubbornTransport(stubborn), **options)


def in_streaming_transport(stubborn: Stubborn, options: dict[str, Any]) -> Awaitable[Any]:
    """Open a stream of a transport that swallows cancellation."""
    return run_script([], transport=StubbornTransport(stubborn), stream=True, **options)


STUCK: list[Start] = [
    in_tool,
    in_awaitable,
    in_finally,
    in_tools,
    in_approver,
    in_transport,
    in_streaming_transport,
]


@pytest.mark.parametrize("start", STUCK)
async def test_a_deadline_ends_a_run_that_is_stuck(start: Start) -> None:
    """The run ends while what it waits for goes on; what comes of it later is dropped."""
    stubborn = Stubborn()
    events: list[Event] = []
    with pytest.raises(RunLimitError) as caught:
        await start(stubborn, {"deadline_s": 0.05, "on_event": events.append})
    assert caught.value.code == Code.DEADLINE_EXCEEDED
    assert stubborn.running > 0
    told = len(events)
    assert isinstance(events[-1], RunEnded)
    await stubborn.end()
    assert len(events) == told


@pytest.mark.parametrize("start", STUCK)
async def test_cancelling_ends_a_run_that_is_stuck(start: Start) -> None:
    """Whoever cancels a run gets it back cancelled."""
    stubborn = Stubborn()
    task = asyncio.ensure_future(start(stubborn, {}))
    await stubborn.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stubborn.running > 0
    await stubborn.end()


async def test_a_tool_that_answers_its_cancellation_with_a_result_does_not_go_on() -> None:
    """The cancellation is for the run, whatever the tool makes of it."""
    started = asyncio.Event()

    @surecall.tool(effect="write")
    async def polite() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return "I have been cancelled"

    transport = ScriptedTransport([assistant(None, tool_call("polite")), "done"])
    task = asyncio.ensure_future(run_script([], tools=[polite], transport=transport))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(transport.requests) == 1


async def test_the_outcome_of_a_tool_that_was_left_behind_is_unknown() -> None:
    """The journal has its intent without a result, and a resumed run does not run it again."""
    stubborn, journal = Stubborn(), MemoryJournal()
    with pytest.raises(RunLimitError):
        await in_tool(stubborn, {"deadline_s": 0.05, "journal": journal})
    await stubborn.end()
    assert isinstance(journal.records[-1], RecordedIntent)
    assert not any(isinstance(record, RecordedResult) for record in journal.records)
    ran: list[str] = []

    @surecall.tool(effect="write")
    async def stuck() -> str:
        """Never end."""
        ran.append("again")
        return ""

    result = await run_script(["done"], tools=[stuck], deadline_s=0.05, journal=journal)
    assert result.results[0].envelope.error_codes == (Code.OUTCOME_UNKNOWN,)
    assert ran == []


async def test_a_deadline_ends_a_run_whose_thread_never_returns() -> None:
    """A thread cannot be stopped; nobody waits for it."""
    release, ended = threading.Event(), threading.Event()

    @surecall.tool(effect="write")
    def stuck() -> str:
        release.wait(30)
        ended.set()
        return "late"

    with pytest.raises(RunLimitError, match="DEADLINE_EXCEEDED"):
        await run_script([assistant(None, tool_call("stuck"))], tools=[stuck], deadline_s=0.05)
    assert not ended.is_set()
    release.set()
    assert await asyncio.to_thread(ended.wait, 30)


async def test_leaving_a_stream_of_events_ends_a_run_that_is_stuck() -> None:
    """Closing the events does not wait for the tool."""
    stubborn = Stubborn()

    @surecall.tool(effect="write")
    async def stuck() -> str:
        return await stubborn.work()

    transport = ScriptedTransport([assistant(None, tool_call("stuck"))])
    stream = surecall.stream("hi", model="m", preset=(), tools=[stuck], transport=transport)
    events = aiter(stream)
    while not stubborn.started.is_set():
        await anext(events)
        await asyncio.sleep(0)
    await stream.aclose()
    assert stubborn.running == 1
    await stubborn.end()


async def test_a_listener_may_cancel_its_run() -> None:
    """The run ends at the next thing it waits for."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        task.cancel()

    task = asyncio.ensure_future(run_script(["done"], on_event=listen))
    with pytest.raises(asyncio.CancelledError):
        await task
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.code == Code.RUN_CANCELLED


async def test_what_is_left_behind_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Once when the run goes on without it, and once when it has ended."""
    caplog.set_level(logging.INFO, "surecall.background")
    stubborn = Stubborn()
    with pytest.raises(RunLimitError):
        await in_tool(stubborn, {"deadline_s": 0.05})
    await stubborn.end()
    assert [record.getMessage() for record in caplog.records] == [
        "the tool stuck did not end when it was cancelled; it is left running",
        "abandoned work has ended; its result is dropped",
    ]


PROGRAM = """
import asyncio, surecall
from surecall.base.errors import RunLimitError
from surecall.models.transport import ScriptedTransport, assistant, tool_call

@surecall.tool(effect="write")
async def stuck() -> str:
    "Never end."
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

try:
    surecall.run_sync("hi", model="m", tools=[stuck], deadline_s=0.1,
        transport=ScriptedTransport([assistant(None, tool_call("stuck"))]))
except RunLimitError as error:
    print(error.code)
"""


def test_a_program_ends_although_a_tool_does_not() -> None:
    """Neither closing the loop nor leaving the interpreter waits for it or complains of it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "DEADLINE_EXCEEDED\n")
    assert done.stderr.splitlines() == [
        "the tool stuck did not end when it was cancelled; it is left running"
    ]


async def test_a_run_may_end_with_its_calls() -> None:
    """A refused call is mended first; then nothing more is asked of the model."""
    transport = ScriptedTransport(
        [
            assistant(None, tool_call("save", {"wrong": 1})),
            assistant(None, tool_call("save", {"text": "a"}), tool_call("look", {}, "call_2")),
        ]
    )
    result = await run_script([], transport=transport, stop_after_calls=True)
    assert (result.text, saved) == ("", ["a"])
    assert [turn.results[0].executed for turn in result.trace.turns] == [False, True]
    assert [message.role for message in result.history][-3:] == ["assistant", "tool", "tool"]
    assert replay_trace(result.trace).same


async def test_a_run_that_may_end_with_its_calls_goes_on_for_a_required_tool() -> None:
    """What must have succeeded comes first."""
    script = [
        assistant(None, tool_call("look", {})),
        assistant(None, tool_call("save", {"text": "a"}, "call_2")),
    ]
    result = await run_script(script, stop_after_calls=True, required_tools=("save",))
    assert len(result.trace.turns) == 2


async def test_a_run_that_may_end_with_its_calls_answers_without_any() -> None:
    """An answer is an answer."""
    result = await run_script([assistant("Hello.")], stop_after_calls=True)
    assert result.text == "Hello."
