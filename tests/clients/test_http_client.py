"""Anything that takes an HTTP client gets right calls: frameworks, and SDKs without `wrap`."""

import asyncio
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai
from google.genai import types
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import surecall
from surecall.base.errors import Code, ConfigError
from surecall.exchange import Policy

from .test_wrap import CALL, RIGHT, WEATHER, ask_messages, calls_in, chat, message, serve

pytestmark = pytest.mark.filterwarnings(
    "ignore:Inheritance class:DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore:`httpx.AsyncClient` support",
)
_BOTH = pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])


@_BOTH
async def test_both_libraries_are_served(library: Any) -> None:
    """What comes back is a response of the library, and says what was done."""
    async with serve() as (url, _), surecall.async_http_client(library=library) as client:
        response = await client.post(f"{url}/chat/completions", json=chat("arguments_python"))
        assert isinstance(response, library.Response)
        assert response.headers["x-surecall-outcome"] == "repaired"
        assert response.extensions["surecall"]["outcome"] == "repaired"
        arguments = response.json()["choices"][0]["message"]["tool_calls"][0]["function"]
        assert arguments["arguments"] == '{"city":"Paris","days":3}'


async def test_token_counts_that_are_not_numbers_are_left_out() -> None:
    """A client that checks its replies does not fail over a count."""
    async with serve() as (url, _), surecall.async_http_client(library=httpx2) as client:
        for fault, has_usage in (("usage_odd", False), ("clean", True)):
            response = await client.post(f"{url}/chat/completions", json=chat(fault))
            assert ("usage" in response.json()) is has_usage


@pytest.mark.parametrize(
    "fault",
    ["stream_bom", "stream_comments", "stream_no_space", "stream_event_fields", "stream_cr"],
)
async def test_events_come_in_their_plainest_form(fault: str) -> None:
    """No mark, comment, id or missing blank reaches a reader that may stumble over it."""
    asked = chat(fault, stream=True)
    async with serve() as (url, _), surecall.async_http_client(library=httpx2) as client:
        response = await client.post(f"{url}/chat/completions", json=asked)
        lines = [line for line in response.text.split("\n") if line]
        assert lines[-1] == "data: [DONE]"
        assert all(line.startswith(("data: {", "data: [DONE]")) for line in lines)


async def test_a_block_without_a_number_reaches_the_client_with_one() -> None:
    """Blocks of a streamed message are numbered from 0, even when the endpoint did not say so."""
    async with serve() as (url, _):
        assert await ask_messages(url, "stream_index_missing") == (RIGHT, RIGHT)


@_BOTH
async def test_langchain_gains_by_its_http_clients(library: Any) -> None:
    """A framework needs no code of surecall's but the client it is handed."""

    @tool
    def get_weather(city: str, days: int) -> str:
        """Return the weather of a city."""
        return f"{city} {days}"

    blocking_client = surecall.http_client(library=library)
    async with serve() as (url, _), surecall.async_http_client(library=library) as client:
        llm: Any = ChatOpenAI(
            base_url=url,
            api_key="k",  # type: ignore[arg-type]
            model="faults:text_hermes",
            max_retries=0,
            http_client=blocking_client,
            http_async_client=client,
        )
        bound = llm.bind_tools([get_weather])
        whole = await bound.ainvoke(CALL)
        blocking = await asyncio.to_thread(bound.invoke, CALL)
        blocking_client.close()
        for made in (whole, blocking):
            assert [(call["name"], call["args"]) for call in made.tool_calls] == RIGHT


@_BOTH
@pytest.mark.parametrize("fault", ["clean", "text_hermes"])
async def test_google_genai_gains_by_its_http_client(fault: str, library: Any) -> None:
    """The format that names its model in the path is recognized as well."""
    async with serve() as (url, _), surecall.async_http_client(library=library) as http:
        options = types.HttpOptions(
            base_url=url.removesuffix("/v1"), httpx_async_client=http, timeout=10_000
        )
        client = genai.Client(api_key="k", http_options=options)
        config = types.GenerateContentConfig(
            tools=[
                types.Tool(
                    function_declarations=[
                        types.FunctionDeclaration(
                            name=WEATHER["name"],
                            description=WEATHER["description"],
                            parameters_json_schema=WEATHER["parameters"],
                        )
                    ]
                )
            ],
        )
        asked: Any = {"model": f"faults:{fault}", "contents": CALL, "config": config}
        made = await client.aio.models.generate_content(**asked)
        assert [(call.name, call.args) for call in made.function_calls or []] == RIGHT
        streamed: list[Any] = []
        async for part in await client.aio.models.generate_content_stream(**asked):
            streamed += part.function_calls or []
        assert [(call.name, call.args) for call in streamed] == RIGHT


@_BOTH
@pytest.mark.parametrize("name", ["openai", "anthropic", "pydantic-ai", "openai-agents"])
async def test_frameworks_use_the_client_or_refuse_it(name: str, library: Any) -> None:
    """None of them goes on with a client of its own and without a word."""
    async with serve() as (url, _), surecall.async_http_client(library=library) as http:
        if (name, library) == ("anthropic", httpx):
            with pytest.raises(TypeError, match="http_client"):
                await _FRAMEWORKS[name](url, http)
        else:
            assert await _FRAMEWORKS[name](url, http) == RIGHT


async def _ask_openai(url: str, http: Any) -> Any:
    client = openai.AsyncOpenAI(base_url=url, api_key="k", http_client=http)
    return calls_in(await client.chat.completions.create(**chat("text_hermes")))


async def _ask_anthropic(url: str, http: Any) -> Any:
    base = url.removesuffix("/v1")
    client = anthropic.AsyncAnthropic(base_url=base, api_key="k", http_client=http)
    made = await client.messages.create(**message("text_hermes"))
    return [(block.name, block.input) for block in made.content if block.type == "tool_use"]


async def _ask_pydantic(url: str, http: Any) -> Any:
    seen: list[Any] = []

    def get_weather(city: str, days: int) -> str:
        """Return the weather of a city."""
        seen.append(("get_weather", {"city": city, "days": days}))
        raise CallDeferred

    provider = OpenAIProvider(base_url=url, api_key="k", http_client=http)
    model = OpenAIChatModel("faults:text_hermes", provider=provider)
    agent = Agent(model, tools=[get_weather], output_type=[str, DeferredToolRequests])
    await agent.run(CALL)
    return seen


async def _ask_agents(url: str, http: Any) -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from agents import set_tracing_disabled as disable_tracing

    disable_tracing(disabled=True)
    seen: list[Any] = []

    def get_weather(city: str, days: int) -> str:
        """Return the weather of a city."""
        seen.append(("get_weather", {"city": city, "days": days}))
        return "sunny"

    client = openai.AsyncOpenAI(base_url=url, api_key="k", http_client=http)
    model = OpenAIChatCompletionsModel("faults:text_hermes", client)
    agent = Agent(
        "a",
        model=model,
        tools=[function_tool(get_weather)],
        tool_use_behavior="stop_on_first_tool",
    )
    await Runner.run(agent, CALL)
    return seen


_FRAMEWORKS: Any = {
    "anthropic": _ask_anthropic,
    "openai": _ask_openai,
    "openai-agents": _ask_agents,
    "pydantic-ai": _ask_pydantic,
}


@pytest.mark.parametrize("make", [surecall.http_client, surecall.async_http_client])
def test_with_both_libraries_the_one_that_is_meant_has_to_be_named(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A framework that takes clients of one library may ignore a client of the other."""
    with pytest.raises(ConfigError, match="both installed") as caught:
        make()
    assert caught.value.code == Code.INVALID_OPTION
    assert "library=httpx2" in (caught.value.hint or "")
    for module in (httpx, httpx2):
        name = module.__name__
        monkeypatch.setattr(
            "surecall.clients.library.find_spec", lambda asked, own=name: asked == own or None
        )
        assert type(make()).__mro__[-2].__module__.partition(".")[0] == name


@_BOTH
async def test_a_connection_that_breaks_before_the_answer_is_tried_once_more(library: Any) -> None:
    """Not every SDK does so; with a budget of one request, the library's own error is raised."""
    asked = chat("reset_once")
    async with serve() as (url, _), surecall.async_http_client(library=library) as client:
        response = await client.post(f"{url}/chat/completions", json=asked)
        call = response.json()["choices"][0]["message"]["tool_calls"][0]
        assert call["function"]["name"] == WEATHER["name"]
    once = Policy(max_requests=1)
    async with (
        serve() as (url, _),
        surecall.async_http_client(library=library, policy=once) as client,
    ):
        with pytest.raises(library.TransportError):
            await client.post(f"{url}/chat/completions", json=asked)
