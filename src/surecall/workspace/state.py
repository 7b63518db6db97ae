"""A workspace as data, and every change to it as a function from one state to the next."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec import UNSET, Struct
from msgspec.structs import replace

from surecall.errors import Code, WorkspaceError
from surecall.jsontext import canonical_bytes, render_pointer
from surecall.jsontext.pointer import quote_text
from surecall.narrow import as_fields

from .patch import (
    apply_operations,
    clean_pointer,
    copy_value,
    find_value,
    is_under,
    refusal,
    split_path,
)


class ProposedFact(Struct, frozen=True):
    """One fact that somebody proposes, with the reason."""

    path: str
    value: Any
    reason: str = ""


class WorkspaceState(Struct, frozen=True, kw_only=True):
    """Everything a workspace holds at one moment."""

    id: str
    facts: dict[str, Any] = {}
    """What holds; changed only by committing a proposal."""
    draft: dict[str, Any] = {}
    """What is being worked on; changed by patches."""
    locks: tuple[str, ...] = ()
    """Paths of which nothing may change, nor anything below them."""
    ui_state: dict[str, Any] = {}
    facts_version: int = 0
    draft_version: int = 0
    proposals: dict[str, tuple[ProposedFact, ...]] = {}
    """What was proposed and not committed yet, by id."""
    proposals_count: int = 0
    """How many proposals were ever made."""
    revision: int = 0
    """Rises with every change of any kind."""

    @property
    def facts_etag(self) -> str:
        """The version of the facts."""
        return f"facts:{self.facts_version}"

    @property
    def draft_etag(self) -> str:
        """The version of the draft."""
        return f"draft:{self.draft_version}"

    def snapshot(self) -> dict[str, Any]:
        """Return all of it as JSON data that is the caller's own."""
        return copy_value(self._document())

    def select(self, pointers: Iterable[str]) -> dict[str, Any]:
        """Return what each pointer leads to, by pointer; null where it leads nowhere."""
        document = self._document()
        chosen: dict[str, Any] = {}
        for pointer in dict.fromkeys(clean_pointer(text) for text in pointers):
            try:
                found = find_value(document, split_path(pointer))
            except WorkspaceError:
                found = UNSET
            chosen[pointer] = None if found is UNSET else copy_value(found)
        return chosen

    def _document(self) -> dict[str, Any]:
        return {
            "facts": self.facts,
            "draft": self.draft,
            "locks": {"paths": list(self.locks)},
            "ui_state": self.ui_state,
            "versions": {"facts_etag": self.facts_etag, "draft_etag": self.draft_etag},
        }


class Committed(NamedTuple):
    """The state after a commit, and which paths it set."""

    state: WorkspaceState
    paths: tuple[str, ...]


def new_state(
    *,
    id: str | None = None,  # noqa: A002 - what it is called in the state
    facts: Any = None,
    draft: Any = None,
    locks: Iterable[str] = (),
    ui_state: Any = None,
) -> WorkspaceState:
    """Make a workspace of what is given; what is not an object counts as an empty one."""
    return WorkspaceState(
        id=id or str(uuid4()),
        facts=_own_object(facts),
        draft=_own_object(draft),
        locks=tuple(dict.fromkeys(clean_pointer(path) for path in locks)),
        ui_state=_own_object(ui_state),
    )


def patch_draft(
    state: WorkspaceState, operations: Sequence[Any], *, etag: str | None = None
) -> WorkspaceState:
    """Apply operations to the draft; its version rises by one, however many they are.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR` or `PATH_LOCKED`; nothing is changed then.
    """
    if etag is not None and etag != state.draft_etag:
        message = f"the draft is at {state.draft_etag}, not at {quote_text(etag)}."
        raise refusal(message, "Read the workspace again.")
    if not operations:
        return state
    _refuse_locked(state, operations)
    changed = replace(
        state,
        draft=apply_operations(state.draft, operations),
        draft_version=state.draft_version + 1,
        revision=state.revision + 1,
    )
    _refuse_moved_locks(state, changed)
    return changed


def propose_facts(state: WorkspaceState, facts: Sequence[ProposedFact]) -> WorkspaceState:
    """Note facts that somebody may commit later, as the proposal `p<number>`.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, when there is none or one could never be committed.
    """
    if not facts:
        raise refusal("a proposal needs at least one fact.")
    apply_operations(state.facts, _as_operations(facts), root="facts")
    count = state.proposals_count + 1
    kept = tuple(replace(fact, value=copy_value(fact.value)) for fact in facts)
    return replace(
        state,
        proposals={**state.proposals, f"p{count}": kept},
        proposals_count=count,
        revision=state.revision + 1,
    )


def commit_facts(state: WorkspaceState, proposal_id: str, *, user_confirmed: bool) -> Committed:
    """Make a proposal the facts, all of it or nothing; the proposal is gone then.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR` without confirmation or for an unknown proposal,
            `PATH_LOCKED` when it would change something locked.
    """
    if user_confirmed is not True:
        raise refusal("a commit needs the confirmation of the user.", "Ask first.")
    facts = state.proposals.get(proposal_id)
    if facts is None:
        raise refusal(f"there is no proposal {quote_text(proposal_id)} to commit.")
    operations = _as_operations(facts)
    _refuse_locked(state, operations)
    changed = replace(
        state,
        facts=apply_operations(state.facts, operations, root="facts"),
        facts_version=state.facts_version + 1,
        proposals={key: value for key, value in state.proposals.items() if key != proposal_id},
        revision=state.revision + 1,
    )
    _refuse_moved_locks(state, changed)
    return Committed(changed, tuple(dict.fromkeys(fact.path for fact in facts)))


def _as_operations(facts: Iterable[ProposedFact]) -> list[dict[str, Any]]:
    return [{"op": "set", "path": fact.path, "value": fact.value} for fact in facts]


def _refuse_locked(state: WorkspaceState, operations: Sequence[Any]) -> None:
    """Refuse operations that are aimed at something locked."""
    locks = [split_path(lock) for lock in state.locks]
    for operation in operations if locks else ():
        path = as_fields(operation).get("path")
        parts = split_path(path) if isinstance(path, str) and path.startswith("/") else ()
        for lock in locks:
            if is_under(parts, lock):
                raise _locked(lock)


def _refuse_moved_locks(before: WorkspaceState, after: WorkspaceState) -> None:
    """Refuse a change that alters something locked by a way around its path."""
    old = {"facts": before.facts, "draft": before.draft, "ui_state": before.ui_state}
    new = {"facts": after.facts, "draft": after.draft, "ui_state": after.ui_state}
    for lock in map(split_path, before.locks):
        if _comparable(find_value(old, lock)) != _comparable(find_value(new, lock)):
            raise _locked(lock)


def _comparable(value: Any) -> bytes | None:
    return None if value is UNSET else canonical_bytes(value)


def _locked(lock: tuple[str, ...]) -> WorkspaceError:
    return WorkspaceError(
        Code.PATH_LOCKED,
        f"{render_pointer(lock)} is locked; nothing was changed.",
        hint="Leave it as it is.",
    )


def _own_object(value: Any) -> dict[str, Any]:
    return copy_value(value) if isinstance(value, dict) else {}
