"""Requests as they leave."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.argument_shapes import ARGUMENT_SHAPES, ArgumentShape
from support.messages_rules import broken_rules
from surecall.base.errors import RequestError
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec
from surecall.reading import read_reply
from surecall.wire import WireProtocol
from surecall.wire.messages import Messages, render_tool

HI = Message("user", "Hi")
CACHE = {"type": "ephemeral"}
TOOL = ToolSpec(
    name="look_up",
    description="Looks something up.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": []},
)
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}


def _body(*messages: Message, **fields: Any) -> dict[str, Any]:
    protocol: WireProtocol = Messages()
    wire = protocol.render_request(ModelRequest(model="m", messages=messages or (HI,), **fields))
    assert wire.path == "/messages"
    assert wire.headers == {"anthropic-version": "2026-10-21"}
    assert broken_rules(wire.body) == []
    return wire.body


def _turns(*messages: Message) -> list[Any]:
    return [(turn["role"], turn["content"]) for turn in _body(*messages)["messages"]]


def _call(call_id: str = "c1", **fields: Any) -> ToolCall:
    return ToolCall(**{"id": call_id, "name": "look_up", "arguments": {"q": "x"}, **fields})


def _use(call_id: str = "c1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look_up", "input": {"q": "x"}}


def _asks(*ids: str, content: str | None = None, **extra: Any) -> Message:
    return Message("assistant", content, tuple(_call(item) for item in ids), extra=extra)


def _answers(call_id: str, content: Any = "42", **extra: Any) -> Message:
    return Message("tool", content, tool_call_id=call_id, extra=extra)


def _result(call_id: str, content: Any = "42", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


NO_RESULT = "No result of this call was recorded; it may or may not have run."
LOST = {
    "type": "text",
    "text": "[The result of a call that is not part of this conversation any more:]",
}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_a_plain_request_has_a_model_a_limit_and_messages() -> None:
    """The format demands a limit; nothing else is added."""
    assert _body() == {
        "model": "m",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "Hi"}],
    }


def test_a_key_is_a_bearer_token() -> None:
    """As the official SDK sends it."""
    assert Messages().render_auth("k") == {"Authorization": "Bearer k"}


@dataclass(frozen=True)
class Order:
    id: str
    messages: tuple[Message, ...]
    turns: list[Any]


ORDERS = (
    Order(
        "two of the user are one turn",
        (HI, Message("user", "There")),
        [("user", [_text("Hi"), _text("There")])],
    ),
    Order(
        "two of the assistant are one turn",
        (HI, Message("assistant", "A"), Message("assistant", "B"), HI),
        [("user", "Hi"), ("assistant", [_text("A"), _text("B")]), ("user", "Hi")],
    ),
    Order(
        "results of one turn share a message",
        (HI, _asks("a", "b", content="Wait."), _answers("a", "1"), _answers("b", "2")),
        [
            ("user", "Hi"),
            ("assistant", [_text("Wait."), _use("a"), _use("b")]),
            ("user", [_result("a", "1"), _result("b", "2")]),
        ],
    ),
    Order(
        "what the user says between comes after the results",
        (HI, _asks("a"), Message("user", "Hurry"), _answers("a"), Message("user", "Well?")),
        [
            ("user", "Hi"),
            ("assistant", [_use("a")]),
            ("user", [_result("a"), _text("Hurry"), _text("Well?")]),
        ],
    ),
    Order(
        "a call without a result gets one that says so",
        (HI, _asks("a", "b"), _answers("b"), Message("assistant", "Done."), HI),
        [
            ("user", "Hi"),
            ("assistant", [_use("a"), _use("b")]),
            ("user", [_result("b"), _result("a", NO_RESULT, is_error=True)]),
            ("assistant", "Done."),
            ("user", "Hi"),
        ],
    ),
    Order(
        "calls at the end get results as well",
        (HI, _asks("a")),
        [
            ("user", "Hi"),
            ("assistant", [_use("a")]),
            ("user", [_result("a", NO_RESULT, is_error=True)]),
        ],
    ),
    Order(
        "text between a call and its result joins the turn of the call",
        (HI, _asks("a"), Message("assistant", "Wait."), _answers("a")),
        [("user", "Hi"), ("assistant", [_text("Wait."), _use("a")]), ("user", [_result("a")])],
    ),
    Order(
        "a result without its call becomes text",
        (_answers("gone", "1"), HI),
        [("user", [LOST, _text("1"), _text("Hi")])],
    ),
    Order(
        "a second result becomes text",
        (HI, _asks("a"), _answers("a", "1"), _answers("a", "2")),
        [
            ("user", "Hi"),
            ("assistant", [_use("a")]),
            ("user", [_result("a", "1"), LOST, _text("2")]),
        ],
    ),
    Order(
        "an assistant does not begin",
        (Message("assistant", "Welcome."), HI),
        [("user", "(continued)"), ("assistant", "Welcome."), ("user", "Hi")],
    ),
    Order(
        "instructions in the middle are the user's",
        (HI, Message("assistant", "A"), Message("developer", "Be brief."), Message("user", "B")),
        [("user", "Hi"), ("assistant", "A"), ("user", [_text("Be brief."), _text("B")])],
    ),
    Order(
        "instructions alone are the user's",
        (Message("system", "Say hi."),),
        [("user", "Say hi.")],
    ),
    Order(
        "what is blank is left out",
        (HI, Message("assistant", " \n"), Message("user", ""), Message("user", "There")),
        [("user", [_text("Hi"), _text("There")])],
    ),
    Order(
        "a prefill loses the space at its end",
        (HI, Message("assistant", "The answer is \n")),
        [("user", "Hi"), ("assistant", "The answer is")],
    ),
    Order(
        "space at the end stays elsewhere",
        (HI, Message("assistant", "A "), HI),
        [("user", "Hi"), ("assistant", "A "), ("user", "Hi")],
    ),
    Order(
        "thoughts come first",
        (HI, _asks("a", content="Wait.", thinking_blocks=[THOUGHT, HIDDEN]), _answers("a")),
        [
            ("user", "Hi"),
            ("assistant", [THOUGHT, HIDDEN, _text("Wait."), _use("a")]),
            ("user", [_result("a")]),
        ],
    ),
    Order(
        "thoughts alone are left out",
        (HI, Message("assistant", "", extra={"thinking_blocks": [THOUGHT]}), HI),
        [("user", [_text("Hi"), _text("Hi")])],
    ),
    Order(
        "reasoning without a signature is left out",
        (
            HI,
            Message(
                "assistant",
                "A",
                extra={
                    "reasoning_content": "r",
                    "thinking_blocks": [{"type": "thinking", "thinking": "t"}, "x", {"type": "y"}],
                },
            ),
            HI,
        ),
        [("user", "Hi"), ("assistant", "A"), ("user", "Hi")],
    ),
    Order(
        "an id that was used before is changed, with its result",
        (HI, _asks("a"), _answers("a", "1"), _asks("a"), _answers("a", "2")),
        [
            ("user", "Hi"),
            ("assistant", [_use("a")]),
            ("user", [_result("a", "1")]),
            ("assistant", [_use("a__2")]),
            ("user", [_result("a__2", "2")]),
        ],
    ),
    Order(
        "two calls of a turn with one id get their results in order",
        (HI, _asks("a", "a"), _answers("a", "1"), _answers("a", "2")),
        [
            ("user", "Hi"),
            ("assistant", [_use("a"), _use("a__2")]),
            ("user", [_result("a", "1"), _result("a__2", "2")]),
        ],
    ),
    Order(
        "an error is marked, and an empty result has no content",
        (HI, _asks("a", "b"), _answers("a", "no", is_error=True), _answers("b", "")),
        [
            ("user", "Hi"),
            ("assistant", [_use("a"), _use("b")]),
            (
                "user",
                [_result("a", "no", is_error=True), {"type": "tool_result", "tool_use_id": "b"}],
            ),
        ],
    ),
)


@pytest.mark.parametrize("case", ORDERS, ids=lambda case: case.id)
def test_any_order_becomes_one_that_is_accepted(case: Order) -> None:
    """Every rule of order has a row."""
    assert _turns(*case.messages) == case.turns


@pytest.mark.parametrize("messages", [(), (Message("user", " "),), (Message("system", ""),)])
def test_a_request_in_which_nobody_says_anything_is_refused(messages: tuple[Message, ...]) -> None:
    """No words are put into anybody's mouth."""
    with pytest.raises(RequestError, match="No message of the request says anything") as caught:
        Messages().render_request(ModelRequest(model="m", messages=messages))
    assert caught.value.code == "INVALID_MESSAGE"


def test_blank_instructions_are_left_out() -> None:
    """The API refuses text without words."""
    assert "system" not in _body(Message("system", "\n"), HI)


@pytest.mark.parametrize(
    ("messages", "system"),
    [
        pytest.param((Message("system", "Be brief."),), "Be brief.", id="text"),
        pytest.param(
            (Message("system", "A"), Message("developer", "B")), [_text("A"), _text("B")], id="two"
        ),
        pytest.param(
            (Message("system", [{**_text("A"), "cache_control": CACHE}]),),
            [{**_text("A"), "cache_control": CACHE}],
            id="cache hint",
        ),
    ],
)
def test_leading_instructions_are_the_system_prompt(
    messages: tuple[Message, ...], system: Any
) -> None:
    """They are no messages in this format."""
    body = _body(*messages, HI)
    assert body["system"] == system
    assert body["messages"] == [{"role": "user", "content": "Hi"}]


def test_an_image_among_the_instructions_moves_to_the_user() -> None:
    """The system prompt takes text only."""
    image = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    body = _body(Message("system", [_text("See:"), image]), HI)
    assert body["system"] == "See:"
    block = {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}}
    assert body["messages"][0]["content"] == [block, _text("Hi")]


PDF = "data:application/pdf;base64,JVBE"


@dataclass(frozen=True)
class Part:
    id: str
    part: dict[str, Any]
    block: dict[str, Any]


PARTS = (
    Part(
        "text with a hint",
        {**_text("A"), "cache_control": CACHE},
        {**_text("A"), "cache_control": CACHE},
    ),
    Part(
        "image as data",
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "low"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
    ),
    Part(
        "image with an old media type and a hint",
        {"type": "image_url", "image_url": "data:image/jpg;base64,AA==", "cache_control": CACHE},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="},
            "cache_control": CACHE,
        },
    ),
    Part(
        "image that is not base64",
        {"type": "image_url", "image_url": {"url": "data:image/png,%89P"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVA="}},
    ),
    Part(
        "image elsewhere",
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
    ),
    Part(
        "file as data",
        {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
            "title": "a.pdf",
        },
    ),
    Part(
        "file of text",
        {"type": "file", "file": {"file_data": "data:text/plain;base64,SGk="}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi"}},
    ),
    Part(
        "file by id",
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "document", "source": {"type": "file", "file_id": "f1"}},
    ),
    Part(
        "file elsewhere",
        {"type": "file", "file": {"file_url": "https://x.test/a.pdf"}},
        {"type": "document", "source": {"type": "url", "url": "https://x.test/a.pdf"}},
    ),
    Part(
        "a block of the format itself",
        {"type": "search_result", "source": "s", "title": "t", "content": [_text("x")]},
        {"type": "search_result", "source": "s", "title": "t", "content": [_text("x")]},
    ),
    Part(
        "audio has no place",
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        _text("[A part of type input_audio was left out.]"),
    ),
    Part(
        "a broken image", {"type": "image_url"}, _text("[A part of type image_url was left out.]")
    ),
    Part("no type at all", {"x": 1}, _text("[A part of type unknown was left out.]")),
    Part("a type that is no text", {"type": []}, _text("[A part of type unknown was left out.]")),
)


@pytest.mark.parametrize("case", PARTS, ids=lambda case: case.id)
def test_parts_become_blocks(case: Part) -> None:
    """Each kind of part has its form on the wire, for the user and in a result."""
    body = _body(Message("user", [case.part, _text("Well?")]))
    assert body["messages"][0]["content"] == [case.block, _text("Well?")]
    body = _body(HI, _asks("a"), _answers("a", [_text("See:"), case.part]))
    assert body["messages"][2]["content"] == [_result("a", [_text("See:"), case.block])]


def test_what_an_assistant_cannot_send_back_is_named() -> None:
    """Images are the user's in this format."""
    parts = [
        {"type": "refusal", "refusal": "No."},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
    ]
    blocks = _body(HI, Message("assistant", parts), HI)["messages"][1]["content"]
    assert blocks == [_text("No."), _text("[A part of type image_url was left out.]"), parts[2]]


@pytest.mark.parametrize("shape", ARGUMENT_SHAPES, ids=lambda shape: shape.id)
def test_after_any_shape_the_history_is_valid(shape: ArgumentShape) -> None:
    """Whatever arrived as arguments, an object is sent back."""
    reading = read_reply(Reply(calls=(RawCall("c1", "look_up", shape.raw),)))
    block = _body(HI, Message("assistant", "", reading.calls))["messages"][1]["content"][0]
    if shape.value is None:
        assert set(block["input"]) == {"_unreadable_arguments"}
        assert len(block["input"]["_unreadable_arguments"]) <= 200
    else:
        assert block["input"] == shape.value


@pytest.mark.parametrize(
    ("call_id", "sent"),
    [
        ("toolu_01-A", "toolu_01-A"),
        ("functions.look_up:0", "functions_look_up_0_5223f977c407b75b"),
        ("", "call_e3b0c44298fc1c14"),
    ],
)
def test_ids_have_allowed_characters(call_id: str, sent: str) -> None:
    """An id that is not taken gets the same stand-in every time, and so does its result."""
    turns = _body(HI, _asks(call_id), _answers(call_id), HI)["messages"]
    assert turns[1]["content"][0]["id"] == sent
    assert turns[2]["content"][0]["tool_use_id"] == sent


def test_ids_that_differ_stay_different() -> None:
    """Two that look alike once cleaned are told apart, and so is one that imitates a stand-in."""
    first = _body(HI, _asks("a.b"))["messages"][1]["content"][0]["id"]
    blocks = _body(HI, _asks("a.b", "a:b", first))["messages"][1]["content"]
    assert len({block["id"] for block in blocks}) == 3


def test_names_in_history_are_acceptable() -> None:
    """A name no provider takes would poison every later request."""
    call = ToolCall(id="a", name="a b/c" * 40, arguments={})
    block = _body(HI, Message("assistant", None, (call,)))["messages"][1]["content"][0]
    assert block["name"] == ("a_b_c" * 40)[:128]


def test_fields_of_a_call_that_the_format_knows_are_echoed() -> None:
    """Those of other formats are not."""
    call = _call(extra={"cache_control": CACHE, "thought_signature": "s", "caller": None})
    block = _body(HI, Message("assistant", None, (call,)))["messages"][1]["content"][0]
    assert block == {**_use("c1"), "cache_control": CACHE}


def test_tools_are_sent_with_a_schema_of_an_object() -> None:
    """Without empty `required` lists, and with the fields that the format knows."""
    tool = ToolSpec(
        name="t", parameters={"properties": {}}, extra={"cache_control": CACHE, "foreign": 1}
    )
    body = _body(tools=(TOOL, tool), tool_choice="auto")
    assert body["tools"] == [
        {
            "name": "look_up",
            "description": "Looks something up.",
            "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
        },
        {
            "name": "t",
            "input_schema": {"type": "object", "properties": {}},
            "cache_control": CACHE,
        },
    ]
    assert body["tool_choice"] == {"type": "auto"}
    assert render_tool(ToolSpec(name="t"))["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        (None, None, None),
        (None, True, None),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("auto", True, {"type": "auto"}),
        ("required", None, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        (
            {"type": "function", "function": {"name": "look_up"}},
            False,
            {"type": "tool", "name": "look_up", "disable_parallel_tool_use": True},
        ),
        ({"type": "tool", "name": "look_up"}, None, {"type": "tool", "name": "look_up"}),
    ],
)
def test_tool_choices_are_translated(choice: Any, parallel: bool | None, sent: Any) -> None:
    """Whether several calls may come at once is part of the choice here."""
    body = _body(tools=(TOOL,), tool_choice=choice, parallel_tool_calls=parallel)
    assert body.get("tool_choice") == sent


def test_a_choice_among_some_tools_offers_only_those() -> None:
    """Also in the form of the other house."""
    other = ToolSpec(name="other")
    named = {"type": "function", "name": "look_up"}
    choice = {"type": "allowed_tools", "mode": "required", "tools": [named, 3]}
    body = _body(tools=(TOOL, other), tool_choice=choice)
    assert [tool["name"] for tool in body["tools"]] == ["look_up"]
    assert body["tool_choice"] == {"type": "any"}


def test_settings_of_tools_are_left_out_without_tools() -> None:
    """The API refuses them alone."""
    assert "tool_choice" not in _body(tool_choice="auto", parallel_tool_calls=False)


def test_a_history_with_calls_defines_their_tools_though_none_may_be_used() -> None:
    """The API refuses calls in a history without tools, as in a last request that offers none."""
    body = _body(HI, _asks("a"), _answers("a"))
    assert body["tools"] == [
        {"name": "look_up", "input_schema": {"type": "object", "properties": {}}}
    ]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        pytest.param({"max_tokens": 7}, {"max_tokens": 7}, id="limit"),
        pytest.param({"max_completion_tokens": 7}, {"max_tokens": 7}, id="other name of it"),
        pytest.param(
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"max_tokens": 6096, "thinking": {"type": "enabled", "budget_tokens": 2000}},
            id="the default limit is above the budget of thinking",
        ),
        pytest.param({"stop": "END"}, {"stop_sequences": ["END"]}, id="one stop"),
        pytest.param({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}, id="stops"),
        pytest.param({"user": "u"}, {"metadata": {"user_id": "u"}}, id="user"),
        pytest.param(
            {"metadata": {"user_id": "u", "x": "y"}}, {"metadata": {"user_id": "u"}}, id="metadata"
        ),
        pytest.param(
            {"temperature": 0.5, "top_k": 3, "top_p": 0.9, "service_tier": "auto"},
            {"temperature": 0.5, "top_k": 3, "top_p": 0.9, "service_tier": "auto"},
            id="the same",
        ),
        pytest.param(
            {"seed": 1, "n": 2, "presence_penalty": 1, "frequency_penalty": 1, "logprobs": True},
            {},
            id="refused by the API",
        ),
        pytest.param(
            {"reasoning_effort": "minimal"}, {"output_config": {"effort": "low"}}, id="effort"
        ),
        pytest.param(
            {"reasoning_effort": "high", "output_config": {"effort": "max"}},
            {"output_config": {"effort": "max"}},
            id="the own name wins",
        ),
        pytest.param(
            {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, id="no effort"
        ),
        pytest.param({"model": "other", "messages": [], "temperature": None}, {}, id="structure"),
        pytest.param({"something_new": {"a": 1}}, {"something_new": {"a": 1}}, id="unknown"),
    ],
)
def test_parameters_have_the_names_of_the_format(
    params: dict[str, Any], sent: dict[str, Any]
) -> None:
    """What the API would refuse is left out; what is unknown goes through."""
    body = _body(params=params)
    assert body == {**_body(), **sent}


def test_a_response_format_with_a_schema_is_sent() -> None:
    """The format has no counterpart of plain JSON mode, which is left out."""
    schema = {"type": "object", "properties": {}}
    named = {"name": "a", "schema": schema, "strict": True}
    body = _body(response_format={"type": "json_schema", "json_schema": named})
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
    assert "output_config" not in _body(response_format={"type": "json_object"})


def test_a_streamed_request_says_so() -> None:
    """In the body and for the transport."""
    wire = Messages().render_request(ModelRequest(model="m", messages=(HI,), stream=True))
    assert (wire.stream, wire.body["stream"]) == (True, True)
