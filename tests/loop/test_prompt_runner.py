"""One request and one reply."""

from typing import Any

import pytest

from surecall.base.errors import Code, ProviderReplyError, RequestError
from surecall.base.records import Message, ModelRequest, ToolSpec
from surecall.loop import PromptRunner
from surecall.models.profiles import Capabilities
from surecall.models.transport import ScriptedReply, ScriptedTransport
from surecall.reading.transforms import TransformChain, TransformRegistry
from surecall.wire import StreamDelta

ASK = ModelRequest(model="m", messages=(Message("user", "hi"),))
STREAMED = ModelRequest(model="m", messages=(Message("user", "hi"),), stream=True)


async def test_plain_chat_needs_nothing_but_a_transport() -> None:
    """The reply is parsed, and what it took to get it is told."""
    transport = ScriptedTransport(
        [ScriptedReply(message="hello", headers={"X-Request-Id": "q1"}, usage={"total_tokens": 3})]
    )
    result = await PromptRunner(transport).ask(ASK)
    assert (result.reply.content, result.reply.finish_reason) == ("hello", "stop")
    assert (result.request_id, result.attempts) == ("q1", 1)
    assert result.reply.usage is not None
    assert result.reply.usage.total_tokens == 3


async def test_the_id_of_the_reply_stands_in_for_a_request_id() -> None:
    """Something to search a provider's log for is always there."""
    result = await PromptRunner(ScriptedTransport(["x"])).ask(ASK)
    assert result.request_id == "chatcmpl-scripted"


async def test_a_streamed_reply_is_the_same_and_its_deltas_are_told() -> None:
    """Text is told in pieces as it arrives; the reply is that of a whole answer."""
    told: list[StreamDelta] = []
    text = "a longer text than one piece holds"
    whole = await PromptRunner(ScriptedTransport([text])).ask(ASK)
    runner = PromptRunner(ScriptedTransport([text], chunk_bytes=5))
    streamed = await runner.ask(STREAMED, on_delta=told.append)
    assert streamed.reply.content == whole.reply.content == text
    assert "".join(delta.text for delta in told) == text
    assert len(told) > 1


async def test_a_request_that_must_not_be_sent_is_not_sent() -> None:
    """The transport never sees it."""
    transport = ScriptedTransport(["x"])
    runner = PromptRunner(transport, capabilities=Capabilities(streaming=False))
    with pytest.raises(RequestError, match="CAPABILITY_UNSUPPORTED"):
        await runner.ask(STREAMED)
    assert transport.requests == []


def test_parallel_calls_are_never_asked_for_with_a_response_format() -> None:
    """A format is for one answer; no field about calls goes out with it."""
    runner = PromptRunner(ScriptedTransport([]), capabilities=Capabilities(json_object=True))
    request = ModelRequest(
        model="m", messages=(), response_format={"type": "json_object"}, parallel_tool_calls=True
    )
    assert "parallel_tool_calls" not in runner.build(request).body


def shout(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write every message in capitals."""
    return [{**message, "content": message["content"].upper()} for message in messages]


def drop_all(_tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave no tool."""
    return []


def test_outbound_transforms_edit_what_is_sent() -> None:
    """Messages and tools pass through; settings of tools go when no tool is left."""
    registry = TransformRegistry.builtin()
    registry.register("messages", "shout", shout)
    registry.register("tools", "drop_all", drop_all)
    chain = TransformChain.resolve(registry, messages=("shout",), tools=("drop_all",))
    request = ModelRequest(
        model="m",
        messages=(Message("user", "hi"),),
        tools=(ToolSpec(name="look"),),
        tool_choice="auto",
        parallel_tool_calls=False,
    )
    body = PromptRunner(ScriptedTransport([]), transforms=chain).build(request).body
    assert body == {"model": "m", "messages": [{"role": "user", "content": "HI"}]}


async def test_a_stream_that_says_done_without_a_finish_is_truncated() -> None:
    """`[DONE]` alone is no proof that the reply is whole."""
    runner = PromptRunner(ScriptedTransport([ScriptedReply(message="half", finish_reason=None)]))
    with pytest.raises(ProviderReplyError) as caught:
        await runner.ask(STREAMED)
    assert caught.value.code == Code.STREAM_TRUNCATED
