"""Nothing is sent anywhere but to the upstream that was named."""

from pathlib import Path
from urllib.parse import urlsplit

import openai
import pytest

import surecall
from cli.harness import invoke
from gateway.harness import ask, chat, completion, reply, serve_stubbed
from support.sockets import watch_sockets
from surecall.faults import FaultServer, FaultyProvider

OFFLINE = [
    ("demo",),
    ("docs", "explain", "ARGUMENTS_TRUNCATED"),
    ("docs", "first-loop"),
    ("models",),
    ("models", "presets", "list"),
    ("config", "show"),
    ("faults", "list"),
    ("completion", "bash"),
]


def place(url: str) -> str:
    """Return the host and port of an address."""
    return urlsplit(url).netloc


def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"Rain in {city}."


@pytest.mark.parametrize("command", OFFLINE, ids=" ".join)
def test_commands_that_need_no_model_open_no_socket(command: tuple[str, ...]) -> None:
    """Neither a connection nor a look-up of a name."""
    with watch_sockets() as seen:
        done = invoke(*command)
    assert done.exit_code == 0, done.output
    assert seen == set()


def test_reading_a_reply_opens_no_socket() -> None:
    """Schemas, formats and repairs are all here."""
    with watch_sockets() as seen:
        text = "<tool_call>{'name': 'weather', 'arguments': {city: 'Oslo'}}</tool_call>"
        reading = surecall.read_reply({"content": text}, tools=[weather], finish_reason="stop")
    assert reading.calls[0].arguments == {"city": "Oslo"}
    assert seen == set()


async def test_a_run_connects_to_its_provider_alone() -> None:
    """Probing an unknown model included."""
    async with FaultServer(FaultyProvider()) as provider:
        with watch_sockets() as seen:
            result = await surecall.run(
                'call weather with {"city": "Oslo"}',
                model="faults:arguments_python",
                base_url=provider.url,
                tools=[weather],
            )
        assert result.calls[0].arguments == {"city": "Oslo"}
        assert seen == {place(provider.url)}


async def test_a_wrapped_client_connects_to_its_provider_alone() -> None:
    """The SDK's own address is all that is asked."""
    async with FaultServer(FaultyProvider()) as provider:
        plain = openai.AsyncOpenAI(base_url=provider.url, api_key="none")
        with watch_sockets() as seen:
            async with surecall.wrap(plain) as client:
                await client.chat.completions.create(
                    model="faults:text_hermes",
                    messages=[{"role": "user", "content": 'call weather with {"city": "Oslo"}'}],
                )
        assert seen == {place(provider.url)}


async def test_a_gateway_connects_to_its_upstreams_alone(tmp_path: Path) -> None:
    """With its dashboard, its metrics and its store, a gateway asks nobody else."""
    with watch_sockets() as seen:
        async with serve_stubbed(tmp_path, [reply(completion())]) as (served, stub):
            answered = await ask(served, "POST", "/v1/chat/completions", chat("m"))
            assert answered.status == 200
            for path in ("/ui", "/metrics", "/healthz"):
                await ask(served, "GET", path)
            assert seen == {place(served.url), place(stub.url)}
