"""A workspace: its state in a store, and a log of what was done to it."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from surecall.errors import Code, WorkspaceError

from .patch import copy_value
from .state import (
    ProposedFact,
    WorkspaceState,
    commit_facts,
    patch_draft,
    propose_facts,
)


class WorkspaceStore(Protocol):
    """Keeps the newest state of workspaces; it can be backed by a database."""

    async def load(self, workspace_id: str) -> WorkspaceState | None:
        """Return the newest state of a workspace, or `None` when it is not known."""
        ...

    async def save(self, state: WorkspaceState) -> bool:
        """Store a state if it follows the stored one, and tell whether it did.

        A state follows another when its revision is one higher; the first, with revision 0,
        follows none. Looking and storing must be one step.
        """
        ...


class MemoryStore:
    """Keeps workspaces in this process, for tests, examples and evaluations."""

    def __init__(self) -> None:
        self._states: dict[str, WorkspaceState] = {}

    def find(self, workspace_id: str) -> WorkspaceState | None:
        """Return the newest state at once."""
        return self._states.get(workspace_id)

    async def load(self, workspace_id: str) -> WorkspaceState | None:
        """Return the newest state."""
        return self._states.get(workspace_id)

    async def save(self, state: WorkspaceState) -> bool:
        """Store a state if it follows the stored one."""
        return self.add(state)

    def add(self, state: WorkspaceState) -> bool:
        """Store a state at once if it follows the stored one."""
        stored = self._states.get(state.id)
        if state.revision != (0 if stored is None else stored.revision + 1):
            return False
        self._states[state.id] = state
        return True


class LoggedCall(Struct, frozen=True, kw_only=True):
    """One call that reached a tool of the workspace."""

    tool: str
    arguments: dict[str, Any]
    ok: bool
    code: str | None = None
    """Why it was refused."""
    read: tuple[str, ...] = ()
    """Pointers it read; `/` is the whole workspace."""
    written: tuple[str, ...] = ()
    """Paths it set, deleted or added to, or proposes to set."""
    etag: str | None = None
    """The version that its change led to."""


class CallLog:
    """The calls in the order in which they were made."""

    def __init__(self) -> None:
        self._calls: list[LoggedCall] = []

    @property
    def calls(self) -> tuple[LoggedCall, ...]:
        """Every call so far, also those that were refused."""
        return tuple(self._calls)

    def add(self, tool: str, arguments: dict[str, Any], **fields: Any) -> None:
        """Note one call."""
        self._calls.append(LoggedCall(tool=tool, arguments=copy_value(arguments), **fields))


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
