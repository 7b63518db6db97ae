"""Builders shared by the tests of the loop."""

from typing import Any

from surecall.base.records import Envelope, Message, Reading, ToolCall, ToolResult, ToolSpec, Usage
from surecall.loop import Options, Plan, make_plan
from surecall.loop.steps import Replied, RunState
from surecall.models.profiles import Capabilities

__all__ = ["READ", "WRITE", "call_of", "plan_of", "replied", "result_of", "state_of"]

READ = ToolSpec(name="look", effect="read")
WRITE = ToolSpec(name="save", effect="write")
POLL = ToolSpec(name="wait", effect="read", polling=True)


def plan_of(*, tools: tuple[ToolSpec, ...] = (READ, WRITE, POLL), **options: Any) -> Plan:
    """Return a plan with three tools and these options."""
    return make_plan(
        model="m",
        messages=(Message("user", "hi"),),
        tools=tools,
        options=Options(**options),
        origins={},
        capabilities=Capabilities(),
        capability_origins={},
    )


def state_of(**fields: Any) -> RunState:
    """Return the state of a run in the middle."""
    return RunState(**{"history": (Message("user", "hi"),), **fields})


def call_of(name: str = "look", call_id: str = "c1", **arguments: Any) -> ToolCall:
    """Return a call that was read without trouble."""
    return ToolCall(id=call_id, name=name, arguments=arguments, raw="{}")


def result_of(name: str = "look", call_id: str = "c1", *, ok: bool = True) -> ToolResult:
    """Return the result of a call."""
    envelope = Envelope(True, name) if ok else Envelope.failure(name, "INTERNAL_ERROR", "no")
    return ToolResult(call_id=call_id, name=name, envelope=envelope, text=f"{name} {ok}")


def replied(*calls: ToolCall, content: str = "", tokens: int = 0) -> Replied:
    """Return an answer with these calls."""
    usage = Usage(total_tokens=tokens) if tokens else None
    return Replied(Reading(calls=calls, content=content), usage)
