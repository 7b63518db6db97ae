"""What a run may do: how many calls, how often the same one, and when an answer may end it."""

from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.records import CallRepeated, ToolCall
from surecall.text import canonical_hash

from .guidance import find_missing
from .options import Options
from .plan import Plan
from .steps import Effect, Emit, Fail, RunState
from .wording import warn_repeated


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
