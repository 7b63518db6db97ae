"""What to do next, decided without I/O, clock or randomness.

`next_step(state, happened, plan)` takes what happened and returns the new state and the effects
to perform. The driver in `tool_loop.py` performs them; replaying a run is calling this again.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError, ProviderStatusError
from surecall.base.records import (
    CallRepeated,
    Defect,
    Escalated,
    Final,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    Reading,
    Receipt,
    StepNudged,
    ToolCall,
    ToolNotExecuted,
    ToolResult,
    as_run,
    clip,
)
from surecall.calls.teach import tell_not_executed
from surecall.exchange.ladder import (
    Rung,
    Standing,
    count_refusals,
    find_list_rung,
    next_rung,
    stuck_tool,
    takes_list,
)
from surecall.exchange.prompting import taught_way
from surecall.reading import was_text
from surecall.reading.truncation import cut_cause, says_malformed, says_paused
from surecall.text import canonical_hash

from .guidance import (
    Nudge,
    find_missing,
    find_nudge,
    find_steps,
    is_guided,
    may_call_again,
    note_results,
    refuse_not_ready,
)
from .options import Options
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
    NOTICES,
    note_not_executed,
    tell_not_called,
    tell_not_finished,
    tell_refused,
    tell_same_failure,
    tell_same_read,
    warn_ignored,
    warn_repeated,
    warn_same_read,
)

DROP_RULE = "drop_parallel_calls"
"""The rule in the receipt of calls that a limit drops."""
_CONTENT_SAMPLE_CHARS = 200
_SNIPPET_CHARS = 200
_MAX_PAUSES = 4
_PAUSED = Defect(
    Code.TURN_PAUSED, "The provider paused the turn, and it cannot be continued.", "finish_reason"
)
_NOT_TAKEN = frozenset({400, 404, 422, 501})
"""Statuses by which a provider may refuse the way in which it is asked."""
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
        for check in happened.fit_checks:
            if check.usage is not None:
                state = replace(state, usage=state.usage + check.usage)
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
    if state.single is not None and isinstance(error, ProviderStatusError):
        # Asking for a list must cost nothing but a request: the turn is asked again as it was.
        state = replace(state, mode=state.base_mode, forced_tool=None, single=None)
        return Step(state, (AskModel(),))
    if state.is_escalated and getattr(error, "status", None) in _NOT_TAKEN:
        # What the provider does not take is passed over, as if it had not been tried.
        step_up = _step_up(state, plan, Standing(state.base_mode, state.forced_tool))
        if step_up is not None:
            state, escalated = _escalate(state, step_up, state.forced_tool)
            return Step(state, (escalated, AskModel()))
        state = replace(state, mode=state.base_mode, forced_tool=None, is_escalated=False)
        return Step(state, (AskModel(),))
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
    if says_paused(reading.finish_reason) and not reading.calls and state.single is None:
        return _after_pause(state, replied, plan)
    step = _decide(state, replied, plan)
    if not reading.seen:
        return step
    reported = tuple(_report_call(call, retrying=False) for call in reading.seen)
    return step._replace(effects=(*reported, *step.effects))


def _decide(state: RunState, replied: Replied, plan: Plan) -> Step:
    """Decide which calls of a reply are made, or what becomes of its text."""
    if state.single is not None:
        state, replied = _choose_calls(state, state.single, replied, plan)
    reading = replied.reading
    may_call = state.tools_enabled and plan.tool_choice != "none"
    limit = plan.max_calls_per_turn if may_call else 0
    calls, ignored = reading.calls[:limit], () if limit is None else reading.calls[limit:]
    defects, receipts = (), ()
    if ignored:
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
    if _may_be_one_of_several(state, calls, plan) and not held_back:
        state = replace(state, single=replied)
        run_calls = replace(run_calls, asks_for_all=True)
    return Step(state, (*events, run_calls), accepted)


def _may_be_one_of_several(state: RunState, calls: tuple[ToolCall, ...], plan: Plan) -> bool:
    """Tell whether the model is asked for a list of calls before the first call of a run."""
    options = plan.options
    is_first = state.calls_seen == 1 and not state.is_escalated
    has_room = options.stop_after_calls or state.turn + 2 < options.max_turns
    may_ask = state.escalations < options.max_escalations and has_room
    takes_several = plan.max_calls_per_turn != 1 and options.max_tool_calls != 1
    if not (is_first and may_ask and takes_several) or is_guided(plan, state.guidance):
        return False
    rung = find_list_rung(calls, state.mode, plan.capabilities)
    return rung is not None and any(tool.name == rung.tool for tool in plan.tools)


def _ask_for_all(state: RunState, single: Replied, plan: Plan) -> Step:
    """Ask for a list of all calls of a tool that fits, in the place of the one that was made."""
    rung = find_list_rung(single.reading.calls, state.mode, plan.capabilities)
    assert rung is not None
    state = replace(state, history=state.history[:-1], calls_seen=0, repeats={}, last_keys=())
    state, effect = begin_turn(state, plan, tools_enabled=True)
    state, escalated = _escalate(state, rung, rung.tool)
    return Step(state, (escalated, effect))


def _choose_calls(
    state: RunState, single: Replied, listed: Replied, plan: Plan
) -> tuple[RunState, Replied]:
    """Return the list of calls that was asked for or, if it is of no use, the one made before."""
    state = replace(state, single=None)
    reading, limit = listed.reading, plan.options.max_tool_calls
    tool = single.reading.calls[0].name
    fits_budget = limit is None or len(reading.calls) <= limit
    if fits_budget and takes_list(reading.calls, tool, reading.finish_reason):
        return state, listed
    return replace(state, mode=state.base_mode, forced_tool=None), single


def _note_ignored(
    calls: tuple[ToolCall, ...], ignored: tuple[ToolCall, ...], limit: str
) -> tuple[tuple[Defect, ...], tuple[Receipt, ...]]:
    """Return what is said about calls that a limit drops."""
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
    broken, is_echo = _broken_attempt(reading), _is_echo(content, state.history)
    if broken is not None or is_echo:
        nudged = _nudge_early(state, content, plan, accepted, broken)
        if nudged is not None:
            return nudged
    if broken is not None and not ignored:
        if says_malformed(reading.finish_reason) and not _may_ask_again(state, plan):
            content = ""  # it is the call that the provider could not read, and not an answer
        return _after_broken_attempt(state, content, broken, plan)
    if is_echo:
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


def _is_echo(text: str, history: Iterable[Message]) -> bool:
    """Tell whether a text repeats a notice that the model was sent."""
    said = next((words for words in NOTICES if words in text), None)
    if said is None:
        return False
    return any(said in message.text for message in history if message.role in ("user", "tool"))


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
        is_escalated=True,
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
    single, state = state.single, replace(state, single=None)
    if single is not None and not results:
        return _ask_for_all(replace(state, single=single), single, plan)
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


def answer_calls(results: Iterable[ToolResult]) -> tuple[Message, ...]:
    """Return the messages in which a model reads the results of its calls."""
    return tuple(
        Message(
            "tool",
            result.text,
            tool_call_id=result.call_id,
            extra={} if result.ok else {"is_error": True},
        )
        for result in results
    )


def show_edits(history: tuple[Message, ...], results: Sequence[ToolResult]) -> tuple[Message, ...]:
    """Return a history whose last calls have the arguments that they ran with."""
    if all(result.arguments is None for result in results):
        return history
    *before, message = history
    return (*before, replace(message, tool_calls=as_run(message.tool_calls, results)))


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
        is_escalated=False,
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
