"""What happened in a run, turn by turn, kept whole so that the run can be replayed."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, JSONTextError
from surecall.base.files import PRIVATE, explain_write_errors, write_whole
from surecall.base.records import (
    CallSummary,
    Defect,
    ErrorDetail,
    Message,
    Reading,
    Receipt,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    as_run,
)
from surecall.base.redaction import mask_known
from surecall.exchange.prompting import SchemaLoss, find_losses
from surecall.exchange.provider_rules import fit_history
from surecall.models.profiles import Capabilities, Findings, join_capabilities
from surecall.text import decode_own
from surecall.tools.outputs import encode_stored
from surecall.wire import DEFAULT_PROTOCOL, RawReply

from .guidance import find_hidden, offer_tools
from .options import Options
from .output import OutputReading, OutputSpec
from .plan import Plan
from .prompt_runner import PromptResult
from .steps import Accepted, FitCheck, RunState

TRACE_VERSION: Final = 1


class RequestSummary(Struct, frozen=True, kw_only=True):
    """The request of a turn, without its bodies."""

    model: str
    messages_count: int
    tools_count: int
    tool_use_mode: str
    tool_failure_policy: str
    prompt_mode: str = "native"
    forced_tool: str | None = None
    held_by: str | None = None
    """How the model was made to call a tool after an answer that came too early: `schema`,
    `forced_choice` or `words`."""
    hidden_tools: tuple[str, ...] = ()
    """The tools that could not be called yet, and were not offered."""
    compensates: bool = False
    """Whether it was made only because a likely call of the text before did not run."""
    lists_calls: bool = False
    """Whether it asked for a list of calls in the place of the call before, which did not run."""
    history_changes: tuple[str, ...] = ()
    """What was changed in what is sent of the history, because the provider demands it:
    `split_calls`, `system_to_user`, `add_empty_reasoning`, `restore_call_ids`,
    `rewrite_call_ids`."""
    message_transforms: tuple[str, ...] = ()
    tool_transforms: tuple[str, ...] = ()
    response_transforms: tuple[str, ...] = ()
    tool_call_transforms: tuple[str, ...] = ()
    tool_result_transforms: tuple[str, ...] = ()


class ResponseSummary(Struct, frozen=True, kw_only=True):
    """The reply of a turn, without its bodies."""

    has_tool_calls: bool
    tool_calls_count: int
    ignored_tool_calls_count: int
    usage: Usage | None
    finish_reason: str | None
    assistant_content_stripped: bool = False
    assistant_content_sample: str | None = None


class ResultSummary(Struct, frozen=True):
    """One result, without its body."""

    id: str
    name: str
    ok: bool
    error_codes: tuple[str, ...]
    elapsed_ms: float = 0.0
    executed: bool = False


class FailedRequest(Struct, frozen=True):
    """A request of this turn that got no reply."""

    code: str
    message: str
    status: int | None
    elapsed_ms: float
    tools_enabled: bool


class TurnTrace(Struct, frozen=True, kw_only=True):
    """One turn: what was asked, what came back, what was changed, what was run."""

    turn: int
    started_ms: float
    """Milliseconds since the run began."""
    request: RequestSummary
    response_summary: ResponseSummary | None = None
    elapsed_ms: float = 0.0
    request_id: str | None = None
    attempts: int = 1
    left_out: tuple[str, ...] = ()
    """Fields that surecall would have added, and left out because the provider refuses them."""
    answered_by: str | None = None
    """The model that answered, as the provider names it."""
    failures: tuple[FailedRequest, ...] = ()
    raw: RawReply | None = None
    """The reply exactly as it arrived."""
    calls: tuple[ToolCall, ...] = ()
    """The accepted calls, with the arguments that they ran with."""
    ignored_calls: tuple[ToolCall, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    """Changes outside the calls; those of a call are with the call."""
    defects: tuple[Defect, ...] = ()
    results: tuple[ToolResult, ...] = ()
    seen: tuple[ToolCall, ...] = ()
    """Calls that the text probably makes, and that were left in it."""
    fit_checks: tuple[FitCheck, ...] = ()
    """Questions whether the tools that were called fit the request."""
    output: OutputReading | None = None
    """What became of the reply when a value was asked for."""

    @property
    def tool_calls(self) -> tuple[CallSummary, ...]:
        """The accepted calls without their arguments."""
        return tuple(CallSummary(call.id, call.name, call.arguments_bytes) for call in self.calls)

    @property
    def tool_results(self) -> tuple[ResultSummary, ...]:
        """The results without their bodies."""
        return tuple(
            ResultSummary(
                result.call_id,
                result.name,
                result.ok,
                result.envelope.error_codes,
                result.elapsed_ms,
                result.executed,
            )
            for result in self.results
        )

    @property
    def all_receipts(self) -> tuple[Receipt, ...]:
        """Every change made to the reply of this turn."""
        made = self.receipts + tuple(r for call in self.calls for r in call.receipts)
        return made if self.output is None else made + self.output.receipts


class Trace(Struct, frozen=True, kw_only=True):
    """What happened in a run: enough to explain it, and to replay it without a provider."""

    run_id: str
    fingerprint: str
    model: str
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    options: Options
    origins: dict[str, str]
    capabilities: dict[str, Any]
    capability_origins: dict[str, str]
    ignored_overrides: tuple[str, ...] = ()
    strategy: dict[str, str] = {}
    """How tools were presented to the model (`mode`), and why (`reason`)."""
    probe: dict[str, Any] | None = None
    """What the provider was asked before the run (`asked_at`, `ok`, `source`, `fields`,
    `findings`, `requests`, `tokens`, `error`); unset when it was not."""
    protocol: str = DEFAULT_PROTOCOL
    """Name of the wire format in which the replies came."""
    schema_losses: tuple[SchemaLoss, ...] = ()
    """What the schemas of the tools lost where a provider was to hold the model to them."""
    output: OutputSpec | None = None
    """The value that the run was to end with; unset when it was to end with a text."""
    turns: tuple[TurnTrace, ...] = ()
    answer: str | None = None
    """The text the run ended with; unset when it ended without one."""
    error: ErrorDetail | None = None
    """Why the run ended without an answer, if it did."""
    version: int = TRACE_VERSION

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every change made to what the model said, in order."""
        return tuple(receipt for turn in self.turns for receipt in turn.all_receipts)

    @property
    def compensating_requests(self) -> int:
        """How many requests were made only because a likely call of a text did not run."""
        return sum(turn.request.compensates for turn in self.turns)

    @property
    def nudges(self) -> int:
        """How many requests were made because the model had answered too early."""
        return sum(turn.request.held_by is not None for turn in self.turns)


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write the trace as one JSON document, for its owner only.

    Raises:
        ConfigError: `DISK_FULL`, `FILE_WRITE_FAILED`, or `INVALID_OPTION` for a wrong place.
    """
    document = encode_stored(trace)
    with explain_write_errors(path), write_whole(path, mode=PRIVATE) as file:
        file.write(document)


def load_trace(path: str | Path) -> Trace:
    """Read a trace that `save_trace` wrote."""
    try:
        document = decode_own(mask_known(Path(path).read_bytes()))
        trace = msgspec.convert(document, Trace)
    except OSError as error:
        raise ConfigError(
            Code.INVALID_TRACE,
            f"the trace {path} cannot be read: {error.strerror or error}.",
            hint="Write one with `surecall run --trace FILE` or `result.trace`.",
        ) from error
    except (JSONTextError, msgspec.ValidationError) as error:
        problem = error.message if isinstance(error, JSONTextError) else f"{error}."
        raise ConfigError(
            Code.INVALID_TRACE,
            f"the file {path} is not a trace: {problem}",
            hint="Write one with `surecall run --trace FILE` or `result.trace`.",
        ) from error
    if trace.version != TRACE_VERSION:
        raise ConfigError(
            Code.INVALID_TRACE,
            f"{path} has trace version {trace.version}; this surecall reads {TRACE_VERSION}.",
            hint="Replay it with the version that wrote it.",
        )
    return trace


class TraceBuilder:
    """Collects the turns of one run."""

    def __init__(self, plan: Plan, turns: tuple[TurnTrace, ...] = ()) -> None:
        self._plan = plan
        self._turns = list(turns)
        self._failures: list[FailedRequest] = []
        self._started_ms = 0.0

    @property
    def turns_count(self) -> int:
        """How many replies there were."""
        return len(self._turns)

    def begin_request(self, now_ms: float) -> None:
        """Note when a turn began; a request that follows a failed one belongs to the same turn."""
        if not self._failures:
            self._started_ms = now_ms

    def add_failure(self, failure: FailedRequest) -> None:
        """Note a request that got no reply."""
        self._failures.append(failure)

    def add_reply(
        self,
        state: RunState,
        asked: PromptResult,
        reading: Reading,
        accepted: Accepted,
        output: OutputReading | None = None,
    ) -> TurnTrace:
        """Add the turn that a reply completes."""
        reply = asked.reply
        turn = TurnTrace(
            turn=state.turn,
            started_ms=self._started_ms,
            request=self._summarize_request(state),
            response_summary=ResponseSummary(
                has_tool_calls=bool(accepted.calls),
                tool_calls_count=len(accepted.calls),
                ignored_tool_calls_count=len(accepted.ignored),
                usage=reply.usage,
                finish_reason=reply.finish_reason,
                assistant_content_stripped=accepted.content_sample is not None,
                assistant_content_sample=accepted.content_sample,
            ),
            elapsed_ms=asked.elapsed_ms,
            request_id=asked.request_id,
            attempts=asked.attempts,
            left_out=asked.left_out,
            answered_by=reply.model,
            failures=tuple(self._failures),
            raw=asked.raw,
            calls=accepted.calls,
            ignored_calls=accepted.ignored,
            receipts=asked.receipts + reading.receipts + accepted.receipts,
            defects=reading.defects + accepted.defects,
            seen=reading.seen,
            output=output,
        )
        self._failures.clear()
        self._turns.append(turn)
        return turn

    def add_results(
        self, results: tuple[ToolResult, ...], fit_checks: tuple[FitCheck, ...] = ()
    ) -> None:
        """Add the results of the calls of the last reply, and what was asked before they ran."""
        turn = self._turns[-1]
        self._turns[-1] = replace(
            turn, calls=as_run(turn.calls, results), results=results, fit_checks=fit_checks
        )

    def trace(
        self, run_id: str, state: RunState, error: ErrorDetail | None, answer: str | None = None
    ) -> Trace:
        """Return the trace so far, with the answer or the reason why there is none."""
        plan, turns = self._plan, self._turns
        if self._failures:
            lost = TurnTrace(
                turn=state.turn,
                started_ms=self._started_ms,
                request=self._summarize_request(state),
                failures=tuple(self._failures),
            )
            turns = [*turns, lost]
        return Trace(
            run_id=run_id,
            fingerprint=plan.fingerprint,
            model=plan.model,
            system=plan.system,
            messages=plan.messages,
            tools=plan.tools,
            options=plan.options,
            origins=plan.origins,
            capabilities=dict(_list_capabilities(plan.capabilities, plan.findings)),
            capability_origins=plan.capability_origins,
            ignored_overrides=plan.ignored_overrides,
            strategy={"mode": plan.mode, "reason": plan.mode_reason},
            probe=plan.probe,
            protocol=plan.protocol,
            schema_losses=self._find_losses(turns),
            output=plan.output,
            turns=tuple(turns),
            answer=answer,
            error=error,
        )

    def _find_losses(self, turns: list[TurnTrace]) -> tuple[SchemaLoss, ...]:
        """Collect the losses of all ways in which the tools were put, each once."""
        ways = dict.fromkeys(
            (turn.request.prompt_mode, turn.request.forced_tool)
            for turn in turns
            if turn.request.tools_count
        )
        found: dict[SchemaLoss, None] = {}
        for mode, forced in ways:
            tools = (tool for tool in self._plan.tools if forced in (None, tool.name))
            found.update(dict.fromkeys(find_losses(tools, mode, self._plan.capabilities)))
        return tuple(found)

    def _summarize_request(self, state: RunState) -> RequestSummary:
        plan, options = self._plan, self._plan.options
        return RequestSummary(
            model=plan.model,
            messages_count=len(state.history) + (1 if plan.system else 0),
            history_changes=fit_history(state.history, plan.history_rules(state.mode))[1],
            tools_count=len(offer_tools(plan, state.guidance)) if state.tools_enabled else 0,
            tool_use_mode=options.tool_use_mode,
            tool_failure_policy=options.tool_failure_policy,
            prompt_mode=state.mode,
            forced_tool=state.forced_tool,
            held_by=state.guidance.held_by,
            hidden_tools=tuple(find_hidden(plan, state.guidance)),
            compensates=state.is_compensating,
            lists_calls=state.single is not None,
            message_transforms=options.message_transforms,
            tool_transforms=options.tool_transforms,
            response_transforms=options.response_transforms,
            tool_call_transforms=options.tool_call_transforms,
            tool_result_transforms=options.tool_result_transforms,
        )


@lru_cache(maxsize=64)
def _list_capabilities(capabilities: Capabilities, findings: Findings) -> dict[str, Any]:
    """Return what is known as it is after saving and loading: JSON has no tuples."""
    return {
        name: list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
        for name, value in join_capabilities(capabilities, findings).items()
    }
