"""A call that comes slowly reaches the official clients as it comes, and a cut one as an error."""

import json
from pathlib import Path
from time import monotonic
from typing import Any

import anthropic
import openai
import pytest

from exchange.streaming import ARGUMENTS, slow_stream

from .harness import make_settings, serve_gateway, serve_stub
from .test_silence import HEAD, READERS, RIGHT, WRITTEN, Client

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

STREAMED = ("chat_completions", "responses", "messages")


class Timed(Client):
    """Notes when the SDK handed an event on."""

    def __init__(self) -> None:
        self.times: list[float] = []
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "events":
            self.times.append(monotonic())
        super().__setattr__(name, value)


def entry_for(url: str, name: str) -> str:
    """Return the settings of an upstream, and of a policy that holds calls for a short time."""
    upstream = f'[upstreams.a]\nurl = "{url}"\nprotocol = "{name}"\nprobe = "off"\n'
    return f"{upstream}[policy]\nhold_calls_s = 0.2\n"


@pytest.mark.parametrize("name", STREAMED)
async def test_a_slow_call_comes_as_it_is_written(name: str, tmp_path: Path) -> None:
    """No gap is longer than what is held, though no empty event is sent so soon."""
    slow: list[Any] = [HEAD]
    for event in slow_stream(name, WRITTEN, text="I save it.", size=5):
        slow += [event, 0.06]
    async with (
        serve_stub([*slow, None]) as stub,
        serve_gateway(make_settings(tmp_path, entry_for(stub.url, name))) as served,
    ):
        got = Timed()
        await READERS[name](served.url, got)
        assert served.last.outcome == "clean"
    assert got.calls == RIGHT
    gaps = [after - before for before, after in zip(got.times[1:], got.times[2:], strict=False)]
    assert sum(gap > 0.02 for gap in gaps) > 12
    assert sorted(gaps)[len(gaps) * 9 // 10] < 0.7  # nine of ten, on a machine that does other work


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
        got = Timed()
        if left == 2 and name == "chat_completions":  # only what is behind the finish was lost
            await READERS[name](served.url, got)
            assert got.calls == RIGHT
            return
        with pytest.raises((openai.APIError, anthropic.APIError, RuntimeError)):
            await READERS[name](served.url, got)
        assert served.last.outcome == "failed"
    assert got.calls == []
