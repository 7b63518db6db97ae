"""Approvals that wait: real paused runs and proposals in a store."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

import surecall
from surecall.models.transport import assistant, tool_call
from surecall.store import DatabaseStore
from surecall.tools.approvals import Approval
from surecall.workspace import Author, Proposal, ProposedFact, Workspace

LARGE = 12_345_678_901_234_567_890
"""More than a browser can count to."""


@surecall.tool(effect="external", approval="required")
def send_mail(to: str, subject: str, copies: int = 1) -> dict[str, Any]:
    """Send a mail to somebody."""
    return {"sent": to, "subject": subject, "copies": copies}


@surecall.tool(effect="write", approval="required")
def delete_drafts(count: int) -> dict[str, Any]:
    """Delete old drafts."""
    return {"deleted": count}


TOOLS = [send_mail, delete_drafts]


async def pause_run(
    store: DatabaseStore, name: str, arguments: Any, text: str = "Do it.", **options: Any
) -> Approval:
    """Start a run whose one call waits, and return what it waits for."""
    replies = [assistant(None, tool_call(name, arguments, "call_1"))]
    result = await surecall.run(
        text,
        model="aster-70b",
        preset=(),
        tools=TOOLS,
        approvals=store,
        transport=surecall.ScriptedTransport(replies),
        **options,
    )
    (approval,) = result.pending
    return approval


async def propose_launch(
    store: DatabaseStore, workspace_id: str = "launch", *, conflict: bool = False
) -> tuple[Workspace, Proposal]:
    """Propose four facts; with `conflict`, somebody else has changed one of them since."""
    facts = {
        "launch": {"date": "2027-03-14", "venue": "Harbour Hall", "guests": ["Ada", "Lin"]},
        "budget": {"limit": 8000, "currency": "EUR"},
    }
    workspace = await Workspace.create(store, id=workspace_id, facts=facts)
    proposal = await workspace.propose(
        [
            ProposedFact("/facts/launch/date", "2027-03-21", "The venue is free on 21 March only."),
            ProposedFact("/facts/launch/venue", "Old Mill"),
            ProposedFact("/facts/budget/limit", 9500, "The later date costs more."),
            ProposedFact("/facts/launch/guests/2", "Noor"),
        ],
        author=Author(by="model", run_id="r-2219", call_id="call_7"),
    )
    if conflict:
        other = await workspace.propose([ProposedFact("/facts/budget/limit", 9000)])
        await workspace.accept(other.id, by="lena")
        await workspace.commit(other.id)
    return workspace, proposal


async def expire(store: DatabaseStore, approval: Approval) -> Approval:
    """Store another approval like this one, whose time is over."""
    past = datetime.now(UTC) - timedelta(minutes=1)
    late = replace(approval, id=f"{approval.id}_late", expires_at=past)
    await store.add([late])
    return late
