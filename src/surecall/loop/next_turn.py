"""The turn that follows: a plain one, or one in which the model is asked to go on."""

from collections.abc import Iterable

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import Message, StepNudged, ToolCall, ToolResult
from surecall.exchange.prompting import taught_way

from .checks import check_tokens
from .guidance import (
    Nudge,
    find_missing,
    find_nudge,
    find_steps,
    is_guided,
    refuse_not_ready,
)
from .plan import Plan
from .steps import Accepted, AskModel, Effect, Emit, Fail, RunCalls, RunState, Step
from .wording import tell_not_finished, tell_same_failure, tell_same_read, warn_same_read


def begin_turn(state: RunState, plan: Plan, *, tools_enabled: bool) -> tuple[RunState, Effect]:
    """Begin the next turn, or end the run when it has used all its turns."""
    if state.turn + 1 >= plan.options.max_turns:
        return state, Fail(
            Code.MAX_TURNS_REACHED,
            f"the model gave no final answer in {plan.options.max_turns} turns.",
            "Raise max_turns, or look in the trace for what keeps it from finishing.",
            {"max_turns": plan.options.max_turns},
        )
    state = replace(
        state,
        turn=state.turn + 1,
        tools_enabled=tools_enabled,
        retries_left=plan.retries_per_turn,
        mode=plan.turn_mode(state.base_mode, state.calls_seen),
        forced_tool=None,
        guidance=replace(state.guidance, held_by=None, is_narrow=False),
    )
    return state, AskModel()


def nudge_model(state: RunState, content: str, plan: Plan, accepted: Accepted) -> Step | None:
    """Ask the model to go on instead of taking its answer, if that may still be tried."""
    nudge = find_nudge(plan, state.guidance, state.mode, calls_seen=state.calls_seen)
    if nudge is None:
        return None
    fail = check_tokens(state, plan.options)
    if fail is not None:
        return Step(state, (fail,), accepted)
    text = tell_not_finished(nudge.missing, nudge.steps, plan.request_text)
    answer = (Message("assistant", content),) if content.strip() else ()
    history = (*state.history, *answer, Message("user", text))
    state = replace(state, history=history, paused_text="")
    state, effect = begin_turn(state, plan, tools_enabled=plan.tools_allowed)
    if not isinstance(effect, AskModel):
        return Step(state, (effect,), accepted)
    state = _hold_turn(state, nudge)
    event = StepNudged(missing=nudge.missing, held_by=nudge.held_by, step=state.guidance.nudges)
    return Step(state, (Emit(event), effect), accepted)


def _hold_turn(state: RunState, nudge: Nudge) -> RunState:
    """Hold the next reply to a call; with required tools missing, those that follow as well."""
    guidance = replace(
        state.guidance,
        nudges=state.guidance.nudges + 1,
        held_by=nudge.held_by,
        is_narrow=bool(nudge.missing),
    )
    state = replace(state, guidance=guidance)
    if nudge.held_by != "schema":
        return state
    base_mode = "constrained" if nudge.missing else state.base_mode
    return replace(state, mode="constrained", base_mode=base_mode)


def guide_calls(state: RunState, wanted: RunCalls, plan: Plan) -> RunCalls:
    """Refuse tools that cannot be called yet, and answer reads of before from their results."""
    guidance = state.guidance
    if not is_guided(plan, guidance):
        return wanted
    repeated = {
        call.id: guidance.reads[key]
        for key, call in zip(state.last_keys, wanted.calls, strict=True)
        if key in guidance.reads
    }
    steps = find_steps(plan, guidance) if repeated else ()
    warnings = {
        call.id: warn_same_read(call.name, steps) for call in wanted.calls if call.id in repeated
    }
    return replace(
        wanted,
        warnings={**warnings, **wanted.warnings},
        not_ready=refuse_not_ready(plan, guidance),
        repeated=repeated,
    )


def note_repeats(
    state: RunState,
    calls: Iterable[tuple[str, ToolCall]],
    results: tuple[ToolResult, ...],
    plan: Plan,
) -> Message | None:
    """Return the note that stands for a reply in which every call was made before.

    A small model that reads its own call twice makes it a third time, whatever the result says
    about it. One that reads the call once, and then that it was made already, goes on.
    """
    guidance = state.guidance
    if taught_way(state.mode) is None or not find_missing(plan, guidance):
        return None
    by_id = {result.call_id: result for result in results}
    notes: list[str] = []
    for key, call in calls:
        result = by_id.get(call.id)
        if key in guidance.reads:
            notes.append(tell_same_read(call, find_steps(plan, guidance)))
        elif result is not None and not result.ok and state.repeats.get(key, 0) > 1:
            notes.append(tell_same_failure(call, result.envelope.errors))
        else:
            return None
    return Message("user", "\n".join(notes))
