"""The state of a workspace: snapshots, versions, locks, proposals."""

from typing import Any

import pytest

from surecall.errors import Code, WorkspaceError
from surecall.workspace import (
    ProposedFact,
    WorkspaceState,
    commit_facts,
    new_state,
    patch_draft,
    propose_facts,
)


def put(path: str, value: Any = 1) -> dict[str, Any]:
    """Return an operation that sets a path."""
    return {"op": "set", "path": path, "value": value}


def refusal(change: Any) -> WorkspaceError:
    """Return the error with which a change is refused."""
    with pytest.raises(WorkspaceError) as caught:
        change()
    return caught.value


def test_a_new_workspace_has_the_documented_shape() -> None:
    """Facts, draft, locks, ui state and both versions are in the snapshot."""
    state = new_state(facts={"a": 1}, draft={"b": 2}, locks=["/draft/b"], ui_state={"tab": 1})
    assert state.snapshot() == {
        "facts": {"a": 1},
        "draft": {"b": 2},
        "locks": {"paths": ["/draft/b"]},
        "ui_state": {"tab": 1},
        "versions": {"facts_etag": "facts:0", "draft_etag": "draft:0"},
    }
    assert len(state.id) == 36


@pytest.mark.parametrize("given", [None, [], "text", 3])
def test_what_is_no_object_becomes_an_empty_one(given: Any) -> None:
    """Facts, draft and ui state are always objects."""
    state = new_state(facts=given, draft=given, ui_state=given)
    assert (state.facts, state.draft, state.ui_state) == ({}, {}, {})


def test_nothing_is_shared_with_the_outside() -> None:
    """What went in and what came out can be changed freely."""
    draft = {"list": [1]}
    state = new_state(draft=draft)
    draft["list"].append(2)
    state.snapshot()["draft"]["list"].append(3)
    state.select(["/draft/list"])["/draft/list"].append(4)
    assert state.draft == {"list": [1]}


@pytest.mark.parametrize(
    ("written", "key", "found"),
    [
        ("/draft/a/0/b", "/draft/a/0/b", 5),
        ("/draft/a/-1", "/draft/a/-1", 6),
        ("#/draft/t", "/draft/t", "x"),
        ("draft/t", "/draft/t", "x"),
        (" `/draft/t` ", "/draft/t", "x"),
        ("'\"/draft/t\"'", "/draft/t", "x"),
        ("/draft/a~1b", "/draft/a~1b", 7),
        ("/draft/t/", "/draft/t/", "x"),
        ("/versions/draft_etag", "/versions/draft_etag", "draft:0"),
        ("/draft/missing", "/draft/missing", None),
        ("/draft/t/deeper", "/draft/t/deeper", None),
        ("/draft/a/9", "/draft/a/9", None),
        ("/draft/a/x", "/draft/a/x", None),
        ("/draft/~9", "/draft/~9", None),
    ],
)
def test_a_selection_is_forgiving(written: str, key: str, found: Any) -> None:
    """Quotes and a missing slash do not matter; what leads nowhere is null."""
    state = new_state(draft={"a": [{"b": 5}, 6], "t": "x", "a/b": 7})
    assert state.select([written, written]) == {key: found}


def test_the_pointer_of_the_root_selects_everything() -> None:
    """A single slash is the whole workspace."""
    state = new_state(draft={"a": 1})
    assert state.select(["/"]) == {"/": state.snapshot()}


def test_the_version_rises_once_for_a_patch() -> None:
    """However many operations there are, the draft gets one new version."""
    state = patch_draft(new_state(), [put("/draft/a"), put("/draft/b"), put("/draft/c")])
    assert (state.draft_etag, state.facts_etag, state.revision) == ("draft:1", "facts:0", 1)


def test_a_patch_without_operations_changes_nothing() -> None:
    """There is no new version for nothing."""
    state = new_state()
    assert patch_draft(state, []) is state


def test_an_etag_must_be_the_current_one() -> None:
    """A patch made for another version is refused and says which one it is."""
    state = patch_draft(new_state(), [put("/draft/a")], etag="draft:0")
    error = refusal(lambda: patch_draft(state, [put("/draft/b")], etag="draft:0"))
    assert error.code == Code.ARGUMENT_ERROR
    assert "draft:1" in error.message


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(put("/draft/a/b"), id="the locked path"),
        pytest.param(put("/draft/a/b/c"), id="below it"),
        pytest.param(put("/draft/a/b/c", 0), id="to what it is already"),
        pytest.param({"op": "delete", "path": "/draft/a/b/d"}, id="where nothing is"),
        pytest.param(put("/draft/a", {}), id="above it"),
        pytest.param(put("/draft/", {}), id="the whole draft"),
        pytest.param({"op": "delete", "path": "/draft/a"}, id="taken away with what holds it"),
        pytest.param(put("/draft/l/-1"), id="by another name for the same item"),
        pytest.param({"op": "delete", "path": "/draft/l/0"}, id="moved by a deletion"),
        pytest.param(
            {"op": "insert", "path": "/draft/l", "value": 0, "index": 0}, id="moved by an insertion"
        ),
    ],
)
def test_what_is_locked_cannot_be_changed(operation: dict[str, Any]) -> None:
    """Neither directly nor by a way around; the rest of the patch is not applied either."""
    state = new_state(draft={"a": {"b": {"c": 0}}, "l": [1, 2]}, locks=["/draft/a/b", "/draft/l/1"])
    error = refusal(lambda: patch_draft(state, [put("/draft/free"), operation]))
    assert error.code == Code.PATH_LOCKED


@pytest.mark.parametrize("path", ["/draft/ab", "/draft/a/bc", "/draft/l/0"])
def test_a_lock_covers_whole_parts_of_a_path(path: str) -> None:
    """A key that merely begins like a locked one is free."""
    state = new_state(draft={"a": {"b": 1}, "l": [1, 2]}, locks=["/draft/a/b", "/draft/l/1"])
    assert patch_draft(state, [put(path)]).draft_version == 1


def test_a_proposal_is_committed_once() -> None:
    """The facts get a new version, and the proposal is gone."""
    state = propose_facts(new_state(), [ProposedFact("/facts/a/b", 1, "because")])
    assert (state.facts, list(state.proposals)) == ({}, ["p1"])
    done = commit_facts(state, "p1", user_confirmed=True)
    assert done.paths == ("/facts/a/b",)
    assert (done.state.facts, done.state.facts_etag) == ({"a": {"b": 1}}, "facts:1")
    assert (done.state.draft_etag, done.state.proposals) == ("draft:0", {})
    error = refusal(lambda: commit_facts(done.state, "p1", user_confirmed=True))
    assert "no proposal 'p1'" in error.message


def test_ids_of_proposals_are_never_used_again() -> None:
    """Also after a commit the next proposal has a new number."""
    state = propose_facts(new_state(), [ProposedFact("/facts/a", 1)])
    state = commit_facts(state, "p1", user_confirmed=True).state
    assert list(propose_facts(state, [ProposedFact("/facts/b", 1)]).proposals) == ["p2"]


@pytest.mark.parametrize("confirmed", [False, None, "yes", 1])
def test_a_commit_needs_a_clear_yes(confirmed: Any) -> None:
    """Anything but true is a no."""
    state = propose_facts(new_state(), [ProposedFact("/facts/a", 1)])
    error = refusal(lambda: commit_facts(state, "p1", user_confirmed=confirmed))
    assert error.code == Code.ARGUMENT_ERROR


@pytest.mark.parametrize("path", ["/draft/a", "facts/a", "/facts"])
def test_only_facts_can_be_proposed(path: str) -> None:
    """A proposal that could never be committed is refused at once."""
    error = refusal(lambda: propose_facts(new_state(), [ProposedFact(path, {})]))
    assert error.code == Code.ARGUMENT_ERROR


def test_an_empty_proposal_is_refused() -> None:
    """There must be something to commit."""
    assert refusal(lambda: propose_facts(new_state(), [])).code == Code.ARGUMENT_ERROR


@pytest.mark.parametrize("path", ["/facts/owner", "/facts/owner/name", "/facts/"])
def test_locks_hold_for_commits(path: str) -> None:
    """A proposal that would change a locked fact is refused as a whole."""
    state = new_state(facts={"owner": "alice"}, locks=["/facts/owner"])
    facts = [ProposedFact("/facts/free", 1), ProposedFact(path, {"owner": "bob"})]
    if path == "/facts/owner/name":
        state = new_state(facts={"owner": {}}, locks=["/facts/owner"])
    state = propose_facts(state, facts)
    error = refusal(lambda: commit_facts(state, "p1", user_confirmed=True))
    assert error.code == Code.PATH_LOCKED
    assert "p1" in state.proposals


def test_a_state_is_plain_data() -> None:
    """It goes through JSON and back, so that any database can keep it."""
    import msgspec

    state = propose_facts(new_state(draft={"a": 1}), [ProposedFact("/facts/a", [1])])
    assert msgspec.json.decode(msgspec.json.encode(state), type=WorkspaceState) == state
