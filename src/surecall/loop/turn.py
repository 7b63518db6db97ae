"""What to do next, decided without I/O, clock or randomness.

`next_step(state, happened, plan)` takes what happened and returns the new state and the effects
to perform. The driver in `tool_loop.py` performs them; replaying a run is calling this again.
"""

from msgspec.structs import replace

from surecall.errors import Code, ProviderError, ProviderStatusError
from surecall.formats.teach import tell_not_executed
from surecall.records import (
    Defect,
    Escalated,
    Final,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    ToolCall,
    ToolNotExecuted,
    ToolResult,
)

from .checks import (
    check_limits,
    check_tool_use,
    count_repeats,
    needs_empty_final_repair,
    was_warned,
)
from .escalation import Escalation, count_refusals, find_escalation, stuck_tool
from .plan import Plan
from .prompting import taught_way
from .steps import (
    Accepted,
    AskModel,
    CallsFinished,
    Effect,
    Emit,
    Fail,
    Finish,
    Happened,
    Replied,
    Reraise,
    RunCalls,
    RunState,
    Step,
)
from .wording import note_not_executed, warn_ignored

_CONTENT_SAMPLE_CHARS = 200
_EMPTY = Defect(Code.ANSWER_EMPTY, "The run ended with an answer that has no text.", "/content")


def begin(plan: Plan) -> Step:
    """Start a run."""
    used_ids = frozenset(call.id for message in plan.messages for call in message.tool_calls)
    state = RunState(
        history=plan.messages,
        tools_enabled=plan.tools_allowed,
        retries_left=plan.retries_per_turn,
        used_ids=used_ids,
        base_mode=plan.mode,
        mode=plan.turn_mode(plan.mode, 0),
    )
    return Step(state, (AskModel(),))


def next_step(state: RunState, happened: Happened, plan: Plan) -> Step:
    """Decide what follows from what happened."""
    if isinstance(happened, Replied):
        return _after_reply(state, happened, plan)
    if isinstance(happened, CallsFinished):
        return _after_calls(state, happened.results, plan)
    return _after_failure(state, happened.error, plan)


def _after_failure(state: RunState, error: ProviderError, plan: Plan) -> Step:
    may_escalate = state.escalations < plan.options.max_escalations
    if error.code == Code.NO_TOOL_USE_ENDPOINT and may_escalate and taught_way(state.mode) is None:
        # Nobody serves this model with tools: from now on they are taught.
        step_up = Escalation("taught", "taught", None)
        state, escalated = _escalate(state, step_up, None)
        return Step(replace(state, base_mode="taught"), (escalated, AskModel()))
    if not isinstance(error, ProviderStatusError) or state.retries_left == 0:
        return Step(state, (Reraise(error),))
    state = replace(state, retries_left=state.retries_left - 1, tools_enabled=False)
    retried = ModelRequestRetried(tools_enabled=False, request_attempts_left=state.retries_left)
    return Step(state, (Emit(retried), AskModel()))


def _after_reply(state: RunState, replied: Replied, plan: Plan) -> Step:
    reading = replied.reading
    state = replace(state, was_cut=any(call.state == "cut" for call in reading.calls))
    if replied.usage is not None:
        state = replace(state, usage=state.usage + replied.usage)
    may_call = state.tools_enabled and plan.tool_choice != "none"
    limit = plan.max_calls_per_turn if may_call else 0
    calls, ignored = reading.calls[:limit], () if limit is None else reading.calls[limit:]
    defects = _note_ignored(calls, ignored)
    if not calls:
        found = (item for item in reading.defects if item.code == Code.TOOL_NOT_EXECUTED)
        broken = next(found, None)
        if broken is not None and not ignored:
            return _after_broken_attempt(state, reading.content, broken, plan)
        accepted = Accepted((), ignored, defects=defects)
        return _after_text(state, reading.content, plan, accepted)
    repeats = count_repeats(state, calls, plan)
    warnings, events = repeats.warnings, repeats.events
    fail = check_limits(state, calls, repeats, plan)
    if fail is not None:
        return Step(state, (*events, fail), Accepted(calls, ignored, defects=defects))
    if ignored:
        last, notice = calls[-1].id, warn_ignored(len(calls), len(ignored))
        notice = f"{warnings[last]} {notice}" if last in warnings else notice
        warnings = {**warnings, last: notice}
    keep = plan.options.keep_content_with_calls
    content = reading.content if keep else ""
    is_left_out = bool(reading.content.strip()) and not keep
    sample = reading.content[:_CONTENT_SAMPLE_CHARS] if is_left_out else None
    message = Message("assistant", content, calls, extra=replied.extra)
    state = replace(
        state,
        history=(*state.history, message),
        calls_seen=state.calls_seen + len(calls),
        used_ids=state.used_ids.union(call.id for call in calls),
        repeats=repeats.counts,
        last_keys=tuple(repeats.keys),
    )
    accepted = Accepted(calls, ignored, sample, defects)
    return Step(state, (*events, RunCalls(calls, warnings)), accepted)


def _note_ignored(calls: tuple[ToolCall, ...], ignored: tuple[ToolCall, ...]) -> tuple[Defect, ...]:
    if not ignored:
        return ()
    note = f"{len(calls)} of {len(calls) + len(ignored)} calls were accepted."
    return (Defect(Code.CALLS_IGNORED, note, "/tool_calls"),)


def _after_broken_attempt(state: RunState, content: str, broken: Defect, plan: Plan) -> Step:
    """Say to the model that it wrote no call, or to the user when the model was asked again."""
    options, accepted = plan.options, Accepted((), ())
    retry = state.tools_enabled and state.parse_retries < options.max_parse_retries
    reported = Emit(ToolNotExecuted(reason=broken.message, snippet=broken.place, retrying=retry))
    if not retry:
        content = note_not_executed(content, broken.message)
        step = _after_text(state, content, plan, accepted)
        return step._replace(effects=(reported, *step.effects))
    step_up = find_escalation(
        state.mode, plan.capabilities, state.escalations, options.max_escalations, None
    )
    way = taught_way(state.mode if step_up is None else step_up.mode) or "fenced"
    notice = Message("user", tell_not_executed(broken.message, way))
    state = replace(
        state,
        parse_retries=state.parse_retries + 1,
        history=(*state.history, Message("assistant", content), notice),
    )
    state, effect = _next_turn(state, plan, tools_enabled=True)
    if step_up is None or not isinstance(effect, AskModel):
        return Step(state, (reported, effect), accepted)
    state, escalated = _escalate(state, step_up, None)
    return Step(state, (reported, escalated, effect), accepted)


def _escalate(state: RunState, step_up: Escalation, tool: str | None) -> tuple[RunState, Effect]:
    state = replace(
        state,
        mode=step_up.mode,
        forced_tool=step_up.forced_tool,
        escalations=state.escalations + 1,
    )
    return state, Emit(Escalated(rung=step_up.name, tool=tool, step=state.escalations))


def _after_text(state: RunState, content: str, plan: Plan, accepted: Accepted) -> Step:
    options = plan.options
    if needs_empty_final_repair(state, content, options):
        asked = FixEmptyFinal(
            disable_tools=options.fix_empty_final_disable_tools,
            user_text_bytes=len(options.fix_empty_final_user_text.encode()),
        )
        state = replace(
            state,
            empty_final_tried=True,
            history=(*state.history, Message("user", options.fix_empty_final_user_text)),
        )
        tools_enabled = plan.tools_allowed and not options.fix_empty_final_disable_tools
        state, effect = _next_turn(state, plan, tools_enabled=tools_enabled)
        return Step(state, (Emit(asked), effect), accepted)
    state = replace(state, history=(*state.history, Message("assistant", content)))
    fail = check_tool_use(state, options)
    if fail is not None:
        return Step(state, (fail,), accepted)
    final = Final(
        assistant_content_bytes=len(content.encode("utf-8", "replace")),
        any_tool_calls_seen=state.calls_seen > 0,
        any_tool_success_seen=state.any_success,
    )
    if not content.strip():
        accepted = accepted._replace(defects=(*accepted.defects, _EMPTY))
    return Step(state, (Emit(final), Finish(content)), accepted)


def _after_calls(state: RunState, results: tuple[ToolResult, ...], plan: Plan) -> Step:
    answers = tuple(
        Message(
            "tool",
            result.text,
            tool_call_id=result.call_id,
            extra={} if result.ok else {"is_error": True},
        )
        for result in results
    )
    changed = any(result.ok and plan.has_effects(result.name) for result in results)
    state = replace(
        state,
        history=state.history + answers,
        calls_run=state.calls_run + len(results),
        any_success=state.any_success or any(result.ok for result in results),
        last_ok={**state.last_ok, **{result.name: result.ok for result in results}},
        # A success with effects has changed the world: only the calls just made count on.
        repeats={key: state.repeats[key] for key in state.last_keys} if changed else state.repeats,
        refusals=count_refusals(state.refusals, results),
    )
    # A taught model that repeats itself has what it needs: the next turn is for its answer.
    repeating = taught_way(state.mode) is not None and was_warned(state, plan)
    state, effect = _next_turn(state, plan, tools_enabled=plan.tools_allowed and not repeating)
    stuck = stuck_tool(state.refusals)
    if stuck is None or not isinstance(effect, AskModel):
        return Step(state, (effect,))
    step_up = find_escalation(
        state.base_mode, plan.capabilities, state.escalations, plan.options.max_escalations, stuck
    )
    if step_up is None:
        return Step(state, (effect,))
    state, escalated = _escalate(state, step_up, stuck)
    return Step(state, (escalated, effect))


def _next_turn(state: RunState, plan: Plan, *, tools_enabled: bool) -> tuple[RunState, Effect]:
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
    )
    return state, AskModel()
