"""Where workspaces are kept: what every store promises, and one in memory."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from surecall.tools.approvals import Approval, ApprovalStore, MemoryApprovals, use

from .changes import Change
from .patches import copy_value
from .state import PARTS, Part, WorkspaceState


class ApprovalUse(NamedTuple):
    """An approval that a change uses up, and the digest of what the change does."""

    approval_id: str
    digest: str


class WorkspaceStore(ApprovalStore, Protocol):
    """Keeps every state of workspaces and the approvals of their facts, in one place.

    Each method is one atomic step: when the process dies, it was done whole or not at all.
    """

    async def load_state(
        self, workspace_id: str, revision: int | None = None
    ) -> WorkspaceState | None:
        """Return the newest state of a workspace, or that of a revision, if there is one."""
        ...

    async def save_state(
        self,
        state: WorkspaceState,
        change: Change,
        *,
        asks: Approval | None = None,
        uses: ApprovalUse | None = None,
    ) -> bool:
        """Store a state if it follows the stored one, and tell whether it did.

        A state follows another when its revision is one higher; the first, with revision 0,
        follows none. The approval that the change asks for is added, and the one that it uses is
        used up, in the same step; nothing at all is stored when that raises.

        Raises:
            ApprovalError: The approval cannot be used.
        """
        ...

    async def load_part(self, workspace_id: str, part: Part, version: int) -> Any:
        """Return the content that a part had at a version, or `None`."""
        ...

    async def find_request(self, workspace_id: str, request_id: str) -> Change | None:
        """Return the change that claimed a request id."""
        ...

    async def list_changes(
        self, workspace_id: str, *, before: int | None = None, limit: int = 100
    ) -> Sequence[Change]:
        """Return the log of a workspace, newest first, from before a revision on."""
        ...


class MemoryStore(MemoryApprovals):
    """Keeps workspaces and approvals in this process, for tests, examples and evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, list[WorkspaceState]] = {}
        self._changes: dict[str, list[Change]] = {}
        self._claims: dict[tuple[str, str], Change] = {}

    def find(self, workspace_id: str) -> WorkspaceState | None:
        """Return the newest state at once; it is shared with the store."""
        states = self._states.get(workspace_id)
        return states[-1] if states else None

    def put(self, state: WorkspaceState, *approvals: Approval) -> bool:
        """Store a state at once if it follows the stored one, without an entry in the log."""
        states = self._states.setdefault(state.id, [])
        if state.revision != len(states):
            return False
        states.append(_copy(state, states[-1] if states else None))
        for each in approvals:
            self._approvals.setdefault(each.id, each)
        return True

    async def load_state(
        self, workspace_id: str, revision: int | None = None
    ) -> WorkspaceState | None:
        """Return the newest state, or that of a revision."""
        states = self._states.get(workspace_id, [])
        if revision is None:
            return _copy(states[-1]) if states else None
        return _copy(states[revision]) if 0 <= revision < len(states) else None

    async def save_state(
        self,
        state: WorkspaceState,
        change: Change,
        *,
        asks: Approval | None = None,
        uses: ApprovalUse | None = None,
    ) -> bool:
        """Store a state if it follows the stored one."""
        used = None
        if uses is not None:
            used = use(self._find(uses.approval_id), uses.digest, datetime.now(UTC))
        if not self.put(state, *([] if asks is None else [asks])):
            return False
        self._changes.setdefault(state.id, []).append(change)
        if change.request_id:
            self._claims[state.id, change.request_id] = change
        if used is not None:
            self._approvals[used.id] = used
        return True

    async def load_part(self, workspace_id: str, part: Part, version: int) -> Any:
        """Return the content that a part had at a version."""
        for state in self._states.get(workspace_id, []):
            if state.version(part) == version:
                return copy_value(getattr(state, part))
        return None

    async def find_request(self, workspace_id: str, request_id: str) -> Change | None:
        """Return the change that claimed a request id."""
        return self._claims.get((workspace_id, request_id))

    async def list_changes(
        self, workspace_id: str, *, before: int | None = None, limit: int = 100
    ) -> Sequence[Change]:
        """Return the log of a workspace, newest first."""
        changes = reversed(self._changes.get(workspace_id, []))
        return [each for each in changes if before is None or each.revision < before][:limit]


def _copy(state: WorkspaceState, previous: WorkspaceState | None = None) -> WorkspaceState:
    """Return a state that nobody else can change; it shares with the one before what is equal."""
    members: dict[str, Any] = {}
    for part in PARTS:
        is_same = previous is not None and previous.version(part) == state.version(part)
        members[part] = getattr(previous, part) if is_same else copy_value(getattr(state, part))
    return replace(state, **members)
