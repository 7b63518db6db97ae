"""Calls written as text, in whole runs and in streams."""

from typing import Any

import pytest

import surecall
from surecall import Session
from surecall.base.records import (
    Event,
    ReasoningDelta,
    TextDelta,
    TextRetracted,
    ToolCallStarted,
    ToolNotExecuted,
)
from surecall.loop import MemoryJournal, replay_trace
from surecall.models.transport import ScriptedReply, ScriptedTransport

from .toolbox import assistant, look, run_script, save, saved, tool_call

LOOK = '<tool_call>{"name": "look", "arguments": {"what": "a"}}</tool_call>'
SAVE = '<tool_call>{"name": "save", "arguments": {"text": "<b> \\"x\\""}}</tool_call>'
FINAL = "It is x < y, `<tool_call>` and {more}: ümlauts, 😀.\n"


async def test_a_call_in_text_is_run_when_text_formats_are_on() -> None:
    """Its result goes back to the model, and the trace holds a receipt of where it came from."""
    result = await run_script([f"Let me see.\n{LOOK}", FINAL], text_formats="all")
    assert result.text == FINAL
    (call,) = result.calls
    assert (call.name, call.arguments, call.format) == ("look", {"what": "a"}, "tagged_json")
    assert result.results[0].executed
    rules = [receipt.rule for receipt in result.trace.receipts]
    assert rules == ["read_call_from_text"]
    assert result.trace.turns[0].receipts == ()
    assert result.trace.turns[0].calls[0].receipts[0].before == LOOK
    assert result.history[1].tool_calls == (call,)


async def test_the_model_sees_the_call_as_if_it_had_been_structured() -> None:
    """The next request is one that every provider accepts."""
    transport = ScriptedTransport([SAVE, FINAL])
    await run_script([], transport=transport, text_formats="all")
    sent = transport.requests[1].body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["function"]["name"] == "save"
    assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]
    assert saved == ['<b> "x"']


async def test_markup_is_read_for_every_model() -> None:
    """Nothing has to be known of it."""
    result = await run_script([f"<think>Hm.</think>{SAVE}", FINAL])
    assert (result.text, len(result.calls), saved) == (FINAL, 1, ['<b> "x"'])


@pytest.mark.parametrize("value", ["off"])
async def test_it_is_the_final_answer_when_they_are_off(value: Any) -> None:
    """Text is text, and what looks like a call in it is not passed over in silence."""
    events: list[Event] = []
    result = await run_script([SAVE], text_formats=value, on_event=events.append)
    assert (result.text, result.calls, saved) == (SAVE, (), [])
    (turn,) = result.trace.turns
    assert [call.name for call in turn.seen] == ["save"]
    assert [defect.code for defect in turn.defects] == ["CALL_IN_TEXT_NOT_READ"]
    (event,) = [event for event in events if isinstance(event, ToolNotExecuted)]
    assert (event.retrying, "save" in event.snippet) == (False, True)


async def test_the_option_wins_over_the_capability() -> None:
    """What is known of a model decides, unless the caller does."""
    known = {"text_formats": True}
    on = await run_script([SAVE, FINAL], capabilities=known)
    assert len(on.calls) == 1
    off = await run_script([SAVE], capabilities=known, text_formats="off")
    assert off.calls == ()


@pytest.mark.parametrize("value", ["auto", "all"])
async def test_a_turn_without_tools_is_read_with_all_alone(value: Any) -> None:
    """No tool was offered, so nothing is a call; thoughts are thoughts anyway."""
    result = await run_script(
        [f"<think>Hm.</think>So: {LOOK}"], text_formats=value, tool_choice="none"
    )
    (turn,) = result.trace.turns
    if value == "all":
        assert (result.text, len(turn.ignored_calls)) == ("So:", 1)
    else:
        assert (result.text, [call.name for call in turn.seen]) == (f"So: {LOOK}", ["look"])


async def test_a_text_call_of_a_stopped_reply_is_refused() -> None:
    """A cut call never runs, wherever it was written."""
    cut = ScriptedReply(message=SAVE.removesuffix("</tool_call>"), finish_reason="length")
    result = await run_script([cut, FINAL], text_formats="all")
    assert saved == []
    assert result.results[0].envelope.error_codes == ("ARGUMENTS_TRUNCATED",)


async def test_an_unknown_tool_in_text_is_refused_like_any_other() -> None:
    """Nothing is run, and the model is told what there is."""
    text = '<tool_call>{"name": "launch", "arguments": {}}</tool_call>'
    result = await run_script([text, FINAL], text_formats="all")
    for item in result.results:
        assert not item.executed
        assert item.envelope.error_codes == ("TOOL_NOT_ALLOWED",)


async def test_a_run_with_text_calls_replays_and_resumes() -> None:
    """The same calls are read again from the recorded reply."""
    journal = MemoryJournal()
    result = await run_script([f"{LOOK}{SAVE}", FINAL], text_formats="all", journal=journal)
    replay = replay_trace(result.trace)
    assert (replay.same, replay.differences) == (True, ())
    again = await run_script([], text_formats="all", journal=journal)
    assert again.calls == result.calls
    assert again.text == FINAL
    assert len(saved) == 1


async def test_a_key_given_twice_is_refused_although_a_transform_wrote_the_object_as_text() -> None:
    """The transform saw only one of the two values."""
    body = (
        b'{"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [{"id": "a",'
        b'"function": {"name": "save", "arguments": {"text": "x", "text": "y"}}}]}}]}'
    )
    result = await run_script(
        [body, FINAL],
        response_transforms=["assistant_tool_calls_arguments_json_string_if_hash"],
    )
    assert saved == []
    assert result.results[0].envelope.error_codes == ("ARGUMENTS_JSON_PARSE_ERROR",)


# Streams: markers are never shown

CONVERSATIONS: dict[str, list[Any]] = {
    "text": [FINAL],
    "a call": [LOOK, FINAL],
    "text around calls": [f"Let me see.\n\n{LOOK}\nand\n{SAVE} now.", FINAL],
    "reasoning": [f"<think>I should {{look}}.</think>\n{LOOK}", f"<think>Hm <</think>{FINAL}"],
    "reasoning in its field": [
        assistant(LOOK, reasoning_content="one"),
        assistant(FINAL, reasoning_content="two"),
    ],
    "structured calls": [assistant(f"I write {LOOK} so.", tool_call("look")), FINAL],
    "an open marker": [LOOK, "It is <tool_call"],
    "no call after all": [LOOK, "It is <tool_call>not JSON"],
    "a fence": [LOOK, f"So:\n```\n{LOOK}\n```\nand `{LOOK}`."],
    "a cut call": [ScriptedReply(message=f"See: {SAVE[:-20]}", finish_reason="length"), FINAL],
}


async def stream_of(replies: list[Any], **options: Any) -> tuple[list[Event], surecall.RunResult]:
    """Run a streamed conversation and return its events and result."""
    chunk_bytes = options.pop("chunk_bytes", 3)
    stream = surecall.stream(
        "hi",
        model="m",
        preset=(),
        tools=[look, save],
        transport=ScriptedTransport(replies, chunk_bytes=chunk_bytes),
        **options,
    )
    seen = [event async for event in stream]
    return seen, stream.result


def text_of(events: list[Event], turn: int) -> str:
    """Return the text of a turn as a listener keeps it."""
    text = ""
    for event in events:
        if event.turn == turn and isinstance(event, TextDelta):
            text += event.text
        elif event.turn == turn and isinstance(event, TextRetracted):
            text = ""
    return text


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("chunk_bytes", [None, 1, 2, 7, 64, 100_000, (1, 200, 3, 50)], ids=str)
async def test_text_deltas_join_to_the_visible_text(name: str, chunk_bytes: Any) -> None:
    """However the stream is cut, the run is the same and shows exactly the text of each turn."""
    replies = CONVERSATIONS[name]
    options: dict[str, Any] = {"keep_content_with_calls": True, "likely_calls": "never"}
    whole = await run_script(replies, text_formats="all", **options)
    saved.clear()
    events, result = await stream_of(
        replies, chunk_bytes=chunk_bytes, text_formats="all", **options
    )
    assert (result.text, result.calls, result.history) == (whole.text, whole.calls, whole.history)
    told = [text_of(events, turn) for turn in range(result.turns)]
    assert told == [m.content for m in result.history if m.role == "assistant"]


async def test_text_is_shown_while_it_arrives_and_calls_are_not() -> None:
    """Holding back is for what may be a call only."""
    events, _ = await stream_of(CONVERSATIONS["text around calls"], text_formats="all")
    shown = [event.text for event in events if isinstance(event, TextDelta)]
    assert shown[:2] == ["Let me see.", "\nand\n now."]
    assert len(shown) > 4
    first_call = next(n for n, event in enumerate(events) if isinstance(event, ToolCallStarted))
    assert any(isinstance(event, TextDelta) for event in events[:first_call])


async def test_reasoning_in_the_text_is_told_as_reasoning() -> None:
    """Also the part that was held back at the end."""
    events, _ = await stream_of([f"{LOOK}", "<think>I think <so</think>Yes."], text_formats="all")
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert reasoning == "I think <so"
    open_end, _ = await stream_of(["<think>I think <", FINAL], text_formats="all")
    reasoning = "".join(event.text for event in open_end if isinstance(event, ReasoningDelta))
    assert reasoning == "I think <"


@pytest.mark.parametrize("chunk_bytes", [None, 1, 5, 1000], ids=str)
async def test_text_that_turns_out_to_be_reasoning_is_retracted(chunk_bytes: Any) -> None:
    """The listener is told once, and what follows is the answer."""
    events, result = await stream_of(
        ["I think so.</think>Yes."], text_formats="all", chunk_bytes=chunk_bytes
    )
    assert result.text == "Yes."
    assert text_of(events, 0) == "Yes."
    assert sum(isinstance(event, TextRetracted) for event in events) <= 1
    never, _ = await stream_of(["Yes."], text_formats="all")
    assert not any(isinstance(event, TextRetracted) for event in never)


async def test_a_retraction_at_the_very_end_is_told_too() -> None:
    """Nothing of what was shown is part of the answer."""
    events, result = await stream_of(["I think so.</think>"], text_formats="all", chunk_bytes=1)
    assert result.text == ""
    assert text_of(events, 0) == ""
    assert sum(isinstance(event, TextRetracted) for event in events) == 1


async def test_with_text_formats_off_text_is_shown_as_it_arrives() -> None:
    """Nothing is held back, because nothing is looked for."""
    events, result = await stream_of([SAVE], text_formats="off")
    assert text_of(events, 0) == SAVE == result.text


async def test_a_body_that_is_no_stream_shows_nothing_as_it_arrives() -> None:
    """As without text formats: the text is in the result."""
    body = b'{"choices": [{"finish_reason": "stop", "message": {"content": "Hello."}}]}'
    for text_formats in ("off", "all"):
        events, result = await stream_of([body], text_formats=text_formats)
        assert result.text == "Hello."
        assert not any(isinstance(event, TextDelta) for event in events)


async def test_a_streamed_run_without_a_listener_reads_text_calls() -> None:
    """Showing is for listeners only."""
    async with Session(
        model="m",
        preset=(),
        tools=[look, save],
        transport=ScriptedTransport([LOOK, FINAL], chunk_bytes=4),
        stream=True,
        text_formats="all",
    ) as session:
        result = await session.run("hi")
    assert (len(result.calls), result.text) == (1, FINAL)
