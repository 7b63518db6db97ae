"""Reading a reply as its text arrives."""

from collections.abc import Iterable
from typing import Any

import pytest

from support.offered_tools import BERGEN, OSLO, SAVE, TEXTS, TOOLS
from surecall.base.records import Reading, ToolCall
from surecall.reading import (
    CallRead,
    ReadEvent,
    ReadingLimits,
    ReasoningRead,
    ReplyReader,
    TextRead,
    TextWasReasoning,
    read_reply,
)


def read_in(
    pieces: Iterable[str], finish_reason: str | None = "stop", **arguments: Any
) -> tuple[Reading, list[ReadEvent]]:
    """Read a text that arrives in pieces; return its reading and what was told on the way."""
    reader = ReplyReader(TOOLS, **arguments)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return reader.close(finish_reason), events


def told(events: Iterable[ReadEvent]) -> tuple[str, str, list[ToolCall]]:
    """Return text, reasoning and calls as a listener would keep them."""
    text, reasoning, calls = "", "", list[ToolCall]()
    for event in events:
        match event:
            case TextRead():
                text += event.text
            case ReasoningRead():
                reasoning += event.text
            case TextWasReasoning():
                text, reasoning = "", (reasoning + text).strip()
            case CallRead():
                calls.append(event.call)
    return text, reasoning, calls


def splits_of(text: str) -> list[list[str]]:
    """Return the text cut in two everywhere, into characters, and into pieces of a few."""
    pairs = [[text[:at], text[at:]] for at in range(len(text) + 1)]
    threes = [text[at : at + 3] for at in range(0, len(text), 3)]
    return [*pairs, list(text), threes, ["", text, ""]]


@pytest.mark.parametrize("finish_reason", ["stop", "length", None])
@pytest.mark.parametrize("name", TEXTS)
def test_every_split_reads_as_the_whole_does(name: str, finish_reason: str | None) -> None:
    """Text, reasoning, calls, receipts and defects are the same wherever the stream was cut."""
    text = TEXTS[name]
    whole = read_reply(text, tools=TOOLS, finish_reason=finish_reason)
    for pieces in splits_of(text):
        assert read_in(pieces, finish_reason)[0] == whole, pieces


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_told_on_the_way_holds_at_the_end(name: str) -> None:
    """Text, reasoning and calls told are the beginning of those in the reading."""
    for pieces in splits_of(TEXTS[name]):
        reading, events = read_in(pieces)
        text, reasoning, calls = told(events)
        assert reading.content.startswith(text), pieces
        assert (reading.reasoning or "").startswith(reasoning), pieces
        assert reading.calls[: len(calls)] == tuple(calls), pieces


def test_text_before_a_call_is_told_at_once_and_the_call_when_it_is_certain() -> None:
    """Only what may be a call is held back; a call is certain when something follows it."""
    reader = ReplyReader(TOOLS, generation_prompt="<|im_start|>assistant\n")
    assert reader.feed("Let me look. ") == [TextRead("Let me look.")]
    assert reader.feed(OSLO) == []
    (event,) = reader.feed(" Done.")[:1]
    assert isinstance(event, CallRead)
    assert event.call.arguments == {"city": "Oslo"}
    assert reader.close("stop").calls == (event.call,)


def test_a_call_is_not_certain_while_it_may_be_part_of_reasoning() -> None:
    """Without the prompt, an end of reasoning that follows makes the call a thought."""
    reader = ReplyReader(TOOLS)
    assert reader.feed(f"Maybe {OSLO} or not?") == [TextRead("Maybe")]
    told = reader.feed("</think>No.\nThat is all.")
    assert TextRead("No.\nThat is all.") in told
    reading = reader.close("stop")
    assert (reading.calls, reading.content) == ((), "No.\nThat is all.")


def test_half_a_marker_is_held_back() -> None:
    """What could become a marker is not shown; what turns out to be none is."""
    reader = ReplyReader(TOOLS)
    assert reader.feed("Is x <too") == [TextRead("Is x")]
    shown = [event.text for event in reader.feed("l small?") if isinstance(event, TextRead)]
    assert "".join(shown) == " <tool small?"


def test_text_that_turns_out_to_be_reasoning_is_told() -> None:
    """A closer without an opener makes everything before it reasoning."""
    reading, events = read_in(["I think so.", "</think>", "Yes."])
    assert events == [TextRead("I think so."), TextWasReasoning(), TextRead("Yes.")]
    assert (reading.content, reading.reasoning) == ("Yes.", "I think so.")


def test_text_may_turn_out_to_be_reasoning_at_the_very_end() -> None:
    """Then the content of the reading does not begin with it, and the reasoning does."""
    reading, events = read_in(["I `think so.</think>Yes."])
    assert events == [TextRead("I")]
    assert (reading.content, reading.reasoning) == ("Yes.", "I `think so.")


def test_reasoning_that_the_prompt_opened_is_known_from_the_start() -> None:
    """With the generation prompt nothing has to be taken back."""
    reading, events = read_in(
        ["I think so.", "</think>", "Yes."], generation_prompt="<|im_start|>assistant\n<think>\n"
    )
    assert TextWasReasoning() not in events
    assert told(events)[:2] == ("Yes.", "I think so.")
    assert (reading.content, reading.reasoning) == ("Yes.", "I think so.")


def test_a_reader_of_no_tools_finds_no_calls() -> None:
    """Text is text, but reasoning is still told apart."""
    reader = ReplyReader([])
    reader.feed(f"<think>hm</think>{OSLO}")
    reading = reader.close("stop")
    assert (reading.calls, reading.content, reading.reasoning) == ((), OSLO, "hm")


# Cut or whole


@pytest.mark.parametrize("finish_reason", ["length", "content_filter", "error", "MAX_TOKENS"])
def test_a_reply_that_was_stopped_hurts_only_its_last_call(finish_reason: str) -> None:
    """A call without its end marker is cut; earlier ones, and one with it, are whole."""
    open_end = BERGEN.removesuffix("\n</tool_call>")
    reading = read_reply(f"{OSLO}\n{open_end}", tools=TOOLS, finish_reason=finish_reason)
    assert [call.state for call in reading.calls] == ["whole", "cut"]
    assert reading.calls[1].arguments is None
    assert reading.calls[1].errors[0].code == "ARGUMENTS_TRUNCATED"
    sealed = read_reply(f"{OSLO}\n{BERGEN}", tools=TOOLS, finish_reason=finish_reason)
    assert [call.state for call in sealed.calls] == ["whole", "whole"]


def test_a_whole_payload_without_its_end_marker_is_whole_when_the_model_stopped() -> None:
    """Models often leave the last marker out."""
    text = OSLO.removesuffix("\n</tool_call>")
    (call,) = read_reply(text, tools=TOOLS, finish_reason="stop").calls
    assert (call.state, call.arguments) == ("whole", {"city": "Oslo"})


@pytest.mark.parametrize("finish_reason", ["stop", "length", None])
@pytest.mark.parametrize("name", sorted(TEXTS.keys() - {"a call only thought about"}))
def test_no_beginning_of_a_text_holds_a_call_that_the_text_does_not(
    name: str, finish_reason: str | None
) -> None:
    """Wherever a reply is cut, what is read as whole is a call that was really made.

    Reasoning that only thinks about a call is left out: without its end it is a call.
    """
    text = TEXTS[name]
    made = read_reply(text, tools=TOOLS, finish_reason="stop").calls
    expected = [(call.name, call.arguments) for call in made if call.state == "whole"]
    for end in range(len(text)):
        calls = read_reply(text[:end], tools=TOOLS, finish_reason=finish_reason).calls
        whole = [(call.name, call.arguments) for call in calls if call.state == "whole"]
        assert whole == expected[: len(whole)], text[:end]


def test_a_call_in_reasoning_that_was_cut_is_cut() -> None:
    """Without the end of the reasoning nobody knows whether it was meant; the limit decides."""
    text = f"<think>Maybe {OSLO}? hm"
    (cut,) = read_reply(text, tools=TOOLS, finish_reason="length").calls
    (meant,) = read_reply(text, tools=TOOLS, finish_reason="stop").calls
    assert (cut.state, meant.state) == ("cut", "whole")


@pytest.mark.parametrize("opener", ["<tool_call>", "", "<tool_call>[", "["])
def test_a_call_that_lacks_only_its_last_brackets_is_whole_when_the_model_stopped(
    opener: str,
) -> None:
    """Nothing that could follow complete arguments would change them."""
    text = opener + '{"name": "weather", "arguments": {"city": "Oslo"}'
    (call,) = read_reply(text, tools=TOOLS, finish_reason="stop").calls
    assert (call.state, call.arguments) == ("whole", {"city": "Oslo"})
    assert "missing_closer" in [receipt.rule for receipt in call.receipts]
    for finish_reason in ("length", None):
        (cut,) = read_reply(text, tools=TOOLS, finish_reason=finish_reason).calls
        assert cut.state == "cut"


def test_a_call_whose_arguments_do_not_end_is_cut_although_the_model_stopped() -> None:
    """In text nothing proves that the arguments had come to their end."""
    text = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"'
    for call in read_reply(text, tools=TOOLS, finish_reason="stop").calls:
        assert call.state == "cut"


def test_blank_lines_up_to_the_limit_are_no_part_of_a_call() -> None:
    """A small model may repeat newlines behind a call that is complete."""
    text = '```json\n{"name": "weather", "arguments": {"city": "Oslo"}}\n```'
    (call,) = read_reply(text + "\n" * 40, tools=TOOLS, finish_reason="length").calls
    assert (call.state, call.arguments) == ("whole", {"city": "Oslo"})
    (doubtful,) = read_reply(text + "\n", tools=TOOLS, finish_reason="length").calls
    assert doubtful.state == "cut"


# Ids, receipts, limits


def test_calls_in_text_get_ids_of_their_own_and_receipts() -> None:
    """Each says that it was text, and in which format it was written."""
    reading = read_reply(f"{OSLO}{BERGEN}", tools=TOOLS, used_ids={"tc_1"})
    first, second = reading.calls
    assert [first.id, second.id] == ["tc_1__2", "tc_2"]
    assert [receipt.rule for receipt in first.receipts] == ["read_call_from_text"]
    assert [receipt.rule for receipt in second.receipts] == [
        "read_call_from_text",
        "parse_number_text",
    ]
    assert first.receipts[0].before == OSLO
    assert first.receipts[0].after == "weather"
    assert first.format == "tagged_json"
    assert reading.defects == ()


def test_limits_hold_for_calls_in_text() -> None:
    """One call too large, and all calls together too large, are refused."""
    one = read_reply(SAVE, tools=TOOLS, limits=ReadingLimits(max_arguments_bytes=5))
    assert one.calls[0].errors[0].code == "ARGUMENTS_TOO_LARGE"
    limits = ReadingLimits(max_total_arguments_bytes=29)
    both = read_reply(f"{OSLO}{OSLO}", tools=TOOLS, limits=limits)
    assert [call.state for call in both.calls] == ["whole", "unreadable"]


def test_a_parameter_given_twice_is_refused_between_tags_too() -> None:
    """Which of two values was meant is not guessed, whatever the format."""
    text = (
        "<tool_call><function=weather><parameter=city>Oslo</parameter>"
        "<parameter=city>Rome</parameter></function></tool_call>"
    )
    (call,) = read_reply(text, tools=TOOLS, finish_reason="stop").calls
    assert (call.state, call.arguments) == ("unreadable", None)
    assert "more than once" in call.errors[0].message
