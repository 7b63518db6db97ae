"""What becomes of calls that are only likely: by option, effect and certainty, in whole runs."""

import logging
from typing import Any, NamedTuple

import pytest

import surecall
from surecall import Code
from surecall.base.errors import RunLimitError
from surecall.base.records import (
    Event,
    ModelRequestEnded,
    TextDelta,
    TextRetracted,
    ToolNotExecuted,
)
from surecall.loop import MemoryJournal, load_trace, replay_trace, save_trace
from surecall.loop.options import resolve_options
from surecall.models.config import load_config
from surecall.models.transport import ScriptedReply, ScriptedTransport
from surecall.tools import ApprovalDecision, ApprovalRequest

from .toolbox import assistant, run_script, saved, tool_call

FINAL = "It is done."
LOOK = 'I will look at it now.\nlook(what="a")'
SAVE = 'Saving it now.\n{"name": "save", "arguments": {"text": "a"}}\nDone.'
CALL = tool_call("save", {"text": "a"})
ODD = "eclipse"
"""A finish reason that nobody knows: the calls of such a reply are only likely."""


async def approve(request: ApprovalRequest) -> ApprovalDecision:
    """Approve everything."""
    return ApprovalDecision(approved=True)


async def deny(request: ApprovalRequest) -> ApprovalDecision:
    """Approve nothing."""
    return ApprovalDecision(approved=False, reason="not today")


class Row(NamedTuple):
    """An option, a tool and a way to write its call, and what happens."""

    option: str
    tool: str
    written: str
    """`text` takes a judgement, `field` has an odd finish reason, `certain` and `cut`."""
    outcome: str
    """`runs`, the code in the result of the call, or `text` when it stays in the answer."""
    approver: Any = None


NOT_CERTAIN, DENIED, CUT = "CALL_NOT_CERTAIN", "APPROVAL_DENIED", "ARGUMENTS_TRUNCATED"
TABLE = [
    Row("by_effect", "look", "text", "runs"),
    Row("by_effect", "look", "field", "runs"),
    Row("by_effect", "save", "text", NOT_CERTAIN),
    Row("by_effect", "save", "field", NOT_CERTAIN),
    Row("by_effect", "save", "text", NOT_CERTAIN, approve),
    Row("run", "look", "text", "runs"),
    Row("run", "save", "text", "runs"),
    Row("run", "save", "field", "runs"),
    Row("run", "save", "text", DENIED, deny),
    Row("approve", "look", "text", "runs", approve),
    Row("approve", "save", "text", "runs", approve),
    Row("approve", "save", "field", "runs", approve),
    Row("approve", "save", "text", DENIED, deny),
    Row("approve", "look", "text", DENIED),
    Row("approve", "save", "text", DENIED),
    Row("approve", "save", "field", DENIED),
    Row("never", "look", "text", "text"),
    Row("never", "save", "text", "text"),
    Row("never", "look", "field", "runs"),
    Row("never", "save", "field", NOT_CERTAIN),
    *(
        Row(option, tool, "certain", "runs")
        for option in ("by_effect", "run", "never")
        for tool in ("look", "save")
    ),
    *(
        Row(option, tool, "cut", CUT)
        for option in ("by_effect", "run", "never")
        for tool in ("look", "save")
    ),
    Row("approve", "look", "cut", CUT, approve),
    Row("approve", "save", "cut", CUT, approve),
    Row("approve", "save", "certain", "runs"),
]
ARGUMENTS = {"look": {"what": "a"}, "save": {"text": "a"}}


def reply_of(row: Row) -> Any:
    """Return a reply that makes the call of a row."""
    if row.written == "text":
        return LOOK if row.tool == "look" else SAVE
    finish = {"field": ODD, "certain": "tool_calls", "cut": "length"}[row.written]
    return ScriptedReply(
        message=assistant(None, tool_call(row.tool, ARGUMENTS[row.tool])), finish_reason=finish
    )


@pytest.mark.parametrize("row", TABLE, ids=lambda row: "-".join(map(str, row[:4])))
async def test_option_effect_and_certainty_decide_together(row: Row) -> None:
    """A cut call never runs; a certain one always does."""
    result = await run_script(
        [reply_of(row), FINAL] if row.outcome != "text" else [reply_of(row)],
        likely_calls=row.option,
        approver=row.approver,
    )
    ran = row.outcome == "runs"
    assert saved == (["a"] if ran and row.tool == "save" else [])
    if row.outcome == "text":
        assert (result.text, result.calls) == (reply_of(row), ())
        assert [call.name for call in result.trace.turns[0].seen] == [row.tool]
        return
    (answer,) = result.results
    assert answer.executed is ran
    assert answer.envelope.error_codes == (() if ran else (row.outcome,))
    assert result.text == FINAL
    assert result.calls[0].certainty == (
        "likely" if row.written in ("text", "field") else "certain"
    )


async def test_the_model_is_told_what_was_seen_and_how_to_call() -> None:
    """In the result of the call that it is shown to have made."""
    script = ScriptedTransport([SAVE, assistant(None, CALL), FINAL])
    result = await run_script([], transport=script)
    (error,) = result.results[0].envelope.errors
    assert 'save with {"text":"a"}' in error.message
    assert "NOT EXECUTED" in error.message
    assert error.hint is not None
    assert "as a tool call" in error.hint
    assert script.requests[1].body["messages"][-1]["role"] == "tool"
    assert (saved, result.text, result.turns) == (["a"], FINAL, 3)


async def test_one_compensating_request_a_run_is_made_and_counted() -> None:
    """The second time the text is the answer, and says that nothing was run."""
    events: list[Event] = []
    result = await run_script([SAVE, SAVE], on_event=events.append)
    assert saved == []
    assert result.text.startswith(SAVE)
    assert result.text.endswith(
        "[tool not executed: save was not called in the way that tools are offered.]"
    )
    assert [turn.request.compensates for turn in result.trace.turns] == [False, True]
    assert result.trace.compensating_requests == 1
    told = [event for event in events if isinstance(event, ToolNotExecuted)]
    assert [(event.retrying, event.is_likely) for event in told] == [(True, True), (False, True)]
    ended = [event for event in events if isinstance(event, ModelRequestEnded)]
    assert ended[1].defect_codes == (Code.CALL_IN_TEXT_NOT_READ,)
    assert replay_trace(result.trace).same


async def test_a_call_that_runs_needs_no_compensation() -> None:
    """The next request is made in any case."""
    first, second = ('{"name": "look", "arguments": {"what": "a"}}', SAVE.splitlines()[1])
    result = await run_script([f"First:\n{first}\n{second}", FINAL])
    assert [(answer.name, answer.executed) for answer in result.results] == [
        ("look", True),
        ("save", False),
    ]
    assert result.trace.compensating_requests == 0


async def test_a_mention_stays_a_mention() -> None:
    """A question, an example or a description is an answer."""
    for text in ("Shall I run save(text='a')?", "You could call `save(text='a')` for that."):
        result = await run_script([text])
        assert (result.text, result.calls, saved) == (text, (), [])


async def test_streamed_text_that_was_a_call_is_taken_back() -> None:
    """What is left of the text is shown again."""
    events: list[Event] = []
    await run_script([LOOK, FINAL], stream=True, on_event=events.append)
    text = ""
    for event in events:
        if event.turn == 0 and isinstance(event, TextDelta | TextRetracted):
            text = text + event.text if isinstance(event, TextDelta) else ""
    assert text == "I will look at it now."


async def test_without_a_declared_effect_a_warning_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Such a tool counts as one with effects."""

    def keep_note(text: str) -> str:
        """Keep a note."""
        return "kept"

    text = SAVE.replace('"save"', '"keep_note"')
    with caplog.at_level(logging.WARNING, "surecall.tools"):
        for _ in range(2):
            result = await run_script([text, FINAL], tools=[keep_note])
            assert result.results[0].envelope.error_codes == (NOT_CERTAIN,)
        await run_script([SAVE, FINAL])
    (record,) = caplog.records
    assert "keep_note" in record.getMessage()
    assert 'effect="read"' in record.getMessage()


# Options


@pytest.mark.parametrize("name", ["text_formats", "likely_calls"])
def test_any_other_word_is_refused(name: str) -> None:
    """With the code of a wrong value."""
    with pytest.raises(surecall.base.errors.ConfigError) as caught:
        resolve_options({name: "sometimes"})
    assert caught.value.code == Code.INVALID_OPTION


def test_the_environment_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As every option."""
    monkeypatch.setenv("SURECALL_OPTIONS__TEXT_FORMATS", "off")
    monkeypatch.setenv("SURECALL_OPTIONS__LIKELY_CALLS", "approve")
    options = surecall.Session(model="m", config=load_config(search=False)).plan("hi").options
    assert (options.text_formats, options.likely_calls) == ("off", "approve")


async def test_a_run_with_likely_calls_is_resumed_and_stored(tmp_path: Any) -> None:
    """What was seen is in the trace, with its receipts."""
    journal = MemoryJournal()
    replies = [LOOK, SAVE, SAVE]
    first = await run_script(replies, journal=journal)
    again = await run_script([], journal=journal)
    assert (again.text, again.calls) == (first.text, first.calls)
    save_trace(first.trace, tmp_path / "t.json")
    loaded = load_trace(tmp_path / "t.json")
    assert loaded.turns[2].seen[0].name == "save"
    assert "judge_call_in_text" in [receipt.rule for receipt in loaded.turns[2].seen[0].receipts]
    assert replay_trace(loaded).same


# Broken attempts, malformed calls, pauses and echoes

BROKEN = {
    "a fence": '```json\n{"name": "save", "arguments": {"text": "a" "b": c}\n```',
    "markup": "<tool_call>\nsave hello\n</tool_call>",
    "JSON in markup": '<tool_call>{"name": "save", "arguments": {"text"; ,}}</tool_call>',
    "JSON in a tag": "<function=save>{bad json}</function>",
    "bare JSON": '{"name": "save", "arguments": {"text"; ,}}',
    "no such tool": '{"name": "store", "arguments": {"text": "a"}}',
    "no such tool in a fence": '```json\n{"name": "store", "arguments": {"text": "a"}}\n```',
    "no such tool, doubled": '{{"name": "store", "arguments": {"text": "a"}}}',
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_attempt_is_noticed_in_native_mode(name: str) -> None:
    """The model is told once; after that the run ends in the notice, and never in empty text."""
    script = ScriptedTransport([BROKEN[name], BROKEN[name]])
    result = await run_script([], transport=script)
    assert (saved, len(script.requests)) == ([], 2)
    assert "[tool not executed: " in result.text
    assert Code.TOOL_NOT_EXECUTED in [defect.code for defect in result.trace.turns[1].defects]
    assert replay_trace(result.trace).same
    good = await run_script([BROKEN[name], assistant(None, CALL), FINAL])
    assert (saved, good.text) == (["a"], FINAL)


@pytest.mark.parametrize(
    "text",
    [
        'Use {"name": "save", "arguments": {"text": "a" "b"}} so.',
        '```json\n{"name": "other", "arguments": {"text": "a" "b"}\n```',
        "Write\n<tool_call>\nsave it\n</tool_call>\nand it is saved.",
        "In XML: <function>f</function>",
        '{"name": "Rome", "size": {"text": "a"}}',
        'So: ```json\n{"name": "store", "arguments": {"text": "a"}}\n```',
        '{"name": "store", "parameters": {"type": "object", "properties": {}}}',
    ],
)
async def test_what_is_only_shown_is_no_attempt(text: str) -> None:
    """In native mode only broken calls of known tools count, and texts that are all one call."""
    result = await run_script([text])
    assert (result.text, result.turns) == (text, 1)


async def test_a_limit_still_makes_a_cut_call_and_no_broken_one() -> None:
    """The model made no mistake; it is told, as often as the other limits allow."""
    cut = ScriptedReply(message=BROKEN["bare JSON"][:-10], finish_reason="length")
    result = await run_script([cut, cut, cut, FINAL])
    assert result.text == FINAL


def malformed(text: str | None) -> ScriptedReply:
    """Return a reply whose call the provider could not read."""
    return ScriptedReply(message=assistant(text), finish_reason="malformed_function_call")


async def test_a_malformed_call_is_read_as_a_likely_one() -> None:
    """Where the text makes a whole call."""
    result = await run_script([malformed("print(default_api.look(what='a'))"), FINAL])
    assert (result.calls[0].certainty, result.results[0].executed) == ("likely", True)
    held = await run_script([malformed("print(default_api.save(text='a'))"), FINAL])
    assert (saved, held.results[0].envelope.error_codes) == ([], (NOT_CERTAIN,))


@pytest.mark.parametrize("text", ["save(text=", None])
async def test_a_malformed_call_is_never_the_answer(text: str | None) -> None:
    """The model is told, and at last the user."""
    result = await run_script([malformed(text), malformed(text)])
    assert result.turns == 2
    assert result.text.strip().startswith("[tool not executed: ")
    good = await run_script([malformed(text), FINAL])
    assert (good.text, saved) == (FINAL, [])


def paused(text: str) -> ScriptedReply:
    """Return a reply that its provider paused."""
    return ScriptedReply(message=text, finish_reason="pause_turn")


async def test_a_paused_turn_is_sent_back() -> None:
    """As it came, and the answer is all of it."""
    script = ScriptedTransport([paused("Let me see. "), paused("Nearly. "), FINAL])
    result = await run_script([], transport=script)
    sent = script.requests[2].body["messages"]
    assert [(m["role"], m["content"]) for m in sent[1:]] == [
        ("assistant", "Let me see. "),
        ("assistant", "Nearly. "),
    ]
    assert result.text == f"Let me see. Nearly. {FINAL}"
    assert replay_trace(result.trace).same


@pytest.mark.parametrize("replies", [[paused("Wait.")] * 5, [paused("")]], ids=["often", "blank"])
async def test_a_pause_that_cannot_be_continued_is_a_defect(replies: list[Any]) -> None:
    """The run ends with what there is."""
    result = await run_script(replies)
    codes = [defect.code for defect in result.trace.turns[-1].defects]
    assert Code.TURN_PAUSED in codes
    assert result.turns == len(replies)


ECHO = "[tool not executed] The call of save is not in a form that can be read."


async def test_an_echo_of_a_notice_is_asked_about_once() -> None:
    """It is not an answer."""
    result = await run_script([BROKEN["markup"], ECHO, FINAL])
    assert (result.text, result.turns) == (FINAL, 3)
    assert replay_trace(result.trace).same


async def test_a_run_never_ends_with_an_echo() -> None:
    """It ends with a code."""
    with pytest.raises(RunLimitError) as caught:
        await run_script([BROKEN["markup"], ECHO, f"Sure: {ECHO}"])
    assert caught.value.code == Code.ANSWER_IS_ECHO
    repeat = assistant(None, tool_call("look", {"what": "a"}))
    warning = "This is the same call with the same arguments for the third time."
    with pytest.raises(RunLimitError) as caught:
        await run_script([repeat, repeat, repeat, warning, warning])
    assert caught.value.code == Code.ANSWER_IS_ECHO


async def test_words_that_nobody_sent_are_no_echo() -> None:
    """A user may ask about them."""
    result = await run_script([ECHO])
    assert result.text == ECHO


async def test_a_call_beside_those_in_the_field_is_noted() -> None:
    """Only the field is read; what the text calls besides is not passed over in silence."""
    both = assistant(LOOK.replace('"a"', '"b"'), tool_call("look", {"what": "a"}))
    same = assistant(LOOK, tool_call("look", {"what": "a"}))
    noted = await run_script([both, FINAL])
    assert [call.arguments for call in noted.trace.turns[0].seen] == [{"what": "b"}]
    plain = await run_script([same, FINAL])
    assert plain.trace.turns[0].seen == ()


async def test_a_forbidden_argument_holds_up_only_tools_with_effects() -> None:
    """A tool that reads runs without it; for one that writes the model is asked, by the schema."""
    first = assistant(
        None,
        tool_call("look", {"what": "a", "foo": 1}),
        tool_call("save", {"text": "b", "foo": 1}, "call_2"),
    )
    again = assistant(None, tool_call("save", {"text": "b"}, "call_3"))
    result = await run_script([first, again, "Done."])
    looked, waited, ran = result.results
    assert (looked.envelope.ok, waited.envelope.ok, ran.envelope.ok) == (True, False, True)
    assert saved == ["b"]
    (error,) = waited.envelope.errors
    assert error.code == "CALL_NOT_CERTAIN"
    assert error.message.startswith('/ has an unknown property "foo"; allowed here: "text".')
    (receipt,) = result.calls[0].receipts
    assert (receipt.rule, receipt.place, receipt.lossless) == ("drop_extra_key", "/foo", False)
