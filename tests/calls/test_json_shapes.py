"""The shapes of calls as JSON, whole, cut and damaged."""

from typing import Any

import pytest

from support.read_text import TOOLS
from surecall.calls.json_shapes import calls_of_value, find_calls, read_json_calls
from surecall.calls.names import ToolNames

NAMES = ToolNames(TOOLS)
ARGS = {"room": "hall"}

SHAPES: tuple[Any, ...] = (
    {"name": "dim_lamp", "arguments": ARGS},
    {"arguments": ARGS, "name": "dim_lamp"},
    {"name": "dim_lamp", "parameters": ARGS},
    {"name": "dim_lamp", "args": ARGS},
    {"type": "tool_use", "name": "dim_lamp", "input": ARGS},
    {"tool": "dim_lamp", "tool_input": ARGS},
    {"tool_name": "dim_lamp", "tool_args": ARGS},
    {"action": "dim_lamp", "action_input": ARGS},
    {"function": "dim_lamp", "arguments": ARGS},
    {"type": "function", "function": "dim_lamp", "parameters": ARGS},
    {"type": "function", "function": {"name": "dim_lamp", "arguments": ARGS}},
    {"function_call": {"name": "dim_lamp", "arguments": ARGS}},
    {"tool_call": {"name": "dim_lamp", "arguments": ARGS}},
    {"functionCall": {"name": "dim_lamp", "args": ARGS}},
    {"toolCall": {"name": "dim_lamp", "arguments": ARGS}},
    {"tool_use": {"name": "dim_lamp", "input": ARGS}},
    {"toolUse": {"toolUseId": "t1", "name": "dim_lamp", "input": ARGS}},
    {"toolName": "dim_lamp", "toolInput": ARGS},
    {"functionName": "dim_lamp", "toolArgs": ARGS},
    {"functionCalls": [{"name": "dim_lamp", "args": ARGS}]},
    {"function_calls": [{"name": "dim_lamp", "arguments": ARGS}]},
    {"thought": "so", "tool_calls": [{"name": "dim_lamp", "arguments": ARGS}]},
    {"toolCalls": [{"function": {"name": "dim_lamp", "arguments": ARGS}}]},
    [[{"name": "dim_lamp", "arguments": ARGS}]],
    ['{"name": "dim_lamp", "arguments": {"room": "hall"}}'],
    {"tool_uses": [{"recipient_name": "dim_lamp", "parameters": ARGS}]},
    {
        "name": "multi_tool_use.parallel",
        "arguments": {"tool_uses": [{"recipient_name": "dim_lamp", "parameters": ARGS}]},
    },
)

NO_CALLS: tuple[Any, ...] = (
    {"name": "dim_lamp", "parameters": {"type": "object", "properties": {}}},
    {"name": "dim_lamp", "description": "Dims a lamp."},
    {"name": "dim_lamp", "description": "Dims a lamp.", "parameters": {"type": "object"}},
    {"type": "function", "function": {"name": "dim_lamp", "description": "Dims."}},
    {"name": "dim_lamp", "result": 3},
    {"name": "dim_lamp", "role": "tool"},
    {"tool_call_id": "1", "name": "dim_lamp", "content": "ok"},
    {"name": "Ada", "age": 3},
    {"name": "<function-name>", "arguments": {}},
    {"name": "", "arguments": {}},
    {"name": 3, "arguments": {}},
    {"arguments": ARGS},
    {"dim_lamp": ARGS},
    [],
    "dim_lamp",
    None,
    3,
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_shape_is_one_call(shape: Any) -> None:
    """Whatever keys and wrappers a model uses, name and arguments are found."""
    (call,) = calls_of_value(shape)
    assert (call.name, call.arguments, call.state) == ("dim_lamp", ARGS, "whole")
    assert find_calls(shape).others == 0


@pytest.mark.parametrize("value", NO_CALLS, ids=str)
def test_definitions_results_and_data_are_no_calls(value: Any) -> None:
    """JSON that describes tools, reports results or is data stands for no call."""
    assert calls_of_value(value) == ()


def test_what_is_beside_the_calls_is_counted() -> None:
    """A list that holds something else can be told from one that holds only calls."""
    found = find_calls([{"name": "ping"}, 5, {"colour": "red"}, {"name": "ping"}])
    assert (len(found.calls), found.others) == (2, 2)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"dim_lamp": ARGS}, [("dim_lamp", ARGS)]),
        ({"dim_lamp": ARGS, "ping": None}, [("dim_lamp", ARGS), ("ping", None)]),
        ({"dim_lamp": ARGS, "colour": {}}, []),
        ({"name": "dim_lamp", "room": "x", "id": "7"}, [("dim_lamp", {"room": "x"})]),
        ({"name": "dim_lamp", "room": "x", "colour": 1}, []),
        ({"type": "ping"}, [("ping", None)]),
        ({"type": "colour"}, []),
    ],
    ids=str,
)
def test_shapes_that_depend_on_the_tools(value: Any, expected: list[Any]) -> None:
    """A key or a flat object is a call only when the tools say so."""
    calls = calls_of_value(value, tools=NAMES)
    assert [(call.name, call.arguments) for call in calls] == expected


def test_any_key_is_a_name_where_the_format_says_so() -> None:
    """In a format of single keys an unknown name is reported, not ignored."""
    found = find_calls([{"anything": {"a": 1}}], keyed=True)
    assert [(call.name, call.arguments) for call in found.calls] == [("anything", {"a": 1})]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"id": "c1"}, "c1"),
        ({"tool_call_id": 0}, "0"),
        ({"call_id": "x"}, "x"),
        ({"id": True}, None),
        ({"id": ""}, None),
    ],
    ids=str,
)
def test_ids_are_kept(record: dict[str, Any], expected: str | None) -> None:
    """An id of text or number is kept as text."""
    (call,) = calls_of_value({"name": "ping", "arguments": {}, **record})
    assert call.id == expected


def test_an_id_around_the_function_is_that_of_the_call() -> None:
    """The shape of the wire has the id outside."""
    (call,) = calls_of_value({"id": "c1", "function": {"name": "ping", "arguments": "{}"}})
    assert (call.id, call.arguments) == ("c1", "{}")


def test_a_list_of_one_object_is_that_object() -> None:
    """Arguments in a list of one are unwrapped with a receipt; other lists are left."""
    one, two = calls_of_value(
        [{"name": "a", "arguments": [ARGS]}, {"name": "b", "arguments": [1, 2]}]
    )
    assert (one.arguments, two.arguments) == (ARGS, [1, 2])
    assert [receipt.rule for receipt in one.receipts] == ["unwrap_argument_list"]


def test_a_tool_may_have_a_parameter_called_tool_uses() -> None:
    """Only the wrapper that models invent is unwrapped."""
    value = {"name": "audit", "arguments": {"tool_uses": [{"name": "ping"}]}}
    assert [call.name for call in calls_of_value(value)] == ["audit"]


def test_a_broken_sibling_does_not_hide_the_others() -> None:
    """Objects are read one by one where the array is not readable as a whole."""
    text = '[{"name": "ping", "arguments": {}}, {"name": "a", "arguments": {"x": 1, "x": 2}}]'
    calls = read_json_calls(text)
    assert [(call.name, call.arguments) for call in calls] == [
        ("ping", {}),
        ("a", '{"x": 1, "x": 2}'),
    ]


def test_two_names_in_one_object_are_no_name() -> None:
    """Which of two tools was meant is not guessed."""
    assert read_json_calls('{"name": "ping", "name": "dim_lamp", "arguments": {}}') == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "a", "arguments": {"x": 1', [("a", '{"x": 1', "cut")]),
        ('{"name": "a", "arguments": {"x": 1}', [("a", '{"x": 1}', "cut")]),
        ('{"arguments": {"name": "b"}, "na', []),
        ('{"arguments": {"name": "b"}, "name": "a"', [("a", '{"name": "b"}', "cut")]),
        ('[{"name": "a", "arguments": {}}, {"name": "b', [("a", {}, "whole")]),
        ('{"name": "a', []),
        ('{"name": "a"', [("a", "", "cut")]),
        ("{'name': 'a', 'arguments': {'x': 'it", [("a", "{'x': 'it", "cut")]),
        ('{"other": {"name": "b"}, "x', []),
    ],
)
def test_what_is_left_of_cut_json(text: str, expected: list[Any]) -> None:
    """Calls that were complete stay whole; the last one is cut, if its name is complete."""
    calls = read_json_calls(text, ended=False)
    assert [(call.name, call.arguments, call.state) for call in calls] == expected
