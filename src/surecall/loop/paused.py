"""Runs that wait for an approval: stored whole, and resumed in any process.

What is stored is the state of the run before its waiting calls, and what was recorded since. While
a resumed run goes on, each intent and each result is stored before anything else happens, so a
process that dies leaves a run that can be resumed again, and no effect happens twice.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import ApprovalError, Code, JournalError, JSONTextError
from surecall.jsontext import canonical_hash, decode_own
from surecall.narrow import as_fields
from surecall.records import ToolCall, ToolResult, ToolSpec
from surecall.schema import SchemaChecker
from surecall.tools.approvals import Approval, ApprovalStore, Decision, PausedRun

from .journal import JournalRecord, RecordedResult
from .steps import RunCalls, RunState, Step
from .stored import encode_stored
from .trace import Trace

STATE_VERSION: Final = 1


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
    """Names the process that has resumed the run; empty while it waits."""

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


def keep_results(
    turn: int, results: tuple[ToolResult, ...], waiting: Mapping[str, Approval]
) -> tuple[JournalRecord, ...]:
    """Return the records of the calls that do not wait."""
    return tuple(
        RecordedResult(turn, result) for result in results if result.call_id not in waiting
    )


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


class StoreJournal:
    """The journal of a resumed run, kept in the store that it waited in.

    Whoever resumes the run last has it: a process that had it before may write nothing more, so
    it stops before its next effect.
    """

    def __init__(self, store: ApprovalStore, stored: PausedRun) -> None:
        self.state = replace(unpack_run(stored), holder=uuid4().hex)
        self._store = store
        self._stored = stored
        self.records = list(self.state.records)
        """What was recorded since the run paused."""

    async def claim(self) -> None:
        """Take the run, also from a process that had it and may have died."""
        await self.save()

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Keep the record until it is stored with the next that must not be lost."""
        del durable
        self.records.append(record)

    async def save(self) -> None:
        """Store all records, if the run still belongs to this process."""
        state = encode_stored(replace(self.state, records=tuple(self.records)))
        after = replace(self._stored, state=state)
        if not await self._store.replace_run(self._stored, after):
            raise self._taken()
        self._stored = after

    async def check(self) -> None:
        """Raise `JOURNAL_IN_USE` when another process has resumed the run since."""
        if await self._store.load_run(self._stored.run_id) != self._stored:
            raise self._taken()

    def close(self) -> None:
        """Nothing to let go of."""

    def _taken(self) -> JournalError:
        return JournalError(
            Code.JOURNAL_IN_USE,
            f"The run {self._stored.run_id!r} was resumed by another process.",
            hint="Wait for that process; the run continues there.",
        )


async def approve(
    store: ApprovalStore, approval_id: str, *, by: str, arguments: dict[str, Any] | None = None
) -> Approval:
    """Approve a call, or what a person makes of it.

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
    """Deny a call; the model reads the reason."""
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
