"""Approvals in the dashboard: what waits, what would change, and who decided."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import surecall
from support.request_records import run_postgres
from support.waiting_approvals import LARGE, TOOLS, expire, pause_run, propose_launch
from surecall.base.errors import ConfigError
from surecall.gateway.settings.load import load_settings
from surecall.store import DatabaseStore, SqliteStore, open_store
from surecall.workspace import ProposedFact, Workspace

from .harness import Plain, Served, ask, make_settings, serve_gateway
from .test_dashboard import UPSTREAMS, act, look
from .test_security import KEYS, key_tables


@asynccontextmanager
async def serve_approvals(
    folder: Path, text: str = ""
) -> AsyncGenerator[tuple[Served, DatabaseStore]]:
    """Serve a gateway beside an application that has opened its store."""
    place = folder / "approvals.db"
    settings = make_settings(folder, f'{UPSTREAMS}[approvals]\nstore = "{place}"\n{text}')
    async with SqliteStore(place) as store, serve_gateway(settings) as served:
        yield served, store


async def decide(served: Served, approval_id: str, how: str, **body: Any) -> Plain:
    """Decide as the page does."""
    return await act(served, f"approvals/{approval_id}/{how}", body)


def code_of(answer: Plain) -> str:
    """Return the code of a refusal."""
    return answer.json["error"]["code"]


# What is shown


async def test_without_a_store_the_page_says_so(tmp_path: Path) -> None:
    """No setting, and a file that no application has made yet; the gateway makes none."""
    async with serve_gateway(make_settings(tmp_path, UPSTREAMS)) as served:
        assert (await look(served, "approvals"))["state"] == "off"
        assert (await look(served, "session"))["waiting"] is None
        assert (await ask(served, "GET", "/ui/data/approvals/ap_1")).status == 404
    place = tmp_path / "later.db"
    settings = make_settings(tmp_path, UPSTREAMS, approvals=str(place))
    async with serve_gateway(settings) as served:
        found = await look(served, "approvals")
        assert (found["state"], found["place"]) == ("missing", str(place))
        assert not place.exists()
        async with SqliteStore(place) as store:
            await pause_run(store, "delete_drafts", {"count": 3})
            assert len((await look(served, "approvals"))["waiting"]) == 1


async def test_what_waits_is_listed_the_soonest_to_end_first(tmp_path: Path) -> None:
    """With what it is about; what was decided is counted and listed apart."""
    async with serve_approvals(tmp_path) as (served, store):
        mail = await pause_run(store, "send_mail", {"to": "ann", "subject": "Hi"})
        soon = await pause_run(store, "delete_drafts", {"count": 12}, approval_lifetime_s=60)
        _, proposal = await propose_launch(store)
        other = await pause_run(store, "delete_drafts", {"count": 1})
        await surecall.deny(store, other.id, by="lena", reason="No.")
        late = await expire(store, mail)
        found = await look(served, "approvals")
        assert [row["id"] for row in found["waiting"]] == [soon.id, mail.id, proposal.id]
        assert found["waiting"][0]["preview"] == '{"count": 12}'
        assert (found["waiting"][2]["subject"], found["waiting"][2]["size"]) == ("facts", 4)
        assert found["counts"] == {"denied": 1, "expired": 1}
        assert [row["id"] for row in found["decided"]] == [other.id, late.id]
        assert found["decided"][0]["decided_by"] == "lena"
        assert (await look(served, "session"))["waiting"] == 3


async def test_a_call_is_shown_with_what_was_changed_in_it(tmp_path: Path) -> None:
    """Arguments as text that no browser rounds, receipts, effect, run and conversation."""
    async with serve_approvals(tmp_path) as (served, store):
        given = {"to": "ann", "subject": "Hi", "copies": str(LARGE)}
        approval = await pause_run(store, "send_mail", given, "Write to Ann.")
        shown = await look(served, f"approvals/{approval.id}")
        assert f'"copies": {LARGE}' in shown["payload"]
        assert (shown["status"], shown["call_id"]) == ("pending", "call_1")
        run = shown["run"]
        assert (run["effect"], run["model"], run["turn"]) == ("external", "aster-70b", 1)
        assert run["description"] == "Send a mail to somebody."
        (receipt,) = run["receipts"]
        assert (receipt["place"], receipt["before"], receipt["after"]) == (
            "/copies",
            f'"{LARGE}"',
            str(LARGE),
        )
        assert f'"{LARGE}"' in run["received"]
        assert run["messages"][0] == {"role": "user", "text": "Write to Ann.", "calls": []}
        assert shown["expires_at"] - shown["created_at"] == pytest.approx(86_400)
        assert (await ask(served, "GET", "/ui/data/approvals/ap_none")).status == 404


async def test_facts_are_shown_as_they_are_now_and_as_proposed(tmp_path: Path) -> None:
    """A fact that somebody changed meanwhile is a conflict, with who and what it was."""
    async with serve_approvals(tmp_path) as (served, store):
        _, proposal = await propose_launch(store, conflict=True)
        facts = (await look(served, f"approvals/{proposal.id}"))["facts"]
        assert (facts["proposed_on"], facts["etag"]) == ("facts:0", "facts:1")
        date, venue, limit, guest = facts["rows"]
        assert (date["before"], date["after"]) == ('"2027-03-14"', '"2027-03-21"')
        assert date["reason"] == "The venue is free on 21 March only."
        assert [row["is_conflict"] for row in facts["rows"]] == [False, False, True, False]
        assert (limit["then"], limit["before"], limit["after"]) == ("8000", "9000", "9500")
        assert limit["changed_by"] == "lena"
        assert (guest["before"], guest["after"]) == (None, '"Noor"')
        assert venue["is_conflict"] is False


async def test_a_proposal_that_cannot_be_compared_can_be_denied(tmp_path: Path) -> None:
    """Its workspace is gone, and the page says so."""
    async with serve_approvals(tmp_path) as (served, store):
        async with SqliteStore(tmp_path / "other.db") as other:
            workspace, proposal = await propose_launch(other)
            await store.add([await other.get(proposal.id)])
        shown = await look(served, f"approvals/{proposal.id}")
        assert "there is no workspace" in shown["facts"]["problem"]
        assert workspace.id == shown["name"]
        answer = await decide(served, proposal.id, "approve", seen="facts:0")
        assert (answer.status, code_of(answer)) == (404, "WORKSPACE_NOT_FOUND")
        assert (await decide(served, proposal.id, "deny", reason="Again.")).status == 200


# What is decided


async def test_an_approved_call_runs_once_when_its_run_is_resumed(tmp_path: Path) -> None:
    """The page says who decided, and what the run did with it."""
    async with serve_approvals(tmp_path) as (served, store):
        approval = await pause_run(store, "delete_drafts", {"count": 12})
        shown = (await decide(served, approval.id, "approve")).json
        assert (shown["status"], shown["decided_by"]) == ("approved", "local user")
        result = await surecall.resume(
            approval.run_id,
            tools=TOOLS,
            approvals=store,
            preset=(),
            transport=surecall.ScriptedTransport(["Done."]),
        )
        assert result.results[-1].envelope.data == {"deleted": 12}
        assert (await look(served, f"approvals/{approval.id}"))["status"] == "used"


async def test_edited_arguments_are_checked_and_bound(tmp_path: Path) -> None:
    """What is not JSON, no object, or does not fit the tool decides nothing."""
    async with serve_approvals(tmp_path) as (served, store):
        approval = await pause_run(store, "delete_drafts", {"count": 12})
        for text, code in (
            ("{", "INVALID_REQUEST"),
            ("[1]", "INVALID_REQUEST"),
            ({"count": 1}, "INVALID_REQUEST"),
            ('{"count": "many"}', "ARGUMENTS_INVALID"),
            ("{}", "ARGUMENTS_INVALID"),
        ):
            answer = await decide(served, approval.id, "approve", arguments=text)
            assert (answer.status, code_of(answer)) == (400, code)
        assert (await store.get(approval.id)).status == "pending"
        answer = await decide(served, approval.id, "approve", arguments=f'{{"count": {LARGE}}}')
        assert f'"count": {LARGE}' in answer.json["approved"]
        assert (await store.get(approval.id)).approved_payload == {"count": LARGE}
        assert (await look(served, "approvals"))["counts"] == {"edited": 1}


async def test_a_denial_needs_a_reason_which_the_model_reads(tmp_path: Path) -> None:
    """Blank is none."""
    async with serve_approvals(tmp_path) as (served, store):
        approval = await pause_run(store, "delete_drafts", {"count": 12})
        for reason in ("", " \n", "x" * 5_000):
            assert (await decide(served, approval.id, "deny", reason=reason)).status == 400
        shown = (await decide(served, approval.id, "deny", reason="Keep them.")).json
        assert (shown["status"], shown["reason"]) == ("denied", "Keep them.")
        transport = surecall.ScriptedTransport(["I kept them."])
        await surecall.resume(
            approval.run_id, tools=TOOLS, approvals=store, preset=(), transport=transport
        )
        assert "Keep them." in str(transport.requests[0].body)


async def test_only_one_decision_counts(tmp_path: Path) -> None:
    """Ten at once leave one; what is decided or over cannot be decided again."""
    async with serve_approvals(tmp_path) as (served, store):
        approval = await pause_run(store, "delete_drafts", {"count": 12})
        answers = await asyncio.gather(
            *(decide(served, approval.id, "deny", reason=f"No {n}.") for n in range(5)),
            *(decide(served, approval.id, "approve") for _ in range(5)),
        )
        assert sorted(answer.status for answer in answers) == [200] + [409] * 9
        late = [answer for answer in answers if answer.status == 409]
        assert {code_of(answer) for answer in late} == {"APPROVAL_DECIDED"}
        over = await expire(store, approval)
        for how in ("approve", "deny"):
            answer = await decide(served, over.id, how, reason="Late.")
            assert (answer.status, code_of(answer)) == (409, "APPROVAL_EXPIRED")
        assert (await look(served, f"approvals/{over.id}"))["status"] == "expired"


async def test_facts_are_accepted_in_part_and_committed(tmp_path: Path) -> None:
    """What is kept is not touched, what is edited is as edited, and it holds by a commit."""
    async with serve_approvals(tmp_path) as (served, store):
        workspace, proposal = await propose_launch(store, conflict=True)
        path = f"approvals/{proposal.id}"
        take = ["/facts/launch/date", "/facts/launch/venue"]
        edited = {"/facts/launch/venue": '"Town Hall"'}
        answer = await decide(
            served, proposal.id, "approve", seen="facts:1", take=take, edited=edited
        )
        assert (answer.json["status"], answer.json["outcome"]) == ("approved", "edited")
        assert (await workspace.read()).facts["launch"]["date"] == "2027-03-14"
        answer = await act(served, f"{path}/commit", {"seen": "facts:1"})
        assert answer.json["status"] == "used"
        facts = (await workspace.read()).facts
        assert (facts["launch"]["date"], facts["launch"]["venue"]) == ("2027-03-21", "Town Hall")
        assert (facts["budget"]["limit"], facts["launch"]["guests"]) == (9000, ["Ada", "Lin"])
        (change, *_) = await workspace.changes()
        assert (change.kind, change.author.by, change.edited) == ("commit", "local user", True)


async def test_facts_that_changed_since_somebody_looked_are_not_accepted(tmp_path: Path) -> None:
    """Neither accepted nor committed; nor are paths that nobody proposed."""
    async with serve_approvals(tmp_path) as (served, store):
        workspace, proposal = await propose_launch(store)
        other = await workspace.propose([ProposedFact("/facts/budget/limit", 1)])
        await workspace.accept(other.id, by="lena")
        await workspace.commit(other.id)
        for seen in ("facts:0", "", None):
            answer = await decide(served, proposal.id, "approve", seen=seen)
            assert (answer.status, code_of(answer)) == (409, "CONFLICT")
        for take in (["/facts/other"], [], "all", {}):
            answer = await decide(served, proposal.id, "approve", seen="facts:1", take=take)
            assert (answer.status, code_of(answer)) == (400, "ARGUMENT_ERROR")
        for edited in (
            {"/facts/other": "1"},
            {"/facts/budget/limit": 1},
            ["x"],
            {"/facts/budget": "1"},
        ):
            answer = await decide(served, proposal.id, "approve", seen="facts:1", edited=edited)
            assert (answer.status, code_of(answer)) == (400, "INVALID_REQUEST")
        assert (await workspace.proposal(proposal.id)).status == "pending"
        answer = await decide(served, proposal.id, "commit", seen="facts:1")
        assert (answer.status, code_of(answer)) == (409, "APPROVAL_MISSING")
        assert (await decide(served, proposal.id, "approve", seen="facts:1")).status == 200
        answer = await decide(served, proposal.id, "commit", seen="facts:0")
        assert (answer.status, code_of(answer)) == (409, "CONFLICT")


async def test_only_an_admin_decides_and_is_named(tmp_path: Path) -> None:
    """A reader may look; the decision carries the id of the key."""
    async with serve_approvals(tmp_path, key_tables()) as (served, store):
        approval = await pause_run(store, "delete_drafts", {"count": 12})
        path = f"/ui/data/approvals/{approval.id}"
        reader, admin = ({"x-api-key": KEYS[role]} for role in ("read-only", "admin"))
        assert (await ask(served, "GET", path)).status == 401
        assert (await ask(served, "GET", path, None, reader)).status == 200
        for how in ("approve", "deny", "commit"):
            assert (await ask(served, "POST", f"{path}/{how}", {}, reader)).status == 403
        answer = await ask(served, "POST", f"{path}/approve", {}, admin)
        assert answer.json["decided_by"] == "admin-id"


async def test_a_store_on_a_server_is_named_by_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL works as a file does, and its address is not in the settings."""
    with run_postgres() as server:
        monkeypatch.setenv("APPROVALS_URL", server.get_uri())
        text = f'{UPSTREAMS}[approvals]\nurl_env = "APPROVALS_URL"\n'
        async with (
            open_store(server.get_uri()) as store,
            serve_gateway(make_settings(tmp_path, text)) as served,
        ):
            workspace, proposal = await propose_launch(store)
            answer = await decide(served, proposal.id, "approve", seen="facts:0")
            assert answer.json["status"] == "approved"
            await decide(served, proposal.id, "commit", seen="facts:0")
            assert (await Workspace(workspace.id, store).read()).facts["budget"]["limit"] == 9500


def test_settings_of_approvals_are_checked(tmp_path: Path) -> None:
    """Two places, and a variable that is not set."""
    file = tmp_path / "gateway.toml"
    for text in ('store = "a.db"\nurl_env = "X"', 'url_env = "NOT_SET_ANYWHERE"', "path = 1"):
        file.write_text(f"[approvals]\n{text}\n")
        with pytest.raises(ConfigError, match="approvals"):
            load_settings(file, upstream="http://127.0.0.1:1/v1", environ={})
