"""What is ideal follows from the request alone, also after things went wrong."""

from typing import Any

import pytest

from surecall.base.records import Message, ModelRequest, ToolCall
from surecall.evals.cases import Ideal, IdealCall
from surecall.evals.scenarios import SCENARIOS, Scenario, find_scenario
from surecall.faults import Action, CallTools, PlannedCall, Say, SimulatedTransport
from surecall.text import encode_text
from surecall.wire import ChatCompletions

from .playing import perfect, play

FIRST = "workspace_id=w1"


def request_for(scenario: Scenario, *messages: Message, **fields: Any) -> ModelRequest:
    """Return a request in the middle of a trial."""
    tools = tuple(tool.spec for tool in scenario.prepare(0).tools if tool.spec.exposed)
    given = (Message("user", FIRST), *messages)
    return ModelRequest(**{"model": "m", "messages": given, "tools": tools, **fields})


def turn(
    name: str, arguments: dict[str, Any] | None, *codes: str, **data: Any
) -> tuple[Message, Message]:
    """Return a call and its result."""
    call = ToolCall(id=f"{name}-{len(codes)}-{len(data)}", name=name, arguments=arguments)
    errors = [{"code": code, "message": "no"} for code in codes]
    envelope = {"ok": not codes, "tool_name": name, "data": data, "errors": errors}
    return Message("assistant", "", (call,)), Message(
        "tool", encode_text(envelope), tool_call_id=call.id
    )


def patch_of(value: Any, number: int) -> IdealCall:
    """Return the patch that is ideal."""
    operations = [{"op": "set", "path": "/draft/foo", "value": value}]
    arguments = {"workspace_id": "w1", "request_id": f"r{number}", "ops": operations}
    return IdealCall("state_patch", arguments)


READ = Ideal(calls=(IdealCall("state_get", {"workspace_id": "w1"}),))
READ_TURN = turn("state_get", {"workspace_id": "w1"}, snapshot={"draft": {}})


def test_a_read_that_failed_is_made_again() -> None:
    """Only a read that worked counts as one."""
    scenario = find_scenario("happy_path")
    failed = turn("state_get", {"workspace_id": "w"}, "WORKSPACE_NOT_FOUND")
    assert scenario.ideal(request_for(scenario)) == READ
    assert scenario.ideal(request_for(scenario, *failed)) == READ


def test_a_patch_that_failed_is_made_again_with_the_right_arguments() -> None:
    """Each try has a request id of its own, so that it is not the same call."""
    scenario = find_scenario("happy_path")
    garbled = turn("state_patch", None, "ARGUMENTS_JSON_PARSE_ERROR")
    wanted = scenario.ideal(request_for(scenario, *READ_TURN, *garbled))
    assert wanted == Ideal(calls=(patch_of("bar", 2),))


def test_a_wrong_value_that_was_written_is_corrected() -> None:
    """A patch that succeeded with something else is not the end."""
    scenario = find_scenario("happy_path")
    wrong = turn("state_patch", {"ops": [{"op": "set", "path": "/draft/foo", "value": "ba"}]})
    assert scenario.ideal(request_for(scenario, *READ_TURN, *wrong)).calls == (patch_of("bar", 2),)


def test_what_was_seen_to_be_done_is_not_done_again() -> None:
    """After an unknown outcome, a read that shows the value is enough."""
    scenario = find_scenario("happy_path")
    shown = turn("state_get", {}, snapshot={"draft": {"foo": "bar"}})
    assert scenario.ideal(request_for(scenario, *shown)) == Ideal(text="Done.")


def test_without_tools_the_answer_is_given() -> None:
    """When only an answer is asked for, it is true: done, or not."""
    scenario = find_scenario("happy_path")
    good = turn("state_patch", {"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]})
    asked = Message("user", "Please answer now.")
    done = scenario.ideal(request_for(scenario, *READ_TURN, *good, asked, tools=()))
    assert done == Ideal(text="Done.")
    not_done = scenario.ideal(request_for(scenario, *READ_TURN, asked, tools=()))
    assert not_done == Ideal(text="I could not finish this.")


def test_a_result_that_is_too_large_is_not_asked_for_again() -> None:
    """The read has run; the work goes on."""
    scenario = find_scenario("tool_output_truncation")
    large = turn("state_get", {}, "TOOL_OUTPUT_TOO_LARGE")
    assert scenario.ideal(request_for(scenario, *large)).calls == (patch_of("bar", 1),)


def test_the_long_value_is_not_repeated_after_its_refusal() -> None:
    """A refusal for its size is what was wanted; any other error is tried once more."""
    scenario = find_scenario("long_arguments_guard")
    other = turn("state_patch", None, "ARGUMENTS_JSON_PARSE_ERROR")
    again = scenario.ideal(request_for(scenario, *READ_TURN, *other)).calls[0]
    assert len(again.arguments["ops"][0]["value"]) >= 300
    large = turn("state_patch", None, "ARGUMENTS_TOO_LARGE")
    assert scenario.ideal(request_for(scenario, *READ_TURN, *large)).calls == (patch_of("bar", 2),)


def test_both_calls_are_made_again_when_neither_could_be_read() -> None:
    """A reply without a read that worked is no partial failure yet."""
    scenario = find_scenario("partial_success_failure")
    garbled = turn("state_get", None, "ARGUMENTS_JSON_PARSE_ERROR")
    again = scenario.ideal(request_for(scenario, *garbled))
    assert [call.name for call in again.calls] == ["state_get", "state_patch"]
    assert again.calls[1].arguments["ops"][0]["path"] == "/draft/wrong"


def test_a_read_that_failed_beside_a_patch_is_made_up_for() -> None:
    """The run counts as failed while the last read is one that failed."""
    scenario = find_scenario("happy_path_parallel")
    failed = turn("state_get", None, "ARGUMENTS_JSON_PARSE_ERROR")
    good = turn("state_patch", {"ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]})
    assert scenario.ideal(request_for(scenario, *failed, *good)) == READ


def test_only_the_read_that_is_missing_is_made() -> None:
    """When one of two reads was lost, the other is not repeated."""
    scenario = find_scenario("duplicate_ids")
    left = turn("state_get", {"select": ["/draft/left"]}, snapshot={"/draft/left": "sun"})
    wanted = scenario.ideal(request_for(scenario, *left))
    assert [call.arguments["select"] for call in wanted.calls] == [["/draft/right"]]


def test_a_trail_goes_on_where_it_was_left() -> None:
    """A key that failed is tried again; what was found leads on."""
    scenario = find_scenario("multi_step_plan")
    first = turn("note_open", {"key": "k1"}, next_key="k2")
    failed = turn("note_open", {"key": "k2"}, "ARGUMENT_ERROR")
    request = request_for(scenario, Message("user", "first_key=k1"), *first, *failed)
    assert scenario.ideal(request) == Ideal(calls=(IdealCall("note_open", {"key": "k2"}),))


class IdealOracle:
    """Lets a simulated model play a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def next_action(self, request: ModelRequest) -> Action | None:
        """Do what is ideal."""
        wanted = self._scenario.ideal(request)
        calls = tuple(PlannedCall(call.name, call.arguments) for call in wanted.calls)
        return CallTools(calls) if calls else Say(wanted.text)


def simulated(scenario: Scenario, **fields: Any) -> Any:
    """Return a script that asks a simulated provider."""
    protocol = ChatCompletions()
    transport = SimulatedTransport(oracles=(IdealOracle(scenario),), **fields)

    def answer(wire: Any) -> Any:
        return transport.provider.answer(protocol, wire).body

    return answer


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.name)
@pytest.mark.parametrize("model", ["steady", "hasty", "loose-arguments", "small-local"])
async def test_simulated_models_can_play(scenario: Scenario, model: str) -> None:
    """Whatever mistakes are made on top, a verdict comes out, and a clean model passes."""
    played = await play(scenario, simulated(scenario, model=model, seed=3), text_formats="all")
    if model == "steady":
        assert (played.original_codes, played.strict_codes) == ([], [])
    assert played.grades.strict.ok == (played.strict_codes == [])


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("name", [item.name for item in SCENARIOS if item.must_call])
async def test_a_call_that_was_garbled_is_made_up_for(name: str, place: int) -> None:
    """One unreadable call does not change the outcome that the loose verdict looks at."""
    scenario = find_scenario(name)
    clean = perfect(scenario)
    count = 0

    def answer(wire: Any) -> Any:
        nonlocal count
        count += 1
        message = clean(wire)
        if count == place and "tool_calls" in message:
            message["tool_calls"][-1]["function"]["arguments"] = "I would rather not"
        return message

    played = await play(scenario, answer)
    assert played.original_codes == []
    told = [item.text for item in played.attempt.history if item.role == "tool"]
    assert place == 2 or any("ARGUMENTS_JSON_PARSE_ERROR" in text for text in told)
