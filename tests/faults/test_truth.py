"""What a probe finds out about a provider is what the catalog says is true of it."""

from typing import Any

import pytest

from surecall.faults import FAULTS, Fault, SimulatedTransport
from surecall.models.probe import probe_model
from surecall.wire import PROTOCOLS, find_protocol

WITH_TRUTH = [fault for fault in FAULTS if fault.truth]


MEETINGS = [
    pytest.param(fault, protocol, id=f"{fault.name}-{protocol}")
    for fault in WITH_TRUTH
    for protocol in fault.protocols
]


async def found_about(model: str, protocol: str) -> dict[str, Any]:
    """Probe a model and return everything that was found out."""
    report = await probe_model(SimulatedTransport(), find_protocol(protocol), model)
    return {name: value for finding in report.findings for name, value in finding.fields.items()}


@pytest.mark.parametrize(("fault", "protocol"), MEETINGS)
async def test_a_probe_finds_the_truth(fault: Fault, protocol: str) -> None:
    """Each capability that a provider lacks or only pretends to have is seen."""
    found = await found_about(f"faults:{fault.name}", protocol)
    assert {name: found.get(name) for name in fault.truth} == fault.truth


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_clean_provider_lacks_nothing(protocol: str) -> None:
    """Without a fault, no probe finds one: the truths above are due to their faults."""
    found = await found_about("faults:clean", protocol)
    for fault in [fault for fault in WITH_TRUTH if protocol in fault.protocols]:
        assert {name: found.get(name) for name in fault.truth} != fault.truth
    assert found["tool_choices"] == ("auto", "none", "required", "named")
    assert found["supports_tool_use"] is True
    assert "text_formats" not in found
