"""No official client is left in silence while a call is held back, and its reply stays the same."""

import asyncio
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from exchange.streaming import ARGUMENTS, FORMATS, SAVE, slow_stream

from .harness import make_settings, serve_gateway, serve_stub

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

KEY = "client-key-0123456789"
WRITTEN = json.dumps(ARGUMENTS)
RIGHT = [("save", ARGUMENTS)]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
MARKS = (
    b'"partial_json"',
    b'"response.function_call_arguments.delta"',
    b'{"arguments"',
    b'"functionCall"',
)
"""How the events of an upstream are known that bring a piece of a call."""
_SAVE: dict[str, Any] = {"name": "save", "description": ""}


def brings_call(event: bytes) -> bool:
    """Return whether an event brings a piece of the arguments of a call."""
    return any(mark in event for mark in MARKS)


class Client:
    """What an official client was handed on, and what it made of it."""

    def __init__(self) -> None:
        self.events = 0
        self.calls: list[tuple[str, Any]] = []
        self.text = ""
        self.came = asyncio.Condition()

    async def take(self, event: Any) -> None:
        """Note an event that the SDK handed on."""
        async with self.came:
            self.events += 1
            self.came.notify_all()

    async def hear(self, more: int = 1) -> None:
        """Wait until the SDK has handed on so many more events."""
        async with asyncio.timeout(60), self.came:
            wanted = self.events + more
            await self.came.wait_for(lambda: self.events >= wanted)


async def read_chat(url: str, got: Client) -> None:
    """Read a stream of chat completions with the helper that joins it."""
    tools: Any = [{"type": "function", "function": {**_SAVE, "parameters": SAVE}}]
    asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Go"}], "tools": tools}
    async with (
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client,
        client.chat.completions.stream(**asked) as stream,
    ):
        async for event in stream:
            await got.take(event)
        made = await stream.get_final_completion()
    message = made.choices[0].message
    got.text = message.content or ""
    calls: Any = message.tool_calls or []
    got.calls = [(call.function.name, json.loads(call.function.arguments)) for call in calls]


async def read_responses(url: str, got: Client) -> None:
    """Read a stream of responses with the helper that joins it."""
    tools: Any = [{"type": "function", **_SAVE, "parameters": SAVE, "strict": False}]
    async with (
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client,
        client.responses.stream(model="m", input="Go", tools=tools) as stream,
    ):
        async for event in stream:
            await got.take(event)
        made = await stream.get_final_response()
    calls = [item for item in made.output if item.type == "function_call"]
    got.calls = [(call.name, json.loads(call.arguments)) for call in calls]
    got.text = made.output_text


async def read_messages(url: str, got: Client) -> None:
    """Read a stream of messages with the helper that joins it."""
    tools: Any = [{**_SAVE, "input_schema": SAVE}]
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go"}]}
    async with (
        anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client,
        client.messages.stream(**asked, tools=tools) as stream,
    ):
        async for event in stream:
            await got.take(event)
        made = await stream.get_final_message()
    assert made.stop_reason == "tool_use"
    assert [part.type for part in made.content] in (["tool_use"], ["text", "tool_use"])
    got.calls = [(part.name, part.input) for part in made.content if part.type == "tool_use"]
    got.text = "".join(part.text for part in made.content if part.type == "text")


async def read_gemini(url: str, got: Client) -> None:
    """Read a stream of Gemini's with a chat, which keeps what is valid."""
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
    declared = types.FunctionDeclaration(**_SAVE, parameters_json_schema=SAVE)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    try:
        chat: Any = client.aio.chats.create(model="m", config=config)
        async for event in await chat.send_message_stream("Go"):
            await got.take(event)
        kept: Any = chat.get_history(curated=True)[1:]
    finally:
        await client.aio.aclose()
    parts: list[Any] = []
    for content in kept:
        parts += content.parts or []
    got.text = "".join(part.text or "" for part in parts)
    called = [part.function_call for part in parts if part.function_call]
    got.calls = [(str(call.name), call.args) for call in called]


READERS: dict[str, Callable[[str, Client], Any]] = {
    "chat_completions": read_chat,
    "gemini": read_gemini,
    "messages": read_messages,
    "responses": read_responses,
}


@pytest.mark.parametrize("text", ["", "I save it."])
@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
async def test_a_call_that_comes_slowly_is_no_silence(
    client: str, upstream: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK hands on more events than the reply has, and joins them to the same reply."""
    monkeypatch.setattr("surecall.gateway.state.PULSE_S", 0.001)
    got, usual = Client(), Client()
    events = slow_stream(upstream, WRITTEN, text=text, size=20)
    slow: list[Any] = [HEAD]
    for event in events:
        slow += [event, functools.partial(got.hear, 10)] if brings_call(event) else [event]
    plain = [HEAD, b"".join(events), None]
    async with serve_stub([*slow, None], plain) as stub:
        prefix = "" if upstream == "gemini" else "/v1"
        url = stub.url.removesuffix("/v1") + prefix
        entry = f'[upstreams.a]\nurl = "{url}"\nprotocol = "{upstream}"\nprobe = "off"\n'
        async with serve_gateway(make_settings(tmp_path, entry)) as served:
            await READERS[client](served.url, got)
            assert served.last.outcome == "clean"
            await READERS[client](served.url, usual)
    assert got.calls == usual.calls == RIGHT
    assert got.text.strip() == usual.text.strip() == text.strip()
    held = sum(map(brings_call, events))
    assert got.events >= usual.events + held > usual.events


async def test_a_pause_of_the_model_in_a_second_request_is_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the model is asked again and says nothing yet, the client hears something."""
    monkeypatch.setattr("surecall.gateway.state.PULSE_S", 0.001)
    wrong = b"".join(slow_stream("chat_completions", '{"text": "a"}'))
    right = b"".join(slow_stream("chat_completions", WRITTEN))
    got = Client()
    pause = functools.partial(got.hear, 10)
    async with serve_stub([HEAD, wrong, None], [pause, HEAD, pause, right, None]) as stub:
        entry = f'[upstreams.a]\nurl = "{stub.url}"\nprobe = "off"\n'
        async with serve_gateway(make_settings(tmp_path, entry)) as served:
            await read_chat(served.url, got)
            assert served.last.outcome == "reasked"
    assert got.calls == RIGHT
    assert got.events > 20
