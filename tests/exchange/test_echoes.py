"""What a provider wants back with a call returns to it, whatever format the client speaks."""

import json
from typing import Any

import pytest

from surecall.exchange import EchoCache, Policy
from surecall.exchange.streams import StreamRelay
from surecall.profiles import Capabilities
from surecall.records import Message, RawCall, Receipt, ToolCall

from .scene import ARGUMENTS, GOOD, Script, ask, completion, seen, write_request
from .streaming import fold, request_for, route_to

OTHERS = pytest.mark.parametrize("client", ["chat_completions", "messages", "responses"])
IDS = pytest.mark.parametrize("call_id", ["tc_1", "functions.save:0", None])


def signed_part(call_id: str | None, name: str = "save", arguments: Any = None) -> dict[str, Any]:
    """Write a call as Gemini signs it; older models give none an id."""
    call = {"name": name, "args": ARGUMENTS if arguments is None else arguments}
    named = call if call_id is None else {"id": call_id, **call}
    return {"functionCall": named, "thoughtSignature": "sig"}


def signed_reply(call_id: str | None) -> dict[str, Any]:
    """Write a reply of Gemini with such a call."""
    content = {"role": "model", "parts": [{"text": "Wait."}, signed_part(call_id)]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "g"}


def answer_calls(client: str, calls: tuple[RawCall, ...]) -> bytes:
    """Write the next request of a client that sends back nothing but the calls and results."""
    made = tuple(
        ToolCall(id=str(call.id), name=str(call.name), arguments=_object(call), raw=call.arguments)
        for call in calls
    )
    results = [Message("tool", "ok", tool_call_id=call.id) for call in made]
    return write_request(client, "m", [Message("assistant", None, made), *results])


def _object(call: RawCall) -> Any:
    return json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments


def signatures_in(request: dict[str, Any]) -> list[Any]:
    """Return the signatures of the calls in a request to Gemini."""
    parts = [part for item in request["contents"] for part in item["parts"]]
    return [part.get("thoughtSignature") for part in parts if "functionCall" in part]


def rules(receipts: tuple[Receipt, ...]) -> list[str]:
    """Return the rules of receipts."""
    return [receipt.rule for receipt in receipts]


@IDS
@OTHERS
async def test_a_signature_comes_back_after_a_whole_reply(client: str, call_id: str | None) -> None:
    """The client's format has no place for it, and its ids may be others than the provider's."""
    echoes = EchoCache()
    reply = signed_reply(call_id)
    delivered = await ask(Script(reply), client=client, upstream="gemini", echoes=echoes)
    body = answer_calls(client, seen(client, delivered).calls)
    script = Script(reply)
    again = await ask(script, client=client, upstream="gemini", echoes=echoes, body=body)
    assert signatures_in(script.asked[0]) == ["sig"]
    assert rules(again.receipts)[:1] == ["restore_echo"]
    assert again.outcome == "repaired"
    assert "FIELD_NOT_CARRIED" not in [item.code for item in again.defects]
    ids = [call.id for reply in (delivered, again) for call in seen(client, reply).calls]
    assert len(set(ids)) == 2


@IDS
@OTHERS
def test_a_signature_comes_back_after_a_stream(client: str, call_id: str | None) -> None:
    """As after a whole reply."""
    echoes = EchoCache()
    part = signed_part(call_id, "look", {"what": "x"})
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    stream = StreamRelay(request_for(client), route_to("gemini"), Policy(), echoes=echoes)
    chunk = json.dumps({"candidates": [candidate], "modelVersion": "g"}).encode()
    sent = stream.feed(b"data: " + chunk + b"\n\n") + stream.finish().data
    body = answer_calls(client, fold(client, sent).calls)
    request = request_for(client)
    later = type(request).parse(client, body, stream=True)
    second = StreamRelay(later, route_to("gemini"), Policy(), echoes=echoes)
    assert signatures_in(json.loads(second.body)) == ["sig"]
    assert rules(second.asked.receipts) == ["restore_echo"]
    other = StreamRelay(later, route_to("gemini"), Policy(), echoes=echoes, scope="other")
    assert signatures_in(json.loads(other.body)) == [None]


@pytest.mark.parametrize("client", ["messages", "responses", "gemini"])
async def test_reasoning_goes_back_to_chat_endpoints_that_want_it(client: str) -> None:
    """Others may refuse it; fields of the call go back to all."""
    echoes = EchoCache()
    reply = completion(("a", "save", json.dumps(ARGUMENTS)), reasoning_content="I think.")
    reply["choices"][0]["message"]["tool_calls"][0]["extra_content"] = {"google": {"s": "sig"}}
    delivered = await ask(Script(reply), client=client, echoes=echoes)
    body = answer_calls(client, seen(client, delivered).calls)
    for needs, wanted in ((True, "I think."), (None, None)):
        script = Script(GOOD)
        capabilities = Capabilities(needs_reasoning_echo=needs)
        again = await ask(
            script, client=client, echoes=echoes, body=body, capabilities=capabilities
        )
        sent = script.asked[0]["messages"][1]
        assert sent.get("reasoning_content") == wanted
        assert sent["tool_calls"][0]["extra_content"] == {"google": {"s": "sig"}}
        assert rules(again.receipts) == ["restore_echo"]


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "signed"}


@pytest.mark.parametrize("client", ["chat_completions", "responses", "gemini"])
async def test_signed_thoughts_go_back_to_messages_endpoints(client: str) -> None:
    """With thinking, they refuse a call without the thoughts that led to it."""
    echoes = EchoCache()
    use = {"type": "tool_use", "id": "a", "name": "save", "input": ARGUMENTS}
    reply = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [THOUGHT, use],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    delivered = await ask(Script(reply), client=client, upstream="messages", echoes=echoes)
    body = answer_calls(client, seen(client, delivered).calls)
    script = Script(reply)
    await ask(script, client=client, upstream="messages", echoes=echoes, body=body)
    assert script.asked[0]["messages"][1]["content"] == [THOUGHT, use]


async def test_what_the_client_sends_back_is_not_replaced() -> None:
    """Nothing is noted then."""
    echoes = EchoCache()
    echoes.keep("", "a", "save", ARGUMENTS, {"thought_signature": "m"}, {"thought_signature": "k"})
    call = ToolCall(id="a", name="save", arguments=ARGUMENTS, extra={"thought_signature": "own"})
    message = Message("assistant", None, (call,), extra={"thought_signature": "own"})
    assert echoes.restore_messages((message,), "", with_reasoning=True) == ((message,), ())
    bare = Message("assistant", None, (ToolCall(id="a", name="save", arguments=ARGUMENTS),))
    (full,), receipts = echoes.restore_messages((bare,), "", with_reasoning=False)
    assert (full.extra, full.tool_calls[0].extra) == ({}, {"thought_signature": "k"})
    assert rules(receipts) == ["restore_echo"]
