"""Calls of one reply: how many are kept, how they are named, and how they are answered."""

import asyncio
from typing import Any

import pytest

from surecall.base.errors import Code, RunLimitError
from surecall.base.records import Usage
from surecall.models.transport import ScriptedReply, assistant, tool_call
from surecall.tools import tool

from .doors import Door
from .sample_tools import Ledger, call_add, calls_add

TWO_CALLS = assistant(None, call_add(2, 3, id="c1"), call_add(4, 5, id="c2"))


async def test_two_calls_in_one_turn_both_run_and_the_run_continues(
    door: Door, ledger: Ledger
) -> None:
    """Both calls are answered in one further request, and its reply is the result."""
    result = await door.run([TWO_CALLS, "5 and 9"], tools=ledger.tools)

    assert result.text == "5 and 9"
    assert result.turns == 2
    ran = sorted(ledger.ran, key=str)  # they run side by side, so either may be first
    assert ran == [("add", {"a": 2, "b": 3}), ("add", {"a": 4, "b": 5})]
    assert door.roles == ["user", "assistant", "tool", "tool"]
    assert [call["id"] for call in door.messages[1]["tool_calls"]] == ["c1", "c2"]
    assert [message["tool_call_id"] for message in door.messages[2:]] == ["c1", "c2"]
    assert [answer["data"] for answer in door.answers] == [{"sum": 5}, {"sum": 9}]


async def test_clean_arguments_go_back_byte_for_byte(door: Door, ledger: Ledger) -> None:
    """What the model wrote well is repeated to it exactly, and leaves no receipt."""
    written = '{ "b":3,  "a": 2 }'
    result = await door.run([assistant(None, tool_call("add", written)), "5"], tools=ledger.tools)

    assert door.messages[1]["tool_calls"][0]["function"]["arguments"] == written
    assert result.receipts == ()


async def test_text_beside_calls_is_blanked_in_the_history(door: Door, ledger: Ledger) -> None:
    """The text is not sent again; the trace keeps a sample and the whole reply."""
    text = "I will add them. " * 20
    result = await door.run([calls_add(text), "5"], tools=ledger.tools)

    assert door.messages[1]["content"] == ""
    assert result.history[1].content == ""
    turn = result.trace.turns[0]
    assert turn.response_summary is not None
    assert turn.response_summary.assistant_content_stripped is True
    assert turn.response_summary.assistant_content_sample == text[:200]
    assert turn.raw is not None
    assert turn.raw.message["content"] == text


async def test_text_beside_calls_is_kept_on_request(door: Door, ledger: Ledger) -> None:
    """With `keep_content_with_calls` the text stays where it was."""
    result = await door.run(
        [calls_add("I will add them."), "5"], tools=ledger.tools, keep_content_with_calls=True
    )

    assert door.messages[1]["content"] == "I will add them."
    summary = result.trace.turns[0].response_summary
    assert summary is not None
    assert summary.assistant_content_stripped is False


async def test_one_call_is_kept_when_parallel_is_false(door: Door, ledger: Ledger) -> None:
    """The first call runs; the second is neither run nor repeated to the model."""
    await door.run(
        [TWO_CALLS, "5"], tools=ledger.tools, request_overrides={"parallel_tool_calls": False}
    )

    assert door.requests[0]["parallel_tool_calls"] is False
    assert ledger.ran == [("add", {"a": 2, "b": 3})]
    assert [call["id"] for call in door.messages[1]["tool_calls"]] == ["c1"]
    assert door.roles == ["user", "assistant", "tool"]


async def test_ignored_calls_are_counted_and_stay_visible(door: Door, ledger: Ledger) -> None:
    """The trace says how many calls were ignored, and which."""
    result = await door.run(
        [TWO_CALLS, "5"], tools=ledger.tools, request_overrides={"parallel_tool_calls": False}
    )

    turn = result.trace.turns[0]
    assert turn.response_summary is not None
    assert turn.response_summary.tool_calls_count == 1
    assert turn.response_summary.ignored_tool_calls_count == 1
    assert [(c.id, c.name, c.arguments) for c in turn.ignored_calls] == [
        ("c2", "add", {"a": 4, "b": 5})
    ]


async def test_a_turn_keeps_no_more_calls_than_it_may(door: Door, ledger: Ledger) -> None:
    """`max_tool_calls_per_turn` keeps the first calls, whatever parallel says."""
    three = assistant(None, *(call_add(n, n, id=f"c{n}") for n in (1, 2, 3)))
    result = await door.run(
        [three, "done"],
        tools=ledger.tools,
        max_tool_calls_per_turn=2,
        request_overrides={"parallel_tool_calls": False},
    )

    assert [call.id for call in result.calls] == ["c1", "c2"]
    assert [call.id for call in result.trace.turns[0].ignored_calls] == ["c3"]


async def test_space_around_a_name_is_stripped(door: Door, ledger: Ledger) -> None:
    """The tool runs under its own name, and a receipt says what was changed."""
    result = await door.run(
        [assistant(None, tool_call("  add \n", {"a": 2, "b": 3})), "5"], tools=ledger.tools
    )

    assert ledger.names_ran == ["add"]
    assert door.messages[1]["tool_calls"][0]["function"]["name"] == "add"
    assert [(r.rule, r.before, r.after) for r in result.receipts] == [
        ("strip_name", "  add \n", "add")
    ]


async def test_repeated_ids_in_one_turn_become_unique(door: Door, ledger: Ledger) -> None:
    """Each call gets an id of its own, and its answer carries that id."""
    same = assistant(None, *(call_add(n, n, id="dup") for n in (1, 2, 3)))
    result = await door.run([same, "done"], tools=ledger.tools)

    ids = ["dup", "dup__2", "dup__3"]
    assert [call["id"] for call in door.messages[1]["tool_calls"]] == ids
    assert [message["tool_call_id"] for message in door.messages[2:]] == ids
    assert [answer["data"]["sum"] for answer in door.answers] == [2, 4, 6]
    assert [r.rule for r in result.receipts] == ["rename_repeated_id", "rename_repeated_id"]


async def test_blank_ids_are_given_by_position(door: Door, ledger: Ledger) -> None:
    """A call without an id is called by its place."""
    blank = assistant(None, call_add(1, 1, id=""), call_add(2, 2, id="  "))
    result = await door.run([blank, "done"], tools=ledger.tools)

    assert [call.id for call in result.calls] == ["tc_1", "tc_2"]


async def test_ids_stay_unique_over_turns_and_pair_up(door: Door, ledger: Ledger) -> None:
    """No id is used twice in a run, and every call has exactly one answer, right behind it."""
    replies = [assistant(None, call_add(n, n, id="")) for n in range(3)]
    result = await door.run([*replies, "done"], tools=ledger.tools)

    called = [c["id"] for m in door.messages for c in m.get("tool_calls", [])]
    answered = [m["tool_call_id"] for m in door.messages if m["role"] == "tool"]
    assert len(set(called)) == 3
    assert called == answered
    assert door.roles == ["user", *["assistant", "tool"] * 3]
    assert [call.id for call in result.calls] == [res.call_id for res in result.results]


async def test_results_keep_the_order_of_the_calls(door: Door) -> None:
    """Readers run side by side, yet the first call is answered first though it ends last."""
    second_done = asyncio.Event()
    ended: list[str] = []

    @tool(effect="read")
    async def slow() -> str:
        """Wait for the other one."""
        await second_done.wait()
        ended.append("slow")
        return "slow"

    @tool(effect="read")
    async def quick() -> str:
        """Be done at once."""
        ended.append("quick")
        second_done.set()
        return "quick"

    both = assistant(None, tool_call("slow", id="c1"), tool_call("quick", id="c2"))
    await door.run([both, "done"], tools=[slow, quick])

    assert ended == ["quick", "slow"]
    assert [answer["data"] for answer in door.answers] == [{"value": "slow"}, {"value": "quick"}]


async def test_tools_with_effects_run_one_at_a_time_in_order(door: Door) -> None:
    """A call that changes something ends before the next one begins."""
    account: list[str] = []

    @tool(effect="write")
    async def write(name: str) -> None:
        """Change something."""
        account.append(f"begin {name}")
        await asyncio.sleep(0.01)
        account.append(f"end {name}")

    both = assistant(
        None,
        tool_call("write", {"name": "a"}, "c1"),
        tool_call("write", {"name": "b"}, "c2"),
    )
    await door.run([both, "done"], tools=[write])

    assert account == ["begin a", "end a", "begin b", "end b"]


async def test_usage_of_each_turn_is_in_the_trace(door: Door, ledger: Ledger) -> None:
    """Each turn has its own counts, and the result has their sum."""

    def counted(message: Any, given: int, made: int) -> ScriptedReply:
        usage = {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
        }
        return ScriptedReply(message=message, usage=usage)

    result = await door.run([counted(calls_add(), 10, 4), counted("5", 20, 1)], tools=ledger.tools)

    usages = [turn.response_summary and turn.response_summary.usage for turn in result.trace.turns]
    assert usages == [Usage(10, 4, 14), Usage(20, 1, 21)]
    assert result.usage == Usage(30, 5, 35)


async def test_a_turn_without_usage_says_so(door: Door) -> None:
    """Counts that the provider did not send are not made up."""
    result = await door.run(["hello"])

    summary = result.trace.turns[0].response_summary
    assert summary is not None
    assert summary.usage is None
    assert summary.finish_reason == "stop"


async def test_reaching_max_turns_carries_trace_and_history(door: Door, ledger: Ledger) -> None:
    """The error holds every turn and a history in which each call is answered."""
    replies = [assistant(None, call_add(n, n, id=f"c{n}")) for n in range(2)]
    with pytest.raises(RunLimitError) as failure:
        await door.run(replies, tools=ledger.tools, max_turns=2)

    error = failure.value
    assert error.code == Code.MAX_TURNS_REACHED
    assert error.details == {"max_turns": 2}
    assert len(door.requests) == 2
    assert len(error.trace.turns) == 2
    assert error.trace.error.code == Code.MAX_TURNS_REACHED
    assert [m.role for m in error.history] == ["user", *["assistant", "tool"] * 2]
    assert ledger.names_ran == ["add", "add"]


async def test_twelve_turns_are_the_default(door: Door, ledger: Ledger) -> None:
    """Without an option the model is asked twelve times."""
    replies = [assistant(None, call_add(n, n, id=f"c{n}")) for n in range(12)]
    with pytest.raises(RunLimitError) as failure:
        await door.run(replies, tools=ledger.tools)

    assert failure.value.code == Code.MAX_TURNS_REACHED
    assert len(door.requests) == 12


async def test_history_can_be_passed_on(door: Door, ledger: Ledger) -> None:
    """The history of one run begins the next, and the system text is not in it."""
    first = await door.run([calls_add(), "5"], tools=ledger.tools, system="Be brief.")
    await door.run(
        ["as I said, 5"], "Again?", tools=ledger.tools, system="Be brief.", history=first.history
    )

    assert door.roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [message.role for message in first.history] == ["user", "assistant", "tool", "assistant"]
