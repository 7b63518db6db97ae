"""The official anthropic SDK as a client of our server side, and its types as the measure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import pytest
from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic.types import Message as SDKMessage
from anthropic.types import (
    MessageParam,
    OutputConfigParam,
    RawMessageStreamEvent,
    TextBlockParam,
    ThinkingConfigParam,
    ToolChoiceParam,
    ToolParam,
)
from pydantic import TypeAdapter

from support.family_server import FamilyServer, render_stream
from surecall.base.errors import Code, ProviderStatusError, SurecallError
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec, Usage
from surecall.text import SSEReader, decode, encode
from surecall.wire import StreamTranslator
from surecall.wire.messages import Messages

PROTOCOL = Messages()
THOUGHT = {"type": "thinking", "thinking": "Hm, so.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
FULL = Reply(
    content="Let me look. 😀",
    reasoning="Hm, so.",
    calls=(RawCall("toolu_1", "look", {"what": "é", "n": [1, None]}), RawCall("toolu_2", "go", {})),
    finish_reason="tool_calls",
    usage=Usage(14, 7, 21, reasoning_tokens=3, cached_tokens=4),
    model="m",
    id="msg_1",
    extra={"thinking_blocks": [THOUGHT, HIDDEN]},
)
TOOL: Any = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {"what": {"type": "string"}}},
    "cache_control": {"type": "ephemeral"},
}
HI: Any = {"role": "user", "content": "Hi"}


@asynccontextmanager
async def _sdk(
    *replies: Reply | SurecallError,
) -> AsyncIterator[tuple[anthropic.AsyncAnthropic, FamilyServer]]:
    async with (
        FamilyServer(PROTOCOL, replies) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test", max_retries=0) as client,
    ):
        yield client, server


async def test_requests_carry_the_headers_of_the_sdk() -> None:
    """The key and the version of the API, as the SDK sends them for an API key."""
    async with _sdk(FULL) as (client, server):
        await client.messages.create(model="m", max_tokens=9, messages=[HI])
    wire = PROTOCOL.render_request(ModelRequest(model="m", messages=(Message("user", "Hi"),)))
    ours = {**wire.headers, **PROTOCOL.render_auth("test")}
    sent = server.wires[0].headers
    assert {name.lower(): value for name, value in ours.items()}.items() <= sent.items()
    assert "x-api-key" not in sent


def _check_full(message: Any) -> None:
    assert (message.id, message.role, message.model, message.stop_reason) == (
        "msg_1",
        "assistant",
        "m",
        "tool_use",
    )
    blocks = {block.type: block for block in message.content}
    assert (blocks["thinking"].thinking, blocks["thinking"].signature) == ("Hm, so.", "sig")
    assert blocks["redacted_thinking"].data == "xyz"
    assert blocks["text"].text == "Let me look. 😀"
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [(call.id, call.name, call.input) for call in calls] == [
        ("toolu_1", "look", {"what": "é", "n": [1, None]}),
        ("toolu_2", "go", {}),
    ]
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (10, 4, 7)
    assert usage.output_tokens_details.thinking_tokens == 3


async def test_the_sdk_reads_a_whole_reply() -> None:
    """Text, calls, thoughts, finish and usage are where its users look for them."""
    async with _sdk(FULL) as (client, server):
        message = await client.messages.create(model="m", max_tokens=9, messages=[HI])
    _check_full(message)
    assert server.wires[0].path == "/messages"


async def test_the_sdk_folds_a_stream() -> None:
    """Its accumulator ends up with the same message."""
    async with (
        _sdk(FULL) as (client, server),
        client.messages.stream(model="m", max_tokens=9, messages=[HI]) as stream,
    ):
        kinds = [event.type async for event in stream]
        message = await stream.get_final_message()
    _check_full(message)
    assert [kinds.count(kind) for kind in ("text", "thinking", "input_json", "signature")] == [
        2,
        2,
        2,
        1,
    ]
    assert kinds.index("signature") < kinds.index("content_block_stop") < kinds.index("text")
    assert [block.type for block in message.content] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert server.requests[0].stream is True


async def test_the_sdk_gets_signatures_in_time_through_a_translation() -> None:
    """A stream of the same format that passes through is signed where it was signed before."""
    data = b"".join(render_stream(PROTOCOL, FULL))

    class Passing:
        """Answers with what a translator made of a stream."""

        def begin(self) -> bytes:
            translator = StreamTranslator(PROTOCOL, PROTOCOL, "m", reply_id="msg_1")
            pieces = [translator.feed(data[at : at + 7]) for at in range(0, len(data), 7)]
            return b"".join(pieces) + translator.close()

        def __getattr__(self, name: str) -> Any:
            return lambda *_: b""

    class Through(Messages):
        open_writer: Any = staticmethod(lambda **_: Passing())

    async with (
        FamilyServer(Through(), [FULL]) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[HI]) as stream,
    ):
        kinds = [event.type async for event in stream]
        message = await stream.get_final_message()
    _check_full(message)
    assert kinds.index("signature") < kinds.index("content_block_stop") < kinds.index("text")


async def test_the_sdk_reads_raw_events() -> None:
    """The same stream without the accumulator."""
    async with _sdk(Reply(content="Hello", finish_reason="stop")) as (client, _):
        stream = await client.messages.create(model="m", max_tokens=9, messages=[HI], stream=True)
        kinds = [event.type async for event in stream]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_replies_are_valid_by_the_types_of_the_sdk() -> None:
    """Every field it declares is there, with the type it declares."""
    body = decode(encode(PROTOCOL.render_reply(FULL)))
    assert TypeAdapter(SDKMessage).validate_python(body).stop_reason == "tool_use"
    events: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    for event in SSEReader().feed(b"".join(render_stream(PROTOCOL, FULL))):
        assert events.validate_json(event.data).type == event.event


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (Code.AUTH, anthropic.AuthenticationError),
        (Code.FORBIDDEN, anthropic.PermissionDeniedError),
        (Code.NOT_FOUND, anthropic.NotFoundError),
        (Code.BAD_REQUEST, anthropic.BadRequestError),
        (Code.RATE_LIMIT, anthropic.RateLimitError),
        (Code.UPSTREAM_5XX, anthropic.InternalServerError),
    ],
)
async def test_the_sdk_raises_its_own_errors(
    code: Code, kind: type[anthropic.APIStatusError]
) -> None:
    """With the message that says what to do."""
    error = ProviderStatusError(code, "Why.", hint="Do this.", status=500)
    async with _sdk(error) as (client, _):
        with pytest.raises(kind) as caught:
            await client.messages.create(model="m", max_tokens=9, messages=[HI])
    assert "Why. Do this." in str(caught.value)
    own = PROTOCOL.render_error(error).body["error"]["type"]
    assert caught.value.body == {
        "type": "error",
        "error": {"type": own, "message": "Why. Do this."},
    }


async def test_the_sdk_hears_of_nonsense() -> None:
    """What it can be made to send wrong is refused by place."""
    wrong: Any = {"role": "usr", "content": "x"}
    async with _sdk(FULL) as (client, _):
        with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\] has the role 'usr'"):
            await client.messages.create(model="m", max_tokens=9, messages=[wrong])


async def test_a_conversation_that_the_sdk_sends_is_understood() -> None:
    """A second turn with the SDK's own objects sent back, results, images and all settings."""
    image: Any = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
    }
    async with _sdk(FULL, FULL) as (client, server):
        first = await client.messages.create(model="m", max_tokens=9, messages=[HI])
        results: Any = [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_1",
                "content": [{"type": "text", "text": "See:"}, image],
            },
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
            {"type": "text", "text": "Well?"},
        ]
        await client.messages.create(
            model="m",
            max_tokens=99,
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            messages=[
                HI,
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": results},
            ],
            tools=[TOOL],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
            stop_sequences=["END"],
            metadata={"user_id": "u"},
            thinking={"type": "enabled", "budget_tokens": 1024},
            output_config={"effort": "high"},
        )
    request = server.requests[1]
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    arguments = {"what": "é", "n": [1, None]}
    assert request == ModelRequest(
        model="m",
        messages=(
            Message(
                "system",
                [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            ),
            Message("user", "Hi"),
            Message(
                "assistant",
                "Let me look. 😀",
                (
                    ToolCall(id="toolu_1", name="look", arguments=arguments, raw=arguments),
                    ToolCall(id="toolu_2", name="go", arguments={}, raw={}),
                ),
                extra={"thinking_blocks": [THOUGHT, HIDDEN]},
            ),
            Message("tool", [{"type": "text", "text": "See:"}, part], tool_call_id="toolu_1"),
            Message("tool", "no", tool_call_id="toolu_2", extra={"is_error": True}),
            Message("user", "Well?"),
        ),
        tools=(
            ToolSpec(
                name="look",
                description="Looks.",
                parameters=TOOL["input_schema"],
                extra={"cache_control": {"type": "ephemeral"}},
            ),
        ),
        tool_choice="required",
        parallel_tool_calls=False,
        params={
            "max_tokens": 99,
            "stop": ["END"],
            "user": "u",
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "reasoning_effort": "high",
        },
    )


async def test_a_streamed_message_can_be_sent_back() -> None:
    """Signatures reach the client, so that thoughts come back with them."""
    async with _sdk(FULL, FULL) as (client, server):
        async with client.messages.stream(model="m", max_tokens=9, messages=[HI]) as stream:
            message = await stream.get_final_message()
        content: Any = message.content
        await client.messages.create(
            model="m", max_tokens=9, messages=[HI, {"role": "assistant", "content": content}]
        )
    assert server.requests[1].messages[1].extra == {"thinking_blocks": [THOUGHT, HIDDEN]}
    assert [call.id for call in server.requests[1].messages[1].tool_calls] == ["toolu_1", "toolu_2"]


@dataclass(frozen=True)
class Field:
    key: str
    type: Any


FIELDS = (
    Field("max_tokens", int),
    Field("messages", list[MessageParam]),
    Field("metadata", dict[str, str]),
    Field("model", str),
    Field("output_config", OutputConfigParam),
    Field("stop_sequences", list[str]),
    Field("system", str | list[TextBlockParam]),
    Field("thinking", ThinkingConfigParam),
    Field("tool_choice", ToolChoiceParam),
    Field("tools", list[ToolParam]),
)


def test_requests_are_valid_by_the_types_of_the_sdk() -> None:
    """Each field of a request that uses everything has the type the SDK declares for it."""
    hint = {"cache_control": {"type": "ephemeral"}}
    request = ModelRequest(
        model="m",
        messages=(
            Message("system", [{"type": "text", "text": "Be brief.", **hint}]),
            Message(
                "user",
                [
                    {"type": "text", "text": "Hi", **hint},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                    {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE"}},
                    {"type": "file", "file": {"file_data": "data:text/plain;base64,SGk="}},
                ],
            ),
            Message(
                "assistant",
                "Hm.",
                (
                    ToolCall(id="a", name="look", arguments={"what": 1}),
                    ToolCall(id="b", name="look", arguments=None, raw="{"),
                ),
                extra={"thinking_blocks": [THOUGHT, HIDDEN]},
            ),
            Message("tool", [{"type": "text", "text": "x", **hint}], tool_call_id="a"),
        ),
        tools=(ToolSpec(name="look", description="Looks.", extra={**hint, "strict": True}),),
        tool_choice={"type": "function", "function": {"name": "look"}},
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"schema": {"type": "object"}}},
        params={
            "stop": "END",
            "user": "u",
            "reasoning_effort": "high",
            "thinking": {"type": "adaptive"},
        },
    )
    body = PROTOCOL.render_request(request).body
    assert sorted(body) == [field.key for field in FIELDS]
    known = anthropic.types.message_create_params.MessageCreateParamsNonStreaming.__annotations__
    declared = anthropic.types.message_create_params.MessageCreateParamsBase.__annotations__
    assert set(body) <= set(known) | set(declared)
    for field in FIELDS:
        TypeAdapter(field.type).validate_python(body[field.key], strict=True)


def test_the_version_of_the_api_is_that_of_the_sdk() -> None:
    """Both were made from the same types."""
    asked = PROTOCOL.render_request(ModelRequest(model="m", messages=(Message("user", "Hi"),)))
    assert asked.headers == PROTOCOL.fixed_headers == {"anthropic-version": ANTHROPIC_API_VERSION}
