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
    Reading,
    ToolCall,
    ToolNotExecuted,
    ToolResult,
)

from .checks import (
    check_limits,
    check_tool_use,
    count_repeats,
    needs_empty_final_repair,
    repeats_of_last,
    was_warned,
)
from .escalation import Rung, count_refusals, find_rung, stuck_tool
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

__all__ = ["begin", "next_step"]

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
    may_climb = state.escalations < plan.options.max_escalations
    if error.code == Code.NO_TOOL_USE_ENDPOINT and may_climb and taught_way(state.mode) is None:
        # Nobody serves this model with tools: from now on they are taught.
        rung = Rung("taught", "taught", None)
        state, told = _climb(state, rung, None)
        return Step(replace(state, base_mode="taught"), (told, AskModel()))
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
        broken = _broken_attempt(reading)
        if broken is not None and not ignored:
            return _after_broken_attempt(state, reading.content, broken, plan)
        accepted = Accepted((), ignored, defects=defects)
        return _after_text(state, reading.content, plan, accepted)
    repeats, warnings, events = count_repeats(state, calls, plan)
    fail = check_limits(state, calls, repeats, plan)
    if fail is not None:
        return Step(state, (*events, fail), Accepted(calls, ignored, defects=defects))
    if ignored:
        last, told = calls[-1].id, _tell_ignored(calls, ignored)
        warnings[last] = f"{warnings[last]} {told}" if last in warnings else told
    keep = plan.options.keep_content_with_calls
    content = reading.content if keep else ""
    sample = None
    if reading.content.strip() and not keep:
        sample = reading.content[:_CONTENT_SAMPLE_CHARS]
    message = Message("assistant", content, calls, extra=replied.extra)
    state = replace(
        state,
        history=(*state.history, message),
        calls_seen=state.calls_seen + len(calls),
        used_ids=state.used_ids.union(call.id for call in calls),
        repeats=repeats,
    )
    accepted = Accepted(calls, ignored, sample, defects)
    return Step(state, (*events, RunCalls(calls, warnings)), accepted)


def _note_ignored(calls: tuple[ToolCall, ...], ignored: tuple[ToolCall, ...]) -> tuple[Defect, ...]:
    if not ignored:
        return ()
    note = f"{len(calls)} of {len(calls) + len(ignored)} calls were accepted."
    return (Defect(Code.CALLS_IGNORED, note, "/tool_calls"),)


def _tell_ignored(calls: tuple[ToolCall, ...], ignored: tuple[ToolCall, ...]) -> str:
    """Return what the model is told: the ignored calls are not in the history."""
    return (
        f"Your reply had {len(calls) + len(ignored)} calls; only the first {len(calls)} were "
        "accepted. Make the others again in your next reply if you still need them."
    )


def _broken_attempt(reading: Reading) -> Defect | None:
    found = (item for item in reading.defects if item.code == Code.TOOL_NOT_EXECUTED)
    return next(found, None)


def _after_broken_attempt(state: RunState, content: str, broken: Defect, plan: Plan) -> Step:
    """Tell the model that what it wrote is no call, or tell the user when it was told before."""
    options, accepted = plan.options, Accepted((), ())
    retry = state.tools_enabled and state.parse_retries < options.max_parse_retries
    told = Emit(ToolNotExecuted(reason=broken.message, snippet=broken.place, retrying=retry))
    if not retry:
        notice = f"[tool not executed: {broken.message}]"
        content = f"{content.rstrip()}\n\n{notice}"
        step = _after_text(state, content, plan, accepted)
        return step._replace(effects=(told, *step.effects))
    rung = find_rung(
        state.mode, plan.capabilities, state.escalations, options.max_escalations, None
    )
    way = taught_way(state.mode if rung is None else rung.mode) or "fenced"
    notice = Message("user", tell_not_executed(broken.message, way))
    state = replace(
        state,
        parse_retries=state.parse_retries + 1,
        history=(*state.history, Message("assistant", content), notice),
    )
    state, effect = _next_turn(state, plan, tools_enabled=True)
    if rung is None or not isinstance(effect, AskModel):
        return Step(state, (told, effect), accepted)
    state, climbed = _climb(state, rung, None)
    return Step(state, (told, climbed, effect), accepted)


def _climb(state: RunState, rung: Rung, tool: str | None) -> tuple[RunState, Effect]:
    state = replace(
        state,
        mode=rung.mode,
        forced_tool=rung.forced_tool,
        escalations=state.escalations + 1,
    )
    return state, Emit(Escalated(rung=rung.name, tool=tool, step=state.escalations))


def _after_text(state: RunState, content: str, plan: Plan, accepted: Accepted) -> Step:
    options = plan.options
    if needs_empty_final_repair(
        options,
        content=content,
        calls_run=state.calls_run,
        already_tried=state.empty_final_tried,
    ):
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
    verdict = check_tool_use(
        options,
        calls_seen=state.calls_seen,
        any_success=state.any_success,
        last_ok=state.last_ok,
    )
    if verdict is not None:
        return Step(state, (Fail(*verdict),), accepted)
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
    last_ok = dict(state.last_ok)
    for result in results:
        last_ok[result.name] = result.ok
    changed = any(result.ok and plan.has_effects(result.name) for result in results)
    state = replace(
        state,
        history=state.history + answers,
        calls_run=state.calls_run + len(results),
        any_success=state.any_success or any(result.ok for result in results),
        last_ok=last_ok,
        repeats=repeats_of_last(state, plan) if changed else state.repeats,
        refusals=count_refusals(state.refusals, results),
    )
    # A taught model that repeats itself has what it needs: the next turn is for its answer.
    repeating = taught_way(state.mode) is not None and was_warned(state, plan)
    state, effect = _next_turn(state, plan, tools_enabled=plan.tools_allowed and not repeating)
    stuck = stuck_tool(state.refusals)
    if stuck is None or not isinstance(effect, AskModel):
        return Step(state, (effect,))
    rung = find_rung(
        state.base_mode, plan.capabilities, state.escalations, plan.options.max_escalations, stuck
    )
    if rung is None:
        return Step(state, (effect,))
    state, climbed = _climb(state, rung, stuck)
    return Step(state, (climbed, effect))


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
