"""Conversations of several turns: played through trials, judged by the leaderboard's rule."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evals.desk import contender, script, unit
from surecall.base.errors import ConfigError
from surecall.evals import evaluate_sync, plan, regrade_sync
from surecall.evals.cases import IdealCall
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.strategies import settle
from surecall.evals.suites.bfcl import (
    BfclSuite,
    ConversationCase,
    Turn,
    check_results,
    check_state,
    parse_call,
    play_turns,
)
from surecall.evals.trial import run_trial
from surecall.models.transport import ScriptedReply, assistant, tool_call

from .bfcl_wheel import CONVERSATIONS, write_wheel

TICKETS = CONVERSATIONS[1]

HERE = Path(__file__).parent
RECORDED: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "bfcl_turns.jsonl").read_text().splitlines()
]
PACKAGE = os.environ.get("BFCL_WHEEL", "")
RAISED = "Error during execution"
LOGIN = ("ticket_login", {"username": "Mira", "password": "pw"})
LIFT = {"title": "Lift", "description": "It is stuck.", "priority": 4}
CREATE = ("create_ticket", LIFT)
REST = (
    ("resolve_ticket", {"ticket_id": 8, "resolution": "It runs."}),
    ("close_ticket", {"ticket_id": 7}),
    ("edit_ticket", {"ticket_id": 7, "updates": {"priority": 1}}),
    ("get_user_tickets", {"status": "closed"}),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a wheel with our own conversations."""
    return write_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def tickets(wheel: Path) -> ConversationCase:
    """Return the conversation of two turns about tickets."""
    (case,) = BfclSuite(wheel).cases("multi_turn_base")
    assert isinstance(case, ConversationCase)
    return case


def call(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a reply with these calls."""
    return assistant(None, *(tool_call(name, json.dumps(given)) for name, given in calls))


async def play(
    case: ConversationCase, *replies: Any, strategy: str = "raw", **arguments: Any
) -> tuple[TrialRow, TrialBody]:
    """Run one trial on these replies."""
    who = contender()
    settled = settle(strategy, who)
    return await run_trial(unit(), case, who, script(replies), settled, **arguments)


def codes_of(row: TrialRow) -> list[str]:
    """Return the codes of the strict verdict."""
    return [reason.code for reason in row.strict_reasons]


# the rule and the APIs, beside the leaderboard's own


@pytest.mark.skipif(not PACKAGE, reason="BFCL_WHEEL does not name the leaderboard's wheel")
@pytest.mark.parametrize("row", CONVERSATIONS, ids=lambda row: row["id"])
def test_the_recorded_results_and_verdicts_are_ours_too(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    """Every changed answer returns what the official APIs returned, and is judged as it was."""
    own, case_id = tmp_path / "own.whl", row["id"]
    names = ("BFCL_v4_multi_turn_base.json", "possible_answer/BFCL_v4_multi_turn_base.json")
    with zipfile.ZipFile(PACKAGE) as package, zipfile.ZipFile(own, "w") as archive:
        for name in package.namelist():
            line = row if name.endswith(names) else None
            archive.writestr(name, json.dumps(line) if line else package.read(name))
    (case,) = BfclSuite(own).cases("multi_turn_base")
    assert isinstance(case, ConversationCase)
    conversation = case.conversation
    functions = {function["name"]: function for function in conversation.functions}
    expected = play_turns(conversation, conversation.expected)
    recorded = [row for row in RECORDED if row["id"] == case_id]
    for row in recorded:
        made = play_turns(
            conversation, [[parse_call(text, functions) for text in turn] for turn in row["turns"]]
        )
        is_right = not [*check_state(expected, made), *check_results(expected, made)]
        assert is_right == row["ok"], row["turns"]
        for turn, results in zip(made, row["results"], strict=True):
            assert list(map(drop_words, turn.results)) == list(map(read_result, results))
    assert {row["ok"] for row in recorded} == {True, False}
    assert len(recorded) >= 20


def read_result(result: str) -> str:
    """Return a result as Python writes it; objects were recorded as JSON."""
    if not result.startswith('{"') and result != "{}":
        return drop_words(result)
    return str(json.loads(result))


def drop_words(result: str) -> str:
    """Leave out what Python says of an error."""
    return RAISED if result.startswith(RAISED) else result


def test_a_result_counts_once_for_each_call_that_needs_it() -> None:
    """Results of earlier turns count; the same result twice has to come twice."""
    look = IdealCall("look", {})
    wanted = [Turn((look,), ("1",), {}), Turn((look, look), ("1", "1"), {})]
    once = [Turn((look,), ("1",), {}), Turn((look,), ("2",), {})]
    twice = [Turn((look, look), ("1", "1"), {}), Turn((look,), ("2",), {})]
    assert [reason.message for reason in check_results(wanted, once)] == ["turn 2: look {}"]
    assert list(check_results(wanted, twice)) == []


def test_a_turn_that_expects_nothing_is_not_judged() -> None:
    """Neither its calls nor the state after it count; that of the next turn does."""
    look = IdealCall("look", {})
    state: dict[str, Any] = {"api": {"x": 1}}
    wanted = [Turn((), (), state), Turn((look,), ("1",), state)]
    made = [Turn((look,), ("1",), {"api": {"x": 2}}), Turn((look,), ("1",), state)]
    assert [*check_state(wanted, made), *check_results(wanted, made)] == []
    wrong = [made[0], Turn((look,), ("1",), {"api": {"x": 2}})]
    assert [reason.message for reason in check_state(wanted, wrong)] == ["turn 2: x of api"]


# trials


def test_simulated_models_play_every_conversation(wheel: Path, tmp_path: Path) -> None:
    """A model without faults passes all of them, and judging it again changes nothing."""
    suite = f"bfcl:{wheel}"
    experiment = plan("zoo:steady", suites=suite, scenarios="multi_turn_base", strategies="raw")
    run = evaluate_sync(experiment, store=tmp_path / "evals.db")
    rows = run.rows()
    assert [(row.case, row.strict_ok, row.original_ok) for row in rows] == [
        (TICKETS["id"], True, True)
    ]
    calls = [sum(map(len, TICKETS["ground_truth"]))]
    assert [len(row.calls) for row in rows] == calls
    assert all(made.exact for row in rows for made in row.calls)
    found = regrade_sync(run.id, store=tmp_path / "evals.db")
    assert (found.undecided, found.changes) == ((), ())


async def test_the_user_speaks_again_after_each_answer(tickets: ConversationCase) -> None:
    """All turns are one trial: its replies are numbered through, and the transcript shows both."""
    row, body = await play(tickets, call(LOGIN, CREATE), "Open.", call(*REST), "All done.")
    assert (row.strict_ok, row.original_ok, row.text) == (True, True, "All done.")
    assert (row.turns, row.requests) == (4, 4)
    assert [made.turn for made in row.calls] == [0, 0, 2, 2, 2, 2]
    assert [turn["turn"] for turn in body.transcript] == [0, 1, 2, 3]
    said = [[each["content"] for each in turn.get("said", ())] for turn in body.transcript]
    assert said == [[], [], ["It runs again. Resolve the ticket and close number 7."], []]
    assert len(body.request["messages"]) == 1
    assert [len(turn["calls"]) for turn in body.state["turns"]] == [2, 4]


async def test_work_that_was_not_done_is_seen_in_its_turn(tickets: ConversationCase) -> None:
    """What only the words claim, and what comes a turn too late, is wrong."""
    row, _ = await play(tickets, "Open.", call(LOGIN, CREATE, *REST), "Done.")
    assert not row.strict_ok
    assert row.parts is not None
    assert row.parts.state is not None
    assert row.parts.process is not None
    assert {reason.message for reason in row.parts.state.reasons} == {
        "turn 1: current_user of TicketAPI",
        "turn 1: ticket_queue of TicketAPI",
        "turn 1: ticket_counter of TicketAPI",
    }
    assert [reason.message for reason in row.parts.process.reasons] == ["turn 1"]
    assert [reason.code for reason in row.original_reasons] == ["no_call"]


async def test_a_read_that_was_expected_has_to_be_made(tickets: ConversationCase) -> None:
    """The state is right without it; the result that the user asked for never came."""
    row, _ = await play(tickets, call(LOGIN, CREATE), "Open.", call(*REST[:3]), "Done.")
    assert [(reason.code, reason.message) for reason in row.strict_reasons] == [
        ("missing_result", "turn 2: get_user_tickets {'status': 'closed'}")
    ]
    assert row.original_ok


async def test_more_than_was_asked_is_wrong_where_it_changes_something(
    tickets: ConversationCase,
) -> None:
    """Another look is fine, as it is there; another ticket is not."""
    look = ("get_ticket", {"ticket_id": 7})
    row, _ = await play(tickets, call(LOGIN, look, CREATE), "Open.", call(*REST), "Done.")
    assert row.strict_ok
    assert [made.exact for made in row.calls] == [True, False, True, True, True, True, True]
    other = ("create_ticket", {"title": "Stairs"})
    row, _ = await play(tickets, call(LOGIN, CREATE, other), "Open.", call(*REST), "Done.")
    assert set(codes_of(row)) == {"wrong_state"}


async def test_a_refused_call_may_be_mended(tickets: ConversationCase) -> None:
    """It never reached the API, so nothing is wrong afterwards."""
    wrong = ("create_ticket", {**LIFT, "priority": "high"})
    replies = (call(LOGIN), call(wrong), call(CREATE), "Open.", call(*REST), "Done.")
    row, _ = await play(tickets, *replies)
    assert row.strict_ok


async def test_a_conversation_that_breaks_off_is_not_played(tickets: ConversationCase) -> None:
    """What happened until then is kept, and the turns that are missing are counted."""
    error = ScriptedReply(status=500, message="broken")
    row, body = await play(tickets, call(LOGIN, CREATE), "Open.", call(*REST[:1]), error)
    assert (row.outcome, row.strict_ok, row.original_ok) == ("error", False, False)
    assert "turn_not_played" in codes_of(row)
    assert len(row.calls) == 3
    assert [turn["turn"] for turn in body.transcript] == [0, 1, 2, 3]


async def test_the_time_is_that_of_the_whole_conversation(tickets: ConversationCase) -> None:
    """A later turn has what the earlier ones left."""
    slow = ScriptedReply(message="Open.", delay_s=20)
    row, _ = await play(tickets, call(LOGIN, CREATE), "Open.", slow, timeout_s=0.2)
    assert (row.code, row.censored) == ("DEADLINE_EXCEEDED", True)
    assert len(row.calls) == 2


# the data


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("close_ticket(7)", {"ticket_id": 7}),
        (" close_ticket(ticket_id = 7)", {"ticket_id": 7}),
        ("mean([1, -2.5])", {"numbers": [1, -2.5]}),
        ("create_ticket('a', priority=2)", {"title": "a", "priority": 2}),
    ],
)
def test_expected_calls_are_read_as_python_writes_them(
    wheel: Path, text: str, arguments: dict[str, Any]
) -> None:
    """Arguments may have names or places; nothing is evaluated."""
    case = BfclSuite(wheel).cases("multi_turn_base")[0]
    assert isinstance(case, ConversationCase)
    functions = {function["name"]: function for function in case.conversation.functions}
    functions["mean"] = {"parameters": {"properties": {"numbers": {}}}}
    assert parse_call(text, functions).arguments == arguments


@pytest.mark.parametrize(
    "text",
    ["close_ticket", "x.close_ticket(1)", "open('a')", "close_ticket(print())", "close_ticket(1"],
)
def test_what_is_not_a_plain_call_is_refused(tmp_path: Path, text: str) -> None:
    """Neither expressions nor functions that the case does not have."""
    changed = {**TICKETS, "ground_truth": [[text], []]}
    suite = BfclSuite(write_wheel(tmp_path, cases={"multi_turn_base": [changed]}))
    with pytest.raises(ConfigError) as refused:
        suite.cases("multi_turn_base")
    assert refused.value.code == "SUITE_DATA_UNREADABLE"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"involved_classes": ["WebSearchAPI"]}, "WebSearchAPI"),
        ({"question": TICKETS["question"][:1]}, "1 turns"),
    ],
)
def test_a_case_that_cannot_be_played_is_never_left_out_silently(
    tmp_path: Path, change: dict[str, Any], word: str
) -> None:
    """An API that is not known here stops the reading, by its name."""
    rows = [{**TICKETS, **change}]
    suite = BfclSuite(write_wheel(tmp_path, cases={"multi_turn_base": rows}))
    with pytest.raises(ConfigError, match=word):
        suite.cases("multi_turn_base")


async def test_an_expected_value_of_another_type_can_be_sent(tmp_path: Path) -> None:
    """The data have a ticket whose id is a text, though the function declares a number."""
    config = {"TicketAPI": {"ticket_queue": [{"id": "t1", "status": "Open"}]}}
    row = {
        "id": "multi_turn_base_0",
        "question": [[{"role": "user", "content": "Close t1."}]],
        "initial_config": config,
        "involved_classes": ["TicketAPI"],
        "ground_truth": [["close_ticket(ticket_id='t1')"]],
    }
    suite = BfclSuite(write_wheel(tmp_path, cases={"multi_turn_base": [row]}))
    (case,) = suite.cases("multi_turn_base")
    assert isinstance(case, ConversationCase)
    found, _ = await play(case, call(("close_ticket", {"ticket_id": "t1"})), "Done.")
    assert found.strict_ok
