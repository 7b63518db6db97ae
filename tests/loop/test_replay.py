"""A recorded run, decided again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.base.records import ErrorDetail, Receipt, ToolCall
from surecall.loop import Options, Trace, load_trace, replay_trace, resend_turn, save_trace
from surecall.models.transport import ScriptedReply, ScriptedTransport

from .toolbox import assistant, run_script, saved, tool_call

REFUSED = ScriptedReply(status=400, message="no tools")
CALL = assistant("x", tool_call("save", {"text": "a"}), tool_call("look", "{", "call_2"))


async def trace_of(replies: list[Any], **arguments: Any) -> Trace:
    """Run a script and return its trace, also when the run fails."""
    try:
        return (await run_script(replies, **arguments)).trace
    except SurecallError as error:
        trace: Trace = error.trace  # type: ignore[attr-defined] - on every error of a run
        return trace


SCRIPTS = [
    pytest.param(["done"], {}, "", "done", id="answer"),
    pytest.param([CALL, "done"], {}, "", "done", id="calls"),
    pytest.param([CALL, "", "late"], {}, "", "late", id="empty final"),
    pytest.param([REFUSED, "x"], {"fallback_retry_count": 1}, "", "x", id="fallback"),
    pytest.param([CALL] * 2, {"max_turns": 2}, "MAX_TURNS_REACHED", None, id="max turns"),
    pytest.param([CALL], {"max_tool_calls": 1}, "CALL_BUDGET_EXCEEDED", None, id="budget"),
    pytest.param(["x"], {"tool_use_mode": "enforced"}, "NO_TOOL_CALLS", None, id="enforced"),
    pytest.param([CALL, REFUSED], {}, "BAD_REQUEST", None, id="provider error"),
    pytest.param(
        [assistant(None, tool_call("look"))] * 4, {}, "REPEATED_CALL", None, id="repeated"
    ),
]


@pytest.mark.parametrize(("replies", "options", "code", "text"), SCRIPTS)
async def test_a_run_decided_again_comes_out_the_same(
    replies: list[Any], options: dict[str, Any], code: str, text: str | None, tmp_path: Path
) -> None:
    """From the saved trace alone: same decisions, same end, and no tool is run."""
    trace = await trace_of(replies, **options)
    save_trace(trace, tmp_path / "trace.json")
    before = list(saved)
    replay = replay_trace(load_trace(tmp_path / "trace.json"))
    assert (replay.same, replay.differences) == (True, ())
    assert (replay.code, replay.text, replay.turns) == (code, text, len(trace.turns))
    assert replay.fingerprint == trace.fingerprint
    assert saved == before


async def test_a_changed_option_is_found() -> None:
    """The fingerprint differs, and so does the end."""
    trace = await trace_of([CALL, "done"])
    replay = replay_trace(replace(trace, options=Options(max_turns=1)))
    assert replay.same is False
    assert any("fingerprint" in text for text in replay.differences)
    assert "the run ended before turn 1, which is recorded" in replay.differences
    assert any("MAX_TURNS_REACHED" in text for text in replay.differences)


async def test_a_changed_reply_is_found() -> None:
    """Other calls than the recorded ones are told with their turn."""
    trace = await trace_of([CALL, "done"])
    first = trace.turns[0]
    assert first.raw is not None
    raw = replace(first.raw, message=assistant(None, tool_call("look")))
    changed = replace(trace, turns=(replace(first, raw=raw), *trace.turns[1:]))
    replay = replay_trace(changed)
    assert replay.differences == ("turn 0: other calls were accepted than recorded",)


def _in_first_turn(**fields: Any) -> Callable[[Trace], Trace]:
    def change(trace: Trace) -> Trace:
        return replace(trace, turns=(replace(trace.turns[0], **fields), *trace.turns[1:]))

    return change


def _with_result(**fields: Any) -> Callable[[Trace], Trace]:
    def change(trace: Trace) -> Trace:
        first, *rest = trace.turns[0].results
        return _in_first_turn(results=(replace(first, **fields), *rest))(trace)

    return change


def _without_receipts(trace: Trace) -> Trace:
    calls = tuple(replace(call, receipts=()) for call in trace.turns[0].calls)
    return _in_first_turn(calls=calls)(trace)


def _refused_one_ran(trace: Trace) -> Trace:
    first, second = trace.turns[0].results
    return _in_first_turn(results=(first, replace(second, executed=True)))(trace)


CHANGES: list[Any] = [
    pytest.param(lambda trace: replace(trace, answer="no"), "another answer", id="answer"),
    pytest.param(_with_result(text="{}"), "shows another text", id="text of a result"),
    pytest.param(_with_result(text="no"), "shows another text", id="text that is not JSON"),
    pytest.param(_with_result(call_id="x"), "not those of the calls", id="result of no call"),
    pytest.param(_in_first_turn(results=()), "have no results", id="no results"),
    pytest.param(_refused_one_ran, "the call is refused", id="refused call that ran"),
    pytest.param(_without_receipts, "the calls have other receipts", id="receipts of calls"),
    pytest.param(
        _in_first_turn(receipts=(Receipt("x", "", 1, 2),)), "the reply has other", id="receipts"
    ),
    pytest.param(
        _in_first_turn(ignored_calls=(ToolCall(id="i", name="look", arguments={}),)),
        "other calls were ignored",
        id="ignored calls",
    ),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
async def test_a_record_that_was_changed_is_found(
    change: Callable[[Trace], Trace], words: str
) -> None:
    """The answer, the results and the receipts are compared as well as the calls."""
    fenced = tool_call("save", '```json\n{"text": "a"}\n```')
    trace = await trace_of([assistant("x", fenced, tool_call("look", "{", "call_2")), "done"])
    assert replay_trace(trace).same
    (difference, *_) = replay_trace(change(trace)).differences
    assert words in difference


async def test_sending_again_ignores_what_the_run_ignored() -> None:
    """The limit on calls holds for the new reply as it held for the recorded one."""
    options = {"max_tool_calls_per_turn": 1}
    trace = await trace_of([CALL, "done"], **options)
    assert len(trace.turns[0].ignored_calls) == 1
    assert replay_trace(trace).same
    resent = await resend_turn(trace, 0, ScriptedTransport([CALL]))
    assert resent.accepted.calls == trace.turns[0].calls
    assert resent.accepted.ignored == trace.turns[0].ignored_calls


async def test_a_changed_end_is_found() -> None:
    """A trace that claims another end than its replies lead to is not the same."""
    trace = await trace_of([CALL, "done"], max_tool_calls=2)
    changed = replace(trace, error=ErrorDetail("MAX_TURNS_REACHED", "no"))
    assert replay_trace(changed).differences == (
        "the run ended with an answer, recorded is MAX_TURNS_REACHED",
    )


async def test_a_turn_can_be_sent_again() -> None:
    """The request is the recorded one, the answer is new, and no tool is run."""
    transport = ScriptedTransport([CALL, "done"])
    trace = await trace_of([], transport=transport)
    before = list(saved)
    again = ScriptedTransport(["something else"])
    resent = await resend_turn(trace, 1, again)
    assert again.requests[0].body == transport.requests[1].body
    assert resent.reading.content == "something else"
    assert resent.recorded.turn == 1
    assert len(resent.request.messages) == 4
    assert saved == before


async def test_a_turn_after_a_refusal_is_sent_again_with_tools() -> None:
    """The request of a turn is the first one that was made in it."""
    transport = ScriptedTransport([REFUSED, "done"])
    trace = await trace_of([], transport=transport, fallback_retry_count=1)
    again = ScriptedTransport(["x"])
    await resend_turn(trace, 0, again)
    assert again.requests[0].body == transport.requests[0].body


@pytest.mark.parametrize("turn", [-1, 1, 99])
async def test_a_turn_that_is_not_there_is_refused(turn: int) -> None:
    """The error tells which turns there are."""
    trace = await trace_of(["done"])
    with pytest.raises(ConfigError) as caught:
        await resend_turn(trace, turn, ScriptedTransport([]))
    assert caught.value.code == Code.INVALID_OPTION


async def test_calls_that_were_only_seen_are_compared() -> None:
    """Another call in the text than the one recorded is found."""
    trace = await trace_of(['I will use it.\nsave(text="a")'], likely_calls="never")
    turn = trace.turns[0]
    assert [call.arguments for call in turn.seen] == [{"text": "a"}]
    other = replace(turn, seen=(replace(turn.seen[0], arguments={"text": "b"}),))
    changed = replay_trace(replace(trace, turns=(other,)))
    assert changed.differences == ("turn 0: other calls were seen in the text than recorded",)
    assert replay_trace(trace).same
