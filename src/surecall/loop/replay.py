"""A recorded run, decided again: without a provider and without running any tool."""

from typing import NamedTuple

from msgspec import Struct

from surecall.errors import Code, ConfigError, ProviderConnectionError, ProviderStatusError
from surecall.formats import ToolNames
from surecall.profiles import split_capabilities
from surecall.protocols import WireProtocol, find_protocol
from surecall.records import ModelRequest, Reading
from surecall.transforms import TransformRegistry
from surecall.transport import ScriptedTransport, Transport

from .asking import build_request, read_answer
from .plan import Plan, make_plan
from .prompt_runner import PromptResult, PromptRunner
from .resolve import make_chain
from .steps import (
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

__all__ = ["Replay", "Resent", "replay_trace", "resend_turn"]


class Replay(Struct, frozen=True, kw_only=True):
    """What deciding a recorded run again gave."""

    same: bool
    """Whether every decision came out as it was recorded."""
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
        step = _replay_turn(step, turn, plan, runner, differences)
    code, text = _ending(step, trace)
    recorded_code = trace.error.code if trace.error else ""
    if code != recorded_code:
        differences.append(
            f"the run ended with {code or 'an answer'}, recorded is {recorded_code or 'an answer'}"
        )
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
    state = step.state
    request = build_request(plan, state, stream=False)
    answer = await runner.ask(request)
    return Resent(request, answer, _read(answer, state, plan), trace.turns[turn])


def _replay_turn(
    step: Step, turn: TurnTrace, plan: Plan, runner: PromptRunner, differences: list[str]
) -> Step:
    for failure in turn.failures:
        step = next_step(step.state, RequestFailed(_error_of(failure)), plan)
    if turn.raw is None:
        return step
    answer = runner.read_raw(turn.raw)
    reading = _read(answer, step.state, plan)
    step = next_step(step.state, Replied(reading, answer.reply.usage, answer.reply.extra), plan)
    if step.accepted is not None and step.accepted.calls != turn.calls:
        differences.append(f"turn {turn.turn}: other calls were accepted than recorded")
    if any(isinstance(effect, RunCalls) for effect in step.effects) and turn.results:
        step = next_step(step.state, CallsFinished(turn.results), plan)
    return step


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


def _read(answer: PromptResult, state: RunState, plan: Plan) -> Reading:
    return read_answer(plan, state, answer.reply, ToolNames(plan.tools))


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
        transforms=make_chain(transforms or TransformRegistry.builtin(), plan.options),
        capabilities=plan.capabilities,
    )
