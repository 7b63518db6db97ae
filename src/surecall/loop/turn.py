"""What to do next, decided without I/O, clock or randomness.

`next_step(state, happened, plan)` takes what happened and returns the new state and the effects
to perform. The driver in `tool_loop.py` performs them; replaying a run is calling this again.
"""

from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import Code, ProviderError, ProviderStatusError
from surecall.formats.teach import tell_not_executed
from surecall.jsontext import canonical_hash
from surecall.records import (
    CallRepeated,
    Defect,
    Escalated,
    Event,
    Final,
    FixEmptyFinal,
    Message,
    ModelRequestRetried,
    Reading,
    ToolCall,
    ToolNotExecuted,
    ToolResult,
    Usage,
)

from .escalation import Rung, count_refusals, find_rung, stuck_tool
from .finals import check_tool_use, needs_empty_final_repair
from .plan import Plan
from .prompting import PromptMode, taught_way

__all__ = [
    "Accepted",
    "AskModel",
    "CallsFinished",
    "Effect",
    "Emit",
    "Fail",
    "Finish",
    "Happened",
    "Replied",
    "RequestFailed",
    "Reraise",
    "RunCalls",
    "RunState",
    "Step",
    "begin",
    "next_step",
]

_CONTENT_SAMPLE_CHARS = 200


class RunState(Struct, frozen=True, kw_only=True):
    """All that a run remembers between steps."""

    history: tuple[Message, ...]
    turn: int = 0
    tools_enabled: bool = True
    retries_left: int = 0
    empty_final_tried: bool = False
    calls_seen: int = 0
    calls_run: int = 0
    any_success: bool = False
    last_ok: dict[str, bool] = {}
    """Per tool name, whether its last result was a success."""
    repeats: dict[str, int] = {}
    """How often each call was made since a tool with effects last succeeded."""
    used_ids: frozenset[str] = frozenset()
    usage: Usage = Usage()
    base_mode: PromptMode = "native"
    """How tools are put to the model when nothing special is tried."""
    mode: PromptMode = "native"
    """How tools are put to the model in this turn."""
    forced_tool: str | None = None
    """The one tool that is asked for in this turn."""
    refusals: dict[str, int] = {}
    """Per tool name, how often in a row its arguments could not be used."""
    escalations: int = 0
    parse_retries: int = 0


class Replied(Struct, frozen=True):
    """The model answered and the answer was read."""

    reading: Reading
    usage: Usage | None = None
    extra: dict[str, Any] = {}
    """Fields of the message to echo when it carries calls."""


class RequestFailed(Struct, frozen=True):
    """The model could not be asked."""

    error: ProviderError


class CallsFinished(Struct, frozen=True):
    """Every accepted call has its result."""

    results: tuple[ToolResult, ...]


Happened = Replied | RequestFailed | CallsFinished


class AskModel(Struct, frozen=True):
    """Send the history to the model."""


class RunCalls(Struct, frozen=True):
    """Run the calls; `warnings` are told to the model with the result of that call."""

    calls: tuple[ToolCall, ...]
    warnings: dict[str, str] = {}


class Finish(Struct, frozen=True):
    """The run has its answer."""

    text: str


class Fail(Struct, frozen=True):
    """The run ends without an answer."""

    code: str
    message: str
    hint: str
    details: dict[str, Any] = {}


class Reraise(Struct, frozen=True):
    """The run ends with the provider's error."""

    error: ProviderError


class Emit(Struct, frozen=True):
    """Tell the listeners."""

    event: Event


Effect = AskModel | RunCalls | Finish | Fail | Reraise | Emit


class Accepted(NamedTuple):
    """Which calls of a reply are kept, which are not, and what was left out of the history."""

    calls: tuple[ToolCall, ...]
    ignored: tuple[ToolCall, ...]
    content_sample: str | None = None
    """Start of the text that came beside the calls and is not kept in the history."""


class Step(NamedTuple):
    """The new state, what to do, and what was accepted of a reply."""

    state: RunState
    effects: tuple[Effect, ...]
    accepted: Accepted | None = None


def begin(plan: Plan) -> Step:
    """Start a run."""
    used_ids = frozenset(call.id for message in plan.messages for call in message.tool_calls)
    state = RunState(
        history=plan.messages,
        tools_enabled=plan.tools_allowed,
        retries_left=plan.retries_per_turn,
        used_ids=used_ids,
        base_mode=plan.mode,
        mode=plan.mode,
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
    if error.code == Code.NO_TOOL_USE_ENDPOINT and state.escalations < plan.options.max_escalations:
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
    if replied.usage is not None:
        state = replace(state, usage=state.usage + replied.usage)
    may_call = state.tools_enabled and plan.tool_choice != "none"
    limit = plan.max_calls_per_turn if may_call else 0
    calls, ignored = reading.calls[:limit], reading.calls[limit or 0 :]
    if limit is None:
        ignored = ()
    if not calls:
        broken = _broken_attempt(reading)
        if broken is not None and not ignored:
            return _after_broken_attempt(state, reading.content, broken, plan)
        return _after_text(state, reading.content, plan, Accepted((), ignored))
    repeats, warnings, events = _count_repeats(state, calls, plan)
    fail = _check_limits(state, calls, repeats, plan)
    if fail is not None:
        return Step(state, (*events, fail), Accepted(calls, ignored))
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
    return Step(state, (*events, RunCalls(calls, warnings)), Accepted(calls, ignored, sample))


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
        refusals={},
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
        repeats=_repeats_of_last(state, plan) if changed else state.repeats,
        refusals=count_refusals(state.refusals, results),
    )
    # A taught model that repeats itself has what it needs: the next turn is for its answer.
    repeating = taught_way(state.mode) is not None and _was_warned(state, plan)
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
        mode=state.base_mode,
        forced_tool=None,
    )
    return state, AskModel()


def _check_limits(
    state: RunState, calls: tuple[ToolCall, ...], repeats: dict[str, int], plan: Plan
) -> Fail | None:
    options = plan.options
    if options.max_run_tokens is not None and state.usage.total_tokens > options.max_run_tokens:
        return Fail(
            Code.TOKEN_BUDGET_EXCEEDED,
            f"{state.usage.total_tokens} tokens were used, {options.max_run_tokens} are allowed.",
            "Raise max_run_tokens, or send less history and smaller tool results.",
            {"tokens": state.usage.total_tokens, "max_run_tokens": options.max_run_tokens},
        )
    wanted = state.calls_run + len(calls)
    if options.max_tool_calls is not None and wanted > options.max_tool_calls:
        return Fail(
            Code.CALL_BUDGET_EXCEEDED,
            f"the model asked for call number {wanted}, {options.max_tool_calls} are allowed.",
            "Raise max_tool_calls; none of the calls of the last reply was run.",
            {"calls": wanted, "max_tool_calls": options.max_tool_calls},
        )
    limit = options.max_identical_calls
    if limit is None:
        return None
    for call in calls:
        count = repeats.get(_call_key(call, plan), 0)
        if count > limit:
            return Fail(
                Code.REPEATED_CALL,
                f"the model made the same call of {call.name} {count} times, also after a warning.",
                "Mark tools that are meant to be polled with polling=True, "
                "or raise max_identical_calls.",
                {"tool": call.name, "count": count},
            )
    return None


def _count_repeats(
    state: RunState, calls: tuple[ToolCall, ...], plan: Plan
) -> tuple[dict[str, int], dict[str, str], tuple[Effect, ...]]:
    limit = plan.options.max_identical_calls
    if limit is None:
        return state.repeats, {}, ()
    repeats = dict(state.repeats)
    warnings: dict[str, str] = {}
    events: list[Effect] = []
    for call in calls:
        key = _call_key(call, plan)
        if not key:
            continue
        repeats[key] = count = repeats.get(key, 0) + 1
        if count == limit:
            warnings[call.id] = (
                f"This is the same call with the same arguments for the {count}. time. "
                "Use the result you have, change the arguments, or give your final answer: "
                "one more repetition ends the run."
            )
            events.append(Emit(CallRepeated(name=call.name, count=count)))
    return repeats, warnings, tuple(events)


def _was_warned(state: RunState, plan: Plan) -> bool:
    limit = plan.options.max_identical_calls
    return limit is not None and any(count >= limit for count in state.repeats.values())


def _repeats_of_last(state: RunState, plan: Plan) -> dict[str, int]:
    """Forget all counts but those of the calls just made: the world has changed since."""
    for message in reversed(state.history):
        if message.role == "assistant":
            keys = {_call_key(call, plan) for call in message.tool_calls}
            return {key: count for key, count in state.repeats.items() if key in keys}
    return {}


def _call_key(call: ToolCall, plan: Plan) -> str:
    """Return a key equal for equal calls; empty for calls whose repetition is no sign of a loop."""
    if call.name in plan.polling_tools:
        return ""
    if call.arguments is None:
        return f"{call.name} {canonical_hash(str(call.raw))}"
    return f"{call.name} {canonical_hash(call.arguments, finite=True)}"
