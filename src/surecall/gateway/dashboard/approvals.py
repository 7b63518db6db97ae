"""Approvals as a person reads them: what waits, and what would happen after a yes.

Values are sent as JSON text, never as JSON values: a browser would round large numbers, and a
person decides by what they see.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surecall.base.errors import ApprovalError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message
from surecall.base.redaction import excerpt
from surecall.gateway.settings import ApprovalSettings
from surecall.loop.paused import PausedState, unpack_run
from surecall.models.config import read_key
from surecall.text import encode_text
from surecall.tools.approvals import Approval
from surecall.workspace import Change, FactDifference, Workspace
from surecall.workspace.proposals import read_proposal

from .visits import not_found

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
