"""Directives and values over the server of faults, in every wire format."""

from typing import Any

import pytest

from surecall.base.json_values import as_fields
from surecall.base.records import ModelRequest
from surecall.faults import FaultPlan, FaultServer, SimulatedTransport
from surecall.faults.conversation import Say
from surecall.faults.provider import BUILTIN_ORACLES, FaultyProvider
from surecall.loop.directives import DirectResult, direct
from surecall.text import encode_text
from surecall.wire import PROTOCOLS

from .types import make_registry

REGISTRY = make_registry()
TOAST = {"type": "ui.toast", "payload": {"message": "Saved", "level": "info"}}
GOOD = encode_text({"assistant_text": "Saved.", "directives": [TOAST]})


class Editor:
    """Answers with an envelope where one is asked for."""

    def next_action(self, request: ModelRequest) -> Say | None:
        """Look for the words that ask for directives."""
        asked = any("`directives`" in message.text for message in request.messages)
        return Say(GOOD) if asked else None


ORACLES = (Editor(), *BUILTIN_ORACLES)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
@pytest.mark.parametrize(
    ("fault", "mode"),
    [
        (None, "json_schema"),
        ("json_schema_refused", "json_object"),
        ("json_schema_ignored", "json_schema"),
    ],
)
async def test_directives_survive_a_provider_without_schemas(
    name: str, fault: str | None, mode: str
) -> None:
    """A refused form leads to the next; one that is ignored is noticed only where it matters."""
    plan = FaultPlan() if fault is None else FaultPlan.of(fault)
    async with FaultServer(FaultyProvider(plan=plan, oracles=ORACLES)) as server:
        result = await direct(
            "Save it.",
            directives=REGISTRY,
            model="m",
            base_url=server.url.removesuffix("/v1"),
            api_key="k",
            protocol=name,
            preset=(),
            capabilities={"json_schema": True},
        )
    assert result.ok, result.errors
    assert (result.mode, result.assistant_text) == (mode, "Saved.")
    assert [item.type for item in result.directives] == ["ui.toast"]


async def ask(transport: SimulatedTransport, **arguments: Any) -> DirectResult:
    """Ask a simulated provider, after a probe."""
    return await direct(
        "Save it.",
        directives=REGISTRY,
        model="m",
        transport=transport,
        preset=(),
        probe="auto",
        **arguments,
    )


async def test_a_probe_finds_out_whether_schemas_hold() -> None:
    """An unknown model is asked first, and then held to the schema."""
    transport = SimulatedTransport(oracles=ORACLES)
    result = await ask(transport)
    assert (result.ok, result.mode) == (True, "json_schema")
    sent = [as_fields(request.body.get("response_format")) for request in transport.requests]
    forms = [form.get("type") for form in sent]
    assert forms == ["json_object", "json_schema", "json_schema"]


async def test_a_probe_finds_out_that_they_do_not() -> None:
    """A form that is refused in the probe is not tried in the run."""
    plan = FaultPlan.of("json_schema_refused")
    transport = SimulatedTransport(plan=plan, oracles=ORACLES)
    result = await ask(transport)
    assert (result.ok, result.mode) == (True, "json_object")
    assert result.attempts[0].ok


async def test_what_the_caller_says_is_not_asked_for() -> None:
    """Nothing is probed when it is known, or when no schema may be used."""
    transport = SimulatedTransport(oracles=ORACLES)
    assert (await ask(transport, capabilities={"json_schema": False})).mode == "json_object"
    assert (await ask(transport, output_modes=["prompt_only"])).mode == "prompt_only"
    assert len(transport.requests) == 2
