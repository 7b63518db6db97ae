"""What a provider wants back with a call returns to it, whatever format the client speaks."""

import json
from typing import Any

import pytest

from surecall.base.records import Message, RawCall, Receipt, ToolCall
from surecall.exchange import Policy
from surecall.exchange.signatures import EchoCache, has_own_id
from surecall.exchange.streams import StreamRelay
from surecall.models.profiles import Capabilities

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
    calls = seen(client, delivered).calls
    script = Script(reply)
    body = answer_calls(client, calls)
    await ask(script, client=client, upstream="messages", echoes=echoes, body=body)
    assert script.asked[0]["messages"][1]["content"] == [THOUGHT, {**use, "id": calls[0].id}]


async def test_what_the_client_sends_back_is_not_replaced() -> None:
    """Nothing is noted then."""
    echoes = EchoCache()
    echoes.keep(
        "", "a1B2c3D4e", "save", ARGUMENTS, {"thought_signature": "m"}, {"thought_signature": "k"}
    )
    call = ToolCall(
        id="a1B2c3D4e", name="save", arguments=ARGUMENTS, extra={"thought_signature": "own"}
    )
    message = Message("assistant", None, (call,), extra={"thought_signature": "own"})
    assert echoes.restore_messages((message,), "", with_reasoning=True) == ((message,), ())
    bare = Message("assistant", None, (ToolCall(id="a1B2c3D4e", name="save", arguments=ARGUMENTS),))
    (full,), receipts = echoes.restore_messages((bare,), "", with_reasoning=False)
    assert (full.extra, full.tool_calls[0].extra) == ({}, {"thought_signature": "k"})
    assert rules(receipts) == ["restore_echo"]


class Shelf:
    """A store that several caches share, as workers do."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def is_empty(self) -> bool:
        """Tell whether nothing is kept."""
        return not self.rows

    def load(self, key: str) -> bytes | None:
        """Return what is kept."""
        return self.rows.get(key)

    def save(self, key: str, value: bytes) -> None:
        """Keep something, or note that it is ambiguous."""
        self.rows[key] = value if self.rows.get(key, value) == value else b""


def signed_as(signature: str, call_id: str | None = None) -> dict[str, Any]:
    """Write a reply of Gemini with a call that is signed so."""
    part = {**signed_part(call_id), "thoughtSignature": signature}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "g"}


@pytest.mark.parametrize("call_id", [None, "call_1"])
@pytest.mark.parametrize("is_streamed", [False, True])
@OTHERS
async def test_equal_calls_of_two_conversations_keep_their_own_signatures(
    client: str, is_streamed: bool, call_id: str | None
) -> None:
    """Also in another worker, after a restart, and with one id; only the calls come back."""
    shelf = Shelf()
    bodies: list[bytes] = []
    for number in range(4):
        echoes = EchoCache(store=shelf)
        reply = signed_as(f"sig-{number}", call_id)
        if is_streamed:
            stream = StreamRelay(request_for(client), route_to("gemini"), Policy(), echoes=echoes)
            for part in reply["candidates"][0]["content"]["parts"]:
                part["functionCall"] |= {"name": "look", "args": {"what": "x"}}
            sent = stream.feed(b"data: " + json.dumps(reply).encode() + b"\n\n")
            calls = fold(client, sent + stream.finish().data).calls
        else:
            delivered = await ask(Script(reply), client=client, upstream="gemini", echoes=echoes)
            calls = seen(client, delivered).calls
        bodies.append(answer_calls(client, calls))
    for number, body in reversed([*enumerate(bodies)]):
        script = Script(signed_as("later"))
        echoes = EchoCache(store=shelf)
        await ask(script, client=client, upstream="gemini", echoes=echoes, body=body)
        assert signatures_in(script.asked[0]) == [f"sig-{number}"]


def completed(signature: str | None) -> dict[str, Any]:
    """Write a chat completion with a call under an id that all conversations get."""
    reply = completion(("call_1", "save", json.dumps(ARGUMENTS)))
    if signature is not None:
        signed = {"google": {"thought_signature": signature}}
        reply["choices"][0]["message"]["tool_calls"][0]["extra_content"] = signed
    return reply


def as_chunks(reply: dict[str, Any]) -> bytes:
    """Write a chat completion as a stream."""
    choice = reply["choices"][0]
    calls = [{"index": at, **call} for at, call in enumerate(choice["message"]["tool_calls"])]
    deltas: tuple[tuple[dict[str, Any], str | None], ...] = (
        ({"role": "assistant", "tool_calls": calls}, None),
        ({}, choice["finish_reason"]),
    )
    chunks = (
        {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        for delta, finish in deltas
    )
    written = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return b"".join(written) + b"data: [DONE]\n\n"


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_one_id_for_all_calls_hands_on_no_signature_and_loses_none(is_streamed: bool) -> None:
    """Whoever was signed first, in whatever worker, and also where only some calls are signed."""
    shelf = Shelf()
    bodies: list[bytes] = []
    signatures = [None, "one", None, "two", None, "two"]
    for signature in signatures:
        reply, echoes = completed(signature), EchoCache(store=shelf)
        if is_streamed:
            request = request_for("chat_completions", tools={"save": {}})
            stream = StreamRelay(request, route_to("chat_completions"), Policy(), echoes=echoes)
            sent = stream.feed(as_chunks(reply))
            ending = stream.finish()
            sent += ending.data
            assert [item.rule for item in ending.receipts] == ["rename_repeated_id"] * (
                signature is not None
            )
            calls = fold("chat_completions", sent).calls
            assert (b"call_1" in sent) is (signature is None)
        else:
            delivered = await ask(Script(reply), echoes=echoes)
            assert delivered.outcome == ("clean" if signature is None else "repaired")
            calls = seen("chat_completions", delivered).calls
        bodies.append(answer_calls("chat_completions", calls))
    for signature, body in zip(signatures, bodies, strict=True):
        script = Script(GOOD)
        await ask(script, echoes=EchoCache(store=shelf), body=body)
        call = script.asked[0]["messages"][1]["tool_calls"][0]
        sent_back = call.get("extra_content", {}).get("google", {}).get("thought_signature")
        assert sent_back == signature


@pytest.mark.parametrize("call_id", ["call_1", None])
async def test_what_all_conversations_share_an_id_for_goes_to_none(call_id: str | None) -> None:
    """Clients of Gemini's own format keep what they were sent: their replies stay as they are."""
    echoes = EchoCache(store=Shelf())
    reply = signed_as("one", call_id)
    delivered = await ask(Script(reply), client="gemini", upstream="gemini", echoes=echoes)
    assert delivered.outcome == "clean"
    body = answer_calls("gemini", seen("gemini", delivered).calls)
    script = Script(signed_as("later"))
    await ask(script, client="gemini", upstream="gemini", echoes=echoes, body=body)
    assert signatures_in(script.asked[0]) == [None]


async def test_a_call_without_a_signature_does_not_get_that_of_another() -> None:
    """Where a provider gives all calls one id, and signs some of them."""
    echoes = EchoCache()
    bare = signed_as("x", "call_1")
    del bare["candidates"][0]["content"]["parts"][0]["thoughtSignature"]
    for reply in (signed_as("one", "call_1"), bare):
        delivered = await ask(Script(reply), upstream="gemini", echoes=echoes)
    body = answer_calls("chat_completions", seen("chat_completions", delivered).calls)
    script = Script(bare)
    await ask(script, upstream="gemini", echoes=echoes, body=body)
    assert signatures_in(script.asked[0]) == [None]


@pytest.mark.parametrize(
    ("call_id", "is_own"),
    [
        ("call_9xKq2mZpL0vTs83bWcYd", True),
        ("toolu_01A09q90qw90lq917835lq9", True),
        ("chatcmpl-tool-5f2b9c1de0a84f7c", True),
        ("tc_0f3a9b7c2d4e6f8091a2b3c4", True),
        ("a1B2c3D4e", True),
        ("", False),
        ("tc_1", False),
        ("call_1", False),
        ("call_0000000001", False),
        ("call_000000000000000000000012", False),
        ("function-call-1734567890123456789", True),
        ("toolcall0000001", False),
        ("functions.get_weather:12", False),
        ("functions_get_weather_0_0123456789abcdef", False),
        ("get_weather", False),
    ],
)
def test_which_ids_belong_to_one_call(call_id: str, is_own: bool) -> None:
    """Counters, names and what is made from them come again in other conversations."""
    assert has_own_id(call_id, "get_weather") is is_own


def test_a_search_in_vain_by_one_client_hides_nothing_from_another() -> None:
    """What nobody has kept is not looked for again, by whoever looked."""
    echoes, call_id = EchoCache(store=Shelf()), "a1B2c3D4e"
    echoes.keep("", "z9Y8x7W6v", "save", {}, {}, {"extra_content": "other"})
    assert echoes.find("one", call_id, "save", {}) is None
    echoes.keep("two", call_id, "save", {}, {}, {"extra_content": "sig"})
    assert echoes.find("one", call_id, "save", {}) is None
    assert echoes.find("two", call_id, "save", {}) == ({}, {"extra_content": "sig"})
