"""`surecall approvals`: what waits for a decision, and the decisions."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

import click
import msgspec

from surecall.base.errors import ApprovalError, Code, JSONTextError
from surecall.loop import approve, deny
from surecall.text import decode, encode_text
from surecall.tools.approvals import Approval, ApprovalStatus, ApprovalStore

from .console import Output
from .flags import (
    count_flag,
    flag,
    invalid_option,
    output_flags,
    pass_output,
    pass_to_commands,
    place_flag,
)
from .terminal import bounded, escape_json, line_of, shown_value

T = TypeVar("T")

_EXAMPLE: Final = "For example --edit '{\"amount\": 5}'."
STORE_FILE: Final = ".surecall/approvals.db"
_STATUSES: Final = (*get_args(ApprovalStatus), "all")
_PAYLOAD_CHARS: Final = 60

_store_flag: Final = place_flag("approvals", STORE_FILE)
_by_flag: Final = flag("--by NAME", "Who decides; by default you.")


@click.group(invoke_without_command=True)
@_store_flag
@output_flags
@click.pass_context
def approvals(context: click.Context, place: str) -> None:
    """List what waits for a decision; the commands show, approve and deny."""
    pass_to_commands(context, "place")
    if context.invoked_subcommand is None:
        context.invoke(list_approvals, place=place, status="pending", run_id=None, limit=50)


@approvals.command("list")
@flag("--status", "Only approvals of this status.", choices=_STATUSES, shown="pending")
@flag("--run ID", "Only those of this run.", to="run_id")
@count_flag("--limit", "How many to list.", 50)
@_store_flag
@pass_output
def list_approvals(output: Output, status: Any, run_id: str | None, limit: int, place: str) -> None:
    """List approvals, the newest first."""
    wanted: ApprovalStatus | None = None if status == "all" else status
    found = _use_store(place, lambda store: store.list(status=wanted, run_id=run_id, limit=limit))
    if output.json:
        rows = [_describe(each) for each in found]
        output.data({"type": "approvals", "count": len(found), "approvals": rows})
        return
    if not found:
        output.text("Nothing is pending." if wanted == "pending" else "There are no approvals.")
        return
    columns = dict.fromkeys(("approval", "asked", "status", "tool"), "whole") | {"arguments": ""}
    rows = (
        (each.id, _time_text(each.created_at), each.status, line_of(each.name), _payload(each))
        for each in found
    )
    output.table(columns, rows, optional=("asked", "status", "arguments"))


@approvals.command("show", short_help="Show one approval.")
@click.argument("approval_id", metavar="APPROVAL")
@_store_flag
@pass_output
def show_approval(output: Output, approval_id: str, place: str) -> None:
    """Show one approval: what it is for, what it binds, and who decided."""
    approval = _use_store(place, lambda store: store.get(approval_id))
    _show(output, approval)


@approvals.command("approve", short_help="Approve a call, as it is or with other arguments.")
@click.argument("approval_id", metavar="APPROVAL")
@flag("--edit JSON", "Run these arguments instead; they must fit the tool.")
@_by_flag
@_store_flag
@pass_output
def approve_call(
    output: Output, approval_id: str, edit: str | None, by: str | None, place: str
) -> None:
    """Approve a call, as it is or with other arguments; the run can then be resumed."""
    arguments = None if edit is None else _parse_edit(edit)
    decided = _use_store(
        place, lambda store: approve(store, approval_id, by=by or _user(), arguments=arguments)
    )
    _report(output, decided)


@approvals.command("deny", short_help="Deny a call; the model reads the reason.")
@click.argument("approval_id", metavar="APPROVAL")
@flag("--reason TEXT", "Why; the model reads it.", default="")
@_by_flag
@_store_flag
@pass_output
def deny_call(output: Output, approval_id: str, reason: str, by: str | None, place: str) -> None:
    """Deny a call; the run can then be resumed, and the model reads the reason."""
    decided = _use_store(
        place, lambda store: deny(store, approval_id, by=by or _user(), reason=reason)
    )
    _report(output, decided)


def _use_store(place: str, act: Callable[[ApprovalStore], Awaitable[T]]) -> T:
    """Open the store, which must be there, and return what an action on it returns."""
    if "://" not in place and not Path(place).exists():
        raise ApprovalError(
            Code.APPROVAL_NOT_FOUND,
            f"There are no approvals: {place} does not exist.",
            hint="Name the store with --store: a file, or the address of a PostgreSQL server.",
        )

    async def run() -> T:
        from surecall.store import open_store

        async with open_store(place) as store:
            return await act(store)

    return asyncio.run(run())


def _parse_edit(text: str) -> dict[str, Any]:
    try:
        value = decode(text)
    except JSONTextError as error:
        raise invalid_option(f"--edit is not JSON: {error.message}", _EXAMPLE) from error
    if not isinstance(value, dict):
        raise invalid_option("--edit is not an object.", _EXAMPLE)
    return value  # pyright: ignore[reportUnknownVariableType] - JSON


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return "command line"


def _report(output: Output, decided: Approval) -> None:
    if output.json:
        output.data({"type": "approval", **_describe(decided)})
        return
    edited = " with other arguments" if decided.approved_payload is not None else ""
    output.text(f"{decided.id}: {line_of(decided.name)} is {decided.status}{edited}.")
    if decided.run_id:
        output.note(f"Resume the run with surecall.resume({decided.run_id!r}, ...).")


def _show(output: Output, approval: Approval) -> None:
    if output.json:
        output.data({"type": "approval", **_describe(approval)})
        return
    facts = {
        "approval": approval.id,
        "status": approval.status,
        "for": f"{approval.subject} {line_of(approval.name)}",
        "run": line_of(approval.run_id),
        "asked": _time_text(approval.created_at),
        "expires": _time_text(approval.expires_at),
        "digest": approval.digest,
    }
    if approval.decided_at is not None:
        facts["decided"] = f"{_time_text(approval.decided_at)} by {line_of(approval.decided_by)}"
    if approval.reason:
        facts["reason"] = line_of(approval.reason)
    output.facts((name, value) for name, value in facts.items() if value)
    output.text("\n" + escape_json(encode_text(approval.payload, indent=2)))
    if approval.approved_payload is not None:
        output.text(
            "\nchanged to\n\n" + escape_json(encode_text(approval.approved_payload, indent=2))
        )


def _payload(approval: Approval) -> str:
    text = bounded(shown_value(approval.runs_with), _PAYLOAD_CHARS)
    if approval.approved_payload is None:
        return text
    asked = bounded(shown_value(approval.payload), _PAYLOAD_CHARS)
    return f"{text} (changed by {line_of(approval.decided_by)}, asked: {asked})"


def _time_text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


def _describe(approval: Approval) -> dict[str, Any]:
    return msgspec.to_builtins(approval)
