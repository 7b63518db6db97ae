"""Runs that wait for an approval: stored whole, and resumed in any process.

What is stored is the state of the run before its waiting calls, and what was recorded since. While
a resumed run goes on, each intent and each result is stored before anything else happens, so a
process that dies leaves a run that can be resumed again, and no effect happens twice.

Whoever resumes a run holds a lease on it, renewed while the process lives. Another process that
resumes it meanwhile is refused; it never guesses at the outcome of a call that is under way.
"""

import asyncio
import os
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ApprovalError, Code, JournalError, JSONTextError
from surecall.base.json_values import as_fields
from surecall.base.records import ToolCall, ToolResult, ToolSpec
from surecall.base.redaction import open_log
from surecall.schema import SchemaChecker
from surecall.text import canonical_hash, decode_own
from surecall.tools.approvals import Approval, ApprovalStore, Decision, PausedRun
from surecall.tools.outputs import encode_stored

from .journal import JournalRecord
from .steps import RunCalls, RunState, Step
from .trace import Trace

STATE_VERSION: Final = 1
LEASE_S: Final = 15.0
"""How long a process that resumed a run has it when nothing more is heard of it."""

_RENEW_S: Final = LEASE_S / 3
_POLL_S: Final = 0.25
_log = open_log("surecall.loop")


class PausedState(Struct, frozen=True, kw_only=True):
    """All that a run needs to continue, apart from its tools and its connection."""

    version: int = STATE_VERSION
    trace: Trace
    """The run so far; its last turn has the calls that wait."""
    run: RunState
    warnings: dict[str, str] = {}
    """What the model is told with the results of these calls."""
    once: dict[str, ToolResult | None] = {}
    """The first results of calls that may not be made twice."""
    records: tuple[JournalRecord, ...] = ()
    """What was recorded since: results, replies, and intents."""
    holder: str = ""
    """Names whoever has resumed the run; empty while it waits."""
    process: str = ""
    """The process that this is, so that another one on the same machine knows when it has died."""
    held_until: float = 0.0
    """When the lease ends unless it is renewed, in seconds since the epoch."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last reply, in order."""
        return self.run.history[-1].tool_calls

    @property
    def step(self) -> Step:
        """What the run does next."""
        return Step(self.run, (RunCalls(self.calls, self.warnings),))

    @property
    def caller_options(self) -> dict[str, Any]:
        """The options that the caller of the run had set."""
        given = {
            name.partition(".")[0]
            for name, origin in self.trace.origins.items()
            if origin == "caller"
        }
        return {name: getattr(self.trace.options, name) for name in given}

    def find_tool(self, name: str) -> ToolSpec | None:
        """Return a tool as it was when the run paused."""
        return next((tool for tool in self.trace.tools if tool.name == name), None)


def pack_run(run_id: str, state: PausedState, approval_ids: tuple[str, ...]) -> PausedRun:
    """Return a paused run as it is stored."""
    return PausedRun(
        run_id=run_id,
        state=encode_stored(state),
        created_at=datetime.now(UTC),
        approval_ids=approval_ids,
    )


def unpack_run(stored: PausedRun) -> PausedState:
    """Return the state of a stored run, or raise `PAUSED_RUN_UNREADABLE`."""
    try:
        document = decode_own(stored.state)
        version = as_fields(document).get("version")
        if version == STATE_VERSION:
            return msgspec.convert(document, PausedState)
        reason = f"it has version {version!r:.20}, and this surecall reads {STATE_VERSION}"
    except (JSONTextError, msgspec.ValidationError) as error:
        reason = str(error).rstrip(".")
    raise ApprovalError(
        Code.PAUSED_RUN_UNREADABLE,
        f"The paused run {stored.run_id!r} cannot be read: {reason}.",
        hint="Resume it with the version of surecall that wrote it, or start it again.",
    )


async def load_waiting(store: ApprovalStore, run_id: str) -> PausedRun:
    """Return the run that waits, or raise `APPROVAL_NOT_FOUND` and tell whether it ever did."""
    try:
        return await store.load_run(run_id)
    except ApprovalError as error:
        if error.code != Code.APPROVAL_NOT_FOUND or not await store.list(run_id=run_id, limit=1):
            raise
        raise ApprovalError(
            Code.APPROVAL_NOT_FOUND,
            f"The run {run_id!r} waits no more: it was resumed before, and has ended.",
            hint="Whoever resumed it has its result.",
        ) from error


class StoreJournal:
    """The journal of a resumed run, kept in the store that it waited in.

    Whoever has claimed the run has it until it ends, or until nothing is heard of the process: what
    came later is refused, and what lost its claim stops before its next effect.
    """

    def __init__(self, store: ApprovalStore, stored: PausedRun) -> None:
        self._before = unpack_run(stored)
        self.state = replace(self._before, holder=uuid4().hex, process=_name_process())
        self._store = store
        self._stored = stored
        self._turn = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        self.records = list(self.state.records)
        """What was recorded since the run paused."""

    async def claim(self) -> None:
        """Take the run, also from a process that had it and has died.

        Raises:
            JournalError: `JOURNAL_IN_USE`, when another process has it.
        """
        while _is_held(self._before):
            await asyncio.sleep(_POLL_S)
            await self.check()  # it was renewed: whoever has it lives
        await self.save()
        self._renewing = asyncio.create_task(self._renew())

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Keep the record until it is stored with the next that must not be lost."""
        del durable
        self.records.append(record)

    async def save(self) -> None:
        """Store all records and renew the lease, if the run still belongs to this process."""
        async with self._turn:
            held = replace(self.state, held_until=time.time() + LEASE_S)
            await self._write(held)

    async def check(self) -> None:
        """Raise `JOURNAL_IN_USE` when another process has resumed the run since."""
        async with self._turn:
            if await self._store.load_run(self._stored.run_id) != self._stored:
                raise taken(self._stored.run_id)

    async def stop(self) -> None:
        """Renew the lease no more."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
            self._renewing = None

    async def release(self) -> None:
        """Let others resume the run at once, since this process will not end it."""
        await self.stop()
        try:
            async with self._turn:
                await self._write(replace(self.state, holder="", process=""))
        except JournalError:  # it waits again, or another process has it
            return
        except Exception:
            _log.exception("the run %s is free in %g s", self._stored.run_id, LEASE_S)

    def close(self) -> None:
        """Nothing to let go of."""

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            try:
                await self.save()
            except JournalError:
                return  # the next step of the run says it
            except Exception:
                _log.warning("a lease could not be renewed", exc_info=True)

    async def _write(self, state: PausedState) -> None:
        after = replace(
            self._stored, state=encode_stored(replace(state, records=tuple(self.records)))
        )
        if not await self._store.replace_run(self._stored, after):
            raise taken(self._stored.run_id)
        self._stored = after


def taken(run_id: str) -> JournalError:
    """Return the error of a run that another process has."""
    return JournalError(
        Code.JOURNAL_IN_USE,
        f"The run {run_id!r} was resumed by another process.",
        hint="Wait for that process; the run continues there, and its result comes there.",
    )


def _is_held(state: PausedState) -> bool:
    """Tell whether a run may still belong to whoever resumed it; raise when it surely does."""
    if not state.holder or time.time() >= state.held_until:
        return False
    machine, _, pid = state.process.rpartition(" ")
    if machine != _name_machine() or not pid.isdecimal() or os.name == "nt":
        return True
    if _is_running(int(pid)):
        raise taken(state.trace.run_id)
    return False


def _name_process() -> str:
    return f"{_name_machine()} {os.getpid()}"


@cache
def _name_machine() -> str:
    """Name what numbers of processes are counted in: a machine since its start, or a container."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    with suppress(OSError):  # one that was killed keeps its number until its parent looks
        return not Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].startswith(" Z")
    return True


async def approve(
    store: ApprovalStore, approval_id: str, *, by: str, arguments: dict[str, Any] | None = None
) -> Approval:
    """Approve a call, as it is or with changed arguments.

    In this example some names come from the example of `PausedResult`.

        await surecall.approve(store, waiting.id, by="ann", arguments={"amount": 4})

    Args:
        store: Where the approval waits.
        approval_id: Its id.
        by: Who decides.
        arguments: What to run instead of what the model asked for; it has to fit the tool.

    Raises:
        ApprovalError: The approval is decided, expired or unknown, or the arguments do not fit.
    """
    if arguments is None:
        return await store.decide(approval_id, Decision(approved=True, by=by))
    approval = await store.get(approval_id)
    if approval.subject == "call" and approval.run_id:
        await _check_edit(store, approval, arguments)
    edited = Decision(
        approved=True, by=by, edited=arguments, edited_digest=canonical_hash(arguments)
    )
    return await store.decide(approval_id, edited)


async def deny(store: ApprovalStore, approval_id: str, *, by: str, reason: str = "") -> Approval:
    """Deny a call; the model reads the reason.

    In this example some names come from the example of `PausedResult`.

        await surecall.deny(store, waiting.id, by="ann", reason="It is too much.")
    """
    return await store.decide(approval_id, Decision(approved=False, by=by, reason=reason))


async def _check_edit(store: ApprovalStore, approval: Approval, arguments: Any) -> None:
    """Refuse changed arguments that do not fit the tool as it was when the run paused."""
    tool = unpack_run(await store.load_run(approval.run_id)).find_tool(approval.name)
    if tool is None:
        return  # it is checked again before it runs
    errors = SchemaChecker(tool.parameters).check(arguments)
    if errors or not isinstance(arguments, dict):
        said = " ".join(error.message for error in errors) or "They are not an object."
        raise ApprovalError(
            Code.ARGUMENTS_INVALID,
            f"The changed arguments do not fit {approval.name}: {said}",
            hint="Correct them, and decide again; nothing was decided.",
        )
