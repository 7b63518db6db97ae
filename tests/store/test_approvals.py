"""One contract for approvals and paused runs in memory, in SQLite, and on PostgreSQL."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import ApprovalError, Code
from surecall.tools.approvals import Approval, Decision, PausedRun
from surecall.workspace import WorkspaceStore

NOW = datetime.now(UTC)


def make(number: int = 0, **fields: Any) -> Approval:
    """Return an approval that waits."""
    given: dict[str, Any] = {
        "id": f"a{number}",
        "subject": "call",
        "name": "delete",
        "digest": f"d{number}",
        "payload": {"path": "/tmp/ä", "n": [1, None]},
        "created_at": NOW,
        "expires_at": NOW + timedelta(hours=1),
        "run_id": "r1",
        "call_id": "c1",
    }
    return Approval(**(given | fields))


async def code_of(change: Any) -> str:
    """Return the code with which a step is refused."""
    with pytest.raises(ApprovalError) as caught:
        await change
    return caught.value.code


async def test_approvals_come_back_as_they_were_added(store: WorkspaceStore) -> None:
    """With the run that waits for them; one that is there is never replaced."""
    run = PausedRun(run_id="r1", state=b"\xff\0state", created_at=NOW, approval_ids=("a0", "a1"))
    await store.add([make(0), make(1)], run)
    await store.add([replace(make(0), payload="other")])
    await store.add([])
    assert await store.get("a0") == make(0)
    assert await store.load_run("r1") == run
    later = replace(run, state=b"later")
    assert await store.replace_run(run, later)
    assert not await store.replace_run(run, replace(run, state=b"late"))
    assert await store.load_run("r1") == later
    await store.drop_run("r1")
    assert not await store.replace_run(later, run)
    await store.drop_run("r1")
    assert await code_of(store.load_run("r1")) == Code.APPROVAL_NOT_FOUND


async def test_lists_are_filtered_and_newest_first(store: WorkspaceStore) -> None:
    """By status as it is now, run, subject and name."""
    gone = make(3, expires_at=NOW - timedelta(seconds=1))
    await store.add([make(0), make(1, run_id="r2"), make(2, subject="facts", name="w"), gone])
    await store.decide("a1", Decision(approved=True, by="ben"))
    await store.decide("a2", Decision(approved=False, by="ben"))

    async def ids(**wanted: Any) -> list[str]:
        return [each.id for each in await store.list(**wanted)]

    assert await ids() == ["a3", "a2", "a1", "a0"]
    assert await ids(limit=2) == ["a3", "a2"]
    assert await ids(status="pending") == ["a0"]
    assert await ids(status="approved", run_id="r2") == ["a1"]
    assert await ids(status="denied") == ["a2"]
    assert await ids(status="expired") == ["a3"]
    assert await ids(status="used") == []
    assert await ids(run_id="r1", subject="call") == ["a3", "a0"]
    assert await ids(subject="facts", name="w") == ["a2"]
    assert await ids(name="\0") == []
    assert (await store.list(status="expired"))[0].status == "expired"


async def test_an_approval_is_decided_once_and_used_once(store: WorkspaceStore) -> None:
    """For exactly what it binds."""
    await store.add([make(0)])
    assert await code_of(store.use("a0", "d0")) == Code.APPROVAL_MISSING
    decided = await store.decide("a0", Decision(approved=True, by="ben", reason="fine"))
    assert (decided.status, decided.decided_by, decided.reason) == ("approved", "ben", "fine")
    assert await store.get("a0") == decided
    no = Decision(approved=False, by="ben")
    assert await code_of(store.decide("a0", no)) == Code.APPROVAL_DECIDED
    assert await code_of(store.use("a0", "other")) == Code.APPROVAL_MISMATCH
    assert (await store.use("a0", "d0")).status == "used"
    assert await code_of(store.use("a0", "d0")) == Code.APPROVAL_USED


async def test_an_edit_binds_what_it_says(store: WorkspaceStore) -> None:
    """The original stays on record, and only the edited content can be used."""
    await store.add([make(0)])
    edit = Decision(approved=True, by="ben", edited={"path": "/x"}, edited_digest="e")
    decided = await store.decide("a0", edit)
    assert (decided.digest, decided.approved_digest) == ("d0", "e")
    assert (await store.get("a0")).approved_payload == {"path": "/x"}
    assert await code_of(store.use("a0", "d0")) == Code.APPROVAL_MISMATCH
    assert (await store.use("a0", "e")).status == "used"


async def test_many_at_once_decide_and_use_once(store: WorkspaceStore) -> None:
    """The first counts; the others are told."""
    await store.add([make(0)])
    decisions = [Decision(approved=True, by=str(number)) for number in range(4)]
    decided = await asyncio.gather(
        *(store.decide("a0", each) for each in decisions), return_exceptions=True
    )
    winners = [each.decided_by for each in decided if isinstance(each, Approval)]
    assert winners == [(await store.get("a0")).decided_by]
    used = await asyncio.gather(*(store.use("a0", "d0") for _ in range(4)), return_exceptions=True)
    codes = [each.code for each in used if isinstance(each, ApprovalError)]
    assert codes == [Code.APPROVAL_USED] * 3


async def test_an_expired_approval_is_good_for_nothing(store: WorkspaceStore) -> None:
    """It can neither be decided nor used."""
    await store.add([make(0, expires_at=NOW)])
    yes = Decision(approved=True, by="ben")
    assert (await store.get("a0")).status == "expired"
    assert await code_of(store.decide("a0", yes)) == Code.APPROVAL_EXPIRED
    assert await code_of(store.use("a0", "d0")) == Code.APPROVAL_EXPIRED


async def test_ids_that_are_not_there_are_not_found(store: WorkspaceStore) -> None:
    """Whatever they look like."""
    yes = Decision(approved=True, by="ben")
    for given in ("x", "", "\0", "\ud800", "y" * 999):
        asked = (store.get(given), store.decide(given, yes), store.use(given, "d"))
        for step in (*asked, store.load_run(given)):
            assert await code_of(step) == Code.APPROVAL_NOT_FOUND
        await store.drop_run(given)
