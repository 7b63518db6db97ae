"""What a model and an application read when a workspace refuses something."""

from collections.abc import Iterable
from typing import Any

from surecall.base.errors import Code, JSONTextError, WorkspaceError, did_you_mean
from surecall.base.limits import (
    MAX_ID_CHARACTERS,
    MAX_LOCKS,
    MAX_OPEN_PROPOSALS,
    MAX_PATCH_BYTES,
    MAX_PATCH_OPERATIONS,
    MAX_WORKSPACE_PART_BYTES,
)
from surecall.text import render_pointer
from surecall.text.pointer import json_type, quote_text

_READ_AGAIN = "Read the workspace again."


def _refusal(message: str, hint: str | None = None) -> WorkspaceError:
    return WorkspaceError(Code.ARGUMENT_ERROR, message, hint=hint)


def _too_large(message: str) -> WorkspaceError:
    return WorkspaceError(Code.WORKSPACE_TOO_LARGE, message, hint="Send less.")


# Paths and operations


def not_usable(error: JSONTextError) -> WorkspaceError:
    """Build the error for what is not a pointer, or cannot be JSON."""
    return _refusal(error.message, error.hint)


def path_too_deep(pointer: str, most: int) -> WorkspaceError:
    """Build the error for a path with too many parts."""
    return _refusal(f"the path {quote_text(pointer)} has more than {most} parts.")


def path_outside(path: str, root: str) -> WorkspaceError:
    """Build the error for a path that is not in the part that is changed."""
    return _refusal(
        f"the path {quote_text(path)} is not inside the {root}.",
        f"A path here begins with '/{root}/'.",
    )


def no_object(operation: Any) -> WorkspaceError:
    """Build the error for an operation that is not an object."""
    return _refusal(f"an operation is an object, not {json_type(operation)}.")


def no_operation(name: str, operations: Iterable[str]) -> WorkspaceError:
    """Build the error for an operation that there is not."""
    return _refusal(f"{quote_text(name)} is not an operation.", did_you_mean(name, operations))


def in_operation(at: int, error: WorkspaceError) -> WorkspaceError:
    """Build the error of one operation of several."""
    return WorkspaceError(error.code, f"operation {at}: {error.message}", hint=error.hint)


def no_text(name: str, found: str) -> WorkspaceError:
    """Build the error for a member of an operation that is not a string."""
    return _refusal(f"its {name!r} must be a string and is {found}.")


def no_value() -> WorkspaceError:
    """Build the error for an operation that needs a value."""
    return _refusal("its 'value' is missing.")


def whole_set(root: str) -> WorkspaceError:
    """Build the error for a part that would no longer be an object."""
    return _refusal(f"the whole {root} can only be set to an object.")


def whole_deleted(root: str) -> WorkspaceError:
    """Build the error for a part that would be gone."""
    return _refusal(f"the whole {root} cannot be deleted.")


def no_whole_number(index: Any) -> WorkspaceError:
    """Build the error for an index that is not a whole number."""
    return _refusal(f"its 'index' must be a whole number and is {json_type(index)}.")


def no_index(part: str) -> WorkspaceError:
    """Build the error for a part of a path that should lead into a list."""
    return _refusal(f"{quote_text(part)} is not an index of a list.")


def index_outside(index: int, length: int) -> WorkspaceError:
    """Build the error for an index at which nothing can be inserted."""
    return _refusal(f"index {index} is not in the list of {length} items.")


def index_too_far(part: str, length: int) -> WorkspaceError:
    """Build the error for an index far behind the end of a list."""
    return _refusal(f"index {part} is too far outside the list of {length} items.")


def no_array(found: Any) -> WorkspaceError:
    """Build the error for something that nothing can be added to."""
    return _refusal(f"there is {json_type(found)} at the path, not an array.")


def no_container(found: Any, part: str) -> WorkspaceError:
    """Build the error for a path that leads through something without members."""
    return _refusal(f"there is {json_type(found)} on the way, which holds no {quote_text(part)}.")


# States


def no_patch(part: str) -> WorkspaceError:
    """Build the error for a part that is not changed by patches."""
    return _refusal(f"{quote_text(part)} cannot be patched.", "Patch the draft.")


def other_version(part: str, etag: str, given: str) -> WorkspaceError:
    """Build the error for a change that was made for another version."""
    return _refusal(f"the {part} is at {etag}, not at {quote_text(given)}.", _READ_AGAIN)


def no_lock(path: str) -> WorkspaceError:
    """Build the error for a path that cannot be locked."""
    return _refusal(
        f"{quote_text(path)} cannot be locked.", "A lock is a path in /facts, /draft or /ui_state."
    )


def too_many_locks() -> WorkspaceError:
    """Build the error for locks above the limit."""
    return _too_large(f"a workspace has at most {MAX_LOCKS} locks.")


def path_locked(lock: tuple[str, ...]) -> WorkspaceError:
    """Build the error for a change of something locked."""
    return WorkspaceError(
        Code.PATH_LOCKED,
        f"{render_pointer(lock)} is locked; nothing was changed.",
        hint="Leave it as it is.",
    )


def part_too_large(part: str, size: int) -> WorkspaceError:
    """Build the error for a part above the limit."""
    return _too_large(
        f"the {part} would have {size} bytes; {MAX_WORKSPACE_PART_BYTES} are allowed."
    )


def part_unwritable(part: str, error: JSONTextError) -> WorkspaceError:
    """Build the error for a part that would not be JSON."""
    return _refusal(f"the {part} would not be JSON: {error.message}", error.hint)


# Workspaces and their changes


def workspace_exists(identity: str) -> WorkspaceError:
    """Build the error for an id that is taken."""
    return WorkspaceError(
        Code.WORKSPACE_EXISTS, f"there already is a workspace {quote_text(identity)}."
    )


def no_workspace(identity: str) -> WorkspaceError:
    """Build the error for a workspace that was never created."""
    return WorkspaceError(
        Code.WORKSPACE_NOT_FOUND, f"there is no workspace {quote_text(identity)}."
    )


def other_workspace(given: Any) -> WorkspaceError:
    """Build the error for a call that names another workspace than the tools have."""
    return WorkspaceError(
        Code.WORKSPACE_NOT_FOUND,
        f"there is no workspace {given!r:.80}.",
        hint="Leave workspace_id out to mean the current workspace.",
    )


def workspace_busy(tries: int) -> WorkspaceError:
    """Build the error for a change that others were always faster than."""
    return WorkspaceError(
        Code.WORKSPACE_CONFLICT,
        f"the workspace was changed by others {tries} times in a row.",
        hint="Read it again, then repeat the change.",
    )


def no_version(version: Any) -> WorkspaceError:
    """Build the error for a version that the workspace never had."""
    return WorkspaceError(
        Code.VERSION_NOT_FOUND,
        f"there is no version {version!r:.80}.",
        hint="Take one from the log of changes, such as 'draft:1'.",
    )


def request_id_reused(identity: str) -> WorkspaceError:
    """Build the error for an id that another change has claimed."""
    return WorkspaceError(
        Code.REQUEST_ID_REUSED,
        f"the request id {quote_text(identity)} was already used for another change.",
        hint="Use a new request_id for a new change.",
    )


def no_id(what: str, identity: Any) -> WorkspaceError:
    """Build the error for an id that cannot be stored everywhere."""
    return _refusal(
        f"{identity!r:.80} cannot be a {what}.",
        f"Use 1 to {MAX_ID_CHARACTERS} printable characters.",
    )


def no_list(what: str, items: Any) -> WorkspaceError:
    """Build the error for operations or facts that are not in a list."""
    return _refusal(f"the {what} must be a list, not {type(items).__name__}.")


def too_many(what: str) -> WorkspaceError:
    """Build the error for too many operations or facts."""
    return _too_large(f"{MAX_PATCH_OPERATIONS} {what} are allowed at once.")


def too_long(what: str, size: int) -> WorkspaceError:
    """Build the error for operations or facts with too many bytes."""
    return _too_large(f"the {what} have {size} bytes; {MAX_PATCH_BYTES} are allowed.")


# Proposals


def no_facts() -> WorkspaceError:
    """Build the error for a proposal that is something else."""
    return _refusal("a proposal is a list of facts with a path, a value and a reason.")


def empty_proposal() -> WorkspaceError:
    """Build the error for a proposal of nothing."""
    return _refusal("a proposal needs at least one fact.")


def too_many_proposals() -> WorkspaceError:
    """Build the error for proposals that nobody decides about."""
    return _too_large(f"{MAX_OPEN_PROPOSALS} proposals already wait for a decision.")


def not_proposed(path: str, proposal_id: str) -> WorkspaceError:
    """Build the error for a path that a proposal does not have."""
    return _refusal(f"{quote_text(path)} is not a path of the proposal {proposal_id}.")


def nothing_chosen() -> WorkspaceError:
    """Build the error for accepting nothing."""
    return _refusal("nothing was chosen.", "Reject the proposal to accept nothing of it.")


def nothing_accepted() -> WorkspaceError:
    """Build the error for a commit of nothing."""
    return _refusal("nothing that could be committed was accepted.")


def nobody_decides() -> WorkspaceError:
    """Build the error for a decision without a name."""
    return _refusal("a decision needs a name: who makes it?")


# Tools


def not_confirmed() -> WorkspaceError:
    """Build the error for a commit that the user was not asked about."""
    return _refusal("a commit needs the confirmation of the user.", "Ask first.")


def path_not_allowed(path: str, allowed: Iterable[str]) -> WorkspaceError:
    """Build the error for a path that these tools may not write."""
    shown = " or ".join(allowed) or "nothing"
    return _refusal(
        f"only {shown} may be written here, not {path!r:.80}; nothing was changed.",
        "Send it again with an allowed path.",
    )


def set_only(allowed: Iterable[str]) -> WorkspaceError:
    """Build the error for an operation that these tools may not make."""
    return _refusal(
        f"only the operation 'set' on {' or '.join(allowed)} is allowed here; nothing was changed.",
        "Send the patch again with an allowed operation and path.",
    )


def no_items(name: str, value: Any) -> WorkspaceError:
    """Build the error for an argument that is not an array, or an empty one."""
    found = "empty" if value == [] else json_type(value)
    return _refusal(f"{name} must be an array with at least one item and is {found}.")


def no_object_in(name: str, item: Any) -> WorkspaceError:
    """Build the error for an item that is not an object."""
    return _refusal(f"every item of {name} must be an object, not {json_type(item)}.")
