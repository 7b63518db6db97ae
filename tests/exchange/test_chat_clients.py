"""What clients of chat completions find in a stream or a reply that was written anew."""

import json
from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from surecall.base.records import RawCall, Reply, Usage
from surecall.exchange import Policy
from surecall.exchange.mediation import mediate
from surecall.exchange.request import ClientRequest
from surecall.wire import find_protocol

from .scene import Script
from .streaming import (
    ARGUMENTS,
    FORMATS,
    LOOK,
    SAVE,
    Relayed,
    calls_in,
    fold,
    relay,
    request_for,
    route_to,
    stream_of,
)

DAMAGED = '{"text": "a", "count": "3", "tags": ["x"]}'


def chunks_of(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[bytes]:
    """Return the events of a completion, one for each delta and one for its finish."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices[-1]["finish_reason"] = finish
    events = [{**head, "choices": [choice]} for choice in choices]
    return [b"data: %b\n\n" % json.dumps(item).encode() for item in events] + [b"data: [DONE]\n\n"]


def deltas_in(got: Relayed) -> list[dict[str, Any]]:
    """Return what the chunks bring that a client gets."""
    lines = [line[6:] for line in got.sent.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line)["choices"][0]["delta"] for line in lines]


def message_in(got: Relayed) -> Any:
    """Return the message that the official client puts together."""
    state: Any = ChatCompletionStreamState()
    for line in got.sent.split(b"\n"):
        if line.startswith(b"data: {"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(line[6:]))
    return state.get_final_completion().choices[0].message


def entry(arguments: str, **more: Any) -> dict[str, Any]:
    """Return a piece of a call."""
    return {"index": 0, "function": {"arguments": arguments, **more}}


BEGUN = {**entry("", name="save"), "id": "call_1", "type": "function"}
ROLE = {"role": "assistant"}


# The role


@pytest.mark.parametrize("size", [0, 1, 10**6], ids=["events", "bytes", "burst"])
@pytest.mark.parametrize(
    "deltas",
    [
        ({**ROLE, "content": None, "tool_calls": [{**BEGUN, **entry(DAMAGED, name="save")}]}, {}),
        (
            {**ROLE, "content": None, "tool_calls": [BEGUN]},
            {**ROLE, "tool_calls": [entry(DAMAGED[:9])]},
            {**ROLE, "tool_calls": [entry(DAMAGED[9:])]},
            {**ROLE, "content": ""},
        ),
        ({**ROLE, "content": ""}, {"tool_calls": [BEGUN]}, {"tool_calls": [entry(DAMAGED)]}, ROLE),
        ({"tool_calls": [BEGUN]}, {**ROLE, "tool_calls": [entry(DAMAGED)]}, {}),
    ],
    ids=["with the call", "in every chunk", "passed on", "late"],
)
def test_the_role_is_written_once(deltas: tuple[dict[str, Any], ...], size: int) -> None:
    """What is written anew names the role if nothing before it has, and never twice."""
    events = chunks_of(*deltas)
    data = b"".join(events)
    chunks = events if not size else [data[at : at + size] for at in range(0, len(data), size)]
    got = relay(request_for("chat_completions"), route_to("chat_completions"), chunks)
    assert got.ending.outcome == "repaired"
    assert sum("role" in delta for delta in deltas_in(got)) == 1
    message = message_in(got)
    assert message.role == "assistant"
    assert json.loads(message.tool_calls[0].function.arguments)["count"] == 3


# Clients that offer functions


def older_request(stream: bool) -> ClientRequest:
    """Return a request that offers functions, as clients did before there were tools."""
    schemas = {"save": SAVE, "look": LOOK}
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "functions": [{"name": name, "parameters": schemas[name]} for name in schemas],
        "stream": stream,
    }
    return ClientRequest.parse("chat_completions", json.dumps(body).encode())


def older_chunks(arguments: str) -> list[bytes]:
    """Return the events of a completion with a call in the older field."""
    return chunks_of(
        {**ROLE, "content": None, "function_call": {"name": "save", "arguments": ""}},
        {"function_call": {"arguments": arguments[:12]}},
        {"function_call": {"arguments": arguments[12:]}},
        {},
        finish="function_call",
    )


def older_call_in(body: bytes) -> tuple[str, dict[str, Any], Any, str]:
    """Return the name and the arguments of the one call, what else calls, and the finish."""
    choice = json.loads(body)["choices"][0]
    call = choice["message"]["function_call"]
    others = choice["message"].get("tool_calls")
    return call["name"], json.loads(call["arguments"]), others, choice["finish_reason"]


def reply_of(name: str, *calls: RawCall) -> bytes:
    """Return a whole reply with calls, in a format."""
    reply = Reply(calls=calls, finish_reason="tool_calls", usage=Usage(3, 4, 7), model="m1")
    return json.dumps(find_protocol(name).render_reply(reply)).encode()


GOOD = json.dumps(ARGUMENTS)


@pytest.mark.parametrize("upstream", FORMATS)
async def test_a_function_call_is_delivered_as_one(upstream: str) -> None:
    """Whatever the endpoint's format, who offers functions finds the call in function_call."""
    body = reply_of(upstream, RawCall("c1", "save", GOOD))
    route = route_to(upstream)
    delivered = await mediate(older_request(stream=False), route, Policy(), Script(body))
    assert older_call_in(delivered.body) == ("save", ARGUMENTS, None, "function_call")
    assert delivered.calls == 1
    events = stream_of(upstream, RawCall("c1", "save", GOOD))
    got = relay(older_request(stream=True), route, events)
    message = message_in(got)
    assert json.loads(message.function_call.arguments) == ARGUMENTS
    assert (message.function_call.name, message.tool_calls) == ("save", None)
    assert b'"finish_reason":"function_call"' in got.ending.data.replace(b": ", b":")
    assert got.ending.calls == 1


@pytest.mark.parametrize("finish", ["function_call", "stop"])
async def test_a_clean_function_call_is_left_as_it_is(finish: str) -> None:
    """Bytes, outcome and record say that nothing was done, whole and streamed."""
    message = {"role": "assistant", "content": None}
    message |= {"function_call": {"name": "save", "arguments": GOOD}}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    body = json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice]}, indent=1)
    route = route_to("chat_completions")
    for policy in (Policy(), Policy(max_tokens=5)):
        script = Script(body.encode())
        delivered = await mediate(older_request(stream=False), route, policy, script)
        assert delivered.body == body.encode()
        assert (delivered.outcome, delivered.calls) == ("clean", 1)
        assert not delivered.receipts
        assert not delivered.defects
    events = older_chunks(GOOD)
    got = relay(older_request(stream=True), route, events)
    assert got.sent.startswith(b"".join(events))
    assert (got.ending.outcome, got.ending.calls) == ("clean", 1)


async def test_a_damaged_function_call_is_repaired_in_its_place() -> None:
    """Only what was changed has a receipt: the older field is where the client looks."""
    message = {"role": "assistant", "content": None}
    message |= {"function_call": {"name": "save", "arguments": DAMAGED}}
    choice = {"index": 0, "message": message, "finish_reason": "function_call"}
    body = json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice]}).encode()
    route = route_to("chat_completions")
    delivered = await mediate(older_request(stream=False), route, Policy(), Script(body))
    right = {"text": "a", "count": 3, "tags": ["x"]}
    assert older_call_in(delivered.body) == ("save", right, None, "function_call")
    assert [receipt.rule for receipt in delivered.receipts] == ["parse_number_text"]
    got = relay(older_request(stream=True), route, older_chunks(DAMAGED))
    assert json.loads(message_in(got).function_call.arguments) == right
    assert [receipt.rule for receipt in got.ending.receipts] == ["parse_number_text"]


async def test_who_offers_functions_gets_one_call() -> None:
    """There is room for one; the others leave a receipt."""
    calls = [RawCall("c1", "save", GOOD), RawCall("c2", "look", '{"what": "x"}')]
    body = reply_of("messages", *calls)
    route = route_to("messages")
    delivered = await mediate(older_request(stream=False), route, Policy(), Script(body))
    assert older_call_in(delivered.body)[0] == "save"
    assert [receipt.rule for receipt in delivered.receipts] == ["drop_parallel_calls"]
    got = relay(older_request(stream=True), route, stream_of("messages", *calls))
    assert message_in(got).function_call.name == "save"
    assert got.ending.calls == 1


# Calls without an id


@pytest.mark.parametrize("client", FORMATS)
async def test_an_id_that_gemini_does_not_give_is_no_repair(client: str) -> None:
    """A clean call is clean in every format, also where translation has to give it an id."""
    part = {"functionCall": {"name": "save", "args": ARGUMENTS}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    document = {"candidates": [candidate], "modelVersion": "g1"}
    body, route = json.dumps(document).encode(), route_to("gemini")
    request = request_for(client)
    delivered = await mediate(request, route, Policy(), Script(body))
    assert (delivered.outcome, delivered.receipts, delivered.calls) == ("clean", (), 1)
    assert "ID_NOT_USABLE" not in [defect.code for defect in delivered.defects]
    assert delivered.steps == ()
    got = relay(request, route, [b"data: %b\n\n" % body])
    assert (got.ending.outcome, got.ending.receipts) == ("clean", ())
    assert "ID_NOT_USABLE" not in [defect.code for defect in got.ending.defects]
    assert calls_in(fold(client, got.sent)) == [("save", ARGUMENTS)]


# Several replies


def test_several_replies_keep_what_they_have_besides_a_message() -> None:
    """Log probabilities and the like reach the client of a stream, once for each reply."""
    token = {"token": "x", "logprob": -0.1, "bytes": [120], "top_logprobs": []}
    filtered = {"hate": {"filtered": False}}
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": "x"},
            "logprobs": {"content": [{**token, "logprob": -index}], "refusal": None},
            "content_filter_results": filtered,
            "finish_reason": "stop",
        }
        for index in range(2)
    ]
    document = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
    body = json.dumps({**document, "choices": choices}).encode()
    state: Any = ChatCompletionStreamState()
    data = request_for("chat_completions").write_events(body)
    for line in data.split(b"\n"):
        if line.startswith(b"data: {"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(line[6:]))
    found = state.get_final_completion().choices
    assert [item.logprobs.content[0].logprob for item in found] == [0, -1]
    assert [item.message.content for item in found] == ["x", "x"]
    assert data.count(b"content_filter_results") == 2


@pytest.mark.parametrize("size", [0, 1, 40])
async def test_a_call_without_its_type_gets_it(size: int) -> None:
    """Some clients throw at a call that has none; whole, and in pieces of any size."""
    good = json.dumps(ARGUMENTS)
    functions = [{"index": 0, "id": "c1", "function": {"name": "save", "arguments": ""}}]
    pieces = [good[at : at + 9] for at in range(0, len(good), 9)]
    deltas = [{"role": "assistant", "tool_calls": functions}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": text}}]} for text in pieces]
    events = chunks_of(*deltas)
    joined = b"".join(events)
    cut = [joined[at : at + size] for at in range(0, len(joined), size)] if size else events
    done = relay(request_for("chat_completions"), route_to("chat_completions"), cut)
    state = ChatCompletionStreamState()
    for line in done.sent.split(b"\n\n"):
        if line.startswith(b"data: {"):
            chunk = ChatCompletionChunk.model_validate_json(line[6:])
            named = [call for call in chunk.choices[0].delta.tool_calls or () if call.id]
            assert all(call.type == "function" for call in named)
            state.handle_chunk(chunk)
    (call,) = state.get_final_completion().choices[0].message.tool_calls or ()
    assert json.loads(call.function.arguments) == ARGUMENTS
    entry = {"id": "c1", "function": {"name": "save", "arguments": good}}
    message = {"role": "assistant", "content": None, "tool_calls": [entry]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    script = Script({"id": "c1", "model": "m", "choices": [choice]})
    request = ClientRequest.parse(
        "chat_completions", request_for("chat_completions").body, stream=False
    )
    whole = await mediate(request, route_to("chat_completions"), Policy(), script)
    sent = json.loads(whole.body)["choices"][0]["message"]["tool_calls"]
    assert sent == [{**entry, "type": "function"}]
    for found in (done.ending, whole):
        assert found.outcome == "repaired"
        assert [receipt.rule for receipt in found.receipts] == ["add_call_type"]
