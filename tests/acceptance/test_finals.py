"""When a run is over: the empty answer, and what each mode demands."""

from typing import Any

import pytest

from support.workspace import Workspace
from surecall.base.errors import (
    Code,
    ProviderStatusError,
    RequestError,
    RunLimitError,
    ToolUseError,
)
from surecall.base.records import FixEmptyFinal
from surecall.loop import Options
from surecall.models.config import Config
from surecall.models.transport import ScriptedReply, assistant, tool_call

from .doors import Door
from .sample_tools import Ledger, call_add, calls_add

REFUSED = ScriptedReply(status=400, message="tools are not supported")


@pytest.mark.parametrize("empty", ["", " \n", None], ids=["empty", "space", "null"])
async def test_an_empty_answer_is_asked_for_once_more_without_tools(
    door: Door, ledger: Ledger, empty: str | None
) -> None:
    """The model is asked in plain words, with nothing to call."""
    result = await door.run([calls_add(), assistant(empty), "5"], tools=ledger.tools)

    assert result.text == "5"
    assert "tools" in door.requests[1]
    assert not {"tools", "tool_choice"} & door.requests[2].keys()
    assert door.messages[-1] == {"role": "user", "content": Options().fix_empty_final_user_text}


async def test_the_empty_answer_itself_is_not_kept(door: Door, ledger: Ledger) -> None:
    """Only the request for the answer enters the history, so that no provider refuses it."""
    result = await door.run([calls_add(), "", "5"], tools=ledger.tools)

    assert door.roles == ["user", "assistant", "tool", "user"]
    roles = [message.role for message in result.history]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    assert result.turns == 3


async def test_an_empty_answer_can_be_asked_for_in_own_words_and_with_tools(
    door: Door, ledger: Ledger
) -> None:
    """The text is the application's, the tools stay, and the model may call again."""
    events: list[Any] = []
    result = await door.run(
        [calls_add(), "", assistant(None, call_add(4, 5, id="c2")), "9"],
        tools=ledger.tools,
        fix_empty_final_user_text="Say it, please.",
        fix_empty_final_disable_tools=False,
        on_event=events.append,
    )

    assert result.text == "9"
    assert door.requests[2]["messages"][-1] == {"role": "user", "content": "Say it, please."}
    assert "tools" in door.requests[2]
    assert ledger.names_ran == ["add", "add"]
    asked = [event for event in events if isinstance(event, FixEmptyFinal)]
    assert [(e.disable_tools, e.user_text_bytes) for e in asked] == [(False, 15)]


async def test_an_empty_answer_is_asked_for_only_once(door: Door, ledger: Ledger) -> None:
    """A second empty answer is the answer."""
    result = await door.run([calls_add(), "", ""], tools=ledger.tools)

    assert result.text == ""
    assert result.turns == 3


async def test_asking_again_costs_a_turn(door: Door, ledger: Ledger) -> None:
    """On the last turn an empty answer ends the run at its limit."""
    with pytest.raises(RunLimitError) as failure:
        await door.run([calls_add(), ""], tools=ledger.tools, max_turns=2)

    assert failure.value.code == Code.MAX_TURNS_REACHED
    assert len(failure.value.trace.turns) == 2


async def test_an_empty_answer_without_calls_is_the_answer(door: Door, ledger: Ledger) -> None:
    """A model that used no tool is not asked again."""
    result = await door.run([""], tools=ledger.tools)

    assert result.text == ""


async def test_asking_again_can_be_switched_off(door: Door, ledger: Ledger) -> None:
    """Without the option an empty answer is the answer."""
    result = await door.run([calls_add(), ""], tools=ledger.tools, fix_empty_final=False)

    assert result.text == ""


async def test_disabled_by_argument_sends_no_tools(door: Door, ledger: Ledger) -> None:
    """Calls that come anyway are counted and not run; the text is the answer."""
    result = await door.run([calls_add("Hello.")], tools=ledger.tools, tool_use_mode="disabled")

    assert not {"tools", "tool_choice"} & door.requests[0].keys()
    assert result.text == "Hello."
    assert ledger.ran == []
    summary = result.trace.turns[0].response_summary
    assert summary is not None
    assert (summary.tool_calls_count, summary.ignored_tool_calls_count) == (0, 1)


async def test_disabled_by_config_sends_no_tools(door: Door, ledger: Ledger) -> None:
    """The configuration can switch tools off, and the trace says that it did."""
    result = await door.run(
        ["Hello."],
        tools=ledger.tools,
        config=Config(
            options={"tool_use_mode": "disabled"},
            origins={"options.tool_use_mode": "surecall.toml: options.tool_use_mode"},
        ),
    )

    assert "tools" not in door.requests[0]
    assert result.trace.origins["tool_use_mode"] == "surecall.toml: options.tool_use_mode"


async def test_an_argument_beats_the_config(door: Door, ledger: Ledger) -> None:
    """What the caller says wins."""
    result = await door.run(
        [calls_add(), "5"],
        tools=ledger.tools,
        tool_use_mode="relaxed",
        config=Config(options={"tool_use_mode": "disabled"}),
    )

    assert "tools" in door.requests[0]
    assert result.trace.origins["tool_use_mode"] == "caller"


async def test_enforced_without_calls_is_an_error(door: Door, ledger: Ledger) -> None:
    """An answer without any call is refused, with trace and history."""
    with pytest.raises(ToolUseError) as failure:
        await door.run(["I know it: 5."], tools=ledger.tools, tool_use_mode="enforced")

    error = failure.value
    assert error.code == Code.NO_TOOL_CALLS
    assert [message.role for message in error.history] == ["user", "assistant"]
    assert error.history[1].content == "I know it: 5."
    assert len(error.trace.turns) == 1


async def test_enforced_without_tools_is_refused_at_once(door: Door) -> None:
    """A demand that cannot be met is not sent."""
    with pytest.raises(RequestError) as failure:
        await door.run([], tool_use_mode="enforced")

    assert failure.value.code == Code.INVALID_OPTION
    assert door.requests == []


async def test_enforced_and_fatal_with_a_failed_tool_is_an_error(
    door: Door, ledger: Ledger
) -> None:
    """A tool whose last call failed ends the run; the error names it."""
    both = assistant(None, call_add(), tool_call("fail", id="c2"))
    with pytest.raises(ToolUseError) as failure:
        await door.run([both, "5"], tools=ledger.tools, tool_use_mode="enforced")

    error = failure.value
    assert error.code == Code.TOOL_ERROR
    assert error.details == {"failed_tools": ["fail"]}
    assert error.trace.turns[0].tool_results[1].error_codes == ("INTERNAL_ERROR",)
    assert error.history[-1].content == "5"


async def test_fatal_looks_at_the_last_result_of_each_tool(door: Door, ledger: Ledger) -> None:
    """A tool that failed and then succeeded is fine."""
    replies = [
        assistant(None, tool_call("add", "what?", "c1")),
        assistant(None, call_add(id="c2")),
        "5",
    ]
    result = await door.run(replies, tools=ledger.tools, tool_use_mode="enforced")

    assert [r.ok for r in result.results] == [False, True]
    assert result.text == "5"


async def test_fatal_counts_a_dotted_name_as_its_tool(door: Door) -> None:
    """A failure under a dotted name is forgotten when the tool itself succeeds."""
    replies = [
        assistant(None, tool_call("state.get", "what?", "c1")),
        assistant(None, tool_call("state_get", {}, "c2")),
        "done",
    ]
    result = await door.run(replies, tools=Workspace().tools, tool_use_mode="enforced")

    assert [r.name for r in result.results] == ["state_get", "state_get"]


async def test_tolerated_with_one_success_is_an_answer(door: Door, ledger: Ledger) -> None:
    """One success is enough, whatever failed in the turns after it."""
    result = await door.run(
        [calls_add(), assistant(None, tool_call("fail", id="c2")), "5"],
        tools=ledger.tools,
        tool_use_mode="enforced",
        tool_failure_policy="tolerated",
    )

    assert result.text == "5"
    assert [r.ok for r in result.results] == [True, False]


async def test_tolerated_without_any_success_is_an_error(door: Door, ledger: Ledger) -> None:
    """When nothing worked, the answer does not count."""
    with pytest.raises(ToolUseError) as failure:
        await door.run(
            [assistant(None, tool_call("fail")), "5"],
            tools=ledger.tools,
            tool_use_mode="enforced",
            tool_failure_policy="tolerated",
        )

    assert failure.value.code == Code.TOOL_ERROR


async def test_relaxed_without_calls_is_an_answer(door: Door, ledger: Ledger) -> None:
    """Tools may be used, and need not be; this is the default."""
    result = await door.run(["I know it: 5."], tools=ledger.tools)

    assert result.text == "I know it: 5."
    assert result.trace.options.tool_use_mode == "relaxed"
    assert result.trace.options.tool_failure_policy == "fatal"


async def test_relaxed_with_failed_tools_is_an_answer(door: Door, ledger: Ledger) -> None:
    """Failures do not end a relaxed run."""
    result = await door.run([assistant(None, tool_call("fail")), "It failed."], tools=ledger.tools)

    assert result.text == "It failed."


@pytest.mark.parametrize("preset", ["auto", "openai", "openrouter", "content_tag_fallback"])
async def test_no_preset_makes_a_relaxed_run_enforced(
    door: Door, ledger: Ledger, preset: str
) -> None:
    """Presets set only what they name."""
    result = await door.run(["Hello."], tools=ledger.tools, preset=preset)

    assert result.trace.options.tool_use_mode == "relaxed"


async def test_a_refused_request_is_sent_again_without_tools(door: Door, ledger: Ledger) -> None:
    """In relaxed mode HTTP 400 is answered by the same turn without tools."""
    result = await door.run([REFUSED, "Hello."], tools=ledger.tools, fallback_retry_count=1)

    assert result.text == "Hello."
    assert "tools" in door.requests[0]
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & door.requests[1].keys()
    assert door.requests[0]["messages"] == door.requests[1]["messages"]
    assert result.turns == 1
    failures = result.trace.turns[0].failures
    assert [(f.code, f.status, f.tools_enabled) for f in failures] == [
        (Code.BAD_REQUEST, 400, True)
    ]


async def test_each_turn_has_its_own_retries(door: Door, ledger: Ledger) -> None:
    """A retry in a later turn is not counted against an earlier one, and tools come back."""
    result = await door.run(
        [calls_add(), REFUSED, "", REFUSED, "5"],
        tools=ledger.tools,
        fallback_retry_count=1,
        fix_empty_final_disable_tools=False,
    )

    assert result.text == "5"
    assert ["tools" in body for body in door.requests] == [True, True, False, True, False]
    assert result.turns == 3


async def test_retries_come_to_an_end(door: Door, ledger: Ledger) -> None:
    """When the request without tools is refused too, the error carries what happened."""
    with pytest.raises(ProviderStatusError) as failure:
        await door.run([REFUSED, REFUSED], tools=ledger.tools, fallback_retry_count=1)

    error = failure.value
    assert (error.code, error.status) == (Code.BAD_REQUEST, 400)
    assert len(door.requests) == 2
    assert [f.tools_enabled for f in error.trace.turns[0].failures] == [True, False]
    assert [message.role for message in error.history] == ["user"]


async def test_without_retries_the_error_is_raised(door: Door, ledger: Ledger) -> None:
    """By default nothing is sent twice."""
    with pytest.raises(ProviderStatusError) as failure:
        await door.run([REFUSED], tools=ledger.tools)

    assert failure.value.provider_message == "tools are not supported"
    assert len(door.requests) == 1


async def test_enforced_mode_never_gives_up_its_tools(door: Door, ledger: Ledger) -> None:
    """A retry without tools could not meet the demand, so there is none."""
    with pytest.raises(ProviderStatusError):
        await door.run(
            [REFUSED], tools=ledger.tools, tool_use_mode="enforced", fallback_retry_count=3
        )

    assert len(door.requests) == 1


async def test_the_trace_of_a_failed_request_counts_the_system_text(
    door: Door, ledger: Ledger
) -> None:
    """The summary of a request that got no reply has the numbers of what was sent."""
    with pytest.raises(ProviderStatusError) as failure:
        await door.run([REFUSED], tools=ledger.tools, system="Be brief.")

    summary = failure.value.trace.turns[0].request
    assert summary.messages_count == len(door.messages) == 2
    assert summary.tools_count == 3
