"""Streamed runs: the same result, told as it happens."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import surecall
from support.streams import DONE, chunk
from surecall import Session
from surecall.base.errors import Code, ProviderReplyError
from surecall.base.records import (
    Event,
    ModelRequestEnded,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCallEnded,
    WireReply,
    WireRequest,
)
from surecall.loop import RunStream
from surecall.models.transport import ScriptedReply, ScriptedTransport

from .toolbox import assistant, look, run_script, save, saved, tool_call

FINAL = "The answer, with ümlauts and 😀, in more than one piece."
CONVERSATIONS: dict[str, list[Any]] = {
    "text": [FINAL],
    "one call": [assistant(None, tool_call("look", {"what": "the façade"})), FINAL],
    "two calls and text": [
        assistant("Let me see.", tool_call("look", {"what": "a"}), tool_call("look", "{}", "b")),
        FINAL,
    ],
    "reasoning and a call": [
        assistant(None, tool_call("save", {"text": "x" * 50}), reasoning_content="I should save."),
        assistant(FINAL, reasoning_content="Done."),
    ],
    "broken arguments": [
        assistant(None, tool_call("look", '{"what": '), tool_call("nope", "[]", "call_1")),
        assistant(None, tool_call("look", '```json\n{"what": "a"}\n```', "")),
        FINAL,
    ],
    "cut by length": [
        ScriptedReply(
            message=assistant(None, tool_call("save", {"text": "a"})), finish_reason="length"
        ),
        FINAL,
    ],
    "usage": [
        ScriptedReply(
            message=assistant(None, tool_call("look")),
            usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        ),
        ScriptedReply(message=FINAL, usage={"prompt_tokens": 9, "total_tokens": 12}),
    ],
    "empty final": [assistant(None, tool_call("look")), assistant(""), FINAL],
}


def essence(result: surecall.RunResult) -> dict[str, Any]:
    """Return what must not depend on streaming."""
    return {
        "text": result.text,
        "history": result.history,
        "usage": result.usage,
        "finish": result.finish_reason,
        "calls": result.calls,
        "results": [(item.call_id, item.text, item.executed) for item in result.results],
        "receipts": result.receipts,
        "saved": list(saved),
    }


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("chunk_bytes", [None, 1, 2, 7, 64, 100_000, (1, 200, 3, 50)], ids=str)
async def test_a_streamed_run_has_the_same_result(name: str, chunk_bytes: Any) -> None:
    """However the stream is cut, the result equals that of a run that was not streamed."""
    whole = essence(await run_script(CONVERSATIONS[name]))
    saved.clear()
    transport = ScriptedTransport(CONVERSATIONS[name], chunk_bytes=chunk_bytes)
    streamed = essence(await run_script([], transport=transport, stream=True))
    assert streamed == whole
    assert all(request.stream for request in transport.requests)


@pytest.mark.parametrize("name", CONVERSATIONS)
async def test_text_deltas_join_to_the_final_text(name: str) -> None:
    """The pieces of the last turn are the answer, and no piece is told twice."""
    transport = ScriptedTransport(CONVERSATIONS[name], chunk_bytes=3)
    events: list[Event] = []
    stream = surecall.stream(
        "hi", model="m", preset=(), tools=[look, save], transport=transport, on_event=events.append
    )
    seen = [event async for event in stream]
    last = stream.result.turns - 1
    deltas = [event for event in seen if isinstance(event, TextDelta) and event.turn == last]
    assert "".join(event.text for event in deltas) == stream.result.text == FINAL
    assert len(deltas) > 1
    assert seen == events
    assert isinstance(seen[0], RunStarted)
    assert isinstance(seen[-1], RunEnded)
    ended = next(
        n for n, e in enumerate(seen) if isinstance(e, ModelRequestEnded) and e.turn == last
    )
    assert all(seen.index(delta) < ended for delta in deltas)


async def test_reasoning_is_told_apart_from_text() -> None:
    """Reasoning deltas never mix with the text to show."""
    stream = surecall.stream(
        "hi",
        model="m",
        preset=(),
        tools=[look, save],
        transport=ScriptedTransport(CONVERSATIONS["reasoning and a call"]),
    )
    seen = [event async for event in stream]
    reasoning = "".join(event.text for event in seen if isinstance(event, ReasoningDelta))
    assert reasoning == "I should save.Done."


class HeldTransport:
    """A transport whose stream gives a beginning, and the rest when it is allowed to."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.go_on = asyncio.Event()
        self.is_open = False
        self.closed = asyncio.Event()
        self.status, self.attempts = 200, 1
        self.headers = {"content-type": "text/event-stream"}

    async def send(self, request: WireRequest) -> WireReply:
        """Nothing here is sent whole."""
        raise AssertionError(request)

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator["HeldTransport", None]:
        """Open the stream and note when it is closed."""
        assert request.stream
        self.is_open = True
        try:
            yield self
        finally:
            self.is_open = False
            self.closed.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.pieces[0]
        await self.go_on.wait()
        for piece in self.pieces[1:]:
            yield piece

    async def aclose(self) -> None:
        """Nothing else is open."""


def held() -> HeldTransport:
    """Return a stream that stops after its first word."""
    first = b'data: {"choices":[{"index":0,"delta":{"content":"first "}}]}\n\n'
    rest = (
        b'data: {"choices":[{"index":0,"delta":{"content":"last"},"finish_reason":"stop"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    return HeldTransport([first, rest])


async def test_deltas_arrive_before_the_stream_has_ended() -> None:
    """The first word is there while the provider has not sent the second."""
    transport = held()
    stream = surecall.stream("hi", model="m", preset=(), transport=transport)
    texts: list[str] = []
    async for event in stream:
        if isinstance(event, TextDelta):
            texts.append(event.text)
            assert transport.is_open or len(texts) > 1
            transport.go_on.set()
    assert (texts[0], "".join(texts)) == ("first ", "first last")
    assert stream.result.text == "first last"


async def test_leaving_the_loop_cancels_the_run_and_closes_the_stream() -> None:
    """`break` is enough, also while the stream object is still at hand."""
    transport = held()
    stream = surecall.stream("hi", model="m", preset=(), transport=transport)
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await asyncio.wait_for(transport.closed.wait(), 60)
    assert transport.is_open is False
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = stream.result
    with pytest.raises(RuntimeError, match="only once"):
        aiter(stream)


async def test_a_reader_that_is_slower_than_the_model_gets_joined_pieces() -> None:
    """All of the text arrives in order, in far fewer events than the model sent."""
    text = "".join(f"{number} " for number in range(5_000))
    pieces = [chunk({"content": piece}) for piece in text.split(" ")]
    transport = HeldTransport([b"".join(pieces), chunk({}, "stop") + DONE])
    transport.go_on.set()
    stream = surecall.stream("hi", model="m", preset=(), transport=transport)
    events = aiter(stream)
    first = await anext(events)
    await transport.closed.wait()
    seen = [first, *[event async for event in events]]
    deltas = [event.text for event in seen if isinstance(event, TextDelta)]
    assert "".join(deltas) == stream.result.text == text.replace(" ", "")
    assert len(deltas) < 400


async def test_aclose_cancels_the_run_at_once() -> None:
    """When `aclose()` returns, nothing of the run is left."""
    before = asyncio.all_tasks()
    transport = held()
    stream = surecall.stream("hi", model="m", preset=(), transport=transport)
    events = aiter(stream)
    while not isinstance(await anext(events), TextDelta):
        pass
    assert len(asyncio.all_tasks()) > len(before)
    await stream.aclose()
    assert transport.closed.is_set()
    assert asyncio.all_tasks() == before
    await stream.aclose()


async def test_cancelling_the_reader_cancels_the_run() -> None:
    """A task that reads the events takes the run with it."""
    transport = held()
    stream = surecall.stream("hi", model="m", preset=(), transport=transport)
    started = asyncio.Event()

    async def read() -> None:
        async for event in stream:
            if isinstance(event, TextDelta):
                started.set()

    task = asyncio.create_task(read())
    await asyncio.wait_for(started.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.closed.is_set()


async def test_the_iterator_can_be_taken_twice_while_it_is_in_use() -> None:
    """Reading a few events first and the rest in a loop is one run."""
    stream = surecall.stream("hi", model="m", preset=(), transport=ScriptedTransport(["x y"]))
    events = aiter(stream)
    assert isinstance(await anext(events), RunStarted)
    rest = [event async for event in stream]
    assert isinstance(rest[-1], RunEnded)
    assert stream.result.text == "x y"


async def collect(stream: RunStream, seen: list[Event]) -> None:
    """Add every event to the list, which keeps them when the run fails."""
    async for event in stream:
        seen.append(event)  # noqa: PERF401


async def test_a_failed_run_raises_after_its_last_event() -> None:
    """All events are told, then the error is raised to the reader."""
    cut = ScriptedReply(message="half", finish_reason=None)
    stream = surecall.stream("hi", model="m", preset=(), transport=ScriptedTransport([cut]))
    seen: list[Event] = []
    with pytest.raises(ProviderReplyError) as caught:
        await collect(stream, seen)
    assert caught.value.code == Code.STREAM_TRUNCATED
    last = seen[-1]
    assert isinstance(last, RunEnded)
    assert (last.ok, last.code) == (False, "STREAM_TRUNCATED")


async def test_leaving_at_the_last_event_of_a_failed_run_is_silent() -> None:
    """The error of a run nobody waits for is not left behind in the event loop."""
    problems: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: problems.append(context))
    cut = ScriptedReply(message="half", finish_reason=None)
    stream = surecall.stream("hi", model="m", preset=(), transport=ScriptedTransport([cut]))
    async for event in stream:
        if isinstance(event, RunEnded):
            break
    await stream.aclose()
    for _ in range(5):
        await asyncio.sleep(0)
    loop.set_exception_handler(None)
    assert problems == []


async def test_a_session_streams_and_keeps_its_history() -> None:
    """`Session.stream` is `Session.run` with events."""
    transport = ScriptedTransport([assistant(None, tool_call("look")), "one", "two"])
    async with Session(model="m", preset=(), tools=[look], transport=transport) as session:
        stream = session.stream("first")
        kinds = {type(event) for event in [event async for event in stream]}
        assert {TextDelta, ToolCallEnded} <= kinds
        assert session.history == stream.result.history
        assert (await session.run("second")).text == "two"
    assert [request.stream for request in transport.requests] == [True, True, False]
    assert len(transport.requests[2].body["messages"]) == 5


async def test_events_are_there_without_streaming() -> None:
    """`stream=False` tells the same events without deltas."""
    stream = surecall.stream(
        "hi", model="m", preset=(), transport=ScriptedTransport(["x"]), stream=False
    )
    kinds = [type(event) for event in [event async for event in stream]]
    assert TextDelta not in kinds
    assert kinds[-1] is RunEnded
    assert stream.result.text == "x"


async def test_a_run_that_was_never_iterated_was_never_started() -> None:
    """Making the stream sends nothing, and closing it is harmless."""
    transport = ScriptedTransport(["x"])
    stream = surecall.stream("hi", model="m", transport=transport)
    await stream.aclose()
    assert transport.requests == []
