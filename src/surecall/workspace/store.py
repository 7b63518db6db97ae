"""Where workspaces are kept."""

from typing import Protocol

from .state import WorkspaceState

__all__ = ["MemoryStore", "WorkspaceStore"]


class WorkspaceStore(Protocol):
    """Keeps the newest state of workspaces; a database can stand behind it."""

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
