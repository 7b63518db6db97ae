"""The official openai SDK as a client of our chat completions server side."""

from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk, completion_create_params
from pydantic import TypeAdapter

from support.family_server import FamilyServer, render_stream
from surecall.base.errors import Code, ProviderStatusError
from surecall.base.records import (
    Message,
    ModelRequest,
    RawCall,
    Reply,
    ToolCall,
    ToolSpec,
    Usage,
)
from surecall.wire import ChatCompletions

CHAT = ChatCompletions()
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        "strict": False,
    },
}
CALLING = Reply(
    content="Let me look.",
    reasoning="Hm.",
    calls=(RawCall("c1", "look", '{"what":"é"}'), RawCall("c2", "look", {"what": "b"})),
    finish_reason="tool_calls",
    usage=Usage(7, 5, 12, reasoning_tokens=2, cached_tokens=3),
    model="m",
    id="r1",
)
FINAL = Reply(content="Done.", finish_reason="stop", model="m", id="r2")


def client(server: FamilyServer) -> openai.AsyncOpenAI:
    """Return a client that talks to the server."""
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="test", max_retries=0)


async def test_create_understands_a_reply_with_calls() -> None:
    """Text, calls, finish and usage arrive in the SDK's own objects."""
    async with FamilyServer(CHAT, [CALLING]) as server, client(server) as sdk:
        got = await sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hi"}], tools=[TOOL]
        )
    choice = got.choices[0]
    assert choice.message.content == "Let me look."
    assert choice.finish_reason == "tool_calls"
    calls: Any = choice.message.tool_calls
    assert [(c.id, c.function.name, c.function.arguments) for c in calls] == [
        ("c1", "look", '{"what":"é"}'),
        ("c2", "look", '{"what":"b"}'),
    ]
    assert got.usage is not None
    assert (got.usage.prompt_tokens, got.usage.total_tokens) == (7, 12)
    assert got.usage.prompt_tokens_details is not None
    assert got.usage.prompt_tokens_details.cached_tokens == 3


async def test_streams_are_folded_by_the_sdk() -> None:
    """The SDK's accumulator ends up with what was sent."""
    async with (
        FamilyServer(CHAT, [CALLING]) as server,
        client(server) as sdk,
        sdk.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "Hi"}], tools=[TOOL]
        ) as stream,
    ):
        kinds = [event.type async for event in stream]
        got = await stream.get_final_completion()
    message = got.choices[0].message
    assert kinds.count("content.delta") == 2
    assert message.content == "Let me look."
    assert got.choices[0].finish_reason == "tool_calls"
    calls: Any = message.tool_calls
    assert [(c.id, c.function.arguments) for c in calls] == [
        ("c1", '{"what":"é"}'),
        ("c2", '{"what":"b"}'),
    ]
    assert got.usage is not None
    assert got.usage.total_tokens == 12
    assert server.requests[0].stream


async def test_a_conversation_that_the_sdk_sends_back_is_understood() -> None:
    """The SDK's own message objects, dumped by the SDK, become calls and results."""
    async with FamilyServer(CHAT, [CALLING, FINAL]) as server, client(server) as sdk:
        messages: list[Any] = [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ],
            },
        ]
        first = await sdk.chat.completions.create(
            model="m", messages=messages, tools=[TOOL], tool_choice="required", temperature=0
        )
        messages.append(first.choices[0].message)
        messages += [
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
        ]
        second = await sdk.chat.completions.create(
            model="m",
            messages=messages,
            tools=[TOOL],
            parallel_tool_calls=False,
            response_format={"type": "json_object"},
        )
    assert second.choices[0].message.content == "Done."
    request = server.requests[1]
    assert [message.role for message in request.messages] == [
        "developer",
        "user",
        "assistant",
        "tool",
        "tool",
    ]
    assert [(c.id, c.arguments) for c in request.messages[2].tool_calls] == [
        ("c1", {"what": "é"}),
        ("c2", {"what": "b"}),
    ]
    assert request.messages[2].extra["reasoning_content"] == "Hm."
    assert [m.text for m in request.messages[3:]] == ["one", "two"]
    assert request.tools == (
        ToolSpec(
            name="look",
            description="Looks.",
            parameters=TOOL["function"]["parameters"],
            extra={"strict": False},
        ),
    )
    assert request.parallel_tool_calls is False
    assert request.response_format == {"type": "json_object"}
    assert server.requests[0].tool_choice == "required"
    assert server.requests[0].params == {"temperature": 0}


async def test_an_error_is_raised_by_the_sdk_in_its_own_class() -> None:
    """The status decides the class, and the message arrives."""
    errors = [
        ProviderStatusError(Code.RATE_LIMIT, "Slow down.", status=429),
        ProviderStatusError(Code.AUTH, "Who are you?", status=401),
    ]
    question: Any = [{"role": "user", "content": "Hi"}]
    async with FamilyServer(CHAT, errors) as server, client(server) as sdk:
        with pytest.raises(openai.RateLimitError, match=r"Slow down\."):
            await sdk.chat.completions.create(model="m", messages=question)
        with pytest.raises(openai.AuthenticationError):
            await sdk.chat.completions.create(model="m", messages=question)
        with pytest.raises(openai.BadRequestError, match="messages is an empty list"):
            await sdk.chat.completions.create(model="m", messages=[])


def test_what_is_rendered_is_valid_for_the_types_of_the_sdk() -> None:
    """No field is missing and none has a wrong type."""
    body = CHAT.render_reply(CALLING)
    got = ChatCompletion.model_validate(body, strict=True)
    assert got.choices[0].message.role == "assistant"
    data = b"".join(render_stream(CHAT, CALLING)).decode()
    chunks = [event.removeprefix("data: ") for event in data.split("\n\n") if event]
    assert chunks.pop() == "[DONE]"
    for chunk in chunks:
        ChatCompletionChunk.model_validate_json(chunk, strict=True)


def test_requests_are_valid_for_the_types_of_the_sdk() -> None:
    """What leaves is what the SDK would have let its users send."""
    call = ToolCall(id="c1", name="look", arguments={"what": "a"})
    wire = CHAT.render_request(
        ModelRequest(
            model="m",
            messages=(
                Message("system", "Be brief."),
                Message("user", "Hi"),
                Message("assistant", None, (call,)),
                Message("tool", "seen", tool_call_id="c1"),
            ),
            tools=(ToolSpec(name="look", parameters={"type": "object"}, extra={"strict": True}),),
            tool_choice={"type": "function", "function": {"name": "look"}},
            parallel_tool_calls=False,
            params={"temperature": 0.5, "max_completion_tokens": 9},
        )
    )
    adapter: TypeAdapter[Any] = TypeAdapter(
        completion_create_params.CompletionCreateParamsNonStreaming
    )
    checked = adapter.validate_python(wire.body)
    assert [message["role"] for message in checked["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert list(checked["tools"]) == wire.body["tools"]
    assert checked["tool_choice"] == wire.body["tool_choice"]
