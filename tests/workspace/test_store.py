"""Workspaces in a store: nothing is lost when several write at the same time."""

import asyncio
from typing import Any

import pytest

from surecall.errors import Code, WorkspaceError
from surecall.workspace import (
    MemoryStore,
    ProposedFact,
    Workspace,
    WorkspaceState,
    new_state,
    patch_draft,
)


class SlowStore(MemoryStore):
    """Lets others in between looking and storing, as a database does."""

    async def load(self, workspace_id: str) -> WorkspaceState | None:
        """Return the state, late."""
        state = await super().load(workspace_id)
        await asyncio.sleep(0)
        return state


def kept(store: MemoryStore, **fields: Any) -> Workspace:
    """Return a fresh workspace in the store."""
    state = new_state(**fields)
    assert store.add(state)
    return Workspace(state.id, store)


def put(path: str, value: Any = 1) -> dict[str, Any]:
    """Return an operation that sets a path."""
    return {"op": "set", "path": path, "value": value}


async def test_a_state_must_follow_the_stored_one() -> None:
    """Neither a second beginning nor an overtaken change is stored."""
    store, state = MemoryStore(), new_state(id="w")
    assert await store.save(state)
    one, other = patch_draft(state, [put("/draft/a")]), patch_draft(state, [put("/draft/b")])
    assert await store.save(one)
    assert not await store.save(other)
    assert not await store.save(state)
    assert await store.load("w") == one
    assert await store.load("x") is None


async def test_writers_at_the_same_time_lose_nothing() -> None:
    """A change that was overtaken is made anew on the newest state."""
    workspace = kept(SlowStore())
    await asyncio.gather(*(workspace.patch([put(f"/draft/{name}")]) for name in "abc"))
    state = await workspace.read()
    assert state.draft == {"a": 1, "b": 1, "c": 1}
    assert state.draft_etag == "draft:3"


async def test_an_etag_is_held_against_the_newest_state() -> None:
    """Of two that were made for the same version only one is applied."""
    workspace = kept(SlowStore())
    results = await asyncio.gather(
        *(workspace.patch([put(f"/draft/{name}")], etag="draft:0") for name in "ab"),
        return_exceptions=True,
    )
    errors = [item for item in results if isinstance(item, WorkspaceError)]
    assert [error.code for error in errors] == [Code.ARGUMENT_ERROR]
    assert len((await workspace.read()).draft) == 1


async def test_a_change_that_is_always_overtaken_is_given_up() -> None:
    """It ends with a code and without any effect."""

    class Busy(MemoryStore):
        async def save(self, state: WorkspaceState) -> bool:
            return False

    workspace = kept(Busy())
    with pytest.raises(WorkspaceError) as caught:
        await workspace.patch([put("/draft/a")])
    assert caught.value.code == Code.WORKSPACE_CONFLICT
    assert (await workspace.read()).draft == {}


async def test_a_workspace_that_is_not_there_is_not_found() -> None:
    """Every method says so."""
    with pytest.raises(WorkspaceError) as caught:
        await Workspace("nowhere", MemoryStore()).patch([put("/draft/a")])
    assert caught.value.code == Code.WORKSPACE_NOT_FOUND


async def test_proposing_and_committing_through_a_workspace() -> None:
    """The id that is returned is the one that can be committed."""
    workspace = kept(MemoryStore())
    await workspace.propose([ProposedFact("/facts/x", 0)])
    second = await workspace.propose([ProposedFact("/facts/a", 1), ProposedFact("/facts/b", 2)])
    state, paths = await workspace.commit(second, user_confirmed=True)
    assert (state.facts, paths) == ({"a": 1, "b": 2}, ("/facts/a", "/facts/b"))
    assert list(state.proposals) == ["p1"]
