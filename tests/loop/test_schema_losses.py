"""What schemas lose on the way to a provider that holds the model to them is in the trace."""

from pathlib import Path
from typing import Any

import pytest

import surecall
from surecall import ScriptedTransport
from surecall.loop import Trace, load_trace, replay_trace, save_trace
from surecall.models.transport import assistant, tool_call

BAD = assistant(tool_calls=[tool_call("send", {"copies": "two"}, id="x")])
GOOD = assistant(tool_calls=[tool_call("send", {"to": "a@b.example"}, id="y")])


@surecall.tool(
    parameters={
        "type": "object",
        "properties": {
            "to": {"type": "string", "minLength": 3},
            "copies": {"type": "integer", "minimum": 1},
        },
        "required": ["to"],
        "additionalProperties": False,
    }
)
def send(to: str, copies: int = 1) -> str:
    """Send a letter."""
    return "sent"


@surecall.tool(effect="read")
def look() -> str:
    """Look around."""
    return "nothing"


async def trace_of(replies: list[Any], **options: Any) -> Trace:
    """Run the script with both tools and return what is recorded."""
    result = await surecall.run(
        "Send it.",
        model="some-model",
        tools=[send, look],
        transport=ScriptedTransport(replies),
        **options,
    )
    return result.trace


async def test_a_strict_run_says_what_its_schemas_lost() -> None:
    """Each loss is there once, with the tool and the place, however many turns there were."""
    trace = await trace_of(
        [GOOD, "done"], tool_prompting="strict", capabilities={"strict_tools": True}
    )
    found = {(loss.tool, loss.place, loss.keyword, loss.kind) for loss in trace.schema_losses}
    assert found == {
        ("send", "", "required", "changed"),
        ("send", "/properties/to", "minLength", "dropped"),
    }
    assert len(trace.schema_losses) == 2
    assert {loss.mode for loss in trace.schema_losses} == {"strict"}
    assert all(loss.why for loss in trace.schema_losses)


@pytest.mark.parametrize(
    ("grammar", "keyword"),
    [pytest.param(True, "maxLength", id="grammar"), pytest.param(False, "minLength", id="schema")],
)
async def test_a_constrained_run_says_what_the_schema_of_the_reply_lost(
    grammar: bool, keyword: str
) -> None:
    """A grammar bounds texts; a strict schema has no word for a shortest one."""
    trace = await trace_of(
        ['{"answer": "done"}'],
        tool_prompting="constrained",
        capabilities={"json_schema": True, "grammar": grammar},
    )
    assert ("send", "/properties/to", keyword) in {
        (loss.tool, loss.place, loss.keyword) for loss in trace.schema_losses
    }
    assert {loss.mode for loss in trace.schema_losses} == {"constrained"}


@pytest.mark.parametrize("mode", ["native", "taught"])
async def test_a_run_that_rewrites_nothing_has_no_losses(mode: str) -> None:
    """The model is shown the schemas as they are."""
    assert (await trace_of(["done"], tool_prompting=mode)).schema_losses == ()


async def test_disabled_tools_lose_nothing() -> None:
    """No schema was sent."""
    trace = await trace_of(["done"], tool_prompting="strict", tool_use_mode="disabled")
    assert trace.schema_losses == ()


async def test_a_rung_says_what_the_one_tool_it_forces_lost() -> None:
    """The plain turns before and after it add nothing."""
    trace = await trace_of(
        [BAD, BAD, GOOD, "done"],
        capabilities={"strict_tools": True, "json_schema": True},
        max_escalations=1,
    )
    assert {(loss.tool, loss.mode) for loss in trace.schema_losses} == {("send", "strict")}


async def test_losses_survive_saving_and_replaying(tmp_path: Path) -> None:
    """The trace is read as it was written, and decided as before."""
    trace = await trace_of(["done"], tool_prompting="strict", capabilities={"strict_tools": True})
    place = tmp_path / "trace.json"
    save_trace(trace, place)
    again = load_trace(place)
    assert again.schema_losses == trace.schema_losses != ()
    assert replay_trace(again).same
