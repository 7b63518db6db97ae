"""The clients that `clients_with_and_without.py` asks with, each in one shape.

Each is imported when it is asked, because they do not all fit into one environment; clients for
Node are in `clients_in_node.mjs`, and come through a gateway.
"""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as find_version
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx2
from agent_programs import CACHE, serve_gateway

import surecall

NODE: Final = CACHE.with_name("node-clients")
"""Where packages from npm are installed."""
_MAX_LINE: Final = 1 << 20

ARGUMENTS: dict[str, Any] = {
    "title": "Trip\nto Oslo",
    "tags": ["travel"],
    "stars": 4,
    "draft": True,
}
RIGHT = ("save_note", ARGUMENTS)
PROMPT = f"call save_note with {json.dumps(ARGUMENTS)}"
NAME, ABOUT = "save_note", "Save a note."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "stars": {"type": "integer"},
        "draft": {"type": "boolean"},
    },
    "required": ["title", "tags", "stars", "draft"],
    "additionalProperties": False,
}

Calls = list[tuple[str, Any]]
Ask = Callable[[str, bool], Awaitable[Calls]]
"""Takes the name of a fault and whether to stream, and returns the calls that were delivered."""


class UnreadableError(Exception):
    """A call was delivered whose arguments no program can use."""


class ClientUnderTest(NamedTuple):
    """A client, and the wire format it uses."""

    title: str
    package: str
    protocol: str
    way_in: str
    """What is written to make it reliable."""
    open: Callable[[str, bool], AbstractAsyncContextManager[Ask]]
    needs: tuple[str, ...] = ()
    """Packages from npm, for a client that runs in Node."""

    @property
    def version(self) -> str | None:
        """The version in this environment, if there is one."""
        try:
            if not self.needs:
                return find_version(self.package)
            file = NODE / "node_modules" / self.package / "package.json"
            return str(json.loads(file.read_text("utf-8"))["version"])
        except (PackageNotFoundError, FileNotFoundError):
            return None


def install_for_node() -> None:
    """Install what the clients in Node need."""
    NODE.mkdir(parents=True, exist_ok=True)
    (NODE / "package.json").write_text('{"private": true}')
    packages = sorted({package for entry in CLIENTS.values() for package in entry.needs})
    command = ["npm", "install", "--legacy-peer-deps", "--no-audit", "--no-fund", *packages]
    subprocess.run(command, cwd=NODE, check=True)


@asynccontextmanager
async def open_node(name: str, url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask with a client in a process of Node, which takes one line for every request."""
    async with AsyncExitStack() as stack:
        if reliable:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            speaks = CLIENTS[name].protocol
            base = url.removesuffix("/v1") if speaks == "gemini" else url
            url = f"{await stack.enter_async_context(serve_gateway(base, speaks, folder))}/v1"
        script = Path(__file__).with_name("clients_in_node.mjs")
        process = await asyncio.create_subprocess_exec(
            *("node", str(script), name, url, str(NODE)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            limit=_MAX_LINE,
        )
        stack.push_async_callback(process.wait)
        stack.callback(process.kill)
        await process.stdout.readline()
        number = 0

        async def ask(fault: str, stream: bool) -> Calls:
            nonlocal number
            number += 1
            request = {"number": number, "fault": fault, "stream": stream}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            while line := await process.stdout.readline():
                answer = json.loads(line)
                if answer["number"] != number:  # of a request that took too long
                    continue
                if "error" in answer:
                    raise UnreadableError(answer["error"])
                return [(called, given) for called, given in answer["calls"]]
            raise UnreadableError("Node has ended.")

        yield ask


def decode_arguments(text: Any) -> Any:
    """Decode arguments as any application does."""
    try:
        decoded = json.loads(text)
    except (TypeError, ValueError) as error:
        raise UnreadableError(repr(text)) from error
    if not isinstance(decoded, dict):
        raise UnreadableError(repr(text))
    return decoded


@asynccontextmanager
async def open_openai(url: str, reliable: bool) -> AsyncIterator[Any]:
    """Open a client of the openai SDK."""
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
        yield surecall.wrap(client) if reliable else client


@asynccontextmanager
async def open_chat(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask for chat completions with the openai SDK."""
    function = {"name": NAME, "description": ABOUT, "parameters": SCHEMA}

    async with open_openai(url, reliable) as client:

        async def ask(fault: str, stream: bool) -> Calls:
            asked = {
                "model": f"faults:{fault}",
                "messages": [{"role": "user", "content": PROMPT}],
                "tools": [{"type": "function", "function": function}],
            }
            if not stream:
                whole = await client.chat.completions.create(**asked)
                made = whole.choices[0].message.tool_calls or []
                found = [(call.function.name, call.function.arguments) for call in made]
            else:
                found = await fold_chunks(
                    await client.chat.completions.create(**asked, stream=True)
                )
            return [(name, decode_arguments(text)) for name, text in found]

        yield ask


async def fold_chunks(chunks: Any) -> list[tuple[str, str]]:
    """Join the pieces of streamed calls, as the documentation of the SDK does."""
    found: dict[int, list[str]] = {}
    async for chunk in chunks:
        for choice in chunk.choices:
            for delta in choice.delta.tool_calls or []:
                call = found.setdefault(delta.index, ["", ""])
                call[0] += delta.function.name or ""
                call[1] += delta.function.arguments or ""
    return [(name, text) for name, text in found.values()]


@asynccontextmanager
async def open_responses(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask for responses with the openai SDK."""
    tool = {"type": "function", "name": NAME, "description": ABOUT, "parameters": SCHEMA}

    async with open_openai(url, reliable) as client:

        async def ask(fault: str, stream: bool) -> Calls:
            asked = {"model": f"faults:{fault}", "input": PROMPT, "tools": [tool]}
            if stream:
                items: list[Any] = []
                async for event in await client.responses.create(**asked, stream=True):
                    if event.type == "response.output_item.done":
                        items.append(event.item)
                    elif event.type in ("response.failed", "error"):
                        raise RuntimeError(event.type)
            else:
                items = (await client.responses.create(**asked)).output
            calls = [item for item in items if item.type == "function_call"]
            return [(call.name, decode_arguments(call.arguments)) for call in calls]

        yield ask


@asynccontextmanager
async def open_anthropic(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask for messages with the anthropic SDK."""
    import anthropic

    base = url.removesuffix("/v1")
    tool = {"name": NAME, "description": ABOUT, "input_schema": SCHEMA}

    async with anthropic.AsyncAnthropic(base_url=base, api_key="k") as plain:
        client: Any = surecall.wrap(plain) if reliable else plain

        async def ask(fault: str, stream: bool) -> Calls:
            asked = {
                "model": f"faults:{fault}",
                "max_tokens": 500,
                "messages": [{"role": "user", "content": PROMPT}],
                "tools": [tool],
            }
            if stream:
                async with client.messages.stream(**asked) as events:
                    whole = await events.get_final_message()
            else:
                whole = await client.messages.create(**asked)
            return [(part.name, part.input) for part in whole.content if part.type == "tool_use"]

        yield ask


@asynccontextmanager
async def open_genai(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask for content with the google-genai SDK."""
    from google import genai
    from google.genai import types

    declaration = types.FunctionDeclaration(
        name=NAME, description=ABOUT, parameters_json_schema=SCHEMA
    )
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declaration])])
    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.1)  # without them it tries once
    settings: dict[str, Any] = {"base_url": url.removesuffix("/v1"), "retry_options": retries}
    http = surecall.async_http_client(library=httpx2) if reliable else None
    if http is not None:
        settings["httpx_async_client"] = http
    client = genai.Client(api_key="k", http_options=types.HttpOptions(**settings))

    async def ask(fault: str, stream: bool) -> Calls:
        asked: Any = {"model": f"faults:{fault}", "contents": PROMPT, "config": config}
        made: list[Any] = []
        if stream:
            async for part in await client.aio.models.generate_content_stream(**asked):
                made += part.function_calls or []
        else:
            made += (await client.aio.models.generate_content(**asked)).function_calls or []
        return [(call.name, call.args) for call in made]

    yield ask
    await client.aio.aclose()
    if http is not None:
        await http.aclose()


@asynccontextmanager
async def open_langchain(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask with LangChain's chat model."""
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    http = surecall.async_http_client(library=httpx2) if reliable else None
    function = {"name": NAME, "description": ABOUT, "parameters": SCHEMA}

    async def ask(fault: str, stream: bool) -> Calls:
        llm: Any = ChatOpenAI(
            base_url=url, api_key=SecretStr("k"), model=f"faults:{fault}", http_async_client=http
        ).bind_tools([{"type": "function", "function": function}])
        if stream:
            whole: Any = None
            async for chunk in llm.astream(PROMPT):
                whole = chunk if whole is None else whole + chunk
        else:
            whole = await llm.ainvoke(PROMPT)
        return [(call["name"], call["args"]) for call in whole.tool_calls]

    yield ask
    if http is not None:
        await http.aclose()


@asynccontextmanager
async def open_pydantic_ai(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Run an agent of pydantic-ai, whose calls are those that its tool was run with."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with open_openai(url, reliable) as client:
        provider = OpenAIProvider(openai_client=client)

        async def ask(fault: str, stream: bool) -> Calls:
            ran: Calls = []

            def save_note(title: str, tags: list[str], stars: int, draft: bool) -> str:
                """Save a note."""
                given = {"title": title, "tags": tags, "stars": stars, "draft": draft}
                ran.append((NAME, given))
                return "saved"

            async def watch(_: Any, events: Any) -> None:
                async for _ in events:
                    pass

            agent: Any = Agent(
                OpenAIChatModel(f"faults:{fault}", provider=provider), tools=[save_note]
            )
            await settle(agent.run(PROMPT, event_stream_handler=watch if stream else None), ran)
            return ran

        yield ask


@asynccontextmanager
async def open_agents_sdk(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Run an agent of the OpenAI Agents SDK, whose calls are those that its tool was run with."""
    import agents
    from agents.models.openai_responses import OpenAIResponsesModel

    agents.set_tracing_disabled(True)
    async with open_openai(url, reliable) as client:

        async def ask(fault: str, stream: bool) -> Calls:
            ran: Calls = []

            async def invoke(_: Any, text: str) -> str:
                ran.append((NAME, decode_arguments(text)))
                return "saved"

            tool = agents.FunctionTool(
                name=NAME, description=ABOUT, params_json_schema=SCHEMA, on_invoke_tool=invoke
            )
            model = OpenAIResponsesModel(f"faults:{fault}", openai_client=client)
            agent: Any = agents.Agent(name="a", model=model, tools=[tool])
            await settle(run_agent(agent, stream), ran)
            return ran

        yield ask


async def run_agent(agent: Any, stream: bool) -> None:
    """Run an agent of the Agents SDK to its end."""
    import agents

    if not stream:
        await agents.Runner.run(agent, PROMPT, max_turns=3)
        return
    run = agents.Runner.run_streamed(agent, PROMPT, max_turns=3)
    async for _ in run.stream_events():
        pass


@asynccontextmanager
async def open_instructor(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask for a Pydantic object with Instructor, which is the call's arguments."""
    import instructor
    from pydantic import create_model

    fields: dict[str, Any] = {"title": str, "tags": list[str], "stars": int, "draft": bool}
    note = create_model(NAME, __doc__=ABOUT, **fields)

    async with open_openai(url, reliable) as client:
        asking: Any = instructor.from_openai(client)

        async def ask(fault: str, stream: bool) -> Calls:
            # A partial object has a tool of another name, which the provider must be told.
            prompt = PROMPT.replace(NAME, f"Partial{NAME}") if stream else PROMPT
            asked = {
                "model": f"faults:{fault}",
                "messages": [{"role": "user", "content": prompt}],
                "response_model": note,
            }
            if stream:
                made = [note async for note in asking.create_partial(**asked)][-1:]
            else:
                made = [await asking.create(**asked)]
            return [(NAME, note.model_dump()) for note in made]

        yield ask


@asynccontextmanager
async def open_llama_index(url: str, reliable: bool) -> AsyncIterator[Ask]:
    """Ask with LlamaIndex's model for endpoints that are like OpenAI's."""
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai_like import OpenAILike

    def save_note(title: str, tags: list[str], stars: int, draft: bool) -> str:
        """Save a note."""
        return "saved"

    http = surecall.async_http_client(library=httpx2) if reliable else None
    tools = [FunctionTool.from_defaults(save_note, name=NAME, description=ABOUT)]

    async def ask(fault: str, stream: bool) -> Calls:
        llm: Any = OpenAILike(
            model=f"faults:{fault}",
            api_base=url,
            api_key="k",
            is_chat_model=True,
            is_function_calling_model=True,
            async_http_client=http,
        )
        if stream:
            chunks = [c async for c in await llm.astream_chat_with_tools(tools, user_msg=PROMPT)]
            whole = chunks[-1]
        else:
            whole = await llm.achat_with_tools(tools, user_msg=PROMPT)
        made = llm.get_tool_calls_from_response(whole, error_on_no_tool_call=False)
        return [(call.tool_name, call.tool_kwargs) for call in made]

    yield ask
    if http is not None:
        await http.aclose()


async def settle(run: Awaitable[Any], ran: Calls) -> None:
    """Wait for a run; one that fails after its tool has run has delivered that call."""
    try:
        await run
    except Exception:
        if not ran:
            raise


CLIENTS: dict[str, ClientUnderTest] = {
    "openai-chat": ClientUnderTest(
        "openai, Chat Completions", "openai", "chat_completions", "wrap", open_chat
    ),
    "openai-responses": ClientUnderTest(
        "openai, Responses", "openai", "responses", "wrap", open_responses
    ),
    "anthropic": ClientUnderTest("anthropic", "anthropic", "messages", "wrap", open_anthropic),
    "google-genai": ClientUnderTest(
        "google-genai", "google-genai", "gemini", "http_client", open_genai
    ),
    "langchain": ClientUnderTest(
        "LangChain", "langchain-openai", "chat_completions", "http_client", open_langchain
    ),
    "pydantic-ai": ClientUnderTest(
        "pydantic-ai", "pydantic-ai-slim", "chat_completions", "wrap", open_pydantic_ai
    ),
    "openai-agents": ClientUnderTest(
        "OpenAI Agents SDK", "openai-agents", "responses", "wrap", open_agents_sdk
    ),
    "instructor": ClientUnderTest(
        "Instructor", "instructor", "chat_completions", "wrap", open_instructor
    ),
    "llama-index": ClientUnderTest(
        "LlamaIndex, OpenAI-like",
        "llama-index-llms-openai-like",
        "chat_completions",
        "http_client",
        open_llama_index,
    ),
    **{
        name: ClientUnderTest(
            title, package, protocol, "serve", partial(open_node, name), (package, *more)
        )
        for name, title, package, protocol, *more in (
            ("node-openai-chat", "openai for Node, Chat Completions", "openai", "chat_completions"),
            ("node-openai-responses", "openai for Node, Responses", "openai", "responses"),
            ("node-anthropic", "anthropic for Node", "@anthropic-ai/sdk", "messages"),
            ("node-genai", "@google/genai", "@google/genai", "gemini"),
            ("node-ai", "AI SDK", "ai", "chat_completions", "@ai-sdk/openai-compatible"),
            (
                *("node-langchain", "LangChain JS", "@langchain/openai", "chat_completions"),
                "@langchain/core",
            ),
            ("node-agents", "OpenAI Agents SDK for Node", "@openai/agents", "responses", "openai"),
            (
                *("node-mastra", "Mastra", "@mastra/core", "chat_completions", "zod"),
                "ai-5-compatible@npm:@ai-sdk/openai-compatible@^1",
            ),
        )
    },
}
"""Every client, in the order of the table."""
