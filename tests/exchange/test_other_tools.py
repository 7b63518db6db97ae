"""Calls of tools that are not functions of the client are left alone, among those that are."""

import json
from typing import Any

import pytest

from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Route
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.wire import find_protocol

from .scene import Policy, Script

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
RIGHT = {"city": "Oslo", "days": 3}
BROKEN = '{"city": "Oslo", "days": "3",}'
OFFERED: dict[str, Any] = {
    "chat_completions": [
        {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
        {"type": "custom", "custom": {"name": "sql"}},
    ],
    "messages": [
        {"name": "look", "input_schema": SCHEMA},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "browser_toolset_20260801"},
    ],
    "responses": [
        {"type": "function", "name": "look", "parameters": SCHEMA},
        {
            "type": "namespace",
            "name": "crm",
            "tools": [{"type": "function", "name": "find", "parameters": {}}],
        },
    ],
}
FOREIGN: dict[str, list[dict[str, Any]]] = {
    "chat_completions": [
        {"id": "x1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    ],
    "messages": [
        {"type": "tool_use", "id": "x1", "name": "bash", "input": {"command": "ls"}},
        {
            "type": "tool_use",
            "id": "x2",
            "name": "find",
            "input": {"query": "a"},
            "toolset_name": "browser",
        },
    ],
    "responses": [
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "x1",
            "name": "find",
            "namespace": "crm",
            "arguments": '{"id": 1}',
            "status": "completed",
        }
    ],
}


def ask_for(name: str, *, stream: bool = False, **fields: Any) -> ClientRequest:
    """Return a request that offers a function and a tool of another kind."""
    said = [{"role": "user", "content": "hi"}]
    key = "input" if name == "responses" else "messages"
    body = {"model": "m", key: said, "tools": OFFERED[name], "stream": stream, **fields}
    return ClientRequest.parse(name, json.dumps({**body, "max_tokens": 9}).encode())


def call_of(name: str, arguments: str) -> dict[str, Any]:
    """Return the call of the function, which some formats write as an object."""
    if name == "chat_completions":
        function = {"name": "look", "arguments": arguments}
        return {"id": "c1", "type": "function", "function": function}
    if name == "messages":
        value: Any = {"city": "Oslo", "days": "3"} if arguments == BROKEN else RIGHT
        return {"type": "tool_use", "id": "c1", "name": "look", "input": value}
    item = {"type": "function_call", "id": "fc_2", "call_id": "c1", "name": "look"}
    return {**item, "arguments": arguments, "status": "completed"}


def reply_with(name: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a whole reply with these calls."""
    if name == "chat_completions":
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return {"id": "r", "object": "chat.completion", "model": "m", "choices": [choice]}
    if name == "messages":
        head = {"id": "r", "type": "message", "role": "assistant", "model": "m"}
        return {**head, "content": calls, "stop_reason": "tool_use", "stop_sequence": None}
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": calls}


def calls_of(name: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a whole reply."""
    if name == "chat_completions":
        return document["choices"][0]["message"]["tool_calls"]
    return document["content" if name == "messages" else "output"]


def event(value: dict[str, Any], kind: str = "") -> bytes:
    """Return one event."""
    head = f"event: {kind}\n".encode() if kind else b""
    return head + b"data: " + json.dumps(value).encode() + b"\n\n"


def stream_with(name: str, calls: list[dict[str, Any]], broken: str = "") -> bytes:
    """Return the events of a reply with these calls.

    Args:
        name: The format.
        calls: The calls.
        broken: The arguments of the function, where their text is not that of their value.
    """
    if name == "chat_completions":
        return _chat_stream(calls)
    events: list[tuple[str, dict[str, Any]]] = []
    whole = reply_with(name, calls)
    if name == "messages":
        events.append(("message_start", {"message": {**whole, "content": [], "stop_reason": None}}))
        for index, call in enumerate(calls):
            text = broken if broken and call["name"] == "look" else json.dumps(call["input"])
            delta = {"type": "input_json_delta", "partial_json": text}
            block: dict[str, Any] = {**call, "input": {}}
            events += [
                ("content_block_start", {"index": index, "content_block": block}),
                ("content_block_delta", {"index": index, "delta": delta}),
                ("content_block_stop", {"index": index}),
            ]
        events += [("message_delta", {"delta": {"stop_reason": "tool_use"}}), ("message_stop", {})]
    else:
        kind = "response.function_call_arguments"
        for index, call in enumerate(calls):
            place = {"output_index": index}
            events += [
                ("response.output_item.added", {**place, "item": {**call, "arguments": ""}}),
                (f"{kind}.delta", {**place, "delta": call["arguments"]}),
                (f"{kind}.done", {**place, "arguments": call["arguments"]}),
                ("response.output_item.done", {**place, "item": call}),
            ]
        events.append(("response.completed", {"response": whole}))
        events = [(kind, {**item, "sequence_number": at}) for at, (kind, item) in enumerate(events)]
    return b"".join(event({"type": kind, **item}, kind) for kind, item in events)


def _chat_stream(calls: list[dict[str, Any]]) -> bytes:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for index, call in enumerate(calls):
        inner = "function" if "function" in call else "custom"
        key = "arguments" if inner == "function" else "input"
        text = call[inner][key]
        begun = {**call, "index": index, inner: {**call[inner], key: ""}}
        deltas.append({"tool_calls": [begun]})
        pieces = [text[:4], text[4:]]
        deltas += [{"tool_calls": [{"index": index, inner: {key: piece}}]} for piece in pieces]
    chunks: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    head = {"id": "r", "object": "chat.completion.chunk", "model": "m"}
    return b"".join(event({**head, "choices": [choice]}) for choice in chunks) + b"data: [DONE]\n\n"


def relay_stream(request: ClientRequest, data: bytes) -> tuple[bytes, Any]:
    """Return what a client gets to see of a stream, and how it ended."""
    route = Route(protocol=request.protocol, model="m")
    relay = StreamRelay(request, route, Policy(max_requests=1))
    passed = relay.feed(data)
    ending = relay.finish()
    return passed + ending.data, ending


async def deliver(request: ClientRequest, reply: dict[str, Any]) -> Any:
    """Mediate one whole reply."""
    route = Route(protocol=request.protocol, model="m")
    return await mediate(request, route, Policy(max_requests=1), Script(reply))


@pytest.mark.parametrize("own_first", [True, False], ids=["own_first", "own_last"])
@pytest.mark.parametrize("name", OFFERED)
async def test_clean_reply_stays_as_it_is(name: str, own_first: bool) -> None:
    """Among others a clean call is as clean as alone, whole and streamed."""
    calls = [call_of(name, json.dumps(RIGHT)), *FOREIGN[name]]
    calls = calls if own_first else calls[::-1]
    reply = reply_with(name, calls)
    delivered = await deliver(ask_for(name), reply)
    assert (delivered.outcome, json.loads(delivered.body)) == ("clean", reply)
    data = stream_with(name, calls)
    seen, ending = relay_stream(ask_for(name, stream=True), data)
    assert ending.outcome == "clean"
    assert seen.startswith(data)


@pytest.mark.parametrize("name", OFFERED)
async def test_a_call_of_another_tool_alone_is_delivered(name: str) -> None:
    """Nobody is told that a tool does not exist which the request names."""
    reply = reply_with(name, FOREIGN[name])
    delivered = await deliver(ask_for(name), reply)
    assert (delivered.outcome, json.loads(delivered.body)) == ("clean", reply)
    data = stream_with(name, FOREIGN[name])
    seen, ending = relay_stream(ask_for(name, stream=True), data)
    assert ending.outcome == "clean"
    assert seen.startswith(data)


@pytest.mark.parametrize("own_first", [True, False], ids=["own_first", "own_last"])
@pytest.mark.parametrize("name", OFFERED)
async def test_a_broken_call_is_repaired_in_its_place(name: str, own_first: bool) -> None:
    """The calls around it do not move."""
    calls = [call_of(name, BROKEN), *FOREIGN[name]]
    calls = calls if own_first else calls[::-1]
    delivered = await deliver(ask_for(name), reply_with(name, calls))
    assert delivered.outcome == "repaired"
    found = calls_of(name, json.loads(delivered.body))
    at = 0 if own_first else len(calls) - 1
    assert found[:at] + found[at + 1 :] == calls[:at] + calls[at + 1 :]
    text = json.dumps(found[at])
    assert "Oslo" in text
    assert BROKEN not in text


@pytest.mark.parametrize("own_first", [True, False], ids=["own_first", "own_last"])
@pytest.mark.parametrize("name", OFFERED)
def test_a_broken_call_is_repaired_in_a_stream(name: str, own_first: bool) -> None:
    """The calls of other tools come through whole, and every place is used once."""
    calls = [call_of(name, BROKEN), *FOREIGN[name]]
    calls = calls if own_first else calls[::-1]
    data = stream_with(name, calls, BROKEN)
    seen, ending = relay_stream(ask_for(name, stream=True), data)
    assert ending.outcome == "repaired"
    folder = find_protocol(name).open_stream()
    folder.feed(seen)
    reply = find_protocol(name).parse_message(folder.close())
    made = next(call.arguments for call in reply.calls if call.name == "look")
    assert (json.loads(made) if isinstance(made, str) else made) == RIGHT
    assert len(reply.calls) == len(calls)
    events = [json.loads(line[6:]) for line in seen.split(b"\n") if line.startswith(b"data: {")]
    if name == "chat_completions":
        pieces = [
            piece
            for item in events
            for choice in item["choices"]
            for piece in choice["delta"].get("tool_calls", ())
        ]
        assert "".join(piece.get("custom", {}).get("input", "") for piece in pieces) == "select 1"
        assert [piece["index"] for piece in pieces] == sorted(piece["index"] for piece in pieces)
    if name == "responses":
        numbers = [item["sequence_number"] for item in events]
        assert numbers == list(range(len(numbers)))
        assert FOREIGN[name][0] in events[-1]["response"]["output"]


@pytest.mark.parametrize("name", OFFERED)
async def test_a_name_that_nobody_offers_is_refused_all_the_same(name: str) -> None:
    """Other tools do not make unknown functions known."""
    text = json.dumps(call_of(name, json.dumps(RIGHT))).replace("look", "peek")
    delivered = await deliver(ask_for(name), reply_with(name, [json.loads(text)]))
    assert delivered.outcome == "refused"


async def test_a_function_that_is_its_own_namespace_is_checked() -> None:
    """Functions that are loaded late come with their own name as the namespace."""
    call = {**call_of("responses", BROKEN), "namespace": "look"}
    delivered = await deliver(ask_for("responses"), reply_with("responses", [call]))
    assert delivered.outcome == "repaired"
    found = json.loads(delivered.body)["output"][0]
    assert (json.loads(found["arguments"]), found["namespace"]) == (RIGHT, "look")


async def test_a_function_that_the_endpoint_found_is_left_alone() -> None:
    """A search for tools brings functions that the request does not name."""
    call = json.loads(json.dumps(call_of("responses", "{}")).replace("look", "peek"))
    tools = [*OFFERED["responses"], {"type": "tool_search"}]
    delivered = await deliver(ask_for("responses", tools=tools), reply_with("responses", [call]))
    assert delivered.outcome == "clean"


async def test_another_tool_can_be_demanded() -> None:
    """A choice that names it is a matter of the endpoint, whole and streamed."""
    choice = {"type": "tool", "name": "bash"}
    calls = FOREIGN["messages"][:1]
    delivered = await deliver(
        ask_for("messages", tool_choice=choice), reply_with("messages", calls)
    )
    assert delivered.outcome == "clean"
    request = ask_for("messages", stream=True, tool_choice=choice)
    assert relay_stream(request, stream_with("messages", calls))[1].outcome == "clean"
