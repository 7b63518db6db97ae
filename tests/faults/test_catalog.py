"""Every fault of the catalog, met by a whole run over real HTTP and in this process."""

import pytest
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError
from surecall.base.records import WireRequest
from surecall.faults import (
    FAULTS,
    GROUPS,
    Answer,
    Fault,
    FaultServer,
    FaultyProvider,
    SimulatedTransport,
    find_fault,
    find_faults,
)
from surecall.loop.options import Options
from surecall.models.profiles import Capabilities, Findings
from surecall.models.transport import Deadlines, HttpTransport, RetryPolicy, WireLimits
from surecall.wire import find_protocol

from .scene import ARGUMENTS, Outcome, meet

RETRY = RetryPolicy(base_delay_s=0.001)
LIMITS = WireLimits(max_body_bytes=2_000_000, max_stream_bytes=2_000_000)
TIMEOUTS = {Code.FIRST_BYTE_TIMEOUT, Code.IDLE_TIMEOUT, Code.TOTAL_TIMEOUT}

MEETINGS = [
    pytest.param(
        fault, protocol, stream, id=f"{fault.name}-{protocol}-{'stream' if stream else 'whole'}"
    )
    for fault in FAULTS
    for protocol in fault.protocols
    for stream in (False, True)
    if fault.reaches(stream=stream)
]
ON_SOCKETS = [
    meeting
    for meeting in MEETINGS
    if meeting.values[1] == "chat_completions"
    or meeting.values[0].group == "stream"  # the others look the same on a socket
]


def deadlines(fault: Fault) -> Deadlines:
    """Return deadlines that soon pass where one of them must."""
    if fault.code not in TIMEOUTS:
        return Deadlines(first_byte_s=30, idle_s=30, total_s=40)
    total_s = 0.5 if fault.code == Code.TOTAL_TIMEOUT else 30
    return Deadlines(first_byte_s=0.5, idle_s=0.25, total_s=total_s)


def check(fault: Fault, protocol: str, outcome: Outcome) -> None:
    """Compare what came of a run with what the catalog promises."""
    if fault.repairable:
        assert (outcome.code, outcome.text) == (None, "Done.")
        assert outcome.saved == [ARGUMENTS]
        assert fault.refusal is None
    else:
        assert outcome.code == fault.code_in(protocol)
        assert outcome.saved == []
        if outcome.code is None:
            assert str(outcome.text).startswith("[tool not executed: ")
    if fault.refusal is not None:
        assert set(outcome.refusals) == {fault.refusal}


@pytest.mark.parametrize(("fault", "protocol", "stream"), ON_SOCKETS)
async def test_a_run_over_http_ends_as_the_catalog_says(
    fault: Fault, protocol: str, stream: bool
) -> None:
    """A repairable fault leads to the right call, once; any other ends with its code."""
    async with FaultServer(FaultyProvider(seed=7)) as server:
        transport = HttpTransport(
            server.url, retry=RETRY, limits=LIMITS, deadlines=deadlines(fault)
        )
        async with transport:
            outcome = await meet(fault, transport, stream=stream, protocol=protocol)
        assert server.provider.by_fault[fault.name] >= 1
    check(fault, protocol, outcome)


CONDITIONAL = {
    # what these change is asked for by a probe, not by a plain run
    "required_ignored",
    "named_ignored",
    "none_ignored",
    "empty_arguments_blank",
    "empty_arguments_null",
    "empty_arguments_missing",
    "json_object_refused",
    "json_schema_refused",
    "json_schema_ignored",
    "strict_refused",
    "grammar_refused",
    "midturn_system_refused",
}


@pytest.mark.parametrize(("fault", "protocol", "stream"), MEETINGS)
async def test_a_run_in_process_ends_the_same(fault: Fault, protocol: str, stream: bool) -> None:
    """Without a socket the same comes of it, and no fault is a clean provider in disguise."""
    transport = SimulatedTransport(seed=7, retry=RETRY, limits=LIMITS)
    outcome = await meet(fault, transport, stream=stream, protocol=protocol)
    check(fault, protocol, outcome)
    clean, faulty = FaultyProvider(seed=7), FaultyProvider(seed=7)
    changed = [
        answer_as(clean, protocol, wire, "faults:clean")
        != answer_as(faulty, protocol, wire, f"faults:{fault.name}")
        for wire in transport.requests
    ]
    assert any(changed) != (fault.name in CONDITIONAL)


def answer_as(provider: FaultyProvider, protocol: str, wire: WireRequest, model: str) -> Answer:
    """Return the answer to a request for another model, without the name of that model."""
    if "model" in wire.body:
        wire = replace(wire, body={**wire.body, "model": model})
    else:
        method = wire.path.rpartition(":")[2]
        wire = replace(wire, path=f"/models/{model}:{method}")
    answer = provider.answer(find_protocol(protocol), wire)
    pieces = tuple(
        piece.replace(model.encode(), b"model") if isinstance(piece, bytes) else piece
        for piece in answer.pieces
    )
    return replace(answer, pieces=pieces)


def test_names_are_unique_and_every_group_has_some() -> None:
    """A name means one fault, and no group is empty."""
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 60
    assert {fault.group for fault in FAULTS} == set(GROUPS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_entry_is_complete(fault: Fault) -> None:
    """It says in one sentence what it does, where it is seen, and what must come of it."""
    assert fault.name == fault.name.lower()
    assert fault.does.endswith(".")
    assert fault.does.count(". ") == 0
    assert fault.seen
    assert not (fault.repairable and fault.refusal)
    assert bool(fault.needs) == bool(fault.options)
    assert set(fault.options) <= set(Options.__struct_fields__)
    known = {*Capabilities.__struct_fields__, *Findings.__struct_fields__}
    assert set(fault.truth) <= known
    assert fault.group != "capability" or fault.truth
    assert any((fault.see, fault.reply, fault.chunks, fault.wire))


@pytest.mark.parametrize("name", ["arguments_fenced", "Arguments-Fenced", " arguments_fenced "])
def test_a_fault_is_found_however_it_is_typed(name: str) -> None:
    """Case, dashes and blanks around do not matter."""
    assert find_fault(name).name == "arguments_fenced"


def test_an_unknown_fault_is_answered_with_the_closest() -> None:
    """A misspelt name is refused, with the name that was probably meant."""
    with pytest.raises(ConfigError, match="Did you mean 'arguments_fenced'") as caught:
        find_fault("argument_fenced")
    assert caught.value.code == "UNKNOWN_FAULT"


def test_an_unknown_group_is_refused() -> None:
    """A misspelt group is no empty group."""
    assert {fault.group for fault in find_faults("ids")} == {"ids"}
    with pytest.raises(ConfigError, match="'stream'"):
        find_faults("streams")
