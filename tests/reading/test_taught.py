"""Replies of a model that was taught to call tools in its text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.records import Reply, ToolSpec
from surecall.calls import ToolNames
from surecall.reading import find_broken_attempt, find_broken_call, parse_object_reply

NAMES = ToolNames([ToolSpec(name="add"), ToolSpec(name="note")])


def test_an_object_that_names_a_tool_is_a_call() -> None:
    """Name and arguments move to where calls are read from; the text is gone."""
    reply, receipts = parse_object_reply(
        Reply(content='{"name": "add", "arguments": {"a": 1}}', finish_reason="stop")
    )
    assert [(call.name, call.arguments) for call in reply.calls] == [("add", {"a": 1})]
    assert reply.content == ""
    assert [receipt.rule for receipt in receipts] == ["read_call_from_text"]


def test_an_answer_is_taken_out_of_its_object() -> None:
    """Also from below the root that strict providers need."""
    for text in ('{"answer": "Hi."}', '{"reply": {"answer": "Hi."}}'):
        reply, receipts = parse_object_reply(Reply(content=text, finish_reason="stop"))
        assert reply.content == "Hi."
        assert [(item.rule, item.lossless) for item in receipts] == [("unwrap_answer", True)]


def test_an_answer_that_was_cut_is_shown_and_marked() -> None:
    """People may read half an answer; the receipt says that it is one."""
    reply, receipts = parse_object_reply(
        Reply(content='{"answer": "Hello th', finish_reason="length")
    )
    assert reply.content == "Hello th"
    assert receipts[0].lossless is False


_CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["add", "note"]),
            "arguments": st.dictionaries(st.text(max_size=5), st.text() | st.integers()),
        }
    ),
    min_size=1,
    max_size=4,
)


@given(calls=_CALLS, indent=st.sampled_from([None, 2]), data=st.data())
def test_a_list_of_calls_is_read_whole_or_not_at_all(
    calls: list[dict[str, Any]], indent: int | None, data: st.DataObject
) -> None:
    """Cut anywhere, or with anything else in it, it stays the text that came."""
    text = json.dumps({"calls": calls}, indent=indent)
    reply, receipts = parse_object_reply(Reply(content=text, finish_reason="stop"))
    assert [{"name": call.name, "arguments": call.arguments} for call in reply.calls] == calls
    assert [receipt.rule for receipt in receipts] == ["read_call_from_text"]
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    for other in (cut, json.dumps({"calls": [*calls, "and so on"]}), '{"calls": []}'):
        for finish in ("length", None):
            given = Reply(content=other, finish_reason=finish)
            assert parse_object_reply(given)[0].calls == ()


@pytest.mark.parametrize("finish_reason", ["stop", "length", None])
def test_a_call_that_ends_inside_is_never_whole(finish_reason: str | None) -> None:
    """Whatever the provider says about why it stopped."""
    reply, _ = parse_object_reply(
        Reply(content='{"name": "add", "arguments": {"a": 1', finish_reason=finish_reason)
    )
    assert reply.finish_reason == "length"


@pytest.mark.parametrize(("finish_reason", "kept"), [("stop", "stop"), (None, "length")])
def test_a_last_bracket_is_only_a_slip_when_the_model_came_to_its_end(
    finish_reason: str | None, kept: str
) -> None:
    """Without a finish reason the same text may have been cut."""
    reply, _ = parse_object_reply(
        Reply(content='{"name": "add", "arguments": {"a": 1}', finish_reason=finish_reason)
    )
    assert reply.finish_reason == kept


def test_thoughts_before_the_object_do_not_hide_it() -> None:
    """They become reasoning, and the object is read."""
    thought = "<think>Hm.</think>"
    reply, _ = parse_object_reply(Reply(content=thought + '{"answer": "Hi."}'))
    assert (reply.content, reply.reasoning) == ("Hi.", "Hm.")
    call = '{"reply": {"name": "add", "arguments": {}}}'
    reply, _ = parse_object_reply(Reply(content=thought + call, reasoning="First."))
    assert [call.name for call in reply.calls] == ["add"]
    assert reply.reasoning == "First.\nHm."


def test_an_answer_beside_a_call_is_kept_as_its_text() -> None:
    """Nothing the model said is dropped without a word."""
    text = '{"name": "add", "arguments": {}, "answer": "One moment."}'
    reply, _ = parse_object_reply(Reply(content=text, finish_reason="stop"))
    assert ([call.name for call in reply.calls], reply.content) == (["add"], "One moment.")


def test_several_objects_are_left_to_the_reading_of_text() -> None:
    """The first alone would lose the others."""
    call = '{"name": "add", "arguments": {"a": 1}}'
    reply = Reply(content=f"{call}\n{call}", finish_reason="stop")
    assert parse_object_reply(reply) == (reply, ())


@pytest.mark.parametrize("value", ["x" * 2_000, [1] * 64], ids=["text", "list"])
def test_a_value_that_the_grammar_ended_is_cut(value: object) -> None:
    """Nobody knows how the model would have gone on; without a grammar the value is its own."""
    text = json.dumps({"name": "note", "arguments": {"inner": {"value": value}}})
    reply = Reply(content=text, finish_reason="stop")
    assert parse_object_reply(reply, is_grammar=True)[0].finish_reason == "length"
    assert parse_object_reply(reply)[0].finish_reason == "stop"


@pytest.mark.parametrize("text", ["Hello.", "", '{"name": "x"}', "[1, 2]", '{"answer": 3}', "{"])
def test_anything_else_is_left_alone(text: str) -> None:
    """A provider that ignored the schema may have answered in its own way."""
    reply = Reply(content=text, finish_reason="stop")
    assert parse_object_reply(reply) == (reply, ())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('```json\n{"name": "sub", "arguments": {}}\n```', "'sub' is not an available tool."),
        ('{"name": "add", "arguments": {"a": 1', "cut off"),
        ('```\n{"arguments": {"a": 1}}\n```', 'has no "name"'),
        ('```json\n{"name": "add", "arguments": "none"}\n```', "must be one JSON object"),
        ('{"name": "add", "arguments": }{', "can be read"),
        ('Sure: {"name": "add", "arguments": {"a": 1}}', "must be on its own"),
        ('{"name": "add", "arguments": {"a": 1}} as you wish', "must be on its own"),
        ('```\n```json\n{"name": "add", "arguments": {"a": 1}}\n```\n```', "must be on its own"),
        ('```py\nx\n```\n```json\n{"name": "sub", "arguments": {}}\n```', "'sub' is not"),
        ('I call {"name": "add", "arguments": {"a": ', "cut off"),
    ],
)
def test_a_broken_attempt_says_what_is_wrong(text: str, reason: str) -> None:
    """The reason is one that a model can act on."""
    found = find_broken_attempt(text, NAMES)
    assert found is not None
    assert found.code == "TOOL_NOT_EXECUTED"
    assert reason in found.message


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "Use `add` for sums.",
        '```python\nprint("name")\n```',
        '```json\n{"total": 5}\n```',
        '```json\n{"name": "left-pad", "version": "1.3.0"}\n```',
        'The server takes {"name": "sub", "arguments": {}} as its body.',
        'A user is {"name": "add"} there.',
        "```",
    ],
)
def test_prose_and_other_code_is_no_attempt(text: str) -> None:
    """An answer stays an answer."""
    assert find_broken_attempt(text, NAMES) is None


@given(st.text(alphabet=st.sampled_from('{}[]":,`\\ \nnameargumentsadd1'), max_size=80))
def test_any_text_is_looked_at_without_an_error(text: str) -> None:
    """Whatever a model writes, the reading goes on."""
    find_broken_attempt(text, NAMES)
    find_broken_call(text, NAMES)
    parse_object_reply(Reply(content=text, finish_reason="stop"))
