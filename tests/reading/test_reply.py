"""Reading whole replies."""

import json
from typing import Any

import pytest

from support.argument_shapes import ARGUMENT_SHAPES, ArgumentShape
from surecall.base.records import Defect, RawCall, Reply, ToolSpec
from surecall.reading import ReadingLimits, read_reply
from surecall.text import encode

OBJECT_TO_TEXT = "assistant_tool_calls_arguments_json_string_if_hash"


def _message(arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    function = {"name": "tool", "arguments": arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call], **fields}


def test_plain_text_is_read_as_content() -> None:
    """A string is what the model said, and nothing else."""
    reading = read_reply("Hello", finish_reason="stop")
    assert (reading.content, reading.calls, reading.finish_reason) == ("Hello", (), "stop")


def test_a_clean_message_is_read_without_a_receipt() -> None:
    """Nothing is changed, so nothing is reported."""
    message = _message('{"city": "Łódź"}', reasoning_content="because")
    reading = read_reply(message, finish_reason="tool_calls")
    (call,) = reading.calls
    assert call.arguments == {"city": "Łódź"}
    assert call.raw == '{"city": "Łódź"}'
    assert (call.id, call.name, call.state, call.format) == (
        "call_1",
        "tool",
        "whole",
        "tool_calls",
    )
    assert (call.receipts, call.errors, reading.defects, reading.receipts) == ((), (), (), ())
    assert reading.content == ""
    assert reading.reasoning == "because"


@pytest.mark.parametrize("shape", ARGUMENT_SHAPES, ids=lambda shape: shape.id)
def test_every_shape_of_arguments_has_its_outcome_in_a_reply(shape: ArgumentShape) -> None:
    """The table of shapes holds for whole messages, where an object leaves a receipt as well."""
    (call,) = read_reply(_message(shape.raw)).calls
    moved = (OBJECT_TO_TEXT,) if isinstance(shape.raw, dict) else ()
    assert call.arguments == shape.value
    assert call.state == shape.state
    assert tuple(receipt.rule for receipt in call.receipts) == moved + shape.rules
    assert [error.code for error in call.errors] == ([shape.code] if shape.code else [])


def test_fields_to_echo_travel_with_the_call() -> None:
    """A signature beside the call is kept."""
    message = _message()
    message["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "s"}}
    (call,) = read_reply(message).calls
    assert call.extra == {"extra_content": {"google": {"thought_signature": "s"}}}


def test_calls_beyond_the_total_of_a_reply_are_refused() -> None:
    """Earlier calls are read; the one that crosses the limit and all after it are not."""
    calls = tuple(RawCall(f"c{n}", "tool", '{"a":"' + "x" * 92 + '"}') for n in range(4))
    limits = ReadingLimits(max_total_arguments_bytes=200)
    reading = read_reply(Reply(calls=calls), limits=limits)
    assert [call.state for call in reading.calls] == ["whole", "whole", "unreadable", "unreadable"]
    (error,) = reading.calls[2].errors
    assert error.code == "ARGUMENTS_TOO_LARGE"
    assert "300 bytes of arguments; the limit for one reply is 200 bytes" in error.message


def test_the_total_of_a_reply_is_a_mebibyte_unless_told() -> None:
    """Six calls of just under the limit for one call are too many for one reply."""
    calls = tuple(RawCall(f"c{n}", "tool", '{"a":"' + "x" * 199_000 + '"}') for n in range(6))
    reading = read_reply(Reply(calls=calls))
    assert [call.state for call in reading.calls] == ["whole"] * 5 + ["unreadable"]


def test_the_limit_for_one_call_can_be_set() -> None:
    """Strictly more than the limit is refused."""
    exact = read_reply(_message('{"a":1}'), limits=ReadingLimits(max_arguments_bytes=7))
    over = read_reply(_message('{"a":1}'), limits=ReadingLimits(max_arguments_bytes=6))
    assert exact.calls[0].arguments == {"a": 1}
    assert over.calls[0].errors[0].code == "ARGUMENTS_TOO_LARGE"


def test_calls_are_refused_when_objects_among_them_gave_a_key_two_values() -> None:
    """Which value was meant cannot be told any more, nor whether a transform made it text."""
    calls = (RawCall("a", "tool", {"x": 2}), RawCall("b", "tool", '{"x": 2}'))
    repeated = Defect("DUPLICATE_KEY", "A key has differing values.", "/tool_calls")
    reading = read_reply(Reply(calls=calls, defects=(repeated,)))
    assert [call.arguments for call in reading.calls] == [None, None]
    assert reading.calls[0].errors[0].code == "ARGUMENTS_JSON_PARSE_ERROR"


def test_findings_of_the_protocol_come_first() -> None:
    """The defects of the reply are kept, those of the reading follow."""
    message = {"role": "assistant", "tool_calls": [3, {"id": "", "function": {"name": "t"}}]}
    codes = [defect.code for defect in read_reply(message).defects]
    assert codes == ["CALL_ENTRY_DROPPED", "ID_NOT_USABLE"]


def _native(name: str, arguments: Any, **function: Any) -> dict[str, Any]:
    call = {"name": name, "arguments": arguments, **function}
    return {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": call}]}


def test_a_native_call_of_a_tool_that_was_not_offered_leaves_a_defect() -> None:
    """With tools, and where none were offered; nobody knows where tools are not known."""
    message = _native("rm", '{"path": "/"}')
    offered = ToolSpec(name="ls", parameters={"type": "object", "properties": {}})
    for tools in ([offered], []):
        reading = read_reply(message, tools=tools)
        assert [defect.code for defect in reading.defects] == ["TOOL_NOT_ALLOWED"]
        assert "rm" in reading.defects[0].message
    assert not read_reply(message).defects


def test_an_argument_next_to_the_arguments_makes_the_call_doubtful() -> None:
    """A field of another name is no argument."""
    schema = {"type": "object", "properties": {"to": {}, "dry_run": {}}}
    tools = [ToolSpec(name="send", effect="write", parameters=schema)]
    moved = read_reply(_native("send", '{"to": "bob"}', dry_run=True), tools=tools)
    assert moved.calls[0].certainty == "likely"
    assert [defect.code for defect in moved.defects] == ["CALL_NOT_CERTAIN"]
    other = read_reply(_native("send", '{"to": "bob"}', strict=True), tools=tools)
    assert other.calls[0].certainty == "certain"


HALVES = [
    "<function=f><parameter=x>\ud800</parameter><parameter=x>b</parameter></function>",
    '<tool_call>{"name": "f", "arguments": {"x": "\ud800"}}</tool_call>',
    '[f(x="\udfff")]',
    '```tool_call\n{"name": "f\ud800", "arguments": {}}\n```',
    "Action: f\nAction Input: {x: \ud800}",
    "<think>\ud800</think>\ud83d\ude00",
    "\ud800",
]


@pytest.mark.parametrize("text", HALVES, ids=range(len(HALVES)))
def test_half_a_character_never_raises_and_never_runs_as_another(text: str) -> None:
    """A call in a text that holds half a character is likely at most; other text stays as it is."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    tools = [ToolSpec(name="f", effect="write", parameters=schema)]
    for taught in (False, True):
        reading = read_reply(text, tools=tools, taught=taught)
        assert not [call for call in reading.calls if call.arguments and call.certainty != "likely"]
    assert read_reply("\ud800 and \udfff", tools=tools).content == "\ud800 and \udfff"
    for arguments in ('{"x": "\ud800"}', '{"x": "\\ud800"}', {"x": "\ud800"}):
        assert read_reply(_native("f", arguments), tools=tools).calls[0].arguments is None
    assert read_reply(_native("f\ud800", "{}"), tools=tools).calls


def _bodies(half: str) -> list[Any]:
    """Return replies of all formats with half a character in arguments, as objects and as JSON."""
    function = {"name": "act", "arguments": {"what": half}}
    message = {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]}
    block = {"type": "tool_use", "id": "a", "name": "act", "input": {"what": half}}
    head = {"type": "message", "role": "assistant", "stop_reason": "tool_use"}
    part = {"functionCall": {"name": "act", "args": {"what": half}}}
    content = {"role": "model", "parts": [part]}
    written = {"name": "act", "arguments": f'{{"what": "{half}"}}'}
    text_call = {"role": "assistant", "tool_calls": [{"id": "a", "function": written}]}
    bodies: list[Any] = [
        {"choices": [{"message": message, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": text_call, "finish_reason": "tool_calls"}]},
        {**head, "content": [block]},
        {"candidates": [{"content": content, "finishReason": "STOP"}]},
    ]
    return [message, text_call, *bodies, *(json.dumps(body) for body in bodies)]


@pytest.mark.parametrize("given", _bodies("a\ud800"))
def test_arguments_with_half_a_character_are_refused_in_every_form(given: Any) -> None:
    """The character that takes its place is not what the model meant."""
    reading = read_reply(given, tools=[{"name": "act"}])
    assert [(call.arguments, call.state) for call in reading.calls] == [(None, "unreadable")]


@pytest.mark.parametrize("given", _bodies("a"))
def test_half_a_character_elsewhere_costs_no_call(given: Any) -> None:
    """In the text, the thoughts or an id it is replaced and noted, and the reading can be kept."""
    if isinstance(given, dict) and "choices" in given:
        message = given["choices"][0]["message"]
        given = {**message, "content": "\ud800", "reasoning_content": "\udc00"}
        given["tool_calls"] = [{**message["tool_calls"][0], "id": "\ud800"}]
        assert "LONE_SURROGATE" in [defect.code for defect in read_reply(given).defects]
    reading = read_reply(given, tools=[{"name": "act"}])
    assert [(call.arguments, call.state) for call in reading.calls] == [({"what": "a"}, "whole")]
    assert encode(reading)


@pytest.mark.parametrize("value", [None, 1])
def test_a_member_that_slipped_out_of_an_input_is_missed(value: Any) -> None:
    """The rest of an object that ends too early is next to it; a null is a member as well."""
    block = {"type": "tool_use", "id": "a", "name": "act", "input": {"what": "x"}, "why": value}
    body = {"type": "message", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
    schema = {"type": "object", "properties": {"what": {}, "why": {}}}
    (call,) = read_reply(body, tools=[{"name": "act", "input_schema": schema}]).calls
    assert (call.certainty, call.doubt != "") == ("likely", True)
