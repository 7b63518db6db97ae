"""All four endpoints, as the official SDKs see them."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

from surecall.faults import FaultServer, FaultyProvider

# The SDK's own way with aiohttp, which is not ours to change.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")

PROMPT = 'call save with {"text": "ü"} then say Saved.'
SCHEMA: Any = {"type": "object", "properties": {"text": {"type": "string"}}}
Seen = tuple[str, dict[str, Any], str, str]
"""The name and the arguments of the call, why that reply ended, and the answer."""


def openai_client(server: FaultServer) -> openai.AsyncOpenAI:
    """Return a client of OpenAI's formats, without retries."""
    return openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0)


async def converse_chat(server: FaultServer, *, stream: bool) -> Seen:
    """Hold the conversation over chat completions."""
    tool = {"type": "function", "function": {"name": "save", "parameters": SCHEMA}}
    async with openai_client(server) as api:

        async def ask(messages: Any) -> Any:
            given: Any = {"model": "m", "messages": messages, "tools": [tool]}
            if not stream:
                return (await api.chat.completions.create(**given)).choices[0]
            async with api.chat.completions.stream(**given) as events:
                return (await events.get_final_completion()).choices[0]

        asked = [{"role": "user", "content": PROMPT}]
        first = await ask(asked)
        (call,) = first.message.tool_calls
        turn = {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.function.name,
                        "arguments": call.function.arguments,
                    },
                }
            ],
        }
        result = {"role": "tool", "tool_call_id": call.id, "content": "saved"}
        last = await ask([*asked, turn, result])
    arguments = json.loads(call.function.arguments)
    return call.function.name, arguments, first.finish_reason, last.message.content


async def converse_responses(server: FaultServer, *, stream: bool) -> Seen:
    """Hold the conversation over responses."""
    tool = {"type": "function", "name": "save", "parameters": SCHEMA, "strict": False}
    async with openai_client(server) as api:

        async def ask(items: Any) -> Any:
            given: Any = {"model": "m", "input": items, "tools": [tool]}
            if not stream:
                return await api.responses.create(**given)
            async with api.responses.stream(**given) as events:
                return await events.get_final_response()

        asked: list[Any] = [{"role": "user", "content": PROMPT}]
        first = await ask(asked)
        (call,) = first.output
        turn = {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "saved"}
        last = await ask([*asked, turn, result])
    return call.name, json.loads(call.arguments), first.status, last.output_text


async def converse_messages(server: FaultServer, *, stream: bool) -> Seen:
    """Hold the conversation over messages."""
    tool = {"name": "save", "description": "Save a text.", "input_schema": SCHEMA}
    base_url = server.url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=base_url, api_key="k", max_retries=0) as api:

        async def ask(messages: Any) -> Any:
            given: Any = {"model": "m", "max_tokens": 99, "messages": messages, "tools": [tool]}
            if not stream:
                return await api.messages.create(**given)
            async with api.messages.stream(**given) as events:
                return await events.get_final_message()

        asked: list[Any] = [{"role": "user", "content": PROMPT}]
        first = await ask(asked)
        (call,) = first.content
        assert first.usage.input_tokens > 0
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "saved"}
        turns = [{"role": "assistant", "content": first.content}]
        last = await ask([*asked, *turns, {"role": "user", "content": [result]}])
    return call.name, call.input, first.stop_reason, last.content[0].text


def google_client(server: FaultServer) -> genai.Client:
    """Return a client of Google's format."""
    return genai.Client(
        api_key="k", http_options=types.HttpOptions(base_url=server.url.removesuffix("/v1"))
    )


async def converse_gemini(server: FaultServer, *, stream: bool) -> Seen:
    """Hold the conversation over Gemini's format."""
    declared = types.FunctionDeclaration(name="save", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    async with google_client(server).aio as api:

        async def ask(contents: Any) -> tuple[list[types.Part], Any]:
            given: Any = {"model": "m", "contents": contents, "config": config}
            if not stream:
                found = [await api.models.generate_content(**given)]
            else:
                chunks = await api.models.generate_content_stream(**given)
                found = [chunk async for chunk in chunks]
            candidates = [(chunk.candidates or [])[0] for chunk in found]
            parts = [
                part
                for candidate in candidates
                if candidate.content is not None
                for part in candidate.content.parts or []
            ]
            return parts, candidates[-1].finish_reason

        asked = types.Content(role="user", parts=[types.Part(text=PROMPT)])
        parts, reason = await ask([asked])
        (call,) = [part.function_call for part in parts if part.function_call is not None]
        result = types.Part.from_function_response(name="save", response={"result": "saved"})
        last, _ = await ask(
            [
                asked,
                types.Content(role="model", parts=[types.Part(function_call=call)]),
                types.Content(role="user", parts=[result]),
            ]
        )
    text = "".join(part.text or "" for part in last)
    return call.name or "", call.args or {}, reason.value, text


CONVERSATIONS: dict[str, tuple[Callable[..., Awaitable[Seen]], str]] = {
    "chat_completions": (converse_chat, "tool_calls"),
    "responses": (converse_responses, "completed"),
    "messages": (converse_messages, "tool_use"),
    "gemini": (converse_gemini, "STOP"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("protocol", CONVERSATIONS)
async def test_a_conversation_with_a_tool(protocol: str, stream: bool) -> None:
    """The SDK understands the call, sends the result, and gets the answer."""
    converse, ending = CONVERSATIONS[protocol]
    async with FaultServer(FaultyProvider()) as server:
        seen = await converse(server, stream=stream)
    assert seen == ("save", {"text": "ü"}, ending, "Saved.")


MESSAGES: Any = [{"role": "user", "content": PROMPT}]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("overloaded", anthropic.APIStatusError),
        ("rate_limit", anthropic.RateLimitError),
        ("auth", anthropic.AuthenticationError),
        ("server_error", anthropic.InternalServerError),
        ("reset", anthropic.APIConnectionError),
        ("no_such_fault", anthropic.NotFoundError),
    ],
)
async def test_faults_reach_the_sdk_of_anthropic(fault: str, error: type[Exception]) -> None:
    """What is wrong on the wire is wrong for it, with the type that Anthropic gives it."""
    async with FaultServer(FaultyProvider()) as server:
        base_url = server.url.removesuffix("/v1")
        async with anthropic.AsyncAnthropic(base_url=base_url, api_key="k", max_retries=0) as api:
            with pytest.raises(error) as caught:
                await api.messages.create(model=f"faults:{fault}", max_tokens=99, messages=MESSAGES)
    if isinstance(caught.value, anthropic.APIStatusError) and fault != "no_such_fault":
        body: Any = caught.value.body
        assert body["type"] == "error"
        assert caught.value.request_id == body["request_id"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limit", openai.RateLimitError),
        ("auth", openai.AuthenticationError),
        ("forbidden", openai.PermissionDeniedError),
        ("server_error", openai.InternalServerError),
        ("closed", openai.APIConnectionError),
    ],
)
@pytest.mark.parametrize("endpoint", ["chat", "responses"])
async def test_faults_reach_the_sdk_of_openai(
    endpoint: str, fault: str, error: type[Exception]
) -> None:
    """Both of its endpoints raise what OpenAI's own errors raise."""
    model = f"faults:{fault}"
    async with FaultServer(FaultyProvider()) as server, openai_client(server) as api:
        if endpoint == "chat":
            asked: Any = api.chat.completions.create(model=model, messages=MESSAGES)
        else:
            asked = api.responses.create(model=model, input=MESSAGES)
        with pytest.raises(error) as caught:
            await asked
    if isinstance(caught.value, openai.APIStatusError):
        assert str(caught.value.request_id).startswith("req_")


async def test_a_failed_response_reaches_the_sdk_of_openai() -> None:
    """A stream of events that breaks off raises the error that it carries."""
    model = "faults:stream_error_event"
    async with FaultServer(FaultyProvider()) as server, openai_client(server) as api:
        events = await api.responses.create(model=model, input=MESSAGES, stream=True)
        with pytest.raises(openai.APIError, match="Overloaded"):
            _ = [event async for event in events]


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("rate_limit", "RESOURCE_EXHAUSTED", errors.ClientError),
        ("auth", "UNAUTHENTICATED", errors.ClientError),
        ("server_error", "INTERNAL", errors.ServerError),
        ("function_call_field", "NOT_FOUND", errors.ClientError),
    ],
)
async def test_faults_reach_the_sdk_of_google(
    fault: str, status: str, error: type[errors.APIError]
) -> None:
    """Its errors carry Google's own names of statuses."""
    async with FaultServer(FaultyProvider()) as server, google_client(server).aio as api:
        with pytest.raises(error) as caught:
            await api.models.generate_content(model=f"faults:{fault}", contents="hi")
    assert caught.value.status == status


async def test_the_sdks_list_the_models() -> None:
    """Each finds the names that a request may carry."""
    async with FaultServer(FaultyProvider()) as server:
        base_url = server.url.removesuffix("/v1")
        async with openai_client(server) as api:
            assert "faults:clean" in [model.id async for model in api.models.list()]
        async with anthropic.AsyncAnthropic(base_url=base_url, api_key="k") as claude:
            assert "faults:clean" in [model.id async for model in claude.models.list()]
        async with google_client(server).aio as google:
            names = [model.name async for model in await google.models.list()]
            assert "models/faults:clean" in names
