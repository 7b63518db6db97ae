"""What is tried when a model keeps sending a call that cannot be used.

Repair, coercion and the exact errors come first, on every turn. When the same tool is refused a
second time in a row, the next request goes one step up: a forced choice of that tool, a schema its
reply is held to, or a taught form, whichever the provider offers. When that is refused as well, the
next step follows at once. One budget covers all steps.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from surecall.base.errors import Code
from surecall.base.records import ToolResult
from surecall.models.profiles import Capabilities

from .prompting import PromptMode

_REFUSED: Final = frozenset(
    {
        Code.ARGUMENTS_INVALID,
        Code.ARGUMENTS_JSON_PARSE_ERROR,
        Code.ARGUMENTS_TOO_DEEP,
        Code.ARGUMENTS_TOO_LARGE,
        Code.ARGUMENTS_TRUNCATED,
        Code.CALL_NOT_CERTAIN,
    }
)
_STUCK_AFTER: Final = 2


class Escalation(NamedTuple):
    """One step up: how to ask, and for which tool alone."""

    name: str
    mode: PromptMode
    forced_tool: str | None


def count_refusals(refusals: Mapping[str, int], results: Iterable[ToolResult]) -> dict[str, int]:
    """Count per tool how many replies in a row had no call of it that could be used.

    Calls of one reply were made at once: several that are refused are one mistake.
    """
    was_refused: dict[str, bool] = {}
    for result in results:
        refused = not result.executed and any(
            code in _REFUSED for code in result.envelope.error_codes
        )
        was_refused[result.name] = was_refused.get(result.name, True) and refused
    counted = dict(refusals)
    for name, refused in was_refused.items():
        if refused:
            counted[name] = counted.get(name, 0) + 1
        else:
            counted.pop(name, None)
    return counted


def stuck_tool(refusals: Mapping[str, int]) -> str | None:
    """Return the tool whose call was refused although the model knows why."""
    return next((name for name, count in refusals.items() if count >= _STUCK_AFTER), None)


def find_escalation(
    mode: PromptMode, capabilities: Capabilities, used: int, budget: int, tool: str | None
) -> Escalation | None:
    """Return the next step that the provider offers, or `None` when there is none left."""
    ladder: list[Escalation] = []
    if tool is not None and mode in ("native", "strict"):
        if capabilities.strict_tools:
            ladder.append(Escalation("strict_tool", "strict", tool))
        elif "named" in capabilities.tool_choices:
            ladder.append(Escalation("forced_choice", "native", tool))
    if capabilities.json_schema and mode != "constrained":
        ladder.append(Escalation("schema", "constrained", tool))
    if mode in ("native", "strict"):
        ladder.append(Escalation("taught", "taught", None))
    ladder = ladder[:budget]
    return ladder[used] if used < len(ladder) else None
