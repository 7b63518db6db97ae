"""Whether a reply without calls may end the run."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from surecall.errors import Code

from .options import Options

__all__ = ["ToolUseVerdict", "check_tool_use", "needs_empty_final_repair"]


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
