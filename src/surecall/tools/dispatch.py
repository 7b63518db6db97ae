"""One call becomes one result: checked, approved, run, and answered in a form a model can use.

`Dispatcher.dispatch` raises nothing of its own but cancellation and exits of the process: whatever
else goes wrong is an envelope with a code. A tool's exception goes to the logger `surecall.tools`
at debug.

Between the check and the run, `permission.py` says whether the call has run before, and
asks whether it may run.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_ARGUMENTS_BYTES
from surecall.base.records import Effect, Envelope, ToolCall, ToolResult, ToolSpec, clip
from surecall.base.redaction import open_log
from surecall.text import encode

from . import feedback
from .define import Tool, ToolContext
from .outputs import OutputLimits, check_output, plain_data, render_envelope
from .permission import Approver, Denial, OnceLedger, Permission, Permit, make_once_key
from .running import run_tool
from .tool_registry import MaskedRegistry, ToolRegistry

ResultTransforms = Callable[[dict[str, Any], str, str], dict[str, Any]]
"""Takes the full form of an envelope, the tool's name and the call's id; returns the form that
is shown to the model."""

BeforeRun = Callable[[ToolCall, ToolContext], Awaitable[None]]
"""Takes a call with the arguments that it is about to run with."""

LikelyPolicy = Literal["by_effect", "run", "approve", "never"]
"""The treatment of a call that is only likely; `never` concerns those in text, which reading leaves
there, and is otherwise the same as `by_effect`."""

_log = open_log("surecall.tools")
_warned: Final[set[str]] = set()
"""Tools without a declared effect that a warning was logged about."""
_SPACES: Final = " \t\r\n"
_MAX_NAME_CHARS: Final = 64
_DEFAULT_LIMITS: Final = OutputLimits()


class _Answer(NamedTuple):
    envelope: Envelope
    text: str
    replaced: bool = False


class Dispatcher:
    """Runs calls against one view of a registry, which is also the view the model was sent."""

    def __init__(
        self,
        registry: ToolRegistry | MaskedRegistry,
        *,
        approver: Approver | None = None,
        permission: Permission | None = None,
        once: OnceLedger | None = None,
        limits: OutputLimits = _DEFAULT_LIMITS,
        default_timeout_s: float | None = None,
        result_transforms: ResultTransforms | None = None,
        max_arguments_bytes: int = MAX_ARGUMENTS_BYTES,
        likely_calls: LikelyPolicy = "by_effect",
    ) -> None:
        # A plain registry holds hidden tools too; only a masked one may be executed from.
        self._view = registry if isinstance(registry, MaskedRegistry) else MaskedRegistry(registry)
        self.permission = permission or Permission(approver)
        self.once = once or OnceLedger()
        self._limits = limits
        self._default_timeout_s = default_timeout_s
        self._transforms = result_transforms
        self._max_arguments_bytes = max_arguments_bytes
        self._likely_calls: LikelyPolicy = likely_calls

    def resolve(self, name: str) -> Tool[..., Any] | None:
        """Return the visible tool that a called name means, or `None`.

        Space around the name is dropped, and dots may stand for underscores; nothing else is
        forgiven, so that no look-alike ever becomes a tool.
        """
        name = name.strip(_SPACES)
        found = self._view.find(name)
        if found is None and "." in name:
            found = self._view.find(name.replace(".", "_"))
        return found

    def effect_of(self, call: ToolCall) -> Effect | None:
        """Return the effect a call may have, or `None` when it will be refused unseen."""
        if call.errors or call.state != "whole" or call.arguments is None:
            return None
        tool = self.resolve(call.name)
        if tool is None or self._is_too_doubtful(call, tool.spec):
            return None
        if tool.once is not False and tool.spec.effect == "read":
            return "write"  # so that it runs alone, and its intent is recorded first
        return tool.spec.effect

    def may_repeat(self, call: ToolCall) -> bool:
        """Tell whether running a call again does no more than running it once."""
        tool = self.resolve(call.name)
        if tool is None or tool.once is not False:
            return False
        return tool.spec.effect == "read" or tool.spec.idempotent

    def recall(self, call: ToolCall, result: ToolResult, context: ToolContext) -> None:
        """Take note of a result that is on record, so that no equal call runs again."""
        tool = self.resolve(call.name)
        arguments = call.arguments if result.arguments is None else result.arguments
        if tool is None or tool.once is False or arguments is None:
            return
        try:
            key = make_once_key(tool, arguments, context)
        except Exception as error:  # then no equal call has a key either, and none runs
            _log.debug("a call of %s has no key", tool.name, exc_info=error)
            return
        self.once.recall(key, result)

    async def dispatch(
        self,
        call: ToolCall,
        context: ToolContext,
        *,
        warnings: tuple[str, ...] = (),
        before_run: BeforeRun | None = None,
    ) -> ToolResult:
        """Check the call, have it approved, run it, and return its one result.

        Args:
            call: The call as it was read.
            context: Facts about the call that the tool may use.
            warnings: Shown to the model in addition to those of the tool.
            before_run: Awaited with the call as it runs when nothing is left between it and the
                tool; what it raises is raised here, and the tool does not run.
        """
        started = time.perf_counter()
        tool = self.resolve(call.name)
        if tool is None:
            refusal = self._refuse_unread(call)
            refusal = refusal or feedback.explain_not_allowed(call.name, self._view.names)
            refusal = _with_warnings(refusal, warnings)
            return self._refuse(call, _clip_name(call.name), refusal, started)
        checked = self._check(call, tool)
        if isinstance(checked, Envelope):
            return self._refuse(call, tool.name, _with_warnings(checked, warnings), started)
        if call.name != tool.name:
            warnings = (feedback.warn_of_name(tool.name), *warnings)
        if tool.once is not False:
            repeated = self._find_repetition(tool, checked, context)
            if repeated is not None:
                return self._refuse(call, tool.name, _with_warnings(repeated, warnings), started)
        permit = await self._ask(call, tool, checked, context)
        if isinstance(permit, Denial):
            result = self._refuse(
                call, tool.name, _with_warnings(permit.envelope, warnings), started
            )
            return result if permit.problem is None else _add(result, problem=permit.problem)
        return await self._run(call, tool, permit, context, warnings, before_run, started)

    async def _run(
        self,
        call: ToolCall,
        tool: Tool[..., Any],
        permit: Permit,
        context: ToolContext,
        warnings: tuple[str, ...],
        before_run: BeforeRun | None,
        started: float,
    ) -> ToolResult:
        """Run a call that may run."""
        if permit.receipts:
            warnings = (feedback.warn_of_edit(), *warnings)
            context = msgspec.structs.replace(context, receipts=context.receipts + permit.receipts)
        if tool.once is not False:
            # A person may have changed the arguments to those of a call that has run.
            repeated = self._find_repetition(tool, permit.arguments, context)
            if repeated is not None:
                return self._refuse(call, tool.name, _with_warnings(repeated, warnings), started)
            key = make_once_key(tool, permit.arguments, context)
            context = msgspec.structs.replace(context, once_key=key)
        edited = msgspec.to_builtins(permit.arguments) if permit.receipts else None
        if before_run is not None:
            ran_as = call
            if edited is not None:
                ran_as = call.edited(edited, permit.receipts)
            await before_run(ran_as, context)
        if permit.approval is not None:
            refusal = await self.permission.use(permit)
            if refusal is not None:
                return self._refuse(call, tool.name, _with_warnings(refusal, warnings), started)
        if context.once_key:
            self.once.begin(context.once_key)
        timeout_s = tool.spec.timeout_s
        if timeout_s is None:
            timeout_s = self._default_timeout_s
        ran = await run_tool(tool, permit.arguments, context, timeout_s)
        answer = self._answer(_with_warnings(ran.envelope, warnings), tool.spec, call.id)
        result = _make_result(call, tool.name, answer, started, executed=ran.executed)
        if permit.receipts or permit.problem is not None or ran.traceback:
            result = _add(
                result,
                arguments=edited,
                receipts=permit.receipts,
                problem=permit.problem,
                traceback=ran.traceback,
            )
        if context.once_key:
            self.once.end(context.once_key, result)
        return result

    def refuse(
        self,
        call: ToolCall,
        code: str,
        message: str,
        hint: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Return the result of a call that is not run, for a reason the caller gives."""
        tool = self.resolve(call.name)
        name = _clip_name(call.name) if tool is None else tool.name
        envelope = Envelope.failure(name, code, message, hint=hint, data=data)
        return self._refuse(call, name, envelope, time.perf_counter())

    def refuse_unknown(self, call: ToolCall) -> ToolResult:
        """Return the result of a call that was started and whose end nobody saw."""
        refused = feedback.explain_outcome_unknown("")
        error = refused.errors[0]
        return self.refuse(call, error.code, error.message, error.hint)

    def repeat_result(
        self, call: ToolCall, first: ToolResult, warnings: tuple[str, ...] = ()
    ) -> ToolResult:
        """Return the result of an equal call of before, without running the tool again."""
        envelope = _with_warnings(first.envelope, warnings)
        answer = _Answer(envelope, self._render_own(envelope, call.id))
        return _make_result(call, first.name, answer, time.perf_counter())

    def _check(self, call: ToolCall, tool: Tool[..., Any]) -> dict[str, Any] | Envelope:
        """Return a copy of the arguments of a call that is whole and fits, or a refusal."""
        try:
            refusal = self._refuse_unread(call)
            if refusal is not None:
                return refusal
            if self._is_too_doubtful(call, tool.spec):
                return self._refuse_doubtful(call, tool)
            # A copy, so that neither a tool nor an approver can change what is on record.
            arguments: dict[str, Any] = msgspec.to_builtins(call.arguments)
            checker = tool.checker
            if not checker.is_valid(arguments):
                return feedback.explain_arguments_invalid(tool.name, checker.check(arguments))
            return arguments
        except Exception as error:
            return _explain_unchecked(tool.name, error)

    async def _ask(
        self, call: ToolCall, tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext
    ) -> Permit | Denial:
        """Ask whether a checked call may run."""
        is_doubtful = call.certainty != "certain" and self._likely_calls == "approve"
        try:
            return await self.permission.ask(
                tool, call, arguments, context, is_doubtful=is_doubtful
            )
        except JSONTextError as error:  # without a hash there is nothing to bind a decision to
            return Denial(_explain_unchecked(tool.name, error))

    def _find_repetition(
        self, tool: Tool[..., Any], arguments: dict[str, Any], context: ToolContext
    ) -> Envelope | None:
        """Return the answer to a call that has run before and may not run again."""
        try:
            key = make_once_key(tool, arguments, context)
        except Exception as error:
            return _explain_unchecked(tool.name, error)
        if key not in self.once.results:
            return None
        first = self.once.results[key]
        if first is None:
            return feedback.explain_once_unknown(tool.name)
        return _with_warnings(first.envelope, (feedback.warn_of_repetition(tool.name),))

    def _is_too_doubtful(self, call: ToolCall, spec: ToolSpec) -> bool:
        """Tell whether a call is only likely, and the policy does not let it run."""
        if call.certainty == "certain" or self._likely_calls == "run":
            return False
        if self._likely_calls == "approve":
            return not self.permission.can_be_asked
        return spec.effect != "read"

    def _refuse_doubtful(self, call: ToolCall, tool: Tool[..., Any]) -> Envelope:
        if self._likely_calls == "approve":
            return feedback.explain_approval_denied(tool.name, feedback.NO_APPROVER)
        if not tool.declares_effect and tool.name not in _warned:
            _warned.add(tool.name)
            _log.warning(feedback.NO_EFFECT_DECLARED, tool.name)
        return feedback.explain_not_certain(tool.name, call)

    def _refuse_unread(self, call: ToolCall) -> Envelope | None:
        return feedback.explain_arguments_unread(
            call, _clip_name(call.name), self._max_arguments_bytes
        )

    def _refuse(self, call: ToolCall, name: str, envelope: Envelope, started: float) -> ToolResult:
        envelope = msgspec.structs.replace(envelope, tool_name=name)
        answer = _Answer(envelope, self._render_own(envelope, call.id))
        return _make_result(call, name, answer, started)

    def _answer(self, envelope: Envelope, spec: ToolSpec, call_id: str) -> _Answer:
        try:
            shown = self._transform(envelope, call_id)
        except Exception as error:
            _log.debug("a result transform failed on %s", spec.name, exc_info=error)
            failure = feedback.explain_exception(spec.name, Code.INTERNAL_ERROR, error)
            return _Answer(failure, self._render_own(failure, call_id), replaced=True)
        limits = self._limits
        try:
            rejection = check_output(shown, limits)
            data = b"" if rejection is not None else _encode(shown)
        except Exception as error:
            replacement = feedback.explain_not_serializable(spec, error)
        else:
            if rejection is not None:
                replacement = feedback.explain_too_structured(spec, rejection, limits.max_bytes)
            elif len(data) > limits.max_bytes:
                replacement = feedback.explain_too_large(spec, len(data), limits.max_bytes)
            else:
                return _Answer(envelope, data.decode("utf-8"))
        return _Answer(replacement, self._render_own(replacement, call_id), replaced=True)

    def _transform(self, envelope: Envelope, call_id: str) -> dict[str, Any]:
        shown = render_envelope(envelope)
        if self._transforms is None:
            return shown
        return self._transforms(shown, envelope.tool_name, call_id)

    def _render_own(self, envelope: Envelope, call_id: str) -> str:
        """Return the text of an envelope written here; no limit applies to it."""
        try:
            return encode(self._transform(envelope, call_id)).decode("utf-8")
        except Exception as error:  # a refusal must reach the model in any case
            _log.debug("a refusal was shown without its data", exc_info=error)
            bare = msgspec.structs.replace(envelope, data={}, warnings=())
            return encode(render_envelope(bare)).decode("utf-8")


def _make_result(
    call: ToolCall, name: str, answer: _Answer, started: float, *, executed: bool = False
) -> ToolResult:
    return ToolResult(
        call_id=call.id,
        name=name,
        envelope=answer.envelope,
        text=answer.text,
        elapsed_ms=(time.perf_counter() - started) * 1000,
        executed=executed,
        replaced=answer.replaced,
    )


def _add(result: ToolResult, **fields: Any) -> ToolResult:
    return msgspec.structs.replace(result, **fields)


def _explain_unchecked(name: str, error: Exception) -> Envelope:
    _log.debug("a call of %s could not be checked", name, exc_info=error)
    return feedback.explain_exception(name, Code.INTERNAL_ERROR, error)


def _encode(shown: dict[str, Any]) -> bytes:
    try:
        return encode(shown)
    except JSONTextError as error:
        if error.code != Code.NOT_SERIALIZABLE:
            raise
        try:
            plain = plain_data(shown)
        except Exception:  # the first error says more
            raise error from None
    return encode(plain)


def _with_warnings(envelope: Envelope, warnings: tuple[str, ...]) -> Envelope:
    if not warnings:
        return envelope
    return msgspec.structs.replace(envelope, warnings=(*envelope.warnings, *warnings))


def _clip_name(name: str) -> str:
    return clip(name.strip(_SPACES), _MAX_NAME_CHARS)
