"""Requests as they leave."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from support.argument_shapes import ARGUMENT_SHAPES, ArgumentShape
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec
from surecall.reading import read_reply
from surecall.wire import Responses, WireProtocol

RESPONSES: WireProtocol = Responses()
STATELESS = {"store": False, "include": ["reasoning.encrypted_content"]}
TOOL = ToolSpec(
    name="look",
    description="Looks.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}, "required": []},
)
HI = Message("user", "Hi")


def body_of(*messages: Message, **fields: Any) -> dict[str, Any]:
    """Return the body of a request."""
    request = ModelRequest(model="m", messages=messages or (HI,), **fields)
    wire = RESPONSES.render_request(request)
    assert wire.path == "/responses"
    assert wire.stream is request.stream
    return wire.body


def items_of(*messages: Message, **params: Any) -> list[Any]:
    """Return the input items of messages that stand behind a greeting."""
    first, *items = body_of(HI, *messages, params=params)["input"]
    assert first == {"role": "user", "content": "Hi"}
    return items


def call(call_id: str = "c1", **fields: Any) -> ToolCall:
    """Return a call."""
    return ToolCall(**{"id": call_id, "name": "look", "arguments": {"q": 1}, **fields})


def wire_call(call_id: str = "c1") -> dict[str, Any]:
    """Return what that call is on the wire."""
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "look",
        "arguments": '{"q":1}',
    }


def thought(name: str, **fields: Any) -> dict[str, Any]:
    """Return a reasoning item as the API makes it."""
    return {"type": "reasoning", "id": name, "summary": [], "encrypted_content": "e", **fields}


def test_a_plain_request_leaves_nothing_to_the_memory_of_the_server() -> None:
    """Beside model and input only what keeps the exchange stateless is sent."""
    assert body_of() == {"model": "m", "input": [{"role": "user", "content": "Hi"}], **STATELESS}


def test_a_key_is_a_bearer() -> None:
    """As in the other format of the same provider."""
    assert RESPONSES.render_auth("k") == {"Authorization": "Bearer k"}


def test_a_leading_system_message_is_the_instructions() -> None:
    """Later ones, and those of a developer, stay where they are."""
    body = body_of(
        Message("system", "Be brief."),
        Message("developer", "In English."),
        HI,
        Message("system", "Now in French."),
    )
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"role": "developer", "content": "In English."},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Now in French."},
    ]


@pytest.mark.parametrize(
    ("messages", "params"),
    [
        pytest.param((Message("system", "Be brief."),), {}, id="nothing else to send"),
        pytest.param((Message("system", "Be brief."), HI), {"instructions": "Other."}, id="given"),
        pytest.param(
            (Message("system", [{"type": "text", "text": "Be brief."}]), HI), {}, id="in parts"
        ),
    ],
)
def test_a_system_message_may_also_be_an_item(
    messages: tuple[Message, ...], params: dict[str, Any]
) -> None:
    """The input never becomes empty, and nothing is overwritten or flattened."""
    body = body_of(*messages, params=params)
    assert body["input"][0]["role"] == "system"
    assert body.get("instructions") == params.get("instructions")


def test_tools_are_flat_and_say_that_they_are_not_strict() -> None:
    """The API takes a missing `strict` for true, which changes what a schema means."""
    body = body_of(tools=(TOOL,), tool_choice="required", parallel_tool_calls=False)
    assert body["tools"] == [
        {
            "type": "function",
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
            "strict": False,
        }
    ]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)


def test_a_tool_says_what_it_was_given_to_say() -> None:
    """Strictness when asked for and fields the API knows; no cache hints of other formats."""
    extra = {"strict": True, "defer_loading": True, "cache_control": {"type": "ephemeral"}}
    (tool,) = body_of(tools=(ToolSpec(name="t", extra=extra),))["tools"]
    assert tool == {
        "type": "function",
        "name": "t",
        "parameters": {"type": "object", "properties": {}},
        "strict": True,
        "defer_loading": True,
    }


def test_settings_of_tools_are_left_out_without_tools() -> None:
    """A provider refuses them alone."""
    assert not {"tool_choice", "parallel_tool_calls"} & set(
        body_of(tool_choice="auto", parallel_tool_calls=True)
    )


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", "auto"),
        ("none", "none"),
        (
            {"type": "function", "function": {"name": "look"}},
            {"type": "function", "name": "look"},
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "look"}}],
                },
            },
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "look"}],
            },
        ),
        ({"type": "custom", "name": "x"}, {"type": "custom", "name": "x"}),
    ],
    ids=["auto", "none", "named", "allowed", "unknown"],
)
def test_a_choice_of_tools_is_flat_too(choice: Any, wire: Any) -> None:
    """What is not known goes out as it is."""
    assert body_of(tools=(TOOL,), tool_choice=choice)["tool_choice"] == wire


@dataclass(frozen=True)
class ParamCase:
    id: str
    params: dict[str, Any]
    wire: dict[str, Any]


PARAMS = (
    ParamCase("same name", {"temperature": 0.5, "user": "u"}, {"temperature": 0.5, "user": "u"}),
    ParamCase("limit", {"max_tokens": 9}, {"max_output_tokens": 9}),
    ParamCase("newer limit", {"max_completion_tokens": 9}, {"max_output_tokens": 9}),
    ParamCase(
        "own limit wins", {"max_tokens": 9, "max_output_tokens": 8}, {"max_output_tokens": 8}
    ),
    ParamCase("effort", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
    ParamCase(
        "effort beside a summary",
        {"reasoning_effort": "low", "reasoning": {"summary": "auto"}},
        {"reasoning": {"effort": "low", "summary": "auto"}},
    ),
    ParamCase(
        "effort said twice",
        {"reasoning": {"effort": "high"}, "reasoning_effort": "low"},
        {"reasoning": {"effort": "high"}},
    ),
    ParamCase("verbosity", {"verbosity": "low"}, {"text": {"verbosity": "low"}}),
    ParamCase(
        "what the API refuses",
        {
            "stop": ["x"],
            "seed": 1,
            "n": 1,
            "logprobs": True,
            "logit_bias": {},
            "presence_penalty": 1,
            "frequency_penalty": 1,
            "stream_options": {"include_usage": True},
        },
        {},
    ),
    ParamCase(
        "settings of its own streams",
        {"stream_options": {"include_obfuscation": False, "include_usage": True}},
        {"stream_options": {"include_obfuscation": False}},
    ),
    ParamCase("unknown", {"top_k": 5, "made_up": {"a": 1}}, {"top_k": 5, "made_up": {"a": 1}}),
    ParamCase("stored", {"store": True}, {"store": True}),
)


@pytest.mark.parametrize("case", PARAMS, ids=lambda case: case.id)
def test_parameters_have_the_names_of_the_format(case: ParamCase) -> None:
    """Known ones are renamed, refused ones left out, unknown ones passed on."""
    body = body_of(params=case.params)
    rest = {key: value for key, value in body.items() if key not in {"model", "input"}}
    assert rest == STATELESS | case.wire


def test_a_null_takes_a_field_out() -> None:
    """Models without reasoning refuse to be asked for it encrypted."""
    assert set(body_of(params={"include": None, "store": None})) == {"model", "input"}


def test_parameters_never_replace_what_the_request_says() -> None:
    """Structure comes from the request alone."""
    body = body_of(params={"model": "other", "input": [], "tools": [1]}, tools=(TOOL,))
    assert body["model"] == "m"
    assert body["input"] == [{"role": "user", "content": "Hi"}]
    assert body["tools"][0]["name"] == "look"


@pytest.mark.parametrize(
    ("asked", "wire"),
    [
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}},
            {"type": "json_schema", "name": "n", "schema": {}, "strict": True},
        ),
        (
            {"type": "json_schema", "json_schema": {"schema": {}}},
            {"type": "json_schema", "name": "reply", "schema": {}},
        ),
    ],
    ids=["object", "schema", "schema without a name"],
)
def test_a_response_format_is_the_format_of_the_text(asked: Any, wire: Any) -> None:
    """Flat, with a name, and beside other settings of the text."""
    body = body_of(response_format=asked, params={"verbosity": "low"})
    assert body["text"] == {"verbosity": "low", "format": wire}
    assert "response_format" not in body


def test_a_streamed_request_says_so() -> None:
    """Usage needs no asking here."""
    assert body_of(stream=True)["stream"] is True


@pytest.mark.parametrize(
    ("message", "items"),
    [
        pytest.param(Message("user", None), [{"role": "user", "content": ""}], id="no content"),
        pytest.param(
            Message("assistant", "Hello"), [{"role": "assistant", "content": "Hello"}], id="text"
        ),
        pytest.param(
            Message("assistant", None), [{"role": "assistant", "content": ""}], id="empty answer"
        ),
        pytest.param(
            Message("assistant", "Hm.", extra={"phase": "commentary", "reasoning_content": "x"}),
            [{"role": "assistant", "content": "Hm.", "phase": "commentary"}],
            id="phase, and nothing foreign",
        ),
        pytest.param(
            Message("assistant", [{"type": "text", "text": "a"}, {"type": "image_url"}]),
            [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        {"type": "output_text", "text": "a", "annotations": []},
                        {
                            "type": "output_text",
                            "text": "[A part of type image_url was left out.]",
                            "annotations": [],
                        },
                    ],
                }
            ],
            id="parts of an answer",
        ),
        pytest.param(
            Message("tool", "{}", tool_call_id="c1", extra={"is_error": True}),
            [{"type": "function_call_output", "call_id": "c1", "output": "{}"}],
            id="result",
        ),
        pytest.param(Message("assistant", "", (call(),)), [wire_call()], id="a call without words"),
        pytest.param(
            Message("assistant", "Wait.", (call("c1"), call("c2"))),
            [{"role": "assistant", "content": "Wait."}, wire_call("c1"), wire_call("c2")],
            id="words and calls",
        ),
        pytest.param(
            Message("assistant", None, (call(extra={"namespace": "n", "thought_signature": "s"}),)),
            [{**wire_call(), "namespace": "n"}],
            id="fields of a call",
        ),
    ],
)
def test_messages_are_items(message: Message, items: list[Any]) -> None:
    """Each kind of message has its form on the wire."""
    assert items_of(message) == items


def test_content_has_the_part_types_of_the_format() -> None:
    """Text, pictures, files and sound; what has no place is named, hints are left out."""
    cut = {"mode": "explicit"}
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "b", "prompt_cache_breakpoint": cut},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,"}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "document", "source": {}},
    ]
    wire = [
        {"type": "input_text", "text": "a"},
        {"type": "input_text", "text": "b", "prompt_cache_breakpoint": cut},
        {"type": "input_image", "detail": "low", "image_url": "data:image/png;base64,AA=="},
        {"type": "input_image", "detail": "auto", "image_url": "https://example.com/a.png"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:,"},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
        {"type": "input_text", "text": "[A part of type document was left out.]"},
    ]
    user, result = items_of(Message("user", parts), Message("tool", parts, tool_call_id="c1"))
    assert user == {"role": "user", "content": wire}
    assert result == {"type": "function_call_output", "call_id": "c1", "output": wire}


def test_reasoning_goes_back_before_what_it_led_to() -> None:
    """An item that led to a later call stands before that call, without our mark."""
    extra = {
        "reasoning_items": [
            thought("rs_1", status=None),
            thought("rs_2", _before="c2"),
            thought("rs_3", _before="gone"),
        ]
    }
    assert items_of(Message("assistant", "Wait.", (call("c1"), call("c2")), extra=extra)) == [
        thought("rs_1"),
        {"role": "assistant", "content": "Wait."},
        wire_call("c1"),
        thought("rs_2"),
        wire_call("c2"),
    ]


def test_reasoning_that_led_to_nothing_stays_here() -> None:
    """The API refuses a reasoning item without the item that followed it."""
    message = Message("assistant", None, extra={"reasoning_items": [thought("rs_1")]})
    assert items_of(message) == [{"role": "assistant", "content": ""}]


def test_reasoning_that_the_server_cannot_know_stays_here() -> None:
    """Without content of any kind it is only a name, of use to a server that keeps replies."""
    named = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}]}
    spoken = {**named, "id": "rs_2", "content": [{"type": "reasoning_text", "text": "t"}]}
    message = Message("assistant", "Hm.", extra={"reasoning_items": [named, spoken, "x"]})
    said = {"role": "assistant", "content": "Hm."}
    assert items_of(message) == [spoken, said]
    assert items_of(message, store=True) == [named, spoken, said]


@pytest.mark.parametrize("call_id", ["", "x" * 65, "x" * 500, "é\ud800" * 40])
def test_an_id_that_the_api_refuses_is_replaced_in_call_and_result(call_id: str) -> None:
    """The same id gives the same replacement, within 64 characters."""
    made, result = items_of(
        Message("assistant", None, (call(call_id),)), Message("tool", "", tool_call_id=call_id)
    )
    assert made["call_id"] == result["call_id"]
    assert made["call_id"].startswith("call_")
    assert len(made["call_id"]) == 64


def test_replaced_ids_stay_apart() -> None:
    """Long ids that differ at the end only do not become one."""
    ids = ["x" * 70 + end for end in "abc"]
    items = items_of(Message("assistant", None, tuple(call(item) for item in ids)))
    assert len({item["call_id"] for item in items}) == 3


def test_a_clean_call_is_echoed_byte_for_byte() -> None:
    """Space, escapes and order of the model's own text survive."""
    raw = '{ "b":1,\n"a": "\\u00e9" }'
    (item,) = items_of(Message("assistant", None, (call(arguments={"b": 1}, raw=raw),)))
    assert item["arguments"] == raw


@pytest.mark.parametrize("shape", ARGUMENT_SHAPES, ids=lambda shape: shape.id)
def test_after_any_shape_the_history_is_valid(shape: ArgumentShape) -> None:
    """Whatever arrived, the arguments sent back are the text of one JSON object."""
    reading = read_reply(Reply(calls=(RawCall("c1", "a b", shape.raw),)))
    (item,) = items_of(Message("assistant", "", reading.calls))
    value = json.loads(item["arguments"])
    assert item["name"] == "a_b"
    if shape.value is None:
        assert set(value) == {"_unreadable_arguments"}
    else:
        assert value == shape.value
