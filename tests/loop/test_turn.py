"""Every rule of the loop, decided without I/O."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    ProviderStatusError,
    ProviderTimeoutError,
)
from surecall.base.records import (
    CallRepeated,
    Defect,
    Final,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    Reading,
    ToolCall,
    Usage,
)
from surecall.loop.steps import (
    Accepted,
    AskModel,
    CallsFinished,
    Emit,
    Fail,
    Finish,
    Replied,
    RequestFailed,
    Reraise,
    RunCalls,
    RunState,
)
from surecall.loop.turn import begin, next_step

from .builders import READ, call_of, plan_of, replied, result_of, state_of

TWO = (call_of(call_id="c1"), call_of(call_id="c2", n=2))
FAILED = {"look": False, "save": True}


def fail_of(effects: tuple[Any, ...]) -> Fail:
    """Return the failure among the effects."""
    found = [effect for effect in effects if isinstance(effect, Fail)]
    assert len(found) == 1
    return found[0]


# beginning


def test_a_run_begins_by_asking_the_model() -> None:
    """The first effect is a request with the messages of the plan, tools on."""
    plan = plan_of(fallback_retry_count=2)
    step = begin(plan)
    assert step.effects == (AskModel(),)
    assert step.state == RunState(history=plan.messages, tools_enabled=True, retries_left=2)


@pytest.mark.parametrize(
    ("tools", "mode", "enabled"),
    [
        pytest.param((READ,), "relaxed", True, id="relaxed"),
        pytest.param((READ,), "enforced", True, id="enforced"),
        pytest.param((READ,), "disabled", False, id="disabled"),
        pytest.param((), "relaxed", False, id="no tools"),
    ],
)
def test_tools_are_sent_only_when_there_are_some_and_they_are_allowed(
    tools: Any, mode: str, enabled: bool
) -> None:
    """Whether tools are on from the start follows from the mode and the tools."""
    assert begin(plan_of(tools=tools, tool_use_mode=mode)).state.tools_enabled is enabled


def test_ids_of_the_given_history_are_taken() -> None:
    """A later call may not be given an id that the history uses already."""
    plan = plan_of()
    call = call_of(call_id="old")
    messages = (Message("assistant", "", (call,)), Message("tool", "{}", tool_call_id="old"))
    assert begin(replace(plan, messages=messages)).state.used_ids == {"old"}


# which calls are accepted


@dataclass(frozen=True)
class Cap:
    """How many of three calls are accepted."""

    id: str
    accepted: int
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    tools_enabled: bool = True


CAPS = [
    Cap("no limit", 3),
    Cap("limit of two", 2, {"max_tool_calls_per_turn": 2}),
    Cap("limit above", 3, {"max_tool_calls_per_turn": 9}),
    Cap("parallel off", 1, {"request_overrides": {"parallel_tool_calls": False}}),
    Cap("parallel on", 3, {"request_overrides": {"parallel_tool_calls": True}}),
    Cap(
        "limit wins over parallel",
        2,
        {
            "max_tool_calls_per_turn": 2,
            "request_overrides": {"parallel_tool_calls": False},
        },
    ),
    Cap("tools are off", 0, tools_enabled=False),
    Cap("tools are off whatever the limit", 0, {"max_tool_calls_per_turn": 2}, False),
]


@pytest.mark.parametrize("case", CAPS, ids=lambda case: case.id)
def test_calls_beyond_the_cap_are_ignored_and_kept_on_record(case: Cap) -> None:
    """The first calls are accepted, the others listed as ignored and left out of the history."""
    calls = tuple(call_of(call_id=f"c{number}", n=number) for number in range(3))
    state = state_of(tools_enabled=case.tools_enabled)
    step = next_step(state, replied(*calls, content="x"), plan_of(**case.options))
    assert step.accepted is not None
    assert step.accepted.calls == calls[: case.accepted]
    assert step.accepted.ignored == calls[case.accepted :]
    assert step.state.history[-1].tool_calls == calls[: case.accepted]
    assert step.state.calls_seen == case.accepted
    assert step.state.used_ids == {call.id for call in calls[: case.accepted]}


def test_calls_while_tools_are_off_leave_the_text_as_the_answer() -> None:
    """A model that calls a tool it was not sent has answered with its text."""
    step = next_step(state_of(tools_enabled=False), replied(*TWO, content="so"), plan_of())
    assert step.effects[-1] == Finish("so")
    assert step.accepted is not None
    assert (step.accepted.calls, step.accepted.ignored) == ((), TWO)
    why = "0 of 2 calls were accepted: no tool may be called in this turn."
    assert step.accepted.defects == (Defect(Code.CALLS_IGNORED, why, "/tool_calls"),)
    assert [receipt.rule for receipt in step.accepted.receipts] == ["drop_parallel_calls"]


def test_a_reply_has_a_limit_of_calls_unless_it_is_lifted() -> None:
    """Nothing sensible makes more than 128 calls at once; with `None` all are accepted."""
    calls = tuple(call_of(call_id=f"c{number}", n=number) for number in range(500))
    for options, accepted in (({}, 128), ({"max_tool_calls_per_turn": None}, 500)):
        step = next_step(state_of(), replied(*calls), plan_of(**options))
        assert step.accepted is not None
        assert len(step.accepted.calls) == accepted
        assert step.accepted.ignored == calls[accepted:]


def test_the_model_is_told_which_calls_were_not_accepted() -> None:
    """The ignored calls are not in the history, so the last result says that they were made."""
    calls = tuple(call_of(call_id=f"c{number}", n=number) for number in range(3))
    step = next_step(state_of(), replied(*calls), plan_of(max_tool_calls_per_turn=2))
    told = (
        "Your reply had 3 calls; only the first 2 were accepted. "
        "Make the others again in your next reply if you still need them."
    )
    assert step.effects == (RunCalls(calls[:2], {"c1": told}),)
    assert step.accepted is not None
    assert [defect.code for defect in step.accepted.defects] == ["CALLS_IGNORED"]


# content beside calls


def test_text_beside_calls_is_left_out_of_the_history_with_a_sample() -> None:
    """The history gets the calls without the text; the sample is at most 200 characters."""
    step = next_step(state_of(), replied(*TWO, content="y" * 300), plan_of())
    assert step.state.history[-1] == Message("assistant", "", TWO)
    assert step.accepted == Accepted(TWO, (), "y" * 200)


def test_text_beside_calls_is_kept_on_demand() -> None:
    """With `keep_content_with_calls` nothing is stripped, so there is no sample."""
    plan = plan_of(keep_content_with_calls=True)
    step = next_step(state_of(), replied(*TWO, content="why"), plan)
    assert step.state.history[-1] == Message("assistant", "why", TWO)
    assert step.accepted == Accepted(TWO, (), None)


def test_blank_text_beside_calls_is_no_stripped_content() -> None:
    """Space beside calls is dropped without a word."""
    step = next_step(state_of(), replied(*TWO, content=" \n"), plan_of())
    assert step.accepted == Accepted(TWO, (), None)


def test_fields_to_echo_go_into_the_history_with_the_calls() -> None:
    """Reasoning fields travel back with the message that carried the calls."""
    happened = Replied(Reading(calls=TWO), None, {"reasoning_content": "r"})
    step = next_step(state_of(), happened, plan_of())
    assert step.state.history[-1].extra == {"reasoning_content": "r"}


# ending with an answer


def test_text_ends_the_run() -> None:
    """An answer without calls is the final one; listeners are told before the end."""
    state = state_of(calls_seen=2, any_success=True, calls_run=2)
    step = next_step(state, replied(content="größe"), plan_of())
    assert step.effects == (
        Emit(
            Final(assistant_content_bytes=7, any_tool_calls_seen=True, any_tool_success_seen=True)
        ),
        Finish("größe"),
    )
    assert step.state.history[-1] == Message("assistant", "größe")


def test_usage_is_summed_over_replies() -> None:
    """Every reply adds its counts; one without counts adds nothing."""
    first = Usage(1, 2, 3, 4, 5)
    state = state_of(usage=first)
    reading = Reading(content="x")
    assert next_step(state, Replied(reading, first), plan_of()).state.usage == Usage(2, 4, 6, 8, 10)
    assert next_step(state, Replied(reading, None), plan_of()).state.usage == first


# the empty final answer


@dataclass(frozen=True)
class Empty:
    """An answer without calls, and whether it is asked for again."""

    id: str
    again: bool
    content: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    state: dict[str, Any] = field(default_factory=lambda: {"calls_run": 1, "calls_seen": 1})


EMPTIES = [
    Empty("empty after tools", again=True),
    Empty("blank after tools", again=True, content=" \n\t"),
    Empty("text after tools", again=False, content="x"),
    Empty("empty without tools", again=False, state={}),
    Empty("switched off", again=False, options={"fix_empty_final": False}),
    Empty(
        "tried before",
        again=False,
        state={"calls_run": 1, "calls_seen": 1, "empty_final_tried": True},
    ),
    Empty("disabled mode", again=False, options={"tool_use_mode": "disabled"}),
    Empty("enforced mode", again=True, options={"tool_use_mode": "enforced"}),
]


@pytest.mark.parametrize("case", EMPTIES, ids=lambda case: case.id)
def test_an_empty_final_answer_is_asked_for_once(case: Empty) -> None:
    """Only after tools were used, only once, and unless it is switched off."""
    step = next_step(state_of(**case.state), replied(content=case.content), plan_of(**case.options))
    assert (AskModel() in step.effects) is case.again
    assert any(isinstance(effect, Finish) for effect in step.effects) is not case.again
    assert step.accepted is not None
    codes = [defect.code for defect in step.accepted.defects]
    is_final = not (case.again or case.content)
    assert codes == ([Code.ANSWER_EMPTY] if is_final else [])


@pytest.mark.parametrize("disable", [True, False])
def test_asking_again_says_so_and_takes_a_turn(disable: bool) -> None:
    """The user's text is added, tools go off unless told otherwise, and a turn is used."""
    plan = plan_of(fix_empty_final_user_text="né?", fix_empty_final_disable_tools=disable)
    step = next_step(state_of(calls_run=1), replied(), plan)
    assert step.effects == (
        Emit(FixEmptyFinal(disable_tools=disable, user_text_bytes=4)),
        AskModel(),
    )
    assert step.state.history[-1] == Message("user", "né?")
    assert step.state.turn == 1
    assert step.state.empty_final_tried is True
    assert step.state.tools_enabled is not disable


def test_tools_come_back_after_a_turn_with_calls() -> None:
    """Results of calls switch tools on again for the next turn."""
    state = state_of(tools_enabled=False)
    assert next_step(state, CallsFinished((result_of(),)), plan_of()).state.tools_enabled is True


def test_asking_again_in_the_last_turn_ends_at_the_limit() -> None:
    """There is no turn left for the repair."""
    step = next_step(state_of(calls_run=1, turn=2), replied(), plan_of(max_turns=3))
    assert fail_of(step.effects).code == Code.MAX_TURNS_REACHED


# enforced tool use


@dataclass(frozen=True)
class Use:
    """What was done with tools, and the code an answer then ends with."""

    id: str
    code: str = ""
    policy: str = "fatal"
    calls_seen: int = 1
    any_success: bool = True
    last_ok: dict[str, bool] = field(default_factory=dict[str, bool])
    failed: list[str] | None = None


USES = [
    Use("no call", Code.NO_TOOL_CALLS, calls_seen=0, any_success=False),
    Use("no call, tolerated", Code.NO_TOOL_CALLS, "tolerated", calls_seen=0, any_success=False),
    Use("all good", last_ok={"look": True}),
    Use("one tool failed last", Code.TOOL_ERROR, last_ok=FAILED, failed=["look"]),
    Use("one tool failed last, tolerated", policy="tolerated", last_ok=FAILED),
    Use(
        "nothing succeeded, tolerated",
        Code.TOOL_ERROR,
        "tolerated",
        any_success=False,
        last_ok={"b": False, "a": False},
        failed=["a", "b"],
    ),
]


@pytest.mark.parametrize("case", USES, ids=lambda case: case.id)
def test_enforced_mode_demands_tool_use(case: Use) -> None:
    """The answer counts only when tools were used as the policy says."""
    state = state_of(calls_seen=case.calls_seen, any_success=case.any_success, last_ok=case.last_ok)
    plan = plan_of(tool_use_mode="enforced", tool_failure_policy=case.policy)
    step = next_step(state, replied(content="done"), plan)
    if not case.code:
        assert step.effects[-1] == Finish("done")
        return
    fail = fail_of(step.effects)
    assert fail.code == case.code
    assert fail.details.get("failed_tools") == case.failed


@pytest.mark.parametrize("mode", ["relaxed", "disabled"])
def test_other_modes_demand_nothing(mode: str) -> None:
    """Failed or missing calls do not matter outside enforced mode."""
    state = state_of(calls_seen=1, last_ok={"look": False})
    assert next_step(state, replied(content="x"), plan_of(tool_use_mode=mode)).effects[
        -1
    ] == Finish("x")


def test_a_later_success_of_a_tool_counts() -> None:
    """Per tool name the last result is remembered."""
    failed, good = result_of(ok=False), result_of()
    state = next_step(state_of(), CallsFinished((failed,)), plan_of()).state
    assert (state.last_ok, state.any_success) == ({"look": False}, False)
    state = next_step(state, CallsFinished((failed, good)), plan_of()).state
    assert (state.last_ok, state.any_success) == ({"look": True}, True)


# failed requests


def provider_error(kind: type[ProviderError] = ProviderStatusError) -> ProviderError:
    """Return a refusal of the provider."""
    return kind(Code.BAD_REQUEST, "no tools here", status=400)


@dataclass(frozen=True)
class Refused:
    """A failed request, and whether it is sent again without tools."""

    id: str
    again: bool
    kind: type[ProviderError] = ProviderStatusError
    mode: str = "relaxed"
    count: int = 1


REFUSALS = [
    Refused("status in relaxed mode", again=True),
    Refused("no retries", again=False, count=0),
    Refused("enforced mode", again=False, mode="enforced"),
    Refused("disabled mode", again=False, mode="disabled"),
    Refused("connection", again=False, kind=ProviderConnectionError),
    Refused("timeout", again=False, kind=ProviderTimeoutError),
    Refused("not a reply", again=False, kind=ProviderReplyError),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_refused_request_is_sent_again_without_tools(case: Refused) -> None:
    """Only an error status, only in relaxed mode, and only as often as allowed."""
    plan = plan_of(fallback_retry_count=case.count, tool_use_mode=case.mode)
    error = provider_error(case.kind)
    state = begin(plan).state
    step = next_step(state, RequestFailed(error), plan)
    if not case.again:
        assert step.effects == (Reraise(error),)
        assert step.state == state
        return
    retried = ModelRequestRetried(tools_enabled=False, request_attempts_left=0)
    assert step.effects == (Emit(retried), AskModel())
    assert step.state.tools_enabled is False
    assert step.state.turn == state.turn
    assert next_step(step.state, RequestFailed(error), plan).effects == (Reraise(error),)


def test_retries_are_counted_per_turn() -> None:
    """The next turn has its retries back."""
    plan = plan_of(fallback_retry_count=2)
    state = state_of(retries_left=0, tools_enabled=False)
    assert next_step(state, CallsFinished((result_of(),)), plan).state.retries_left == 2


# limits


@pytest.mark.parametrize(("turn", "ends"), [(0, False), (1, False), (2, True)])
def test_the_model_is_asked_at_most_max_turns_times(turn: int, ends: bool) -> None:
    """Results in the last turn end the run; they are in its history."""
    step = next_step(state_of(turn=turn), CallsFinished((result_of(),)), plan_of(max_turns=3))
    assert step.state.history[-1] == Message("tool", "look True", tool_call_id="c1")
    if ends:
        fail = fail_of(step.effects)
        assert (fail.code, fail.details) == (Code.MAX_TURNS_REACHED, {"max_turns": 3})
    else:
        assert step.effects == (AskModel(),)
        assert step.state.turn == turn + 1


@dataclass(frozen=True)
class Budget:
    """A budget, what was used, and whether two more calls end the run."""

    id: str
    code: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    calls_run: int = 0
    tokens: int = 0


BUDGETS = [
    Budget("no budget", calls_run=10_000, tokens=10_000_000),
    Budget("calls just fit", options={"max_tool_calls": 4}, calls_run=2),
    Budget("one call too many", Code.CALL_BUDGET_EXCEEDED, {"max_tool_calls": 3}, calls_run=2),
    Budget("first reply too many", Code.CALL_BUDGET_EXCEEDED, {"max_tool_calls": 1}),
    Budget("tokens just fit", options={"max_run_tokens": 100}, tokens=100),
    Budget("one token too many", Code.TOKEN_BUDGET_EXCEEDED, {"max_run_tokens": 99}, tokens=100),
]


@pytest.mark.parametrize("case", BUDGETS, ids=lambda case: case.id)
def test_a_budget_ends_the_run_before_any_call_of_the_reply(case: Budget) -> None:
    """Over budget, none of the reply's calls runs and the history has none of them."""
    state = state_of(calls_run=case.calls_run)
    step = next_step(state, replied(*TWO, tokens=case.tokens), plan_of(**case.options))
    if not case.code:
        assert step.effects == (RunCalls(TWO),)
        return
    assert fail_of(step.effects).code == case.code
    assert not any(isinstance(effect, RunCalls) for effect in step.effects)
    assert step.state.history == state.history
    assert step.accepted == Accepted(TWO, ())


def test_an_answer_is_given_even_over_the_token_budget() -> None:
    """What was paid for is handed out."""
    step = next_step(state_of(), replied(content="x", tokens=10), plan_of(max_run_tokens=1))
    assert step.effects[-1] == Finish("x")


# repeated calls


def run_turns(*turns: ToolCall, ok: bool = True, **options: Any) -> list[Any]:
    """Play turns of one call each and return what each reply led to."""
    plan = plan_of(max_turns=100, **options)
    state, found = state_of(), []
    for call in turns:
        step = next_step(state, replied(call), plan)
        found.append(step.effects)
        if any(isinstance(effect, Fail) for effect in step.effects):
            break
        state = next_step(step.state, CallsFinished((result_of(call.name, ok=ok),)), plan).state
    return found


def test_the_same_call_is_warned_about_and_then_ends_the_run() -> None:
    """At the limit the model is warned and listeners are told; one more ends the run."""
    call = call_of(a=1)
    turns = run_turns(*[call] * 9)
    assert len(turns) == 4
    assert turns[0] == turns[1] == (RunCalls((call,)),)
    emit, run = turns[2]
    assert emit == Emit(CallRepeated(name="look", count=3))
    assert "same call" in run.warnings["c1"]
    assert "third time" in run.warnings["c1"]
    fail = fail_of(turns[3])
    assert (fail.code, fail.details) == (Code.REPEATED_CALL, {"tool": "look", "count": 4})
    assert not any(isinstance(effect, RunCalls) for effect in turns[3])


def test_repetitions_inside_one_reply_count_too() -> None:
    """Four equal calls at once end the run before any of them."""
    calls = tuple(call_of(call_id=f"c{number}", a=1) for number in range(4))
    step = next_step(state_of(), replied(*calls), plan_of())
    assert fail_of(step.effects).code == Code.REPEATED_CALL


@dataclass(frozen=True)
class Free:
    """Calls that may be repeated without end."""

    id: str
    calls: list[ToolCall]
    options: dict[str, Any] = field(default_factory=dict[str, Any])


FREE = [
    Free("other arguments", [call_of(n=number) for number in range(9)]),
    Free("polling tool", [call_of("wait")] * 9),
    Free("no limit", [call_of()] * 9, {"max_identical_calls": None}),
]


@pytest.mark.parametrize("case", FREE, ids=lambda case: case.id)
def test_calls_that_may_be_repeated(case: Free) -> None:
    """Other arguments, polling tools and a limit switched off end nothing and warn of nothing."""
    turns = run_turns(*case.calls, **case.options)
    assert turns == [(RunCalls((call,)),) for call in case.calls]


def test_a_success_with_effects_starts_the_count_anew() -> None:
    """Looking again after something was changed is no sign of a loop."""
    looks = [call_of("look"), call_of("look"), call_of("save", n=1)]
    turns = run_turns(*looks, *[call_of("look")] * 2, call_of("save", n=2), call_of("look"))
    assert not any(isinstance(effect, Emit | Fail) for effects in turns for effect in effects)


def test_a_failure_of_a_tool_with_effects_changes_no_count() -> None:
    """A write that failed leaves the world, and the count, as it was."""
    turns = run_turns(call_of("look"), call_of("save"), *[call_of("look")] * 3, ok=False)
    assert turns[3][0] == Emit(CallRepeated(name="look", count=3))
    assert fail_of(turns[4]).code == Code.REPEATED_CALL


def test_the_same_write_again_and_again_ends_the_run() -> None:
    """Its own success does not excuse the repetition of a write."""
    turns = run_turns(*[call_of("save", a=1)] * 9)
    assert fail_of(turns[3]).code == Code.REPEATED_CALL


def test_unreadable_calls_are_compared_by_what_arrived() -> None:
    """The same garbage four times is a loop; different garbage is not."""
    same = [ToolCall(id="c1", name="look", arguments=None, raw="{{", state="unreadable")] * 5
    other = [
        ToolCall(id="c1", name="look", arguments=None, raw="{" * n, state="unreadable")
        for n in range(5)
    ]
    assert fail_of(run_turns(*same)[3]).code == Code.REPEATED_CALL
    assert len(run_turns(*other)) == 5


# results


def test_results_follow_their_calls_in_order() -> None:
    """Each result becomes a tool message with the id of its call."""
    results = (result_of(call_id="c2"), result_of("save", "c1", ok=False))
    step = next_step(state_of(), CallsFinished(results), plan_of())
    assert step.state.history[1:] == (
        Message("tool", "look True", tool_call_id="c2"),
        Message("tool", "save False", tool_call_id="c1", extra={"is_error": True}),
    )
    assert step.state.calls_run == 2


def test_a_step_changes_nothing_it_was_given() -> None:
    """The same state and event give the same step, as often as asked."""
    state, plan = state_of(last_ok={"look": False}, repeats={"k": 1}), plan_of()
    for happened in (
        replied(*TWO),
        CallsFinished((result_of(), result_of("save"))),
        RequestFailed(provider_error()),
    ):
        assert next_step(state, happened, plan) == next_step(state, happened, plan)
    assert (state.last_ok, state.repeats) == ({"look": False}, {"k": 1})
