"""Whatever a provider sends, the loop ends with a result or a coded error, and runs nothing cut."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surecall
from support.streams import DONE, stream_of
from surecall.base.errors import Code, SurecallError
from surecall.base.records import WireReply, WireRequest
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call

ran: list[tuple[str, Any]] = []


@surecall.tool(effect="write", parameters={"type": "object"})
def save(**arguments: Any) -> dict[str, Any]:
    """Save anything."""
    ran.append(("save", arguments))
    return {"ok": True}


@surecall.tool(effect="read", parameters={"type": "object"})
async def look(**arguments: Any) -> dict[str, Any]:
    """Look at anything."""
    ran.append(("look", arguments))
    return {}


@surecall.tool(effect="read")
async def fail() -> None:
    """Always fail."""
    ran.append(("fail", {}))
    raise RuntimeError("no")


class ByteTransport:
    """A transport that answers with exactly these bytes, whole or as a stream."""

    def __init__(self, data: bytes, content_type: str = "application/json", step: int = 0) -> None:
        self.data, self.step = data, step
        self.status, self.attempts = 200, 1
        self.headers = {"content-type": content_type}
        self.requests = 0

    async def send(self, request: WireRequest) -> WireReply:
        """Answer with the bytes; the second request gets an answer in order."""
        del request
        self.requests += 1
        body = self.data if self.requests == 1 else b'{"choices":[{"message":{"content":"x"}}]}'
        return WireReply(status=200, headers=self.headers, body=body)

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator["ByteTransport", None]:
        """Open the bytes as a stream."""
        del request
        self.requests += 1
        yield self

    async def __aiter__(self) -> AsyncIterator[bytes]:
        data = self.data if self.requests == 1 else FINAL_STREAM
        step = self.step or max(1, len(data))
        for start in range(0, len(data), step):
            yield data[start : start + step]

    async def aclose(self) -> None:
        """Nothing is open."""


FINAL_STREAM = stream_of({"role": "assistant", "content": "the end"}, "stop")


def run(transport: Any, **options: Any) -> tuple[str, surecall.RunResult | None]:
    """Run a prompt; return the code it ended with, and the result when there is one."""
    ran.clear()
    options.setdefault("tools", [save, look, fail])
    try:
        result = asyncio.run(
            surecall.run("hi", model="m", preset=(), transport=transport, **options)
        )
    except SurecallError as error:
        return error.code, None
    return "", result


# any bytes at all


PIECES = st.sampled_from(
    [
        b"data: ",
        b"\n\n",
        b"[DONE]",
        b"event: error\n",
        b": comment\n",
        b'{"choices":[',
        b'{"index":0,"delta":{"content":"x"}}',
        b'{"message":{"content":null,"tool_calls":[{"id":"a","function":',
        b'{"name":"save","arguments":"{}"}}]}}',
        b'{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":',
        b'{"name":"save","arguments":"{}"}}]}}',
        b'"finish_reason":"stop"',
        b"]}",
        b"{",
        b"null",
        b'{"error":{"message":"x","code":429}}',
        b"<html><title>x</title>",
        b"\xff\xfe",
        b"\\ud800",
        b"1e999",
        b"[" * 200,
    ]
)
ANY_BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(PIECES, st.binary(max_size=4)), max_size=12).map(b"".join),
)


@settings(max_examples=100, deadline=None)
@given(data=ANY_BYTES, content_type=st.sampled_from(["application/json", "text/html", ""]))
def test_any_bytes_as_a_body_give_a_result_or_a_code(data: bytes, content_type: str) -> None:
    """No other exception leaves the loop."""
    code, result = run(ByteTransport(data, content_type))
    assert (code in Code.__members__) is (result is None)


@settings(max_examples=100, deadline=None)
@given(data=ANY_BYTES, step=st.integers(0, 9))
def test_any_bytes_as_a_stream_give_a_result_or_a_code(data: bytes, step: int) -> None:
    """No other exception leaves the loop, however the bytes are cut."""
    code, result = run(ByteTransport(data, "text/event-stream", step), stream=True)
    assert (code in Code.__members__) is (result is None)


# any reply of the right outline, with anything in it


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
IDS = st.one_of(
    st.just("a"), st.just(""), st.none(), st.integers(0, 3), st.text(max_size=4), st.just([1])
)
NAMES = st.one_of(
    st.sampled_from(["save", "look", "fail", " save ", "Save", "sаve", "", "a.b", "x" * 300]),
    st.text(max_size=6),
    st.none(),
    st.just({"name": "save"}),
)
ARGUMENTS = st.one_of(
    JSON,
    JSON.map(json.dumps),
    st.text(max_size=12),
    st.sampled_from(
        [
            "{}",
            '{"a": 1',
            '{"a": "\\ud800"}',
            '```json\n{"a": 1}\n```',
            '"{\\"a\\": 1}"',
            "{'a': 1}",
            '{"a": 1, "a": 2}',
            '{"a": NaN}',
            "[" * 5_000,
            '{"a":' * 130 + "1" + "}" * 130,
            '{"a":"' + "x" * 300_000 + '"}',
        ]
    ),
)
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": NAMES, "arguments": ARGUMENTS})
CALLS = st.one_of(
    st.fixed_dictionaries(
        {"function": FUNCTIONS},
        optional={"id": IDS, "type": JSON, "index": JSON, "signature": JSON},
    ),
    st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}, optional={"id": IDS}),
    JSON,
)
CONTENTS = st.one_of(
    st.none(),
    st.text(max_size=10),
    st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": JSON}), max_size=2),
    JSON,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": JSON,
        "content": CONTENTS,
        "tool_calls": st.one_of(st.lists(CALLS, max_size=4), CALLS),
        "function_call": st.one_of(FUNCTIONS, JSON),
        "reasoning_content": JSON,
        "refusal": JSON,
    },
)
FINISHES = st.sampled_from(["stop", "tool_calls", "length", "content_filter", None, "odd"])
TURNS = st.builds(
    lambda message, finish: ScriptedReply(message=message, finish_reason=finish), MESSAGES, FINISHES
)


def check_request(body: dict[str, Any]) -> None:
    """Check that every provider would accept the messages of a request."""
    waiting: list[str] = []
    used: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            assert isinstance(json.loads(message["content"])["ok"], bool)
            continue
        assert waiting == []
        for call in message.get("tool_calls", ()):
            assert isinstance(call["id"], str)
            assert call["id"]
            assert call["id"] not in used
            assert call["type"] == "function"
            assert 1 <= len(call["function"]["name"]) <= 64
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert len(call["function"]["arguments"]) < 250_000
            used.add(call["id"])
            waiting.append(call["id"])
    assert waiting == []
    json.dumps(body).encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(turns=st.lists(TURNS, min_size=1, max_size=4), stream=st.booleans())
def test_calls_and_results_pair_in_every_request(turns: list[ScriptedReply], stream: bool) -> None:
    """After any malformed turn, the next request is one that providers accept."""
    transport = ScriptedTransport([*turns, "end", "end"])
    code, result = run(transport, stream=stream, max_turns=len(turns) + 1)
    for request in transport.requests:
        check_request(request.body)
    assert len(transport.requests) <= len(turns) + 1
    if result is None:
        assert code in Code.__members__
        return
    assert len(result.calls) == len(result.results)
    assert [call.id for call in result.calls] == [item.call_id for item in result.results]
    assert sum(item.executed for item in result.results) == len(ran)


@settings(max_examples=100, deadline=None)
@given(turn=TURNS, stream=st.booleans())
def test_the_same_reply_is_always_read_the_same_way(turn: ScriptedReply, stream: bool) -> None:
    """Ids and arguments do not depend on anything but the reply."""
    runs = [
        run(ScriptedTransport([turn, "end", "end"]), stream=stream, max_turns=3)[1] for _ in "ab"
    ]
    first, second = [None if result is None else result.calls for result in runs]
    assert first == second


@settings(max_examples=100, deadline=None)
@given(
    turns=st.lists(TURNS, min_size=1, max_size=3),
    allow=st.lists(st.sampled_from(["save", "look", "fail"]), unique=True, min_size=1),
    deny=st.lists(st.sampled_from(["save", "look", "fail"]), unique=True, max_size=2),
)
def test_fewer_allowed_tools_never_run_more(
    turns: list[ScriptedReply], allow: list[str], deny: list[str]
) -> None:
    """No masked tool is sent or run, whatever the model asks for."""
    visible = set(allow) - set(deny)
    transport = ScriptedTransport([*turns, "end", "end"])
    run(transport, tool_allowlist=allow, tool_denylist=deny, max_turns=len(turns) + 1)
    assert {name for name, _ in ran} <= visible
    for request in transport.requests:
        sent = {entry["function"]["name"] for entry in request.body.get("tools", ())}
        assert sent <= visible


# every script comes to an end


STEPS = st.sampled_from(["save", "look", "fail", "nope", "bad", "two", "text", "empty"])
REPLIES: dict[str, Any] = {
    "save": assistant(None, tool_call("save", {"a": 1})),
    "look": assistant(None, tool_call("look", {"a": 1})),
    "fail": assistant(None, tool_call("fail")),
    "nope": assistant(None, tool_call("nope")),
    "bad": assistant(None, tool_call("save", "{")),
    "two": assistant(None, tool_call("save", {"a": 1}), tool_call("look", "{}", "call_2")),
    "text": "the end",
    "empty": "",
}
LIMITS = {
    "MAX_TURNS_REACHED",
    "REPEATED_CALL",
    "CALL_BUDGET_EXCEEDED",
    "TOOL_ERROR",
    "NO_TOOL_CALLS",
}


@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(STEPS, min_size=1, max_size=6),
    max_turns=st.integers(1, 8),
    mode=st.sampled_from(["relaxed", "enforced", "disabled"]),
    max_calls=st.none() | st.integers(1, 5),
)
def test_every_script_ends_by_an_answer_or_a_named_limit(
    steps: list[str], max_turns: int, mode: str, max_calls: int | None
) -> None:
    """A model that goes round in circles for ever is stopped within `max_turns`."""
    asked: list[None] = []

    def answer(_request: WireRequest) -> Any:
        asked.append(None)
        return REPLIES[steps[(len(asked) - 1) % len(steps)]]

    code, result = run(
        ScriptedTransport(answer), max_turns=max_turns, tool_use_mode=mode, max_tool_calls=max_calls
    )
    assert len(asked) <= max_turns
    assert code in LIMITS if result is None else result.turns == len(asked)


# streams cut at every byte


CALL = {"id": "a", "type": "function", "function": {"name": "save", "arguments": '{"text": "é"}'}}
LOOK = {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}}
STREAMS = {
    "text": stream_of({"role": "assistant", "content": "some text"}, "stop"),
    "one call": stream_of(
        {"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool_calls"
    ),
    "two calls": stream_of(
        {"role": "assistant", "content": None, "tool_calls": [CALL, LOOK]}, "tool_calls", 20
    ),
    "reasoning and a call": stream_of(
        {
            "role": "assistant",
            "content": "ok",
            "reasoning_content": "hmm",
            "tool_calls": [CALL],
        },
        "tool_calls",
        20,
    ),
}


def finished_at(data: bytes) -> int:
    """Return how many bytes it takes until the whole finish has been received."""
    finish = data.rindex(b'"finish_reason": "')
    return data.index(b"\n", finish)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_cut_at_any_byte_runs_nothing(name: str) -> None:
    """Before the whole finish has arrived, no tool runs and the outcome has a code."""
    data = STREAMS[name]
    whole = finished_at(data)
    for end in range(len(data) + 1):
        code, result = run(ByteTransport(data[:end], "text/event-stream"), stream=True)
        if end < whole:
            assert (result, ran) == (None, []), end
            assert code in {Code.STREAM_TRUNCATED, Code.UPSTREAM_EMPTY}, (end, code)
        else:
            assert code == "", (end, code)
            assert len(ran) == data.count(b'"id": "a"') + data.count(b'"id": "b"')


@pytest.mark.parametrize("name", STREAMS)
def test_done_after_a_cut_is_no_finish(name: str) -> None:
    """A proxy that adds `[DONE]` to half a stream does not make it whole."""
    data = STREAMS[name]
    events = data[: data.rindex(b"data: {")].split(b"\n\n")
    for count in range(len(events)):
        cut = b"".join(event + b"\n\n" for event in events[:count]) + DONE
        code, result = run(ByteTransport(cut, "text/event-stream"), stream=True)
        assert (code, result, ran) == (Code.STREAM_TRUNCATED, None, [])


@pytest.mark.parametrize("finish", ["length", "LENGTH", "max_tokens", "content_filter"])
@pytest.mark.parametrize("stream", [True, False])
def test_calls_of_a_reply_cut_by_its_limit_do_not_run(finish: str, stream: bool) -> None:
    """However complete their arguments look, the model is told to send less."""
    calls = [tool_call("save", {"text": "a"}), tool_call("look", "{}", "call_2")]
    reply = ScriptedReply(message=assistant(None, *calls), finish_reason=finish)
    code, result = run(ScriptedTransport([reply, "end"]), stream=stream)
    assert (code, ran) == ("", [])
    assert result is not None
    assert [item.envelope.error_codes for item in result.results] == [
        (Code.ARGUMENTS_TRUNCATED,),
        (Code.ARGUMENTS_TRUNCATED,),
    ]
