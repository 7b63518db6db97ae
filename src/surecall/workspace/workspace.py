"""A workspace by its id: every change is one step, checked, claimed and logged."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from random import uniform
from typing import Any, Final, Literal, NamedTuple, Self

from surecall.base.errors import Code, WorkspaceError
from surecall.base.json_values import as_fields
from surecall.base.limits import MAX_OPEN_PROPOSALS
from surecall.text.pointer import quote_text
from surecall.tools.approvals import DEFAULT_LIFETIME, Approval, Decision, not_found, use

from .changes import (
    APPLICATION,
    Author,
    Change,
    ChangeKind,
    Request,
    check_batch,
    check_id,
    claim_request,
    is_usable_id,
)
from .patches import copy_value, refusal, too_large
from .proposals import (
    FactDifference,
    Proposal,
    ProposalStatus,
    ProposedFact,
    ask_for,
    check_facts,
    choose_facts,
    compare,
    decide_to_accept,
    digest_accepted,
    read_proposal,
)
from .state import (
    PARTS,
    Part,
    WorkspaceState,
    new_state,
    next_revision,
    patch_part,
    restore,
    set_facts,
    set_locks,
)
from .state_store import ApprovalUse, MemoryStore, WorkspaceStore

_MAX_DIGITS: Final = 15


class Committed(NamedTuple):
    """The state after a commit, and which paths it set."""

    state: WorkspaceState
    paths: tuple[str, ...]


NEVER: Final = 10**15
"""A version that no workspace reaches, and that every database can look for."""

_MAX_TRIES: Final = 12
_FIRST_WAIT_S: Final = 0.002


class Step(NamedTuple):
    """The new state after a change, and the facts of its entry in the log."""

    state: WorkspaceState
    paths: tuple[str, ...] = ()
    author: Author | None = None
    """Who makes the change, when that is not who called."""
    restored: str = ""
    edited: bool = False
    asks: Approval | None = None
    uses: ApprovalUse | None = None


class Workspace:
    """State that a model works on over many runs; every method works on the newest state.

    Args:
        workspace_id: A workspace that was created before.
        store: Where it is kept.
    """

    def __init__(self, workspace_id: str, store: WorkspaceStore) -> None:
        self.id = workspace_id
        self._store = store

    def __repr__(self) -> str:
        return f"Workspace({self.id!r}, {self._store!r})"

    @classmethod
    async def create(
        cls,
        store: WorkspaceStore | None = None,
        *,
        id: str | None = None,  # noqa: A002 - what it is called everywhere
        facts: dict[str, Any] | None = None,
        draft: dict[str, Any] | None = None,
        locks: Iterable[str] = (),
        ui_state: dict[str, Any] | None = None,
        author: Author = APPLICATION,
    ) -> Self:
        """Make a workspace, in memory when no store is given.

        Raises:
            WorkspaceError: `WORKSPACE_EXISTS`, or what is wrong with the content.
        """
        if id is not None:
            check_id("workspace id", id)
        state = new_state(id=id, facts=facts, draft=draft, locks=locks, ui_state=ui_state)
        set_locks(state, state.locks)
        workspace = cls(state.id, MemoryStore() if store is None else store)
        await workspace._begin(state, author)
        return workspace

    # reading

    async def read(self, *, revision: int | None = None) -> WorkspaceState:
        """Return the newest state, or the state at an earlier revision.

        Raises:
            WorkspaceError: `WORKSPACE_NOT_FOUND` or `VERSION_NOT_FOUND`.
        """
        state = None
        if is_usable_id(self.id):
            wanted = revision if revision is None or 0 <= revision < NEVER else NEVER
            state = await self._store.load_state(self.id, wanted)
        if state is not None:
            return state
        if revision is not None:
            await self.read()
            raise _no_version(revision)
        raise WorkspaceError(
            Code.WORKSPACE_NOT_FOUND, f"there is no workspace {quote_text(str(self.id))}."
        )

    async def snapshot(self) -> dict[str, Any]:
        """Return all of it as JSON data."""
        return (await self.read()).snapshot()

    async def select(self, pointers: Iterable[str]) -> dict[str, Any]:
        """Return what each JSON pointer leads to, by pointer; null where it leads nowhere."""
        return (await self.read()).select(pointers)

    async def changes(self, *, before: int | None = None, limit: int = 100) -> Sequence[Change]:
        """Return the log, newest first; `before` continues below a revision."""
        await self.read()
        bound = None if before is None else min(max(before, 0), NEVER)
        return await self._store.list_changes(self.id, before=bound, limit=max(limit, 0))

    # changing

    async def patch(
        self,
        operations: Sequence[Any],
        *,
        part: Literal["draft", "ui_state"] = "draft",
        etag: str | None = None,
        request_id: str | None = None,
        author: Author = APPLICATION,
    ) -> WorkspaceState:
        """Apply operations to the draft or the ui state, all or none.

        Args:
            operations: Objects with `op`, `path`, and `value` and `index` where they are needed.
            part: The part that every path is in.
            etag: When given, the version that the part must have.
            request_id: A success claims it: the same patch is then answered the same again.
            author: Who makes the change.

        Raises:
            WorkspaceError: `ARGUMENT_ERROR`, `PATH_LOCKED`, `REQUEST_ID_REUSED`,
                `WORKSPACE_TOO_LARGE` or `WORKSPACE_CONFLICT`; nothing is changed then.
        """
        check_batch("operations", operations)
        request = claim_request(request_id, "patch", [part, operations])
        paths = tuple(dict.fromkeys(str(as_fields(each).get("path")) for each in operations))

        async def make(state: WorkspaceState) -> Step:
            return Step(patch_part(state, operations, part=part, etag=etag), paths)

        return (await self._change("patch", make, author, request))[0]

    async def render(
        self,
        actions: Sequence[Any],
        *,
        request_id: str | None = None,
        author: Author = APPLICATION,
    ) -> WorkspaceState:
        """Leave actions for the interface in `/ui_state/last_render`."""
        check_batch("actions", actions)
        request = claim_request(request_id, "render", actions)
        path = "/ui_state/last_render"
        operation = {"op": "set", "path": path, "value": copy_value(list(actions))}

        async def make(state: WorkspaceState) -> Step:
            return Step(patch_part(state, [operation], part="ui_state"), (path,))

        return (await self._change("render", make, author, request))[0]

    async def lock(self, *paths: str, author: Author = APPLICATION) -> WorkspaceState:
        """Lock paths and everything below them."""

        async def make(state: WorkspaceState) -> Step:
            return Step(set_locks(state, (*state.locks, *paths)), paths)

        return (await self._change("lock", make, author, None))[0]

    async def unlock(self, *paths: str, author: Author = APPLICATION) -> WorkspaceState:
        """Remove locks; a path that is not locked is passed over."""

        async def make(state: WorkspaceState) -> Step:
            rest = tuple(lock for lock in state.locks if lock not in paths)
            return Step(set_locks(state, rest) if rest != state.locks else state, paths)

        return (await self._change("lock", make, author, None))[0]

    async def undo(
        self, to: str | int, *, request_id: str | None = None, author: Author = APPLICATION
    ) -> WorkspaceState:
        """Go back to an earlier version, as a new version; locks apply.

        Args:
            to: An etag such as `draft:3` restores that part alone; the number of a revision
                restores facts, draft and ui state.
            request_id: As for `patch`.
            author: Who makes the change.

        Raises:
            WorkspaceError: `VERSION_NOT_FOUND`, `PATH_LOCKED`, `REQUEST_ID_REUSED`.
        """
        request = claim_request(request_id, "undo", to)

        async def make(state: WorkspaceState) -> Step:
            earlier = await self._earlier(state, to)
            return Step(
                restore(state, earlier), tuple(f"/{part}" for part in earlier), None, str(to)
            )

        return (await self._change("undo", make, author, request))[0]

    # facts

    async def propose(
        self,
        facts: Sequence[ProposedFact],
        *,
        lifetime: timedelta = DEFAULT_LIFETIME,
        request_id: str | None = None,
        author: Author = APPLICATION,
    ) -> Proposal:
        """Propose facts; nothing changes before somebody accepts and commits them.

        Raises:
            WorkspaceError: `ARGUMENT_ERROR`, `REQUEST_ID_REUSED` or `WORKSPACE_TOO_LARGE`.
        """
        check_batch("facts", facts)
        request = claim_request(request_id, "propose", list(facts))

        async def make(state: WorkspaceState) -> Step:
            check_facts(state, facts)
            if len(await self.proposals("pending", limit=MAX_OPEN_PROPOSALS)) == MAX_OPEN_PROPOSALS:
                raise too_large(f"{MAX_OPEN_PROPOSALS} proposals already wait for a decision.")
            after = next_revision(state)
            asks = ask_for(self.id, facts, author, lifetime, revision=after.revision)
            return Step(after, tuple(dict.fromkeys(fact.path for fact in facts)), asks=asks)

        _, change = await self._change("propose", make, author, request)
        return await self.proposal(change.proposal_id)

    async def proposals(
        self, status: ProposalStatus | None = None, *, limit: int = 100
    ) -> list[Proposal]:
        """Return the proposals of this workspace as they are now, newest first."""
        wanted = {"rejected": "denied", "committed": "used"}.get(status or "", status)
        found = await self._store.list(
            status=wanted,  # pyright: ignore[reportArgumentType]
            subject="facts",
            name=self.id,
            limit=limit,
        )
        return [read_proposal(each) for each in found]

    async def proposal(self, proposal_id: str) -> Proposal:
        """Return one proposal as it is now.

        Raises:
            ApprovalError: `APPROVAL_NOT_FOUND`, also for one of another workspace.
        """
        return read_proposal(await self._approval(proposal_id))

    async def compare(self, proposal_id: str) -> tuple[FactDifference, ...]:
        """Return what a proposal would change in the facts as they are now."""
        found = await self.proposal(proposal_id)
        earlier = None if found.revision is None else await self.read(revision=found.revision)
        return compare(await self.read(), found.accepted or found.facts, earlier)

    async def accept(
        self,
        proposal_id: str,
        *,
        by: str,
        only: Collection[str] | None = None,
        edited: Sequence[ProposedFact] | None = None,
        reason: str = "",
    ) -> Proposal:
        """Confirm a proposal, so that it can be committed once.

        Args:
            proposal_id: The proposal to accept.
            by: The person or the part of the application that confirms it.
            only: The paths to accept, when not all of them.
            edited: The facts to accept instead, which become the change of `by`.
            reason: Kept with the decision.

        Raises:
            ApprovalError: It is not there, already decided, or expired.
            WorkspaceError: `ARGUMENT_ERROR` for paths that were not proposed, or facts that
                could never be committed.
        """
        _check_who(by)
        found = await self.proposal(proposal_id)
        facts = found.facts if only is None else choose_facts(found, only)
        facts = facts if edited is None else edited
        check_facts(await self.read(), facts)
        decision = decide_to_accept(found, facts, by, reason)
        return read_proposal(await self._store.decide(proposal_id, decision))

    async def reject(self, proposal_id: str, *, by: str, reason: str = "") -> Proposal:
        """Reject a proposal; the model reads the reason with `state_get`."""
        _check_who(by)
        await self.proposal(proposal_id)
        decision = Decision(approved=False, by=by, reason=reason)
        return read_proposal(await self._store.decide(proposal_id, decision))

    async def commit(self, proposal_id: str, *, request_id: str | None = None) -> Committed:
        """Commit the accepted part of a proposal, which uses up the confirmation.

        Raises:
            ApprovalError: `APPROVAL_MISSING` before a confirmation, `APPROVAL_USED` after a
                commit, `APPROVAL_EXPIRED`, `APPROVAL_MISMATCH` for content that was changed.
            WorkspaceError: `PATH_LOCKED` or `REQUEST_ID_REUSED`; the confirmation stays valid.
        """
        request = claim_request(request_id, "commit", proposal_id)

        async def make(state: WorkspaceState) -> Step:
            approval = await self._approval(proposal_id)
            found = read_proposal(approval)
            digest = digest_accepted(approval)
            use(approval, digest, datetime.now(UTC))
            if not found.accepted:
                raise refusal("nothing that could be committed was accepted.")
            facts = [(fact.path, fact.value) for fact in found.accepted]
            author = Author(by=found.decided_by, run_id=found.run_id, call_id=found.call_id)
            return Step(
                set_facts(state, facts),
                tuple(dict.fromkeys(path for path, _ in facts)),
                author,
                edited=found.is_edited,
                uses=ApprovalUse(proposal_id, digest),
            )

        state, change = await self._change("commit", make, APPLICATION, request)
        return Committed(state, change.paths)

    # inside

    async def _begin(self, state: WorkspaceState, author: Author) -> None:
        """Store the first state, or raise `WORKSPACE_EXISTS`."""
        change = self._describe("create", None, Step(state), author, None)
        if not await self._store.save_state(state, change):
            raise WorkspaceError(
                Code.WORKSPACE_EXISTS, f"there already is a workspace {quote_text(state.id)}."
            )

    async def _change(
        self,
        kind: ChangeKind,
        make: Callable[[WorkspaceState], Awaitable[Step]],
        author: Author,
        request: Request | None,
    ) -> tuple[WorkspaceState, Change]:
        """Make a change on the newest state, again whenever somebody else was faster."""
        for attempt in range(_MAX_TRIES):
            before = await self.read()
            if request is not None:
                # Looked for after reading: what is claimed later makes our state not follow.
                claim = await self._store.find_request(self.id, request.id)
                if claim is not None:
                    if claim.request_digest != request.digest:
                        raise WorkspaceError(
                            Code.REQUEST_ID_REUSED,
                            f"the request id {quote_text(request.id)} was already used for "
                            "another change.",
                            hint="Use a new request_id for a new change.",
                        )
                    return await self.read(revision=claim.revision), claim
            step = await make(before)
            change = self._describe(kind, before, step, author, request)
            if step.state is before or await self._store.save_state(
                step.state, change, asks=step.asks, uses=step.uses
            ):
                return step.state, change
            if attempt:
                wait_s = _FIRST_WAIT_S * 2 ** min(attempt, 6)
                await asyncio.sleep(uniform(0, wait_s))  # noqa: S311 - so that writers part
        raise WorkspaceError(
            Code.WORKSPACE_CONFLICT,
            f"the workspace was changed by others {_MAX_TRIES} times in a row.",
            hint="Read it again, then repeat the change.",
        )

    def _describe(
        self,
        kind: ChangeKind,
        before: WorkspaceState | None,
        step: Step,
        author: Author,
        request: Request | None,
    ) -> Change:
        after = step.state
        return Change(
            workspace_id=self.id,
            revision=after.revision,
            kind=kind,
            at=datetime.now(UTC),
            author=step.author or author,
            paths=step.paths,
            etags=tuple(
                after.etag(part)
                for part in PARTS
                if before is None or before.version(part) != after.version(part)
            ),
            restored=step.restored,
            proposal_id=step.asks.id if step.asks else step.uses.approval_id if step.uses else "",
            edited=step.edited,
            request_id="" if request is None else request.id,
            request_digest="" if request is None else request.digest,
        )

    async def _approval(self, proposal_id: str) -> Approval:
        if not is_usable_id(proposal_id):
            raise not_found("proposal", str(proposal_id))
        approval = await self._store.get(proposal_id)
        if approval.subject != "facts" or approval.name != self.id:
            raise not_found("proposal", proposal_id)
        return approval

    async def _earlier(self, state: WorkspaceState, to: str | int) -> dict[Part, Any]:
        """Return the content to restore, by part; empty when that is the present one."""
        if isinstance(to, int):
            earlier = await self.read(revision=to)
            parts: tuple[Part, ...] = ("facts", "draft", "ui_state")
            return {
                part: getattr(earlier, part)
                for part in parts
                if earlier.version(part) != state.version(part)
            }
        part, version = _parse_etag(to)
        if state.version(part) == version:
            return {}
        content = await self._store.load_part(self.id, part, version)
        if content is None:
            raise _no_version(to)
        return {part: content}


def _check_who(by: Any) -> None:
    if not isinstance(by, str) or not by.strip():
        raise refusal("a decision needs a name: who makes it?")


def _parse_etag(etag: Any) -> tuple[Part, int]:
    name, _, version = str(etag).partition(":")
    if name in PARTS and version.isascii() and version.isdigit() and len(version) <= _MAX_DIGITS:
        return name, int(version)
    raise _no_version(etag)


def _no_version(version: Any) -> WorkspaceError:
    return WorkspaceError(
        Code.VERSION_NOT_FOUND,
        f"there is no version {version!r:.80}.",
        hint="Take one from the log of changes, such as 'draft:1'.",
    )
