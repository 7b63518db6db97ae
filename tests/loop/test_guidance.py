"""Guided runs: what must succeed first, which tools may be called, and how models are nudged."""

from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, RequestError
from surecall.base.records import Message, StepNudged, ToolSpec
from surecall.loop import Options, Plan, make_plan
from surecall.loop.guidance import (
    Guidance,
    find_hidden,
    find_missing,
    find_nudge,
    find_steps,
    list_optional,
    offer_tools,
)
from surecall.loop.steps import AskModel, CallsFinished, Emit, Fail, RunCalls
from surecall.loop.turn import begin, next_step
from surecall.models.profiles import Capabilities

from .builders import call_of, replied, result_of, state_of

GET = ToolSpec(name="get", effect="read")
PUT = ToolSpec(name="put", requires=("get",))
SEND = ToolSpec(name="send", requires=("put",), effect="external")
OTHER = ToolSpec(name="other", effect="read")
TOOLS = (GET, PUT, SEND, OTHER)
NONE: set[str] = set()
SCHEMA = {"json_schema": True, "grammar": True}


def guided_plan(
    *, capabilities: dict[str, Any] | None = None, tools: Any = TOOLS, **options: Any
) -> Plan:
    """Return a plan in which `send` needs `put`, which needs `get`."""
    options.setdefault("required_tools", ("send",))
    known = capabilities or {}
    return make_plan(
        model="m",
        messages=(Message("user", "please send it"),),
        tools=tools,
        options=Options(**options),
        origins={},
        capabilities=Capabilities(**known),
        capability_origins=dict.fromkeys(known, "caller"),
    )


def done(*names: str, **fields: Any) -> Guidance:
    """Return the guidance of a run in which these tools have succeeded."""
    return Guidance(succeeded=frozenset(names), **fields)


@pytest.mark.parametrize(
    ("guidance", "missing", "hidden", "steps"),
    [
        pytest.param(done(), ("send",), {"put", "send"}, ("get",), id="at first"),
        pytest.param(done("get"), ("send",), {"send"}, ("put",), id="one step on"),
        pytest.param(done("get", "put"), ("send",), NONE, ("send",), id="last step"),
        pytest.param(
            done("get", "put", closed=frozenset({"send"})),
            ("send",),
            {"send"},
            ("get", "put", "other"),
            id="closed by the application",
        ),
        pytest.param(
            done("get", "put", "send"), (), NONE, ("get", "put", "send", "other"), id="done"
        ),
    ],
)
def test_declarations_say_what_is_next(
    guidance: Guidance, missing: Any, hidden: Any, steps: Any
) -> None:
    """What is missing, hidden and next follows from what has succeeded."""
    plan = guided_plan()
    assert find_missing(plan, guidance) == missing
    assert set(find_hidden(plan, guidance)) == hidden
    assert find_steps(plan, guidance) == steps


def test_a_narrow_turn_offers_the_next_steps_only() -> None:
    """A model that was nudged gets nothing else to choose from."""
    plan = guided_plan()
    assert [tool.name for tool in offer_tools(plan, done("get"))] == ["get", "put", "other"]
    narrow = done("get", is_narrow=True)
    assert [tool.name for tool in offer_tools(plan, narrow)] == ["put"]


def test_what_a_required_tool_needs_is_not_optional() -> None:
    """Optional is what neither is required nor leads to what is."""
    assert list_optional(guided_plan()) == {"other"}
    assert list_optional(guided_plan(required_tools=("get",))) == {"put", "send", "other"}
    forced = guided_plan(required_tools=(), tool_choice="put")
    assert list_optional(forced) == {"send", "other"}


@pytest.mark.parametrize(
    ("capabilities", "options", "calls_seen", "held_by"),
    [
        pytest.param({}, {}, 0, "words", id="nothing to hold it with"),
        pytest.param({"tool_choices": ("named",)}, {}, 0, "forced_choice", id="named choice"),
        pytest.param({"tool_choices": ("required",)}, {}, 0, "forced_choice", id="any choice"),
        pytest.param({**SCHEMA, "tool_choices": ("named",)}, {}, 0, "schema", id="a schema first"),
        pytest.param({}, {"max_step_nudges": 0}, 0, None, id="no nudges"),
        pytest.param(SCHEMA, {"required_tools": ()}, 0, None, id="nothing declared"),
        pytest.param(
            SCHEMA,
            {"required_tools": (), "tool_use_mode": "enforced"},
            0,
            "schema",
            id="enforced, and it can be held",
        ),
        pytest.param(
            {},
            {"required_tools": (), "tool_use_mode": "enforced"},
            0,
            None,
            id="enforced, and words do not hold",
        ),
        pytest.param(
            {"tool_choices": ("required",)},
            {"required_tools": (), "tool_use_mode": "enforced"},
            0,
            "forced_choice",
            id="enforced, and any call can be forced",
        ),
        pytest.param(
            {"tool_choices": ("named",)},
            {"required_tools": (), "tool_use_mode": "enforced"},
            0,
            None,
            id="enforced, and no tool is the one to force",
        ),
        pytest.param(
            SCHEMA,
            {"required_tools": (), "tool_use_mode": "enforced"},
            1,
            None,
            id="enforced, and it has called",
        ),
    ],
)
def test_how_a_nudged_turn_is_held_follows_from_what_the_provider_can_do(
    capabilities: dict[str, Any], options: dict[str, Any], calls_seen: int, held_by: str | None
) -> None:
    """A schema comes before a forced choice, and that before words."""
    plan = guided_plan(capabilities=capabilities, **options)
    nudge = find_nudge(plan, Guidance(), "native", calls_seen=calls_seen)
    assert (nudge.held_by if nudge else None) == held_by


def test_an_early_answer_is_followed_by_a_nudge_and_at_last_by_a_failure() -> None:
    """Each nudge is an event and a turn; when they are used up the run says what was missing."""
    plan = guided_plan()
    step = begin(plan)
    for number in (1, 2):
        step = next_step(step.state, replied(content="Done."), plan)
        event, ask = step.effects
        assert isinstance(event, Emit)
        assert event.event == StepNudged(missing=("send",), held_by="words", step=number)
        assert ask == AskModel()
        assert "please send it" in step.state.history[-1].text
        assert "Call get now." in step.state.history[-1].text
    (fail,) = next_step(step.state, replied(content="Done."), plan).effects
    assert isinstance(fail, Fail)
    assert fail.code == Code.REQUIRED_TOOL_MISSING
    assert fail.details == {"missing": ["send"], "succeeded": [], "nudges": 2}


def test_a_nudge_counts_as_a_turn() -> None:
    """A nudge that no turn is left for ends the run."""
    plan = guided_plan(max_turns=1)
    (fail,) = next_step(begin(plan).state, replied(content="Done."), plan).effects
    assert isinstance(fail, Fail)
    assert fail.code == Code.MAX_TURNS_REACHED


def test_a_nudge_spends_from_the_token_budget() -> None:
    """No nudge is sent when the tokens are used up."""
    plan = guided_plan(max_run_tokens=10)
    (fail,) = next_step(begin(plan).state, replied(content="Done.", tokens=11), plan).effects
    assert isinstance(fail, Fail)
    assert fail.code == Code.TOKEN_BUDGET_EXCEEDED


def test_a_schema_holds_all_turns_until_nothing_is_missing() -> None:
    """The mode is switched once, and stays until only the answer is left."""
    plan = guided_plan(capabilities=SCHEMA, required_tools=("put",), tools=(GET, PUT))
    step = next_step(begin(plan).state, replied(content="Done."), plan)
    assert (step.state.mode, step.state.guidance.held_by) == ("constrained", "schema")
    step = next_step(step.state, replied(call_of("get")), plan)
    step = next_step(step.state, CallsFinished((result_of("get"),)), plan)
    assert (step.state.mode, step.state.guidance.held_by) == ("constrained", None)
    assert step.state.tools_enabled
    step = next_step(step.state, replied(call_of("put", "c2")), plan)
    step = next_step(step.state, CallsFinished((result_of("put", "c2"),)), plan)
    assert not step.state.tools_enabled


@pytest.mark.parametrize(
    ("after", "mode", "tools_enabled"),
    [
        (None, "native", True),
        (None, "constrained", False),
        ("answer", "native", False),
        ("go_on", "constrained", True),
    ],
)
def test_what_follows_when_all_is_done(after: Any, mode: Any, tools_enabled: bool) -> None:
    """Where replies are held to a schema, only the answer is left unless said otherwise."""
    plan = guided_plan(required_tools=("get",), after_required=after)
    step = next_step(state_of(mode=mode, base_mode=mode), CallsFinished((result_of("get"),)), plan)
    assert step.state.tools_enabled is tools_enabled


@pytest.mark.parametrize(
    ("tools", "choice", "after", "mode", "ok", "tools_enabled"),
    [
        ((GET,), "get", None, "constrained", True, False),
        ((GET,), "get", "go_on", "constrained", True, True),
        ((GET,), "get", None, "constrained", False, True),
        ((GET,), "get", None, "native", True, True),
        ((GET,), "required", None, "constrained", True, True),
        ((GET, PUT), "get", None, "constrained", True, True),
    ],
)
def test_the_only_tool_is_required_when_it_is_forced_by_name(
    tools: Any, choice: str, after: Any, mode: Any, ok: bool, tools_enabled: bool
) -> None:
    """A model that is held to a schema would otherwise do the same work again and again."""
    plan = guided_plan(tools=tools, tool_choice=choice, required_tools=(), after_required=after)
    step = next_step(
        state_of(mode=mode, base_mode=mode), CallsFinished((result_of("get", ok=ok),)), plan
    )
    assert step.state.tools_enabled is tools_enabled


def test_a_taught_model_that_repeats_itself_keeps_its_tools_while_something_is_missing() -> None:
    """Without its tools it could only claim to be done."""
    for required, tools_enabled in (((), False), (("send",), True)):
        plan = guided_plan(required_tools=required, max_identical_calls=3)
        state = state_of(mode="taught", base_mode="taught", repeats={"get x": 3})
        step = next_step(state, CallsFinished((result_of("get"),)), plan)
        assert step.state.tools_enabled is tools_enabled


def test_an_identical_read_is_answered_from_its_first_result() -> None:
    """The tool does not run again, and the next turn offers the next step alone."""
    plan = guided_plan()
    step = next_step(state_of(), replied(call_of("get")), plan)
    step = next_step(step.state, CallsFinished((result_of("get"),)), plan)
    step = next_step(step.state, replied(call_of("get", "c2")), plan)
    (run,) = step.effects
    assert isinstance(run, RunCalls)
    assert run.repeated == {"c2": result_of("get")}
    assert "call put" in run.warnings["c2"]
    step = next_step(step.state, CallsFinished((result_of("get", "c2"),)), plan)
    assert step.state.guidance.is_narrow


def test_reads_are_made_again_after_an_effect() -> None:
    """A success of a tool with effects makes results of before worthless."""
    plan = guided_plan()
    step = next_step(state_of(), replied(call_of("get")), plan)
    step = next_step(step.state, CallsFinished((result_of("get"),)), plan)
    assert step.state.guidance.reads
    step = next_step(step.state, replied(call_of("put", "c2")), plan)
    step = next_step(step.state, CallsFinished((result_of("put", "c2"),)), plan)
    assert not step.state.guidance.reads


@pytest.mark.parametrize(
    ("required", "tools", "words"),
    [
        (("nothing",), TOOLS, "not a tool of this run"),
        (("send",), (GET, SEND), "could never be called"),
        (
            ("a",),
            (ToolSpec(name="a", requires=("b",)), ToolSpec(name="b", requires=("a",))),
            "could never be called",
        ),
    ],
)
def test_required_tools_that_cannot_succeed_are_refused(
    required: Any, tools: Any, words: str
) -> None:
    """A run that could never end well does not begin."""
    with pytest.raises(ConfigError, match=words):
        guided_plan(required_tools=required, tools=tools)


def test_required_tools_need_tools_that_may_be_called() -> None:
    """Requiring a tool and forbidding all calls is a contradiction."""
    with pytest.raises(RequestError, match="none may be called"):
        guided_plan(tool_choice="none")


def test_the_fingerprint_is_that_of_before_where_nothing_is_declared() -> None:
    """New fields at their defaults do not keep an older run from being resumed."""
    plain = guided_plan(required_tools=(), tools=(GET,))
    declared = guided_plan(required_tools=("get",), tools=(GET,))
    assert plain.fingerprint != declared.fingerprint
    assert replace(GET, requires=()) == GET
