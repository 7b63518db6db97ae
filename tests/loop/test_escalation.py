"""When a model counts as stuck on a tool."""

from surecall.errors import Code
from surecall.loop.escalation import count_refusals, stuck_tool
from surecall.records import Envelope, ErrorDetail, ToolResult


def refused(name: str = "look", code: str = Code.ARGUMENTS_INVALID) -> ToolResult:
    """Return the result of a call that was refused."""
    envelope = Envelope(ok=False, tool_name=name, errors=(ErrorDetail(code, "no"),))
    return ToolResult(call_id="c", name=name, envelope=envelope, text="")


def ran(name: str = "look") -> ToolResult:
    """Return the result of a call that ran."""
    envelope = Envelope(ok=True, tool_name=name)
    return ToolResult(call_id="c", name=name, envelope=envelope, text="", executed=True)


def test_two_refusals_in_one_reply_are_one() -> None:
    """The model has not read the first refusal when it makes the second call."""
    once = count_refusals({}, [refused(), refused()])
    assert once == {"look": 1}
    assert stuck_tool(once) is None
    assert stuck_tool(count_refusals(once, [refused()])) == "look"


def test_a_call_that_can_be_used_beside_a_refused_one_is_no_refusal() -> None:
    """Whoever makes one right call of a tool knows how."""
    assert count_refusals({"look": 1}, [refused(), ran()]) == {}
    assert count_refusals({"look": 1}, [ran("other")]) == {"look": 1}
