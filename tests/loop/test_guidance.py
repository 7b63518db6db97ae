"""Guided runs: what must succeed first, which tools may be called, and how models are nudged."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

import surecall
from surecall.errors import Code, ConfigError, RequestError, ToolUseError
from surecall.loop import MemoryJournal, Options, Plan, Session, make_plan, replay_trace
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
from surecall.profiles import Capabilities
from surecall.records import Message, StepNudged, ToolSpec
from surecall.tools import RunProgress
from surecall.transport import ScriptedTransport, assistant, tool_call

from .builders import call_of, replied, result_of, state_of
from .toolbox import look, run_script, saved

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


# whole runs


def first_tools(transport: ScriptedTransport, place: int) -> list[str]:
    """Return the names of the tools that a request offered."""
    tools = transport.requests[place].body.get("tools", [])
    return [tool["function"]["name"] for tool in tools]


def save_text(text: str) -> dict[str, Any]:
    """Save a text."""
    saved.append(text)
    return {"count": len(saved)}


put_after_look = surecall.tool(name="save", effect="write", requires=("look",))(save_text)


async def test_a_tool_is_shown_when_what_it_requires_has_succeeded() -> None:
    """It is masked at first, and offered from the next request on."""
    transport = ScriptedTransport(
        [
            assistant(tool_calls=[tool_call("look", {"what": "x"})]),
            assistant(tool_calls=[tool_call("save", {"text": "y"})]),
            assistant("Done."),
        ]
    )
    result = await run_script([], tools=[look, put_after_look], transport=transport)
    assert first_tools(transport, 0) == ["look"]
    assert first_tools(transport, 1) == ["look", "save"]
    assert saved == ["y"]
    assert [turn.request.hidden_tools for turn in result.trace.turns] == [("save",), (), ()]


async def test_a_reply_that_calls_both_at_once_is_judged_by_the_state_before_it() -> None:
    """The second call of one reply is refused with the reason, in whatever spelling."""
    for name in ("save", " save"):
        transport = ScriptedTransport(
            [
                assistant(
                    tool_calls=[tool_call("look", {}, "c1"), tool_call(name, {"text": "y"}, "c2")]
                ),
                assistant("Done."),
            ]
        )
        result = await run_script([], tools=[look, put_after_look], transport=transport)
        refused = result.trace.turns[0].results[1]
        assert refused.envelope.error_codes == (Code.TOOL_NOT_READY,)
        assert not refused.executed
        assert "before look has succeeded" in refused.envelope.errors[0].message
        assert saved == []
        assert replay_trace(result.trace).same


@pytest.mark.parametrize("takes_progress", [False, True])
async def test_the_application_decides_when_a_tool_is_available(takes_progress: bool) -> None:
    """A function of no argument or of the progress is asked before each request."""

    def from_progress(progress: RunProgress) -> bool:
        return any(result.envelope.data.get("seen") == "key" for result in progress.results)

    seen: list[str] = []
    closed_save = surecall.tool(
        name="save",
        effect="write",
        available_when=from_progress if takes_progress else lambda: bool(seen),
    )(save_text)

    @surecall.tool(effect="read")
    def peek(what: str) -> dict[str, str]:
        """Look for a key."""
        if what == "key":
            seen.append(what)
        return {"seen": what}

    transport = ScriptedTransport(
        [
            assistant(tool_calls=[tool_call("save", {"text": "early"}, "c0")]),
            assistant(tool_calls=[tool_call("peek", {"what": "box"}, "c1")]),
            assistant(tool_calls=[tool_call("peek", {"what": "key"}, "c2")]),
            assistant(tool_calls=[tool_call("save", {"text": "now"}, "c3")]),
            assistant("Done."),
        ]
    )
    result = await run_script(
        [], tools=[peek, closed_save], transport=transport, required_tools=("save",)
    )
    assert [first_tools(transport, place) for place in range(5)] == [
        ["peek"],
        ["peek"],
        ["peek"],
        ["peek", "save"],
        ["peek", "save"],
    ]
    assert saved == ["now"]
    assert replay_trace(result.trace).same


async def test_a_guard_that_fails_keeps_its_tool_closed() -> None:
    """An error in the application never opens a tool."""
    broken = surecall.tool(name="save", available_when=lambda: 1 // 0 > 0)(save_text)
    transport = ScriptedTransport([assistant("Hello.")])
    await run_script([], tools=[look, broken], transport=transport)
    assert first_tools(transport, 0) == ["look"]


async def test_a_forced_choice_holds_a_nudged_turn() -> None:
    """The next step is chosen by name, and all tools that may be called stay in the request."""
    transport = ScriptedTransport(
        [
            assistant("Done."),
            assistant(tool_calls=[tool_call("save", {"text": "y"})]),
            assistant("Done."),
        ]
    )
    result = await run_script(
        [],
        transport=transport,
        required_tools=("save",),
        capabilities={"tool_choices": ["auto", "named"]},
    )
    body = transport.requests[1].body
    assert body["tool_choice"] == {"type": "function", "function": {"name": "save"}}
    assert "tool_choice" not in transport.requests[0].body or (
        transport.requests[0].body["tool_choice"] == "auto"
    )
    assert result.text == "Done."
    assert result.trace.nudges == 1
    assert replay_trace(result.trace).same


def object_reply(text: str) -> Any:
    """Return a reply that is one object."""
    return assistant(text)


async def test_a_model_that_ignores_forced_choices_is_held_from_the_start() -> None:
    """The lesson stays the same from turn to turn; only the schema changes."""
    transport = ScriptedTransport(
        [
            object_reply('{"name": "look", "arguments": {"what": "x"}}'),
            object_reply('{"name": "save", "arguments": {"text": "y"}}'),
            object_reply('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [],
        tools=[look, put_after_look],
        transport=transport,
        required_tools=("look", "save"),
        capabilities={**SCHEMA, "tool_choices": ["auto"]},
    )
    assert result.text == "Done."
    bodies = [request.body for request in transport.requests]
    lessons = {body["messages"][0]["content"] for body in bodies}
    assert len(lessons) == 1
    schemas = [body["response_format"]["json_schema"]["schema"] for body in bodies]
    assert schemas[0]["properties"]["name"]["enum"] == ["look"]
    assert [item["properties"]["name"]["enum"] for item in schemas[1]["anyOf"]] == [
        ["look"],
        ["save"],
    ]
    assert list(schemas[2]["properties"]) == ["answer"]
    for shorter, longer in pairwise(bodies):
        kept = shorter["messages"]
        assert longer["messages"][: len(kept)] == kept
    assert result.trace.strategy["mode"] == "constrained"
    assert "tool_choice is ignored" in result.trace.strategy["reason"]
    assert replay_trace(result.trace).same


async def test_a_held_model_reads_its_repeated_call_once() -> None:
    """Instead of a second exchange it reads that the call was made, and what comes next."""
    look_again = object_reply('{"name": "look", "arguments": {"what": "x"}}')
    transport = ScriptedTransport(
        [
            look_again,
            look_again,
            object_reply('{"name": "save", "arguments": {"text": "y"}}'),
            object_reply('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [],
        tools=[look, put_after_look],
        transport=transport,
        required_tools=("save",),
        capabilities={**SCHEMA, "tool_choices": ["auto"]},
    )
    third = transport.requests[2].body["messages"]
    assert [message["role"] for message in third] == ["system", "user", "assistant", "user"]
    assert third[-1]["content"].endswith(
        'You have already called look with {"what":"x"}; its result is above. '
        "Take from it what the next step needs: call save."
    )
    assert [call.name for call in result.calls] == ["look", "look", "save"]
    assert replay_trace(result.trace).same


async def test_a_held_model_reads_why_its_repeated_call_failed() -> None:
    """The second failure of the same call is told as a reason to change it."""
    asked: list[str] = []

    @surecall.tool(effect="write")
    def save(text: str, place: str = "") -> str:
        """Save a text."""
        asked.append(place)
        if place:
            raise ValueError("there is no such place")
        return "saved"

    wrong = object_reply('{"name": "save", "arguments": {"text": "y", "place": "your_place"}}')
    transport = ScriptedTransport(
        [
            wrong,
            wrong,
            object_reply('{"name": "save", "arguments": {"text": "y"}}'),
            object_reply('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [],
        tools=[save],
        transport=transport,
        required_tools=("save",),
        capabilities={**SCHEMA, "tool_choices": ["auto"]},
    )
    last = transport.requests[2].body["messages"][-1]["content"]
    assert "has failed again in the same way." in last
    assert "there is no such place" in last
    assert last.endswith("Call it with other arguments; leave out what you do not know.")
    assert asked == ["your_place", "your_place", ""]
    assert replay_trace(result.trace).same


async def test_a_run_without_what_it_needs_raises_with_what_was_missing() -> None:
    """The error is one of tool use, and carries the names."""
    with pytest.raises(ToolUseError) as raised:
        await run_script(["a", "b", "c"], required_tools=("save", "look"))
    assert raised.value.code == Code.REQUIRED_TOOL_MISSING
    assert raised.value.details["missing"] == ["save", "look"]
    assert raised.value.trace is not None
    assert replay_trace(raised.value.trace).same


async def test_only_successes_of_this_run_count() -> None:
    """What succeeded in the run before does not fulfil what the next one requires."""
    transport = ScriptedTransport(
        [
            assistant(tool_calls=[tool_call("look", {})]),
            assistant("Seen."),
            *[assistant("Done.")] * 3,
        ]
    )
    async with Session(model="m", tools=[look], transport=transport, preset=()) as session:
        await session.run("one", required_tools=["look"])
        with pytest.raises(ToolUseError) as raised:
            await session.run("two", required_tools=["look"])
    assert raised.value.code == Code.REQUIRED_TOOL_MISSING


@pytest.mark.parametrize("name", ["required_tools", "after_required"])
def test_a_session_takes_no_declarations_of_a_run(name: str) -> None:
    """They belong to one prompt."""
    with pytest.raises(ConfigError, match="is for a run"):
        Session(model="m", tools=[look], **{name: None})  # pyright: ignore[reportArgumentType]


async def test_an_enforced_run_is_nudged_once_where_the_reply_can_be_held() -> None:
    """The nudged turn is held to a schema; the next one is a normal one again."""
    transport = ScriptedTransport(
        [
            assistant("I would look."),
            assistant('{"name": "look", "arguments": {}}'),
            assistant("Done."),
        ]
    )
    result = await run_script(
        [], transport=transport, tool_use_mode="enforced", capabilities=SCHEMA
    )
    modes = [turn.request.prompt_mode for turn in result.trace.turns]
    assert modes == ["native", "constrained", "native"]
    assert replay_trace(result.trace).same


async def test_a_broken_attempt_is_followed_by_a_held_turn_while_something_is_missing() -> None:
    """In native mode as well, a call that cannot be read is asked for in a form that can."""
    transport = ScriptedTransport(
        [
            assistant('<tool_call>{"name": "save", "arguments": {"text": '),
            assistant('{"name": "save", "arguments": {"text": "y"}}'),
            assistant('{"answer": "Done."}'),
        ]
    )
    result = await run_script(
        [], transport=transport, required_tools=("save",), capabilities=SCHEMA
    )
    assert saved == ["y"]
    assert result.text == "Done."
    assert replay_trace(result.trace).same


def test_the_fingerprint_is_that_of_before_where_nothing_is_declared() -> None:
    """New fields at their defaults do not keep an older run from being resumed."""
    plain = guided_plan(required_tools=(), tools=(GET,))
    declared = guided_plan(required_tools=("get",), tools=(GET,))
    assert plain.fingerprint != declared.fingerprint
    assert replace(GET, requires=()) == GET


async def test_a_choice_of_a_tool_that_is_not_offered_yet_is_not_sent() -> None:
    """A provider would refuse it; the choice is left to the model until the tool is there."""
    transport = ScriptedTransport(
        [assistant(tool_calls=[tool_call("look", {})]), assistant("Done.")]
    )
    await run_script([], tools=[look, put_after_look], transport=transport, tool_choice="save")
    assert transport.requests[0].body["tool_choice"] == "auto"


async def test_a_guided_run_is_resumed_without_running_anything_twice() -> None:
    """Refusals, repeated reads and closed tools come out of the journal as they went in."""
    opened = surecall.tool(
        name="save", effect="write", available_when=lambda progress: "look" in progress.succeeded
    )(save_text)
    replies = [
        assistant(tool_calls=[tool_call("save", {"text": "early"}, "c1")]),
        assistant(tool_calls=[tool_call("look", {}, "c2")]),
        assistant(tool_calls=[tool_call("look", {}, "c3")]),
        assistant("Done."),
        assistant(tool_calls=[tool_call("save", {"text": "y"}, "c4")]),
        assistant("Done."),
    ]
    journal = MemoryJournal()
    texts: list[str] = []
    for script in (replies, []):
        result = await run_script(
            script, tools=[look, opened], required_tools=("save",), journal=journal
        )
        texts.append(result.text)
        ran = [item.executed for turn in result.trace.turns for item in turn.results]
        assert ran == [False, True, False, True]
    assert texts == ["Done.", "Done."]
    assert saved == ["y"]
