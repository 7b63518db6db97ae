"""Tests of an agent: with replies of your own, and with a provider that misbehaves.

pytest examples/test_booking.py
"""

from typing import Any

import pytest

import surecall
from surecall import assistant, tool_call


def book(people: int, time: str) -> dict[str, Any]:
    """Book a table."""
    return {"booked": people, "at": time}


def test_a_wrong_type_is_told_to_the_model(scripted_model: Any) -> None:
    """The function never sees `many`; the model reads why."""
    model = scripted_model(
        assistant(None, tool_call("book", {"people": "many", "time": "20:00"})),
        assistant(None, tool_call("book", {"people": 2, "time": "20:00"})),
        "Booked.",
    )
    result = surecall.run_sync("A table!", model="demo", tools=[book], transport=model)
    assert [answer.executed for answer in result.results] == [False, True]


@pytest.mark.toolcalls(trials=5, min_rate=0.8)
@pytest.mark.parametrize("fault", ["arguments_fenced", "text_hermes", "arguments_double_encoded"])
def test_faults_that_can_be_repaired_cost_nothing(faulty_model: Any, fault: str) -> None:
    """The call is right however the provider writes it."""
    model = faulty_model(fault)
    result = surecall.run_sync("Call book.", model="demo", tools=[book], transport=model)
    assert result.results[0].ok
