"""Google's own SDK as the judge of both sides."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from support.conversations import CONVERSATION
from support.family_server import FamilyServer
from surecall.base.errors import Code, ProviderStatusError
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec, Usage
from surecall.wire.gemini import render_tool

from .wire import GEMINI

# The SDK's own way with aiohttp, which is not ours to change.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")

CALL = RawCall("c1", "look", {"what": "a", "n": [1, None]}, extra={"thought_signature": "U0VM"})
REPLIES = (
    Reply(
        content="Let me look.",
        reasoning="Hm.",
        calls=(CALL,),
        finish_reason="tool_calls",
        usage=Usage(10, 8, 18, 3, 4),
        model="gemini-x",
        id="r1",
    ),
    Reply(content="Done.", finish_reason="stop", model="gemini-x", id="r2"),
)
DECLARED = types.FunctionDeclaration(
    name="look",
    description="Looks.",
    parameters=types.Schema(
        type=types.Type.OBJECT,
        properties={"what": types.Schema(type=types.Type.STRING, nullable=True)},
        required=["what"],
    ),
)
CONFIG = types.GenerateContentConfig(
    system_instruction="Be brief.",
    temperature=0.5,
    top_k=3,
    max_output_tokens=100,
    stop_sequences=["END"],
    tools=[types.Tool(function_declarations=[DECLARED])],
    tool_config=types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(
            mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["look"]
        )
    ),
    thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW),
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)


def _client(url: str) -> genai.Client:
    return genai.Client(api_key="test-key", http_options=types.HttpOptions(base_url=url))


async def _chunks(stream: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in stream]


async def test_the_sdk_understands_our_replies_and_we_its_requests() -> None:
    """A whole round: text, a signed call, its result, the end."""
    async with FamilyServer(GEMINI, REPLIES) as server:
        client = _client(server.url)
        question = types.Content(role="user", parts=[types.Part(text="What is a?")])
        first = await client.aio.models.generate_content(
            model="gemini-x", contents=[question], config=CONFIG
        )
        assert first.candidates is not None
        answer = first.candidates[0].content
        assert answer is not None
        result = types.Part.from_function_response(name="look", response={"result": "one"})
        second = await client.aio.models.generate_content(
            model="gemini-x",
            contents=[question, answer, types.Content(role="user", parts=[result])],
            config=CONFIG,
        )
        await client.aio.aclose()
    assert first.text == "Let me look."
    assert first.function_calls is not None
    assert first.function_calls[0].args == CALL.arguments
    assert first.candidates[0].finish_reason == types.FinishReason.STOP
    assert first.usage_metadata is not None
    assert first.usage_metadata.thoughts_token_count == 3
    assert (first.model_version, first.response_id) == ("gemini-x", "r1")
    assert second.text == "Done."
    assert server.wires[0].headers["x-goog-api-key"] == "test-key"
    asked = server.requests[1]
    assert asked.messages == (
        Message("system", "Be brief."),
        Message("user", "What is a?"),
        Message(
            "assistant",
            "Let me look.",
            (
                ToolCall(
                    id="c1",
                    name="look",
                    arguments=CALL.arguments,
                    raw=CALL.arguments,
                    extra={"thought_signature": "U0VM"},
                ),
            ),
            extra={"reasoning_content": "Hm."},
        ),
        Message("tool", "one", tool_call_id="c1"),
    )
    assert asked.tools[0].parameters == {
        "type": "object",
        "properties": {"what": {"type": ["string", "null"]}},
        "required": ["what"],
    }
    assert asked.tool_choice == {"type": "function", "function": {"name": "look"}}
    assert asked.params == {
        "temperature": 0.5,
        "top_k": 3,
        "max_tokens": 100,
        "stop": ["END"],
        "reasoning_effort": "low",
    }


async def test_the_sdk_understands_our_streams() -> None:
    """Pieces of text, a whole call, and the finish with usage."""
    async with FamilyServer(GEMINI, REPLIES[:1]) as server:
        client = _client(server.url)
        stream = await client.aio.models.generate_content_stream(
            model="gemini-x", contents="Hi", config=CONFIG
        )
        chunks = await _chunks(stream)
        await client.aio.aclose()
    assert server.requests[0].stream
    parts = [part for item in chunks for part in item.candidates[0].content.parts]
    assert "".join(p.text for p in parts if p.text and not p.thought) == "Let me look."
    assert "".join(p.text for p in parts if p.text and p.thought) == "Hm."
    assert [p.function_call.args for p in parts if p.function_call] == [CALL.arguments]
    assert [p.thought_signature for p in parts if p.function_call] == [b"SEL"]
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[-1].usage_metadata.total_token_count == 18


async def test_the_sdk_understands_our_errors() -> None:
    """Status, name and message arrive where its users look for them."""
    error = ProviderStatusError(Code.RATE_LIMIT, "Slow down.", status=429)
    async with FamilyServer(GEMINI, [error]) as server:
        client = _client(server.url)
        with pytest.raises(errors.ClientError) as caught:
            await client.aio.models.generate_content(model="gemini-x", contents="Hi")
        await client.aio.aclose()
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert caught.value.message == "Slow down."


def _strict(model: Any, value: Any) -> Any:
    """Check a JSON value against the SDK's own types, which forbid fields they do not know."""
    return model.model_validate(json.loads(json.dumps(value)))


REQUESTS = (
    CONVERSATION,
    ModelRequest(
        model="gemini-2.5-flash",
        messages=(
            Message(
                "user",
                [
                    {"type": "text", "text": "See."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                    {"type": "file", "file": {"file_id": "https://x.example/a.pdf"}},
                ],
            ),
            Message(
                "assistant",
                None,
                (ToolCall(id="c", name="a/b", arguments={}, extra={"thought_signature": "U0VM"}),),
            ),
            Message("tool", "[1]", tool_call_id="c"),
        ),
        tools=(ToolSpec(name="a/b"),),
        tool_choice="auto",
        params={"stop": "x", "seed": 1, "top_k": 2, "reasoning_effort": "low", "n": 1},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": ["array", "null"]}},
        },
    ),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=["conversation", "parts"])
def test_our_requests_fit_the_types_of_the_sdk(request_: ModelRequest) -> None:
    """No field is unknown to it, and none has another type."""
    body = GEMINI.render_request(request_).body
    for content in body["contents"]:
        _strict(types.Content, content)
    for tool in body["tools"]:
        _strict(types.Tool, tool)
    _strict(types.ToolConfig, body["toolConfig"])
    _strict(types.GenerationConfig, body["generationConfig"])
    if "systemInstruction" in body:
        _strict(types.Content, body["systemInstruction"])
    known = {"contents", "tools", "toolConfig", "generationConfig", "systemInstruction"}
    assert body.keys() <= known


def test_rewritten_schemas_fit_the_schema_type_of_the_sdk() -> None:
    """Types, choices, bounds, order: nothing is said in a way it does not know."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "integer", "null"], "minLength": 1, "exclusiveMinimum": 0},
            "b": {"enum": ["x", None], "title": "B"},
            "c": {"type": "array", "prefixItems": [{"type": "boolean"}], "minItems": 1},
            "d": {"$ref": "#/$defs/D"},
            "e": {"const": 3, "default": 3},
        },
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"D": {"type": "object", "properties": {"d": {"$ref": "#/$defs/D"}}}},
    }
    declared = render_tool(ToolSpec(name="t", parameters=schema))
    parameters = _strict(types.FunctionDeclaration, declared).parameters
    assert parameters.type == types.Type.OBJECT
    assert parameters.property_ordering == ["a", "b", "c", "d", "e"]
    assert parameters.properties["a"].nullable is True
    assert [item.type for item in parameters.properties["a"].any_of] == [
        types.Type.STRING,
        types.Type.INTEGER,
    ]
    assert parameters.properties["b"].enum == ["x"]
