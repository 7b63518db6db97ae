"""A key that a provider is known to need is asked for by its variable before anything is sent."""

import asyncio
from pathlib import Path

import pytest

from surecall import ConfigError, ProviderError, Session, extract, run, run_sync, stream
from surecall.gateway.settings.load import load_settings
from surecall.loop.resolve import make_transport
from surecall.models.config import Config, load_config


def settings(**given: object) -> Config:
    """Settings of these values and nothing else."""
    return load_config(environ={}, overrides=given, search=False)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is set."""
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "SURECALL_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "variables"),
    [
        ({"model": "openai:gpt-5"}, "OPENAI_API_KEY is not set"),
        ({"model": "gpt-5"}, "OPENAI_API_KEY is not set"),
        ({"model": "m", "base_url": "https://api.openai.com/v1"}, "OPENAI_API_KEY is not set"),
        ({"model": "gemini:gemini-2.5-flash"}, "GEMINI_API_KEY and GOOGLE_API_KEY are not set"),
        ({"model": "claude-sonnet-4-5"}, "ANTHROPIC_API_KEY is not set"),
        ({"model": "gpt-5", "api_key_env": "TEAM_KEY"}, "TEAM_KEY is not set"),
        (
            {"model": "m", "base_url": "http://10.0.0.5:8000/v1", "api_key_env": "TEAM_KEY"},
            "TEAM_KEY is not set",
        ),
        ({"model": "gpt-5", "api_key": " "}, "OPENAI_API_KEY is not set"),
    ],
)
def test_a_missing_key_is_named_with_its_variable(given: dict[str, object], variables: str) -> None:
    """The message names it, and the hint sets it."""
    with pytest.raises(ConfigError, match=variables) as caught:
        make_transport(settings(**given))
    assert f"export {variables.split(maxsplit=1)[0]}=" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "given",
    [
        {"model": "m", "base_url": "http://10.0.0.5:8000/v1"},
        {"model": "m", "base_url": "http://127.0.0.1:8000/v1", "api_key_env": "TEAM_KEY"},
        {"model": "m", "base_url": "http://[::1]:8000/v1", "provider": "openai"},
        {"model": "m", "base_url": "https://proxy.example/v1", "provider": "openai"},
        {"model": "ollama:qwen3"},
        {"model": "vllm:qwen3"},
        {"model": "gpt-5", "headers": {"Authorization": "Bearer of-another-kind"}},
        {"model": "gpt-5", "api_key": "sk-given-by-hand"},
    ],
)
def test_where_no_key_is_known_to_be_needed_none_is_asked_for(given: dict[str, object]) -> None:
    """A bare address, this machine, or a key in a header."""
    make_transport(settings(**given))


async def test_every_door_refuses_before_anything_is_sent() -> None:
    """Session, extract and stream."""
    async with Session(model="openai:gpt-5") as session:
        with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
            await session.run("Hello")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        await extract("Hello", model="openai:gpt-5", output=str)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        async for _ in stream("Hello", model="openai:gpt-5"):
            pass


def test_run_sync_refuses_before_anything_is_sent() -> None:
    """Nor does it open a connection."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        run_sync("Hello", model="openai:gpt-5")


@pytest.mark.parametrize(
    ("environ", "given", "words"),
    [
        ({"OPENAI_API_KEY": "sk-1"}, {"model": "gpt-5"}, "The key came from OPENAI_API_KEY."),
        ({}, {"model": "gpt-5", "api_key": "sk-1"}, "The key came from api_key."),
        ({}, {"base_url": "http://127.0.0.1:1"}, "No key was sent: set SURECALL_API_KEY"),
    ],
)
def test_a_refused_key_is_told_by_where_it_came_from(
    environ: dict[str, str], given: dict[str, str], words: str
) -> None:
    """The error for status 401 ends with it."""
    config = load_config(environ=environ, overrides=given, search=False)
    assert config.describe_key().startswith(words)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_says_which_variable_the_key_came_from(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has three keys knows which one to look at."""
    monkeypatch.setenv("SURECALL_API_KEY", "sk-of-another-place")
    answer = b"HTTP/1.1 %d No\r\ncontent-length: 2\r\n\r\n{}" % status

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ProviderError) as caught:
            await run("Hello", model="m", base_url=f"http://127.0.0.1:{port}/v1")
    assert (caught.value.hint or "").endswith("The key came from SURECALL_API_KEY.")


def test_a_gateway_with_keys_of_its_own_needs_those_of_its_upstreams(tmp_path: Path) -> None:
    """A client's key ends at the gateway, so the upstream would get none."""
    file = tmp_path / "gateway.toml"
    file.write_text(
        '[upstreams.main]\nurl = "https://api.openai.com/v1"\n'
        f'[[keys]]\nid = "team"\nkey_sha256 = "{"0" * 64}"\n'
    )
    with pytest.raises(
        ConfigError, match=r"upstreams\.main.* has no API key, and OPENAI_API_KEY is not set"
    ):
        load_settings(file, environ={})
    assert load_settings(file, environ={"OPENAI_API_KEY": "sk-1"}).upstreams["main"].key
