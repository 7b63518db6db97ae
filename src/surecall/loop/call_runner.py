"""Running the calls of one turn: each is reported, journaled and run at most once."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from surecall.base.errors import Code, JournalError, ProviderError
from surecall.base.records import (
    ApprovalFailed,
    Effect,
    FitJudged,
    ToolCall,
    ToolCallEnded,
    ToolCallStarted,
    ToolResult,
    ToolSpec,
    as_run,
)
from surecall.base.redaction import open_log
from surecall.models.transport import Transport
from surecall.tools import Dispatcher, OnceLedger, Permission, ToolContext, run_calls
from surecall.wire import RawReply, WireProtocol

from .events import EventEmitter
from .guidance import list_optional
from .journal import (
    JOURNAL_VERSION,
    Journal,
    JournalRecord,
    RecordedFailure,
    RecordedIntent,
    RecordedReply,
    RecordedResult,
    RunHeader,
)
from .paused import StoreJournal
from .plan import Plan
from .steps import FitCheck, RunCalls
from .wording import DOES_NOT_FIT

if TYPE_CHECKING:
    from surecall.models.probe.fit_gate import FitAsker


class Recorder:
    """Replays a journal to a run, then records what is new."""

    def __init__(self, journal: Journal | StoreJournal | None) -> None:
        self._journal = journal
        self._answers: defaultdict[int, deque[RecordedReply | RecordedFailure]] = defaultdict(deque)
        self._intents: set[tuple[int, str]] = set()
        self._results: dict[tuple[int, str], ToolResult] = {}

    def open(self, run_id: str, fingerprint: str) -> tuple[str, bool]:
        """Load the journal; return the run's id and whether it goes on from before."""
        if self._journal is None:
            return run_id, False
        if isinstance(self._journal, StoreJournal):
            self._index(self._journal.records)
            return run_id, True
        records = self._journal.load()
        if not records:
            self._journal.append(RunHeader(run_id, fingerprint), durable=True)
            return run_id, False
        header = records[0]
        if not isinstance(header, RunHeader):
            raise JournalError(
                Code.JOURNAL_CORRUPT,
                "the journal does not begin with a run.",
                hint="Start the run again with another journal.",
            )
        if header.version != JOURNAL_VERSION:
            raise JournalError(
                Code.JOURNAL_MISMATCH,
                f"the journal has version {header.version}; this surecall reads {JOURNAL_VERSION}.",
                hint="Resume with the version that wrote it, or use another journal.",
            )
        if header.fingerprint != fingerprint:
            raise JournalError(
                Code.JOURNAL_MISMATCH,
                "the journal belongs to a different request: model, messages, tools or options "
                "have changed since.",
                hint="Resume with what the run was started with, or use another journal.",
            )
        self._index(records[1:])
        return header.run_id, True

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()

    def next_answer(self, turn: int) -> RawReply | RecordedFailure | None:
        """Return what the provider answered in this turn the last time, if it was recorded."""
        waiting = self._answers.get(turn)
        if not waiting:
            return None
        record = waiting.popleft()
        return record if isinstance(record, RecordedFailure) else record.reply

    def result(self, turn: int, call_id: str) -> ToolResult | None:
        """Return the recorded result of a call."""
        return self._results.get((turn, call_id))

    def was_intended(self, turn: int, call_id: str) -> bool:
        """Tell whether a call without a result had been started."""
        return (turn, call_id) in self._intents

    def record_reply(self, turn: int, raw: RawReply) -> None:
        """Record a reply."""
        if self._journal is not None:
            self._journal.append(RecordedReply(turn, raw), durable=False)

    def record_failure(self, turn: int, code: str, message: str, status: int | None) -> None:
        """Record a refused request that another one follows."""
        if self._journal is not None:
            self._journal.append(RecordedFailure(turn, code, message, status), durable=False)

    async def record_intent(self, turn: int, call: ToolCall, effect: Effect, key: str) -> None:
        """Record that a tool is about to run."""
        await self._append(RecordedIntent(turn, call.id, call.name, effect, key), effect)

    async def record_result(self, turn: int, result: ToolResult, effect: Effect) -> None:
        """Record what became of a call."""
        await self._append(RecordedResult(turn, result), effect)

    async def _append(self, record: JournalRecord, effect: Effect) -> None:
        if self._journal is None:
            return
        if effect == "read":
            self._journal.append(record, durable=False)
        elif isinstance(self._journal, StoreJournal):
            self._journal.append(record, durable=True)
            await _finish(self._journal.save())
        else:
            await _finish(asyncio.to_thread(self._journal.append, record, durable=True))

    def _index(self, records: Sequence[JournalRecord]) -> None:
        for record in records:
            if isinstance(record, RecordedReply | RecordedFailure):
                self._answers[record.turn].append(record)
            elif isinstance(record, RecordedIntent):
                self._intents.add((record.turn, record.call_id))
            elif isinstance(record, RecordedResult):
                self._results[record.turn, record.result.call_id] = record.result


async def _finish(writing: Coroutine[Any, Any, None]) -> None:
    """Wait for a write in a thread to its end, also when cancelled: the file must stay open."""
    task = asyncio.ensure_future(writing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        task.result()
        return
    task.exception()
    raise cancelled


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


_log = open_log("surecall.loop")


class FitGate:
    """Asks about each optional tool once in a run, before its first call."""

    def __init__(
        self,
        plan: Plan,
        transport: Transport,
        protocol: WireProtocol,
        dispatcher: Dispatcher,
        emitter: EventEmitter,
    ) -> None:
        self._plan = plan
        self._transport = transport
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._emitter = emitter
        self._optional = list_optional(plan)
        self._checks: dict[str, FitCheck] = {}
        self._asker: FitAsker | None = None

    async def check(self, wanted: RunCalls) -> tuple[RunCalls, tuple[FitCheck, ...]]:
        """Return the calls with refusals of tools that do not fit, and the questions asked."""
        asked: list[FitCheck] = []
        for call in wanted.calls:
            tool = self._tool_of(call, wanted)
            if tool is None or tool.name in self._checks:
                continue
            found = self._checks[tool.name] = await self._ask(tool)
            asked.append(found)
        unfit = {name: DOES_NOT_FIT for name, check in self._checks.items() if not check.fits}
        if unfit:
            wanted = replace(wanted, not_ready={**unfit, **wanted.not_ready})
        return wanted, tuple(asked)

    def _tool_of(self, call: ToolCall, wanted: RunCalls) -> ToolSpec | None:
        """Return the optional tool that a call would run, or that more calls are asked of."""
        if self._dispatcher.effect_of(call) is None and not wanted.asks_for_all:
            return None
        tool = self._dispatcher.resolve(call.name)
        if tool is None or tool.name not in self._optional or tool.name in wanted.not_ready:
            return None
        return tool.spec

    async def _ask(self, tool: ToolSpec) -> FitCheck:
        started = perf_counter()
        asker = self._open()
        check = FitCheck(tool=tool.name, fits=True, threshold=asker.threshold)
        try:
            answer = await asker.ask(self._plan.request_text, tool)
        except ProviderError as error:
            _log.warning("whether %s fits could not be asked: %s", tool.name, error.code)
            check = replace(check, requests=max(error.attempts, 1), error=str(error.code))
        else:
            check = replace(
                check,
                fits=answer.fits(asker.threshold),
                threshold=asker.threshold,
                score=answer.score,
                requests=answer.requests,
                usage=answer.usage,
            )
        check = replace(check, elapsed_ms=(perf_counter() - started) * 1000)
        self._emitter.emit(
            FitJudged,
            tool=check.tool,
            fits=check.fits,
            score=check.score,
            threshold=check.threshold,
            elapsed_ms=check.elapsed_ms,
        )
        return check

    def _open(self) -> "FitAsker":
        if self._asker is None:
            from surecall.models.probe.fit_gate import FitAsker

            self._asker = FitAsker(
                self._transport, self._protocol, self._plan.model, self._plan.capabilities
            )
        return self._asker
