"""The driver: performs what `turn.py` decides, and tells what happens."""

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec
from msgspec.structs import replace

from surecall.errors import (
    Code,
    ProviderError,
    ProviderStatusError,
    RunError,
    RunLimitError,
    SurecallError,
    ToolUseError,
)
from surecall.formats import ToolNames
from surecall.protocols import StreamDelta
from surecall.reading import ReplyReader, may_be_rescued, read_reply, rescue_reply
from surecall.records import (
    CallSummary,
    ErrorDetail,
    Event,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestStarted,
    Reading,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
)
from surecall.tools import Dispatcher, ToolContext, run_calls

from .history import complete_history
from .journal import RecordedFailure
from .plan import Plan
from .prompt_runner import PromptResult, PromptRunner
from .recorder import Recorder
from .result import RunResult
from .shown_text import ShownText
from .trace import FailedRequest, RequestSummary, ResponseSummary, Trace, TurnTrace
from .turn import (
    Accepted,
    AskModel,
    CallsFinished,
    Effect,
    Emit,
    Fail,
    Finish,
    Happened,
    Replied,
    RequestFailed,
    Reraise,
    RunCalls,
    RunState,
    begin,
    next_step,
)

__all__ = ["Listener", "ToolLoop", "combine_listeners"]

Listener = Callable[[Event], object]

_log = logging.getLogger("surecall.loop")

_TOOL_USE_CODES = frozenset({Code.NO_TOOL_CALLS, Code.TOOL_ERROR})
_PARSE_STATUS: dict[str, str] = {
    Code.ARGUMENTS_INVALID: "ok",
    Code.ARGUMENTS_TOO_LARGE: "too_large",
    Code.ARGUMENTS_TOO_DEEP: "too_deep",
    Code.ARGUMENTS_TRUNCATED: "cut",
}


class ToolLoop:
    """One run: asks the model, runs its calls, until there is an answer or a reason to stop."""

    def __init__(
        self,
        plan: Plan,
        runner: PromptRunner,
        dispatcher: Dispatcher,
        *,
        run_id: str,
        listener: Listener | None = None,
        recorder: Recorder | None = None,
        names: ToolNames | None = None,
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._dispatcher = dispatcher
        self._run_id = run_id
        self._listener = listener
        self._recorder = recorder or Recorder(None)
        self._names = names or ToolNames(plan.tools)
        self._effects = {tool.name: tool for tool in plan.tools}
        self._turns: list[TurnTrace] = []
        self._failures: list[FailedRequest] = []
        self._asked: PromptResult | None = None
        self._reading = Reading()
        self._started = 0.0
        self._turn_started_ms = 0.0
        self._state = RunState(history=plan.messages)

    async def run(self) -> RunResult:
        """Run to the end; raise when there is no answer."""
        self._started = perf_counter()
        deadline = asyncio.timeout(self._plan.options.deadline_s)
        try:
            self._run_id, resumed = self._recorder.open(self._run_id, self._plan.fingerprint)
            self._emit(
                RunStarted,
                model=self._plan.model,
                fingerprint=self._plan.fingerprint,
                tools=tuple(self._effects),
                resumed=resumed,
            )
            async with deadline:
                return await self._drive()
        except TimeoutError as error:
            if not deadline.expired():
                raise
            seconds = self._plan.options.deadline_s
            limit = Fail(
                Code.DEADLINE_EXCEEDED,
                f"the run did not finish within {seconds} seconds.",
                "Raise deadline_s, or look in the trace for what took the time.",
                {"deadline_s": seconds},
            )
            self._end(limit.code)
            raise self._error(limit) from error
        except SurecallError as error:
            if isinstance(error, ProviderError):
                error.trace = self._trace(ErrorDetail(error.code, error.message, error.hint))
                error.history = complete_history(self._state.history)
            self._end(error.code)
            raise
        except asyncio.CancelledError:
            self._end(Code.RUN_CANCELLED)
            raise
        except Exception:
            self._end(Code.INTERNAL_ERROR)
            raise
        finally:
            self._recorder.close()

    async def _drive(self) -> RunResult:
        step = begin(self._plan)
        while True:
            self._state = step.state
            happened: Happened | None = None
            for effect in step.effects:
                if isinstance(effect, Finish):
                    return self._finish(effect.text)
                happened = await self._perform(effect) or happened
            assert happened is not None
            step = next_step(self._state, happened, self._plan)
            if step.accepted is not None:
                self._note_reply(step.accepted)

    async def _perform(self, effect: Effect) -> Happened | None:
        if isinstance(effect, AskModel):
            return await self._ask()
        if isinstance(effect, RunCalls):
            return await self._run_calls(effect)
        if isinstance(effect, Emit):
            self._emit_event(effect.event)
            return None
        if isinstance(effect, Reraise):
            raise effect.error
        assert isinstance(effect, Fail)
        raise self._error(effect)

    # asking the model

    async def _ask(self) -> Happened:
        state, plan = self._state, self._plan
        if not self._failures:
            self._turn_started_ms = self._now_ms()
        request = plan.request(
            state.history,
            tools_enabled=state.tools_enabled,
            stream=plan.options.stream,
            calls_seen=state.calls_seen,
        )
        self._emit(
            ModelRequestStarted,
            tool_use_mode=plan.options.tool_use_mode,
            tool_failure_policy=plan.options.tool_failure_policy,
            tools_enabled=state.tools_enabled,
            messages_count=len(request.messages),
            tools_count=len(request.tools),
            tool_choice=request.tool_choice,
            request_attempts_left=state.retries_left,
        )
        started = perf_counter()
        recorded = self._recorder.next_answer(state.turn)
        shown = self._open_shown_text()
        try:
            if recorded is None:
                on_delta = shown.feed if shown is not None else self._tell_delta
                asked = await self._runner.ask(
                    request, on_delta=None if self._listener is None else on_delta
                )
                self._recorder.record_reply(state.turn, asked.raw)
            elif isinstance(recorded, RecordedFailure):
                raise ProviderStatusError(recorded.code, recorded.message, status=recorded.status)
            else:
                asked = self._runner.read_raw(recorded)
        except Exception as error:
            elapsed_ms = (perf_counter() - started) * 1000
            rescued = self._rescue(error, elapsed_ms)
            if rescued is None:
                failed = self._note_failure(error, elapsed_ms)
                if recorded is None:
                    self._record_failure(failed.error)
                return failed
            asked = rescued
            self._recorder.record_reply(state.turn, asked.raw)
        self._asked = asked
        self._reading = self._read(asked)
        if shown is not None:
            shown.close(self._reading.content)
        return Replied(self._reading, asked.reply.usage, asked.reply.extra)

    def _read(self, asked: PromptResult) -> Reading:
        return read_reply(
            asked.reply,
            used_ids=self._state.used_ids,
            tools=self._names,
            text_formats=self._plan.text_formats,
            limits=self._plan.reading_limits,
        )

    def _rescue(self, error: Exception, elapsed_ms: float) -> PromptResult | None:
        """Return the reply that a provider sent inside an error, if it can be trusted."""
        if not (self._plan.text_formats and self._state.tools_enabled):
            return None
        if not isinstance(error, ProviderStatusError):
            return None
        raw = rescue_reply(error.status, error.body)
        if raw is None:
            return None
        asked = self._runner.read_raw(raw)
        if not may_be_rescued(self._read(asked), self._names):
            return None
        return replace(
            asked, elapsed_ms=elapsed_ms, request_id=error.request_id, attempts=error.attempts
        )

    def _note_failure(self, error: Exception, elapsed_ms: float) -> RequestFailed:
        state = self._state
        known = isinstance(error, SurecallError)
        code = error.code if known else Code.INTERNAL_ERROR
        message = error.message if known else f"{type(error).__name__}: {error}"
        status = error.status if isinstance(error, ProviderError) else None
        self._emit(
            ModelRequestFailed,
            tools_enabled=state.tools_enabled,
            code=code,
            status=status,
            error_class=type(error).__name__,
            message=message,
            elapsed_ms=elapsed_ms,
        )
        failure = FailedRequest(str(code), message, status, elapsed_ms, state.tools_enabled)
        self._failures.append(failure)
        if not isinstance(error, ProviderError):
            raise error
        return RequestFailed(error)

    def _record_failure(self, error: ProviderError) -> None:
        """Record a refusal that is answered by asking without tools; others end the run."""
        state = self._state
        if isinstance(error, ProviderStatusError) and state.retries_left > 0:
            self._recorder.record_failure(state.turn, error.code, error.message, error.status)

    def _note_reply(self, accepted: Accepted) -> None:
        """Add the turn to the trace and tell that the request ended."""
        assert self._asked is not None
        asked, reading, options = self._asked, self._reading, self._plan.options
        state = self._state
        turn = TurnTrace(
            turn=state.turn,
            started_ms=self._turn_started_ms,
            request=self._request_summary(),
            response_summary=ResponseSummary(
                has_tool_calls=bool(accepted.calls),
                tool_calls_count=len(accepted.calls),
                ignored_tool_calls_count=len(accepted.ignored),
                usage=asked.reply.usage,
                finish_reason=asked.reply.finish_reason,
                assistant_content_stripped=accepted.content_sample is not None,
                assistant_content_sample=accepted.content_sample,
            ),
            elapsed_ms=asked.elapsed_ms,
            request_id=asked.request_id,
            attempts=asked.attempts,
            answered_by=asked.reply.model,
            failures=tuple(self._failures),
            raw=asked.raw,
            calls=accepted.calls,
            ignored_calls=accepted.ignored,
            receipts=asked.receipts + reading.receipts,
            defects=reading.defects,
        )
        self._failures.clear()
        self._turns.append(turn)
        if self._listener is None:
            return
        self._emit(
            ModelRequestEnded,
            tool_use_mode=options.tool_use_mode,
            tool_failure_policy=options.tool_failure_policy,
            tools_enabled=state.tools_enabled,
            elapsed_ms=asked.elapsed_ms,
            finish_reason=asked.reply.finish_reason,
            assistant_content_bytes=len(reading.content.encode("utf-8", "replace")),
            usage=asked.reply.usage,
            tool_calls_count=len(accepted.calls),
            ignored_tool_calls_count=len(accepted.ignored),
            tool_calls=tuple(
                CallSummary(call.id, call.name, call.arguments_bytes) for call in accepted.calls
            ),
            request_id=asked.request_id,
            receipts_count=len(turn.all_receipts),
            defect_codes=tuple(defect.code for defect in reading.defects),
            receipts=turn.receipts,
        )

    # running calls

    async def _run_calls(self, effect: RunCalls) -> CallsFinished:
        async def execute(call: ToolCall) -> ToolResult:
            return await self._execute(call, effect.warnings.get(call.id))

        results = await run_calls(
            effect.calls,
            effect_of=self._dispatcher.effect_of,
            execute=execute,
            max_concurrency=self._plan.options.max_concurrent_calls,
        )
        self._turns[-1] = replace(self._turns[-1], results=results)
        return CallsFinished(results)

    async def _execute(self, call: ToolCall, warning: str | None) -> ToolResult:
        turn = self._state.turn
        self._emit(
            ToolCallStarted,
            tool_call_id=call.id,
            name=call.name,
            arguments_bytes=call.arguments_bytes,
            parse_status=_parse_status(call),
            call=call,
        )
        result = self._recorder.result(turn, call.id)
        if result is None:
            result = await self._dispatch(call, warning)
        self._emit(
            ToolCallEnded,
            tool_call_id=call.id,
            name=result.name,
            ok=result.ok,
            elapsed_ms=result.elapsed_ms,
            output_bytes=len(result.text.encode("utf-8", "replace")),
            output_replaced=result.replaced,
            error_codes=result.envelope.error_codes,
            executed=result.executed,
            errors=result.envelope.errors,
        )
        return result

    async def _dispatch(self, call: ToolCall, warning: str | None) -> ToolResult:
        turn = self._state.turn
        context = ToolContext(self._run_id, turn, call.id)
        effect = self._dispatcher.effect_of(call)
        if effect is None:
            result = await self._dispatcher.dispatch(call, context)
            await self._recorder.record_result(turn, result, "read")
            return result
        if self._recorder.was_intended(turn, call.id) and not self._dispatcher.may_repeat(call):
            result = self._dispatcher.refuse(
                call,
                Code.OUTCOME_UNKNOWN,
                "The run was interrupted while this call was running; it may or may not have "
                "taken effect.",
                hint="Check the state before you repeat it.",
            )
        else:

            async def record_intent() -> None:
                await self._recorder.record_intent(turn, call, effect, context.idempotency_key)

            result = await self._dispatcher.dispatch(
                call,
                context,
                warnings=() if warning is None else (warning,),
                before_run=record_intent,
            )
        await self._recorder.record_result(turn, result, effect)
        return result

    # ending

    def _finish(self, text: str) -> RunResult:
        asked = self._asked
        assert asked is not None
        self._end("")
        return RunResult(
            text=text,
            history=self._state.history,
            trace=self._trace(None),
            usage=self._state.usage,
            finish_reason=asked.reply.finish_reason,
            elapsed_ms=self._now_ms(),
        )

    def _error(self, fail: Fail) -> RunError:
        kind: type[RunError] = ToolUseError if fail.code in _TOOL_USE_CODES else RunLimitError
        return kind(
            fail.code,
            fail.message,
            hint=fail.hint,
            trace=self._trace(ErrorDetail(str(fail.code), fail.message, fail.hint)),
            history=complete_history(self._state.history),
            details=fail.details,
        )

    def _end(self, code: str) -> None:
        self._emit(
            RunEnded,
            ok=not code,
            code=str(code),
            turns=len(self._turns),
            calls=self._state.calls_run,
            usage=self._state.usage,
            elapsed_ms=self._now_ms(),
        )

    def _trace(self, error: ErrorDetail | None) -> Trace:
        plan = self._plan
        turns = self._turns
        if self._failures:
            lost = TurnTrace(
                turn=self._state.turn,
                started_ms=self._turn_started_ms,
                request=self._request_summary(),
                failures=tuple(self._failures),
            )
            turns = [*turns, lost]
        return Trace(
            run_id=self._run_id,
            fingerprint=plan.fingerprint,
            model=plan.model,
            system=plan.system,
            messages=plan.messages,
            tools=plan.tools,
            options=plan.options,
            origins=plan.origins,
            capabilities=msgspec.structs.asdict(plan.capabilities),
            capability_origins=plan.capability_origins,
            ignored_overrides=plan.ignored_overrides,
            turns=tuple(turns),
            error=error,
        )

    def _request_summary(self) -> RequestSummary:
        plan, state = self._plan, self._state
        options = plan.options
        return RequestSummary(
            model=plan.model,
            messages_count=len(state.history) + (1 if plan.system else 0),
            tools_count=len(plan.tools) if state.tools_enabled else 0,
            tool_use_mode=options.tool_use_mode,
            tool_failure_policy=options.tool_failure_policy,
            message_transforms=options.message_transforms,
            tool_transforms=options.tool_transforms,
            response_transforms=options.response_transforms,
            tool_call_transforms=options.tool_call_transforms,
            tool_result_transforms=options.tool_result_transforms,
        )

    # telling

    def _open_shown_text(self) -> ShownText | None:
        """Return what holds the text of calls back; `None` when it is not looked for."""
        if self._listener is None or not (self._plan.options.stream and self._plan.text_formats):
            return None
        return ShownText(ReplyReader(self._names), self._emit)

    def _tell_delta(self, delta: StreamDelta) -> None:
        kind = TextDelta if delta.kind == "text" else ReasoningDelta
        self._emit(kind, text=delta.text)

    def _emit(self, kind: type[Event], **fields: Any) -> None:
        if self._listener is not None:
            event = kind(run_id=self._run_id, turn=self._state.turn, at_ms=self._now_ms(), **fields)
            self._tell(event)

    def _emit_event(self, event: Event) -> None:
        if self._listener is not None:
            self._tell(
                replace(event, run_id=self._run_id, turn=self._state.turn, at_ms=self._now_ms())
            )

    def _tell(self, event: Event) -> None:
        assert self._listener is not None
        try:
            self._listener(event)
        except Exception:
            _log.debug("a listener failed on %s", type(event).__name__, exc_info=True)

    def _now_ms(self) -> float:
        return (perf_counter() - self._started) * 1000


def combine_listeners(first: Listener | None, second: Listener | None) -> Listener | None:
    """Return a listener that tells both; the second is told even if the first fails."""
    if first is None or second is None:
        return first or second

    def tell(event: Event) -> None:
        try:
            first(event)
        finally:
            second(event)

    return tell


def _parse_status(call: ToolCall) -> str:
    if not call.errors:
        return "ok"
    return _PARSE_STATUS.get(call.errors[0].code, "invalid_json")
