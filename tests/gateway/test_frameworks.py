"""Agent frameworks run their tool-calling quickstart through the gateway, changed by a URL only."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from .harness import serve_faults

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

MODEL = "faults:arguments_trailing_comma"
QUESTION = 'call get_weather with {"city": "Paris"}'
KEY = "client-key-0123456789"
seen: list[str] = []


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    seen.append(city)
    return "Sunny"


async def run_agents(url: str) -> None:
    """Use the OpenAI Agents SDK, with both of its models."""
    set_tracing_disabled(disabled=True)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
            model = kind(model=MODEL, openai_client=client)
            agent = Agent(name="a", model=model, tools=[function_tool(get_weather)])
            assert (await Runner.run(agent, QUESTION)).final_output == "Done."
            streamed = Runner.run_streamed(agent, QUESTION)
            async for _ in streamed.stream_events():
                pass
            assert streamed.final_output == "Done."


async def run_langchain(url: str) -> None:
    """Use LangChain's chat model."""
    llm: Any = ChatOpenAI(base_url=f"{url}/v1", api_key=KEY, model=MODEL, max_retries=0)
    bound = llm.bind_tools([tool(get_weather)])
    whole = await bound.ainvoke(QUESTION)
    streamed: Any = None
    async for piece in bound.astream(QUESTION):
        streamed = piece if streamed is None else streamed + piece
    for made in (whole, streamed):
        assert [(call["name"], call["args"]) for call in made.tool_calls] == [
            ("get_weather", {"city": "Paris"})
        ]


async def run_pydantic(url: str) -> None:
    """Use pydantic-ai, with a model of each family."""
    async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY) as client:
        provider = OpenAIProvider(base_url=f"{url}/v1", api_key=KEY)
        for model in (
            OpenAIChatModel(MODEL, provider=provider),
            AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client)),
        ):
            agent = PydanticAgent(model, tools=[get_weather])
            assert (await agent.run(QUESTION)).output == "Done."
            async with agent.run_stream(QUESTION) as streamed:
                assert await streamed.get_output() == "Done."


@pytest.mark.parametrize("upstream", ["chat_completions", "messages"])
async def test_quickstarts_run_unchanged(upstream: str, tmp_path: Path) -> None:
    """Whole and streamed, before an upstream of the same and of another family."""
    seen.clear()
    async with serve_faults(tmp_path, protocol=upstream) as (served, _):
        await run_agents(served.url)
        await run_langchain(served.url)
        await run_pydantic(served.url)
        assert seen == ["Paris"] * 8
        assert {record.outcome for record in served.store.records} == {"clean", "repaired"}
        assert not served.gateway.live
    for _ in range(3):  # some of them leave their connections to the collector
        gc.collect()
        await asyncio.sleep(0.05)
