import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import (
    Code,
    ConfigError,
    ProviderConnectionError,
    ProviderReplyError,
    ProviderStatusError,
)
from surecall.base.records import WireRequest
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call

REQUEST = WireRequest(path="/chat/completions", body={"model": "m", "messages": []})


async def sent(reply: Any) -> dict[str, Any]:
    """Return the body of the only reply of a script."""
    return json.loads((await ScriptedTransport([reply]).send(REQUEST)).body)


async def streamed(reply: Any, **options: Any) -> list[bytes]:
    """Return the chunks of the only reply of a script."""
    async with ScriptedTransport([reply], **options).stream(REQUEST) as stream:
        return [chunk async for chunk in stream]


def events(chunks: list[bytes]) -> list[Any]:
    """Return the decoded events of a stream."""
    lines = b"".join(chunks).decode().split("\n\n")
    texts = [line.removeprefix("data: ") for line in lines if line]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


def fold(found: list[Any]) -> dict[str, Any]:
    """Put the deltas of a stream together again, as a client would."""
    message: dict[str, Any] = {"content": None}
    calls: dict[int, dict[str, Any]] = {}
    for event in found[:-1]:
        for choice in event["choices"]:
            delta = choice["delta"]
            for name in ("content", "reasoning_content"):
                if name in delta:
                    message[name] = (message.get(name) or "") + delta[name]
            if "role" in delta:
                message["role"] = delta["role"]
            for piece in delta.get("tool_calls", []):
                call = calls.setdefault(piece["index"], {"function": {"arguments": ""}})
                function = piece["function"]
                call["function"]["arguments"] += function["arguments"]
                if "name" in function:
                    call["function"]["name"] = function["name"]
                    call |= {"id": piece["id"], "type": piece["type"]}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return message


async def test_text_becomes_a_completion() -> None:
    """The shortest script is a list of answers."""
    body = await sent("hello")
    assert body["object"] == "chat.completion"
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hello"},
            "finish_reason": "stop",
        }
    ]


async def test_a_message_with_calls_finishes_with_them() -> None:
    """A message gets the finish reason a provider would give."""
    message = assistant("thinking", tool_call("look", {"q": "ü"}), reasoning_content="hm")
    assert message["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"q":"ü"}'}}
    ]
    [choice] = (await sent(message))["choices"]
    assert choice == {"index": 0, "message": message, "finish_reason": "tool_calls"}


async def test_broken_arguments_are_sent_as_written() -> None:
    """Text given as arguments is not touched."""
    [choice] = (await sent(assistant(None, tool_call("look", '{"q": '))))["choices"]
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"q": '


async def test_details_of_a_reply() -> None:
    """Finish reason, usage and headers can be set, also to nothing."""
    reply = ScriptedReply(
        message="x", finish_reason=None, usage={"total_tokens": 3}, headers={"X-A": "b"}
    )
    answer = await ScriptedTransport([reply]).send(REQUEST)
    body = json.loads(answer.body)
    assert body["choices"][0]["finish_reason"] is None
    assert body["usage"] == {"total_tokens": 3}
    assert answer.headers == {"content-type": "application/json", "x-a": "b"}


@pytest.mark.parametrize("body", [{"choices": None}, {"error": {"message": "x"}}, {"object": "x"}])
async def test_a_whole_body_is_sent_as_it_is(body: dict[str, Any]) -> None:
    """A script can send what a provider should not."""
    assert await sent(body) == body
    assert json.loads(b"".join(await streamed(body))) == body


async def test_raw_bytes_are_sent_as_they_are() -> None:
    """Bytes need not be JSON."""
    answer = await ScriptedTransport([b"not json"]).send(REQUEST)
    assert answer.body == b"not json"


async def test_requests_are_recorded_as_they_were() -> None:
    """What is changed later does not change the record."""
    transport = ScriptedTransport(["a", "b"])
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "1"}]}
    await transport.send(WireRequest(path="/c", body=body))
    body["messages"].append({"role": "user", "content": "2"})
    await transport.send(WireRequest(path="/c", body=body))
    assert [len(request.body["messages"]) for request in transport.requests] == [1, 2]


async def test_a_growing_conversation_is_kept_once() -> None:
    """Each request stays whole and as it was, but what it repeats takes no room."""
    transport = ScriptedTransport(["x"] * 50)
    messages: list[dict[str, Any]] = []
    for number in range(50):
        messages.append({"role": "user", "content": f"{number}", "parts": [{"at": number}]})
        body = json.loads(json.dumps({"model": "m", "messages": messages}))
        await transport.send(WireRequest(path="/", body=body))
        body["messages"][0]["parts"].append("changed afterwards")
    assert [request.body["messages"] for request in transport.requests] == [
        messages[: number + 1] for number in range(50)
    ]
    kept = {id(item) for request in transport.requests for item in request.body["messages"]}
    assert len(kept) == 50


values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -1, 0.0, -0.0, 1.0, "", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(bodies=st.lists(st.dictionaries(st.sampled_from("abc"), values), min_size=2, max_size=4))
async def test_a_recorded_request_is_exactly_what_was_sent(bodies: list[dict[str, Any]]) -> None:
    """Also where values are equal but not the same, such as `1` and `true`."""
    transport = ScriptedTransport(["x"] * len(bodies))
    for body in bodies:
        await transport.send(WireRequest(path="/", body=body))
    assert [repr(request.body) for request in transport.requests] == [repr(body) for body in bodies]


async def test_replies_may_come_from_a_function() -> None:
    """A function sees the request it answers; it may be a coroutine function."""
    transport = ScriptedTransport(lambda request: request.body["model"])
    answer = await transport.send(REQUEST)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "m"

    async def later(request: WireRequest) -> str:
        return request.path

    answer = await ScriptedTransport(later).send(REQUEST)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "/chat/completions"


async def test_replies_may_come_from_a_generator() -> None:
    """A generator is asked for one reply at a time."""

    def replies() -> Iterator[str]:
        yield "one"
        yield "two"

    transport = ScriptedTransport(replies())
    await transport.send(REQUEST)
    assert b"two" in (await transport.send(REQUEST)).body


async def test_an_exhausted_script_says_so() -> None:
    """One request too many is told with both numbers."""
    transport = ScriptedTransport(["only"])
    await transport.send(REQUEST)
    with pytest.raises(ConfigError, match="The script has 1 replies; request 2 arrived"):
        await transport.send(REQUEST)


async def test_an_exception_is_raised() -> None:
    """A script can fail like a provider."""
    error = ProviderConnectionError(Code.CONNECTION_RESET, "gone", retryable=True)
    with pytest.raises(ProviderConnectionError) as caught:
        await ScriptedTransport([error]).send(REQUEST)
    assert caught.value is error


async def test_an_unknown_kind_of_reply_is_refused() -> None:
    """A script with a mistake in it says what it can hold."""
    with pytest.raises(ConfigError, match="type int"):
        await ScriptedTransport([5]).send(REQUEST)


async def test_an_error_status_goes_through_the_fault_parser() -> None:
    """The message of an error reply is the provider's message."""
    reply = ScriptedReply(status=429, message="slow", headers={"retry-after": "2"})
    with pytest.raises(ProviderStatusError) as caught:
        await ScriptedTransport([reply]).send(REQUEST)
    error = caught.value
    assert (error.code, error.provider_message, error.retry_after_s) == ("RATE_LIMIT", "slow", 2.0)


async def test_a_stream_has_the_order_of_a_real_one() -> None:
    """Role, reasoning, text, calls, finish, usage, end."""
    message = assistant("hi", tool_call("look", "{}"), reasoning_content="hm")
    found = events(await streamed(ScriptedReply(message=message, usage={"total_tokens": 1})))
    assert found[-1] == "[DONE]"
    assert found[-2]["choices"] == []
    assert found[-2]["usage"] == {"total_tokens": 1}
    choices = [event["choices"][0] for event in found[:-2]]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant"},
        {"reasoning_content": "hm"},
        {"content": "hi"},
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": ""},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None] * 5 + ["tool_calls"]
    assert {event["object"] for event in found[:-1]} == {"chat.completion.chunk"}


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"tool_calls": "text"}, id="calls are text"),
        pytest.param({"tool_calls": [None]}, id="call is null"),
        pytest.param({"tool_calls": [{"function": None}]}, id="function is null"),
        pytest.param({"tool_calls": [{"function": {"arguments": {"a": 1}}}]}, id="object"),
        pytest.param({"function_call": {"name": "x"}}, id="legacy"),
        pytest.param({"content": [{"type": "text", "text": "x"}]}, id="parts"),
    ],
)
async def test_odd_messages_are_streamed_without_loss(message: dict[str, Any]) -> None:
    """What is not of the usual shape comes in one delta."""
    found = events(await streamed(message))
    deltas = [event["choices"][0]["delta"] for event in found[:-1]]
    [(name, value)] = message.items()
    told = [delta[name] for delta in deltas if name in delta]
    if isinstance(value, list) and name == "tool_calls" and isinstance(value[0], dict):
        value = [{"index": 0, **value[0]}]
    assert told == [value]


async def test_chunks_are_sent_as_given() -> None:
    """A script can write the events of a stream itself."""
    reply = ScriptedReply(chunks=[{"n": 1}, "broken {", "[DONE]"])
    assert await streamed(reply) == [
        b'data: {"n":1}\n\n',
        b"data: broken {\n\n",
        b"data: [DONE]\n\n",
    ]
    assert (await ScriptedTransport([reply]).send(REQUEST)).headers["content-type"] == (
        "text/event-stream"
    )


async def test_a_cut_reply_ends_where_it_was_cut() -> None:
    """A stream just ends; a whole answer is known to be short."""
    whole = b"".join(await streamed("hello world"))
    for size in (0, 10, len(whole) - 1, len(whole) + 5):
        reply = ScriptedReply(message="hello world", cut_at_bytes=size)
        assert b"".join(await streamed(reply)) == whole[:size]
    with pytest.raises(ProviderReplyError) as caught:
        await ScriptedTransport([ScriptedReply(message="x", cut_at_bytes=5)]).send(REQUEST)
    assert caught.value.code == Code.UPSTREAM_TRUNCATED_BODY


async def test_a_list_of_sizes_cuts_the_stream_there() -> None:
    """After the last size comes the rest."""
    chunks = await streamed(b"abcdefgh", chunk_bytes=[1, 3])
    assert chunks == [b"a", b"bcd", b"efgh"]
    assert await streamed(b"abcdefgh", chunk_bytes=3) == [b"abc", b"def", b"gh"]


@pytest.mark.parametrize(
    "reply", ["abc", b"abc", assistant("abc"), ScriptedReply(message="abc"), ValueError("abc")]
)
def test_one_reply_is_not_taken_for_a_list(reply: Any) -> None:
    """A text is not a script of its letters, nor a message one of its keys."""
    with pytest.raises(ConfigError, match="not a list of replies") as caught:
        ScriptedTransport(reply)
    assert "ScriptedTransport([reply])" in (caught.value.hint or "")


@given(
    text=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    arguments=st.lists(st.text('{}[]":, \\üz', max_size=50), max_size=3),
    size=st.none() | st.integers(1, 40),
)
@settings(max_examples=60)
async def test_a_stream_folds_into_the_message_it_was_made_from(
    text: str | None, arguments: list[str], size: int | None
) -> None:
    """However it is cut, nothing is lost and nothing is added."""
    calls = [tool_call(f"tool_{n}", words, id=f"call_{n}") for n, words in enumerate(arguments)]
    message = assistant(text or None, *calls)
    found = events(await streamed(message, chunk_bytes=size))
    assert fold(found) == message
