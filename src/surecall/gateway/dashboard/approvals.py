"""Approvals as a person reads them: what waits, and what would happen after a yes.

Values are sent as JSON text, never as JSON values: a browser would round large numbers, and a
person decides by what they see.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from surecall.base.errors import (
    ApprovalError,
    Code,
    JSONTextError,
    ProviderStatusError,
    SurecallError,
)
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import Message
from surecall.base.redaction import excerpt
from surecall.gateway.dashboard.visits import Visit, not_found
from surecall.gateway.settings.tables import ApprovalSettings
from surecall.loop import approve, deny
from surecall.loop.paused import PausedState, unpack_run
from surecall.models.config import read_key
from surecall.text import decode, encode_text
from surecall.tools.approvals import Approval
from surecall.workspace import Change, FactDifference, ProposedFact, Workspace
from surecall.workspace.proposals import choose_facts, read_proposal

if TYPE_CHECKING:
    from surecall.store import DatabaseStore

_MAX_WAITING: Final = 100
_MAX_RECENT: Final = 200
_MAX_DECIDED: Final = 5
_MAX_MESSAGES: Final = 30
_MAX_TEXT_CHARS: Final = 4_000
_MAX_CHANGES: Final = 200
_PREVIEW_CHARS: Final = 120


class ApprovalDesk:
    """The store of approvals that the settings name, opened when somebody first looks."""

    def __init__(self) -> None:
        self._place = ""
        self._store: DatabaseStore | None = None
        self._opening = asyncio.Lock()

    async def open(self, settings: ApprovalSettings) -> "DatabaseStore":
        """Return the store, or raise that there is none."""
        place = _find_place(settings)
        if why_closed(settings):
            raise not_found("There is no store of approvals.", "Start the gateway with one.")
        async with self._opening:
            if self._store is None or place != self._place:
                from surecall.store import open_store

                await self._close_store()
                self._store = await asyncio.to_thread(open_store, place)
                self._place = place
            return self._store

    async def count_waiting(self, settings: ApprovalSettings) -> int | None:
        """Return how many approvals wait, or `None` when that is not known."""
        if why_closed(settings):
            return None
        try:
            store = await self.open(settings)
            return len(await store.list(status="pending", limit=_MAX_WAITING))
        except SurecallError:
            return None

    async def close(self) -> None:
        """Let go of the store."""
        async with self._opening:
            await self._close_store()

    async def _close_store(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            await store.close()


def why_closed(settings: ApprovalSettings) -> str:
    """Return `off` without a store, `missing` when its file is not there yet, or nothing."""
    place = _find_place(settings)
    if not place:
        return "off"
    is_missing = "://" not in place and not Path(place).exists()
    return "missing" if is_missing else ""


def _find_place(settings: ApprovalSettings) -> str:
    if not settings.url_env:
        return settings.store
    secret = read_key(settings.url_env)
    return "" if secret is None else secret.reveal()


# What waits


async def list_approvals(desk: ApprovalDesk, settings: ApprovalSettings) -> dict[str, Any]:
    """Return what waits, the soonest to end first, and what was decided last."""
    state = why_closed(settings)
    found: dict[str, Any] = {"state": state or "open", "now": _seconds(datetime.now(UTC))}
    if state:
        return found | {"place": settings.store, "waiting": [], "decided": [], "counts": {}}
    store = await desk.open(settings)
    waiting = await store.list(status="pending", limit=_MAX_WAITING)
    recent = [each for each in await store.list(limit=_MAX_RECENT) if each.status != "pending"]
    recent.sort(key=lambda each: each.decided_at or each.expires_at, reverse=True)
    return found | {
        "waiting": [_describe_row(each) for each in sorted(waiting, key=lambda a: a.expires_at)],
        "is_cut": len(waiting) == _MAX_WAITING,
        "decided": [_describe_row(each) for each in recent[:_MAX_DECIDED]],
        "counts": Counter(_outcome(each) for each in recent),
    }


def _describe_row(approval: Approval) -> dict[str, Any]:
    payload = as_fields(approval.payload)
    facts = as_list(payload.get("facts")) if approval.subject == "facts" else []
    paths = [str(as_fields(fact).get("path")) for fact in facts]
    return {
        "id": approval.id,
        "subject": approval.subject,
        "name": approval.name,
        "preview": excerpt(
            ", ".join(paths) if paths else _text(approval.runs_with), _PREVIEW_CHARS
        ),
        "size": len(paths) if approval.subject == "facts" else len(payload),
        "outcome": _outcome(approval),
        "created_at": _seconds(approval.created_at),
        "expires_at": _seconds(approval.expires_at),
        "decided_at": _seconds(approval.decided_at),
        "decided_by": approval.decided_by,
    }


def _outcome(approval: Approval) -> str:
    """Return what became of an approval, in one word."""
    if approval.status in ("approved", "used") and approval.approved_payload is not None:
        return "edited"
    return "approved" if approval.status == "used" else approval.status


# One approval


async def show_approval(store: "DatabaseStore", approval_id: str) -> dict[str, Any]:
    """Return one approval with all that is known about it."""
    approval = await store.get(approval_id)
    shown = _describe_row(approval) | {
        "now": _seconds(datetime.now(UTC)),
        "status": approval.status,
        "run_id": approval.run_id,
        "call_id": approval.call_id,
        "reason": approval.reason,
        "payload": _text(approval.payload, indent=2),
        "approved": None
        if approval.approved_payload is None
        else _text(approval.approved_payload, indent=2),
        "run": await _describe_run(store, approval),
        "facts": None,
    }
    if approval.subject == "facts":
        shown["facts"] = await _describe_facts(store, approval)
    return shown


async def _describe_run(store: "DatabaseStore", approval: Approval) -> dict[str, Any] | None:
    """Return what the paused run says about its call; `None` once it has gone on."""
    if not approval.run_id:
        return None
    try:
        state = unpack_run(await store.load_run(approval.run_id))
    except ApprovalError:
        return None
    tool = state.find_tool(approval.name)
    return {
        "model": state.trace.model,
        "turn": state.run.turn + 1,
        "effect": tool.effect if tool else "",
        "description": excerpt(tool.description, _MAX_TEXT_CHARS) if tool else "",
        "messages": [_describe_message(each) for each in state.run.history[-_MAX_MESSAGES:]],
        **_describe_call(state, approval),
    }


def _describe_call(state: PausedState, approval: Approval) -> dict[str, Any]:
    turns = state.trace.turns
    calls = turns[-1].calls if turns else ()
    call = next((each for each in calls if each.id == approval.call_id), None)
    if call is None:
        return {"receipts": [], "received": "", "doubt": ""}
    received = call.raw if isinstance(call.raw, str) else _text(call.raw)
    return {
        "receipts": [
            {
                "rule": each.rule,
                "place": each.place,
                **_quote(each.before, each.after),
                "lossless": each.lossless,
                "why": each.why,
            }
            for each in call.receipts
        ],
        "received": received if call.receipts else "",
        "doubt": call.doubt,
    }


def _describe_message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "text": excerpt(message.text, _MAX_TEXT_CHARS),
        "calls": [
            {"name": call.name, "text": excerpt(_text(call.arguments), _MAX_TEXT_CHARS)}
            for call in message.tool_calls
        ],
    }


async def _describe_facts(store: "DatabaseStore", approval: Approval) -> dict[str, Any]:
    """Return what a proposal would change, or why that cannot be said."""
    try:
        proposal = read_proposal(approval)
        workspace = Workspace(approval.name, store)
        state = await workspace.read()
        rows = await workspace.compare(approval.id)
        then = await workspace.read(revision=proposal.revision) if proposal.revision else None
        changes: Iterable[Change] = ()
        if any(row.is_conflict for row in rows):
            changes = await workspace.changes(limit=_MAX_CHANGES)
    except SurecallError as error:
        return {"problem": error.message, "rows": []}
    reasons = {fact.path: fact.reason for fact in proposal.facts}
    newer = [each for each in changes if each.revision > (proposal.revision or 0)]
    return {
        "problem": "",
        "etag": state.etag("facts"),
        "proposed_on": then.etag("facts") if then is not None else "",
        "all": _text(state.facts, indent=2),
        "rows": [_describe_difference(row, reasons.get(row.path, ""), newer) for row in rows],
    }


def _describe_difference(
    row: FactDifference, reason: str, newer: Iterable[Change]
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "path": row.path,
        "before": None if row.is_new else _text(row.before, indent=0),
        "after": _text(row.after, indent=0),
        "reason": reason,
        "is_conflict": row.is_conflict,
    }
    if not row.is_conflict:
        return shown
    change = next((each for each in newer if _touches(each, row.path)), None)
    return shown | {
        "then": None if row.then is None else _text(row.then, indent=0),
        "changed_by": change.author.by if change is not None else "",
        "changed_at": _seconds(change.at) if change is not None else None,
    }


def _touches(change: Change, path: str) -> bool:
    """Tell whether a change of facts set a path, something above it, or something below it."""
    if not any(etag.startswith("facts:") for etag in change.etags):
        return False
    return any(
        f"{path}/".startswith(f"{p}/") or f"{p}/".startswith(f"{path}/") for p in change.paths
    )


def _text(value: Any, indent: int | None = 0) -> str:
    return encode_text(value, indent=indent)


def _quote(before: Any, after: Any) -> dict[str, Any]:
    """Return what a receipt quotes: two texts as they are, all else as JSON text."""
    if not (isinstance(before, str) and isinstance(after, str)):
        before = None if before is None else _text(before)
        after = None if after is None else _text(after)
    return {"before": before, "after": after}


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


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
