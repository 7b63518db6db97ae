"""What a probe finds out about a provider is what the catalogue says is true of it."""

from typing import Any

import pytest

from surecall.faults import FAULTS, Fault, SimulatedTransport
from surecall.probe import probe_model
from surecall.protocols import ChatCompletions

WITH_TRUTH = [fault for fault in FAULTS if fault.truth]


async def found_about(model: str) -> dict[str, Any]:
    """Probe a model and return everything that was found out."""
    report = await probe_model(SimulatedTransport(), ChatCompletions(), model)
    return {name: value for finding in report.findings for name, value in finding.fields.items()}


@pytest.mark.parametrize("fault", WITH_TRUTH, ids=lambda fault: fault.name)
async def test_a_probe_finds_the_truth(fault: Fault) -> None:
    """Each capability that a provider lacks or only pretends to have is seen."""
    found = await found_about(f"faults:{fault.name}")
    assert {name: found.get(name) for name in fault.truth} == fault.truth


async def test_a_clean_provider_lacks_nothing() -> None:
    """Without a fault, no probe finds one: the truths above are due to their faults."""
    found = await found_about("faults:clean")
    for fault in WITH_TRUTH:
        assert {name: found.get(name) for name in fault.truth} != fault.truth
    assert found["tool_choices"] == ("auto", "none", "required", "named")
    assert found["supports_tool_use"] is True
    assert "text_formats" not in found
