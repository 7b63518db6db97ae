"""Running the calls of one turn: each is reported, journaled and run at most once."""

from surecall.base.errors import Code
from surecall.base.records import (
    ApprovalFailed,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    as_run,
)
from surecall.tools import Dispatcher, OnceLedger, Permission, ToolContext, run_calls

from .events import EventEmitter
from .recorder import Recorder
from .steps import RunCalls

_PARSE_STATUS: dict[str, str] = {
    Code.ARGUMENTS_HOLD_SECRET: "ok",
    Code.ARGUMENTS_INVALID: "ok",
    Code.ARGUMENTS_TOO_LARGE: "too_large",
    Code.ARGUMENTS_TOO_DEEP: "too_deep",
    Code.ARGUMENTS_TRUNCATED: "cut",
}


class CallRunner:
    """Runs calls through a dispatcher; what a journal already holds is not run again."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        recorder: Recorder,
        emitter: EventEmitter,
        max_concurrency: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._emitter = emitter
        self._max_concurrency = max_concurrency
        self._started: dict[str, ToolCall] = {}
        """Calls that were announced and have not ended, as they run."""

    @property
    def permission(self) -> Permission:
        """Who is asked about the calls, and what waits for a decision."""
        return self._dispatcher.permission

    @property
    def once(self) -> OnceLedger:
        """What ran and may not run again."""
        return self._dispatcher.once

    async def run(self, turn: int, wanted: RunCalls) -> tuple[ToolResult, ...]:
        """Run the calls of a turn and return their results in the order of the calls."""

        async def execute(call: ToolCall) -> ToolResult:
            return await self._execute(turn, call, wanted)

        return await run_calls(
            wanted.calls,
            effect_of=self._dispatcher.effect_of,
            execute=execute,
            max_concurrency=self._max_concurrency,
        )

    async def _execute(self, turn: int, call: ToolCall, wanted: RunCalls) -> ToolResult:
        context = ToolContext(self._emitter.run_id, turn, call.id, call.receipts)
        result = self._recorder.result(turn, call.id)
        if result is not None:
            self._dispatcher.recall(call, result, context)
        else:
            result = self._answer_unrun(call, wanted)
            if result is None:
                result = await self._dispatch(turn, call, context, wanted.warnings.get(call.id))
            else:
                await self._recorder.record_result(turn, result, "read")
        if not self._emitter.has_listener:
            return result
        (ran,) = as_run((call,), (result,))
        if call.id in self._started:
            ran = self._started.pop(call.id)
        else:
            self._announce(ran)
        self._emitter.emit(
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
            call=ran,
        )
        return result

    def _announce(self, call: ToolCall) -> None:
        self._emitter.emit(
            ToolCallStarted,
            tool_call_id=call.id,
            name=call.name,
            arguments_bytes=call.arguments_bytes,
            parse_status=_parse_status(call),
            call=call,
        )

    def _answer_unrun(self, call: ToolCall, wanted: RunCalls) -> ToolResult | None:
        """Return the result of a call whose tool is not run, if that has been decided."""
        dispatcher, warning = self._dispatcher, wanted.warnings.get(call.id)
        first = wanted.repeated.get(call.id)
        if first is not None:
            return dispatcher.repeat_result(call, first, () if warning is None else (warning,))
        tool = dispatcher.resolve(call.name)
        refusal = None if tool is None else wanted.not_ready.get(tool.name)
        if refusal is None:
            return None
        return dispatcher.refuse(call, refusal.code, refusal.message, refusal.hint)

    async def _dispatch(
        self, turn: int, call: ToolCall, context: ToolContext, warning: str | None
    ) -> ToolResult:
        recorder, dispatcher = self._recorder, self._dispatcher
        effect = dispatcher.effect_of(call)
        # A call that was intended may have run, also if it would be refused today.
        is_open = recorder.was_intended(turn, call.id)
        if is_open and (effect is None or not dispatcher.may_repeat(call)):
            result = dispatcher.refuse_unknown(call)
            dispatcher.recall(call, result, context)
            await recorder.record_result(turn, result, effect or "write")
            return result

        async def intend(ran: ToolCall, context: ToolContext) -> None:
            if self._emitter.has_listener:
                self._started[call.id] = ran
                self._announce(ran)
            await recorder.record_intent(turn, call, effect or "read", context.idempotency_key)

        result = await dispatcher.dispatch(
            call,
            context,
            warnings=() if warning is None else (warning,),
            before_run=None if effect is None else intend,
        )
        if call.id not in dispatcher.permission.waiting:
            await recorder.record_result(turn, result, effect or "read")
        if result.problem is not None:
            self._emitter.emit(
                ApprovalFailed,
                tool_call_id=call.id,
                name=result.name,
                code=result.problem.code,
                message=result.problem.message,
            )
        return result


def _parse_status(call: ToolCall) -> str:
    if not call.errors:
        return "ok"
    return _PARSE_STATUS.get(call.errors[0].code, "invalid_json")
