"""Requests as they leave."""

import json
from typing import Any

import pytest

from support.argument_shapes import ARGUMENT_SHAPES, ArgumentShape
from surecall.base.records import Message, ModelRequest, RawCall, Receipt, Reply, ToolCall, ToolSpec
from surecall.reading import read_reply
from surecall.wire import ChatCompletions, WireProtocol
from surecall.wire.chat_completions import render_message, render_tool

TOOL = ToolSpec(
    name="look_up",
    description="Looks something up.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": []},
)


def _request(**fields: Any) -> dict[str, Any]:
    request = ModelRequest(model="m", messages=(Message("user", "Hi"),), **fields)
    protocol: WireProtocol = ChatCompletions()
    wire = protocol.render_request(request)
    assert wire.path == "/chat/completions"
    assert wire.stream is request.stream
    return wire.body


def _call(**fields: Any) -> ToolCall:
    return ToolCall(**{"id": "c1", "name": "look_up", "arguments": {"q": 1}, **fields})


def _rendered(call: ToolCall) -> dict[str, Any]:
    return render_message(Message("assistant", None, (call,)))["tool_calls"][0]


def test_a_plain_request_has_nothing_but_model_and_messages() -> None:
    """What was not asked for is not sent."""
    assert _request() == {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def test_tools_are_sent_as_functions_without_empty_required_lists() -> None:
    """Some providers refuse an empty list."""
    body = _request(tools=(TOOL,), tool_choice="required", parallel_tool_calls=False)
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look_up",
                "description": "Looks something up.",
                "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
            },
        }
    ]
    assert body["tool_choice"] == "required"
    assert body["parallel_tool_calls"] is False
    assert TOOL.parameters["required"] == []


def test_settings_of_tools_are_left_out_without_tools() -> None:
    """A provider refuses them alone."""
    assert set(_request(tool_choice="auto", parallel_tool_calls=True)) == {"model", "messages"}


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    """And one without a description has none."""
    assert render_tool(ToolSpec(name="t")) == {
        "type": "function",
        "function": {"name": "t", "parameters": {"type": "object", "properties": {}}},
    }


def test_parameters_go_into_the_body_but_never_over_what_the_request_says() -> None:
    """Structure comes from the request alone."""
    body = _request(
        params={"temperature": 0.5, "model": "other", "messages": []},
        response_format={"type": "json_object"},
    )
    assert body["temperature"] == 0.5
    assert body["model"] == "m"
    assert body["messages"] == [{"role": "user", "content": "Hi"}]
    assert body["response_format"] == {"type": "json_object"}


def test_a_streamed_request_asks_for_usage() -> None:
    """Unless the caller says what to ask for."""
    body = _request(stream=True)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    options = {"include_usage": False}
    assert _request(stream=True, params={"stream_options": options})["stream_options"] == options


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        pytest.param(
            Message("system", "Be brief."), {"role": "system", "content": "Be brief."}, id="system"
        ),
        pytest.param(
            Message("user", [{"type": "text", "text": "Hi"}], name="Ann"),
            {"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "Ann"},
            id="parts and name",
        ),
        pytest.param(
            Message("tool", "{}", tool_call_id="c1"),
            {"role": "tool", "content": "{}", "tool_call_id": "c1"},
            id="tool",
        ),
        pytest.param(Message("user", None), {"role": "user", "content": ""}, id="no content"),
        pytest.param(
            Message("assistant", None), {"role": "assistant", "content": ""}, id="empty answer"
        ),
        pytest.param(
            Message("assistant", "x", extra={"reasoning_content": "r", "role": "user"}),
            {"role": "assistant", "content": "x", "reasoning_content": "r"},
            id="extra fields",
        ),
    ],
)
def test_messages_are_rendered(message: Message, wire: dict[str, Any]) -> None:
    """Each kind of message has its form on the wire."""
    assert render_message(message) == wire


@pytest.mark.parametrize("content", [None, ""])
def test_content_beside_calls_stays_null_or_empty_as_it_was(content: str | None) -> None:
    """Null is sent only for null."""
    assert render_message(Message("assistant", content, (_call(),)))["content"] == content


def test_a_clean_call_is_echoed_byte_for_byte() -> None:
    """Space, escapes and order of the model's own text survive."""
    raw = '{ "b":1,\n"a": "\\u00e9" }'
    call = _call(arguments={"b": 1, "a": "é"}, raw=raw, extra={"signature": "s"})
    assert _rendered(call) == {
        "id": "c1",
        "type": "function",
        "function": {"name": "look_up", "arguments": raw},
        "signature": "s",
    }


def test_a_changed_call_is_sent_as_it_was_used() -> None:
    """What ran is what the history says."""
    call = _call(raw="```{}```", receipts=(Receipt("strip_code_fence", "", "a", "b"),))
    assert _rendered(call)["function"]["arguments"] == '{"q":1}'


def test_arguments_that_came_as_an_object_are_sent_as_text() -> None:
    """The wire format asks for text."""
    assert _rendered(_call(raw={"q": 1}))["function"]["arguments"] == '{"q":1}'


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        pytest.param('{"a": 1', '{"a": 1', id="text"),
        pytest.param("x" * 5000, "x" * 200, id="long text"),
        pytest.param([1, {"a": "b"}], '[1,{"a":"b"}]', id="array"),
        pytest.param({"a": "x" * 5000}, ('{"a":"' + "x" * 200)[:200], id="large object"),
        pytest.param({"a": [[[1]]]}, '{"a":[[]]}', id="deep object"),
        pytest.param(5, "5", id="number"),
        pytest.param(float("nan"), "(float)", id="not finite"),
        pytest.param("\ud800", "?", id="half a surrogate pair"),
    ],
)
def test_unreadable_arguments_get_a_bounded_valid_stand_in(raw: Any, shown: str) -> None:
    """The history stays acceptable to providers that parse it."""
    text = _rendered(_call(arguments=None, raw=raw))["function"]["arguments"]
    assert json.loads(text) == {"_unreadable_arguments": shown}


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("look_up", "look_up"),
        ("", "unnamed"),
        ("a b/c", "a_b_c"),
        ("n" * 100, "n" * 64),
        ("имя", "___"),
        ("look_up\n", "look_up_"),
    ],
)
def test_names_in_history_are_acceptable_to_providers(name: str, sent: str) -> None:
    """A name no provider takes would poison every later request."""
    assert _rendered(_call(name=name))["function"]["name"] == sent


@pytest.mark.parametrize("shape", ARGUMENT_SHAPES, ids=lambda shape: shape.id)
def test_after_any_shape_the_history_is_valid(shape: ArgumentShape) -> None:
    """Whatever arrived, the arguments sent back are the text of one JSON object."""
    reading = read_reply(Reply(calls=(RawCall("c1", "look_up", shape.raw),)))
    wire = render_message(Message("assistant", "", reading.calls))
    text = wire["tool_calls"][0]["function"]["arguments"]
    value = json.loads(text)
    assert isinstance(value, dict)
    if shape.value is None:
        assert set(value) == {"_unreadable_arguments"}
        assert len(value["_unreadable_arguments"]) <= 200
    else:
        assert value == shape.value


PICTURE: dict[str, Any] = {
    "type": "image_url",
    "image_url": {"url": "data:image/png;base64,AA=="},
}


def test_pictures_in_results_are_shown_by_the_user_behind_them() -> None:
    """Results of this format are text; all of a turn come before anybody else speaks."""
    messages = (
        Message("assistant", None, (_call(), _call(id="c2"))),
        Message("tool", [{"type": "text", "text": "Two:"}, PICTURE], tool_call_id="c1"),
        Message("tool", [PICTURE], tool_call_id="c2"),
        Message("assistant", "Nice."),
        Message("tool", [PICTURE], tool_call_id="c1"),
    )
    wire = ChatCompletions().render_request(ModelRequest(model="m", messages=messages))
    _, first, second, shown, _, third, last = wire.body["messages"]
    assert first["content"] == [{"type": "text", "text": "Two:"}]
    assert [second["role"], third["role"]] == ["tool", "tool"]
    assert second["content"] == third["content"]
    assert isinstance(second["content"], str)
    assert [part.get("text", "picture") for part in shown["content"]] == [
        "[From the result of the call c1:]",
        "picture",
        "[From the result of the call c2:]",
        "picture",
    ]
    assert (shown["role"], last["role"], last["content"][1]) == ("user", "user", PICTURE)


def test_a_call_of_an_offered_tool_keeps_its_name_in_history() -> None:
    """Other names are made acceptable."""
    calls = (_call(name="weather/today"), _call(id="c2", name="what ever"))
    request = ModelRequest(
        model="m",
        messages=(Message("assistant", None, calls),),
        tools=(ToolSpec(name="weather/today"),),
    )
    found = ChatCompletions().render_request(request).body["messages"][0]["tool_calls"]
    assert [call["function"]["name"] for call in found] == ["weather/today", "what_ever"]
