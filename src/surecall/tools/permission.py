"""Whether a checked call may run: what ran once may not, else code or a person decides.

The hash that a decision binds covers the canonical arguments after repair, and the tool is given
exactly those arguments: what was approved is what runs. Anything but a clear yes is a no. Code
that decides and fails is reported to the developer; the model only reads that the call was not
approved.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from surecall.base.errors import ApprovalError, Code
from surecall.base.json_values import as_fields
from surecall.base.limits import APPROVAL_LIFETIME_S
from surecall.base.records import (
    CHANGED,
    Envelope,
    ErrorDetail,
    Receipt,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from surecall.base.redaction import open_log
from surecall.text import canonical_hash

from . import feedback
from .approvals import Approval, ApprovalStore, Decision
from .define import Tool, ToolContext, is_async
from .running import run_code

_UNKNOWN_CODES = frozenset({Code.OUTCOME_UNKNOWN, Code.TOOL_TIMEOUT})


class OnceLedger:
    """The first result of every call that may not be made twice; `None` when it is not known."""

    def __init__(self, results: Mapping[str, ToolResult | None] | None = None) -> None:
        self.results: dict[str, ToolResult | None] = dict(results or {})

    def begin(self, key: str) -> None:
        """Note that a call is about to run: until its end, its outcome is not known."""
        self.results[key] = None

    def end(self, key: str, result: ToolResult) -> None:
        """Note how a call ended; one whose code was never started may be made again."""
        if not _UNKNOWN_CODES.isdisjoint(result.envelope.error_codes):
            self.results.setdefault(key, None)
        elif result.executed:
            self.results[key] = result
        elif self.results.get(key, result) is None:
            del self.results[key]

    def recall(self, key: str, result: ToolResult) -> None:
        """Note the recorded result of a call that was made before this process."""
        if result.executed or Code.OUTCOME_UNKNOWN in result.envelope.error_codes:
            self.end(key, result)


def make_once_key(tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext) -> str:
    """Return the key that equal calls of a tool share in a run; empty when it may run again."""
    if tool.once is False:
        return ""
    said = arguments if tool.once is True else bind_rule(tool.once, arguments, context)()
    return f"{context.run_id}/{tool.name}/{canonical_hash(said)}"


def bind_rule(
    rule: Callable[..., Any], arguments: dict[str, Any], context: ToolContext
) -> Callable[[], Any]:
    """Return a call of a tool's rule, with the context if it takes two arguments."""
    try:
        inspect.signature(rule).bind(arguments, context)
    except (TypeError, ValueError):
        return functools.partial(rule, arguments)
    return functools.partial(rule, arguments, context)


EDITED_BY_PERSON = "edit_by_person"
"""The rule in the receipt of arguments that a person changed."""

_CHANGED_TOOL = (
    "was asked about another definition of the tool (name, schema, defaults or effect); "
    "a new approval is asked for"
)
_log = open_log("surecall.tools")


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """One call that is about to run, and the hash that a decision binds to."""

    call: ToolCall
    spec: ToolSpec
    arguments: dict[str, Any]
    """A copy of the arguments to show; changing it changes nothing."""
    arguments_hash: str
    """SHA-256 of the canonical arguments that will run."""
    context: ToolContext


class ApprovalDecision(Struct, frozen=True):
    """Whether the call may run, why not, and which arguments replace its own."""

    approved: bool
    reason: str = ""
    arguments: dict[str, Any] | None = None
    """A person's replacement; it has to fit the tool's schema."""


class Approver(Protocol):
    """Decides whether a call may run; a plain function runs in a thread."""

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision | Awaitable[ApprovalDecision]:
        """Return the decision; raising denies the call."""
        ...


class Permit(NamedTuple):
    """A call that may run, and with what."""

    arguments: dict[str, Any]
    approval: Approval | None = None
    """To be used before it runs."""
    receipts: tuple[Receipt, ...] = ()
    """The change of a person."""
    problem: ErrorDetail | None = None


class Denial(NamedTuple):
    """A call that may not run: the message for the model, and the facts for a developer."""

    envelope: Envelope
    problem: ErrorDetail | None = None


class Permission:
    """Asks for every call of one run whether it may run.

    Args:
        approver: Asked before every call; without one, only calls that need an approval wait.
        store: Where approvals wait for a decision.
        lifetime_s: How long they wait.
    """

    def __init__(
        self,
        approver: Approver | None = None,
        store: ApprovalStore | None = None,
        lifetime_s: float = APPROVAL_LIFETIME_S,
    ) -> None:
        self._approver = approver
        self._store = store
        self._lifetime = timedelta(seconds=lifetime_s)
        self.waiting: dict[str, Approval] = {}
        """Approvals that are not decided, by the id of their call."""
        self.new: dict[str, Approval] = {}
        """Those of them that are not stored yet."""
        self.was_looked_up = False
        """Whether any call of the run has or needs a stored approval."""

    @property
    def can_be_asked(self) -> bool:
        """Whether anybody can approve a call."""
        return self._approver is not None or self._store is not None

    async def ask(
        self,
        tool: Tool[..., Any],
        call: ToolCall,
        arguments: dict[str, Any],
        context: ToolContext,
        *,
        is_doubtful: bool = False,
    ) -> Permit | Denial:
        """Return whether a call may run; a call that is only likely always needs an approval."""
        if self._approver is not None:
            return await self._ask_approver(self._approver, tool, call, arguments, context)
        if tool.approval is None and not is_doubtful:
            return Permit(arguments)
        problem = None
        if not is_doubtful and callable(tool.approval):
            needed, problem = await _apply_rule(tool, arguments, context)
            if not needed:
                return Permit(arguments)
        if self._store is None:
            problem = problem or _report(tool.name, Code.APPROVER_MISSING, "nobody can approve it")
            return Denial(
                feedback.explain_approval_denied(tool.name, feedback.NOT_OBTAINED), problem
            )
        found = await self._look_up(self._store, tool, call, arguments, context)
        return found._replace(problem=found.problem or problem)

    async def use(self, permit: Permit) -> Envelope | None:
        """Use up the approval of a call that is about to run; return why it may not run."""
        if permit.approval is None or self._store is None:
            return None
        name = permit.approval.name
        try:
            await self._store.use(permit.approval.id, canonical_hash(permit.arguments))
        except ApprovalError as error:
            if error.code == Code.APPROVAL_USED:
                return feedback.explain_outcome_unknown(name)
            return feedback.explain_approval_unusable(name, error)
        return None

    async def _ask_approver(
        self,
        approver: Approver,
        tool: Tool[..., Any],
        call: ToolCall,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> Permit | Denial:
        request = ApprovalRequest(
            call=call,
            spec=tool.spec,
            arguments=msgspec.to_builtins(arguments),
            arguments_hash=canonical_hash(arguments),
            context=context,
        )
        asked = await run_code(
            lambda: approver(request),
            is_async=is_async(approver),
            what=f"the approver of {tool.name}",
        )
        decision, error = asked or (None, None)
        if error is not None and not isinstance(error, Exception | asyncio.CancelledError):
            raise error
        if not isinstance(decision, ApprovalDecision) or not isinstance(decision.approved, bool):
            said = "it raised" if error is not None else f"it returned {decision!r:.200}"
            return _deny_after_failure(tool.name, said, error)
        if not decision.approved:
            return Denial(feedback.explain_approval_denied(tool.name, str(decision.reason)))
        if decision.arguments is None:
            return Permit(arguments)
        try:
            edited: dict[str, Any] = msgspec.to_builtins(decision.arguments)
            canonical_hash(edited)
            is_fit = tool.checker.is_valid(edited)
        except Exception as error:
            return _deny_after_failure(tool.name, "its arguments cannot be checked", error)
        if not is_fit:
            return _deny_after_failure(tool.name, "its arguments do not fit the tool", None)
        return _permit_changed(arguments, edited, "the approver")

    async def _look_up(
        self,
        store: ApprovalStore,
        tool: Tool[..., Any],
        call: ToolCall,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> Permit | Denial:
        """Return what the stored approval of a call says; ask for one if there is none."""
        name, digest, definition = tool.name, canonical_hash(arguments), tool.definition
        self.was_looked_up = True
        approval_id, problem = make_approval_id(context), None
        approval = await _find(store, approval_id)
        is_same_tool = approval is not None and approval.name == name
        if approval is not None and is_same_tool and approval.definition != definition:
            # What was asked is void: the same arguments would do something else today.
            void, approval_id = approval, make_approval_id(context, definition)
            approval = await _find(store, approval_id)
            if approval is None:
                problem = _report(name, Code.APPROVAL_MISMATCH, f"{void.id} {_CHANGED_TOOL}")
                await _withdraw(store, void)
        if approval is None:
            approval = self._make_approval(approval_id, tool, digest, arguments, context)
            self.new[approval.id] = approval
        if (approval.subject, approval.name, approval.digest) != ("call", name, digest):
            return Denial(feedback.explain_approval_denied(name, feedback.OTHER_CALL_APPROVED))
        if approval.status == "pending":
            self.waiting[call.id] = approval
            return Denial(feedback.explain_approval_pending(name), problem)
        if approval.status == "used":
            return Denial(feedback.explain_outcome_unknown(name))
        if approval.status == "denied":
            return Denial(feedback.explain_approval_denied(name, approval.reason))
        if approval.status == "expired":
            return Denial(feedback.explain_approval_expired(name))
        if approval.approved_digest == digest:
            return Permit(arguments, approval)
        return _permit_edit(tool, approval, arguments)

    def _make_approval(
        self,
        approval_id: str,
        tool: Tool[..., Any],
        digest: str,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> Approval:
        now = datetime.now(UTC)
        return Approval(
            id=approval_id,
            subject="call",
            name=tool.name,
            digest=digest,
            definition=tool.definition,
            payload=msgspec.to_builtins(arguments),
            created_at=now,
            expires_at=now + self._lifetime,
            run_id=context.run_id,
            call_id=context.call_id,
        )


def make_approval_id(context: ToolContext, definition: str = "") -> str:
    """Return the id of the one approval that a call can have, or can have of a changed tool."""
    place = f"{context.run_id}/{context.turn}/{context.call_id}"
    place += f"/{definition}" if definition else ""
    return f"ap_{sha256(place.encode('utf-8', 'replace')).hexdigest()[:24]}"


async def _find(store: ApprovalStore, approval_id: str) -> Approval | None:
    try:
        return await store.get(approval_id)
    except ApprovalError as error:
        if error.code != Code.APPROVAL_NOT_FOUND:
            raise
    return None


async def _withdraw(store: ApprovalStore, void: Approval) -> None:
    """Decide an approval that still waits, so that nobody decides about what cannot run."""
    if void.status == "pending":
        with suppress(ApprovalError):  # somebody was quicker
            denial = Decision(approved=False, by="surecall", reason=f"It {_CHANGED_TOOL}")
            await store.decide(void.id, denial)


def _permit_edit(
    tool: Tool[..., Any], approval: Approval, arguments: dict[str, Any]
) -> Permit | Denial:
    """Permit what a person put in place of the arguments, if it still fits the tool."""
    edited: Any = msgspec.to_builtins(approval.approved_payload)
    is_same = canonical_hash(edited) == approval.approved_digest
    if not (is_same and isinstance(edited, dict) and tool.checker.is_valid(edited)):
        problem = _report(tool.name, Code.APPROVAL_MISMATCH, "the changed arguments do not fit it")
        return Denial(feedback.explain_approval_denied(tool.name, feedback.EDIT_UNFIT), problem)
    by = approval.decided_by or "a person"
    return _permit_changed(arguments, as_fields(edited), by, approval)


def _permit_changed(
    before: dict[str, Any], after: dict[str, Any], by: str, approval: Approval | None = None
) -> Permit:
    if canonical_hash(before) == canonical_hash(after):
        return Permit(after, approval)
    why = f"{by}{CHANGED}"
    receipt = Receipt(EDITED_BY_PERSON, "", before, after, lossless=False, why=why)
    return Permit(after, approval, (receipt,))


async def _apply_rule(
    tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext
) -> tuple[bool, ErrorDetail | None]:
    """Return whether a tool's own rule asks for an approval; one that fails does."""
    rule: Any = tool.approval
    start = bind_rule(rule, msgspec.to_builtins(arguments), context)
    what = f"the approval rule of {tool.name}"
    outcome = await run_code(start, is_async=is_async(rule), what=what)
    value, error = outcome or (None, None)
    if error is not None and not isinstance(error, Exception | asyncio.CancelledError):
        raise error
    if error is None and isinstance(value, bool):
        return value, None
    said = "its rule raised" if error is not None else f"its rule returned {value!r:.200}"
    return True, _report(tool.name, Code.APPROVAL_RULE_FAILED, said, error)


def _deny_after_failure(name: str, said: str, error: BaseException | None) -> Denial:
    problem = _report(name, Code.APPROVER_FAILED, said, error)
    return Denial(feedback.explain_approval_denied(name, feedback.NOT_OBTAINED), problem)


def _report(name: str, code: Code, said: str, error: BaseException | None = None) -> ErrorDetail:
    """Log what is wrong with the code that decides, and return it for the result."""
    _log.error("%s: a call of %s was not approved: %s", code, name, said, exc_info=error)
    cause = "" if error is None else f" {feedback.describe_error(error)}"
    return ErrorDetail(str(code), f"A call of {name} was not approved: {said}.{cause}".rstrip())
