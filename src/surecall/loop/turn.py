"""What to do next, decided without I/O, clock or randomness.

`next_step(state, happened, plan)` takes what happened and returns the new state and the effects
to perform. The driver in `tool_loop.py` performs them; replaying a run is calling this again.
"""

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError, ProviderStatusError
from surecall.base.records import (
    Defect,
    Escalated,
    Final,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    Reading,
    Receipt,
    ToolCall,
    ToolNotExecuted,
    ToolResult,
    clip,
)
from surecall.calls.teach import tell_not_executed
from surecall.exchange.ladder import Rung, Standing, count_refusals, next_rung, stuck_tool
from surecall.exchange.prompting import taught_way
from surecall.reading import was_text
from surecall.reading.truncation import cut_cause, says_malformed, says_paused

from .guidance import find_missing, find_nudge, may_call_again, note_results
from .history import answer_calls, show_edits
from .next_turn import (
    begin_turn,
    check_limits,
    check_required_tools,
    check_tool_use,
    count_repeats,
    guide_calls,
    needs_empty_final_repair,
    note_repeats,
    nudge_model,
    was_warned,
)
from .output_steps import after_output_failure, after_output_reply, ask_for_output, begin_output
from .plan import Plan
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
from .wording import (
    ECHO_TEXT,
    find_echo,
    note_not_executed,
    tell_not_called,
    tell_refused,
    warn_ignored,
)

DROP_RULE = "drop_parallel_calls"
"""The rule in the receipt of calls that a limit drops."""
_CONTENT_SAMPLE_CHARS = 200
_SNIPPET_CHARS = 200
_MAX_PAUSES = 4
_PAUSED = Defect(
    Code.TURN_PAUSED, "The provider paused the turn, and it cannot be continued.", "finish_reason"
)
_UNREADABLE_CODES = frozenset(
    {Code.ARGUMENTS_JSON_PARSE_ERROR, Code.ARGUMENTS_TOO_DEEP, Code.ARGUMENTS_TRUNCATED}
)
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
    if plan.output is not None and not plan.tools_allowed:
        state = begin_output(state, plan)
    return Step(state, (AskModel(),))


def next_step(state: RunState, happened: Happened, plan: Plan) -> Step:
    """Decide what follows from what happened."""
    if isinstance(happened, Replied):
        return _after_reply(state, happened, plan)
    if isinstance(happened, CallsFinished):
        if happened.usage is not None:
            state = replace(state, usage=state.usage + happened.usage)
        return _after_calls(state, happened.results, plan)
    return _after_failure(state, happened.error, plan)


def _after_failure(state: RunState, error: ProviderError, plan: Plan) -> Step:
    if state.output is not None:
        return after_output_failure(state, error, plan)
    may_escalate = state.escalations < plan.options.max_escalations
    if error.code == Code.NO_TOOL_USE_ENDPOINT and may_escalate and taught_way(state.mode) is None:
        # Nobody serves this model with tools: from now on they are taught.
        step_up = Rung("taught", "taught")
        state, escalated = _escalate(state, step_up, None)
        return Step(replace(state, base_mode="taught"), (escalated, AskModel()))
    if not isinstance(error, ProviderStatusError) or state.retries_left == 0:
        return Step(state, (Reraise(error),))
    state = replace(state, retries_left=state.retries_left - 1, tools_enabled=False)
    retried = ModelRequestRetried(tools_enabled=False, request_attempts_left=state.retries_left)
    return Step(state, (Emit(retried), AskModel()))


def _after_reply(state: RunState, replied: Replied, plan: Plan) -> Step:
    reading = replied.reading
    was_cut = any(call.state == "cut" for call in reading.calls)
    state = replace(state, was_cut=was_cut, is_compensating=False)
    if replied.usage is not None:
        state = replace(state, usage=state.usage + replied.usage)
    if state.output is not None:
        return after_output_reply(state, replied, plan)
    if says_paused(reading.finish_reason) and not reading.calls:
        return _after_pause(state, replied, plan)
    step = _decide(state, replied, plan)
    if not reading.seen:
        return step
    reported = tuple(_report_call(call, retrying=False) for call in reading.seen)
    return step._replace(effects=(*reported, *step.effects))


def _decide(state: RunState, replied: Replied, plan: Plan) -> Step:
    """Decide which calls of a reply are made, or what becomes of its text."""
    reading = replied.reading
    may_call = state.tools_enabled and plan.tool_choice != "none"
    limit = plan.max_calls_per_turn if may_call else 0
    calls, ignored = reading.calls[:limit], () if limit is None else reading.calls[limit:]
    why = plan.calls_limit if may_call else "no tool may be called in this turn"
    defects, receipts = _note_ignored(calls, ignored, why)
    if not calls:
        accepted = Accepted((), ignored, defects=defects, receipts=receipts)
        return _without_calls(state, reading, plan, accepted)
    is_broken = _is_hopeless(reading, calls, plan, state)
    may_retry = not is_broken or _may_try_again(state, calls, plan)
    if is_broken and (_is_nudged_first(state, plan) or not may_retry):
        return _give_up(state, reading, plan)
    held_back = all(map(plan.holds_back, calls))
    repeats = count_repeats(state, calls, plan)
    warnings, events = repeats.warnings, repeats.events
    if held_back:
        events = [*(_report_call(call, retrying=True) for call in calls), *events]
    fail = check_limits(state, calls, repeats, plan)
    if fail is not None and fail.code == Code.REPEATED_CALL and _is_stuck(state, calls, plan):
        return _give_up(state, reading, plan)
    if fail is not None:
        accepted = Accepted(calls, ignored, defects=defects, receipts=receipts)
        return Step(state, (*events, fail), accepted)
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
        parse_retries=state.parse_retries + 1 if is_broken else 0,
        compensations=state.compensations + held_back,
        is_compensating=held_back,
        paused_text="",
    )
    accepted = Accepted(calls, ignored, sample, defects, receipts)
    run_calls = guide_calls(state, RunCalls(calls, warnings), plan)
    return Step(state, (*events, run_calls), accepted)


def _note_ignored(
    calls: tuple[ToolCall, ...], ignored: tuple[ToolCall, ...], limit: str
) -> tuple[tuple[Defect, ...], tuple[Receipt, ...]]:
    """Return what is said about calls that a limit drops."""
    if not ignored:
        return (), ()
    why = f"{len(calls)} of {len(calls) + len(ignored)} calls were accepted: {limit}."
    names = ", ".join(clip(call.name, 64) for call in ignored)
    receipt = Receipt(DROP_RULE, "/tool_calls", names, None, lossless=False, why=why)
    return (Defect(Code.CALLS_IGNORED, why, "/tool_calls"),), (receipt,)


def _report_call(call: ToolCall, *, retrying: bool) -> Emit:
    reason = call.doubt or f"The text seems to call {clip(call.name, 64)}."
    written = call.arguments if call.raw is None else call.raw
    snippet = clip(f"{call.name} {written}", _SNIPPET_CHARS)
    event = ToolNotExecuted(reason=reason, snippet=snippet, retrying=retrying, is_likely=True)
    return Emit(event)


def _without_calls(state: RunState, reading: Reading, plan: Plan, accepted: Accepted) -> Step:
    """Take the text of a reply that makes no calls for what it is."""
    content, ignored = reading.content, accepted.ignored
    broken = _broken_attempt(reading)
    if broken is not None or find_echo(content, state.history) is not None:
        nudged = _nudge_early(state, content, plan, accepted, broken)
        if nudged is not None:
            return nudged
    if broken is not None and not ignored:
        if says_malformed(reading.finish_reason) and not _may_ask_again(state, plan):
            content = ""  # it is the call that the provider could not read, and not an answer
        return _after_broken_attempt(state, content, broken, plan)
    if find_echo(content, state.history) is not None:
        return _after_echo(state, content, plan, accepted)
    if not content.strip() and any(was_text(call) and call.errors for call in ignored):
        content = note_not_executed("", ignored[0].errors[0].message if ignored[0].errors else "")
    held_back = next(filter(plan.holds_back, reading.seen), None) if state.compensations else None
    if held_back is not None:
        reason = f"{held_back.name} was not called in the way that tools are offered."
        content = note_not_executed(content, reason)
    return _after_text(state, content, plan, accepted)


def _may_ask_again(state: RunState, plan: Plan) -> bool:
    return state.tools_enabled and state.parse_retries < plan.options.max_parse_retries


def _is_hopeless(
    reading: Reading, calls: tuple[ToolCall, ...], plan: Plan, state: RunState
) -> bool:
    """Tell whether a reply is nothing but calls whose arguments the model broke itself."""
    reads_text = plan.reads_text(tools_offered=True) or taught_way(state.mode) is not None
    finish = reading.finish_reason
    if cut_cause(finish) is not None and not says_malformed(finish):
        return False
    return all(
        (reads_text or not was_text(call))
        and call.state != "whole"
        and any(error.code in _UNREADABLE_CODES for error in call.errors)
        for call in calls
    )


def _may_try_again(state: RunState, calls: tuple[ToolCall, ...], plan: Plan) -> bool:
    """Tell whether a model that broke its calls may make them again."""
    if state.parse_retries < plan.parse_retries(native=not any(map(was_text, calls))):
        return True
    return _step_up(state, plan, Standing(state.base_mode)) is not None


def _is_stuck(state: RunState, calls: tuple[ToolCall, ...], plan: Plan) -> bool:
    """Tell whether these calls are made again although their arguments were refused before."""
    if not calls or "*" in plan.options.disabled_rules:
        return False
    return all(call.name in state.refusals for call in calls)


def _give_up(state: RunState, reading: Reading, plan: Plan) -> Step:
    """End with the text of a reply, and the note that its calls could not be read."""
    call = reading.calls[0]
    reason = call.errors[0].message if call.errors else call.doubt or tell_refused(call.name)
    snippet = clip(f"{call.name} {call.raw}", _SNIPPET_CHARS)
    broken = Defect(Code.TOOL_NOT_EXECUTED, reason, snippet)
    accepted = Accepted((), reading.calls, defects=(broken,))
    nudged = _nudge_early(state, reading.content, plan, accepted, broken)
    if nudged is not None:
        return nudged
    reported = Emit(ToolNotExecuted(reason=reason, snippet=snippet, retrying=False))
    content = note_not_executed(reading.content, reason)
    step = _after_text(state, content, plan, accepted)
    return step._replace(effects=(reported, *step.effects))


def _end_stuck(state: RunState, call: ToolCall, result: ToolResult, plan: Plan) -> Step:
    """End a run whose turns are used up by calls that were refused, with a note that says it."""
    errors = result.envelope.errors
    reason = errors[0].message if errors else tell_refused(call.name)
    snippet = clip(f"{call.name} {call.raw}", _SNIPPET_CHARS)
    reported = Emit(ToolNotExecuted(reason=reason, snippet=snippet, retrying=False))
    step = _after_text(state, note_not_executed("", reason), plan, Accepted((), ()))
    return step._replace(effects=(reported, *step.effects), accepted=None)


def _after_echo(state: RunState, content: str, plan: Plan, accepted: Accepted) -> Step:
    """Ask once more for an answer in place of a notice that the model was sent."""
    if state.echo_asked or not plan.options.max_parse_retries:
        fail = Fail(
            Code.ANSWER_IS_ECHO,
            "the model answered with a notice that it was sent, and not with an answer.",
            "Look at the last turns of the trace for what it was told and why.",
        )
        history = (*state.history, Message("assistant", content))
        return Step(replace(state, history=history), (fail,), accepted)
    history = (*state.history, Message("assistant", content), Message("user", ECHO_TEXT))
    state = replace(state, echo_asked=True, history=history)
    state, effect = begin_turn(state, plan, tools_enabled=state.tools_enabled)
    return Step(state, (effect,), accepted)


def _after_pause(state: RunState, replied: Replied, plan: Plan) -> Step:
    """Send a turn that the provider paused back as it came, so that the model goes on."""
    reading, accepted = replied.reading, Accepted((), ())
    has_unknown_parts = any(defect.code == Code.PART_NOT_KNOWN for defect in reading.defects)
    is_blank = not reading.content.strip() and not replied.extra
    if has_unknown_parts or is_blank or state.pauses >= _MAX_PAUSES:
        return _after_text(state, reading.content, plan, accepted._replace(defects=(_PAUSED,)))
    message = Message("assistant", reading.content, extra=replied.extra)
    state = replace(
        state,
        history=(*state.history, message),
        pauses=state.pauses + 1,
        paused_text=state.paused_text + reading.content,
    )
    state, effect = begin_turn(state, plan, tools_enabled=state.tools_enabled)
    return Step(state, (effect,), accepted)


def _broken_attempt(reading: Reading) -> Defect | None:
    found = (item for item in reading.defects if item.code == Code.TOOL_NOT_EXECUTED)
    return next(found, None)


def _after_broken_attempt(state: RunState, content: str, broken: Defect, plan: Plan) -> Step:
    """Say to the model that it wrote no call, or to the user when the model was asked again."""
    accepted = Accepted((), ())
    retry = _may_ask_again(state, plan)
    reported = Emit(ToolNotExecuted(reason=broken.message, snippet=broken.place, retrying=retry))
    if not retry:
        content = note_not_executed(content, broken.message)
        step = _after_text(state, content, plan, accepted)
        return step._replace(effects=(reported, *step.effects))
    step_up = _step_up(state, plan, Standing(state.mode))
    way = taught_way(state.mode if step_up is None else step_up.mode)
    told = broken.message
    notice = Message("user", tell_not_executed(told, way) if way else tell_not_called(told))
    state = replace(
        state,
        parse_retries=state.parse_retries + 1,
        history=(*state.history, Message("assistant", content), notice),
    )
    state, effect = begin_turn(state, plan, tools_enabled=True)
    if step_up is None or not isinstance(effect, AskModel):
        return Step(state, (reported, effect), accepted)
    state, escalated = _escalate(state, step_up, None)
    return Step(state, (reported, escalated, effect), accepted)


def _step_up(state: RunState, plan: Plan, standing: Standing) -> Rung | None:
    """Return the next rung that the provider offers and the budget of the run has left."""
    budget = plan.options.max_escalations
    return next_rung(standing, plan.capabilities, climbed=state.escalations, budget=budget)


def _escalate(state: RunState, step_up: Rung, tool: str | None) -> tuple[RunState, Effect]:
    state = replace(
        state,
        mode=step_up.mode,
        forced_tool=step_up.tool,
        escalations=state.escalations + 1,
    )
    return state, Emit(Escalated(rung=step_up.name, tool=tool, step=state.escalations))


def _is_nudged_first(state: RunState, plan: Plan) -> bool:
    """Tell whether the model is asked for what is missing before anything else is tried."""
    guidance = state.guidance
    nudge = find_nudge(plan, guidance, state.mode, calls_seen=state.calls_seen)
    return nudge is not None and bool(nudge.missing)


def _nudge_early(
    state: RunState, content: str, plan: Plan, accepted: Accepted, broken: Defect | None
) -> Step | None:
    """Ask for what is missing before anything else is tried, and report what was broken."""
    if not _is_nudged_first(state, plan):
        return None
    step = nudge_model(state, content, plan, accepted)
    if step is None or broken is None:
        return step
    reported = Emit(ToolNotExecuted(reason=broken.message, snippet=broken.place, retrying=True))
    return step._replace(effects=(reported, *step.effects))


def _after_text(state: RunState, content: str, plan: Plan, accepted: Accepted) -> Step:
    nudged = nudge_model(state, content, plan, accepted)
    if nudged is not None:
        return nudged
    options, answer = plan.options, state.paused_text + content
    is_done = plan.output is None and not find_missing(plan, state.guidance)
    if is_done and needs_empty_final_repair(state, answer, options):
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
        state, effect = begin_turn(state, plan, tools_enabled=tools_enabled)
        return Step(state, (Emit(asked), effect), accepted)
    if plan.output is None or content.strip():
        state = replace(state, history=(*state.history, Message("assistant", content)))
    fail = check_required_tools(state, plan) or check_tool_use(state, options)
    if fail is not None:
        return Step(state, (fail,), accepted)
    if plan.output is not None:
        return ask_for_output(state, plan, answer, accepted)
    final = Final(
        assistant_content_bytes=len(answer.encode("utf-8", "replace")),
        any_tool_calls_seen=state.calls_seen > 0,
        any_tool_success_seen=state.any_success,
    )
    if not answer.strip():
        accepted = accepted._replace(defects=(*accepted.defects, _EMPTY))
    return Step(state, (Emit(final), Finish(answer)), accepted)


def _may_stop(state: RunState, results: tuple[ToolResult, ...], plan: Plan) -> bool:
    has_run = any(result.executed for result in results)
    return has_run and plan.output is None and not find_missing(plan, state.guidance)


def _stop(state: RunState, plan: Plan) -> Step:
    """End the run without an answer: what its calls did is all that is wanted."""
    fail = check_tool_use(state, plan.options)
    if fail is not None:
        return Step(state, (fail,))
    final = Final(
        assistant_content_bytes=0,
        any_tool_calls_seen=True,
        any_tool_success_seen=state.any_success,
    )
    return Step(state, (Emit(final), Finish("")))


def _after_calls(state: RunState, results: tuple[ToolResult, ...], plan: Plan) -> Step:
    calls = list(zip(state.last_keys, state.history[-1].tool_calls, strict=True))
    is_repeated = any(key in state.guidance.reads for key, _ in calls)
    changed = any(result.ok and plan.has_effects(result.name) for result in results)
    note = note_repeats(state, calls, results, plan)
    if note is None:
        history = show_edits(state.history, results) + answer_calls(results)
    else:
        history = (*state.history[:-1], note)
    state = replace(
        state,
        history=history,
        calls_run=state.calls_run + len(results),
        any_success=state.any_success or any(result.ok for result in results),
        last_ok={**state.last_ok, **{result.name: result.ok for result in results}},
        # A success with effects has changed the world: only the calls just made count on.
        repeats={key: state.repeats[key] for key in state.last_keys if key in state.repeats}
        if changed
        else state.repeats,
        refusals=count_refusals(state.refusals, results),
        guidance=note_results(plan, state.guidance, calls, results),
    )
    if plan.options.stop_after_calls and _may_stop(state, results, plan):
        return _stop(state, plan)
    # A taught model that repeats itself has what it needs, unless something required is missing:
    # the next turn is for its answer.
    repeating = taught_way(state.mode) is not None and was_warned(state, plan)
    may_call = may_call_again(plan, state.guidance, state.mode)
    if repeating and not find_missing(plan, state.guidance):
        may_call = False
    wanted = tuple(call for _, call in calls)
    state, effect = begin_turn(state, plan, tools_enabled=plan.tools_allowed and may_call)
    if isinstance(effect, Fail) and _is_stuck(state, wanted, plan):
        return _end_stuck(state, wanted[0], results[0], plan)
    if is_repeated:
        state = replace(state, guidance=replace(state.guidance, is_narrow=True))
    stuck = stuck_tool(state.refusals)
    if stuck is None or not isinstance(effect, AskModel):
        return Step(state, (effect,))
    step_up = _step_up(state, plan, Standing(state.base_mode, stuck))
    if step_up is None:
        return Step(state, (effect,))
    state, escalated = _escalate(state, step_up, stuck)
    return Step(state, (escalated, effect))
