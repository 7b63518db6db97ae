"""By default every call of a reply runs, whoever the provider is and however it is found."""

from typing import Any

import pytest

import surecall
from support.family_server import FamilyServer
from surecall.base.records import RawCall, Reply
from surecall.models.profiles import Catalog
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.wire import DEFAULT_PROTOCOL, find_protocol

PROVIDERS = {entry.id: entry for entry in Catalog.builtin().providers}
LOOKS = Reply(calls=tuple(RawCall(f"call_{n}", "look", {"what": f"w{n}"}) for n in range(3)))
MODELS = [entry.id for entry in Catalog.builtin().models if not entry.id.startswith("embedded:")]
DONE = Reply(content="Seen.", finish_reason="stop")


seen: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    """What one test has seen is not known to the next."""
    seen.clear()


@surecall.tool(effect="read")
def look(what: str) -> str:
    """Look at something."""
    seen.append(what)
    return what


async def ask_server(provider: str, model: str, **given: Any) -> tuple[surecall.RunResult, Any]:
    """Run against a server that speaks as the provider does and asks for three reads at once."""
    protocol = find_protocol(PROVIDERS[provider].protocol or DEFAULT_PROTOCOL)
    async with FamilyServer(protocol, [LOOKS, DONE]) as server:
        result = await surecall.run(
            "Look.",
            model=model,
            provider=provider,
            base_url=server.url,
            api_key="k-123",
            tools=[look],
            protocol=protocol.name,
            **given,
        )
    return result, server.wires[0].body


def check_all_ran(result: surecall.RunResult, body: Any) -> None:
    """Check that all three calls ran, and that nothing limited them."""
    assert sorted(seen) == ["w0", "w1", "w2"]
    assert (len(result.calls), result.problems, result.text) == (3, (), "Seen.")
    assert "parallel_tool" not in str(body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", sorted(PROVIDERS.keys() - {"embedded"}))
async def test_three_reads_of_one_reply_all_run(provider: str, stream: bool) -> None:
    """With the presets that the catalog names for the provider, and nothing said of parallel."""
    names = [name.replace("*", "1") for name in PROVIDERS[provider].models] or ["own-model"]
    for model in names:
        seen.clear()
        check_all_ran(*await ask_server(provider, model, stream=stream))


BY_ADDRESS = sorted(name for name, entry in PROVIDERS.items() if entry.base_url)


@pytest.mark.parametrize("provider", BY_ADDRESS)
async def test_three_reads_all_run_at_an_address_of_the_catalog(provider: str) -> None:
    """The provider is known by its address alone."""
    calls = (tool_call("look", {"what": f"w{n}"}, f"c{n}") for n in range(3))
    transport = ScriptedTransport([assistant(None, *calls), "Seen."])
    result = await surecall.run(
        "Look.",
        model="own-model",
        base_url=PROVIDERS[provider].base_url,
        protocol=DEFAULT_PROTOCOL,
        transport=transport,
        tools=[look],
    )
    check_all_ran(result, transport.requests[0].body)


@pytest.mark.parametrize("model", MODELS)
async def test_three_reads_all_run_with_every_model_of_the_catalog(model: str) -> None:
    """Also with the workarounds that the catalog names for a model; tools are forced on it."""
    given: dict[str, Any] = {"tool_use_mode": "relaxed"}
    check_all_ran(
        *await ask_server("openrouter", model, capabilities={"supports_tool_use": True}, **given)
    )
