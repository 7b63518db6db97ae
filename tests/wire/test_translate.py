"""From one wire format to another and back."""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import (
    CONVERSATION,
    essence_of_reply,
    essence_of_request,
    replies,
    requests,
)
from support.family_server import render_stream
from surecall.base.errors import Code, ProviderError, RequestError
from surecall.base.records import (
    Message,
    ModelRequest,
    RawCall,
    Reply,
    ToolCall,
    ToolSpec,
    WireRequest,
)
from surecall.text import encode
from surecall.wire import (
    PROTOCOLS,
    ChatCompletions,
    StreamTranslator,
    WireProtocol,
    find_protocol,
    translate_reply,
    translate_request,
)

CHAT = ChatCompletions()
PAIRS = [
    pytest.param(find_protocol(source), find_protocol(target), id=f"{source}-{target}")
    for source, target in permutations(sorted(PROTOCOLS), 2)
]
each_pair = pytest.mark.parametrize(("source", "target"), PAIRS)
quick = settings(max_examples=25, deadline=None)


def folded(protocol: WireProtocol, data: bytes) -> Reply:
    """Fold a stream and return its reply."""
    folder = protocol.open_stream()
    folder.feed(data)
    return protocol.parse_message(folder.close())


@each_pair
def test_a_conversation_is_the_same_in_every_format(
    source: WireProtocol, target: WireProtocol
) -> None:
    """The target's own server side reads what the source's client said, and nothing is dropped."""
    translated = translate_request(source.render_request(CONVERSATION), source, target)
    request = target.parse_request(translated.request)
    assert essence_of_request(request) == essence_of_request(CONVERSATION)
    assert request.params["temperature"] == 0.5
    assert translated.dropped == ()


@each_pair
@given(request=requests())
@quick
def test_there_and_back_keeps_calls_results_ids_and_text(
    source: WireProtocol, target: WireProtocol, request: ModelRequest
) -> None:
    """For any conversation, between any two formats."""
    there = translate_request(source.render_request(request), source, target)
    back = translate_request(there.request, target, source)
    assert essence_of_request(source.parse_request(back.request)) == essence_of_request(request)


@each_pair
@given(reply=replies())
@quick
def test_a_reply_says_the_same_in_every_format(
    source: WireProtocol, target: WireProtocol, reply: Reply
) -> None:
    """Text, reasoning, calls, finish and usage survive."""
    body = translate_reply(encode(source.render_reply(reply)), source, target)
    got = target.parse_message(target.parse_body(encode(body)))
    assert essence_of_reply(got) == essence_of_reply(reply)


@each_pair
@given(reply=replies(), size=st.integers(1, 200))
@quick
def test_a_stream_says_the_same_in_every_format(
    source: WireProtocol, target: WireProtocol, reply: Reply, size: int
) -> None:
    """However the source was cut."""
    data = b"".join(render_stream(source, reply))
    translator = StreamTranslator(source, target, "m")
    written = [translator.feed(data[at : at + size]) for at in range(0, len(data), size)]
    written.append(translator.close())
    assert essence_of_reply(folded(target, b"".join(written))) == essence_of_reply(reply)
    assert translator.error is None
    assert translator.reply is not None


@each_pair
def test_text_passes_at_once_and_calls_when_they_are_whole(
    source: WireProtocol, target: WireProtocol
) -> None:
    """A reader does not wait for the end to see the text."""
    reader = target.open_stream()
    writer = source.open_writer(model="m")
    translator = StreamTranslator(source, target, "m")
    shown = "".join(
        delta.text
        for piece in (writer.begin(), writer.text("Hel"), writer.text("lo"))
        for delta in reader.feed(translator.feed(piece))
    )
    assert shown == "Hello"
    data = writer.end(Reply(content="Hello", finish_reason="stop"))
    reader.feed(translator.feed(data) + translator.close())
    assert target.parse_message(reader.close()).finish_reason == "stop"
    assert translator.close() == b""


@each_pair
def test_a_stream_that_ends_too_early_is_broken_off(
    source: WireProtocol, target: WireProtocol
) -> None:
    """The client is not left with half an answer that looks whole."""
    writer = source.open_writer(model="m")
    translator = StreamTranslator(source, target, "m")
    data = translator.feed(writer.begin() + writer.text("Hel")) + translator.close()
    assert translator.error is not None
    assert translator.error.code == Code.STREAM_TRUNCATED
    assert translator.done
    assert translator.feed(b"more") == translator.close() == b""
    with pytest.raises(ProviderError, match="ended"):
        folded(target, data)


@each_pair
def test_a_whole_body_in_place_of_a_stream_is_written_as_one(
    source: WireProtocol, target: WireProtocol
) -> None:
    """Some providers do not stream although they were asked to."""
    reply = Reply(content="Hello", reasoning="Hm.", finish_reason="stop", model="m", id="r1")
    translator = StreamTranslator(source, target, "m")
    data = translator.feed(encode(source.render_reply(reply))) + translator.close()
    assert essence_of_reply(folded(target, data)) == essence_of_reply(reply)


def test_what_cannot_be_carried_is_named() -> None:
    """Every field that the target has no place for, once."""
    target = find_protocol("messages")
    call = ToolCall(id="c1", name="look", arguments={}, extra={"thought_signature": "s"})
    request = ModelRequest(
        model="m",
        messages=(
            Message("user", "Hi", name="ann"),
            Message("assistant", None, (call,)),
            Message("tool", "x", tool_call_id="c1"),
        ),
        tools=(ToolSpec(name="look"),),
        params={"seed": 1, "max_completion_tokens": 9},
    )
    wire = CHAT.render_request(request)
    wire.body["messages"][1]["tool_calls"][0]["thought_signature"] = "s"
    dropped = translate_request(wire, CHAT, target).dropped
    assert "messages.name" in dropped
    assert "messages.tool_calls.thought_signature" in dropped
    assert "max_tokens" not in dropped
    assert "tools" not in dropped


@dataclass(frozen=True)
class Native:
    id: str
    source: str
    target: str
    params: dict[str, Any]
    kept: dict[str, Any]
    dropped: tuple[str, ...]


NATIVE = (
    Native(
        "thinking is Anthropic's",
        "messages",
        "chat_completions",
        {"thinking": {"type": "adaptive"}, "service_tier": "auto", "top_k": 3},
        {"top_k": 3},
        ("service_tier", "thinking"),
    ),
    Native(
        "one house, two formats",
        "responses",
        "chat_completions",
        {"truncation": "auto", "service_tier": "flex", "prompt_cache_key": "k"},
        {"service_tier": "flex", "prompt_cache_key": "k"},
        ("truncation",),
    ),
    Native(
        "safety is Google's",
        "gemini",
        "messages",
        {"safetySettings": [{"category": "x"}], "cachedContent": "c", "labels": {"a": "b"}},
        {},
        ("cachedContent", "labels", "safetySettings"),
    ),
    Native(
        "another name for the same",
        "chat_completions",
        "gemini",
        {"logprobs": True, "top_logprobs": 2, "user": "u"},
        {"generationConfig": {"responseLogprobs": True, "logprobs": 2}},
        ("user",),
    ),
    Native(
        "another house",
        "chat_completions",
        "messages",
        {"logit_bias": {"1": 2}, "service_tier": "flex", "seed": 1, "made_up": True},
        {"made_up": True},
        ("logit_bias", "seed", "service_tier"),
    ),
)


@pytest.mark.parametrize("case", NATIVE, ids=lambda case: case.id)
def test_parameters_of_one_format_alone_are_left_out_and_named(case: Native) -> None:
    """The other provider would refuse them; what nobody knows goes along."""
    source, target = find_protocol(case.source), find_protocol(case.target)
    wire = source.render_request(ModelRequest(model="m", messages=(Message("user", "Hi"),)))
    body = {**wire.body, **case.params}
    translated = translate_request(WireRequest(path=wire.path, body=body), source, target)
    assert translated.dropped == case.dropped
    assert case.kept.items() <= translated.request.body.items()
    assert not translated.request.body.keys() & set(case.dropped)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_a_schema_that_had_to_be_changed_is_named(name: str) -> None:
    """Only one of the formats knows less than JSON Schema."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for parameters, changed in ((schema, False), ({**schema, "minProperties": 1, "not": {}}, True)):
        tools = (ToolSpec(name="look", description="Looks.", parameters=parameters),)
        request = ModelRequest(model="m", messages=(Message("user", "Hi"),), tools=tools)
        dropped = translate_request(CHAT.render_request(request), CHAT, find_protocol(name)).dropped
        assert dropped == (("tools.parameters",) if changed and name == "gemini" else ())


def test_within_one_format_nothing_is_left_out() -> None:
    """Its own parameters are its provider's business."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "logprobs": True}
    wire = WireRequest(path="/chat/completions", body=body)
    translated = translate_request(wire, CHAT, CHAT)
    assert translated.request.body == body
    assert translated.dropped == ()


NAMES = ("weather/today", "weather.today", "weather_today", "Größe", "x" * 200, "plain", "4ever")


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_a_tool_has_one_name_everywhere_and_the_client_gets_its_own_back(name: str) -> None:
    """Tools, choice and history agree; what was changed is told, and undone in the reply."""
    target = find_protocol(name)
    calls = tuple(
        ToolCall(id=f"c{number}", name=tool, arguments={}) for number, tool in enumerate(NAMES)
    )
    request = ModelRequest(
        model="m",
        messages=(
            Message("user", "Hi"),
            Message("assistant", None, calls),
            *(Message("tool", "x", tool_call_id=call.id, name=call.name) for call in calls),
        ),
        tools=tuple(ToolSpec(name=tool) for tool in NAMES),
        tool_choice={"type": "function", "function": {"name": NAMES[0]}},
    )
    translated = translate_request(CHAT.render_request(request), CHAT, target)
    there = target.parse_request(translated.request)
    known = [translated.renamed.get(tool, tool) for tool in NAMES]
    assert len(set(known)) == len(NAMES)
    assert [tool.name for tool in there.tools] == known
    assert [call.name for message in there.messages for call in message.tool_calls] == known
    assert there.tool_choice == {"type": "function", "function": {"name": known[0]}}
    assert translated.renamed.keys() >= {"weather/today", "Größe", "x" * 200}
    assert not translated.renamed.keys() & {"weather_today", "plain"}

    reply = Reply(
        calls=tuple(RawCall(f"d{number}", tool, {}) for number, tool in enumerate(known)),
        finish_reason="tool_calls",
        model="m",
        id="r1",
    )
    body = translate_reply(
        encode(target.render_reply(reply)), target, CHAT, renamed=translated.renamed
    )
    found = body["choices"][0]["message"]["tool_calls"]
    assert [call["function"]["name"] for call in found] == list(NAMES)
    translator = StreamTranslator(target, CHAT, "m", renamed=translated.renamed)
    data = b"".join(translator.feed(piece) for piece in render_stream(target, reply))
    streamed = folded(CHAT, data + translator.close())
    assert [call.name for call in streamed.calls] == list(NAMES)
    assert translator.reply is not None
    assert [call.name for call in translator.reply.calls] == list(NAMES)


def test_a_format_of_ones_own_takes_every_name() -> None:
    """Its rules are not known here."""

    class Own(ChatCompletions):
        name: str = "own"

    tools = (ToolSpec(name="weather/today"),)
    request = ModelRequest(model="m", messages=(Message("user", "Hi"),), tools=tools)
    translated = translate_request(CHAT.render_request(request), CHAT, Own())
    assert translated.renamed == {}
    assert translated.request.body["tools"][0]["function"]["name"] == "weather/today"


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_calls_that_share_an_id_keep_their_own_results(name: str) -> None:
    """In one turn and in different ones."""
    target = find_protocol(name)

    def turn(*given: str) -> tuple[Message, ...]:
        calls = tuple(ToolCall(id="c1", name="look", arguments={"what": what}) for what in given)
        results = (Message("tool", f"saw {what}", tool_call_id="c1") for what in given)
        return Message("assistant", None, calls), *results, Message("user", "More?")

    request = ModelRequest(
        model="m",
        messages=(Message("user", "Hi"), *turn("a", "b"), *turn("c")),
        tools=(ToolSpec(name="look"),),
    )
    wire = translate_request(CHAT.render_request(request), CHAT, target).request
    got = target.parse_request(wire)
    calls = {
        call.id: (call.arguments or {})["what"]
        for message in got.messages
        for call in message.tool_calls
    }
    results = [message for message in got.messages if message.role == "tool"]
    assert list(calls) == ["c1", "c1__2", "c1__3"]
    assert [message.text for message in results] == ["saw a", "saw b", "saw c"]
    assert [f"saw {calls[message.tool_call_id or '']}" for message in results] == [
        message.text for message in results
    ]


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "s"}


def test_signed_thoughts_reach_a_chat_client_and_come_back() -> None:
    """A provider that wants its thoughts back gets them through any client that echoes fields."""
    messages = find_protocol("messages")
    reply = Reply(
        content="Hello",
        reasoning="Hm.",
        finish_reason="stop",
        extra={"thinking_blocks": [SIGNED]},
    )
    body = translate_reply(encode(messages.render_reply(reply)), messages, CHAT)
    message = body["choices"][0]["message"]
    assert message["thinking_blocks"] == [SIGNED]
    asked: list[Any] = [
        {"role": "user", "content": "Hi"},
        message,
        {"role": "user", "content": "?"},
    ]
    wire = WireRequest(path="/chat/completions", body={"model": "m", "messages": asked})
    content = translate_request(wire, CHAT, messages).request.body["messages"][1]["content"]
    assert content[0] == SIGNED


def test_a_request_that_cannot_be_understood_is_refused() -> None:
    """Before anything is written in another format."""
    with pytest.raises(RequestError) as caught:
        translate_request(WireRequest(path="/", body={}), CHAT, CHAT)
    assert caught.value.code == Code.INVALID_REQUEST
