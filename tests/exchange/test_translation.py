"""Requests and replies on their way through an endpoint that speaks another format."""

import json
from typing import Any

import pytest

from surecall.exchange import Policy, Route
from surecall.profiles import resolve_capabilities
from surecall.protocols import find_protocol
from surecall.records import Reply, Usage

from .scene import GOOD, Script, ask, seen, write_request
from .streaming import fold, relay, request_for

NO = "I cannot help with that."
FORMATS = ("chat_completions", "messages", "responses", "gemini")


# the limit of a reply


@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("openai", "gpt-5", "max_completion_tokens"),
        ("azure", "my-o3", "max_completion_tokens"),
        ("groq", "llama", "max_tokens"),
        (None, "m", "max_tokens"),
    ],
)
@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
async def test_the_limit_has_the_name_that_the_provider_takes(
    client: str, provider: str | None, model: str, name: str
) -> None:
    """Models that reason refuse the older one."""
    found = resolve_capabilities(provider, model).capabilities
    send = Script(GOOD)
    body = write_request(client, model, max_tokens=77)
    answer = await ask(send, client=client, body=body, capabilities=found, model=model)
    assert answer.outcome == "clean"
    assert {key: send.asked[0][key] for key in send.asked[0] if "max" in key} == {name: 77}


async def test_the_limit_of_a_client_of_the_same_format_is_its_own() -> None:
    """Its bytes go on as they are."""
    found = resolve_capabilities("openai", "gpt-5").capabilities
    send = Script(GOOD)
    body = write_request("chat_completions", "m", max_tokens=77)
    await ask(send, body=body, capabilities=found)
    assert send.bodies == [body]


# refusals


def refusal(upstream: str) -> dict[str, Any]:
    """Return a whole reply that says no."""
    said = Reply(content=NO, finish_reason="stop", is_refusal=True, id="r1", model="m")
    return find_protocol(upstream).render_reply(said)


def refusal_events(upstream: str) -> list[bytes]:
    """Return a stream that says no, in small pieces."""
    said = Reply(content=NO, finish_reason="stop", is_refusal=True, usage=Usage(1, 2, 3))
    writer = find_protocol(upstream).open_writer(model="m", reply_id="r1")
    pieces = [writer.refusal(NO[at : at + 4]) for at in range(0, len(NO), 4)]
    return [writer.begin(), *pieces, writer.end(said)]


PAIRS = [(up, client) for up in ("chat_completions", "responses") for client in FORMATS]


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
async def test_a_refusal_reaches_the_client_as_one(upstream: str, client: str) -> None:
    """Also where tools were offered; formats without such a thing say why the model stopped."""
    answer = await ask(Script(refusal(upstream)), client=client, upstream=upstream)
    reply = seen(client, answer)
    assert (answer.outcome, reply.content) == ("clean", NO)
    if client in ("chat_completions", "responses"):
        assert (reply.is_refusal, reply.finish_reason) == (True, "stop")
    else:
        assert reply.finish_reason == "content_filter"


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_a_streamed_refusal_reaches_the_client_as_one(upstream: str, client: str) -> None:
    """Its pieces pass at once, and the end says the same as that of a whole reply."""
    route = Route(protocol=find_protocol(upstream), model="m")
    relayed = relay(request_for(client), route, refusal_events(upstream))
    reply = fold(client, relayed.sent)
    assert (relayed.ending.outcome, reply.content) == ("clean", NO)
    if client in ("chat_completions", "responses"):
        assert (reply.is_refusal, reply.finish_reason) == (True, "stop")
    else:
        assert reply.finish_reason == "content_filter"
    if upstream != client:
        assert b"nnot" in relayed.flowed


def test_a_refusal_that_reads_like_a_call_is_none() -> None:
    """The provider has said what it is."""
    words = 'I cannot do <tool_call>{"name": "look", "arguments": {"what": "x"}}</tool_call>.'
    said = Reply(content=words, finish_reason="stop", is_refusal=True)
    writer = find_protocol("responses").open_writer(model="m", reply_id="r1")
    events = [writer.begin(), writer.refusal(words), writer.end(said)]
    route = Route(protocol=find_protocol("responses"), model="m")
    relayed = relay(request_for("chat_completions"), route, events)
    reply = fold("chat_completions", relayed.sent)
    assert (reply.content, reply.is_refusal, reply.calls) == (words, True, ())


# what the client asked for


@pytest.mark.parametrize("asks", [True, False], ids=["asked", "not asked"])
def test_usage_is_streamed_to_a_client_that_asked_for_it(asks: bool) -> None:
    """The record has it in any case."""
    request = request_for("chat_completions")
    if asks:
        fields = {**json.loads(request.body), "stream_options": {"include_usage": True}}
        request = type(request).parse("chat_completions", json.dumps(fields).encode())
    route = Route(protocol=find_protocol("responses"), model="m")
    relayed = relay(request, route, refusal_events("responses"))
    assert relayed.ending.usage == Usage(1, 2, 3)
    assert (b'"choices":[],"usage":{' in relayed.sent) == asks
    assert (b"usage" in relayed.sent) == asks


async def test_a_response_repeats_what_its_client_sent() -> None:
    """As the API does it."""
    body = json.loads(write_request("responses", "m"))
    body |= {"instructions": "Be brief.", "parallel_tool_calls": False, "tool_choice": "required"}
    answer = await ask(Script(GOOD), client="responses", body=json.dumps(body).encode())
    found = json.loads(answer.body)
    assert (found["instructions"], found["tool_choice"]) == ("Be brief.", "required")
    assert found["parallel_tool_calls"] is False
    assert [tool["name"] for tool in found["tools"]] == ["save", "ping"]
    off = await ask(
        Script(GOOD), client="responses", body=json.dumps(body).encode(), policy=Policy(steps=())
    )
    assert json.loads(off.body)["instructions"] == "Be brief."
