"""A call that comes slowly reaches the official clients as it comes, and a cut one as an error."""

import asyncio
import functools
import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from exchange.streaming import ARGUMENTS, slow_stream

from .harness import make_settings, serve_gateway, serve_stub
from .test_silence import HEAD, READERS, RIGHT, WRITTEN, Client, brings_call

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

STREAMED = ("chat_completions", "responses", "messages")


PIECES = {
    "input_json": "partial_json",
    "response.function_call_arguments.delta": "delta",
    "tool_calls.function.arguments.delta": "arguments_delta",
}
"""The events by which the SDKs hand on a piece of the arguments, and where it is in them."""
PIECE = 5


class Reading(Client):
    """Knows how much of the arguments the SDK has handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.written = ""

    async def take(self, event: Any) -> None:
        self.written += getattr(event, PIECES.get(event.type, ""), "")
        await super().take(event)

    async def wait_for(self, written: str) -> None:
        """Wait until these arguments have come."""
        async with asyncio.timeout(60), self.came:
            await self.came.wait_for(lambda: self.written.startswith(written))


def entry_for(url: str, name: str, hold_calls_s: float = 0.2) -> str:
    """Return the settings of an upstream, and of a policy that holds calls for a short time."""
    upstream = f'[upstreams.a]\nurl = "{url}"\nprotocol = "{name}"\nprobe = "off"\n'
    return f"{upstream}[policy]\nhold_calls_s = {hold_calls_s}\n"


@pytest.mark.parametrize("name", STREAMED)
async def test_a_slow_call_comes_as_it_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upstream writes a piece only when the client has seen the one before it."""
    monkeypatch.setattr("surecall.gateway.state.PULSE_S", 600)
    got = Reading()
    slow: list[Any] = [HEAD]
    size = 0
    for event in slow_stream(name, WRITTEN, text="I save it.", size=PIECE):
        slow.append(event)
        size += PIECE * brings_call(event)
        if size < len(WRITTEN):  # the end is held until the reply has ended
            slow.append(functools.partial(got.wait_for, WRITTEN[:size]))
    async with (
        serve_stub([*slow, None]) as stub,
        serve_gateway(make_settings(tmp_path, entry_for(stub.url, name, 1e-9))) as served,
    ):
        await READERS[name](served.url, got)
        assert served.last.outcome == "clean"
    assert got.calls == RIGHT


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("left", [2, 6, 12])
async def test_a_cut_call_raises(name: str, left: int, tmp_path: Path) -> None:
    """The SDK never gets to the end of it."""
    slow: list[Any] = [HEAD]
    for event in slow_stream(name, json.dumps(ARGUMENTS), size=5)[:-left]:
        slow += [event, 0.03]
    async with (
        serve_stub([*slow, None]) as stub,
        serve_gateway(make_settings(tmp_path, entry_for(stub.url, name))) as served,
    ):
        got = Client()
        if left == 2 and name == "chat_completions":  # only what is behind the finish was lost
            await READERS[name](served.url, got)
            assert got.calls == RIGHT
            return
        with pytest.raises((openai.APIError, anthropic.APIError, RuntimeError)):
            await READERS[name](served.url, got)
        assert served.last.outcome == "failed"
    assert got.calls == []
