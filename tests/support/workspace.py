"""A small workspace as an application would build it: a draft to edit, facts that are guarded."""

from typing import Any

from surecall.workspace import MemoryStore, WorkspaceTools, new_state
from surecall.workspace import Workspace as StoredWorkspace

__all__ = ["ALLOWED_PATH", "Workspace"]

ALLOWED_PATH = "/draft/foo"


class Workspace:
    """One workspace of which a model may read all and set one path."""

    def __init__(self, draft: dict[str, Any] | None = None) -> None:
        state = new_state(draft=draft)
        self.id = state.id
        self._store = MemoryStore()
        self._store.put(state)
        made = WorkspaceTools(
            StoredWorkspace(self.id, self._store), settable=(ALLOWED_PATH,), original=True
        )
        self._log = made.log
        self.tools = made.registry(exposed=("state_get", "state_patch"))

    @property
    def facts(self) -> dict[str, Any]:
        """What holds."""
        return self._state.facts

    @property
    def draft(self) -> dict[str, Any]:
        """What is being worked on."""
        return self._state.draft

    @property
    def draft_version(self) -> int:
        """How often the draft was changed."""
        return self._state.draft_version

    @property
    def executed(self) -> list[str]:
        """The tools that ran, in order."""
        return [call.tool for call in self._log.calls]

    @property
    def _state(self) -> Any:
        return self._store.find(self.id)
