"""The suite of plain requests with one tool each."""

import pytest

from evals.scenarios.playing import play
from surecall.base.records import ModelRequest
from surecall.evals.cases import IdealCall, Suite
from surecall.evals.suites.one_tool import OneToolSuite, fold_case
from surecall.evals.suites.single_turn import SingleTurnCase, check_calls
from surecall.models.transport import assistant, tool_call
from surecall.schema import SchemaChecker

FIRST, FRESH = (OneToolSuite().cases(name) for name in ("one_tool", "one_tool_fresh"))
CASES = (*FIRST, *FRESH)


def test_there_are_twice_forty_different_requests() -> None:
    """Ids and requests are all different, and every tool is used, in one set only."""
    suite: Suite = OneToolSuite()
    assert suite.scenarios() == ("one_tool", "one_tool_fresh")
    assert suite.cases("other") == ()
    assert len(FIRST) == len(FRESH) == 40
    assert len({case.id for case in CASES}) == 80
    assert len({case.messages[0].text for case in CASES}) == 80
    assert len({case.tools[0].name for case in FIRST}) == 14
    assert len({case.tools[0].name for case in FRESH}) == 20
    assert len({case.tools[0].name for case in CASES}) == 34
    assert len(suite.version) == 12


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_is_expected_fits_the_schema_and_is_right(case: SingleTurnCase) -> None:
    """Every ideal call is valid by the tool's schema and right by the suite's own rules."""
    ideal = case.ideal(ModelRequest(model="m", messages=case.messages, tools=case.tools))
    assert ideal is not None
    (call,) = ideal.calls
    assert SchemaChecker(case.tools[0].parameters).is_valid(call.arguments)
    assert check_calls([call], case.functions, case.answers, fold=case.fold) == ()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_accepted_value_fits_the_schema(case: SingleTurnCase) -> None:
    """No alternative is listed that the tool would refuse."""
    (answer,) = case.answers
    (parameters,) = answer.values()
    properties = case.tools[0].parameters["properties"]
    for name, values in parameters.items():
        for value in values:
            if value != "" and not isinstance(value, dict):
                assert SchemaChecker(properties[name]).is_valid(value), (name, value)


def test_marks_count_here() -> None:
    """A pointer without its slash is another one; case and runs of spaces do not count."""
    case = next(case for case in CASES if case.id == "patch_replace")
    arguments = {"op": "replace", "path": "/user/name", "value": "ADA"}
    right = IdealCall("state_patch", arguments)
    wrong = IdealCall("state_patch", {**arguments, "path": "user/name"})
    assert check_calls([right], case.functions, case.answers, fold=fold_case) == ()
    (reason,) = check_calls([wrong], case.functions, case.answers, fold=fold_case)
    assert reason.code == "wrong_value"
    assert fold_case(" Red  Backpack ") == "red backpack"


@pytest.mark.parametrize(
    ("name", "may_repeat"),
    [("get_weather", True), ("send_email", False), ("transfer_money", False)],
)
async def test_what_adds_something_each_time_may_not_be_done_more_than_once(
    name: str, may_repeat: bool
) -> None:
    """Reading twice changes nothing, and sending twice does."""
    case = next(case for case in CASES if case.tools[0].name == name)
    ideal = case.ideal(ModelRequest(model="m", messages=case.messages, tools=case.tools))
    assert ideal is not None
    made = [
        assistant(None, tool_call(name, ideal.calls[0].arguments, call_id))
        for call_id in ("a", "b")
    ]
    once = await play(case, [made[0], "Done."])  # type: ignore[arg-type]
    twice = await play(case, [*made, "Done."])  # type: ignore[arg-type]
    assert once.strict_codes == []
    assert twice.strict_codes == ([] if may_repeat else ["extra_call"])
