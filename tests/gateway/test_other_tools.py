"""Tools that are no functions, before an upstream that knows functions only."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI

from surecall.wire.responses.tools import as_functions, list_origins, restore_call

from .harness import STREAM_END, STREAM_HEAD, ask, chunk, completion, reply, serve_stubbed

PATCH = '*** Begin Patch\n*** Add File: a "b".txt\n+1 < 2\n*** End Patch'
NAMESPACE: dict[str, Any] = {
    "type": "namespace",
    "name": "agents",
    "description": "Other agents.",
    "tools": [
        {
            "type": "function",
            "name": "spawn",
            "description": "Begin one.",
            "strict": False,
            "parameters": {
                "type": "object",
                "properties": {"task": {"type": "string"}},
                "required": ["task"],
            },
        }
    ],
}
CUSTOM: dict[str, Any] = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Change files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin end"},
}
TOOLS = [NAMESPACE, CUSTOM, {"type": "web_search", "external_web_access": False}]


def request(*items: Any, **fields: Any) -> dict[str, Any]:
    """A request as an agent program sends it."""
    first = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]}
    return {"model": "m", "input": [first, *items], "tools": TOOLS, **fields}


def calling(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A whole chat completion with one call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    body = completion("")
    body["choices"][0]["message"]["tool_calls"] = [
        {"id": "call_1", "type": "function", "function": function}
    ]
    body["choices"][0]["finish_reason"] = "tool_calls"
    return body


def streaming(name: str, arguments: dict[str, Any]) -> list[bytes]:
    """The same as a stream."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    events: list[Any] = [({"tool_calls": [call]}, None), ({}, "tool_calls")]
    written = [
        {
            "id": "c-1",
            "object": "chat.completion.chunk",
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        for delta, finish in events
    ]
    return [
        STREAM_HEAD,
        *(chunk(b"data: " + json.dumps(event).encode() + b"\n\n") for event in written),
        STREAM_END,
    ]


async def test_the_upstream_sees_functions_and_the_client_is_told_what_is_left_out(
    tmp_path: Path,
) -> None:
    """A whole reply, with the call of a namespace."""
    call = calling("agents__spawn", {"task": "look"})
    async with serve_stubbed(tmp_path, [reply(call)]) as (served, stub):
        answer = await ask(served, "POST", "/v1/responses", request())
    assert answer.status == 200, answer.body
    sent = json.loads(stub.bodies[0])
    functions = {tool["function"]["name"]: tool["function"] for tool in sent["tools"]}
    assert list(functions) == ["agents__spawn", "apply_patch"]
    assert functions["apply_patch"]["parameters"]["required"] == ["input"]
    assert "start: begin end" in functions["apply_patch"]["description"]
    [item] = [item for item in answer.json["output"] if item["type"] == "function_call"]
    assert (item["namespace"], item["name"]) == ("agents", "spawn")
    assert json.loads(item["arguments"]) == {"task": "look"}
    assert [tool["type"] for tool in answer.json["tools"]] == ["namespace", "custom", "web_search"]
    assert "FIELD_NOT_CARRIED" in answer.headers["x-surecall-defects"]


async def test_arguments_of_such_a_function_are_checked_and_asked_for_again(tmp_path: Path) -> None:
    """They are calls like any other."""
    wrong, right = calling("agents__spawn", {}), calling("agents__spawn", {"task": "look"})
    async with serve_stubbed(tmp_path, [reply(wrong)], [reply(right)]) as (served, stub):
        answer = await ask(served, "POST", "/v1/responses", request())
    assert len(stub.bodies) == 2
    [item] = answer.json["output"]
    assert (item["namespace"], item["name"]) == ("agents", "spawn")


@pytest.mark.parametrize("is_stream", [True, False], ids=["streamed", "whole"])
async def test_the_official_client_gets_the_text_of_a_custom_tool(
    tmp_path: Path, is_stream: bool
) -> None:
    """Its type, its name and its input are the client's own."""
    answer = (
        streaming("apply_patch", {"input": PATCH})
        if is_stream
        else [reply(calling("apply_patch", {"input": PATCH}))]
    )
    async with serve_stubbed(tmp_path, answer) as (served, _):
        client = AsyncOpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=0)
        if is_stream:
            pieces: list[str] = []
            found: Any = None
            async for event in await client.responses.create(**request(), stream=True):
                if event.type == "response.custom_tool_call_input.delta":
                    pieces.append(event.delta)
                if event.type == "response.completed":
                    [found] = event.response.output
            assert "".join(pieces) == PATCH
        else:
            [found] = (await client.responses.create(**request())).output
        await client.close()
    assert (found.type, found.name, found.input) == ("custom_tool_call", "apply_patch", PATCH)


async def test_calls_and_results_of_the_conversation_follow(tmp_path: Path) -> None:
    """Of custom tools, of namespaces, and of tools that a provider ran."""
    items = [
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": PATCH},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "Done."},
        {
            "type": "function_call",
            "call_id": "b",
            "namespace": "agents",
            "name": "spawn",
            "arguments": '{"task":"look"}',
        },
        {"type": "function_call_output", "call_id": "b", "output": "Begun."},
    ]
    async with serve_stubbed(tmp_path, [reply(completion())]) as (served, stub):
        answer = await ask(served, "POST", "/v1/responses", request(*items))
    assert answer.status == 200, answer.body
    messages = json.loads(stub.bodies[0])["messages"]
    called = [call["function"] for turn in messages for call in turn.get("tool_calls") or ()]
    assert [call["name"] for call in called] == ["apply_patch", "agents__spawn"]
    assert json.loads(called[0]["arguments"]) == {"input": PATCH}
    assert [turn["content"] for turn in messages if turn["role"] == "tool"] == ["Done.", "Begun."]


async def test_a_choice_of_such_a_tool_is_kept(tmp_path: Path) -> None:
    """Under the name that the upstream knows."""
    choice = {"type": "custom", "name": "apply_patch"}
    call = calling("apply_patch", {"input": PATCH})
    async with serve_stubbed(tmp_path, [reply(call)]) as (served, stub):
        await ask(served, "POST", "/v1/responses", request(tool_choice=choice))
    chosen = json.loads(stub.bodies[0])["tool_choice"]
    assert chosen == {"type": "function", "function": {"name": "apply_patch"}}


async def test_tools_that_only_a_provider_runs_are_left_out_of_messages(tmp_path: Path) -> None:
    """The functions beside them stay."""
    body = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [
            {"name": "save", "input_schema": {"type": "object", "properties": {}}},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
        ],
    }
    async with serve_stubbed(tmp_path, [reply(completion())]) as (served, stub):
        answer = await ask(served, "POST", "/v1/messages", body)
    assert answer.status == 200, answer.body
    assert [tool["function"]["name"] for tool in json.loads(stub.bodies[0])["tools"]] == ["save"]
    assert "FIELD_NOT_CARRIED" in answer.headers["x-surecall-defects"]


names = st.sampled_from(["a", "b", "mcp__x__", "mcp__x__a", "x"])
functions = st.builds(lambda name: {"type": "function", "name": name}, names)
customs = st.builds(lambda name: {"type": "custom", "name": name}, names)
groups = st.builds(
    lambda name, tools: {"type": "namespace", "name": name, "tools": tools},
    names,
    st.lists(functions | customs, max_size=3),
)


@given(st.lists(functions | customs | groups, max_size=6), st.text())
def test_every_call_comes_back_as_the_client_would_have_it(tools: list[Any], text: str) -> None:
    """Whatever names are shared between functions, custom tools and namespaces."""
    origins = list_origins(tools)
    declared, left_out = as_functions({"tools": tools, "input": "x"})
    assert left_out == ()
    for tool in declared["tools"]:
        item = {"type": "function_call", "name": tool["name"], "arguments": ""}
        origin = origins[tool["name"]]
        if origin.kind == "custom":
            item["arguments"] = json.dumps({"input": text})
        restored = restore_call(item, origins)
        assert restored["name"] == origin.name
        assert restored.get("namespace", "") == origin.namespace
        assert restored.get("input", text) == text
        back, _ = as_functions({"tools": tools, "input": [restored]})
        assert list_origins(tools)[back["input"][0]["name"]] == origin
