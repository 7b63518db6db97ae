"""A workspace as data, and every change to it as a function from one state to the next."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast
from uuid import uuid4

from msgspec import UNSET, Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, WorkspaceError
from surecall.base.json_values import as_fields
from surecall.base.limits import MAX_LOCKS, MAX_WORKSPACE_PART_BYTES
from surecall.text import canonical_bytes, decode, encode, render_pointer
from surecall.text.pointer import quote_text

from .patches import (
    apply_operations,
    clean_pointer,
    copy_value,
    find_value,
    is_under,
    refusal,
    split_path,
    too_large,
)

Part = Literal["facts", "draft", "locks", "ui_state"]
"""The parts of a workspace, each with a version."""

PARTS: Final[tuple[Part, ...]] = ("facts", "draft", "locks", "ui_state")
_DOCUMENTS: Final[tuple[Part, ...]] = ("facts", "draft", "ui_state")


class WorkspaceState(Struct, frozen=True, kw_only=True):
    """Everything a workspace holds at one moment."""

    id: str
    facts: dict[str, Any] = {}
    """Established facts; changed only by committing a proposal."""
    draft: dict[str, Any] = {}
    """The document being worked on; changed by patches."""
    locks: tuple[str, ...] = ()
    """Paths of which nothing may change, nor anything below them."""
    ui_state: dict[str, Any] = {}
    """State of an interface: its views and its memory."""
    facts_version: int = 0
    draft_version: int = 0
    locks_version: int = 0
    ui_state_version: int = 0
    revision: int = 0
    """Rises with every change of any kind."""

    @property
    def facts_etag(self) -> str:
        """The version of the facts."""
        return self.etag("facts")

    @property
    def draft_etag(self) -> str:
        """The version of the draft."""
        return self.etag("draft")

    @property
    def ui_state_etag(self) -> str:
        """The version of the ui state."""
        return self.etag("ui_state")

    def version(self, part: Part) -> int:
        """Return how often a part was changed."""
        return getattr(self, f"{part}_version")

    def etag(self, part: Part) -> str:
        """Return the version of a part with its name, such as `draft:3`."""
        return f"{part}:{self.version(part)}"

    def document(self, *, original: bool = False) -> dict[str, Any]:
        """Return all of it as one JSON object, which is still shared with the state.

        `original` leaves out the versions that the scenarios' original does not have.
        """
        shown: Sequence[Part] = ("facts", "draft") if original else PARTS
        return {
            "facts": self.facts,
            "draft": self.draft,
            "locks": {"paths": list(self.locks)},
            "ui_state": self.ui_state,
            "versions": {f"{part}_etag": self.etag(part) for part in shown},
        }

    def snapshot(self, *, original: bool = False) -> dict[str, Any]:
        """Return all of it as JSON data that is the caller's own."""
        return copy_value(self.document(original=original))

    def select(self, pointers: Iterable[str]) -> dict[str, Any]:
        """Return what each pointer leads to, by pointer; null where it leads nowhere."""
        return select_values(self.document(), pointers)


def select_values(document: dict[str, Any], pointers: Iterable[str]) -> dict[str, Any]:
    """Return what each pointer leads to in a document; null where it leads nowhere."""
    chosen: dict[str, Any] = {}
    for pointer in dict.fromkeys(clean_pointer(text) for text in pointers):
        try:
            found = find_value(document, split_path(pointer))
        except WorkspaceError:
            found = UNSET
        chosen[pointer] = None if found is UNSET else copy_value(found)
    return chosen


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
        facts=_own_object("facts", facts),
        draft=_own_object("draft", draft),
        locks=tuple(dict.fromkeys(clean_pointer(path) for path in locks)),
        ui_state=_own_object("ui_state", ui_state),
    )


def patch_part(
    state: WorkspaceState,
    operations: Sequence[Any],
    *,
    part: Literal["draft", "ui_state"] = "draft",
    etag: str | None = None,
) -> WorkspaceState:
    """Apply operations to the draft or the ui state; its version rises by one for all of them.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, `PATH_LOCKED` or `WORKSPACE_TOO_LARGE`; nothing is
            changed then.
    """
    if part not in ("draft", "ui_state"):
        raise refusal(f"{quote_text(str(part))} cannot be patched.", "Patch the draft.")
    if etag is not None and etag != state.etag(part):
        raise refusal(
            f"the {part} is at {state.etag(part)}, not at {quote_text(str(etag))}.",
            "Read the workspace again.",
        )
    if not operations:
        return state
    _refuse_locked(state, operations)
    document = state.draft if part == "draft" else state.ui_state
    return _next_state(state, {part: apply_operations(document, operations, root=part)})


def set_facts(state: WorkspaceState, facts: Iterable[tuple[str, Any]]) -> WorkspaceState:
    """Set facts by path, all of them or none.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, `PATH_LOCKED` or `WORKSPACE_TOO_LARGE`; nothing is
            changed then.
    """
    operations = [{"op": "set", "path": path, "value": value} for path, value in facts]
    _refuse_locked(state, operations)
    return _next_state(state, {"facts": apply_operations(state.facts, operations, root="facts")})


def set_locks(state: WorkspaceState, paths: Iterable[str]) -> WorkspaceState:
    """Replace the locks.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, when a path leads to nothing that can be locked.
    """
    locks = tuple(dict.fromkeys(clean_pointer(path) for path in paths))
    if len(locks) > MAX_LOCKS:
        raise too_large(f"a workspace has at most {MAX_LOCKS} locks.")
    for lock in locks:
        parts = split_path(lock)
        if not parts or parts[0] not in _DOCUMENTS:
            raise refusal(
                f"{quote_text(lock)} cannot be locked.",
                "A lock is a path in /facts, /draft or /ui_state.",
            )
    return _next_state(state, {"locks": locks})


def restore(state: WorkspaceState, earlier: Mapping[Part, Any]) -> WorkspaceState:
    """Give parts the content they had, as a new version of each; locks hold for this too.

    Raises:
        WorkspaceError: `PATH_LOCKED`; nothing is changed then.
    """
    return _next_state(state, earlier) if earlier else state


def next_revision(state: WorkspaceState) -> WorkspaceState:
    """Return the state that follows without any part being changed."""
    return replace(state, revision=state.revision + 1)


def _next_state(state: WorkspaceState, changed: Mapping[Part, Any]) -> WorkspaceState:
    members: dict[str, Any] = {}
    for part, content in changed.items():
        members[part] = tuple(content) if part == "locks" else _as_stored(part, content)
        members[f"{part}_version"] = state.version(part) + 1
    after = replace(next_revision(state), **members)
    _refuse_moved_locks(state, after)
    return after


def _as_stored(part: str, content: Any) -> Any:
    """Return content as it comes back from a store: plain JSON of a bounded size."""
    try:
        data = encode(content)
        if len(data) > MAX_WORKSPACE_PART_BYTES:
            raise too_large(
                f"the {part} would have {len(data)} bytes; {MAX_WORKSPACE_PART_BYTES} are allowed."
            )
        return decode(data)
    except JSONTextError as error:
        raise refusal(f"the {part} would not be JSON: {error.message}", error.hint) from None


def _refuse_locked(state: WorkspaceState, operations: Sequence[Any]) -> None:
    """Refuse operations that are aimed at something locked."""
    locks = [split_path(lock) for lock in state.locks]
    for operation in operations if locks else ():
        path = as_fields(operation).get("path")
        parts = split_path(path) if isinstance(path, str) and path.startswith("/") else ()
        for lock in locks:
            if is_under(parts, lock):
                raise _path_locked(lock)


def _refuse_moved_locks(before: WorkspaceState, after: WorkspaceState) -> None:
    """Refuse a change that alters something locked by a way around its path."""
    old = {part: getattr(before, part) for part in _DOCUMENTS}
    new = {part: getattr(after, part) for part in _DOCUMENTS}
    for lock in map(split_path, before.locks):
        if _comparable(find_value(old, lock)) != _comparable(find_value(new, lock)):
            raise _path_locked(lock)


def _path_locked(lock: tuple[str, ...]) -> WorkspaceError:
    return WorkspaceError(
        Code.PATH_LOCKED,
        f"{render_pointer(lock)} is locked; nothing was changed.",
        hint="Leave it as it is.",
    )


def _comparable(value: Any) -> bytes | None:
    return None if value is UNSET else canonical_bytes(value)


def _own_object(part: str, value: Any) -> dict[str, Any]:
    return _as_stored(part, cast("dict[str, Any]", value)) if isinstance(value, dict) else {}
