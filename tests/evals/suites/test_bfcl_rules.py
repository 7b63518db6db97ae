"""The leaderboard's rule, compared with recorded verdicts of its own checker."""

import json
from pathlib import Path
from typing import Any

import pytest

from evals.desk import contender, script
from surecall.base.records import Message
from surecall.evals.cases import IdealCall
from surecall.evals.records import Cell, Unit
from surecall.evals.strategies import settle
from surecall.evals.suites.bfcl import case_of
from surecall.evals.suites.bfcl.data import BfclEntry
from surecall.evals.suites.bfcl.rules import check_call, check_calls
from surecall.evals.suites.single_turn import check_call as check_strictly
from surecall.evals.trial import run_trial
from surecall.models.transport import assistant

HERE = Path(__file__).parent
ENTRIES: dict[str, Any] = {
    entry["id"]: entry for entry in json.loads((HERE / "bfcl_entries.json").read_text())
}
VERDICTS: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "bfcl_verdicts.jsonl").read_text().splitlines()
]


def is_right(entry: dict[str, Any], calls: list[dict[str, Any]]) -> bool:
    """Judge decoded calls by our rule."""
    functions = {function["name"]: function for function in entry["functions"]}
    made = [IdealCall(*next(iter(call.items()))) for call in calls]
    return not check_calls(made, functions, entry["answers"])


WITH_ANSWERS = {name: entry for name, entry in ENTRIES.items() if entry["answers"]}
TRIALS: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "bfcl_trials.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("entry", WITH_ANSWERS.values(), ids=WITH_ANSWERS.keys())
def test_the_recorded_verdicts_are_ours_too(entry: dict[str, Any]) -> None:
    """Every mutated answer is judged as the published checker judged it."""
    recorded = [row for row in VERDICTS if row["id"] == entry["id"]]
    different = [row for row in recorded if is_right(entry, row["calls"]) != row["ok"]]

    assert not different
    assert {row["ok"] for row in recorded} == {True, False}
    assert len(recorded) > 20


async def verdict_of(entry: dict[str, Any], message: dict[str, Any]) -> bool:
    """Run a trial of the strategy raw whose model gives this reply."""
    case = case_of(
        entry["category"],
        BfclEntry(
            id=entry["id"],
            messages=(Message("user", "Do it."),),
            functions=tuple(entry["functions"]),
            answers=tuple(entry["answers"]) or None,
        ),
    )
    reply = assistant(message["content"], *message.get("tool_calls", ()))
    cell = Cell(model="m", strategy="raw", suite="bfcl", scenario=case.scenario)
    row, _ = await run_trial(
        Unit(index=0, cell=cell, case=case.id),
        case,
        contender(),
        script([reply, "Done.", "Done.", "Done."]),
        settle("raw", contender()),
    )
    return row.strict_ok


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
async def test_a_raw_trial_has_the_verdict_of_the_leaderboard(entry: dict[str, Any]) -> None:
    """Every recorded reply, however its calls are damaged, gets what the leaderboard gave it."""
    recorded = [trial for trial in TRIALS if trial["id"] == entry["id"]]
    different = [
        trial for trial in recorded if await verdict_of(entry, trial["message"]) != trial["ok"]
    ]

    assert not different
    assert len(recorded) > 15


@pytest.mark.parametrize("functions", [[], [{"name": "f", "parameters": {"properties": {}}}]])
@pytest.mark.parametrize(
    ("arguments", "is_call"), [("{}", True), ('{"x": NaN}', True), ("\ufeff{}", False), ("", False)]
)
@pytest.mark.parametrize("category", ["live_irrelevance", "live_relevance"])
async def test_a_call_counts_as_made_whatever_is_offered(
    functions: list[Any], arguments: str, is_call: bool, category: str
) -> None:
    """Also where no function is offered at all, as in some cases of the leaderboard."""
    entry = {"id": "own", "category": category, "functions": functions, "answers": []}
    called = {"name": "other", "arguments": arguments}
    message = {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": called}]}
    assert await verdict_of(entry, message) == (is_call == (category == "live_relevance"))


def function(declared: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """Describe a function `f` of one parameter `x`."""
    return {
        "name": "f",
        "parameters": {"properties": {"x": declared}, "required": ["x"] if required else []},
    }


@pytest.mark.parametrize(
    ("declared", "accepted", "sent", "code"),
    [
        ({"type": "string"}, ["a", ""], "", None),
        ({"type": "string"}, ["a"], "", "wrong_value"),
        ({"type": "array", "items": {"type": "string"}}, [["a"], ""], [], None),
        ({"type": "array", "items": {"type": "dict"}}, [[{"a": [1]}], ""], [], None),
        ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], [1.0, 2], "wrong_type"),
        ({"type": "any"}, [7], 7, None),
        ({"type": "any"}, [7], 8, "wrong_value"),
        ({"type": "integer"}, ["count"], "Count", "wrong_value"),
        ({"type": "integer"}, [1], True, "wrong_type"),
        ({"type": "float"}, [1.0], 10**400, "wrong_type"),
        ({"type": "dict"}, [{"a": "yes"}], {}, None),
        ({"type": ["string", "null"]}, [None], None, None),
    ],
)
def test_a_value_is_judged_as_published(
    declared: dict[str, Any], accepted: list[Any], sent: Any, code: str | None
) -> None:
    """Quirks of the published rule are kept, because a rate here should be a rate there."""
    reasons = check_call(IdealCall("f", {"x": sent}), function(declared), {"f": {"x": accepted}})

    assert [reason.code for reason in reasons] == ([code] if code else [])


@pytest.mark.parametrize(
    ("declared", "accepted", "sent"),
    [
        ({"type": "string"}, ["a", ""], ""),
        ({"type": "array", "items": {"type": "array"}}, [[[1]]], [[True]]),
        ({"type": "dict"}, [{"a": [1]}], {"a": True}),
        ({"type": "dict"}, [{"a": [1], "b": "x"}], {"a": 1}),
    ],
)
def test_where_the_published_rule_is_loose_the_column_beside_it_says_no(
    declared: dict[str, Any], accepted: list[Any], sent: Any
) -> None:
    """The stricter rule is a second opinion, and not the verdict."""
    call, answer = IdealCall("f", {"x": sent}), {"f": {"x": accepted}}

    assert check_call(call, function(declared), answer) == ()
    assert check_strictly(call, function(declared), answer) != ()


def test_the_first_call_that_fits_is_taken() -> None:
    """As in the published checker, an early choice is not taken back."""
    doc = {"f": function({"type": "integer"})}
    answers = [{"f": {"x": [1, 2]}}, {"f": {"x": [1]}}]

    assert check_calls([IdealCall("f", {"x": 2}), IdealCall("f", {"x": 1})], doc, answers) == ()
    (reason,) = check_calls([IdealCall("f", {"x": 1}), IdealCall("f", {"x": 2})], doc, answers)
    assert reason.code == "wrong_value"
