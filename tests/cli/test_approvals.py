"""`surecall approvals`: what waits is listed and shown, and decisions reach the run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import surecall
from surecall import RunResult, ScriptedTransport
from surecall.cli.console import ExitCode
from surecall.models.transport import assistant, tool_call

from .harness import document, invoke

stores = pytest.importorskip("surecall.store")

PLACE = Path(".surecall/approvals.db")
PAID: list[int] = []


@surecall.tool(effect="external", approval="required")
def pay(to: str, amount: int) -> dict[str, Any]:
    """Pay somebody."""
    PAID.append(amount)
    return {"paid": amount}


@pytest.fixture
def paused(own_folder: Path) -> RunResult:
    """A run that waits, in the store that the command looks into."""
    PAID.clear()

    async def start() -> RunResult:
        call = tool_call("pay", {"to": "ann\x1b[31m", "amount": 500}, "c0")
        async with stores.open_store(PLACE) as store:
            return await surecall.run(
                "Pay.",
                model="m",
                preset=(),
                tools=[pay],
                approvals=store,
                transport=ScriptedTransport([assistant(None, call)]),
            )

    return asyncio.run(start())


def resume(run_id: str) -> RunResult:
    """Resume the run in a new event loop, as another process would."""

    async def go_on() -> RunResult:
        async with stores.open_store(PLACE) as store:
            return await surecall.resume(
                run_id,
                preset=(),
                tools=[pay],
                approvals=store,
                transport=ScriptedTransport(["Done."]),
            )

    return asyncio.run(go_on())


def test_what_waits_is_listed(paused: RunResult) -> None:
    """As a table without control characters, and as JSON."""
    (approval,) = paused.pending
    for command in (["approvals"], ["approvals", "list"]):
        page = invoke(*command)
        assert page.exit_code == ExitCode.OK
        assert approval.id in page.stdout
        assert "pay" in page.stdout
        assert "\x1b" not in page.stdout
    data = document(invoke("approvals", "list", "--json"))
    assert (data["type"], data["count"]) == ("approvals", 1)
    assert data["approvals"][0]["payload"]["amount"] == 500
    assert document(invoke("approvals", "list", "--status", "denied", "--json"))["count"] == 0
    assert "There are no" in invoke("approvals", "list", "--status", "used").stdout
    assert document(invoke("approvals", "list", "--run", "other", "--json"))["count"] == 0


def test_an_approval_is_shown(paused: RunResult) -> None:
    """What it binds, and until when."""
    (approval,) = paused.pending
    page = invoke("approvals", "show", approval.id).stdout
    assert approval.digest in page
    assert '"amount": 500' in page
    assert "\x1b" not in page
    assert document(invoke("approvals", "show", approval.id, "--json"))["status"] == "pending"


@pytest.mark.parametrize("width", [36, 40, 60])
def test_a_narrow_terminal_shows_whole_approvals(paused: RunResult, width: int) -> None:
    """An id is what the other commands take."""
    (approval,) = paused.pending
    assert approval.id in invoke("approvals", COLUMNS=str(width)).stdout


def test_an_edited_call_runs_as_edited(paused: RunResult) -> None:
    """The decision is stored once, with who made it."""
    (approval,) = paused.pending
    edit = '{"to": "ann", "amount": 5}'
    said = invoke("approvals", "approve", approval.id, "--edit", edit, "--by", "ada")
    assert "is approved with other arguments" in said.stdout
    assert resume(paused.run_id).text == "Done."
    assert PAID == [5]
    shown = document(invoke("approvals", "show", approval.id, "--json"))
    assert (shown["status"], shown["decided_by"]) == ("used", "ada")
    again = invoke("approvals", "deny", approval.id)
    assert again.exit_code == ExitCode.USAGE
    assert "APPROVAL_DECIDED" in again.stderr


def test_a_denied_call_does_not_run(paused: RunResult) -> None:
    """The model reads the reason."""
    (approval,) = paused.pending
    said = document(invoke("approvals", "deny", approval.id, "--reason", "Too much.", "--json"))
    assert (said["status"], said["reason"]) == ("denied", "Too much.")
    result = resume(paused.run_id)
    assert "Too much." in result.history[2].text
    assert PAID == []


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ("{", "INVALID_OPTION"),
        ("[]", "INVALID_OPTION"),
        ('{"to": "ann"}', "ARGUMENTS_INVALID"),
        ('{"to": "ann", "amount": "much"}', "ARGUMENTS_INVALID"),
    ],
)
def test_an_edit_that_does_not_fit_decides_nothing(paused: RunResult, edit: str, code: str) -> None:
    """The approval still waits."""
    (approval,) = paused.pending
    refused = invoke("approvals", "approve", approval.id, "--edit", edit)
    assert "  fix   " in refused.stderr
    assert refused.exit_code == ExitCode.USAGE
    assert code in refused.stderr
    assert document(invoke("approvals", "show", approval.id, "--json"))["status"] == "pending"


def test_a_store_that_is_not_there_is_not_made(own_folder: Path) -> None:
    """A wrong name is an error and leaves no file behind."""
    missing = invoke("approvals", "list", "--store", "nothing.db")
    assert missing.exit_code == ExitCode.USAGE
    assert "nothing.db does not exist" in missing.stderr
    assert not Path("nothing.db").exists()
