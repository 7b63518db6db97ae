"""Official clients get right calls from the gateway, whatever format the upstream speaks."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from .harness import CALL, WEATHER, chat, serve_faults

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

KEY = "client-key-0123456789"
FUNCTION: dict[str, Any] = WEATHER["function"]  # type: ignore[assignment]
RIGHT = [("get_weather", {"city": "Paris", "days": 3})]

Calls = list[tuple[str, Any]]


async def ask_chat(url: str, model: str, *, stream: bool) -> Calls:
    """Return the calls that the client of chat completions gets."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        if not stream:
            whole = await client.chat.completions.create(**chat(model))
            calls = whole.choices[0].message.tool_calls or []
            assert whole.choices[0].finish_reason == "tool_calls"
            return [(call.function.name, json.loads(call.function.arguments)) for call in calls]
        found: dict[int, list[str]] = {}
        finish = None
        async for event in await client.chat.completions.create(**chat(model), stream=True):
            for choice in event.choices:
                finish = choice.finish_reason or finish
                for delta in choice.delta.tool_calls or []:
                    call = found.setdefault(delta.index, ["", ""])
                    call[0] += delta.function.name or ""
                    call[1] += delta.function.arguments or ""
        assert finish == "tool_calls"
        return [(name, json.loads(arguments)) for name, arguments in found.values()]


async def ask_responses(url: str, model: str, *, stream: bool) -> Calls:
    """Return the calls that the client of responses gets."""
    tools = [{"type": "function", **FUNCTION, "strict": False}]
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        made: Any = await client.responses.create(
            model=model, input=CALL, tools=tools, stream=stream
        )
        if stream:
            events = [event async for event in made]
            made = events[-1].response
        assert made.status == "completed"
        calls = [item for item in made.output if item.type == "function_call"]
        return [(call.name, json.loads(call.arguments)) for call in calls]


async def ask_messages(url: str, model: str, *, stream: bool) -> Calls:
    """Return the calls that the client of messages gets."""
    tool = {key: FUNCTION[key] for key in ("name", "description")}
    asked: Any = {
        "model": model,
        "max_tokens": 200,
        "messages": [{"role": "user", "content": CALL}],
        "tools": [{**tool, "input_schema": FUNCTION["parameters"]}],
    }
    async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        if stream:
            async with client.messages.stream(**asked) as events:
                made = await events.get_final_message()
        else:
            made = await client.messages.create(**asked)
        assert made.stop_reason == "tool_use"
        return [(part.name, part.input) for part in made.content if part.type == "tool_use"]


async def ask_gemini(url: str, model: str, *, stream: bool) -> Calls:
    """Return the calls that the client of Gemini's format gets."""
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=url))
    declared = types.FunctionDeclaration(
        name=FUNCTION["name"],
        description=FUNCTION["description"],
        parameters_json_schema=FUNCTION["parameters"],
    )
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
    try:
        if stream:
            replies = [
                part
                async for part in await client.aio.models.generate_content_stream(
                    model=model, contents=CALL, config=config
                )
            ]
        else:
            replies = [
                await client.aio.models.generate_content(model=model, contents=CALL, config=config)
            ]
        return [
            (part.function_call.name, part.function_call.args)
            for made in replies
            for candidate in made.candidates or []
            for part in (candidate.content.parts if candidate.content else None) or []
            if part.function_call
        ]
    finally:
        await client.aio.aclose()


CLIENTS: dict[str, Callable[..., Awaitable[Calls]]] = {
    "chat_completions": ask_chat,
    "responses": ask_responses,
    "messages": ask_messages,
    "gemini": ask_gemini,
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", ["chat_completions", "messages", "gemini"])
async def test_every_client_gets_right_calls(upstream: str, stream: bool, tmp_path: Path) -> None:
    """A clean reply stays clean and a broken one is repaired, in the client's own format."""
    async with serve_faults(tmp_path, protocol=upstream) as (served, _):
        for name, ask_client in CLIENTS.items():
            fault = "clean" if (name == upstream) == stream else "arguments_trailing_comma"
            assert await ask_client(served.url, f"faults:{fault}", stream=stream) == RIGHT, name
            record = served.last
            assert record.outcome == ("clean" if fault == "clean" else "repaired"), name
            assert record.calls == 1
            assert (record.client_protocol, record.upstream_protocol) == (name, upstream)
            assert record.stream is stream
            assert record.upstream_requests == 1
        assert served.gateway.gate.inside == 0
        assert not served.gateway.live


async def read_all(client: openai.AsyncOpenAI, *, stream: bool) -> None:
    """Ask for a call that cannot be made right, and read the answer to its end."""
    made = await client.chat.completions.create(
        **chat("faults:arguments_missing_field"), stream=stream
    )
    if stream:
        [event async for event in made]


async def test_a_refusal_is_an_error_of_the_client(tmp_path: Path) -> None:
    """What cannot be made right is refused in the client's format, and not tried again."""
    text = '[upstreams.a]\nurl = "{url}"\nprobe = "off"\n[policy]\nsteps = ["repair"]\n'
    async with serve_faults(tmp_path, text) as (served, provider):
        for stream in (False, True):
            before = provider.requests
            async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=KEY) as client:
                kind = openai.APIError if stream else openai.UnprocessableEntityError
                with pytest.raises(kind) as refused:
                    await read_all(client, stream=stream)
            assert refused.value.code == "CALLS_REFUSED"
            assert served.last.outcome == "refused"
            assert provider.requests - before == 1


async def test_models_are_listed_in_the_clients_form(tmp_path: Path) -> None:
    """Each client finds the names of the upstream, and those of the settings."""
    text = '[upstreams.a]\nurl = "{url}"\nprobe = "off"\n[aliases]\nfast = "faults:clean"\n'
    async with serve_faults(tmp_path, text) as (served, _):
        async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=KEY) as client:
            names = [model.id async for model in client.models.list()]
        assert {"fast", "faults:clean"} <= set(names)
        async with anthropic.AsyncAnthropic(base_url=served.url, api_key=KEY) as other:
            assert "fast" in [model.id async for model in other.models.list()]
        assert await ask_chat(served.url, "fast", stream=False) == RIGHT
        assert served.last.model_asked == "fast"
