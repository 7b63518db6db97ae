"""The loose verdict is the original one: it looks away where the strict one does not."""

from typing import Any

import pytest

from surecall.base.errors import Code, ProviderTimeoutError, ToolUseError
from surecall.evals.cases import Attempt
from surecall.evals.made_calls import shows_call
from surecall.evals.scenarios import SCENARIOS, find_scenario
from surecall.evals.scenarios.checks import is_done

from .playing import patch, play, read


@pytest.mark.parametrize(
    "text", ["Done.", "done", " DONE! ", '"Done."', "`done.`", "' \"Done.\" '", "\nDone.\n"]
)
def test_the_final_text_may_be_quoted_and_shouted(text: str) -> None:
    """Case, quotes, space and the last mark do not matter."""
    assert is_done(text)


@pytest.mark.parametrize("text", ["", "Done..", "All done.", "Done. I set it.", "Done:", "Fertig."])
def test_other_answers_are_not_the_final_text(text: str) -> None:
    """More or less than the word is not it."""
    assert not is_done(text)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{}</tool_call>",
        '{"name": "x", "arguments": {}}',
        "<function=state_get>",
        "[TOOL_CALLS] []",
    ],
)
def test_call_syntax_is_recognised_in_an_answer(text: str) -> None:
    """Marks of the usual families are seen."""
    assert shows_call(text)


def test_plain_answers_show_no_call() -> None:
    """Words such as function, or the name of a tool, are no call."""
    assert not shows_call("Done. I used state_get, a tool with a function.")


@pytest.mark.parametrize(
    "name",
    ["happy_path", "missing_workspace_id", "type_error_recovery", "long_arguments_guard"],
)
async def test_the_same_two_calls_pass_four_scenarios_loosely(name: str) -> None:
    """As in the original: no error, no recovery and no omission is asked for."""
    scenario = find_scenario(name)
    replies = [read(workspace_id="workspace_id"), patch(workspace_id="workspace_id"), "Done."]
    played = await play(scenario, replies)
    assert played.grades.original.ok
    assert played.grades.strict.ok == (name == "happy_path")


async def test_order_does_not_matter_loosely() -> None:
    """Patching before reading is fine for the loose verdict."""
    played = await play(find_scenario("happy_path"), [patch(), "Done."])
    assert (played.grades.original.ok, played.grades.strict.ok) == (True, False)


async def test_any_turn_may_hold_the_partial_failure_loosely() -> None:
    """The original looks for it anywhere; a failed read does not count."""
    scenario = find_scenario("partial_success_failure")
    both: dict[str, Any] = read("a")
    both["tool_calls"] += patch(path="/draft/wrong", call_id="b")["tool_calls"]
    late = await play(scenario, [read(), both, patch(), "Done."])
    assert late.grades.original.ok
    bad: dict[str, Any] = read("a", workspace_id="elsewhere")
    bad["tool_calls"] += patch(path="/draft/wrong", call_id="b")["tool_calls"]
    failed = await play(scenario, [read(), bad, read("c"), patch(call_id="d"), "Done."])
    assert failed.original_codes == ["NO_PARTIAL_FAILURE"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda item: item.name)
@pytest.mark.parametrize(
    "error",
    [
        ProviderTimeoutError(Code.TOTAL_TIMEOUT, "It took too long."),
        ToolUseError(Code.NO_TOOL_CALLS, "No call."),
        RuntimeError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_run_that_never_began_is_judged_too(scenario: Any, error: Exception) -> None:
    """Without a trace there is one reason, which names the error."""
    prepared = scenario.prepare(1)
    grades = scenario.grade(Attempt(prepared=prepared, result=None, error=error))
    for verdict in (grades.original, grades.strict):
        assert [reason.code for reason in verdict.reasons] == ["RUN_FAILED"]
        assert str(getattr(error, "code", "RuntimeError")) in verdict.reasons[0].message
    assert grades.exact == ()
