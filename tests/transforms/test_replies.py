"""Assistant messages as they arrive."""

from copy import deepcopy
from typing import Any

import pytest

from surecall.records import Receipt
from surecall.transforms import TransformChain, TransformRegistry
from surecall.transforms.replies import (
    assistant_content_tool_call_tags_to_tool_calls as read_tags,
)
from surecall.transforms.replies import (
    assistant_function_call_to_tool_calls as read_function_call,
)
from surecall.transforms.replies import (
    assistant_tool_calls_arguments_json_string_if_hash as write_arguments,
)
from surecall.transforms.replies import (
    assistant_tool_calls_object_to_array as wrap_calls,
)


def wire_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Build a call in wire form."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param('{"q": 1}', '{"q": 1}', id="text-as-it-is"),
        pytest.param({"q": 1}, '{"q":1}', id="object"),
        pytest.param(None, "{}", id="null"),
        pytest.param(5, "5", id="odd-value-for-the-reader-to-refuse"),
        pytest.param("", "", id="blank-as-it-is"),
    ],
)
def test_a_legacy_function_call_becomes_one_tool_call(arguments: Any, text: str) -> None:
    """The legacy field moves into the list and leaves a receipt."""
    message = {"content": None, "function_call": {"name": "find", "arguments": arguments}}
    before = deepcopy(message)
    result, receipts = read_function_call(message)
    assert result == {"content": None, "tool_calls": [wire_call("call_1", "find", text)]}
    assert [(receipt.place, receipt.lossless) for receipt in receipts] == [("/function_call", True)]
    assert message == before


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"content": "hi"}, id="none"),
        pytest.param({"function_call": {"name": " "}}, id="blank-name"),
        pytest.param({"function_call": {"name": 7}}, id="odd-name"),
        pytest.param({"function_call": "find"}, id="not-an-object"),
        pytest.param({"function_call": {"name": "f"}, "tool_calls": [{"id": "1"}]}, id="has-calls"),
        pytest.param({"function_call": {"name": "f"}, "tool_calls": {"id": "1"}}, id="has-object"),
        pytest.param(
            {"function_call": {"name": "f", "arguments": float("nan")}}, id="not-writable"
        ),
    ],
)
def test_no_usable_legacy_call_changes_nothing(message: dict[str, Any]) -> None:
    """The same object comes back without receipts; an object of tool calls wins."""
    result, receipts = read_function_call(message)
    assert result is message
    assert receipts == ()


@pytest.mark.parametrize("unusable", [[], None, [None], [{}], {}])
def test_a_legacy_call_replaces_tool_calls_that_hold_nothing(unusable: Any) -> None:
    """Empty lists and entries are no tool calls."""
    message = {"tool_calls": unusable, "function_call": {"name": "f", "arguments": "{}"}}
    result, _ = read_function_call(message)
    assert result == {"tool_calls": [wire_call("call_1", "f", "{}")]}


def test_a_lone_call_object_is_put_into_a_list() -> None:
    """One receipt names the place."""
    message = {"tool_calls": wire_call("1", "a", "{}")}
    result, receipts = wrap_calls(message)
    assert result == {"tool_calls": [wire_call("1", "a", "{}")]}
    assert [receipt.place for receipt in receipts] == ["/tool_calls"]
    assert isinstance(message["tool_calls"], dict)


@pytest.mark.parametrize("calls", [[], [{"id": "1"}], None, "x", {}])
def test_anything_but_a_filled_object_is_not_wrapped(calls: Any) -> None:
    """The same message comes back."""
    message = {"tool_calls": calls}
    assert wrap_calls(message) == (message, ())
    assert wrap_calls(message)[0] is message


def test_structured_arguments_become_text() -> None:
    """Objects and arrays are written as JSON; text and odd entries stay."""
    calls = [
        wire_call("1", "a", {"x": "é"}),
        wire_call("2", "b", '{"y":1}'),
        wire_call("3", "c", [1]),
        "odd",
        {"function": None},
    ]
    message = {"tool_calls": calls}
    before = deepcopy(message)
    result, receipts = write_arguments(message)
    assert result["tool_calls"] == [
        wire_call("1", "a", '{"x":"é"}'),
        wire_call("2", "b", '{"y":1}'),
        wire_call("3", "c", "[1]"),
        "odd",
        {"function": None},
    ]
    assert [(receipt.place, receipt.before, receipt.after) for receipt in receipts] == [
        ("/tool_calls/0/function/arguments", "object", '{"x":"é"}'),
        ("/tool_calls/2/function/arguments", "array", "[1]"),
    ]
    assert message == before


@pytest.mark.parametrize(
    "message",
    [{}, {"tool_calls": {"a": 1}}, {"tool_calls": [wire_call("1", "a", "{}")]}, {"tool_calls": []}],
)
def test_arguments_that_are_text_are_left_alone(message: dict[str, Any]) -> None:
    """The same object comes back."""
    result, receipts = write_arguments(message)
    assert result is message
    assert receipts == ()


def test_arguments_that_cannot_be_written_are_left_to_the_reader() -> None:
    """A value that is not JSON raises nothing here."""
    message = {"tool_calls": [wire_call("1", "a", {"x": "\ud800"})]}
    assert write_arguments(message)[0] is message


def test_tags_become_calls_and_are_cut_from_the_content() -> None:
    """Each tag leaves a receipt with its span, and ids count up."""
    content = 'Look.\n<tool_call>{"name": "a"}</tool_call> and <tool_call>b {"x":1}</tool_call>\n'
    message = {"role": "assistant", "content": content}
    result, receipts = read_tags(message)
    assert result == {
        "role": "assistant",
        "content": "Look.\n and",
        "tool_calls": [wire_call("tag_call_1", "a", "{}"), wire_call("tag_call_2", "b", '{"x":1}')],
    }
    rule = "assistant_content_tool_call_tags_to_tool_calls"
    why = "the call was written as text"
    first, second = '<tool_call>{"name": "a"}</tool_call>', '<tool_call>b {"x":1}</tool_call>'
    assert receipts == (
        Receipt(rule, "6:42", first, "tag_call_1", True, why),
        Receipt(rule, "47:79", second, "tag_call_2", True, why),
    )
    assert content[6:42] == first
    assert content[47:79] == second
    assert message["content"] == content


def test_an_unusable_tag_beside_a_usable_one_leaves_a_lossy_receipt() -> None:
    """What is cut without being understood is never cut silently."""
    message = {"content": "<tool_call>{broken</tool_call><tool_call>a</tool_call>"}
    result, receipts = read_tags(message)
    assert [call["id"] for call in result["tool_calls"]] == ["tag_call_1"]
    assert [(receipt.lossless, receipt.after) for receipt in receipts] == [
        (False, None),
        (True, "tag_call_1"),
    ]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"content": "no tags"}, id="no-tags"),
        pytest.param({"content": None}, id="no-content"),
        pytest.param({"content": [{"text": "<tool_call>a</tool_call>"}]}, id="parts"),
        pytest.param({"content": "<tool_call>{oops</tool_call>"}, id="none-usable"),
        pytest.param({"content": "<tool_call>a", "tool_calls": []}, id="unclosed"),
        pytest.param(
            {"content": "<tool_call>a</tool_call>", "tool_calls": [{"id": "1"}]}, id="has-calls"
        ),
        pytest.param(
            {"content": "<tool_call>a</tool_call>", "tool_calls": {"id": "1"}}, id="has-object"
        ),
        pytest.param(
            {"content": "<tool_call>a</tool_call>", "function_call": {"name": "f"}}, id="has-legacy"
        ),
        pytest.param({"reasoning": "<tool_call>a</tool_call>", "content": ""}, id="reasoning"),
    ],
)
def test_content_without_a_usable_tag_is_returned_as_it_is(message: dict[str, Any]) -> None:
    """The same object, and no receipts."""
    result, receipts = read_tags(message)
    assert result is message
    assert receipts == ()


def test_the_structural_transforms_work_together() -> None:
    """An object of calls with object arguments is wrapped, then written; receipts add up."""
    chain = TransformChain.resolve(
        TransformRegistry.builtin(),
        replies=[
            "assistant_function_call_to_tool_calls",
            "assistant_tool_calls_object_to_array",
            "assistant_tool_calls_arguments_json_string_if_hash",
        ],
    )
    result, receipts = chain.apply_reply({"tool_calls": wire_call("1", "a", {"x": 1})})
    assert result == {"tool_calls": [wire_call("1", "a", '{"x":1}')]}
    assert [receipt.rule for receipt in receipts] == [
        "assistant_tool_calls_object_to_array",
        "assistant_tool_calls_arguments_json_string_if_hash",
    ]
