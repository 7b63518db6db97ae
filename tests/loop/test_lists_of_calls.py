"""A model that writes one call as text is asked for a list of all its calls, over real HTTP."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import surecall
from support.completion_server import CompletionServer
from surecall.base.records import Escalated, Event
from surecall.loop import replay_trace
from surecall.loop.trace import Trace
from surecall.models.transport import HttpTransport, ScriptedReply, assistant, tool_call

from .toolbox import look, save, saved

CAN = {"json_schema": True, "grammar": True, "text_formats": True}
ONE = '```json\n{"name": "save", "arguments": {"text": "one"}}\n```'
SAVES = [{"name": "save", "arguments": {"text": text}} for text in ("one", "two")]


def listed(*calls: Any) -> str:
    """Return a reply that lists calls."""
    return json.dumps({"calls": list(calls)})


async def run(*replies: Any, **arguments: Any) -> tuple[Trace, list[dict[str, Any]]]:
    """Run a request against a server; return the trace and the bodies that the server got."""
    capabilities = {**CAN, **arguments.pop("capabilities", {})}
    arguments = {"max_escalations": 2, "fit_gate": "auto", "tools": [look, save], **arguments}
    async with CompletionServer([*replies, "Done."]) as server:
        result = await surecall.run(
            "Save one and two.",
            model="m",
            preset=(),
            transport=HttpTransport(server.url),
            capabilities=capabilities,
            **arguments,
        )
        assert replay_trace(result.trace).same
        return result.trace, server.bodies


async def test_all_calls_of_the_list_run_and_the_single_one_does_not() -> None:
    """The model is held to at least one call of the tool that it chose, and shown no other."""
    events: list[Event] = []
    trace, bodies = await run(ONE, listed(*SAVES), on_event=events.append)
    assert saved == ["one", "two"]
    assert [turn.request.lists_calls for turn in trace.turns] == [False, True, False]
    assert [len(turn.results) for turn in trace.turns] == [0, 2, 0]
    (escalated,) = [event for event in events if isinstance(event, Escalated)]
    assert (escalated.rung, escalated.tool) == ("list", "save")
    schema = bodies[1]["response_format"]["json_schema"]["schema"]
    assert (schema["required"], schema["properties"]["calls"]["minItems"]) == (["calls"], 1)
    lesson, *said = [message["content"] for message in bodies[1]["messages"]]
    assert '"name":"save"' in lesson.replace(" ", "")
    assert "look" not in lesson
    assert said == ["Save one and two."]
    # From then on the conversation is as if the model had made these calls at once.
    calls = [message["tool_calls"] for message in bodies[2]["messages"] if "tool_calls" in message]
    assert [len(made) for made in calls] == [2]


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(listed(), id="empty"),
        pytest.param(listed(SAVES[1])[:-3], id="not whole"),
        pytest.param(listed(SAVES[1], SAVES[1]), id="a call twice"),
        pytest.param(listed(*SAVES, {"name": "look", "arguments": {}}), id="of another tool"),
        pytest.param(listed(*SAVES, "and so on"), id="something else in it"),
        pytest.param("I have saved both.", id="no list"),
        pytest.param(ScriptedReply(message=listed(*SAVES), finish_reason="length"), id="cut"),
    ],
)
async def test_a_list_of_no_use_leaves_the_single_call(useless: Any) -> None:
    """What the model did by itself still happens, once."""
    trace, bodies = await run(ONE, useless)
    assert saved == ["one"]
    assert len(bodies) == 3
    assert [call.arguments for call in trace.turns[1].calls] == [{"text": "one"}]


@pytest.mark.parametrize("status", [400, 404, 422, 500])
async def test_an_endpoint_that_takes_no_list_is_asked_again_as_before(status: int) -> None:
    """A refusal costs a request, not the run, and no second list is asked for."""
    refused = ScriptedReply(message="no", status=status)
    tries = [refused] * (1 if status < 500 else 3)
    trace, bodies = await run(ONE, *tries, ONE)
    assert saved == ["one"]
    assert bodies[-2]["messages"] == bodies[0]["messages"]
    assert trace.answer == "Done."


async def test_the_gate_comes_first() -> None:
    """A tool that does not fit is refused at once; one that fits is listed."""
    threshold = {"fit_threshold": 0.0}
    trace, bodies = await run(ONE, "No", capabilities=threshold)
    assert saved == []
    assert len(bodies) == 3
    assert not any(turn.request.lists_calls for turn in trace.turns)
    trace, bodies = await run(ONE, "Yes", listed(*SAVES), capabilities=threshold)
    assert saved == ["one", "two"]
    assert [len(turn.fit_checks) for turn in trace.turns] == [1, 0, 0]
    assert len(bodies) == 4


async def test_a_call_with_several_things_in_one_argument_is_listed() -> None:
    """A call that the schema refuses is asked for as a list before it is corrected into one."""
    packed = ONE.replace('"one"', '["one", "two"]')
    await run(packed, listed(*SAVES))
    assert saved == ["one", "two"]
    trace, _ = await run(packed, "No.", ONE)
    assert saved == ["one", "two", "one"]
    assert [len(turn.results) for turn in trace.turns] == [0, 1, 1, 0]


NATIVE = assistant(tool_calls=[tool_call("save", {"text": "one"})])
BOTH = assistant(
    tool_calls=[tool_call("save", call["arguments"], f"c{i}") for i, call in enumerate(SAVES)]
)


@pytest.mark.parametrize(
    ("reply", "options"),
    [
        pytest.param(NATIVE, {}, id="a call in its field"),
        pytest.param(f"{ONE}\n{ONE.replace('one', 'two')}", {}, id="two calls as text"),
        pytest.param(ONE, {"capabilities": {"json_schema": False}}, id="nothing holds a reply"),
        pytest.param(ONE, {"capabilities": {"text_formats": False}}, id="not known to write text"),
        pytest.param(ONE, {"capabilities": {"supports_parallel_tools": True}}, id="makes several"),
        pytest.param(ONE, {"max_escalations": 0}, id="no steps allowed"),
        pytest.param(ONE, {"max_tool_calls_per_turn": 1}, id="one call a turn"),
        pytest.param(ONE, {"max_tool_calls": 1}, id="one call a run"),
        pytest.param(ONE, {"max_turns": 2}, id="no turn left for the answer"),
        pytest.param(ONE, {"parallel": False}, id="no parallel calls"),
    ],
)
async def test_where_nothing_may_be_missing_nothing_is_asked(
    reply: Any, options: dict[str, Any]
) -> None:
    """The run is what it was without the step."""
    options = dict(options)
    if options.pop("parallel", None) is False:
        options["request_overrides"] = {"parallel_tool_calls": False}
    trace, bodies = await run(reply, **options)
    assert len(bodies) == 2
    assert not any(turn.request.lists_calls for turn in trace.turns)


async def test_only_the_first_calls_of_a_run_are_listed() -> None:
    """What follows a result may depend on it."""
    again = ONE.replace("one", "three")
    _, bodies = await run(ONE, listed(*SAVES), again)
    assert saved == ["one", "two", "three"]
    assert len(bodies) == 4


async def test_a_list_beyond_the_budget_of_calls_leaves_the_single_one() -> None:
    """Asking for more must not end a run that had its one call."""
    calls = [{"name": "save", "arguments": {"text": str(number)}} for number in range(3)]
    await run(ONE, listed(*calls), max_tool_calls=2)
    assert saved == ["one"]


@surecall.tool(effect="read")
def find(who: str) -> list[str]:
    """Find the orders of somebody."""
    return [] if who == "nobody" else ["A-1", "A-2"]


def _save_after_find(text: str) -> dict[str, Any]:
    saved.append(text)
    return {}


FOUND = '{"name": "find", "arguments": {"who": "Ada"}}'
WRONG = '{"name": "find", "arguments": {}}'


@pytest.mark.parametrize(("first", "times"), [(FOUND, [0, 1]), (WRONG, [0, 0])])
async def test_a_held_model_reads_the_request_again_behind_what_was_found(
    first: str, times: list[int]
) -> None:
    """It chooses by it. Behind a refusal alone there is nothing to choose from."""
    tool: Callable[..., Any] = surecall.tool(effect="write", name="put")(_save_after_find)
    refund = '{"name": "put", "arguments": {"text": "A-2"}}'
    replies = [first, *([FOUND] if first == WRONG else []), refund, '{"answer": "Done."}']
    _, bodies = await run(
        *replies,
        tools=[find, tool],
        required_tools=("find", "put"),
        capabilities={"tool_choices": ["auto"]},
    )
    assert saved == ["A-2"]
    last = [body["messages"][-1]["content"] for body in bodies]
    count = [text.count("The request was:\nSave one and two.") for text in last]
    assert count[:2] == times
    assert count[-2:] == [1, 0]
