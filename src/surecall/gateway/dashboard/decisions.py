"""What a person decides in the dashboard about a call or about proposed facts."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, cast

from surecall.base.errors import Code, JSONTextError, ProviderStatusError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.redaction import excerpt
from surecall.loop import approve, deny
from surecall.text import decode
from surecall.workspace import ProposedFact, Workspace
from surecall.workspace.proposals import choose_facts

from .visits import Visit

if TYPE_CHECKING:
    from surecall.store import DatabaseStore

MAX_DECISION_BYTES: Final = 1024 * 1024
LOCAL_USER: Final = "local user"
"""Who decides at a gateway without keys: somebody on this machine."""
_MAX_REASON_CHARS: Final = 4_000


def name_of(visit: Visit) -> str:
    """Return who decides: the key that they signed in with."""
    return visit.caller.id if visit.caller is not None else LOCAL_USER


async def approve_one(
    store: "DatabaseStore", approval_id: str, by: str, body: dict[str, Any]
) -> None:
    """Approve a call or accept facts, as they are or as a person has changed them.

    For a call, `arguments` has the changed arguments as JSON text. For facts, `seen` names the
    version of the facts that the person saw, `take` has the paths to accept, and `edited` the
    changed values by path, as JSON text.

    Raises:
        ApprovalError: It is not there, already decided, expired, or the arguments do not fit.
        ProviderStatusError: The facts have changed meanwhile, or something is not JSON.
        WorkspaceError: The facts cannot be accepted.
    """
    approval = await store.get(approval_id)
    if approval.subject == "call":
        text: Any = body.get("arguments")
        arguments = None if text is None else _parse_object("The arguments", text)
        await approve(store, approval_id, by=by, arguments=arguments)
        return
    workspace = Workspace(approval.name, store)
    await _check_seen(workspace, body)
    proposal = await workspace.proposal(approval_id)
    wanted = body.get("take")
    take = None if wanted is None else {str(path) for path in as_list(wanted)}
    facts = proposal.facts if take is None else choose_facts(proposal, take)
    edited = _parse_edits(body.get("edited"), {fact.path for fact in facts})
    if not edited:
        await workspace.accept(approval_id, by=by, only=take)
        return
    chosen = [
        ProposedFact(fact.path, edited.get(fact.path, fact.value), fact.reason) for fact in facts
    ]
    await workspace.accept(approval_id, by=by, edited=chosen)


async def deny_one(store: "DatabaseStore", approval_id: str, by: str, body: dict[str, Any]) -> None:
    """Deny a call or reject facts; the model reads the reason, so there has to be one."""
    reason = (text_or_none(body.get("reason")) or "").strip()
    if not reason or len(reason) > _MAX_REASON_CHARS:
        raise _refuse(
            f"A denial needs a reason of up to {_MAX_REASON_CHARS} characters.",
            "Say what to do instead: the model reads it.",
        )
    await deny(store, approval_id, by=by, reason=reason)


async def commit_one(store: "DatabaseStore", approval_id: str, body: dict[str, Any]) -> None:
    """Make accepted facts hold."""
    approval = await store.get(approval_id)
    if approval.subject != "facts":
        raise _refuse("Only facts can be committed; a call runs when its run is resumed.")
    workspace = Workspace(approval.name, store)
    await _check_seen(workspace, body)
    await workspace.commit(approval_id)


async def _check_seen(workspace: Workspace, body: dict[str, Any]) -> None:
    """Raise when the facts are no longer those that the person saw."""
    now = (await workspace.read()).etag("facts")
    if body.get("seen") != now:
        raise ProviderStatusError(
            Code.CONFLICT,
            "The facts have changed since you looked; nothing was decided.",
            hint="Look at what would change now, and decide again.",
            status=409,
        )


def _parse_edits(given: Any, paths: Collection[str]) -> dict[str, Any]:
    """Return the changed values by path; all of them have to be for facts that are accepted."""
    if given is not None and not isinstance(given, dict):
        raise _refuse("The edited values are not an object.")
    edits = as_fields(given)
    for path in edits:
        if path not in paths:
            raise _refuse(f"{excerpt(path, 80)!r} is edited, and not accepted.")
    return {path: _parse(f"The value of {path}", text) for path, text in edits.items()}


def _parse(what: str, text: Any) -> Any:
    if not isinstance(text, str):
        raise _refuse(f"{what}: send JSON as text, so that no number is rounded.")
    try:
        return decode(text, max_bytes=MAX_DECISION_BYTES)
    except JSONTextError as error:
        raise _refuse(f"{what} cannot be read: {error.message}", error.hint) from None


def _parse_object(what: str, text: Any) -> dict[str, Any]:
    value = _parse(what, text)
    if not isinstance(value, dict):
        raise _refuse(f"{what} are not an object.")
    return cast("dict[str, Any]", value)


def _refuse(message: str, hint: str | None = None) -> ProviderStatusError:
    return ProviderStatusError(Code.INVALID_REQUEST, message, hint=hint, status=400)
