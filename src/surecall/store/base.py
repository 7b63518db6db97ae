"""A store of workspaces, approvals and paused runs over any database that runs transactions."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from surecall.tools.approvals import (
    Approval,
    ApprovalStatus,
    ApprovalSubject,
    Decision,
    PausedRun,
    decide,
    not_found,
)
from surecall.workspace import ApprovalUse, Change, Part, WorkspaceState

from . import steps
from .steps import Steps

T = TypeVar("T")


class Database(Protocol):
    """Runs the steps of one method in one transaction."""

    async def run(self, taken: Steps[T], *, writes: bool) -> T:
        """Run all steps, or leave nothing behind; `writes` is false for those that only read."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


class DatabaseStore:
    """Workspaces, approvals and paused runs in one database; each method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the database; what was stored stays."""
        await self._database.close()

    # workspaces

    async def load_state(
        self, workspace_id: str, revision: int | None = None
    ) -> WorkspaceState | None:
        """Return the newest state of a workspace, or that of a revision, if there is one."""
        return await self._read(steps.load_state(workspace_id, revision))

    async def save_state(
        self,
        state: WorkspaceState,
        change: Change,
        *,
        asks: Approval | None = None,
        uses: ApprovalUse | None = None,
    ) -> bool:
        """Store a state if it follows the stored one, and tell whether it did."""
        return await self._write(steps.save_state(state, change, asks, uses))

    async def load_part(self, workspace_id: str, part: Part, version: int) -> Any:
        """Return the content that a part had at a version, or `None`."""
        return await self._read(steps.load_part(workspace_id, part, version))

    async def find_request(self, workspace_id: str, request_id: str) -> Change | None:
        """Return the change that claimed a request id."""
        return await self._read(steps.find_request(workspace_id, request_id))

    async def list_changes(
        self, workspace_id: str, *, before: int | None = None, limit: int = 100
    ) -> Sequence[Change]:
        """Return the log of a workspace, newest first."""
        return await self._read(steps.list_changes(workspace_id, before, limit))

    # approvals

    async def add(self, approvals: Sequence[Approval], run: PausedRun | None = None) -> None:
        """Store new approvals, and the run that waits for them; one that is there stays."""
        await self._write(steps.add_approvals(approvals, run))

    async def get(self, approval_id: str) -> Approval:
        """Return an approval as it is now, or raise `APPROVAL_NOT_FOUND`."""
        _check("approval", approval_id)
        found = await self._read(steps.find_approval(approval_id))
        return found.at(datetime.now(UTC))

    async def list(
        self,
        *,
        status: ApprovalStatus | None = None,
        run_id: str | None = None,
        subject: ApprovalSubject | None = None,
        name: str | None = None,
        limit: int = 100,
    ) -> list[Approval]:
        """Return approvals as they are now, newest first."""
        equal = {"run_id": run_id, "subject": subject, "name": name}
        if not all(value is None or value.isprintable() for value in equal.values()):
            return []
        return await self._read(steps.list_approvals(status, equal, limit))

    async def decide(self, approval_id: str, decision: Decision) -> Approval:
        """Record the one decision about a pending approval, or raise why it cannot be made."""
        _check("approval", approval_id)
        return await self._write(
            steps.change_approval(
                approval_id, lambda found: decide(found, decision, datetime.now(UTC))
            )
        )

    async def use(self, approval_id: str, digest: str) -> Approval:
        """Use an approval for exactly what it binds, once; raise when that is not possible."""
        _check("approval", approval_id)
        return await self._write(steps.use_approval(approval_id, digest))

    async def load_run(self, run_id: str) -> PausedRun:
        """Return the run that waits, or raise `APPROVAL_NOT_FOUND`."""
        _check("paused run", run_id)
        return await self._read(steps.load_run(run_id))

    async def replace_run(self, before: PausedRun, after: PausedRun) -> bool:
        """Store another state of a run if it still has the one before, and tell whether it had."""
        return await self._write(steps.replace_run(before, after))

    async def drop_run(self, run_id: str) -> None:
        """Forget a run that no longer waits."""
        if run_id.isprintable():
            await self._write(steps.drop_run(run_id))

    async def _read(self, taken: Steps[T]) -> T:
        return await self._database.run(taken, writes=False)

    async def _write(self, taken: Steps[T]) -> T:
        return await self._database.run(taken, writes=True)


def _check(what: str, identity: str) -> None:
    """Raise that nothing has an id which not every database could look for."""
    if not identity.isprintable():
        raise not_found(what, identity)
