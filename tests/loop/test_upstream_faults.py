"""Faults of a provider over real HTTP, through the whole loop."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import surecall
from support.upstream import (
    CLOSE,
    HANG,
    RESET,
    FaultyUpstream,
    Script,
    chunked,
    completion_bytes,
    http_response,
    reply,
    sse_bytes,
    sse_head,
    sse_response,
)
from surecall.base.errors import Code, ProviderError
from surecall.base.records import Event, TextDelta
from surecall.models.transport import HttpTransport, RetryPolicy

from .toolbox import look, save, saved


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return one chunk of a stream."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "c", "model": "m", "choices": [choice]}


def call_delta(index: int, text: str, name: str | None = None) -> dict[str, Any]:
    """Return a chunk with a piece of a call."""
    head = {} if name is None else {"id": f"c{index}", "type": "function"}
    function = {"arguments": text} | ({} if name is None else {"name": name})
    return delta(tool_calls=[{"index": index, **head, "function": function}])


TEXT = [delta(role="assistant"), delta(content="The answer "), delta(content="is")]
HALF = [call_delta(0, "", "save"), call_delta(0, '{"text": "a')]
WHOLE = [call_delta(0, "", "save"), call_delta(0, '{"text": "a"}')]
SECOND = [call_delta(1, "", "save"), call_delta(1, '{"te')]
FINISH = delta("tool_calls")


@dataclass(frozen=True)
class Fault:
    """What the provider does, the code of the outcome, and what was heard until then."""

    id: str
    script: Script
    code: str
    text: str = ""
    says: str = ""
    streamed: bool = True


def ends(events: Sequence[Any]) -> list[Any]:
    """Return a stream that ends cleanly after these events, without a finish."""
    return [sse_response(events, done=False)]


def broken(events: Sequence[Any], data: bytes = b"") -> list[Any]:
    """Return a stream whose connection is reset in the middle of a chunk."""
    return [sse_head() + chunked(sse_bytes(events, done=False), end=False) + data, RESET]


TRUNCATED = Code.STREAM_TRUNCATED
RESET_CODE = Code.CONNECTION_RESET
A1_A3 = [
    Fault("A1 text ends", ends(TEXT), TRUNCATED, "The answer is"),
    Fault("A1 text ends with DONE", [sse_response(TEXT)], TRUNCATED, "The answer is"),
    Fault("A1 nothing but the role", ends(TEXT[:1]), TRUNCATED),
    Fault("A2 inside arguments", ends(HALF), TRUNCATED),
    Fault("A2 inside arguments with DONE", [sse_response(HALF)], TRUNCATED),
    Fault("A2 after valid JSON", ends(WHOLE), TRUNCATED),
    Fault("A2 after valid JSON with DONE", [sse_response(WHOLE)], TRUNCATED),
    Fault("A2 after the first of two calls", ends([*WHOLE, *SECOND]), TRUNCATED),
    Fault(
        "A2 closed without a last chunk",
        [sse_head() + chunked(sse_bytes(WHOLE, done=False), end=False), CLOSE],
        Code.UPSTREAM_TRUNCATED_BODY,
    ),
    Fault("A3 reset after text", broken(TEXT), RESET_CODE, "The answer is"),
    Fault("A3 reset inside a chunk", broken(WHOLE, b"40\r\ndata: {"), RESET_CODE),
]
BAD_EVENT = 'data: {"choices": [{"index": 0, "delta": {"content": tru\n\n'
A4_A5 = [
    Fault(
        "A4 a malformed event",
        [
            sse_head()
            + chunked(
                sse_bytes(TEXT, done=False) + BAD_EVENT.encode() + sse_bytes([*WHOLE, FINISH])
            )
        ],
        Code.UPSTREAM_BAD_EVENT,
        "The answer is",
        says="Event 4",
    ),
    Fault(
        "A5 an error event after text",
        [sse_response([*TEXT, {"error": {"message": "Overloaded", "code": "overloaded_error"}}])],
        Code.OVERLOADED,
        "The answer is",
        says="Overloaded",
    ),
    Fault(
        "A5 an error event after a call",
        [sse_response([*WHOLE, {"error": {"message": "boom", "code": 502}}])],
        Code.UPSTREAM_5XX,
        says="boom",
    ),
    Fault(
        "A5 a named error event",
        [sse_head() + chunked(sse_bytes(WHOLE, done=False) + b"event: error\ndata: oh no\n\n")],
        Code.STREAM_ERROR,
    ),
]
HTML = b"<html><head><title>Log in</title></head></html>"
BODIES = [
    (
        "A8 a page with 200",
        http_response(HTML, headers={"content-type": "text/html"}),
        Code.UPSTREAM_HTML,
    ),
    ("A8 a page as JSON", http_response(HTML), Code.UPSTREAM_HTML),
    ("A8 empty", http_response(b""), Code.UPSTREAM_EMPTY),
    ("A8 choices null", http_response(b'{"choices": null}'), Code.UPSTREAM_NO_CHOICES),
    ("A8 choices empty", http_response(b'{"choices": []}'), Code.UPSTREAM_NO_CHOICES),
    ("A8 no message", http_response(b'{"choices": [{}]}'), Code.UPSTREAM_NOT_A_REPLY),
    ("A8 an array", http_response(b"[]"), Code.UPSTREAM_NOT_A_REPLY),
    ("A8 not JSON", http_response(b"hello"), Code.UPSTREAM_INVALID_JSON),
    (
        "A8 an error with 200",
        http_response(b'{"error": {"message": "bad key", "code": "invalid_api_key"}}'),
        Code.AUTH,
    ),
]
# A stream without one event is told as a stream that ended too soon.
A8 = [
    Fault(name, [data], code, streamed=streamed)
    for name, data, code in BODIES
    for streamed in (False, True)
    if not (streamed and code == Code.UPSTREAM_INVALID_JSON)
]
PLAIN = Fault("A8 not JSON as a stream", [http_response(b"hello")], TRUNCATED)
FAULTS = [*A1_A3, *A4_A5, *A8, PLAIN]


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: f"{case.id}, streamed={case.streamed}")
async def test_a_fault_is_never_taken_for_an_answer(case: Fault) -> None:
    """The outcome has its code, no tool runs, and what was heard is what had arrived."""
    events: list[Event] = []
    async with (
        FaultyUpstream([case.script]) as upstream,
        HttpTransport(upstream.url, retry=RetryPolicy(base_delay_s=0.01)) as transport,
    ):
        with pytest.raises(ProviderError) as caught:
            await surecall.run(
                "hi",
                model="m",
                preset=(),
                tools=[look, save],
                transport=transport,
                stream=case.streamed,
                text_formats="off",  # which holds back what may become a call
                on_event=events.append,
            )
        assert upstream.calls == 1
    error = caught.value
    assert error.code == case.code
    assert case.says in str(error)
    assert saved == []
    heard = "".join(event.text for event in events if isinstance(event, TextDelta))
    if case in A1_A3:
        assert heard == case.text
    assert case.text.startswith(heard)
    assert error.trace.error.code == case.code
    assert [message.role for message in error.history] == ["user"]
    if case.code == TRUNCATED and case.text:
        assert case.text in (error.body or "")


async def test_a_fault_in_a_later_turn_keeps_what_was_done() -> None:
    """The tool ran once, its result is in the history, and only the request failed."""
    whole = sse_response([*WHOLE, FINISH])
    async with (
        FaultyUpstream([[whole], ends(TEXT)]) as upstream,
        HttpTransport(upstream.url) as transport,
    ):
        with pytest.raises(ProviderError) as caught:
            await surecall.run(
                "hi", model="m", preset=(), tools=[save], transport=transport, stream=True
            )
        assert upstream.calls == 2
    assert caught.value.code == TRUNCATED
    assert saved == ["a"]
    assert [message.role for message in caught.value.history] == ["user", "assistant", "tool"]
    assert json.loads(upstream.requests[1].body)["messages"][-1]["role"] == "tool"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_whole_conversation_over_http(stream: bool) -> None:
    """Without faults the same script runs to its end, streamed or not."""
    call = {
        "id": "c0",
        "type": "function",
        "function": {"name": "save", "arguments": '{"text": "a"}'},
    }
    scripts: list[Script] = (
        [[sse_response([*WHOLE, FINISH])], [sse_response([*TEXT, delta("stop")])]]
        if stream
        else [
            [reply({"role": "assistant", "content": None, "tool_calls": [call]})],
            [http_response(completion_bytes("The answer is"))],
        ]
    )
    async with FaultyUpstream(scripts) as upstream, HttpTransport(upstream.url) as transport:
        result = await surecall.run(
            "hi", model="m", preset=(), tools=[save], transport=transport, stream=stream
        )
        assert upstream.calls == 2
    assert (result.text, saved) == ("The answer is", ["a"])


async def test_a_client_that_leaves_closes_the_connection() -> None:
    """Leaving the loop over the events closes the connection to the provider."""
    script = [sse_head() + chunked(sse_bytes(TEXT, done=False), end=False), HANG]
    async with FaultyUpstream([script]) as upstream, HttpTransport(upstream.url) as transport:
        async for event in surecall.stream("hi", model="m", preset=(), transport=transport):
            if isinstance(event, TextDelta):
                break
        await upstream.wait_departure()
        assert upstream.calls == 1
