"""One request and one reply, without the loop."""

from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import Code, RequestError
from surecall.base.records import Message, ModelRequest, Receipt, ToolSpec, Usage
from surecall.loop import PromptRunner
from surecall.models.profiles import Capabilities
from surecall.models.transport import ScriptedReply, assistant
from surecall.reading.transforms import TransformChain, TransformRegistry

from .doors import MODEL, Door
from .sample_tools import call_add

TOOL = ToolSpec(name="add", description="Add.", parameters={"type": "object", "properties": {}})


def ask(**fields: Any) -> ModelRequest:
    """Return a small request."""
    return ModelRequest(model=MODEL, messages=(Message("user", "Hi!"),), **fields)


@pytest.mark.parametrize(
    ("request_fields", "capabilities", "named"),
    [
        pytest.param({"tools": (TOOL,)}, {"supports_tool_use": False}, "tools", id="tools"),
        pytest.param({"stream": True}, {"streaming": False}, "streaming", id="streaming"),
        pytest.param(
            {"response_format": {"type": "json_object"}},
            {"json_object": False},
            "json_object",
            id="json_object",
        ),
        pytest.param(
            {"response_format": {"type": "json_schema", "json_schema": {}}},
            {"json_schema": False},
            "json_schema",
            id="json_schema",
        ),
    ],
)
async def test_what_the_model_cannot_do_is_not_sent(
    door: Door, request_fields: dict[str, Any], capabilities: dict[str, Any], named: str
) -> None:
    """A request beyond the capabilities is refused, and the refusal says which."""
    async with door.open([]) as transport:
        runner = PromptRunner(transport, capabilities=Capabilities(**capabilities))
        with pytest.raises(RequestError) as failure:
            await runner.ask(ask(**request_fields))

    assert failure.value.code == Code.CAPABILITY_UNSUPPORTED
    assert named in failure.value.message
    assert door.requests == []


@pytest.mark.parametrize(
    ("arguments", "capabilities"),
    [
        pytest.param({"tool_prompting": "native"}, {"supports_tool_use": False}, id="tools"),
        pytest.param({"stream": True}, {"streaming": False}, id="streaming"),
    ],
)
async def test_a_run_beyond_the_capabilities_is_refused(
    door: Door, arguments: dict[str, Any], capabilities: dict[str, Any]
) -> None:
    """The loop is held to the capabilities too."""

    def look() -> None:
        """Look."""

    with pytest.raises(RequestError) as failure:
        await door.run([], tools=[look], capabilities=capabilities, **arguments)

    assert failure.value.code == Code.CAPABILITY_UNSUPPORTED
    assert door.requests == []


@pytest.mark.parametrize("key", ["model", "messages", "tools", "tool_choice", "response_format"])
async def test_reserved_keys_in_params_are_refused(door: Door, key: str) -> None:
    """What has a field of its own may not come through the side door."""
    async with door.open([]) as transport:
        with pytest.raises(RequestError) as failure:
            await PromptRunner(transport).ask(ask(params={key: "x"}))

    assert failure.value.code == Code.RESERVED_KEY
    assert key in failure.value.message
    assert door.requests == []


async def test_tools_and_a_response_format_exclude_each_other(door: Door) -> None:
    """Many providers drop one of them silently, so both together are refused."""
    async with door.open([]) as transport:
        with pytest.raises(RequestError) as failure:
            await PromptRunner(transport).ask(
                ask(tools=(TOOL,), response_format={"type": "json_object"})
            )

    assert failure.value.code == Code.TOOLS_WITH_RESPONSE_FORMAT
    assert door.requests == []


async def test_a_response_format_is_sent_as_given(door: Door) -> None:
    """Without tools the format goes out untouched."""
    format_ = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    async with door.open(["{}"]) as transport:
        runner = PromptRunner(transport, capabilities=Capabilities(json_schema=True))
        await runner.ask(ask(response_format=format_))

    assert door.requests[0]["response_format"] == format_


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"role": "model", "parts": [{"text": "hi"}]}, id="another dialect's role"),
        pytest.param({"content": "hi"}, id="no role"),
        pytest.param({"role": "user", "content": 7}, id="content that is no text"),
        pytest.param({"role": "tool", "content": "{}"}, id="an answer to no call"),
        pytest.param(7, id="not a message at all"),
    ],
)
async def test_messages_of_another_dialect_are_refused(door: Door, message: Any) -> None:
    """What is not a message in this dialect is an error, before anything is sent."""
    with pytest.raises(RequestError) as failure:
        await door.run([], history=[message])

    assert failure.value.code == Code.INVALID_MESSAGE
    assert door.requests == []


async def test_the_dialect_is_chat_completions(door: Door) -> None:
    """Requests go to the one path, with messages as objects of role and content."""
    async with door.open(["Hello."]) as transport:
        await PromptRunner(transport).ask(ask())

    assert door.paths == ["/v1/chat/completions"]
    assert door.requests == [{"model": MODEL, "messages": [{"role": "user", "content": "Hi!"}]}]


async def test_parallel_is_unset_by_default(door: Door) -> None:
    """Nobody decides for the caller."""
    async with door.open(["Hello."]) as transport:
        await PromptRunner(transport).ask(ask(tools=(TOOL,)))

    assert "parallel_tool_calls" not in door.requests[0]


@pytest.mark.parametrize("flag", [True, False])
async def test_parallel_is_sent_with_tools_only(door: Door, flag: bool) -> None:
    """The flag goes with tools, and is left out of a request without them."""
    async with door.open(["Hello.", "Hello."]) as transport:
        runner = PromptRunner(transport)
        await runner.ask(ask(tools=(TOOL,), parallel_tool_calls=flag))
        await runner.ask(ask(parallel_tool_calls=flag))

    assert door.requests[0]["parallel_tool_calls"] is flag
    assert "parallel_tool_calls" not in door.requests[1]


async def test_outbound_and_inbound_transforms_are_applied(door: Door) -> None:
    """Messages, tools, the reply and its calls pass through the chain."""
    wrapped, filled = Receipt("wrap", "/", 1, 2), Receipt("fill", "/", 1, 2)
    registry = TransformRegistry.builtin()
    registry.register(
        "replies", "wrap", lambda it: ({**it, "tool_calls": [it["tool_calls"]]}, (wrapped,))
    )
    registry.register(
        "calls", "fill", lambda calls: ([replace(it, arguments="{}") for it in calls], (filled,))
    )
    chain = TransformChain.resolve(
        registry,
        tools=["openai_tools_strip_function_descriptions"],
        replies=["wrap", "assistant_tool_calls_object_to_array"],
        calls=["fill"],
    )
    call = {**call_add(), "function": {"name": "add", "arguments": ""}}
    async with door.open([assistant(None, tool_calls=call)]) as transport:
        result = await PromptRunner(transport, transforms=chain).ask(ask(tools=(TOOL,)))

    assert "description" not in door.requests[0]["tools"][0]["function"]
    assert [(c.name, c.arguments) for c in result.reply.calls] == [("add", "{}")]
    assert result.receipts == (wrapped, filled)
    assert result.raw.message["tool_calls"] == call


async def test_a_reply_comes_with_what_it_took(door: Door) -> None:
    """Text, finish reason, usage and the provider's request id are there."""
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    reply = ScriptedReply(message="Hello.", usage=usage, headers={"x-request-id": "req-7"})
    async with door.open([reply]) as transport:
        result = await PromptRunner(transport).ask(ask(params={"temperature": 0}))

    assert result.reply.content == "Hello."
    assert result.reply.finish_reason == "stop"
    assert result.reply.usage == Usage(3, 1, 4)
    assert result.request_id == "req-7"
    assert result.attempts == 1
    assert door.requests[0]["temperature"] == 0


async def test_a_streamed_reply_is_told_piece_by_piece_and_accumulated(door: Door) -> None:
    """The pieces make up the content, and the usage at the end is kept."""
    pieces: list[str] = []
    usage = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
    text = "Once upon a time there was a stream."
    async with door.open([ScriptedReply(message=text, usage=usage)]) as transport:
        result = await PromptRunner(transport).ask(
            ask(stream=True), on_delta=lambda delta: pieces.append(delta.text)
        )

    assert len(pieces) > 1
    assert "".join(pieces) == result.reply.content == text
    assert result.reply.usage == Usage(3, 9, 12)
    assert door.requests[0]["stream"] is True
    assert door.requests[0]["stream_options"] == {"include_usage": True}


async def test_a_streamed_call_is_as_good_as_a_whole_one(door: Door) -> None:
    """Calls may be streamed, and their pieces are put together."""
    async with door.open([assistant(None, call_add())]) as transport:
        result = await PromptRunner(transport).ask(ask(tools=(TOOL,), stream=True))

    assert [(c.id, c.name, c.arguments) for c in result.reply.calls] == [
        ("call_1", "add", '{"a":2,"b":3}')
    ]
