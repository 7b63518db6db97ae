"""One contract for workspaces in memory, in SQLite, and on a real PostgreSQL server."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import ApprovalError, Code, SurecallError, WorkspaceError
from surecall.base.limits import MAX_OPEN_PROPOSALS, MAX_PATCH_BYTES, MAX_PATCH_OPERATIONS
from surecall.base.records import Receipt
from surecall.text import canonical_hash
from surecall.tools.approvals import Decision
from surecall.workspace import Author, ProposedFact, Workspace, WorkspaceStore

ANNA = Author(by="anna", run_id="r1", call_id="c1", receipts=(Receipt("rule", "/a", 1, [2]),))


def put(path: str, value: Any = 1) -> dict[str, Any]:
    """Return an operation that sets a path."""
    return {"op": "set", "path": path, "value": value}


async def code_of(change: Any) -> str:
    """Return the code with which a change is refused."""
    with pytest.raises(SurecallError) as caught:
        await change
    return caught.value.code


async def test_a_workspace_comes_back_as_it_was_made(store: WorkspaceStore) -> None:
    """Every part, with its versions; another reader of the store sees the same."""
    content = {"list": [1, 2.5, None, {"ä": "\U0001f600"}]}
    made = await Workspace.create(
        store, id="w1", facts=content, draft={"a": 1}, locks=["/facts"], ui_state={"t": 1}
    )
    state = await Workspace("w1", store).read()
    assert state == await made.read()
    assert (state.facts, state.draft, state.ui_state) == (content, {"a": 1}, {"t": 1})
    assert (state.locks, state.revision, state.facts_etag) == (("/facts",), 0, "facts:0")
    assert await made.select(["/facts/list/3/ä", "nothing"]) == {
        "/facts/list/3/ä": "\U0001f600",
        "/nothing": None,
    }
    assert await code_of(Workspace.create(store, id="w1")) == Code.WORKSPACE_EXISTS


async def test_what_was_read_cannot_be_changed_from_outside(store: WorkspaceStore) -> None:
    """A caller that edits what it got edits its own copy."""
    workspace = await Workspace.create(store, facts={"a": [1]})
    after = await workspace.patch([put("/draft/b", [2])])
    after.draft["b"].append(3)
    (await workspace.read()).facts["a"].append(3)
    state = await workspace.read()
    assert (state.facts, state.draft) == ({"a": [1]}, {"b": [2]})


async def test_a_request_is_claimed_by_its_success(store: WorkspaceStore) -> None:
    """The same patch is answered as the first time, also later; another one is refused."""
    workspace = await Workspace.create(store, draft={"l": []})
    append = {"op": "append", "path": "/draft/l", "value": 1}
    bad = workspace.patch([put("/draft/l/x")], request_id="q")
    assert await code_of(bad) == Code.ARGUMENT_ERROR
    first = await workspace.patch([append], request_id="q", etag="draft:0")
    await workspace.patch([append])
    assert await workspace.patch([append], request_id="q", etag="draft:0") == first
    reused = [
        workspace.patch([append, append], request_id="q"),
        workspace.patch([put("/ui_state/l")], part="ui_state", request_id="q"),
        workspace.propose([ProposedFact("/facts/a", 1)], request_id="q"),
        workspace.undo("draft:0", request_id="q"),
    ]
    for change in reused:
        assert await code_of(change) == Code.REQUEST_ID_REUSED
    other = await Workspace.create(store)
    assert (await other.patch([put("/draft/x")], request_id="q")).draft == {"x": 1}
    assert (await workspace.read()).draft == {"l": [1, 1]}


async def test_the_same_request_at_once_is_applied_once(store: WorkspaceStore) -> None:
    """All of them get the same answer."""
    workspace = await Workspace.create(store)
    append = {"op": "append", "path": "/draft/l", "value": 1}
    answers = await asyncio.gather(*(workspace.patch([append], request_id="q") for _ in range(5)))
    assert [state.revision for state in answers] == [1] * 5
    assert (await workspace.read()).draft == {"l": [1]}


async def test_facts_take_a_proposal_a_confirmation_and_a_commit(store: WorkspaceStore) -> None:
    """Each is needed, and each counts once."""
    workspace = await Workspace.create(store, facts={"price": 9})
    proposal = await workspace.propose([ProposedFact("/facts/price", 10, "seen")], author=ANNA)
    assert (proposal.status, proposal.facts[0].reason, proposal.run_id) == ("pending", "seen", "r1")
    assert await code_of(workspace.commit(proposal.id)) == Code.APPROVAL_MISSING
    (difference,) = await workspace.compare(proposal.id)
    assert (difference.before, difference.after, difference.is_new) == (9, 10, False)
    accepted = await workspace.accept(proposal.id, by="ben")
    assert (accepted.status, accepted.is_edited, accepted.decided_by) == ("approved", False, "ben")
    assert (await workspace.read()).facts == {"price": 9}
    state, paths = await workspace.commit(proposal.id, request_id="q")
    assert (state.facts, state.facts_etag, paths) == ({"price": 10}, "facts:1", ("/facts/price",))
    assert (await workspace.commit(proposal.id, request_id="q")).state == state
    assert await code_of(workspace.commit(proposal.id)) == Code.APPROVAL_USED
    assert await code_of(workspace.accept(proposal.id, by="ben")) == Code.APPROVAL_DECIDED
    assert (await workspace.proposal(proposal.id)).status == "committed"
    assert (await workspace.read()).facts_version == 1


async def test_a_fact_that_changed_after_it_was_proposed_is_a_conflict(
    store: WorkspaceStore,
) -> None:
    """Unless it has become what was proposed; the value of that time is there to compare."""
    workspace = await Workspace.create(store, facts={"price": 9, "same": 1, "still": True})
    facts = [
        ProposedFact("/facts/price", 10),
        ProposedFact("/facts/same", 2),
        ProposedFact("/facts/still", 1),
        ProposedFact("/facts/new", "mine"),
    ]
    proposal = await workspace.propose(facts)
    assert proposal.revision == 1
    assert not any(each.is_conflict for each in await workspace.compare(proposal.id))
    values = {"price": 11, "same": 2, "new": "theirs"}
    other = await workspace.propose([ProposedFact(f"/facts/{k}", v) for k, v in values.items()])
    await workspace.accept(other.id, by="ben")
    await workspace.commit(other.id)
    price, same, still, new = await workspace.compare(proposal.id)
    assert (price.is_conflict, price.then, price.before, price.after) == (True, 9, 11, 10)
    assert (new.is_conflict, new.then, new.before) == (True, None, "theirs")
    assert (same.is_conflict, still.is_conflict) == (False, False)
    # What an older surecall stored does not say when it was proposed.
    unknown = replace(await store.get(proposal.id), id="p_old", revision=None)
    await store.add([unknown])
    assert not any(each.is_conflict for each in await workspace.compare("p_old"))


async def test_one_confirmation_is_used_once_by_many_at_once(store: WorkspaceStore) -> None:
    """Of several commits at the same time one succeeds."""
    workspace = await Workspace.create(store)
    proposal = await workspace.propose([ProposedFact("/facts/a", 1)])
    await workspace.accept(proposal.id, by="ben")
    results = await asyncio.gather(
        *(workspace.commit(proposal.id) for _ in range(5)), return_exceptions=True
    )
    codes = [each.code for each in results if isinstance(each, ApprovalError)]
    assert codes == [Code.APPROVAL_USED] * 4
    assert (await workspace.read()).facts_version == 1


async def test_a_proposal_is_accepted_in_part_or_edited(store: WorkspaceStore) -> None:
    """Both are edits: they bind another digest, and the log says so."""
    workspace = await Workspace.create(store)
    facts = [ProposedFact("/facts/a", 1), ProposedFact("/facts/b", 2)]
    part = await workspace.propose(facts, author=ANNA)
    wrong = workspace.accept(part.id, by="ben", only=["/facts/c"])
    assert await code_of(wrong) == Code.ARGUMENT_ERROR
    assert await code_of(workspace.accept(part.id, by="ben", only=[])) == Code.ARGUMENT_ERROR
    chosen = await workspace.accept(part.id, by="ben", only=["/facts/b"])
    assert chosen.is_edited
    assert chosen.accepted_digest != part.digest == chosen.digest
    assert (await workspace.commit(part.id)).paths == ("/facts/b",)
    whole = await workspace.propose(facts)
    elsewhere = workspace.accept(whole.id, by="ben", edited=[ProposedFact("/draft/a", 1)])
    assert await code_of(elsewhere) == Code.ARGUMENT_ERROR
    await workspace.accept(whole.id, by="ben", edited=[ProposedFact("/facts/a", "one")])
    await workspace.commit(whole.id)
    assert (await workspace.read()).facts == {"a": "one", "b": 2}
    commits = [each for each in await workspace.changes() if each.kind == "commit"]
    assert [(each.edited, each.author.by, each.author.call_id) for each in commits] == [
        (True, "ben", ""),
        (True, "ben", "c1"),
    ]


async def test_an_edit_made_through_the_store_is_checked_too(store: WorkspaceStore) -> None:
    """Facts that another interface edited are committed, and anything else is refused."""
    workspace = await Workspace.create(store)
    edits: list[tuple[Any, str | None]] = [
        ({"workspace_id": workspace.id, "facts": [{"path": "/facts/b", "value": 2}]}, None),
        ({"workspace_id": "other", "facts": [{"path": "/facts/c", "value": 2}]}, "ARGUMENT_ERROR"),
        ({"facts": "all"}, "ARGUMENT_ERROR"),
        ({"workspace_id": workspace.id, "facts": []}, "ARGUMENT_ERROR"),
        (
            {"workspace_id": workspace.id, "facts": [{"path": "/draft/c", "value": 2}]},
            "ARGUMENT_ERROR",
        ),
    ]
    for payload, code in edits:
        proposal = await workspace.propose([ProposedFact("/facts/a", 1)])
        digest = canonical_hash(payload)
        decision = Decision(approved=True, by="ben", edited=payload, edited_digest=digest)
        await store.decide(proposal.id, decision)
        if code is None:
            await workspace.commit(proposal.id)
        else:
            assert await code_of(workspace.commit(proposal.id)) == code
    assert (await workspace.read()).facts == {"b": 2}
    assert len(await workspace.proposals()) == len(edits)


async def test_a_decision_has_a_name(store: WorkspaceStore) -> None:
    """Nobody is not somebody."""
    workspace = await Workspace.create(store)
    proposal = await workspace.propose([ProposedFact("/facts/a", 1)])
    assert await code_of(workspace.accept(proposal.id, by=" ")) == Code.ARGUMENT_ERROR
    assert await code_of(workspace.reject(proposal.id, by="")) == Code.ARGUMENT_ERROR
    assert (await workspace.proposal(proposal.id)).status == "pending"


async def test_choosing_everything_is_not_an_edit(store: WorkspaceStore) -> None:
    """What is accepted is what was proposed."""
    workspace = await Workspace.create(store)
    proposal = await workspace.propose([ProposedFact("/facts/a", 1)])
    assert not (await workspace.accept(proposal.id, by="ben", only=["/facts/a"])).is_edited


async def test_a_rejected_proposal_cannot_be_committed(store: WorkspaceStore) -> None:
    """The reason is kept with it."""
    workspace = await Workspace.create(store)
    proposal = await workspace.propose([ProposedFact("/facts/a", 1)])
    rejected = await workspace.reject(proposal.id, by="ben", reason="too old")
    assert (rejected.status, rejected.reason) == ("rejected", "too old")
    assert await code_of(workspace.commit(proposal.id)) == Code.APPROVAL_MISSING
    assert await code_of(workspace.accept(proposal.id, by="ben")) == Code.APPROVAL_DECIDED
    assert [each.id for each in await workspace.proposals("rejected")] == [proposal.id]


async def test_a_confirmation_expires(store: WorkspaceStore) -> None:
    """Whether it was given or not, nothing can be done with it later."""
    workspace = await Workspace.create(store)
    facts = [ProposedFact("/facts/a", 1)]
    late = await workspace.propose(facts, lifetime=timedelta(0))
    assert late.status == "expired"
    assert await code_of(workspace.accept(late.id, by="ben")) == Code.APPROVAL_EXPIRED
    assert await code_of(workspace.commit(late.id)) == Code.APPROVAL_EXPIRED
    soon = await workspace.propose(facts, lifetime=timedelta(milliseconds=300))
    await workspace.accept(soon.id, by="ben")
    await asyncio.sleep(0.31)
    assert await code_of(workspace.commit(soon.id)) == Code.APPROVAL_EXPIRED
    assert [each.id for each in await workspace.proposals("expired")] == [soon.id, late.id]
    assert await workspace.proposals("pending") == []


async def test_a_lock_stops_a_commit_and_leaves_the_confirmation(store: WorkspaceStore) -> None:
    """After the lock is removed, the same confirmation commits."""
    workspace = await Workspace.create(store, locks=["/facts/a"])
    proposal = await workspace.propose([ProposedFact("/facts/a", 1), ProposedFact("/facts/b", 2)])
    await workspace.accept(proposal.id, by="ben")
    assert await code_of(workspace.commit(proposal.id)) == Code.PATH_LOCKED
    assert (await workspace.read()).facts == {}
    await workspace.unlock("/facts/a")
    assert (await workspace.commit(proposal.id)).state.facts == {"a": 1, "b": 2}


async def test_the_ids_of_another_workspace_are_not_found(store: WorkspaceStore) -> None:
    """A proposal is decided and committed only where it was made."""
    mine, other = await Workspace.create(store), await Workspace.create(store)
    proposal = await mine.propose([ProposedFact("/facts/a", 1)])
    await mine.accept(proposal.id, by="ben")
    for given in (proposal.id, "", "\0", "x" * 999, "\ud800", "p1"):
        for change in (other.commit(given), other.reject(given, by="x"), other.compare(given)):
            assert await code_of(change) == Code.APPROVAL_NOT_FOUND
    assert await other.proposals() == []
    assert (await other.read()).facts == {}


async def test_undo_is_a_new_version(store: WorkspaceStore) -> None:
    """One part by its etag, or all documents by a revision."""
    workspace = await Workspace.create(store, draft={"n": 0})
    for number in (1, 2):
        await workspace.patch([put("/draft/n", number)])
    proposal = await workspace.propose([ProposedFact("/facts/a", 1)])
    await workspace.accept(proposal.id, by="ben")
    await workspace.commit(proposal.id)
    state = await workspace.undo("draft:1", author=Author(by="anna"))
    assert (state.draft, state.draft_etag, state.facts) == ({"n": 1}, "draft:3", {"a": 1})
    state = await workspace.undo(0)
    assert (state.draft, state.facts, state.facts_etag) == ({"n": 0}, {}, "facts:2")
    assert (state.draft_etag, state.ui_state_etag) == ("draft:4", "ui_state:0")
    assert (await workspace.undo("draft:4")).revision == state.revision
    last, before = (await workspace.changes())[:2]
    assert (last.kind, last.restored, last.etags) == ("undo", "0", ("facts:2", "draft:4"))
    assert (before.restored, before.author.by) == ("draft:1", "anna")
    assert (await workspace.read(revision=2)).draft == {"n": 2}


async def test_a_lock_holds_for_undo(store: WorkspaceStore) -> None:
    """What was locked meanwhile stays."""
    workspace = await Workspace.create(store, draft={"a": 1})
    await workspace.patch([put("/draft/a", 2)])
    await workspace.lock("/draft/a")
    assert await code_of(workspace.undo("draft:0")) == Code.PATH_LOCKED
    assert await code_of(workspace.undo(0)) == Code.PATH_LOCKED
    await workspace.undo("locks:0")
    assert (await workspace.undo("draft:0")).draft == {"a": 1}


async def test_a_version_that_never_was_is_not_found(store: WorkspaceStore) -> None:
    """Nothing is changed."""
    workspace = await Workspace.create(store)
    etags = ["draft:9", "draft", "draft:-1", "draft:x", "", "other:0", f"draft:{10**30}"]
    for to in [*etags, 7, -1, 10**30]:
        assert await code_of(workspace.undo(to)) == Code.VERSION_NOT_FOUND
    assert (await workspace.read()).revision == 0


async def test_the_log_says_who_changed_what(store: WorkspaceStore) -> None:
    """When, through which call, with its receipts; it can be read in pages."""
    workspace = await Workspace.create(store)
    await workspace.patch([put("/draft/a"), put("/draft/b")], author=ANNA, request_id="q")
    await workspace.lock("/draft/a")
    await workspace.render([{"show": "form"}])
    changes = await workspace.changes()
    assert [(each.revision, each.kind, each.etags) for each in changes] == [
        (3, "render", ("ui_state:1",)),
        (2, "lock", ("locks:1",)),
        (1, "patch", ("draft:1",)),
        (0, "create", ("facts:0", "draft:0", "locks:0", "ui_state:0")),
    ]
    patch = changes[2]
    assert (patch.author, patch.paths) == (ANNA, ("/draft/a", "/draft/b"))
    assert changes[0].at >= patch.at
    assert [each.revision for each in await workspace.changes(before=2, limit=1)] == [1]
    assert await workspace.changes(before=0) == []


BAD_PATCHES: list[tuple[Any, str]] = [
    ("set", Code.ARGUMENT_ERROR),
    (None, Code.ARGUMENT_ERROR),
    ({}, Code.ARGUMENT_ERROR),
    ([5], Code.ARGUMENT_ERROR),
    ([{}], Code.ARGUMENT_ERROR),
    ([{"op": "move", "path": "/draft/a", "value": 1}], Code.ARGUMENT_ERROR),
    ([{"op": "set", "path": ["/draft/a"], "value": 1}], Code.ARGUMENT_ERROR),
    ([{"op": "set", "path": "/draft/a"}], Code.ARGUMENT_ERROR),
    ([put("/facts/a")], Code.ARGUMENT_ERROR),
    ([put("/draft")], Code.ARGUMENT_ERROR),
    ([put("/draft/~2")], Code.ARGUMENT_ERROR),
    ([put("/draft/n/x")], Code.ARGUMENT_ERROR),
    ([put("/draft/l/99999999")], Code.ARGUMENT_ERROR),
    ([put("/draft/" + "a/" * 100)], Code.ARGUMENT_ERROR),
    ([put("/draft/a", float("nan"))], Code.ARGUMENT_ERROR),
    ([put("/draft/a", "\ud800")], Code.ARGUMENT_ERROR),
    ([put("/draft/a", object())], Code.ARGUMENT_ERROR),
    ([put("/draft/\ud800")], Code.ARGUMENT_ERROR),
    ([{"op": "insert", "path": "/draft/l", "value": 1, "index": True}], Code.ARGUMENT_ERROR),
    ([put("/draft/a", "x" * MAX_PATCH_BYTES)], Code.WORKSPACE_TOO_LARGE),
    ([put("/draft/a")] * (MAX_PATCH_OPERATIONS + 1), Code.WORKSPACE_TOO_LARGE),
    ([put("/draft/locked")], Code.PATH_LOCKED),
]


async def test_a_bad_patch_changes_nothing(store: WorkspaceStore) -> None:
    """Not even the good operation before it, and its request id stays free."""
    draft = {"n": 1, "l": [], "locked": 0}
    workspace = await Workspace.create(store, draft=draft, locks=["/draft/locked"])
    for operations, code in BAD_PATCHES:
        patch = [put("/draft/good"), *operations] if isinstance(operations, list) else operations
        assert await code_of(workspace.patch(patch, request_id="q")) == code, operations
    state = await workspace.read()
    assert (state.draft, state.revision) == (draft, 0)
    assert (await workspace.patch([put("/draft/n", 2)], request_id="q")).revision == 1


async def test_a_request_id_must_be_usable(store: WorkspaceStore) -> None:
    """It is refused before anything happens."""
    workspace = await Workspace.create(store)
    bad: list[Any] = ["", "\0", "\ud800", "x" * 201, 5, "a\nb"]
    for request_id in bad:
        patch = workspace.patch([put("/draft/a")], request_id=request_id)
        assert await code_of(patch) == Code.ARGUMENT_ERROR
    assert (await workspace.read()).revision == 0


async def test_an_unknown_workspace_is_not_found(store: WorkspaceStore) -> None:
    """Whatever its id looks like."""
    facts = [ProposedFact("/facts/a", 1)]
    for workspace_id in ("nowhere", "", "\0", "\ud800", "x" * 999):
        lost = Workspace(workspace_id, store)
        for change in (lost.read(), lost.patch([put("/draft/a")]), lost.propose(facts)):
            assert await code_of(change) == Code.WORKSPACE_NOT_FOUND


BAD_FACTS: list[Any] = [
    [],
    None,
    ["a"],
    [{"path": "/facts/a", "value": 1}],
    [ProposedFact("/draft/a", 1)],
    [ProposedFact("/facts", 1)],
    [ProposedFact("/facts/a", float("inf"))],
    [ProposedFact("/facts/a", 1, 5)],  # pyright: ignore[reportArgumentType]
    [ProposedFact(5, 1)],  # pyright: ignore[reportArgumentType]
]


async def test_a_bad_proposal_is_refused_at_once(store: WorkspaceStore) -> None:
    """Nobody is asked about what could never be committed."""
    workspace = await Workspace.create(store)
    for facts in BAD_FACTS:
        assert await code_of(workspace.propose(facts)) == Code.ARGUMENT_ERROR, facts
    assert await workspace.proposals() == []


async def test_a_model_cannot_flood_the_people_who_decide(store: WorkspaceStore) -> None:
    """There is a limit to what waits; a decision makes room."""
    workspace = await Workspace.create(store)
    facts = [ProposedFact("/facts/a", 1)]
    for _ in range(MAX_OPEN_PROPOSALS):
        proposal = await workspace.propose(facts)
    assert await code_of(workspace.propose(facts)) == Code.WORKSPACE_TOO_LARGE
    await workspace.reject(proposal.id, by="ben")
    await workspace.propose(facts)


async def test_writers_at_the_same_time_lose_nothing(store: WorkspaceStore) -> None:
    """A change that was overtaken is made again on the newest state."""
    workspace = await Workspace.create(store)
    append = {"op": "append", "path": "/draft/l", "value": 1}
    await asyncio.gather(*(workspace.patch([append]) for _ in range(6)))
    state = await workspace.read()
    assert (len(state.draft["l"]), state.draft_etag) == (6, "draft:6")


async def test_of_two_for_the_same_version_one_is_applied(store: WorkspaceStore) -> None:
    """The other is told which version there is now."""
    workspace = await Workspace.create(store)
    results = await asyncio.gather(
        *(workspace.patch([put(f"/draft/{name}")], etag="draft:0") for name in "ab"),
        return_exceptions=True,
    )
    errors = [each for each in results if isinstance(each, WorkspaceError)]
    assert [error.code for error in errors] == [Code.ARGUMENT_ERROR]
    assert "draft:1" in errors[0].message
