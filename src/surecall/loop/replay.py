"""A recorded run, decided again: without a provider and without running any tool.

Calls, receipts and the answer are made anew from the recorded replies. What a tool did cannot be:
of its results it is compared that they belong to the calls, and that what the model was shown is
what the envelope says.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    ConfigError,
    JSONTextError,
    ProviderConnectionError,
    ProviderStatusError,
    SurecallError,
)
from surecall.base.records import ModelRequest, Reading, ToolCall, ToolResult, as_run
from surecall.calls import ToolNames
from surecall.models.profiles import split_capabilities
from surecall.models.transport import ScriptedTransport, Transport
from surecall.reading.transforms import TransformChain, TransformRegistry
from surecall.text import decode_own
from surecall.tools import render_envelope
from surecall.tools.outputs import encode_stored
from surecall.wire import WireProtocol, find_protocol

from .asking import build_request, read_answer
from .output import OutputReading
from .output_steps import current_mode
from .plan import Plan, make_plan
from .prompt_runner import PromptResult, PromptRunner
from .resolve import make_chain
from .steps import (
    Accepted,
    CallsFinished,
    Fail,
    Finish,
    Replied,
    RequestFailed,
    Reraise,
    RunCalls,
    RunState,
    Step,
)
from .trace import FailedRequest, Trace, TurnTrace
from .turn import begin, next_step


class Replay(Struct, frozen=True, kw_only=True):
    """What deciding a recorded run again gave."""

    same: bool
    """Whether calls, receipts, results and the end came out as they were recorded."""
    differences: tuple[str, ...]
    turns: int
    code: str
    """The code the run ended with; empty when it ended with an answer."""
    text: str | None
    """The answer, when there was one."""
    fingerprint: str


class Resent(NamedTuple):
    """One request of a recorded run, sent again."""

    request: ModelRequest
    answer: PromptResult
    reading: Reading
    accepted: Accepted
    """Which calls of the new reply a run would make, and which it would ignore."""
    recorded: TurnTrace


def replay_trace(
    trace: Trace,
    *,
    transforms: TransformRegistry | None = None,
    protocol: WireProtocol | None = None,
) -> Replay:
    """Decide a recorded run again from its replies and results, and compare."""
    plan = _plan_of(trace)
    runner = _runner_of(plan, ScriptedTransport([]), transforms, protocol)
    differences: list[str] = []
    if plan.fingerprint != trace.fingerprint:
        differences.append("the request has another fingerprint than the one recorded")
    step = begin(plan)
    for turn in trace.turns:
        if _has_ended(step):
            differences.append(f"the run ended before turn {turn.turn}, which is recorded")
            break
        if any(isinstance(effect, RunCalls) for effect in step.effects):
            differences.append(f"the calls before turn {turn.turn} have no results")
        step = _replay_turn(step, turn, plan, runner, differences)
    code, text = _ending(step, trace)
    recorded_code = trace.error.code if trace.error else ""
    if code != recorded_code:
        differences.append(
            f"the run ended with {code or 'an answer'}, recorded is {recorded_code or 'an answer'}"
        )
    elif text != trace.answer:
        differences.append("the run ended with another answer than the one recorded")
    return Replay(
        same=not differences,
        differences=tuple(differences),
        turns=len(trace.turns),
        code=code,
        text=text,
        fingerprint=plan.fingerprint,
    )


async def resend_turn(
    trace: Trace,
    turn: int,
    transport: Transport,
    *,
    transforms: TransformRegistry | None = None,
    protocol: WireProtocol | None = None,
) -> Resent:
    """Send the request of one recorded turn again; no tool is run."""
    if not 0 <= turn < len(trace.turns):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"the trace has no turn {turn}.",
            hint=f"It has turns 0 to {len(trace.turns) - 1}.",
        )
    plan = _plan_of(trace)
    runner = _runner_of(plan, transport, transforms, protocol)
    step = begin(plan)
    for earlier in trace.turns[:turn]:
        step = _replay_turn(step, earlier, plan, runner, [])
    state = _close_tools(step.state, trace.turns[turn])
    request = build_request(plan, state, stream=False)
    answer = await runner.ask(request)
    reading = _read(answer, state, plan, runner)
    output = None
    if state.output is not None:
        # What the application would say to the new value is not known here.
        output = OutputReading(mode=current_mode(plan, state), ok=True)
    accepted = next_step(state, _replied(answer, reading, output), plan).accepted
    return Resent(request, answer, reading, accepted or Accepted((), ()), trace.turns[turn])


def _replay_turn(
    step: Step, turn: TurnTrace, plan: Plan, runner: PromptRunner, differences: list[str]
) -> Step:
    for failure in turn.failures:
        step = next_step(step.state, RequestFailed(_error_of(failure)), plan)
    if turn.raw is None:
        return step
    step = step._replace(state=_close_tools(step.state, turn))
    answer = runner.read_raw(turn.raw)
    reading = _read(answer, step.state, plan, runner)
    step = next_step(step.state, _replied(answer, reading, turn.output), plan)
    accepted = step.accepted or Accepted((), ())
    found = replace(
        turn,
        calls=as_run(accepted.calls, turn.results),
        ignored_calls=accepted.ignored,
        seen=reading.seen,
        receipts=answer.receipts + reading.receipts + accepted.receipts,
    )
    differences += [f"turn {turn.turn}: {words}" for words in _compare_turns(found, turn)]
    runs = next((effect for effect in step.effects if isinstance(effect, RunCalls)), None)
    if runs is not None and runs.asks_for_all and not turn.results:
        step = next_step(step.state, CallsFinished((), turn.fit_checks), plan)
    elif runs is not None and turn.results:
        odd = _compare_results(turn, runner.transforms)
        differences += [f"turn {turn.turn}: {words}" for words in odd]
        finished = CallsFinished(turn.results, turn.fit_checks)
        step = next_step(step.state, finished, plan)
    elif turn.results:
        differences.append(f"turn {turn.turn}: results are recorded, but no call is run")
    return step


def _close_tools(state: RunState, turn: TurnTrace) -> RunState:
    """Close the tools that the application had closed before the recorded reply."""
    closed = frozenset(turn.request.hidden_tools)
    if closed == state.guidance.closed:
        return state
    return replace(state, guidance=replace(state.guidance, closed=closed))


def _replied(
    answer: PromptResult, reading: Reading, output: OutputReading | None = None
) -> Replied:
    return Replied(reading, answer.reply.usage, answer.reply.extra, output)


def _compare_turns(found: TurnTrace, recorded: TurnTrace) -> Iterator[str]:
    """Yield in what a turn that was decided again differs from the one recorded."""
    if not _are_same(_bare(found.calls), _bare(recorded.calls)):
        yield "other calls were accepted than recorded"
    elif not _are_same(found.calls, recorded.calls):
        yield "the calls have other receipts than recorded"
    if not _are_same(_bare(found.ignored_calls), _bare(recorded.ignored_calls)):
        yield "other calls were ignored than recorded"
    if list(map(_said, found.seen)) != list(map(_said, recorded.seen)):
        yield "other calls were seen in the text than recorded"
    if not _are_same(found.receipts, recorded.receipts):
        yield "the reply has other receipts than recorded"


def _compare_results(turn: TurnTrace, transforms: TransformChain) -> Iterator[str]:
    """Yield what is wrong about the recorded results of a turn."""
    if [result.call_id for result in turn.results] != [call.id for call in turn.calls]:
        yield "the results are not those of the calls"
        return
    for call, result in zip(turn.calls, turn.results, strict=True):
        is_refused = bool(call.errors) or call.state != "whole"
        if is_refused and (result.ok or result.executed):
            yield f"the result of {call.id} is that of a call that ran, but the call is refused"
        if not _shows_envelope(result, transforms):
            yield f"the result of {call.id} shows another text than its envelope has"


def _shows_envelope(result: ToolResult, transforms: TransformChain) -> bool:
    envelope = result.envelope
    try:
        shown = transforms.apply_result(
            render_envelope(envelope), envelope.tool_name, result.call_id
        )
        expected = encode_stored(shown)
    except SurecallError:  # it was shown without what cannot be written
        return True
    try:
        return decode_own(result.text.encode("utf-8", "replace")) == decode_own(expected)
    except JSONTextError:
        return False


def _said(call: ToolCall) -> tuple[Any, ...]:
    return call.id, call.name, call.arguments, call.state, call.errors


def _bare(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    return tuple(replace(call, receipts=()) for call in calls)


def _are_same(one: Any, other: Any) -> bool:
    """Tell whether two records are the same once they are stored: JSON has no tuples."""
    return one == other or encode_stored(one) == encode_stored(other)


def _has_ended(step: Step) -> bool:
    return any(isinstance(effect, Finish | Fail | Reraise) for effect in step.effects)


def _ending(step: Step, trace: Trace) -> tuple[str, str | None]:
    for effect in step.effects:
        if isinstance(effect, Finish):
            return "", effect.text
        if isinstance(effect, Fail):
            return str(effect.code), None
        if isinstance(effect, Reraise):
            return effect.error.code, None
    # The clock, not a decision, ended the run: there is nothing to decide again.
    return (trace.error.code if trace.error else ""), None


def _error_of(failure: FailedRequest) -> ProviderStatusError | ProviderConnectionError:
    kind = ProviderConnectionError if failure.status is None else ProviderStatusError
    return kind(failure.code, failure.message, status=failure.status)


def _read(answer: PromptResult, state: RunState, plan: Plan, runner: PromptRunner) -> Reading:
    names = ToolNames(plan.tools)
    return read_answer(plan, state, answer.reply, names, runner.transforms.reading)


def _plan_of(trace: Trace) -> Plan:
    capabilities, findings = split_capabilities(trace.capabilities)
    return make_plan(
        model=trace.model,
        messages=trace.messages,
        tools=trace.tools,
        options=trace.options,
        origins=trace.origins,
        capabilities=capabilities,
        capability_origins=trace.capability_origins,
        system=trace.system,
        protocol=trace.protocol,
        findings=findings,
        output=trace.output,
    )


def _runner_of(
    plan: Plan,
    transport: Transport,
    transforms: TransformRegistry | None,
    protocol: WireProtocol | None,
) -> PromptRunner:
    return PromptRunner(
        transport,
        protocol=protocol or find_protocol(plan.protocol),
        transforms=make_chain(transforms, plan.options),
        capabilities=plan.capabilities,
    )
