"""Several writers of one workspace in one process: nothing is lost."""

import asyncio
from typing import Any

import pytest

from surecall.base.errors import Code, WorkspaceError
from surecall.workspace import MemoryStore, Workspace, WorkspaceState, new_state


class SlowStore(MemoryStore):
    """Lets others in between looking and storing, as a database does."""

    async def load_state(
        self, workspace_id: str, revision: int | None = None
    ) -> WorkspaceState | None:
        """Return the state, late."""
        state = await super().load_state(workspace_id, revision)
        await asyncio.sleep(0)
        return state


def kept(store: MemoryStore, **fields: Any) -> Workspace:
    """Return a fresh workspace in the store."""
    state = new_state(**fields)
    assert store.put(state)
    return Workspace(state.id, store)


def put(path: str, value: Any = 1) -> dict[str, Any]:
    """Return an operation that sets a path."""
    return {"op": "set", "path": path, "value": value}


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
        async def save_state(self, *_: Any, **__: Any) -> bool:
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
