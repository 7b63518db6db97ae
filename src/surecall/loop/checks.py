"""What a run may do: how many calls, how often the same one, and when an answer may end it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from surecall.errors import Code
from surecall.jsontext import canonical_hash
from surecall.records import CallRepeated, ToolCall

from .options import Options
from .plan import Plan
from .steps import Effect, Emit, Fail, RunState

__all__ = [
    "ToolUseVerdict",
    "check_limits",
    "check_tool_use",
    "count_repeats",
    "needs_empty_final_repair",
    "repeats_of_last",
    "was_warned",
]


def check_limits(
    state: RunState, calls: tuple[ToolCall, ...], repeats: dict[str, int], plan: Plan
) -> Fail | None:
    """Return why the run ends before these calls run, if it does."""
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


def count_repeats(
    state: RunState, calls: tuple[ToolCall, ...], plan: Plan
) -> tuple[dict[str, int], dict[str, str], tuple[Effect, ...]]:
    """Count the calls among those made before; return the counts, warnings and events."""
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


def was_warned(state: RunState, plan: Plan) -> bool:
    """Tell whether some call was made as often as is allowed."""
    limit = plan.options.max_identical_calls
    return limit is not None and any(count >= limit for count in state.repeats.values())


def repeats_of_last(state: RunState, plan: Plan) -> dict[str, int]:
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


class ToolUseVerdict(NamedTuple):
    """Why enforced tool use was not met."""

    code: str
    message: str
    hint: str
    details: dict[str, Any]


def needs_empty_final_repair(
    options: Options, *, content: str, calls_run: int, already_tried: bool
) -> bool:
    """Tell whether the final answer is empty and may be asked for once more."""
    return (
        options.fix_empty_final
        and not already_tried
        and options.tool_use_mode != "disabled"
        and not content.strip()
        and calls_run > 0
    )


def check_tool_use(
    options: Options, *, calls_seen: int, any_success: bool, last_ok: Mapping[str, bool]
) -> ToolUseVerdict | None:
    """Check what `enforced` mode demands; `None` when it is met."""
    if options.tool_use_mode != "enforced":
        return None
    if calls_seen == 0:
        return ToolUseVerdict(
            Code.NO_TOOL_CALLS,
            "the model answered without calling a tool, and tool use is enforced.",
            "Use tool_choice='required', a clearer system text, or tool_use_mode='relaxed'.",
            {},
        )
    failed = sorted(name for name, ok in last_ok.items() if not ok)
    if options.tool_failure_policy == "fatal" and failed:
        return ToolUseVerdict(
            Code.TOOL_ERROR,
            f"the last call of {', '.join(failed)} failed, and tool_failure_policy is 'fatal'.",
            "See the tool's result in the trace; 'tolerated' accepts a run with one success.",
            {"failed_tools": failed},
        )
    if options.tool_failure_policy == "tolerated" and not any_success:
        return ToolUseVerdict(
            Code.TOOL_ERROR,
            "no tool call succeeded, and tool use is enforced.",
            "See the results in the trace.",
            {"failed_tools": failed},
        )
    return None
