"""The state of a workspace: snapshots, versions, locks, limits."""

from typing import Any

import pytest

from surecall.base.errors import Code, WorkspaceError
from surecall.base.limits import MAX_WORKSPACE_PART_BYTES
from surecall.workspace import new_state, patch_part
from surecall.workspace.state import set_facts, set_locks


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
    assert state.snapshot(original=True) == {
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
    state = patch_part(new_state(), [put("/draft/a"), put("/draft/b"), put("/draft/c")])
    assert (state.draft_etag, state.facts_etag, state.revision) == ("draft:1", "facts:0", 1)


def test_a_patch_without_operations_changes_nothing() -> None:
    """There is no new version for nothing."""
    state = new_state()
    assert patch_part(state, []) is state


def test_an_etag_must_be_the_current_one() -> None:
    """A patch made for another version is refused and says which one it is."""
    state = patch_part(new_state(), [put("/draft/a")], etag="draft:0")
    error = refusal(lambda: patch_part(state, [put("/draft/b")], etag="draft:0"))
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
    error = refusal(lambda: patch_part(state, [put("/draft/free"), operation]))
    assert error.code == Code.PATH_LOCKED


@pytest.mark.parametrize("path", ["/draft/ab", "/draft/a/bc", "/draft/l/0"])
def test_a_lock_covers_whole_parts_of_a_path(path: str) -> None:
    """A key that merely begins like a locked one is free."""
    state = new_state(draft={"a": {"b": 1}, "l": [1, 2]}, locks=["/draft/a/b", "/draft/l/1"])
    assert patch_part(state, [put(path)]).draft_version == 1


@pytest.mark.parametrize("path", ["/facts/owner", "/facts/owner/name", "/facts/"])
def test_locks_hold_for_facts(path: str) -> None:
    """Facts that would change a locked one are refused as a whole."""
    state = new_state(facts={"owner": "alice"}, locks=["/facts/owner"])
    if path == "/facts/owner/name":
        state = new_state(facts={"owner": {}}, locks=["/facts/owner"])
    error = refusal(lambda: set_facts(state, [("/facts/free", 1), (path, {"owner": "bob"})]))
    assert error.code == Code.PATH_LOCKED


@pytest.mark.parametrize("path", ["/draft/a", "facts/a", "/facts"])
def test_only_facts_can_be_set_as_facts(path: str) -> None:
    """A path elsewhere is refused."""
    assert refusal(lambda: set_facts(new_state(), [(path, {})])).code == Code.ARGUMENT_ERROR


def test_each_part_has_its_own_version() -> None:
    """A change of one part leaves the versions of the others alone."""
    state = patch_part(new_state(), [put("/ui_state/tab")], part="ui_state")
    state = set_locks(set_facts(state, [("/facts/a", 1)]), ["/facts/a"])
    assert state.snapshot()["versions"] == {
        "facts_etag": "facts:1",
        "draft_etag": "draft:0",
        "locks_etag": "locks:1",
        "ui_state_etag": "ui_state:1",
    }
    assert state.revision == 3


@pytest.mark.parametrize("part", ["facts", "locks", "nothing"])
def test_only_draft_and_ui_state_can_be_patched(part: Any) -> None:
    """Facts have no way around a confirmation."""
    error = refusal(lambda: patch_part(new_state(), [put(f"/{part}/a")], part=part))
    assert error.code == Code.ARGUMENT_ERROR


@pytest.mark.parametrize("path", ["", "/", "/versions/x", "/locks/0", "/draft/~9"])
def test_only_what_has_content_can_be_locked(path: str) -> None:
    """A lock that could never hold anything is refused."""
    assert refusal(lambda: set_locks(new_state(), [path])).code == Code.ARGUMENT_ERROR


@pytest.mark.parametrize("value", [float("nan"), "\ud800", object(), 1j])
def test_what_is_not_json_is_refused(value: Any) -> None:
    """Nothing gets in that a store could not give back."""
    error = refusal(lambda: patch_part(new_state(), [put("/draft/a", value)]))
    assert error.code == Code.ARGUMENT_ERROR


def test_a_draft_has_a_limit() -> None:
    """Also when many small patches make it large."""
    state = new_state(draft={"a": "x" * (MAX_WORKSPACE_PART_BYTES - 100)})
    error = refusal(lambda: patch_part(state, [put("/draft/b", "y" * 100)]))
    assert error.code == Code.WORKSPACE_TOO_LARGE


def test_a_draft_cannot_nest_without_end() -> None:
    """What is stored can be read again."""
    value: Any = 1
    for _ in range(200):
        value = [value]
    error = refusal(lambda: patch_part(new_state(), [put("/draft/a", value)]))
    assert error.code == Code.ARGUMENT_ERROR
