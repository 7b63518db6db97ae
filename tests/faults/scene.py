"""One small task that every fault is met with: one call of one tool, then an answer."""

import json
from dataclasses import dataclass, field
from typing import Any

import surecall
from surecall.faults import Fault
from surecall.models.transport import Transport
from surecall.tools import Tool

__all__ = ["ARGUMENTS", "PROMPT", "Outcome", "meet"]

ARGUMENTS: dict[str, Any] = {
    "text": "Zoë said: it's 5 < 6\nand left.",
    "count": 3,
    "tags": ["a"],
    "urgent": True,
}
PROMPT = f"call save with {json.dumps(ARGUMENTS, ensure_ascii=False)}"


@dataclass
class Outcome:
    """What came of a run: its answer or its code, what ran, and which refusals the model read."""

    text: str | None = None
    code: str | None = None
    saved: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    refusals: list[str] = field(default_factory=list[str])
    receipts: int = 0


def _tools(saved: list[dict[str, Any]]) -> list[Tool[..., Any]]:
    @surecall.tool(effect="read")
    def look(what: str = "") -> dict[str, Any]:
        """Look at something."""
        return {"seen": what}

    @surecall.tool(effect="write")
    def save(text: str, count: int, tags: list[str], urgent: bool = False) -> dict[str, Any]:
        """Save a text."""
        saved.append({"text": text, "count": count, "tags": tags, "urgent": urgent})
        return {"saved": len(saved)}

    return [look, save]


async def meet(
    fault: Fault, transport: Transport, *, stream: bool, protocol: str = "chat_completions"
) -> Outcome:
    """Run the task against a provider with a fault in every reply."""
    outcome = Outcome()
    try:
        result = await surecall.run(
            PROMPT,
            model=f"faults:{fault.name}",
            tools=_tools(outcome.saved),
            transport=transport,
            protocol=protocol,
            preset=(),
            stream=stream,
            **fault.options,
        )
    except surecall.SurecallError as error:
        outcome.code = error.code
        trace = getattr(error, "trace", None)
    else:
        outcome.text = result.text
        trace = result.trace
    for turn in trace.turns if trace is not None else ():
        outcome.receipts += len(turn.all_receipts)
        outcome.refusals += [code for item in turn.results for code in item.envelope.error_codes]
    return outcome
