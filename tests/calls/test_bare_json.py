"""JSON without markers: which objects are calls, and which are answers."""

import json

import pytest

from support.read_text import TOOLS, check_splits, read
from support.text_cases import EVERY, TextCase, check_case, check_no_call
from surecall.base.records import ToolSpec
from surecall.calls.families.marked_json import TAGGED_JSON
from surecall.calls.families.unmarked import BARE_JSON
from surecall.reading import read_reply

LAMP = ("dim_lamp", {"room": "a"})
PING = ("ping", {})
TAGGED = (TAGGED_JSON, BARE_JSON)
SHAPES = (
    TextCase("arguments", '{"name": "dim_lamp", "arguments": {"room": "a"}}', (LAMP,)),
    TextCase("parameters", '{"name": "dim_lamp", "parameters": {"room": "a"}}', (LAMP,)),
    TextCase("arguments first", '{"arguments": {"room": "a"}, "name": "dim_lamp"}', (LAMP,)),
    TextCase("args", '{"name": "dim_lamp", "args": {"room": "a"}}', (LAMP,)),
    TextCase(
        "input",
        '{"type": "tool_use", "id": "t1", "name": "dim_lamp", "input": {"room": "a"}}',
        (LAMP,),
    ),
    TextCase("tool", '{"tool": "dim_lamp", "tool_input": {"room": "a"}}', (LAMP,)),
    TextCase("tool_name", '{"tool_name": "dim_lamp", "tool_args": {"room": "a"}}', (LAMP,)),
    TextCase("action", '{"action": "dim_lamp", "action_input": {"room": "a"}}', (LAMP,)),
    TextCase(
        "action with text",
        '{"action": "ferry_times", "action_input": "Pier 4"}',
        (("ferry_times", {"origin": "Pier 4"}),),
        rules=("only_parameter",),
    ),
    TextCase("function", '{"type": "function", "function": "ping", "parameters": {}}', (PING,)),
    TextCase(
        "OpenAI's shape",
        '{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}',
        (PING,),
    ),
    TextCase("function_call", '{"function_call": {"name": "ping", "arguments": {}}}', (PING,)),
    TextCase(
        "tool_calls with a thought",
        '{"thought": "dark", "tool_calls": [{"name": "ping", "arguments": {}}]}',
        (PING,),
        reasoning="dark",
    ),
    TextCase(
        "tool_calls with text",
        '{"content": "One moment.", "tool_calls": [{"name": "ping", "arguments": {}}]}',
        (PING,),
        "One moment.",
    ),
    TextCase(
        "tool_uses",
        '{"tool_uses": [{"recipient_name": "functions.ping", "parameters": {}}]}',
        (("functions.ping", {}),),
    ),
    TextCase(
        "made-up wrapper",
        '{"name": "multi_tool_use.parallel", "arguments":'
        ' {"tool_uses": [{"recipient_name": "functions.ping", "parameters": {}}]}}',
        (("functions.ping", {}),),
    ),
    TextCase("the name as key", '{"dim_lamp": {"room": "a"}}', (LAMP,)),
    TextCase(
        "flat",
        '{"name": "dim_lamp", "room": "a"}',
        (LAMP,),
        rules=("nest_flat_arguments",),
    ),
    TextCase("nothing to give", '{"name": "ping"}', (PING,)),
    TextCase("null arguments", '{"name": "ping", "arguments": null}', (PING,)),
    TextCase(
        "a list of one",
        '{"name": "dim_lamp", "arguments": [{"room": "a"}]}',
        (LAMP,),
        rules=("unwrap_argument_list",),
    ),
    TextCase(
        "an array",
        '[{"name": "ping", "arguments": {}}, {"name": "dim_lamp", "arguments": {"room": "a"}}]',
        (PING, LAMP),
    ),
    TextCase(
        "in a row",
        '{"name": "ping", "arguments": {}}; {"name": "ping", "arguments": {}}\n'
        '{"name": "dim_lamp", "arguments": {"room": "a"}}<|eot_id|>',
        (PING, PING, LAMP),
    ),
    TextCase("behind lines", '\n\n{"name": "ping", "arguments": {}}', (PING,)),
    TextCase(
        "behind reasoning",
        '<think>Hm.</think>\n{"name": "ping", "arguments": {}}',
        (PING,),
        reasoning="Hm.",
    ),
    TextCase(
        "Python quotes",
        "{'name': 'dim_lamp', 'arguments': {'room': 'a'}}",
        (LAMP,),
        rules=("replace_quotes",),
    ),
    TextCase(
        "doubled braces",
        '{{"name": "ping", "arguments": {}}}',
        (PING,),
        rules=("collapse_doubled_braces",),
    ),
    TextCase(
        "the answer of an agent",
        '{"action": "Final Answer", "action_input": "It is 4."}',
        content="It is 4.",
    ),
    TextCase(
        "cut in the arguments",
        '{"name": "dim_lamp", "arguments": {"room": "ha',
        (("dim_lamp", '{"room": "ha'),),
        states=("cut",),
    ),
    TextCase(
        "a cut array has no whole call",
        '[{"name": "ping", "arguments": {}}, {"name": "dim_lamp", "arguments": {"room": "ha',
        (("ping", {}), ("dim_lamp", '{"room": "ha')),
        states=("cut", "cut"),
    ),
    TextCase(
        "no last brace",
        '{"name": "ping", "arguments": {}',
        (("ping", "{}"),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.id)
def test_known_shapes_are_calls(case: TextCase) -> None:
    """Objects that name a tool and fit it are calls when they end the message."""
    check_case(case)


@pytest.mark.parametrize("closer", ["</tool_call>", "\n</tool_calls>", " </function_call>\nNow:"])
def test_a_closer_is_enough_of_a_marker(closer: str) -> None:
    """What opens the call may be in the prompt, so that the reply begins behind it."""
    text = f'{{"name": "dim_lamp", "arguments": {{"room": "a"}}}}{closer}'
    (call,) = check_splits(text, EVERY).calls
    assert ((call.name, call.arguments), call.state) == (LAMP, "whole")
    assert [receipt.rule for receipt in call.receipts] == ["missing_opener"]
    first = text.removesuffix("Now:")
    both = check_splits(f'{first}<tool_call>{{"name": "ping"}}</tool_call>', TAGGED)
    assert [call.name for call in both.calls] == ["dim_lamp", "ping"]


@pytest.mark.parametrize(
    "text", ['{"name": "Ada", "age": 3}', '{"name": "fly", "arguments": {}}', "Close it with"]
)
def test_a_closer_alone_makes_nothing_a_call(text: str) -> None:
    """Text before it that is not a call stays as it is."""
    check_no_call(f"{text}</tool_call>")


@pytest.mark.parametrize("text", ["origin=Pier 4", "Origin: Pier 4", "null", "{origin: Pier 4"])
def test_text_that_is_not_a_plain_value_stays_what_it_is(text: str) -> None:
    """It is not taken for the value of the only parameter: whoever reads it refuses it."""
    found = read(json.dumps({"action": "ferry_times", "action_input": text}), [BARE_JSON])
    assert [(call.name, call.arguments) for call in found.calls] == [("ferry_times", text)]
    reading = read_reply(json.dumps({"action": "ferry_times", "action_input": text}), tools=TOOLS)
    assert [call.arguments for call in reading.calls] == [None]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"name": "Ada", "age": 3}', id="a person"),
        pytest.param('{"capital": "Paris"}', id="an answer"),
        pytest.param("{}", id="an empty object"),
        pytest.param("[]", id="an empty array"),
        pytest.param("[1, 2]", id="numbers"),
        pytest.param('{"parameters": {}}', id="no name"),
        pytest.param('{"name": "other", "arguments": {}}', id="an unknown name"),
        pytest.param('{"name": "dim_lamp"}', id="required arguments missing"),
        pytest.param('{"name": "dim_lamp", "arguments": {"colour": 1}}', id="another argument"),
        pytest.param('{"name": "dim_lamp", "room": "a", "colour": 1}', id="flat, another key"),
        pytest.param('{"name": "save_note", "arguments": [1, 2]}', id="positional arguments"),
        pytest.param('{"name": "dim_lamp", "arguments": {"room": "a"}, "score": 1}', id="a score"),
        pytest.param('{"name": "dim_lamp", "args": {}, "input": {}}', id="two containers"),
        pytest.param(
            '{"name": "ping", "description": "Pings.", "parameters": {}}', id="a described tool"
        ),
        pytest.param(
            '{"name": "dim_lamp", "parameters": {"type": "object", "properties": {}}}',
            id="a defined tool",
        ),
        pytest.param('{"name": "ping", "result": "ok"}', id="a result"),
        pytest.param('{"role": "tool", "name": "ping", "content": "ok"}', id="a tool message"),
        pytest.param('{"type": "person", "name": "ping", "arguments": {}}', id="another type"),
        pytest.param('{"name": "ping", "arguments": {}} pings.', id="text behind it"),
        pytest.param('Say {"name": "ping", "arguments": {}}', id="text on its line"),
        pytest.param(
            '[{"name": "ping", "arguments": {}}, {"name": "other", "arguments": {}}]',
            id="an unknown name among others",
        ),
        pytest.param(
            '[\n{"name": "other", "arguments": {}},\n{"name": "ping", "arguments": {}}\n]',
            id="a known name in a refused array",
        ),
        pytest.param(
            '{"plan":\n{"name": "ping", "arguments": {}}\n}', id="a call inside an answer"
        ),
        pytest.param('{"name": "pi', id="a cut name"),
        pytest.param('```\n{"name": "ping", "arguments": {}}\n```\nAs above.', id="in a fence"),
    ],
)
def test_other_objects_are_answers(text: str) -> None:
    """What does not fit in every respect is shown as it is."""
    check_no_call(text)


def test_ids_are_kept() -> None:
    """An id in the object is the id of the call."""
    text = '{"id": "c1", "type": "function", "function": {"name": "ping", "arguments": "{}"}}'
    (call,) = check_splits(text, EVERY).calls
    assert call.id == "c1"


def test_schema_that_takes_more_keys_takes_them() -> None:
    """Further keys are allowed where the schema says so."""
    schema = {"type": "object", "properties": {"a": {}}, "additionalProperties": True}
    tools = (*TOOLS, ToolSpec(name="log", parameters=schema))
    (call,) = check_splits('{"name": "log", "arguments": {"b": 1}}', EVERY, tools).calls
    assert call.arguments == {"b": 1}


def test_marked_call_makes_bare_ones_echoes() -> None:
    """Behind a call with markers, JSON is not another call."""
    call = '{"name": "ping", "arguments": {}}'
    found = read(f"<tool_call>{call}</tool_call>\n{call}", TAGGED)
    assert [found.name for found in found.calls] == ["ping"]
