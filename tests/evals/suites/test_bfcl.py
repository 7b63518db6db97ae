"""The leaderboard as a suite: its cases run through the loop and are judged."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import ConfigError, RunError
from surecall.base.records import Message, ModelRequest, WireReply, WireRequest
from surecall.evals.cases import Attempt, Case, Grades, Ideal, IdealCall, Suite
from surecall.evals.suites.bfcl import BFCL_CATEGORIES, BfclSuite
from surecall.evals.suites.single_turn import SingleTurnCase
from surecall.loop import Session
from surecall.loop.steps import FitCheck
from surecall.models.transport import WireStream

from .bfcl_wheel import AREA, write_wheel


class Scripted:
    """A transport that gives these assistant messages, one after the other."""

    def __init__(self, messages: Sequence[dict[str, Any]]) -> None:
        self._messages = list(messages)

    async def send(self, request: WireRequest) -> WireReply:
        """Return the next message, then an answer for ever."""
        message = self._messages.pop(0) if self._messages else {"content": "Done."}
        choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return WireReply(status=200, headers={}, body=json.dumps({"choices": [choice]}).encode())

    def stream(self, request: WireRequest) -> AbstractAsyncContextManager[WireStream]:
        """Refuse."""
        raise AssertionError

    async def aclose(self) -> None:
        """Close nothing."""


def calling(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an assistant message with these calls."""
    return {
        "content": None,
        "tool_calls": [
            {
                "id": f"c{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(calls)
        ],
    }


async def grades_of(case: Case, *messages: dict[str, Any]) -> Grades:
    """Run a case on scripted replies and judge it."""
    prepared = case.prepare(1)
    session = Session(
        model="m", tools=prepared.tools, transport=Scripted(messages), **prepared.options
    )
    result, error = None, None
    try:
        result = await session.run(prepared.messages)
    except RunError as raised:
        error = raised
    trace = result.trace if result else error.trace if error else None
    return case.grade(Attempt(prepared=prepared, result=result, error=error, trace=trace))


@pytest.fixture
def suite(tmp_path: Path) -> BfclSuite:
    """Return the suite on a small wheel."""
    return BfclSuite(write_wheel(tmp_path))


def test_every_category_is_a_scenario(suite: BfclSuite) -> None:
    """The cases of a category are in the order of its file, named by their ids."""
    checked: Suite = suite
    assert checked.scenarios() == BFCL_CATEGORIES
    assert [case.id for case in checked.cases("simple_python")] == [
        "simple_python_1",
        "simple_python_2",
        "simple_python_3",
    ]
    assert checked.cases("multiple") == ()
    assert not any(case.control for case in checked.cases("irrelevance"))


def test_a_sample_takes_every_nth_case(tmp_path: Path) -> None:
    """Sampling begins with the first case, and the version says so."""
    path = write_wheel(tmp_path)
    sampled = BfclSuite(path, every=2)
    assert [case.id for case in sampled.cases("simple_python")] == [
        "simple_python_1",
        "simple_python_3",
    ]
    assert sampled.version == BfclSuite(path).version + "/2"
    assert sampled.version.startswith("1.2.3+")


def test_an_unknown_category_is_refused_with_a_suggestion(suite: BfclSuite) -> None:
    """The error names what was probably meant."""
    with pytest.raises(ConfigError, match="Did you mean 'simple_python'"):
        suite.cases("simple_pyton")


async def test_the_expected_call_is_right(suite: BfclSuite) -> None:
    """A call under the tool's name is judged under the function's own name."""
    case = suite.cases("simple_python")[0]
    grades = await grades_of(case, calling(("geometry_area", {"width": 1, "height": 3})))
    assert grades.strict.ok
    assert grades.original.ok
    assert grades.exact == (True,)
    assert grades.state == {
        "calls": [{"name": "geometry.area", "arguments": {"width": 1, "height": 3}}]
    }


async def test_a_wrong_value_is_wrong_but_loosely_right(suite: BfclSuite) -> None:
    """The loose verdict only asks for the function."""
    case = suite.cases("simple_python")[0]
    grades = await grades_of(case, calling(("geometry_area", {"width": 2, "height": 3})))
    assert grades.original.ok
    assert [reason.code for reason in grades.strict.reasons] == ["wrong_value"]
    assert grades.exact == (False,)


async def test_prose_instead_of_a_call_is_wrong(suite: BfclSuite) -> None:
    """An answer without a call fails both verdicts."""
    grades = await grades_of(suite.cases("simple_python")[0], {"content": "It is 3."})
    assert [reason.code for reason in grades.strict.reasons] == ["no_call"]
    assert not grades.original.ok
    assert grades.exact == ()


async def test_the_first_calls_that_ran_are_judged(suite: BfclSuite) -> None:
    """A refused call does not count when the model mends it; then nothing more is asked."""
    grades = await grades_of(
        suite.cases("simple_python")[0],
        calling(("geometry_area", {"width": "wide", "height": 3})),
        calling(("geometry_area", {"width": 1, "height": 3})),
    )
    assert grades.strict.ok
    assert grades.exact == (False, True)
    assert grades.parts is not None
    assert grades.parts.answer is None


async def test_where_nothing_fits_any_call_is_wrong(suite: BfclSuite) -> None:
    """In irrelevance an answer is right and a call that ran is wrong."""
    (case,) = suite.cases("irrelevance")
    assert (await grades_of(case, {"content": "Hello."})).strict.ok
    grades = await grades_of(case, calling(("geometry_area", {"width": 1, "height": 3})))
    assert grades.strict.reasons[0].code == "called"
    assert grades.exact == (False,)


@pytest.mark.parametrize(
    "message",
    [
        calling(("no_such_tool", {})),
        calling(("geometry_area", {"width": "wide"})),
        {"content": '<tool_call>{"name": "geometry_area", "arguments": {"width": 1}}</tool_call>'},
    ],
    ids=["unknown", "invalid", "text"],
)
async def test_where_nothing_fits_a_call_counts_however_it_was_made(
    suite: BfclSuite, message: dict[str, Any]
) -> None:
    """A call that was refused or was written as text is still a call."""
    (case,) = suite.cases("irrelevance")
    grades = await grades_of(case, message)
    assert [reason.code for reason in grades.strict.reasons] == ["called"]
    assert not grades.original.ok


async def test_where_nothing_fits_a_call_that_cannot_be_decoded_is_none(suite: BfclSuite) -> None:
    """As on the leaderboard."""
    (case,) = suite.cases("irrelevance")
    broken = {"content": '```json\n{"name": "geometry_area", "arguments": {"width": 1, "hei'}
    assert (await grades_of(case, broken)).strict.ok


def test_where_nothing_fits_silence_of_the_endpoint_is_not_restraint(suite: BfclSuite) -> None:
    """A run that failed abstained from nothing."""
    (case,) = suite.cases("irrelevance")
    attempt = Attempt(prepared=case.prepare(1), result=None, error=ValueError("gone"), trace=None)
    assert [reason.code for reason in case.grade(attempt).strict.reasons] == ["RUN_FAILED"]


async def test_where_nothing_fits_a_call_that_was_taken_back_is_none(suite: BfclSuite) -> None:
    """The fit gate asked, and the model said that the tool does not fit."""
    (case,) = suite.cases("irrelevance")
    prepared = case.prepare(1)
    message = calling(("geometry_area", {"width": 1, "height": 3}))
    session = Session(model="m", tools=prepared.tools, transport=Scripted([message]))
    trace = (await session.run(prepared.messages)).trace
    called, answered = trace.turns
    withdrawn = replace(
        called,
        results=tuple(replace(result, executed=False) for result in called.results),
        fit_checks=(FitCheck(tool="geometry_area", fits=False),),
    )
    for turn, expected in ((called, False), (withdrawn, True)):
        seen = replace(trace, turns=(turn, answered))
        attempt = Attempt(prepared=prepared, result=None, error=None, trace=seen)
        assert case.grade(attempt).strict.ok == expected


async def test_a_refused_call_beside_the_right_one_is_one_too_many(suite: BfclSuite) -> None:
    """Calls are counted as they were made, and not as they ran."""
    good, bad = {"width": 1, "height": 3}, {"width": "wide", "height": 3}
    grades = await grades_of(
        suite.cases("simple_python")[0], calling(("geometry_area", good), ("geometry_area", bad))
    )
    assert [reason.code for reason in grades.strict.reasons] == ["wrong_count"]


async def test_a_call_that_the_data_accept_counts_though_it_cannot_run(tmp_path: Path) -> None:
    """The data accept the name of a variable where the schema wants a number."""
    row = {
        "id": "live_simple_0",
        "question": [[{"role": "user", "content": "Area of w by 3?"}]],
        "function": [AREA],
        "ground_truth": [{"geometry.area": {"width": ["w"], "height": [3.0], "unit": [""]}}],
    }
    wheel = write_wheel(tmp_path, cases={"live_simple": [row]})
    (case,) = BfclSuite(wheel).cases("live_simple")
    grades = await grades_of(case, calling(("geometry_area", {"width": "w", "height": 3})))
    assert grades.strict.ok


async def test_where_a_call_is_relevant_any_readable_one_is_right(tmp_path: Path) -> None:
    """Relevance asks for a call, and for nothing about it."""
    row = {
        "id": "live_relevance_0",
        "question": [[{"role": "user", "content": "How large is it?"}]],
        "function": [AREA],
    }
    wheel = write_wheel(tmp_path, cases={"live_relevance": [row]})
    (case,) = BfclSuite(wheel).cases("live_relevance")
    assert isinstance(case, SingleTurnCase)
    wrong = calling(("geometry_area", {"width": "wide"}))
    assert (await grades_of(case, wrong)).strict.ok
    grades = await grades_of(case, {"content": "I cannot know."})
    assert [reason.code for reason in grades.strict.reasons] == ["no_call"]
    ideal = case.ideal(ModelRequest(model="m", messages=case.messages, tools=case.tools))
    assert ideal == Ideal(calls=(IdealCall("geometry_area", {"width": 1, "height": 1}),))


async def test_a_run_that_never_began_is_judged_too(suite: BfclSuite) -> None:
    """Without a trace there was no call."""
    case = suite.cases("simple_python")[0]
    prepared = case.prepare(1)
    grades = case.grade(Attempt(prepared=prepared, result=None, error=ValueError("no"), trace=None))
    assert not grades.strict.ok


def test_the_ideal_calls_then_answers(suite: BfclSuite) -> None:
    """A good model makes the expected call with the first accepted values, then answers."""
    case = suite.cases("simple_python")[1]
    assert isinstance(case, SingleTurnCase)
    request = ModelRequest(model="m", messages=case.messages, tools=case.tools)
    call = IdealCall("geometry_area", {"width": 2.0, "height": 3.0, "unit": "units"})
    assert case.ideal(request) == Ideal(calls=(call,))
    result = Message("tool", "Done.", tool_call_id="c0")
    answered = ModelRequest(model="m", messages=(*case.messages, result), tools=case.tools)
    assert case.ideal(answered) == Ideal(text="Done.")


def test_the_ideal_of_irrelevance_calls_nothing(suite: BfclSuite) -> None:
    """A good model answers when no tool fits."""
    (case,) = suite.cases("irrelevance")
    assert isinstance(case, SingleTurnCase)
    ideal = case.ideal(ModelRequest(model="m", messages=case.messages, tools=case.tools))
    assert ideal is not None
    assert ideal.calls == ()
    assert ideal.text


def test_the_ideal_writes_nested_choices_plainly(tmp_path: Path) -> None:
    """Objects in an answer list choices for each key; what is sent has the first of them."""
    function = {**AREA, "name": "f"}
    function["parameters"] = {
        "type": "dict",
        "properties": {"at": {"type": "dict"}, "must": {"type": "string"}},
        "required": ["must"],
    }
    answer = {"at": [{"x": [1, 2], "y": ["", 5], "rows": [[{"z": [3]}]]}], "must": ["", "yes"]}
    row = {
        "id": "simple_python_0",
        "question": [[{"role": "user", "content": "Go."}]],
        "function": [function],
        "ground_truth": [{"f": answer}],
    }
    (case,) = BfclSuite(write_wheel(tmp_path, cases={"simple_python": [row]})).cases(
        "simple_python"
    )
    assert isinstance(case, SingleTurnCase)
    ideal = case.ideal(ModelRequest(model="m", messages=case.messages))
    assert ideal is not None
    assert ideal.calls == (IdealCall("f", {"at": {"x": 1, "rows": [{"z": 3}]}, "must": "yes"}),)
