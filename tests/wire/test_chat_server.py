"""The server side of chat completions: requests that arrive, and replies that leave."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderReplyError,
    ProviderStatusError,
    ProviderTimeoutError,
    RequestError,
    RunError,
    SurecallError,
)
from surecall.base.records import (
    Message,
    ModelRequest,
    RawCall,
    Reply,
    ToolCall,
    ToolSpec,
    Usage,
    WireRequest,
)
from surecall.wire import ChatCompletions, WireProtocol

CHAT: WireProtocol = ChatCompletions()
USER = {"role": "user", "content": "Hi"}
FUNCTION = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": FUNCTION}
SPEC = ToolSpec(name="look", description="Looks.", parameters={"type": "object"})


def parsed(**fields: Any) -> ModelRequest:
    """Parse a request with these fields."""
    body = {"model": "m", "messages": [USER], **fields}
    return CHAT.parse_request(WireRequest(path="/chat/completions", body=body))


def events(data: bytes) -> list[Any]:
    """Return the data of every event; the end mark stays text."""
    texts = [event.removeprefix("data: ") for event in data.decode().split("\n\n") if event]
    return [text if text == "[DONE]" else json.loads(text) for text in texts]


def test_a_plain_request_is_model_and_messages() -> None:
    """Nothing is added to what the client said."""
    assert parsed() == ModelRequest(model="m", messages=(Message("user", "Hi"),))


def test_what_is_not_structure_becomes_a_parameter() -> None:
    """Fields nobody knows go along, nulls do not."""
    request = parsed(temperature=0.5, max_completion_tokens=9, seed=None, made_up={"a": 1})
    assert request.params == {
        "temperature": 0.5,
        "max_completion_tokens": 9,
        "made_up": {"a": 1},
    }


def test_settings_of_streams_are_not_parameters() -> None:
    """Usage is asked for with every stream anyway."""
    request = parsed(stream=True, stream_options={"include_usage": False})
    assert request.stream
    assert request.params == {}


def test_tools_come_with_what_is_to_be_sent_along() -> None:
    """Strictness and cache hints are kept beside the tool."""
    hint = {"type": "ephemeral"}
    tool = {"type": "function", "function": {**FUNCTION, "strict": True}, "cache_control": hint}
    (spec,) = parsed(tools=[tool]).tools
    assert spec.extra == {"strict": True, "cache_control": hint}
    assert (spec.name, spec.description, spec.parameters) == ("look", "Looks.", {"type": "object"})
    body = CHAT.render_request(parsed(tools=[tool])).body
    assert body["tools"] == [tool]


@dataclass(frozen=True)
class Choice:
    id: str
    fields: dict[str, Any]
    choice: Any
    tools: tuple[str, ...] = ("look", "save")


NAMED = {"type": "function", "function": {"name": "look"}}
CHOICES = (
    Choice("none given", {}, None),
    Choice("auto", {"tool_choice": "auto"}, "auto"),
    Choice("none", {"tool_choice": "none"}, "none"),
    Choice("required", {"tool_choice": "required"}, "required"),
    Choice("any, as some providers call it", {"tool_choice": "any"}, "required"),
    Choice("named", {"tool_choice": NAMED}, NAMED),
    Choice("named flat", {"tool_choice": {"type": "function", "name": "look"}}, NAMED),
    Choice("older word", {"function_call": "none"}, "none"),
    Choice("older name", {"function_call": {"name": "look"}}, NAMED),
    Choice(
        "allowed tools",
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [NAMED]},
            }
        },
        "required",
        ("look",),
    ),
)


@pytest.mark.parametrize("case", CHOICES, ids=lambda case: case.id)
def test_a_choice_of_tools_has_one_form(case: Choice) -> None:
    """Whatever way it was written, records know it in one."""
    save = {"type": "function", "function": {"name": "save"}}
    request = parsed(tools=[TOOL, save], **case.fields)
    assert request.tool_choice == case.choice
    assert tuple(tool.name for tool in request.tools) == case.tools


def test_older_functions_are_tools_and_their_calls_are_calls() -> None:
    """A conversation in the first form of the API reads like any other."""
    call = {"name": "look", "arguments": '{"what": 1}'}
    request = parsed(
        functions=[FUNCTION],
        messages=[
            USER,
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "look", "content": "seen"},
        ],
    )
    assert request.tools == (SPEC,)
    asked, answered = request.messages[1:]
    assert [(c.id, c.name, c.arguments) for c in asked.tool_calls] == [
        ("call_1", "look", {"what": 1})
    ]
    assert answered == Message("tool", "seen", tool_call_id="call_1")


def test_plain_text_is_no_response_format() -> None:
    """It is what every reply is anyway; others are kept."""
    assert parsed(response_format={"type": "text"}).response_format is None
    assert parsed(response_format={"type": "json_object"}).response_format == {
        "type": "json_object"
    }


@dataclass(frozen=True)
class Nonsense:
    id: str
    fields: dict[str, Any]
    words: str
    code: str = Code.INVALID_REQUEST


NONSENSE = (
    Nonsense("no model", {"model": None}, "model is null"),
    Nonsense("blank model", {"model": " "}, "model is ' '"),
    Nonsense("no messages", {"messages": []}, "messages is an empty list"),
    Nonsense("messages as text", {"messages": "Hi"}, "messages is 'Hi'"),
    Nonsense("message as text", {"messages": ["Hi"]}, "messages[0] is 'Hi'"),
    Nonsense(
        "unknown role",
        {"messages": [USER, {"role": "usr"}]},
        "messages[1]: A message has the role 'usr'",
        Code.INVALID_MESSAGE,
    ),
    Nonsense(
        "result without a call",
        {"messages": [{"role": "function", "name": "f", "content": "x"}]},
        "was not called",
        Code.INVALID_MESSAGE,
    ),
    Nonsense("tools as object", {"tools": TOOL}, "tools is a value of type dict"),
    Nonsense("tool as text", {"tools": ["look"]}, "tools[0] has the name null"),
    Nonsense("tool of another type", {"tools": [{"type": "custom"}]}, "of type 'custom'"),
    Nonsense("tool without a name", {"tools": [{"type": "function", "function": {}}]}, "the name"),
    Nonsense(
        "schema as text",
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": "x"}}]},
        "tools[0] has the parameters 'x'",
    ),
    Nonsense(
        "description as number",
        {"functions": [{"name": "f", "description": 3}]},
        "functions[0] has the description",
    ),
    Nonsense("unknown choice", {"tool_choice": "requird"}, "Did you mean 'required'"),
    Nonsense("choice as number", {"tool_choice": 3}, "tool_choice is a value of type int"),
    Nonsense("choice without a name", {"tool_choice": {"type": "function"}}, "name a function"),
    Nonsense("allowed without tools", {"tool_choice": {"type": "allowed_tools"}}, "saying which"),
    Nonsense("format as text", {"response_format": "json"}, "response_format is 'json'"),
    Nonsense("switch as text", {"parallel_tool_calls": "no"}, "parallel_tool_calls is 'no'"),
    Nonsense("stream as number", {"stream": 1}, "stream is a value of type int"),
)


@pytest.mark.parametrize("case", NONSENSE, ids=lambda case: case.id)
def test_nonsense_is_refused_with_its_place(case: Nonsense) -> None:
    """The client is told which field is wrong."""
    with pytest.raises(RequestError) as caught:
        parsed(**case.fields)
    assert caught.value.code == case.code
    assert case.words in str(caught.value)
    assert caught.value.hint


def test_history_keeps_reasoning_and_leaves_out_what_other_formats_take_back() -> None:
    """A chat provider would refuse fields that it does not know."""
    call = ToolCall(id="c1", name="look", arguments={}, extra={"thought_signature": "s", "x": 1})
    extra = {
        "reasoning_content": "why",
        "thinking_blocks": [{}],
        "reasoning_items": [{}],
        "thought_signature": "s",
    }
    request = ModelRequest(
        model="m",
        messages=(
            Message("assistant", None, (call,), extra=extra),
            Message("tool", "no", tool_call_id="c1", extra={"is_error": True}),
        ),
    )
    asked, answered = CHAT.render_request(request).body["messages"]
    assert asked["reasoning_content"] == "why"
    assert asked.keys() == {"role", "content", "tool_calls", "reasoning_content"}
    assert asked["tool_calls"][0].keys() == {"id", "type", "function", "x"}
    assert answered == {"role": "tool", "content": "no", "tool_call_id": "c1"}


REPLY = Reply(
    content="Let me look.",
    reasoning="Hm.",
    calls=(RawCall("c1", "look", '{"a":1}'), RawCall("c2", "look", {"b": "é"})),
    finish_reason="tool_calls",
    usage=Usage(7, 5, 12, reasoning_tokens=2, cached_tokens=3),
    model="m",
    id="r1",
    extra={"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]},
)


def test_a_reply_is_rendered_whole() -> None:
    """With everything a client of the format looks for."""
    body = CHAT.render_reply(REPLY)
    assert isinstance(body.pop("created"), int)
    assert body == {
        "id": "r1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "logprobs": None,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Let me look.",
                    "refusal": None,
                    "reasoning_content": "Hm.",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"a":1}'},
                        },
                        {
                            "id": "c2",
                            "type": "function",
                            "function": {"name": "look", "arguments": '{"b":"é"}'},
                        },
                    ],
                    "thinking_blocks": REPLY.extra["thinking_blocks"],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


def test_a_call_without_an_id_gets_one_of_its_own() -> None:
    """A client cannot answer a call that it cannot name; no arguments are an empty object."""
    reply = Reply(calls=(RawCall(None, "look", None), RawCall("", "look", None)))
    first, second = CHAT.render_reply(reply)["choices"][0]["message"]["tool_calls"]
    assert first["id"].startswith("call_")
    assert first["id"] != second["id"]
    assert first["function"]["arguments"] == "{}"


def test_a_call_has_the_same_id_every_time() -> None:
    """Also one that was made here; another reply has another."""

    def made(reply_id: str) -> str:
        reply = Reply(id=reply_id, calls=(RawCall(None, "look", {"a": 1}),))
        return CHAT.render_reply(reply)["choices"][0]["message"]["tool_calls"][0]["id"]

    assert made("r1") == made("r1") != made("r2")


def test_a_stream_is_written_event_by_event() -> None:
    """Calls have their index, usage comes last of all, and the end is marked."""
    writer = CHAT.open_writer(model="m", reply_id="r1")
    data = writer.begin() + writer.reasoning("Hm.") + writer.text("Hi") + writer.text("")
    data += b"".join(writer.call(call) for call in REPLY.calls) + writer.end(REPLY)
    *chunks, last, done = events(data)
    assert done == "[DONE]"
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 12)
    assert {chunk["id"] for chunk in (*chunks, last)} == {"r1"}
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[:3] == [
        {"role": "assistant", "content": None, "refusal": None},
        {"reasoning_content": "Hm."},
        {"content": "Hi"},
    ]
    assert [delta["tool_calls"][0]["index"] for delta in deltas[3:5]] == [0, 1]
    assert deltas[5] == REPLY.extra
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 5 + ["tool_calls"]
    assert [chunk["usage"] for chunk in chunks] == [None] * 6


def test_a_stream_that_fails_says_so_and_has_no_end() -> None:
    """Whoever folds it learns what went wrong."""
    writer = CHAT.open_writer(model="m")
    error = ProviderStatusError(Code.OVERLOADED, "Too busy.", status=529)
    data = writer.begin() + writer.text("Hel") + writer.fail(error)
    assert b"[DONE]" not in data
    folder = CHAT.open_stream()
    with pytest.raises(ProviderStatusError) as caught:
        folder.feed(data)
    assert caught.value.code == Code.OVERLOADED
    assert caught.value.body == "Hel"


@dataclass(frozen=True)
class Answered:
    id: str
    error: SurecallError
    status: int
    type: str
    code: str


ANSWERED = (
    Answered(
        "our refusal",
        RequestError(Code.INVALID_REQUEST, "No.", hint="Do."),
        400,
        "invalid_request_error",
        "INVALID_REQUEST",
    ),
    Answered(
        "rate limit",
        ProviderStatusError(Code.RATE_LIMIT, "Slow.", status=429, provider_code="slow_down"),
        429,
        "rate_limit_error",
        "slow_down",
    ),
    Answered(
        "error inside a 200",
        ProviderStatusError(Code.AUTH, "Who?", status=200),
        401,
        "authentication_error",
        "AUTH",
    ),
    Answered(
        "server error",
        ProviderStatusError(Code.UPSTREAM_5XX, "Oops.", status=503),
        503,
        "server_error",
        "UPSTREAM_5XX",
    ),
    Answered(
        "not a reply",
        ProviderReplyError(Code.UPSTREAM_NO_CHOICES, "Empty.", status=200),
        502,
        "server_error",
        "UPSTREAM_NO_CHOICES",
    ),
    Answered(
        "no connection",
        ProviderConnectionError(Code.CONNECTION_REFUSED, "No."),
        503,
        "server_error",
        "CONNECTION_REFUSED",
    ),
    Answered(
        "too late",
        ProviderTimeoutError(Code.IDLE_TIMEOUT, "Late."),
        504,
        "timeout_error",
        "IDLE_TIMEOUT",
    ),
    Answered(
        "our own failure",
        RunError(Code.MAX_TURNS_REACHED, "Enough."),
        500,
        "server_error",
        "MAX_TURNS_REACHED",
    ),
)


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_an_error_has_the_status_that_says_whose_fault_it_is(case: Answered) -> None:
    """And the shape in which clients look for it."""
    fault = CHAT.render_error(case.error)
    assert fault.status == case.status
    error = fault.body["error"]
    assert (error["type"], error["code"]) == (case.type, case.code)
    assert error["message"].startswith(case.error.message)
    assert (case.error.hint or "") in error["message"]
