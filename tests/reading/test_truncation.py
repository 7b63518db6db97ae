"""Whether a call is whole."""

from typing import Any

import pytest

from support.offered_tools import OSLO, TOOLS
from surecall.base.records import Defect, RawCall, Reply
from surecall.reading import read_arguments, read_reply

CALLS = (RawCall("a", "tool", '{"a": 1}'), RawCall("b", "tool", '{"b": 2}'))


@pytest.mark.parametrize(
    ("finish_reason", "words"),
    [
        ("length", "token limit"),
        ("max_tokens", "token limit"),
        ("MAX_TOKENS", "token limit"),
        ("model_length", "token limit"),
        ("content_filter", "content filter"),
        ("error", "with an error"),
        ("max_output_tokens", "token limit"),
        ("model_context_window_exceeded", "token limit"),
        ("FINISH_REASON_MAX_TOKENS", "token limit"),
        ("maxTokens", "token limit"),
        ("sensitive", "content filter"),
        ("SAFETY", "content filter"),
        ("recitation", "content filter"),
        ("insufficient_system_resource", "with an error"),
        ("network_error", "with an error"),
        ("incomplete", "with an error"),
        ("failed", "with an error"),
        ("timeout", "longer than"),
        ("abort", "cancelled"),
        ("aborted", "cancelled"),
        ("canceled", "cancelled"),
        ("cancelled", "cancelled"),
    ],
)
def test_no_call_of_an_unfinished_reply_is_whole(finish_reason: str, words: str) -> None:
    """Every call is cut, also one whose arguments parse, and the reason is told."""
    reading = read_reply(Reply(calls=CALLS, finish_reason=finish_reason))
    for call in reading.calls:
        assert call.state == "cut"
        assert call.arguments is None
        (error,) = call.errors
        assert error.code == "ARGUMENTS_TRUNCATED"
        assert words in error.message
        assert error.hint is not None
        assert "with less" in error.hint


@pytest.mark.parametrize("finish_reason", ["tool_calls", "stop", "function_call", "end", None])
def test_calls_of_a_finished_reply_are_whole(finish_reason: str | None) -> None:
    """Other finish reasons, and none at all, leave the calls as their arguments are."""
    reading = read_reply(Reply(calls=CALLS, finish_reason=finish_reason))
    assert [call.state for call in reading.calls] == ["whole", "whole"]
    assert [call.arguments for call in reading.calls] == [{"a": 1}, {"b": 2}]


def test_a_finish_reason_given_by_the_caller_counts() -> None:
    """It stands in for the one of the reply."""
    reading = read_reply(Reply(calls=CALLS), finish_reason="length")
    assert reading.finish_reason == "length"
    assert [call.state for call in reading.calls] == ["cut", "cut"]


def test_arguments_that_stop_in_the_middle_are_cut_whatever_the_finish() -> None:
    """The other calls of the reply are not touched by that."""
    calls = (RawCall("a", "tool", '{"a": 1'), RawCall("b", "tool", "{}"))
    reading = read_reply(Reply(calls=calls, finish_reason="tool_calls"))
    assert [call.state for call in reading.calls] == ["cut", "whole"]
    assert reading.calls[0].errors[0].code == "ARGUMENTS_TRUNCATED"


@pytest.mark.parametrize("finish_reason", ["stop", "tool_calls", "function_call", "end_turn"])
def test_brackets_missing_at_an_end_the_model_came_to_are_a_slip(finish_reason: str) -> None:
    """They are added, with a receipt, when at least one bracket was closed; that is not certain."""
    calls = (RawCall("a", "tool", '{"a": {"b": 1}'),)
    (call,) = read_reply(Reply(calls=calls, finish_reason=finish_reason)).calls
    assert (call.state, call.arguments) == ("whole", {"a": {"b": 1}})
    (receipt,) = call.receipts
    assert (receipt.rule, receipt.lossless) == ("close_missing_brackets", False)
    assert (call.certainty, call.doubt != "") == ("likely", True)


CLEAN = {
    "type": "object",
    "properties": {"keep": {"type": "array"}, "dry_run": {"type": "boolean"}},
}


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ('{"dry_run": true, "keep": ["/a"]', "certain"),
        ('{"dry_run": true, "keep": ["/a"]}', "certain"),
        ('{"keep": ["/a"]', "likely"),
        ('{"dry_run": true, "keep": [{"path": "/a"}', "likely"),
        ('{"dry_run": true, "keep": [["/a"]}', "likely"),
        ('{"dry_run": true, "keep": [{"path": "/a"}}', "likely"),
        ('"{\\"dry_run\\": true, \\"keep\\": [{}"', "likely"),
        ("", "likely"),
    ],
)
def test_only_a_last_brace_behind_every_property_is_certain(text: str, certainty: str) -> None:
    """Anything else that is missing may have taken something with it, and the receipt says so."""
    reading = read_arguments(text, CLEAN, ended=True)
    assert reading.value is not None
    assert (reading.certainty, bool(reading.doubt)) == (certainty, certainty == "likely")
    if text:
        assert all(receipt.lossless for receipt in reading.receipts) == (certainty == "certain")


@pytest.mark.parametrize(
    "schema",
    [
        {**CLEAN, "additionalProperties": True},
        {**CLEAN, "patternProperties": {"^x": {}}},
        {**CLEAN, "allOf": [{"properties": {"more": {}}}]},
        {"type": "object"},
    ],
)
def test_a_schema_that_leaves_properties_open_vouches_for_nothing(schema: dict[str, Any]) -> None:
    """One that it does not declare may have been lost."""
    text = '{"dry_run": true, "keep": ["/a"]'
    assert read_arguments(text, schema, ended=True).certainty == "likely"


def test_blank_arguments_of_a_tool_that_takes_none_are_certain() -> None:
    """There was nothing to lose."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    assert read_arguments("", schema).certainty == "certain"


def test_calls_of_a_reply_with_an_unknown_finish_are_likely() -> None:
    """In the field for calls and in text, and the word is shown."""
    for reply in (
        Reply(calls=CALLS, finish_reason="eclipse"),
        Reply(content=OSLO, finish_reason="eclipse"),
    ):
        for call in read_reply(reply, tools=TOOLS).calls:
            assert (call.state, call.certainty) == ("whole", "likely")
            assert "'eclipse'" in call.doubt


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ('<tool_call>{"name": "save_note", "arguments": {"text": "a"}</tool_call>', "certain"),
        ('<tool_call>{"name": "save_note", "arguments": {"text": "a"}', "certain"),
        ('<tool_call>{"name": "save_note", "arguments": {"text": ["a"]</tool_call>', "likely"),
        ('<tool_calls>[{"name": "save_note", "arguments": {"text": ["a"}}]</tool_calls>', "likely"),
        ("<tool_call><function=save_note><parameter=text>a</function></tool_call>", "likely"),
        ("Action: save_note\nAction Input: buy milk", "likely"),
        ("Action: save_note\nAction Input: buy milk\nObservation:", "likely"),
        ("Action: ping\n", "likely"),
    ],
)
def test_text_calls_are_certain_when_their_arguments_are_closed(text: str, certainty: str) -> None:
    """Brackets of the call around them may be missing; their own may not."""
    (call,) = read_reply(text, tools=TOOLS, finish_reason="stop").calls
    assert (call.state, call.certainty) == ("whole", certainty)


@pytest.mark.parametrize("finish_reason", [None, "length", "content_filter", "error", "unknown"])
def test_brackets_missing_at_any_other_end_are_a_cut(finish_reason: str | None) -> None:
    """Unless the provider says that the model stopped by itself, more may have been meant."""
    calls = (RawCall("a", "tool", '{"a": {"b": 1}'),)
    (call,) = read_reply(Reply(calls=calls, finish_reason=finish_reason)).calls
    assert (call.state, call.arguments) == ("cut", None)


def test_a_cut_call_keeps_what_arrived() -> None:
    """The raw arguments and their size stay for the trace."""
    (call,) = read_reply(Reply(calls=CALLS[:1], finish_reason="length")).calls
    assert call.raw == '{"a": 1}'
    assert call.arguments_bytes == 8


def test_calls_of_a_stream_that_lost_an_event_are_cut() -> None:
    """Arguments with a piece missing may still parse, so none of them is trusted."""
    lost = Defect("UPSTREAM_BAD_EVENT", "1 events were passed over.")
    reading = read_reply(Reply(calls=CALLS, finish_reason="tool_calls", defects=(lost,)))
    assert [call.state for call in reading.calls] == ["cut", "cut"]


def test_calls_written_as_text_are_cut_when_a_part_of_it_was_lost() -> None:
    """Also calls with their end marker: the part that is missing may have been inside."""
    lost = Defect("UPSTREAM_BAD_EVENT", "1 events were passed over.")
    reply = Reply(content=f"Hm. {OSLO}{OSLO}", finish_reason="stop", defects=(lost,))
    reading = read_reply(reply, tools=TOOLS)
    assert [(call.state, call.arguments) for call in reading.calls] == [("cut", None)] * 2
    assert "lost" in reading.calls[0].errors[0].message
    assert reading.content == "Hm."


TEXT = (
    '{"k\\"ey": "x\\u00e9\\n\\\\", "b": [1.5e+10, -2E-1, 0, true, false, null],'
    ' "c": {"d": "\\ud83d\\ude00", "e": {}}, "😀": [[], ""]}'
)


@pytest.mark.parametrize("end", range(1, len(TEXT)))
def test_every_start_of_an_object_is_cut(end: int) -> None:
    """Wherever the text stops, it is known to have stopped too soon."""
    reading = read_arguments(TEXT[:end])
    assert (reading.state, reading.value) == ("cut", None)


def test_the_whole_of_that_object_is_read() -> None:
    """The text above is valid, so that only its end is missing in each case."""
    assert read_arguments(TEXT).state == "whole"
