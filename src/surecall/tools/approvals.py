"""Approvals that outlive a process: what waits for a decision, and who decided what.

An approval binds a digest of exactly what will happen. It is decided once, used at most once, and
expires; whatever was edited afterwards has another digest and is refused. A `Decision` that edits
leaves the original digest on record and binds the edited one.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Protocol

import msgspec
from msgspec import Struct

from surecall.base.errors import ApprovalError, Code
from surecall.base.limits import APPROVAL_LIFETIME_S

ApprovalStatus = Literal["pending", "approved", "denied", "used", "expired"]
ApprovalSubject = Literal["call", "facts"]

DEFAULT_LIFETIME: Final = timedelta(seconds=APPROVAL_LIFETIME_S)


class Approval(Struct, frozen=True, kw_only=True):
    """A request that waits for a decision, or the decision about it."""

    id: str
    subject: ApprovalSubject
    name: str
    """The tool to be called, or the workspace whose facts are proposed."""
    digest: str
    """SHA-256 of the canonical payload as it was asked for."""
    definition: str = ""
    """SHA-256 of the tool as it was then: its name, schema, effect and defaults."""
    payload: Any
    """The arguments of the call, or the proposed facts."""
    created_at: datetime
    expires_at: datetime
    status: ApprovalStatus = "pending"
    run_id: str = ""
    call_id: str = ""
    approved_digest: str = ""
    """The digest that is approved: `digest`, or that of the edited payload."""
    approved_payload: Any = None
    decided_at: datetime | None = None
    decided_by: str = ""
    reason: str = ""
    revision: int | None = None
    """For facts: the revision of the workspace that they were proposed on."""

    @property
    def runs_with(self) -> Any:
        """The arguments that may run: the payload, or a person's replacement for it."""
        return self.payload if self.approved_payload is None else self.approved_payload

    def at(self, now: datetime) -> "Approval":
        """Return the approval as it is at a moment: one that nobody used in time has expired."""
        if self.status in ("pending", "approved") and now >= self.expires_at:
            return msgspec.structs.replace(self, status="expired")
        return self


class Decision(Struct, frozen=True, kw_only=True):
    """The decision of a person or the application."""

    approved: bool
    by: str
    reason: str = ""
    edited: Any = None
    """The payload to use instead, already checked; `None` leaves it as it was."""
    edited_digest: str = ""


class PausedRun(Struct, frozen=True, kw_only=True):
    """A run that waits for decisions, with all it needs to continue in another process."""

    run_id: str
    state: bytes
    created_at: datetime
    approval_ids: tuple[str, ...]


class ApprovalStore(Protocol):
    """Keeps approvals and the runs that wait for them; each method is one atomic step."""

    async def add(self, approvals: Sequence[Approval], run: PausedRun | None = None) -> None:
        """Store new approvals, and the run that waits for them; one that is there stays."""
        ...

    async def get(self, approval_id: str) -> Approval:
        """Return an approval as it is now, or raise `APPROVAL_NOT_FOUND`."""
        ...

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
        ...

    async def decide(self, approval_id: str, decision: Decision) -> Approval:
        """Record the one decision about a pending approval, or raise why it cannot be made."""
        ...

    async def use(self, approval_id: str, digest: str) -> Approval:
        """Use an approval for exactly what it binds, once; raise when that is not possible."""
        ...

    async def load_run(self, run_id: str) -> PausedRun:
        """Return the run that waits, or raise `APPROVAL_NOT_FOUND`."""
        ...

    async def replace_run(self, before: PausedRun, after: PausedRun) -> bool:
        """Store another state of a run if it still has the one before, and tell whether it had."""
        ...

    async def drop_run(self, run_id: str) -> None:
        """Forget a run that no longer waits."""
        ...


def decide(approval: Approval, decision: Decision, now: datetime) -> Approval:
    """Return the decided approval; only one that is pending can be decided."""
    current = approval.at(now)
    if current.status == "expired":
        raise expired(current)
    if current.status != "pending":
        raise ApprovalError(
            Code.APPROVAL_DECIDED,
            f"Approval {current.id} was already {current.status}.",
            hint="`surecall approvals list` shows what is still pending.",
        )
    edited = decision.approved and bool(decision.edited_digest)
    return msgspec.structs.replace(
        current,
        status="approved" if decision.approved else "denied",
        approved_digest=(
            (decision.edited_digest if edited else current.digest) if decision.approved else ""
        ),
        approved_payload=decision.edited if edited else None,
        decided_at=now,
        decided_by=decision.by,
        reason=decision.reason,
    )


def use(approval: Approval, digest: str, now: datetime) -> Approval:
    """Return the used approval; only what was approved can be used, and only once."""
    current = approval.at(now)
    if current.status == "expired":
        raise expired(current)
    if current.status == "used":
        raise ApprovalError(
            Code.APPROVAL_USED,
            f"Approval {current.id} was already used.",
            hint="Ask for a new one.",
        )
    if current.status != "approved":
        raise ApprovalError(
            Code.APPROVAL_MISSING,
            f"Approval {current.id} is {current.status}.",
            hint="Only what was approved can be done.",
        )
    if digest != current.approved_digest:
        raise ApprovalError(
            Code.APPROVAL_MISMATCH,
            f"Approval {current.id} was given for something else: the content has changed since.",
            hint="Ask for a new approval of the new content.",
        )
    return msgspec.structs.replace(current, status="used")


def expired(approval: Approval) -> ApprovalError:
    """Return the error of an approval that was not used in time."""
    return ApprovalError(
        Code.APPROVAL_EXPIRED,
        f"Approval {approval.id} expired at {approval.expires_at.isoformat()}.",
        hint="Ask for a new one.",
    )


def not_found(what: str, identity: str) -> ApprovalError:
    """Return the error of an id that the store does not have."""
    return ApprovalError(
        Code.APPROVAL_NOT_FOUND,
        f"There is no {what} {identity!r}.",
        hint="`surecall approvals list` shows what is pending.",
    )


class MemoryApprovals:
    """Keeps approvals in this process, for tests and examples."""

    def __init__(self) -> None:
        self._approvals: dict[str, Approval] = {}
        self._runs: dict[str, PausedRun] = {}

    async def add(self, approvals: Sequence[Approval], run: PausedRun | None = None) -> None:
        """Store new approvals, and the run that waits for them."""
        for each in approvals:
            self._approvals.setdefault(each.id, each)
        if run is not None:
            self._runs[run.run_id] = run

    async def get(self, approval_id: str) -> Approval:
        """Return an approval as it is now."""
        return self._find(approval_id).at(datetime.now(UTC))

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
        now = datetime.now(UTC)
        found = [each.at(now) for each in reversed(self._approvals.values())]
        return [
            each
            for each in found
            if (status is None or each.status == status)
            and (run_id is None or each.run_id == run_id)
            and (subject is None or each.subject == subject)
            and (name is None or each.name == name)
        ][:limit]

    async def decide(self, approval_id: str, decision: Decision) -> Approval:
        """Record the one decision about a pending approval."""
        decided = decide(self._find(approval_id), decision, datetime.now(UTC))
        self._approvals[approval_id] = decided
        return decided

    async def use(self, approval_id: str, digest: str) -> Approval:
        """Use an approval for exactly what it binds, once."""
        used = use(self._find(approval_id), digest, datetime.now(UTC))
        self._approvals[approval_id] = used
        return used

    async def load_run(self, run_id: str) -> PausedRun:
        """Return the run that waits."""
        if run_id not in self._runs:
            raise not_found("paused run", run_id)
        return self._runs[run_id]

    async def replace_run(self, before: PausedRun, after: PausedRun) -> bool:
        """Store another state of a run if it still has the one before."""
        if self._runs.get(before.run_id) != before:
            return False
        self._runs[after.run_id] = after
        return True

    async def drop_run(self, run_id: str) -> None:
        """Forget a run that no longer waits."""
        self._runs.pop(run_id, None)

    def _find(self, approval_id: str) -> Approval:
        if approval_id not in self._approvals:
            raise not_found("approval", approval_id)
        return self._approvals[approval_id]
