"""Simulated models play the modes in which tools are taught, or replies are held to a schema."""

from typing import Any

import pytest

from surecall.faults import SimulatedTransport
from surecall.loop import Session
from surecall.models.config import Config


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


async def run(prompting: Any, **options: Any) -> Any:
    """Run a task of two calls with a model that makes no mistakes."""
    session = Session(
        model="zoo:steady",
        config=Config(),
        tools=[add],
        transport=SimulatedTransport("steady"),
        preset=(),
        tool_prompting=prompting,
        **options,
    )
    task = 'call add with {"a": 1} then call add with {"a": 2, "b": 3} then say It is five.'
    return await session.run(task)


@pytest.mark.parametrize("prompting", ["native", "taught", "constrained"])
async def test_a_steady_model_does_the_same_in_every_mode(prompting: str) -> None:
    """Calls are made, results are read, and the answer is the answer, whatever form is asked."""
    result = await run(prompting, capabilities={"json_schema": True})
    calls = [(call.name, call.arguments) for turn in result.trace.turns for call in turn.calls]
    assert [(name, arguments["a"]) for name, arguments in calls] == [("add", 1), ("add", 2)]
    assert result.text == "It is five."
    assert {turn.request.prompt_mode for turn in result.trace.turns} == {prompting}
