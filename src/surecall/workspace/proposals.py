"""Proposed facts: what waits for a decision, what was decided, and what it would change.

A proposal is an `Approval` with the subject `facts`. It binds the digest of the canonical facts,
so whatever is edited after the decision has another digest and is refused.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Struct

from surecall.base.errors import Code, StoreError
from surecall.text import canonical_bytes, canonical_hash, decode, encode
from surecall.text.pointer import quote_text
from surecall.tools.approvals import Approval, Decision

from .changes import Author, check_batch
from .patches import apply_operations, copy_value, find_value, refusal, split_path
from .state import WorkspaceState

ProposalStatus = Literal["pending", "approved", "rejected", "committed", "expired"]

_STATUS: Final[dict[str, ProposalStatus]] = {
    "pending": "pending",
    "approved": "approved",
    "denied": "rejected",
    "used": "committed",
    "expired": "expired",
}


class ProposedFact(Struct, frozen=True):
    """One fact that somebody proposes, with the reason."""

    path: str
    value: Any
    reason: str = ""


class FactDifference(Struct, frozen=True, kw_only=True):
    """The change that a proposal would make at one path."""

    path: str
    before: Any
    after: Any
    is_new: bool
    """Whether there is nothing at the path yet; `before` is null then."""
    is_conflict: bool = False
    """Whether somebody else changed the fact after it was proposed, to another value."""
    then: Any = None
    """For a conflict: the value when the fact was proposed, null if there was none."""


class Proposal(Struct, frozen=True, kw_only=True):
    """Facts that somebody proposed, and what became of them."""

    id: str
    workspace_id: str
    facts: tuple[ProposedFact, ...]
    """As they were proposed."""
    status: ProposalStatus
    digest: str
    created_at: datetime
    expires_at: datetime
    accepted: tuple[ProposedFact, ...] = ()
    """The facts that may be committed: all, or those that a person kept or edited."""
    accepted_digest: str = ""
    decided_by: str = ""
    reason: str = ""
    run_id: str = ""
    call_id: str = ""
    revision: int | None = None
    """The revision that it was proposed on, where that was stored."""

    @property
    def is_edited(self) -> bool:
        """Whether a person accepted something else than what was proposed."""
        return self.accepted_digest not in ("", self.digest)


def check_facts(state: WorkspaceState, facts: Sequence[ProposedFact]) -> None:
    """Raise when facts could never be committed to a workspace.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR` or `WORKSPACE_TOO_LARGE`.
    """
    for fact in facts:
        if not isinstance(cast("Any", fact), ProposedFact) or not isinstance(
            cast("Any", fact.reason), str
        ):
            raise refusal("a proposal is a list of facts with a path, a value and a reason.")
    check_batch("facts", facts)
    if not facts:
        raise refusal("a proposal needs at least one fact.")
    operations = [{"op": "set", "path": fact.path, "value": fact.value} for fact in facts]
    apply_operations(state.facts, operations, root="facts")


def ask_for(
    workspace_id: str,
    facts: Sequence[ProposedFact],
    author: Author,
    lifetime: timedelta,
    *,
    revision: int | None = None,
) -> Approval:
    """Return the approval that waits for a decision about facts."""
    payload = _render(workspace_id, facts)
    now = datetime.now(UTC)
    return Approval(
        id=f"p_{token_hex(8)}",
        subject="facts",
        name=workspace_id,
        digest=canonical_hash(payload),
        payload=payload,
        created_at=now,
        expires_at=now + lifetime,
        run_id=author.run_id,
        call_id=author.call_id,
        revision=revision,
    )


def decide_to_accept(
    proposal: Proposal, facts: Sequence[ProposedFact], by: str, reason: str
) -> Decision:
    """Return the decision that accepts facts; other facts than the proposed are an edit."""
    payload = _render(proposal.workspace_id, facts)
    digest = canonical_hash(payload)
    if digest == proposal.digest:
        return Decision(approved=True, by=by, reason=reason)
    return Decision(approved=True, by=by, reason=reason, edited=payload, edited_digest=digest)


def choose_facts(proposal: Proposal, paths: Collection[str]) -> tuple[ProposedFact, ...]:
    """Return the proposed facts at some of their paths.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, when a path was not proposed or none is named.
    """
    proposed = {fact.path for fact in proposal.facts}
    for path in paths:
        if path not in proposed:
            raise refusal(f"{quote_text(path)} is not a path of the proposal {proposal.id}.")
    if not paths:
        raise refusal("nothing was chosen.", "Reject the proposal to accept nothing of it.")
    return tuple(fact for fact in proposal.facts if fact.path in paths)


def read_proposal(approval: Approval) -> Proposal:
    """Return the proposal that an approval is about.

    Raises:
        StoreError: `STORE_CORRUPT`, when what was proposed is not what surecall stores. An edit
            that cannot be read accepts nothing.
    """
    facts = _parse(approval.payload, approval.name)
    if facts is None:
        raise StoreError(
            Code.STORE_CORRUPT,
            f"the content of proposal {approval.id} is damaged.",
            hint="Deny the approval, and have the facts proposed again.",
        )
    accepted: tuple[ProposedFact, ...] | None = ()
    if approval.approved_digest:
        accepted = _parse(_accepted_payload(approval), approval.name)
    return Proposal(
        id=approval.id,
        workspace_id=approval.name,
        facts=facts,
        status=_STATUS[approval.status],
        digest=approval.digest,
        created_at=approval.created_at,
        expires_at=approval.expires_at,
        accepted=accepted or (),
        accepted_digest=approval.approved_digest,
        decided_by=approval.decided_by,
        reason=approval.reason,
        run_id=approval.run_id,
        call_id=approval.call_id,
        revision=approval.revision,
    )


def digest_accepted(approval: Approval) -> str:
    """Return the digest of what would be committed, computed from its content."""
    return canonical_hash(_accepted_payload(approval))


def compare(
    state: WorkspaceState, facts: Iterable[ProposedFact], earlier: WorkspaceState | None = None
) -> tuple[FactDifference, ...]:
    """Return what facts would change, one entry for each path.

    Args:
        state: The workspace as it is now.
        facts: The proposed facts.
        earlier: The workspace as it was when they were proposed, to find conflicts.
    """
    found = tuple(facts)
    operations = [{"op": "set", "path": fact.path, "value": fact.value} for fact in found]
    changed = apply_operations(state.facts, operations, root="facts")
    differences: list[FactDifference] = []
    for path in dict.fromkeys(fact.path for fact in found):
        parts = split_path(path)[1:]
        before, after = find_value(state.facts, parts), find_value(changed, parts)
        is_new = before is UNSET
        then = before if earlier is None else find_value(earlier.facts, parts)
        is_conflict = not (_is_same(then, before) or _is_same(before, after))
        differences.append(
            FactDifference(
                path=path,
                before=None if is_new else copy_value(before),
                after=copy_value(after),
                is_new=is_new,
                is_conflict=is_conflict,
                then=copy_value(then) if is_conflict and then is not UNSET else None,
            )
        )
    return tuple(differences)


def _is_same(one: Any, other: Any) -> bool:
    if one is UNSET or other is UNSET:
        return one is other
    return canonical_bytes(one) == canonical_bytes(other)


def _render(workspace_id: str, facts: Iterable[ProposedFact]) -> dict[str, Any]:
    """Return facts as plain JSON data, bound to their workspace."""
    members = [{"path": each.path, "value": each.value, "reason": each.reason} for each in facts]
    return decode(encode({"workspace_id": workspace_id, "facts": members}))


class _Payload(Struct, frozen=True, forbid_unknown_fields=True):
    workspace_id: str
    facts: tuple[ProposedFact, ...]


def _accepted_payload(approval: Approval) -> Any:
    return approval.payload if approval.approved_payload is None else approval.approved_payload


def _parse(payload: Any, workspace_id: str) -> tuple[ProposedFact, ...] | None:
    """Return the facts of a payload, or `None` when they are not facts of this workspace."""
    try:
        found = msgspec.convert(payload, _Payload)
    except (msgspec.ValidationError, TypeError):
        return None
    return found.facts if found.workspace_id == workspace_id else None
