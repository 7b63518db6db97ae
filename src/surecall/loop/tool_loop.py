"""The driver: performs what `turn.py` decides, and reports what happens."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any

from msgspec.structs import asdict, replace

from surecall.base.background import read_in_thread
from surecall.base.errors import (
    Code,
    OutputError,
    ProviderError,
    ProviderStatusError,
    RequestError,
    RunError,
    RunLimitError,
    SurecallError,
    ToolUseError,
)
from surecall.base.records import (
    ApprovalRequested,
    ErrorDetail,
    ModelRequest,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestStarted,
    Reading,
    ReasoningDelta,
    RunEnded,
    RunStarted,
    TextDelta,
    ToolResult,
)
from surecall.base.redaction import open_log, redact
from surecall.calls import ToolNames
from surecall.exchange.prompting import taught_way
from surecall.reading import ReplyReader, may_be_rescued, rescue_reply
from surecall.tools import ApprovalStore, Dispatcher, Guard, RunProgress, find_closed
from surecall.wire import StreamDelta

from .asking import build_request, read_answer
from .call_runner import CallRunner, FitGate, Recorder
from .events import EventEmitter, Listener, StreamedText
from .journal import RecordedFailure, RecordedResult
from .output import AnyForm, ReadOutput, read_output
from .output_steps import current_mode
from .paused import PausedState, StoreJournal, pack_run
from .plan import Plan, complete_history
from .prompt_runner import PromptResult, PromptRunner
from .result import OutputResult, PausedResult, RunResult
from .steps import (
    Accepted,
    AskModel,
    CallsFinished,
    Effect,
    Emit,
    Fail,
    Finish,
    FitCheck,
    Happened,
    Replied,
    RequestFailed,
    Reraise,
    RunCalls,
    RunState,
    Step,
)
from .trace import FailedRequest, Trace, TraceBuilder
from .turn import answer_calls, begin, next_step
from .wording import RESUME_LATER

_log = open_log("surecall.loop")
_TOOL_USE_CODES = frozenset({Code.NO_TOOL_CALLS, Code.REQUIRED_TOOL_MISSING, Code.TOOL_ERROR})


_DEADLINE: ContextVar[asyncio.Timeout | None] = ContextVar("surecall_deadline", default=None)


@contextmanager
def pause_deadline() -> Generator[None]:
    """Stop the clock of the run under way, while a transport waits for reasons of its own."""
    deadline = _DEADLINE.get()
    when = None if deadline is None else deadline.when()
    if deadline is None or when is None:
        yield
        return
    clock = asyncio.get_running_loop().time
    began = clock()
    deadline.reschedule(None)
    yield
    deadline.reschedule(when + clock() - began)


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
        approvals: ApprovalStore | None = None,
        paused: StoreJournal | None = None,
        guards: Mapping[str, Guard] = MappingProxyType({}),
        form: AnyForm | None = None,
    ) -> None:
        self._form = form
        self._output: ReadOutput | None = None
        self._plan = plan
        self._runner = runner
        self._recorder = recorder or Recorder(None)
        self._names = names or ToolNames(plan.tools)
        self._emitter = EventEmitter(listener, run_id)
        self._trace_builder = TraceBuilder(plan, paused.state.trace.turns if paused else ())
        self._approvals = approvals
        self._paused = paused
        self._calls = CallRunner(
            dispatcher, self._recorder, self._emitter, plan.max_concurrent_calls
        )
        self._guards = guards
        self._gate = None
        if plan.asks_fit:
            self._gate = FitGate(plan, runner.transport, runner.protocol, dispatcher, self._emitter)
        self._results: tuple[ToolResult, ...] = ()
        self._asked: PromptResult | None = None
        self._reading = Reading()
        self._state = RunState(history=plan.messages)

    async def run(self, until: float | None = None) -> RunResult:
        """Run to the end, or `until` the event loop's clock says so; raise without an answer."""
        plan, emitter = self._plan, self._emitter
        seconds = plan.options.deadline_s
        deadline = None
        if seconds is not None:
            deadline = asyncio.timeout(seconds) if until is None else asyncio.timeout_at(until)
        _DEADLINE.set(deadline)
        try:
            emitter.run_id, resumed = self._recorder.open(emitter.run_id, plan.fingerprint)
            emitter.emit(
                RunStarted,
                model=plan.model,
                fingerprint=plan.fingerprint,
                tools=tuple(tool.name for tool in plan.tools),
                resumed=resumed,
            )
            async with deadline or nullcontext():
                return await self._drive(
                    begin(plan) if self._paused is None else self._paused.state.step
                )
        except TimeoutError as error:
            if deadline is None or not deadline.expired():
                raise
            limit = Fail(
                Code.DEADLINE_EXCEEDED,
                f"the run did not finish within {seconds} seconds.",
                "Raise deadline_s, or look in the trace for what took the time.",
                {"deadline_s": seconds},
            )
            self._end(limit.code)
            raise self._error(limit) from error
        except SurecallError as error:
            if isinstance(error, ProviderError | RequestError):
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

    async def _drive(self, step: Step) -> RunResult:
        while True:
            self._state = step.state
            self._emitter.turn = step.state.turn
            happened: Happened | None = None
            for effect in step.effects:
                if isinstance(effect, Finish):
                    await self._forget_pause()
                    return self._finish(effect.text)
                happened = await self._perform(effect) or happened
                if isinstance(effect, RunCalls) and self._calls.permission.waiting:
                    assert isinstance(happened, CallsFinished)
                    return await self._pause(effect, happened)
            assert happened is not None
            step = next_step(self._state, happened, self._plan)
            if step.accepted is not None:
                self._note_reply(step.accepted)

    async def _perform(self, effect: Effect) -> Happened | None:
        if isinstance(effect, AskModel):
            return await self._ask()
        if isinstance(effect, RunCalls):
            checks: tuple[FitCheck, ...] = ()
            if self._gate is not None:
                effect, checks = await self._gate.check(effect)
            fits = effect.not_ready.keys().isdisjoint(call.name for call in effect.calls)
            if effect.asks_for_all and fits:
                self._trace_builder.add_results((), checks)
                return CallsFinished((), checks)
            results = await self._calls.run(self._state.turn, effect)
            self._trace_builder.add_results(results, checks)
            self._results += results
            return CallsFinished(results, checks)
        if isinstance(effect, Emit):
            self._emitter.emit_event(effect.event)
            return None
        if isinstance(effect, Reraise):
            raise effect.error
        assert isinstance(effect, Fail)
        raise self._error(effect)

    # asking the model

    async def _ask(self) -> Happened:
        if self._guards:
            self._close_tools()
        state, plan = self._state, self._plan
        self._trace_builder.begin_request(self._emitter.now_ms())
        request = build_request(plan, state, stream=plan.options.stream)
        if self._emitter.has_listener:
            self._announce(request)
        started = perf_counter()
        recorded = self._recorder.next_answer(state.turn)
        shown = self._open_streamed_text() if request.stream else None
        was_shown = request.stream and taught_way(state.mode) != "object"
        try:
            if recorded is None:
                on_delta = self._choose_listener(shown) if self._emitter.has_listener else None
                asked = await self._runner.ask(request, on_delta=on_delta)
                self._recorder.record_reply(state.turn, asked.raw)
            elif isinstance(recorded, RecordedFailure):
                raise ProviderStatusError(recorded.code, recorded.message, status=recorded.status)
            else:
                asked = await self._runner.read_raw_in_thread(recorded)
        except Exception as error:
            elapsed_ms = (perf_counter() - started) * 1000
            rescued = await self._rescue(error, elapsed_ms)
            if rescued is None:
                failed = self._note_failure(error, elapsed_ms)
                if recorded is None:
                    self._record_failure(failed.error)
                return failed
            asked = rescued
            self._recorder.record_reply(state.turn, asked.raw)
        self._asked = asked
        self._reading = await self._read(asked)
        if state.output is not None:
            read = self._output = await self._read_output(asked)
            return Replied(self._reading, asked.reply.usage, output=read.reading)
        if shown is not None:
            await shown.close(self._reading.content)
        elif plan.options.stream and self._reading.content and not was_shown:
            self._emitter.emit(TextDelta, text=self._reading.content)
        return Replied(self._reading, asked.reply.usage, asked.reply.extra)

    def _announce(self, request: ModelRequest) -> None:
        options = self._plan.options
        self._emitter.emit(
            ModelRequestStarted,
            tool_use_mode=options.tool_use_mode,
            tool_failure_policy=options.tool_failure_policy,
            tools_enabled=self._state.tools_enabled,
            messages_count=len(request.messages),
            tools_count=len(request.tools),
            tool_choice=request.tool_choice,
            prompt_mode=self._state.mode,
            request_attempts_left=self._state.retries_left,
        )

    def _choose_listener(self, shown: StreamedText | None) -> Callable[[StreamDelta], None]:
        """Return what takes the pieces of a streamed reply."""
        if self._state.output is not None:
            return self._listen_for_text()
        if taught_way(self._state.mode) == "object":
            return self._emit_reasoning
        return self._emit_delta if shown is None else shown.feed

    def _close_tools(self) -> None:
        """Ask the application which tools may not be used before this turn's reply."""
        closed = find_closed(self._guards, RunProgress(self._results))
        guidance = replace(self._state.guidance, closed=closed)
        self._state = replace(self._state, guidance=guidance)

    async def _read(self, asked: PromptResult) -> Reading:
        reads = self._runner.transforms.reading
        read = partial(read_answer, self._plan, self._state, asked.reply, self._names, reads)
        return await read_in_thread(read, is_long=asked.is_long)

    async def _read_output(self, asked: PromptResult) -> ReadOutput:
        plan, reply = self._plan, asked.reply
        assert self._form is not None
        read = partial(
            read_output,
            self._form,
            reply,
            current_mode(plan, self._state),
            is_grammar=plan.capabilities.grammar,
            disabled_rules=plan.options.disabled_rules,
            checks=plan.options.check_output,
        )
        return await read_in_thread(read, is_long=asked.is_long)

    async def _rescue(self, error: Exception, elapsed_ms: float) -> PromptResult | None:
        """Return the reply that a provider sent inside an error, if it can be trusted."""
        may_hold_calls = self._state.tools_enabled and self._plan.reads_text(tools_offered=True)
        if not (may_hold_calls and isinstance(error, ProviderStatusError)):
            return None
        raw = rescue_reply(error.status, error.body)
        if raw is None:
            return None
        asked = await self._runner.read_raw_in_thread(raw)
        if not may_be_rescued(await self._read(asked), self._names):
            return None
        return replace(
            asked, elapsed_ms=elapsed_ms, request_id=error.request_id, attempts=error.attempts
        )

    def _note_failure(self, error: Exception, elapsed_ms: float) -> RequestFailed:
        state = self._state
        known = isinstance(error, SurecallError)
        code = error.code if known else Code.INTERNAL_ERROR
        message = error.message if known else redact(f"{type(error).__name__}: {error}")
        status = error.status if isinstance(error, ProviderError) else None
        self._emitter.emit(
            ModelRequestFailed,
            tools_enabled=state.tools_enabled,
            code=code,
            status=status,
            error_class=type(error).__name__,
            message=message,
            elapsed_ms=elapsed_ms,
        )
        self._trace_builder.add_failure(
            FailedRequest(str(code), message, status, elapsed_ms, state.tools_enabled)
        )
        if not isinstance(error, ProviderError):
            raise error
        return RequestFailed(error)

    def _record_failure(self, error: ProviderError) -> None:
        """Record a refusal that is answered by asking in another way; others end the run."""
        if not isinstance(error, ProviderStatusError):
            return
        state = self._state
        step = next_step(state, RequestFailed(error), self._plan)
        if any(isinstance(effect, AskModel) for effect in step.effects):
            self._recorder.record_failure(state.turn, error.code, error.message, error.status)

    def _note_reply(self, accepted: Accepted) -> None:
        """Add the turn to the trace and report that the request ended."""
        assert self._asked is not None
        asked, reading, options = self._asked, self._reading, self._plan.options
        state = self._state
        output = None if self._output is None else self._output.reading
        turn = self._trace_builder.add_reply(state, asked, reading, accepted, output)
        for defect in accepted.defects:
            if defect.code == Code.CALLS_IGNORED:
                _log.warning("%s: %s", defect.code, defect.message)
        if not self._emitter.has_listener:
            return
        self._emitter.emit(
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
            tool_calls=turn.tool_calls,
            request_id=asked.request_id,
            receipts_count=len(turn.all_receipts),
            defect_codes=tuple(defect.code for defect in turn.defects),
            receipts=turn.receipts,
        )

    # waiting for an approval

    async def _pause(self, wanted: RunCalls, finished: CallsFinished) -> RunResult:
        """Store the run before its waiting calls, and return what it waits for."""
        assert self._approvals is not None
        permission, run_id, results = self._calls.permission, self._emitter.run_id, finished.results
        pending = tuple(permission.waiting.values())
        trace = self._trace(
            ErrorDetail(str(Code.APPROVAL_PENDING), "The run waits for an approval.", RESUME_LATER)
        )
        state = PausedState(
            trace=trace,
            run=self._state,
            warnings=wanted.warnings,
            once=self._calls.once.results,
            records=tuple(
                RecordedResult(self._state.turn, result)
                for result in results
                if result.call_id not in permission.waiting
            ),
        )
        if self._paused is not None:
            await self._paused.stop()
            await self._paused.check()
        new = tuple(permission.new.values())
        stored = pack_run(run_id, state, tuple(approval.id for approval in pending))
        await self._approvals.add(new, stored)
        for approval in new:
            self._emitter.emit(
                ApprovalRequested,
                approval_id=approval.id,
                tool_call_id=approval.call_id,
                name=approval.name,
                arguments=approval.payload,
                expires_at=approval.expires_at,
            )
        self._end(Code.APPROVAL_PENDING)
        return PausedResult(
            text="",
            history=self._state.history + answer_calls(results),
            trace=trace,
            usage=self._state.usage,
            pending=pending,
            elapsed_ms=self._emitter.now_ms(),
        )

    async def _forget_pause(self) -> None:
        """Remove the stored run that has its answer; the answer counts, even if that fails."""
        if self._approvals is None or not self._calls.permission.was_looked_up:
            return
        try:
            await self._approvals.drop_run(self._emitter.run_id)
        except Exception:
            _log.exception("the paused run %s could not be removed", self._emitter.run_id)

    # ending

    def _finish(self, text: str) -> RunResult:
        asked = self._asked
        assert asked is not None
        self._end("")
        shown, receipts = text, ()
        if self._output is None:
            shown, receipts = self._runner.transforms.apply_answer(text)
        result = RunResult(
            text=shown,
            text_receipts=receipts,
            history=self._state.history,
            trace=self._trace(None, text),
            usage=self._state.usage,
            finish_reason=asked.reply.finish_reason,
            elapsed_ms=self._emitter.now_ms(),
        )
        read = self._output
        if read is None:
            return result
        return OutputResult[Any](**asdict(result), output=read.output, value=read.value)

    def _error(self, fail: Fail) -> RunError:
        kind: type[RunError] = ToolUseError if fail.code in _TOOL_USE_CODES else RunLimitError
        if fail.code == Code.OUTPUT_INVALID:
            kind = OutputError
        return kind(
            fail.code,
            fail.message,
            hint=fail.hint,
            trace=self._trace(ErrorDetail(str(fail.code), fail.message, fail.hint)),
            history=complete_history(self._state.history),
            details=fail.details,
        )

    def _end(self, code: str) -> None:
        self._emitter.emit(
            RunEnded,
            ok=code in ("", Code.APPROVAL_PENDING),
            code=str(code),
            turns=self._trace_builder.turns_count,
            calls=self._state.calls_run,
            usage=self._state.usage,
            elapsed_ms=self._emitter.now_ms(),
        )

    def _trace(self, error: ErrorDetail | None, answer: str | None = None) -> Trace:
        return self._trace_builder.trace(self._emitter.run_id, self._state, error, answer)

    # streamed text

    def _open_streamed_text(self) -> StreamedText | None:
        """Return what holds the text of calls back; `None` when it is not looked for."""
        plan, way = self._plan, taught_way(self._state.mode)
        if not (self._emitter.has_listener and plan.options.stream) or way == "object":
            return None
        if self._state.output is not None:
            return None
        if way is None and not plan.reads_text(tools_offered=self._state.tools_enabled):
            return None
        return StreamedText(ReplyReader(self._names, taught=way is not None), self._emitter.emit)

    def _listen_for_text(self) -> Callable[[StreamDelta], None]:
        """Return what shows the text inside a value that arrives; JSON itself is not shown."""
        reader = None if self._form is None else self._form.open_text()

        def listen(delta: StreamDelta) -> None:
            if delta.kind != "text":
                self._emit_delta(delta)
            elif reader is not None and (text := reader.feed(delta.text)):
                self._emitter.emit(TextDelta, text=text)

        return listen

    def _emit_reasoning(self, delta: StreamDelta) -> None:
        """Tell reasoning only: the text of the reply is an object that is read when whole."""
        if delta.kind == "reasoning":
            self._emit_delta(delta)

    def _emit_delta(self, delta: StreamDelta) -> None:
        kind = TextDelta if delta.kind == "text" else ReasoningDelta
        self._emitter.emit(kind, text=delta.text)
