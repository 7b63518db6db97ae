"""How a change reaches the store: on the newest state, once for each request id, logged."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import uniform
from typing import Final, NamedTuple

from surecall.tools.approvals import Approval

from . import wording
from .changes import Author, Change, ChangeKind, Request, check_claim, is_usable_id
from .state import PARTS, WorkspaceState
from .store import ApprovalUse, WorkspaceStore

NEVER: Final = 10**15
"""A version that no workspace reaches, and that every database can look for."""

_MAX_TRIES: Final = 12
_FIRST_WAIT_S: Final = 0.002


class Step(NamedTuple):
    """What a change makes of a state, and what its entry in the log says."""

    state: WorkspaceState
    paths: tuple[str, ...] = ()
    author: Author | None = None
    """Who makes the change, when that is not who called."""
    restored: str = ""
    edited: bool = False
    asks: Approval | None = None
    uses: ApprovalUse | None = None


class ChangeWriter:
    """Writes changes of one workspace; several may do so at once, in any process."""

    def __init__(self, workspace_id: str, store: WorkspaceStore) -> None:
        self._id = workspace_id
        self._store = store

    async def begin(self, state: WorkspaceState, author: Author) -> None:
        """Store the first state, or raise `WORKSPACE_EXISTS`."""
        change = self._describe("create", None, Step(state), author, None)
        if not await self._store.save_state(state, change):
            raise wording.workspace_exists(state.id)

    async def read(self, revision: int | None = None) -> WorkspaceState:
        """Return the newest state, or that of a revision, or raise that there is none."""
        state = None
        if is_usable_id(self._id):
            wanted = revision if revision is None or 0 <= revision < NEVER else NEVER
            state = await self._store.load_state(self._id, wanted)
        if state is not None:
            return state
        if revision is not None:
            await self.read()
            raise wording.no_version(revision)
        raise wording.no_workspace(str(self._id))

    async def change(
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
                claim = await self._store.find_request(self._id, request.id)
                if claim is not None:
                    check_claim(claim, request)
                    return await self.read(claim.revision), claim
            step = await make(before)
            change = self._describe(kind, before, step, author, request)
            if step.state is before or await self._store.save_state(
                step.state, change, asks=step.asks, uses=step.uses
            ):
                return step.state, change
            if attempt:
                wait_s = _FIRST_WAIT_S * 2 ** min(attempt, 6)
                await asyncio.sleep(uniform(0, wait_s))  # noqa: S311 - so that writers part
        raise wording.workspace_busy(_MAX_TRIES)

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
            workspace_id=self._id,
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
