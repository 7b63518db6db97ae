"""Replies of the client's own format that hold no answer, and errors: they go on as they came."""

import json
from typing import Any

import pytest

from surecall.base.errors import ProviderConnectionError
from surecall.exchange import Policy
from surecall.exchange.mediation import mediate
from surecall.exchange.request import ClientRequest

from .scene import Script
from .streaming import FORMATS, Relayed, recorded, relay, request_for, route_to

BLOCKED: dict[str, Any] = {
    "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
    "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5},
    "modelVersion": "g1",
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-x",
    "output": [],
    "error": None,
    "usage": None,
}
FAILED = {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "boom"}}
OTHERS = [name for name in FORMATS if name != "gemini"]


def background(stream: bool = False, **fields: Any) -> ClientRequest:
    """Return a request for a response that goes on without the client."""
    document = {**request_for("responses").document, "background": True, **fields}
    return ClientRequest.parse("responses", json.dumps({**document, "stream": stream}).encode())


def events_of(*documents: dict[str, Any]) -> list[bytes]:
    """Return the events of a stream of responses, numbered and written with blanks."""
    written: list[bytes] = []
    for number, document in enumerate(documents):
        data = json.dumps({**document, "sequence_number": number})
        written.append(f"event: {document['type']}\ndata: {data}\n\n".encode())
    return written


def data_in(got: Relayed) -> list[dict[str, Any]]:
    """Return what the events bring that a client gets."""
    lines = got.sent.split(b"\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]


# Responses in the background


@pytest.mark.parametrize("status", ["queued", "in_progress", "cancelled"])
async def test_a_response_in_the_background_is_delivered_as_it_came(status: str) -> None:
    """The client gets the id by which it asks for the response later."""
    body = json.dumps({**RESPONSE, "status": status}, indent=1).encode()
    script = Script(body)
    delivered = await mediate(background(), route_to("responses"), Policy(), script)
    assert (delivered.status, delivered.body) == (200, body)
    assert (delivered.outcome, delivered.error, delivered.receipts) == ("clean", None, ())
    assert delivered.model_answered == "gpt-x"
    assert len(script.asked) == 1


async def test_a_response_without_output_is_no_reply_in_the_foreground() -> None:
    """Who waits for the output is not answered with one that is still to come."""
    body = json.dumps({**RESPONSE, "status": "in_progress"}).encode()
    request = background(background=False)
    delivered = await mediate(request, route_to("responses"), Policy(), Script(body))
    assert (delivered.status, delivered.outcome) == (502, "failed")


def test_a_stream_of_the_background_may_end_before_its_response() -> None:
    """It is passed on as it came, but for a call of which only a part has come."""
    begun = {**RESPONSE, "status": "queued"}
    events = events_of(
        {"type": "response.created", "response": begun},
        {"type": "response.queued", "response": begun},
    )
    got = relay(background(stream=True), route_to("responses"), events)
    assert got.sent.startswith(b"".join(events))
    assert b'"error"' not in got.ending.data
    assert (got.ending.outcome, got.ending.error) == ("clean", None)
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    more = events_of(*(json.loads(event.split(b"data: ")[1]) for event in events), added)
    got = relay(background(stream=True), route_to("responses"), more)
    assert b"fc_1" not in got.sent
    assert got.ending.outcome == "clean"
    reset = ProviderConnectionError("CONNECTION_RESET", "The connection was reset.")
    got = relay(background(stream=True), route_to("responses"), events, error=reset)
    assert got.ending.outcome == "failed"
    got = relay(request_for("responses"), route_to("responses"), events)
    assert got.ending.error is not None
    assert got.ending.error.code == "STREAM_TRUNCATED"


# Failed responses


async def test_a_failed_response_is_delivered_as_it_came() -> None:
    """Clients look at its error themselves; the record names it all the same."""
    body = json.dumps(FAILED, indent=1).encode()
    request = request_for("responses")
    delivered = await mediate(request, route_to("responses"), Policy(), Script(body))
    assert (delivered.status, delivered.body, delivered.outcome) == (200, body, "failed")
    assert delivered.error is not None
    assert delivered.error.code == "UPSTREAM_ERROR_BODY"
    shown = Policy(show_receipts=True)
    delivered = await mediate(request, route_to("responses"), shown, Script(body))
    told = json.loads(delivered.body)
    assert told.pop("surecall")["outcome"] == "failed"
    assert told == FAILED


@pytest.mark.parametrize("size", [0, 1], ids=["events", "bytes"])
def test_a_failed_stream_goes_on_as_it_is(size: int) -> None:
    """There is no other error before it, and its number follows those before."""
    begun = {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}}
    events = events_of(begun, {"type": "response.failed", "response": FAILED})
    data = b"".join(events)
    chunks = [data[at : at + 1] for at in range(len(data))] if size else events
    got = relay(request_for("responses"), route_to("responses"), chunks)
    assert got.sent.startswith(data)
    assert got.sent[len(data) :].startswith(b": surecall outcome=failed")
    assert got.ending.is_reply
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    events = events_of(begun, added, {"type": "response.failed", "response": FAILED})
    got = relay(request_for("responses"), route_to("responses"), events)
    assert [event["type"] for event in data_in(got)] == ["response.created", "response.failed"]
    assert [event["sequence_number"] for event in data_in(got)] == [0, 1]
    assert data_in(got)[1]["response"] == FAILED


# Blocked prompts


async def test_a_blocked_prompt_is_delivered_as_it_came() -> None:
    """A client of Gemini finds why; the record has the code and the tokens."""
    body = json.dumps(BLOCKED, indent=1).encode()
    request = request_for("gemini")
    delivered = await mediate(request, route_to("gemini"), Policy(), Script(body))
    assert (delivered.status, delivered.body, delivered.outcome) == (200, body, "failed")
    assert delivered.error is not None
    assert delivered.error.code == "PROMPT_BLOCKED"
    assert delivered.usage is not None
    assert delivered.usage.input_tokens == 5
    event = b"data: %b\n\n" % json.dumps(BLOCKED).encode()
    got = relay(request, route_to("gemini"), [event])
    assert got.sent == event
    assert got.ending.is_reply
    assert got.ending.error is not None
    assert got.ending.error.code == "PROMPT_BLOCKED"
    assert got.ending.usage == delivered.usage


@pytest.mark.parametrize("client", OTHERS)
async def test_a_blocked_prompt_is_an_error_in_other_formats(client: str) -> None:
    """Their clients know no such reply, whole or streamed."""
    body = json.dumps(BLOCKED).encode()
    request = request_for(client)
    delivered = await mediate(request, route_to("gemini"), Policy(), Script(body))
    assert (delivered.status, delivered.outcome) == (400, "failed")
    assert "SAFETY" in json.loads(delivered.body)["error"]["message"]
    got = relay(request, route_to("gemini"), [b"data: %b\n\n" % body])
    assert got.ending.error is not None
    assert got.ending.error.code == "PROMPT_BLOCKED"
    assert not got.ending.is_reply
    assert got.flowed == b""


# Errors in a stream

ERRORS: dict[str, dict[str, Any]] = {
    "chat_completions": {"error": {"message": "busy", "type": "server_error", "code": "c1"}},
    "responses": {"type": "error", "code": "c1", "message": "busy", "param": None},
    "messages": {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    "gemini": {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}},
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("begins", [True, False], ids=["after text", "at once"])
def test_an_error_keeps_the_words_of_the_endpoint(name: str, begins: bool) -> None:
    """Code, status and message stay as they are, in the event and in an answer without one."""
    begun = recorded(name, "text")[:3] if begins else []
    stated = ERRORS[name]
    named = b"event: error\n" if name in ("responses", "messages") else b""
    event = named + b"data: %b\n\n" % json.dumps(stated, indent=1).replace("\n", "").encode()
    got = relay(request_for(name), route_to(name), [*begun, event])
    assert got.ending.outcome == "failed"
    told = [item for item in data_in(got) if "error" in item or item.get("type") == "error"]
    numbered = {**told[0]}
    numbered.pop("sequence_number", None)
    assert numbered == stated
    if name == "gemini":
        assert b'data: {"error":' in got.ending.data
    assert got.ending.error_status == (503 if name == "gemini" else None)
    body = json.loads(got.ending.error_body or b"")["error"]
    assert body["message"] == "busy"
    assert body.get("code") == (503 if name == "gemini" else None if name == "messages" else "c1")
    if name == "responses":
        last = data_in(got)[-1]
        assert (last["type"], last["response"]["error"]["message"]) == ("response.failed", "busy")


def test_an_error_beside_choices_brings_no_finish() -> None:
    """Some endpoints send an error with a choice that ends; only the error goes on."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    error = {"code": 502, "message": "Provider disconnected"}
    stated = {"id": "g1", "error": error, "choices": [choice]}
    inside = {"id": "g1", "choices": [{**choice, "error": error}]}
    name = "chat_completions"
    for document in (stated, inside):
        event = b"data: %b\n\n" % json.dumps(document).encode()
        got = relay(request_for(name), route_to(name), [*recorded(name, "text")[:2], event])
        last = data_in(got)[-1]
        assert last["error"] == error
        assert "choices" not in last
        assert b"finish_reason" not in got.ending.data
