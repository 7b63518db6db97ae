"""When a model counts as stuck on a tool."""

from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.base.records import Envelope, ErrorDetail, ToolNotExecuted, ToolResult
from surecall.exchange.ladder import count_refusals, stuck_tool
from surecall.loop.replay import replay_trace
from surecall.models.transport import ScriptedTransport

from .toolbox import assistant, run_script, saved, tool_call


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


UNREADABLE = "用两个数字"
"""Arguments that are not JSON and hold nothing to make any of."""


def native_call(arguments: Any) -> Any:
    """Return a reply with one call in the place that is made for it."""
    return assistant(None, tool_call("save", arguments))


@pytest.mark.parametrize(
    ("given", "requests"),
    [({}, 4), ({"max_parse_retries": 0}, 1), ({"max_parse_retries": 2}, 3)],
    ids=["default", "none", "two"],
)
async def test_native_arguments_that_are_never_json_end_with_a_notice(
    given: dict[str, Any], requests: int
) -> None:
    """The model is told and asked again so often; then the answer says that nothing ran."""
    heard: list[Any] = []
    transport = ScriptedTransport(lambda request: native_call(f"{UNREADABLE} {len(heard)}"))
    result = await run_script([], transport=transport, on_event=heard.append, **given)
    assert len(transport.requests) == requests
    assert "[tool not executed: " in result.text
    assert saved == []
    notices = [event for event in heard if isinstance(event, ToolNotExecuted)]
    assert [notice.retrying for notice in notices] == [False]
    assert result.trace.turns[-1].defects[-1].code == "TOOL_NOT_EXECUTED"
    assert replay_trace(result.trace).same


@pytest.mark.parametrize("same", [True, False], ids=["the same call", "other calls"])
async def test_native_arguments_that_never_fit_end_with_a_notice(same: bool) -> None:
    """Neither the limit of equal calls nor that of turns ends such a run without a word."""
    sent: list[Any] = []

    def answer(request: Any) -> Any:
        sent.append(request)
        return native_call({"text": {"n": 1 if same else len(sent)}})

    result = await run_script([], transport=ScriptedTransport(answer), max_turns=6)
    assert len(sent) == (4 if same else 6)
    assert result.text.startswith("[tool not executed: /text must be a string")
    assert saved == []
    assert replay_trace(result.trace).same


async def test_the_retries_of_native_calls_count_in_a_row() -> None:
    """A call that could be read between two broken ones begins the count again."""
    said = (UNREADABLE, {"text": "a"}, UNREADABLE, {"text": "b"})
    replies = [
        assistant(None, tool_call("save", arguments, f"c{n}")) for n, arguments in enumerate(said)
    ]
    result = await run_script([*replies, "Done."], max_parse_retries=1)
    assert (result.text, saved) == ("Done.", ["a", "b"])
