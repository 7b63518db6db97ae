"""What a run would do with each call of a recorded reply, without running anything."""

import asyncio
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.errors import Code
from surecall.records import Reading, Receipt, ToolCall, ToolResult
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext

from .progress import count_of

__all__ = ["Outcome", "Verdict", "judge_calls", "judge_reading"]


_WORDS: Final = {
    "would_run": "would run",
    "not_checked": "readable, not checked against tools",
    "refused": "refused",
}


class Outcome(Struct, frozen=True, kw_only=True):
    """What a run would do with one call."""

    call: ToolCall
    what: Literal["would_run", "refused", "not_checked"]
    codes: tuple[str, ...] = ()
    result: ToolResult | None = None
    """What the model would be told, when the call is refused."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What a run would do with the whole reply."""

    ok: bool
    """Whether nothing is refused."""
    is_checked: bool
    """Whether the tools were there to check against."""
    summary: str
    calls: int = 0
    would_run: int = 0
    refused: int = 0
    not_checked: int = 0
    codes: tuple[str, ...] = ()
    changes: int = 0
    lossy_changes: int = 0
    error: dict[str, Any] | None = None
    """Why there is no reply at all, when that is so."""


def judge_calls(reading: Reading, tools: MaskedRegistry) -> tuple[Outcome, ...]:
    """Send every call through the checks of a run; behind them is nothing that acts."""
    return asyncio.run(_dispatch(reading.calls, tools)) if reading.calls else ()


async def _dispatch(calls: tuple[ToolCall, ...], tools: MaskedRegistry) -> tuple[Outcome, ...]:
    dispatcher = Dispatcher(tools)
    outcomes: list[Outcome] = []
    for call in calls:
        result = await dispatcher.dispatch(call, ToolContext(call_id=call.id))
        codes = result.envelope.error_codes
        if result.executed:
            outcomes.append(Outcome(call=call, what="would_run"))
        elif not len(tools) and codes == (Code.TOOL_NOT_ALLOWED,):
            outcomes.append(Outcome(call=call, what="not_checked"))
        else:
            outcomes.append(Outcome(call=call, what="refused", codes=codes, result=result))
    return tuple(outcomes)


def judge_reading(reading: Reading, outcomes: tuple[Outcome, ...], *, has_tools: bool) -> Verdict:
    """Count what would happen, and say it in one line."""
    counts = {what: sum(outcome.what == what for outcome in outcomes) for what in _WORDS}
    codes = tuple(dict.fromkeys(str(code) for outcome in outcomes for code in outcome.codes))
    receipts = [*reading.receipts, *(item for call in reading.calls for item in call.receipts)]
    parts: list[str] = []
    for what, words in _WORDS.items():
        named = f"{words} ({', '.join(codes)})" if what == "refused" else words
        if counts[what]:
            parts.append(named if len(outcomes) == 1 else f"{counts[what]} {named}")
    calls = f"{count_of(len(outcomes), 'call')}: {', '.join(parts)}" if parts else "no calls"
    if not parts and not has_tools and reading.content:
        calls = "no calls; calls written as text were not looked for"
    return Verdict(
        ok=not counts["refused"],
        is_checked=has_tools,
        summary=f"{calls}; {_changes_text(receipts)}",
        calls=len(outcomes),
        would_run=counts["would_run"],
        refused=counts["refused"],
        not_checked=counts["not_checked"],
        codes=codes,
        changes=len(receipts),
        lossy_changes=sum(not receipt.lossless for receipt in receipts),
    )


def _changes_text(receipts: list[Receipt]) -> str:
    lossy = sum(not receipt.lossless for receipt in receipts)
    if not receipts:
        return "no changes"
    changes = count_of(len(receipts), "change")
    if lossy:
        return f"{changes}, lossy" if len(receipts) == 1 else f"{changes}, {lossy} of them lossy"
    return f"{changes}, lossless" if len(receipts) == 1 else f"{changes}, all lossless"
