"""The log of a workspace: who changed what, when, and through which call."""

from datetime import datetime
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.limits import MAX_ID_CHARACTERS, MAX_PATCH_BYTES, MAX_PATCH_OPERATIONS
from surecall.base.records import Receipt
from surecall.text import canonical_bytes, canonical_hash

from .patches import not_usable, refusal, too_large

ChangeKind = Literal["create", "patch", "render", "lock", "propose", "commit", "undo"]


class Author(Struct, frozen=True, kw_only=True):
    """Who makes a change, and through which call of which run."""

    by: str = "application"
    run_id: str = ""
    call_id: str = ""
    receipts: tuple[Receipt, ...] = ()
    """Changes that surecall made to the call before it ran."""


APPLICATION: Final = Author()
"""The author of what the application does by itself."""


class Change(Struct, frozen=True, kw_only=True):
    """One entry of the log: what led to a revision."""

    workspace_id: str
    revision: int
    kind: ChangeKind
    at: datetime
    author: Author
    paths: tuple[str, ...] = ()
    """Paths that were set, deleted, added to, locked or proposed."""
    etags: tuple[str, ...] = ()
    """The new versions that the change made."""
    restored: str = ""
    """For `undo`: the version that was restored."""
    proposal_id: str = ""
    """For `propose` and `commit`."""
    edited: bool = False
    """For `commit`: a person changed the proposal before approving it."""
    request_id: str = ""
    request_digest: str = ""


class Request(Struct, frozen=True):
    """An id that somebody gave to a change, and the digest of that change."""

    id: str
    digest: str


def claim_request(request_id: str | None, kind: ChangeKind, content: Any) -> Request | None:
    """Return what a successful change claims, or `None` without an id.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, when the id or the content cannot be used.
    """
    if request_id is None:
        return None
    check_id("request id", request_id)
    try:
        return Request(request_id, canonical_hash([kind, content]))
    except JSONTextError as error:
        raise not_usable(error) from None


def check_id(what: str, identity: Any) -> None:
    """Raise `ARGUMENT_ERROR` for an id that cannot be stored everywhere."""
    if not is_usable_id(identity):
        raise refusal(
            f"{identity!r:.80} cannot be a {what}.",
            f"Use 1 to {MAX_ID_CHARACTERS} printable characters.",
        )


def is_usable_id(identity: Any) -> bool:
    """Tell whether an id has a usual length and only characters that every store takes."""
    return (
        isinstance(identity, str)
        and 0 < len(identity) <= MAX_ID_CHARACTERS
        and identity.isprintable()
    )


def check_batch(what: str, items: Any) -> None:
    """Raise unless this is a list of bounded size: the operations of a patch, or facts."""
    if not isinstance(items, list | tuple):
        raise refusal(f"the {what} must be a list, not {type(items).__name__}.")
    if len(items) > MAX_PATCH_OPERATIONS:  # pyright: ignore[reportUnknownArgumentType]
        raise too_large(f"{MAX_PATCH_OPERATIONS} {what} are allowed at once.")
    try:
        size = len(canonical_bytes(items))
    except JSONTextError as error:
        raise not_usable(error) from None
    if size > MAX_PATCH_BYTES:
        raise too_large(f"the {what} have {size} bytes; {MAX_PATCH_BYTES} are allowed.")
