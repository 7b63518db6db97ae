"""Streams, however they are cut."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.streams import DONE, chunk, event, fold, stream_of
from surecall.base.errors import Code, ProviderError
from surecall.base.records import Reading, Reply
from surecall.reading import read_reply
from surecall.wire import ChatCompletions, RawReply

PROTOCOL = ChatCompletions()

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
names = st.text("abcdefgh_", min_size=1, max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def calls(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Clean calls as a provider writes them."""
    found: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 3))):
        fields = draw(st.dictionaries(texts, values, max_size=3))
        arguments = json.dumps(fields, ensure_ascii=draw(st.booleans()))
        function = {"name": draw(names), "arguments": arguments}
        found.append({"id": f"call_{number}", "type": "function", "function": function})
    return found


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """Clean assistant messages."""
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | texts)}
    reasoning = draw(texts)
    if reasoning:
        message["reasoning_content"] = reasoning
    found = draw(calls())
    if found:
        message["tool_calls"] = found
    return message


def _whole(message: dict[str, Any], finish: str) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "r1", "model": "m", "choices": [choice]}).encode()


@settings(max_examples=100, deadline=None)
@given(
    message=messages(),
    finish=st.sampled_from(["stop", "tool_calls", "length"]),
    step=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 400), max_size=40),
)
def test_a_folded_stream_is_the_whole_reply(
    message: dict[str, Any], finish: str, step: int, sizes: list[int]
) -> None:
    """However the text is cut into events and the events into chunks."""
    whole = PROTOCOL.parse_body(_whole(message, finish))
    folded, text, reasoning = fold(stream_of(message, finish, step), sizes)
    assert folded == whole
    assert PROTOCOL.parse_message(folded) == PROTOCOL.parse_message(whole)
    assert text == (message["content"] or "")
    assert reasoning == message.get("reasoning_content", "")


MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "assistant", "content": "Grüße 😀"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"x": 1}'}},
        ],
    },
    {
        "role": "assistant",
        "content": "ok",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"q": "é"}'}}
        ],
    },
)
USAGE = event({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})


def _outcome(data: bytes, sizes: tuple[int, ...] = (), **options: Any) -> RawReply | str:
    """Return the reply, or the code of the refusal."""
    try:
        return fold(data, sizes, **options)[0]
    except ProviderError as error:
        return error.code


def _without_usage(reply: RawReply) -> tuple[Any, ...]:
    return reply.message, reply.finish_reason, reply.model, reply.id, reply.defects


@pytest.mark.parametrize("message", MESSAGES, ids=["text", "calls", "all"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_stream_cut_at_any_byte_is_truncated_or_the_same(
    message: dict[str, Any], line_end: bytes
) -> None:
    """No cut before the end of the chunk with the finish gives a reply, none after changes it."""
    body = stream_of(message, "tool_calls", step=4).removesuffix(DONE)
    stream = (body + USAGE + DONE).replace(b"\n", line_end)
    finished_at = len(body.rstrip().replace(b"\n", line_end))
    expected = _without_usage(fold(stream)[0])
    for end in range(len(stream) + 1):
        outcome = _outcome(stream[:end])
        if end >= finished_at:
            assert isinstance(outcome, RawReply)
            assert _without_usage(outcome) == expected
        else:
            assert outcome == ("STREAM_TRUNCATED" if end else "UPSTREAM_EMPTY")


def _read(data: bytes) -> Reading | None:
    outcome = _outcome(data)
    if isinstance(outcome, str):
        return None
    return read_reply(PROTOCOL.parse_message(outcome))


@settings(max_examples=100, deadline=None)
@given(message=messages(), step=st.integers(1, 9), data=st.data())
def test_no_call_can_run_from_a_cut_stream(
    message: dict[str, Any], step: int, data: st.DataObject
) -> None:
    """Random messages, random cuts: never a call before the finish."""
    body = stream_of(message, "tool_calls", step).removesuffix(DONE)
    finished_at = len(body.rstrip())
    end = data.draw(st.integers(0, finished_at - 1))
    assert _read(body[:end]) is None


entries = st.dictionaries(
    st.sampled_from(["index", "id", "function", "name", "arguments", "type", "text", "thinking"]),
    values
    | st.sampled_from([0, 1, "x", "text", "reasoning.text", "thinking"])
    | st.dictionaries(st.sampled_from(["name", "arguments"]), values),
)
deltas = st.dictionaries(
    st.sampled_from(
        [
            "content",
            "function_call",
            "reasoning",
            "reasoning_details",
            "refusal",
            "role",
            "tool_calls",
            "x",
        ]
    ),
    values | entries | st.lists(entries, max_size=3),
    max_size=3,
)
pieces = st.one_of(
    st.binary(max_size=40),
    st.just(DONE),
    st.builds(event, values),
    st.builds(chunk, deltas),
    st.builds(chunk, deltas, st.sampled_from(["stop", "tool_calls"]) | values),
)


@settings(max_examples=100, deadline=None)
@given(parts=st.lists(pieces, max_size=8), skips=st.booleans(), size=st.integers(1, 200))
def test_any_stream_gives_a_reply_or_a_coded_error(
    parts: list[bytes], skips: bool, size: int
) -> None:
    """Nothing else leaves the folder, and cutting the bytes otherwise changes nothing."""
    data = b"".join(parts)
    outcome = _outcome(data, skip_bad_events=skips)
    assert _outcome(data, (size,) * (len(data) // size), skip_bad_events=skips) == outcome
    if isinstance(outcome, str):
        assert outcome in list(Code)
        return
    assert outcome.finish_reason
    reading = read_reply(PROTOCOL.parse_message(outcome))
    assert len({call.id for call in reading.calls}) == len(reading.calls)


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=200) | st.builds(lambda value: json.dumps(value).encode(), values))
def test_any_body_gives_a_reply_or_a_coded_error(body: bytes) -> None:
    """Nothing else leaves the parser."""
    try:
        outcome: Any = PROTOCOL.parse_message(PROTOCOL.parse_body(body))
    except ProviderError as error:
        outcome = error.code
    assert isinstance(outcome, Reply) or outcome in list(Code)
