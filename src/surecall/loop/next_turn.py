"""The turn that follows: what a run may still do, and when the model is asked to go on."""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import CallRepeated, Message, StepNudged, ToolCall, ToolResult
from surecall.exchange.prompting import taught_way
from surecall.text import canonical_hash

from .guidance import (
    Nudge,
    find_missing,
    find_nudge,
    find_steps,
    is_guided,
    refuse_not_ready,
)
from .options import Options
from .plan import Plan
from .steps import Accepted, AskModel, Effect, Emit, Fail, RunCalls, RunState, Step
from .wording import (
    tell_not_finished,
    tell_same_failure,
    tell_same_read,
    warn_repeated,
    warn_same_read,
)


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


class Repeats(Struct):
    """How often calls were made, and what follows from it."""

    counts: dict[str, int]
    keys: list[str]
    """The keys of the calls just made; empty for those that may be repeated."""
    warnings: dict[str, str] = {}
    """What the model is told with the result of a call, by the id of the call."""
    events: list[Effect] = []
    excess: tuple[str, int] | None = None
    """The name of a call that was made once too often, and how often."""


def check_limits(
    state: RunState, calls: tuple[ToolCall, ...], repeats: Repeats, plan: Plan
) -> Fail | None:
    """Return why the run ends before these calls run, if it does."""
    options = plan.options
    fail = check_tokens(state, options)
    if fail is not None:
        return fail
    wanted = state.calls_run + len(calls)
    if options.max_tool_calls is not None and wanted > options.max_tool_calls:
        return Fail(
            Code.CALL_BUDGET_EXCEEDED,
            f"the model asked for call number {wanted}, {options.max_tool_calls} are allowed.",
            "Raise max_tool_calls; none of the calls of the last reply was run.",
            {"calls": wanted, "max_tool_calls": options.max_tool_calls},
        )
    if repeats.excess is not None:
        name, count = repeats.excess
        return Fail(
            Code.REPEATED_CALL,
            f"the model made the same call to {name} {count} times, even after a warning.",
            "Mark tools that are meant to be polled with polling=True, "
            "or raise max_identical_calls.",
            {"tool": name, "count": count},
        )
    return None


def check_tokens(state: RunState, options: Options) -> Fail | None:
    """Return why the run ends when it used more tokens than it may."""
    used, limit = state.usage.total_tokens, options.max_run_tokens
    if limit is None or used <= limit:
        return None
    return Fail(
        Code.TOKEN_BUDGET_EXCEEDED,
        f"{used} tokens were used, {limit} are allowed.",
        "Raise max_run_tokens, or send less history and smaller tool results.",
        {"tokens": used, "max_run_tokens": limit},
    )


def count_repeats(state: RunState, calls: tuple[ToolCall, ...], plan: Plan) -> Repeats:
    """Count the calls among those made before."""
    limit = plan.options.max_identical_calls
    counts = dict(state.repeats)
    found = Repeats(counts, [call_key(call, plan) for call in calls])
    for call, key in zip(calls, found.keys, strict=True):
        if limit is None or not key:
            continue
        counts[key] = count = counts.get(key, 0) + 1
        if count == limit:
            found.warnings[call.id] = warn_repeated(count)
            found.events.append(Emit(CallRepeated(name=call.name, count=count)))
        elif count > limit:
            found.excess = found.excess or (call.name, count)
    return found


def was_warned(state: RunState, plan: Plan) -> bool:
    """Tell whether some call was made as often as is allowed."""
    limit = plan.options.max_identical_calls
    return limit is not None and any(count >= limit for count in state.repeats.values())


def call_key(call: ToolCall, plan: Plan) -> str:
    """Return a key equal for equal calls; empty where a repetition is not a sign of a loop."""
    if call.name in plan.polling_tools:
        return ""
    if call.arguments is None:
        return f"{call.name} {canonical_hash(str(call.raw))}"
    return f"{call.name} {canonical_hash(call.arguments, finite=True)}"


def needs_empty_final_repair(state: RunState, content: str, options: Options) -> bool:
    """Tell whether the final answer is empty and may be asked for once more."""
    return (
        options.fix_empty_final
        and not state.empty_final_tried
        and options.tool_use_mode != "disabled"
        and not content.strip()
        and state.calls_run > 0
    )


def check_required_tools(state: RunState, plan: Plan) -> Fail | None:
    """Check that every required tool has succeeded; `None` when they have."""
    missing = find_missing(plan, state.guidance)
    if not missing:
        return None
    return Fail(
        Code.REQUIRED_TOOL_MISSING,
        f"the model answered although {', '.join(missing)} has not succeeded in this run.",
        "Look in the trace for why it was not called or failed; raise max_step_nudges, or "
        "declare what it needs first with requires=(...).",
        {
            "missing": list(missing),
            "succeeded": sorted(state.guidance.succeeded),
            "nudges": state.guidance.nudges,
        },
    )


def check_tool_use(state: RunState, options: Options) -> Fail | None:
    """Check what `enforced` mode demands; `None` when it is met."""
    if options.tool_use_mode != "enforced":
        return None
    if state.calls_seen == 0:
        return Fail(
            Code.NO_TOOL_CALLS,
            "the model answered without calling a tool, and tool use is enforced.",
            "Use tool_choice='required', a clearer system text, or tool_use_mode='relaxed'.",
        )
    failed = sorted(name for name, ok in state.last_ok.items() if not ok)
    if options.tool_failure_policy == "fatal" and failed:
        return Fail(
            Code.TOOL_ERROR,
            f"the last call of {', '.join(failed)} failed, and tool_failure_policy is 'fatal'.",
            "See the tool's result in the trace; 'tolerated' accepts a run with one success.",
            {"failed_tools": failed},
        )
    if options.tool_failure_policy == "tolerated" and not state.any_success:
        return Fail(
            Code.TOOL_ERROR,
            "no tool call succeeded, and tool use is enforced.",
            "See the results in the trace.",
            {"failed_tools": failed},
        )
    return None
