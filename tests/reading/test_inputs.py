"""Replies in every form people have: each wire format, whole or in part, recorded or live."""

import json
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from surecall import read_reply
from surecall.base.errors import Code, ConfigError, ProviderError, SurecallError
from surecall.base.records import RawCall, Reply, Usage
from surecall.reading import parse_input, tell_input
from surecall.wire import find_protocol

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        },
    }
]
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"what": "é"}'},
}
REPLY = Reply(
    content="Let me see.",
    calls=(RawCall("c1", "look", '{"what": "é"}'),),
    finish_reason="tool_calls",
    usage=Usage(7, 5, 12),
    model="m",
    id="r1",
)
PROTOCOLS = ("chat_completions", "responses", "messages", "gemini")


def body_of(protocol: str) -> dict[str, Any]:
    """Return a whole body of the wire format, as data."""
    return json.loads(json.dumps(find_protocol(protocol).render_reply(REPLY)))


def stream_of(protocol: str) -> bytes:
    """Return the recorded stream of the wire format."""
    writer = find_protocol(protocol).open_writer(model="m", reply_id="r1")
    pieces = [writer.begin(), writer.text("Let me "), writer.text("see.")]
    pieces += [writer.call(call) for call in REPLY.calls]
    return b"".join([*pieces, writer.end(REPLY)])


def events_of(protocol: str) -> list[dict[str, Any]]:
    """Return the events of the stream, as data."""
    lines = stream_of(protocol).decode().splitlines()
    found = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
    return [json.loads(line) for line in found]


EVENT: Any = TypeAdapter(RawMessageStreamEvent)
RESPONSE_EVENT: Any = TypeAdapter(ResponseStreamEvent)
BODIES: dict[str, Callable[[Any], Any]] = {
    "chat_completions": ChatCompletion.model_validate,
    "responses": Response.model_construct,
    "messages": AnthropicMessage.model_validate,
    "gemini": GenerateContentResponse.model_validate,
}
EVENTS: dict[str, Callable[[Any], Any]] = {
    "chat_completions": ChatCompletionChunk.model_validate,
    "responses": RESPONSE_EVENT.validate_python,
    "messages": EVENT.validate_python,
    "gemini": GenerateContentResponse.model_validate,
}


class Old:
    """An object of an SDK that only has `to_dict`."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields

    def to_dict(self) -> Any:
        """Return the object as data."""
        return self._fields


def sdk_body(protocol: str) -> Any:
    """Return the body as an object of the SDK that speaks the wire format."""
    body = body_of(protocol)
    return Response(**body) if protocol == "responses" else BODIES[protocol](body)


FORMS: dict[str, Callable[[str], Any]] = {
    "body": body_of,
    "body in an SDK": sdk_body,
    "body with to_dict": lambda name: Old(body_of(name)),
    "body as text": lambda name: json.dumps(body_of(name)),
    "body as indented text": lambda name: "\ufeff\n" + json.dumps(body_of(name), indent=2) + "\n",
    "body as bytes": lambda name: json.dumps(body_of(name)).encode(),
    "stream as text": lambda name: stream_of(name).decode(),
    "stream as bytes": stream_of,
    "stream with returns": lambda name: stream_of(name).replace(b"\n", b"\r\n"),
    "stream with a comment": lambda name: b": hi\n\n" + stream_of(name),
    "lines": lambda name: stream_of(name).decode().splitlines(),
    "lines without blanks": lambda name: [x for x in stream_of(name).splitlines() if x],
    "text without blank lines": lambda name: stream_of(name).decode().replace("\n\n", "\n"),
    "chunks": lambda name: [stream_of(name)[i : i + 40] for i in range(0, 9999, 40)],
    "events": events_of,
    "events in a tuple": lambda name: tuple(events_of(name)),
    "events in an SDK": lambda name: [EVENTS[name](event) for event in events_of(name)],
    "events as JSON": lambda name: json.dumps(events_of(name)),
    "JSON lines": lambda name: "\n".join(map(json.dumps, events_of(name))),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_every_wire_format_is_read(form: str, protocol: str) -> None:
    """The shape alone tells what it is; the call, the text and the finish reason are inside."""
    reading = read_reply(FORMS[form](protocol), tools=TOOLS)
    assert [(call.name, call.arguments) for call in reading.calls] == [("look", {"what": "é"})]
    assert reading.calls[0].format == "tool_calls"
    assert reading.calls[0].certainty == "certain"
    assert (reading.content, reading.finish_reason) == ("Let me see.", "tool_calls")
    assert reading.defects == ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", FORMS)
def test_the_wire_format_may_be_named(form: str, protocol: str) -> None:
    """What `protocol` says is what the shape says."""
    given = FORMS[form](protocol)
    assert read_reply(given, tools=TOOLS, protocol=protocol) == read_reply(given, tools=TOOLS)


MESSAGE = {"role": "assistant", "content": "Hi.", "tool_calls": [CALL]}
BLOCKS = [
    {"type": "text", "text": "Hi."},
    {"type": "tool_use", "id": "c1", "name": "look", "input": {"what": "é"}},
]
PARTS = {
    "role": "model",
    "parts": [{"text": "Hi."}, {"functionCall": {"name": "look", "args": {"what": "é"}}}],
}


@dataclass(frozen=True)
class Part:
    id: str
    value: dict[str, Any]
    kind: str
    protocol: str = "chat_completions"
    finish_reason: str | None = None


PIECES = (
    Part("message", MESSAGE, "message"),
    Part("message without role", {"content": "Hi.", "tool_calls": [CALL]}, "message"),
    Part("choice", {"message": MESSAGE, "finish_reason": "stop"}, "choice", finish_reason="stop"),
    Part("blocks", {"role": "assistant", "content": BLOCKS}, "message", "messages"),
    Part("content", PARTS, "message", "gemini"),
    Part(
        "candidate",
        {"content": PARTS, "finishReason": "STOP"},
        "choice",
        "gemini",
        "tool_calls",
    ),
)


@pytest.mark.parametrize("part", PIECES, ids=lambda part: part.id)
@pytest.mark.parametrize("form", [dict, Old, json.dumps], ids=["dict", "object", "text"])
def test_parts_of_a_body_are_read(part: Part, form: Callable[[Any], Any]) -> None:
    """A message and a choice hold all that is needed."""
    told = tell_input(form(part.value))
    assert (told.kind, told.protocol) == (part.kind, part.protocol)
    reading = read_reply(form(part.value), tools=TOOLS)
    assert [(call.name, call.arguments) for call in reading.calls] == [("look", {"what": "é"})]
    assert (reading.content, reading.finish_reason) == ("Hi.", part.finish_reason)


def test_a_finish_reason_that_is_given_wins() -> None:
    """What the caller knows better is believed, and a cut call stays cut."""
    for form in ("body", "body as text", "stream as text"):
        reading = read_reply(FORMS[form]("messages"), tools=TOOLS, finish_reason="length")
        assert reading.finish_reason == "length"
        assert [call.state for call in reading.calls] == ["cut"]


# Text of a model


TEXTS = (
    "",
    "Hello.",
    "data: the numbers below",
    'data: {"rows": 3}',
    "event: party\n\nSee you there.",
    ": a comment",
    '{"name": "look", "arguments": {"what": "x"}}',
    '[{"name": "look", "arguments": {"what": "x"}}]',
    '{"name": "look", "arguments": {"choices": [{"index": 1}], "role": "user"}}',
    '{"name": "ask", "arguments": {"question": "?", "choices": ["a"',
    '{"tool_calls": [{"name": "look", "arguments": {"what": "x"}}]}',
    '{"tool_calls": [{"function": {"name": "look", "arguments": {"what": "x"}}}]}',
    '{"type": "function", "function": {"name": "look", "parameters": {"what": "x"}}}',
    '{"type": "function_call", "name": "look", "arguments": "{}"}',
    '{"choices": ["red", "green"]}',
    '{"candidates": ["Ada", "Grace"]}',
    '{"output": "done"}',
    '{"message": "done"}',
    '{"content": "an answer"}',
    '{"role": "admin"}',
    '{"error": "not found"}',
    '{"type": "message"}',
    "[1, 2]",
    "[]",
    "{}",
    '{"a": ',
    "\ud800",
    '{"role": "\ud800"}',
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_is_no_document_is_what_the_model_wrote(text: str) -> None:
    """JSON of a model, be it a call or an answer, is text to be read."""
    assert tell_input(text).kind == "text"
    assert read_reply(text, tools=[]).content == text


def test_a_call_as_json_text_is_read_as_text() -> None:
    """It is a call of an offered tool, and not a body."""
    reading = read_reply('{"name": "look", "arguments": {"what": "x"}}', tools=TOOLS)
    assert [call.format for call in reading.calls] == ["bare_json"]


# What is no reply


class Broken:
    """An object whose data cannot be had."""

    def model_dump(self, **_: Any) -> Any:
        """Fail."""
        raise RuntimeError("no")


ENDLESS: dict[str, Any] = {"role": "assistant"}
ENDLESS["content"] = ENDLESS
REFUSED = (
    pytest.param(None, Code.INVALID_REPLY, id="nothing"),
    pytest.param(3, Code.INVALID_REPLY, id="number"),
    pytest.param({}, Code.INVALID_REPLY, id="empty object"),
    pytest.param({"answer": 42}, Code.INVALID_REPLY, id="other object"),
    pytest.param({"name": "look", "arguments": {}}, Code.INVALID_REPLY, id="call as object"),
    pytest.param([], Code.INVALID_REPLY, id="empty list"),
    pytest.param([MESSAGE], Code.INVALID_REPLY, id="list of messages"),
    pytest.param(["a", "b"], Code.INVALID_REPLY, id="list of texts"),
    pytest.param(iter([MESSAGE]), Code.INVALID_REPLY, id="open stream"),
    pytest.param(ChatCompletion, Code.INVALID_REPLY, id="class"),
    pytest.param(SimpleNamespace(content="x"), Code.INVALID_REPLY, id="other type"),
    pytest.param(Broken(), Code.INVALID_REPLY, id="failing object"),
    pytest.param(ENDLESS, Code.INVALID_REPLY, id="without end"),
    pytest.param({"role": "user", "content": "Hi"}, Code.INVALID_MESSAGE, id="user"),
    pytest.param(b'{"role": "tool", "content": "Hi"}', Code.INVALID_MESSAGE, id="tool as bytes"),
    pytest.param(b"ab\xff", Code.INVALID_UTF8, id="not UTF-8"),
)


def test_text_that_a_model_wrote_is_never_refused() -> None:
    """It may be an object that looks like the message of somebody else."""
    text = '{"role": "tool", "content": "Hi"}'
    assert read_reply(text, tools=[]).content == text


@pytest.mark.parametrize(("value", "code"), REFUSED)
def test_anything_else_is_refused(value: Any, code: Code) -> None:
    """The error says what was given and what to give."""
    with pytest.raises(ConfigError) as caught:
        read_reply(value, tools=TOOLS)
    assert caught.value.code == code
    assert caught.value.hint


def test_an_unknown_wire_format_is_refused() -> None:
    """The closest name is suggested."""
    with pytest.raises(ConfigError) as caught:
        read_reply("Hi", protocol="message")
    assert caught.value.code == Code.UNKNOWN_PROTOCOL


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_without_its_end_is_refused(protocol: str) -> None:
    """An end is never invented, in whatever form the stream was kept."""
    events = events_of(protocol)
    for count in range(1, len(events) - 2):
        if protocol == "gemini" and count == 1:
            continue  # one chunk alone is a body
        part = events[:count]
        for form in (part, json.dumps(part), "\n".join(map(json.dumps, part))):
            with pytest.raises(ProviderError) as caught:
                read_reply(form, tools=TOOLS, protocol=protocol)
            assert caught.value.code == Code.STREAM_TRUNCATED


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_damaged_body_is_refused(protocol: str) -> None:
    """It is not taken for text of the model."""
    with pytest.raises(ProviderError) as caught:
        read_reply(json.dumps(body_of(protocol))[:-4], tools=TOOLS)
    assert caught.value.code == Code.UPSTREAM_INVALID_JSON


def test_nothing_is_put_around_a_damaged_message_that_could_mend_it() -> None:
    """A rest behind the message does not become a part of the choice."""
    with pytest.raises(ProviderError) as caught:
        read_reply(json.dumps(MESSAGE) + ', "finish_reason": "stop"')
    assert caught.value.code == Code.UPSTREAM_INVALID_JSON


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such model", "code": "model_not_found"}},
        {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}},
        {"error": {"code": 404, "message": "no such model", "status": "NOT_FOUND"}},
    ],
)
def test_an_error_of_a_provider_is_raised(body: dict[str, Any]) -> None:
    """Whether it comes as an object or as text."""
    for form in (body, json.dumps(body)):
        with pytest.raises(ProviderError) as caught:
            read_reply(form)
        assert caught.value.code == Code.NOT_FOUND


def test_a_repeated_key_is_noticed_in_text() -> None:
    """The bytes of a document are kept as they came."""
    text = json.dumps(body_of("messages")).replace('"what"', '"what": "a", "what"')
    reading = read_reply(text, tools=TOOLS)
    assert [call.state for call in reading.calls] == ["unreadable"]


# Several choices


def _two(protocol: str) -> dict[str, Any]:
    body = body_of(protocol)
    key = "choices" if protocol == "chat_completions" else "candidates"
    other = json.loads(json.dumps(body[key][0]).replace("Let me see.", "Second."))
    return {**body, key: [{**body[key][0], "index": 0}, {**other, "index": 1}]}


def _two_streams(protocol: str) -> list[dict[str, Any]]:
    key = "choices" if protocol == "chat_completions" else "candidates"
    found: list[dict[str, Any]] = []
    for event in events_of(protocol):
        for index in (0, 1):
            text = json.dumps(event).replace("Let me ", f"{index}: Let me ")
            copied = json.loads(text)
            copied[key] = [{**entry, "index": index} for entry in copied.get(key) or ()]
            found.append(copied)
    return found


@pytest.mark.parametrize("protocol", ["chat_completions", "gemini"])
@pytest.mark.parametrize("form", [copy, json.dumps], ids=["object", "text"])
def test_one_of_several_choices_can_be_read(protocol: str, form: Callable[[Any], Any]) -> None:
    """The first by default, which leaves a defect; any other by its number."""
    given_body = form(_two(protocol))
    first = read_reply(given_body, tools=TOOLS)
    assert first.content == "Let me see."
    assert [defect.code for defect in first.defects] == [Code.CHOICES_IGNORED]
    second = read_reply(given_body, tools=TOOLS, choice=1)
    assert (second.content, second.defects) == ("Second.", ())
    assert [call.arguments for call in second.calls] == [{"what": "é"}]
    stream = form(_two_streams(protocol))
    for index in (0, 1):
        reading = read_reply(stream, tools=TOOLS, choice=index)
        assert (reading.content, reading.defects) == (f"{index}: Let me see.", ())
    missing: Any
    for missing in (2, -1, "1"):
        with pytest.raises(ConfigError) as caught:
            read_reply(given_body, choice=missing)
        assert caught.value.code == Code.INVALID_OPTION


@pytest.mark.parametrize("protocol", ["messages", "responses"])
def test_other_formats_have_one_choice(protocol: str) -> None:
    """It is the first, and there is no second."""
    assert read_reply(body_of(protocol), choice=0).content == "Let me see."
    with pytest.raises(ConfigError) as caught:
        read_reply(body_of(protocol), choice=1)
    assert caught.value.code == Code.INVALID_OPTION


# Anything at all

KEYS = st.sampled_from(
    [
        "arguments",
        "candidates",
        "choices",
        "content",
        "delta",
        "error",
        "finishReason",
        "finish_reason",
        "function",
        "index",
        "input",
        "message",
        "name",
        "object",
        "output",
        "parts",
        "role",
        "status",
        "stop_reason",
        "tool_calls",
        "type",
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
WORDS = st.sampled_from(
    [
        "assistant",
        "model",
        "user",
        "message",
        "response",
        "chat.completion",
        "chat.completion.chunk",
        "message_start",
        "message_stop",
        "content_block_delta",
        "response.completed",
        "completed",
        "STOP",
        "tool_use",
    ]
)
VALUES = st.recursive(
    LEAVES | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, *PROTOCOLS]), st.sampled_from([None, 0, 1]))
def test_whatever_is_given_is_read_or_refused_with_a_code(
    value: Any, protocol: str | None, choice: int | None
) -> None:
    """As an object, as text, as lines and as events, nothing else is ever raised."""
    text = json.dumps(value)
    forms = [value, text, text.encode(), f"data: {text}\n\n", f"{text}\n{text}", [value, value]]
    for form in forms:
        try:
            read_reply(form, tools=TOOLS, protocol=protocol, choice=choice)
        except SurecallError as error:
            assert error.code in Code.__members__  # noqa: PT017 - most are read


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused_with_a_code(text: str | bytes) -> None:
    """Whatever bytes a file has."""
    for value in (text, [text], [text, text]):
        try:
            parse_input(tell_input(value))
        except SurecallError as error:
            assert error.code in Code.__members__  # noqa: PT017 - most are read
