"""Requests that a client sends."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import RequestError
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.wire import Responses, WireProtocol

from .builders import call_item, text_item, thought_item

RESPONSES: WireProtocol = Responses()
TOOL = {"type": "function", "name": "look", "description": "Looks.", "parameters": {}}
SPEC = ToolSpec(name="look", description="Looks.")
USER = Message("user", "Hi")


def parsed(**fields: Any) -> ModelRequest:
    """Parse a request with these fields."""
    body = {"model": "m", "input": "Hi", **fields}
    return RESPONSES.parse_request(WireRequest(path="/responses", body=body))


def messages(*items: Any) -> tuple[Message, ...]:
    """Parse the messages of an input."""
    return parsed(input=list(items)).messages


def call(call_id: str = "c1", raw: str = '{"a":1}', **fields: Any) -> ToolCall:
    """Return the call that an item of the history stands for."""
    return ToolCall(id=call_id, name="look", arguments={"a": 1}, raw=raw, **fields)


def output(call_id: str | None = "c1", value: Any = "ok") -> dict[str, Any]:
    """Return the result of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def test_text_is_what_the_user_says() -> None:
    """The shortest request there is."""
    assert parsed() == ModelRequest(model="m", messages=(USER,))


def test_instructions_come_first() -> None:
    """As the system's message."""
    assert parsed(instructions="Be brief.").messages == (Message("system", "Be brief."), USER)


def test_messages_come_in_every_form_that_the_sdk_lets_through() -> None:
    """With and without a type, as text and in parts, of every role."""
    assert messages(
        {"role": "developer", "content": "a"},
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "b"}]},
        {"role": "user", "content": "c", "type": "message", "status": "completed"},
        {"role": "assistant", "content": "d", "phase": "commentary"},
        text_item("e", phase=None),
    ) == (
        Message("developer", "a"),
        Message("system", [{"type": "text", "text": "b"}]),
        Message("user", "c"),
        Message("assistant", "d", extra={"phase": "commentary"}),
        Message("assistant", "e"),
    )


def test_parts_get_the_shape_of_the_records() -> None:
    """A cache point also becomes the hint that other formats know."""
    cut = {"mode": "explicit", "ttl": "30m"}
    url = "data:image/png;base64,AA=="
    content = [
        {"type": "input_text", "text": "a", "prompt_cache_breakpoint": cut},
        {"type": "input_image", "image_url": url, "detail": "auto", "file_id": None},
        {"type": "input_image", "image_url": url, "detail": "low"},
        {"type": "input_image", "file_id": "file_1", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:,", "file_id": None},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]
    parts = [
        {
            "type": "text",
            "text": "a",
            "prompt_cache_breakpoint": cut,
            "cache_control": {"type": "ephemeral"},
        },
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        content[3],
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,"}},
        content[5],
    ]
    assert messages({"role": "user", "content": content}, output("c1", content)) == (
        Message("user", parts),
        Message("tool", parts, tool_call_id="c1"),
    )


def test_an_answer_in_parts_is_text_again() -> None:
    """A refusal too, when it is all there is."""
    refusal = {"type": "refusal", "refusal": "No."}
    part = {"type": "output_text", "text": "a", "annotations": []}
    assert [
        message.content
        for message in messages(
            text_item("", content=[part, part]),
            text_item("", content=[refusal]),
            text_item("", content=[part, refusal]),
        )
    ] == ["aa", "No.", [{"type": "text", "text": "a"}, refusal]]


def test_a_turn_of_the_model_is_one_message() -> None:
    """Reasoning, text and calls belong together, and results follow."""
    first = thought_item("rs_1", "s", encrypted_content="e")
    second = thought_item("rs_2", encrypted_content="f")
    assert messages(
        {"role": "user", "content": "Hi"},
        first,
        text_item("Wait.", phase="commentary"),
        call_item("c1"),
        second,
        call_item("c2", thought_signature="x", caller=None),
        output("c1"),
        output("c2"),
        text_item("Done."),
    ) == (
        USER,
        Message(
            "assistant",
            "Wait.",
            (call("c1"), call("c2", extra={"thought_signature": "x"})),
            extra={"phase": "commentary", "reasoning_items": [first, {**second, "_before": "c2"}]},
        ),
        Message("tool", "ok", tool_call_id="c1"),
        Message("tool", "ok", tool_call_id="c2"),
        Message("assistant", "Done."),
    )


@pytest.mark.parametrize(
    ("items", "said"),
    [
        pytest.param(("a", "b"), [("a", 0), ("b", 0)], id="two texts are two messages"),
        pytest.param(("a", "c1", "b"), [("ab", 1)], id="text after a call joins its turn"),
        pytest.param(("c1", "b"), [("b", 1)], id="text only after a call"),
        pytest.param(("c1", "out", "c2", "out"), [(None, 1), ("", 0), (None, 1), ("", 0)], id="ab"),
    ],
)
def test_nothing_comes_between_a_call_and_its_result(
    items: tuple[str, ...], said: list[tuple[Any, int]]
) -> None:
    """A turn with calls ends with its first result."""
    made = {"c1": call_item("c1"), "c2": call_item("c2"), "out": output("c1", "")}
    found = messages(*(made.get(item) or text_item(item) for item in items))
    assert [(message.content, len(message.tool_calls)) for message in found] == said


def test_reasoning_that_nothing_follows_stays_with_its_turn() -> None:
    """Without a turn there is nothing it could belong to."""
    item = thought_item("rs_1", encrypted_content="e")
    turn, _ = messages(text_item("a"), item, {"role": "user", "content": "Hi"})
    assert turn == Message("assistant", "a", extra={"reasoning_items": [item]})
    assert messages(item, {"role": "user", "content": "Hi"}) == (USER,)
    first, second = messages(text_item("a"), item, text_item("b"))
    assert (first.extra, second.extra) == ({}, {"reasoning_items": [item]})


def test_reasoning_in_words_is_also_kept_as_text() -> None:
    """Formats that take plain text back can use it; items made here are text only."""
    content = [{"type": "reasoning_text", "text": "Hm."}]
    other = thought_item("rs_1", content=content)
    own = thought_item("rs_text_1", content=content)
    (message,) = messages(other, text_item("a"))
    assert message.extra == {"reasoning_items": [other], "reasoning_content": "Hm."}
    (message,) = messages(own, text_item("a"))
    assert message.extra == {"reasoning_content": "Hm."}


@pytest.mark.parametrize(
    ("arguments", "value", "state"),
    [
        ('{"a":1}', {"a": 1}, "whole"),
        ("", {}, "whole"),
        (None, {}, "whole"),
        ("{oops", None, "unreadable"),
        ({"a": 1}, {"a": 1}, "whole"),
    ],
)
def test_arguments_of_the_history_are_read_as_everywhere(
    arguments: Any, value: Any, state: str
) -> None:
    """What cannot be read is not taken for nothing."""
    (message,) = messages(call_item("c1", arguments))
    assert (message.tool_calls[0].arguments, message.tool_calls[0].state) == (value, state)


def test_tools_come_with_what_is_to_be_sent_along() -> None:
    """Strictness only when it is asked for, and the nested form of chat completions too."""
    strict = {**TOOL, "strict": True, "defer_loading": True, "output_schema": None}
    nested = {"type": "function", "function": {"name": "look", "description": "Looks."}}
    tools = parsed(tools=[TOOL, {**TOOL, "strict": False}, strict, nested]).tools
    assert tools == (
        SPEC,
        SPEC,
        ToolSpec(name="look", description="Looks.", extra={"strict": True, "defer_loading": True}),
        SPEC,
    )
    assert "name" not in nested


def test_choices_get_the_shape_of_the_records() -> None:
    """Allowed tools are the tools there are."""
    named = {"type": "function", "name": "look"}
    other = {"type": "function", "name": "other"}
    assert parsed(tools=[TOOL], tool_choice="required").tool_choice == "required"
    assert parsed(tools=[TOOL], tool_choice=named).tool_choice == {
        "type": "function",
        "function": {"name": "look"},
    }
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [named]}
    request = parsed(tools=[TOOL, {**TOOL, **other}], tool_choice=allowed)
    assert (request.tools, request.tool_choice) == ((SPEC,), "required")


@pytest.mark.parametrize(
    ("wire", "asked"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "name": "n", "schema": {}, "strict": None},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        ),
    ],
)
def test_the_format_of_the_text_is_the_response_format(wire: Any, asked: Any) -> None:
    """In the shape of chat completions."""
    request = parsed(text={"format": wire, "verbosity": "low"})
    assert request.response_format == asked
    assert request.params == {"verbosity": "low"}


def test_what_is_not_structure_becomes_a_parameter() -> None:
    """Under the name it has everywhere; what says nothing is left out."""
    request = parsed(
        max_output_tokens=9,
        temperature=0.5,
        reasoning={"effort": "low", "summary": "auto", "generate_summary": None},
        metadata=None,
        store=False,
        include=["reasoning.encrypted_content"],
        stream_options={"include_obfuscation": False},
        previous_response_id=None,
        background=False,
        made_up=1,
    )
    assert request.params == {
        "max_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "reasoning": {"summary": "auto"},
        "made_up": 1,
    }


def test_wishes_about_storing_and_extras_are_kept() -> None:
    """They mean something to a provider of the same format."""
    include = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert parsed(store=True, include=include).params == {"store": True, "include": include}


def test_a_stream_may_be_asked_for_in_the_body() -> None:
    """That is where clients say it."""
    assert parsed(stream=True).stream
    assert not parsed(stream=False).stream


@dataclass(frozen=True)
class BadCase:
    id: str
    fields: dict[str, Any]
    code: str
    says: str


def bad(id: str, says: str, code: str = "INVALID_REQUEST", **fields: Any) -> BadCase:  # noqa: A002 - the name of the field
    """Return a case."""
    return BadCase(id, fields, code, says)


STATE, ITEM = "STATE_NOT_KEPT", "INVALID_MESSAGE"
BAD = (
    bad("no model", "model is null", model=None),
    bad("blank model", "model is ' '", model=" "),
    bad("no input", "input is null", input=None),
    bad("empty input", "input is an empty list", input=[]),
    bad("number as input", "input is a value of type int", input=5),
    bad("earlier response", "previous_response_id", STATE, previous_response_id="resp_1"),
    bad("conversation", "conversation", STATE, conversation={"id": "conv_1"}),
    bad("stored prompt", "prompt", STATE, prompt={"id": "p"}),
    bad("background", "background", STATE, background=True),
    bad("reference", "input[0], an item", STATE, input=[{"type": "item_reference", "id": "msg_1"}]),
    bad("bare reference", "input[0], an item", STATE, input=[{"id": "msg_1"}]),
    bad("item as text", "input[1] is 'x'", ITEM, input=[{"role": "user", "content": ""}, "x"]),
    bad("unknown item", "of type 'web_search_call'", ITEM, input=[{"type": "web_search_call"}]),
    bad("unknown role", "has the role 'tool'", ITEM, input=[{"role": "tool", "content": "x"}]),
    bad("no role", "has the role null", ITEM, input=[{"type": "message", "content": "x"}]),
    bad("content", "input[0].content is a value", ITEM, input=[{"role": "user", "content": 5}]),
    bad(
        "part", "content[0] is a value of type int", ITEM, input=[{"role": "user", "content": [5]}]
    ),
    bad(
        "text",
        "content[0] has the text null",
        ITEM,
        input=[{"role": "user", "content": [{"type": "input_text"}]}],
    ),
    bad("call without an id", "input[0]: A tool call", ITEM, input=[call_item("", "{}")]),
    bad("call without a name", "input[0]: A tool call", ITEM, input=[call_item(name=None)]),
    bad("result without an id", "has the call_id null", ITEM, input=[output(None)]),
    bad("instructions", "instructions is an empty list", instructions=[]),
    bad("tools", "tools is an empty object", tools={}),
    bad("tool", "tools[0] is a tool of type null", tools=[5]),
    bad("hosted tool", "of type 'web_search'", tools=[{"type": "web_search"}]),
    bad("nameless tool", "tools[0] has the name null", tools=[{"type": "function"}]),
    bad("description", "has the description", tools=[{**TOOL, "description": 5}]),
    bad("parameters", "has the parameters", tools=[{**TOOL, "parameters": []}]),
    bad("choice", "tool_choice is 'any'", tool_choice="any"),
    bad("hosted choice", "tool_choice is a value", tool_choice={"type": "file_search"}),
    bad("allowed", "tool_choice allows", tool_choice={"type": "allowed_tools", "tools": []}),
    bad("format", "text.format is an empty list", text={"format": []}),
    bad("text settings", "text is 'x'", text="x"),
    bad("reasoning settings", "reasoning is 'low'", reasoning="low"),
    bad("parallel", "parallel_tool_calls is 'yes'", parallel_tool_calls="yes"),
    bad("stream", "stream is a value of type int", stream=1),
)


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
def test_nonsense_is_refused_by_name(case: BadCase) -> None:
    """The message says which field or item is wrong, and the hint what to do."""
    with pytest.raises(RequestError) as caught:
        parsed(**case.fields)
    assert caught.value.code == case.code
    assert case.says in caught.value.message
    assert caught.value.hint
    if case.code == STATE:
        assert "send the whole input" in caught.value.hint
