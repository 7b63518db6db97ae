"""One workspace in a store: read it, and change it so that no other change is lost."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from surecall.errors import Code, WorkspaceError

from .state import (
    ProposedFact,
    WorkspaceState,
    commit_facts,
    patch_draft,
    propose_facts,
)
from .store import WorkspaceStore

__all__ = ["Workspace"]

_MAX_TRIES: Final = 5


class Workspace:
    """A workspace by its id; every method works on its newest state."""

    def __init__(self, workspace_id: str, store: WorkspaceStore) -> None:
        self.id = workspace_id
        self._store = store

    async def read(self) -> WorkspaceState:
        """Return the newest state.

        Raises:
            WorkspaceError: `WORKSPACE_NOT_FOUND`.
        """
        state = await self._store.load(self.id)
        if state is None:
            raise WorkspaceError(Code.WORKSPACE_NOT_FOUND, f"there is no workspace {self.id!r}.")
        return state

    async def patch(self, operations: Sequence[Any], *, etag: str | None = None) -> WorkspaceState:
        """Apply operations to the draft, all or none; with `etag` only if it is at that version."""
        return await self._change(lambda state: patch_draft(state, operations, etag=etag))

    async def propose(self, facts: Sequence[ProposedFact]) -> str:
        """Note facts to be committed later and return the id of the proposal."""
        state = await self._change(lambda state: propose_facts(state, facts))
        return f"p{state.proposals_count}"

    async def commit(
        self, proposal_id: str, *, user_confirmed: bool
    ) -> tuple[WorkspaceState, tuple[str, ...]]:
        """Make a proposal the facts; return the new state and the paths that were set."""
        paths: tuple[str, ...] = ()

        def change(state: WorkspaceState) -> WorkspaceState:
            nonlocal paths
            committed = commit_facts(state, proposal_id, user_confirmed=user_confirmed)
            paths = committed.paths
            return committed.state

        return await self._change(change), paths

    async def _change(self, change: Callable[[WorkspaceState], WorkspaceState]) -> WorkspaceState:
        for _ in range(_MAX_TRIES):
            before = await self.read()
            after = change(before)
            if after is before or await self._store.save(after):
                return after
        raise WorkspaceError(
            Code.WORKSPACE_CONFLICT,
            f"the workspace was changed by others {_MAX_TRIES} times in a row.",
            hint="Read it again, then repeat the change.",
        )
