"""What a client gets of calls that a model never makes right, alone and in a loop."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import Code, ProviderError
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec
from surecall.exchange.policy import Delivered, Ending, Outcome, Policy, RefusedCalls, Sent
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.wire import find_protocol

from .scene import BAD, GOOD, Script, ask, completion, write_request
from .streaming import FORMATS, calls_in, fold, relay, request_for, route_to, stream_of

NOTE = "[tool_use parse error]"
SECRET = "SECRET-HALF"
NUMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["title", "count"],
}
TOOLS = (ToolSpec(name="save", parameters=NUMBERS), ToolSpec(name="look", parameters=NUMBERS))
RIGHT = '{"title": "a", "count": 1}'
LOOP = (
    Message("assistant", None, (ToolCall(id="call_0", name="look", arguments={"title": "a"}),)),
    Message("tool", "found", tool_call_id="call_0"),
)


class Wrong(NamedTuple):
    """A reply that a model gives again and again."""

    calls: tuple[RawCall, ...]
    delivered: tuple[tuple[str, Any], ...] = ()
    """The calls that a client with a loop gets."""
    good: int = 0
    """How many of these are right."""
    finish: str = "tool_calls"

    @property
    def told(self) -> int:
        """How many calls are told in text."""
        return len(self.calls) - len(self.delivered)


def _wrong(name: str, arguments: str, *, is_whole: bool, finish: str = "tool_calls") -> Wrong:
    made = ((name, json.loads(arguments)),) if is_whole else ()
    return Wrong((RawCall("call_1", name, arguments),), made, finish=finish)


_GOOD = RawCall("call_2", "look", RIGHT)
_TITLE = json.dumps({"title": SECRET, "count": []})
WRONG = {
    "type": _wrong("save", _TITLE, is_whole=True),
    "member": _wrong("save", '{"title": "a"}', is_whole=True),
    "tool": _wrong("shell", '{"command": "ls"}', is_whole=True),
    "json": _wrong("save", '{"title": SECRET-HALF {"count"] 1', is_whole=False),
    "half": _wrong("save", '{"title": "SECRET-HALF', is_whole=False),
    "length": _wrong("save", '{"title": "SECRET-HALF', is_whole=False, finish="length"),
    "full": _wrong("save", '{"title": "SECRET-HALF", "count": 1}', is_whole=False, finish="length"),
    "pair": Wrong(
        (RawCall("call_1", "save", _TITLE), _GOOD),
        (("save", json.loads(_TITLE)), ("look", json.loads(RIGHT))),
        good=1,
    ),
    "cut pair": Wrong(
        (RawCall("call_1", "save", '{"title": "SECRET-HALF'), _GOOD),
        (("look", json.loads(RIGHT)),),
        good=1,
    ),
}
PAIRS = [(name, name) for name in FORMATS] + [
    ("messages", "chat_completions"),
    ("responses", "chat_completions"),
    ("gemini", "chat_completions"),
    ("chat_completions", "messages"),
]
"""The formats of a client and of its endpoint."""


def question(
    client: str, history: Sequence[Message] = (), *, stream: bool = False, **params: Any
) -> ClientRequest:
    """Return a request with two tools, alone or in the midst of a loop."""
    asked = ModelRequest(
        model="m",
        messages=(Message("user", "Go"), *history),
        tools=TOOLS,
        params=params,
        stream=stream,
    )
    body = json.dumps(find_protocol(client).render_request(asked).body).encode()
    return ClientRequest.parse(client, body, model="m", stream=stream)


def wire_calls(upstream: str, wrong: Wrong) -> tuple[RawCall, ...] | None:
    """Return the calls as the endpoint can write them; nothing if its format has no form for it."""
    for call in wrong.calls:
        try:
            json.loads(str(call.arguments))
        except ValueError:
            if upstream in ("messages", "gemini"):
                return None
    return wrong.calls


def whole_body(upstream: str, wrong: Wrong, text: str | None = None) -> bytes | None:
    """Return the reply in one piece."""
    calls = wire_calls(upstream, wrong)
    if calls is None:
        return None
    reply = Reply(calls=calls, content=text, finish_reason=wrong.finish, model="m1", id="r1")
    return json.dumps(find_protocol(upstream).render_reply(reply)).encode()


async def answer(
    client: str,
    upstream: str,
    wrong: Wrong,
    history: Sequence[Message],
    text: str | None = None,
    policy: Policy = Policy(),  # noqa: B008 - frozen
) -> Delivered | None:
    """Return what a client gets of a model that never gives another reply."""
    body = whole_body(upstream, wrong, text)
    if body is None:
        return None
    script = Script(Sent(200, {"content-type": "application/json"}, body))
    asked = question(client, history).body
    return await ask(script, client=client, upstream=upstream, body=asked, policy=policy)


def stream_wrong(
    client: str,
    upstream: str,
    wrong: Wrong,
    history: Sequence[Message],
    text: str = "",
    policy: Policy = Policy(),  # noqa: B008 - frozen
) -> tuple[bytes, Ending] | None:
    """Return the same of a stream."""
    calls = wire_calls(upstream, wrong)
    if calls is None and upstream == "gemini":
        return None
    request = question(client, history, stream=True)
    relay = StreamRelay(request, route_to(upstream), policy, request_id="r-1")
    sent, ending = b"", Ending(ask=b"")
    while ending.ask is not None:
        for event in _events(upstream, wrong, text):
            sent += relay.feed(event)
        ending = relay.finish()
    return sent + ending.data, ending


def _events(upstream: str, wrong: Wrong, text: str) -> list[bytes]:
    if upstream != "messages":
        return stream_of(upstream, *wrong.calls, text=text, finish=wrong.finish)
    plain = tuple(RawCall(call.id, call.name, {"x": n}) for n, call in enumerate(wrong.calls))
    written = stream_of(upstream, *plain, text=text, finish=wrong.finish)
    for number, call in enumerate(wrong.calls):  # pieces of any text, as the format has them
        piece = json.dumps(json.dumps({"x": number}, separators=(",", ":"))).encode()
        said = json.dumps(str(call.arguments)).encode()
        written = [event.replace(piece, said) for event in written]
    return written


def read(client: str, data: bytes, *, stream: bool) -> Reply:
    """Return the reply as a client reads it."""
    if stream:
        return fold(client, data)
    protocol = find_protocol(client)
    return protocol.parse_message(protocol.parse_body(data))


def check_loop(client: str, wrong: Wrong, reply: Reply, data: bytes, outcome: Outcome) -> None:
    """Check what a client in a loop gets: whole calls as they were made, and no other."""
    assert outcome == "unrepaired"
    assert tuple(calls_in(reply)) == wrong.delivered
    text = reply.content or ""
    assert text.count(NOTE) == wrong.told
    if wrong.told:
        assert "save was not executed: " in text
        assert SECRET.encode() not in data or wrong is WRONG["json"]
    assert reply.finish_reason == ("tool_calls" if wrong.delivered else "stop")


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@pytest.mark.parametrize("kind", WRONG)
async def test_a_loop_goes_on_with_calls_that_are_wrong_for_ever(
    kind: str, client: str, upstream: str
) -> None:
    """Whole calls are delivered as the model made them; a cut one becomes a line of text."""
    wrong = WRONG[kind]
    delivered = await answer(client, upstream, wrong, LOOP)
    if delivered is not None:
        assert (delivered.status, delivered.error) == (200, None)
        reply = read(client, delivered.body, stream=False)
        check_loop(client, wrong, reply, delivered.body, delivered.outcome)
        assert delivered.calls == len(wrong.delivered)
        assert delivered.defects
    streamed = stream_wrong(client, upstream, wrong, LOOP)
    if streamed is not None:
        data, ending = streamed
        assert ending.error is None
        check_loop(client, wrong, read(client, data, stream=True), data, ending.outcome)
        assert (ending.calls, bool(ending.defects)) == (len(wrong.delivered), True)


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@pytest.mark.parametrize("kind", WRONG)
async def test_a_single_question_is_answered_with_an_error(
    kind: str, client: str, upstream: str
) -> None:
    """Nothing is delivered of a reply whose only call is wrong; a good one beside it always is."""
    wrong = WRONG[kind]
    delivered = await answer(client, upstream, wrong, ())
    if delivered is not None and wrong.good:
        assert (delivered.status, delivered.outcome) == (200, "unrepaired")
        reply = read(client, delivered.body, stream=False)
        assert calls_in(reply) == [("look", json.loads(RIGHT))]
        assert (reply.content or "").count(NOTE) == 1
        assert SECRET.encode() not in delivered.body
    elif delivered is not None:
        assert (delivered.status, delivered.outcome) == (422, "refused")
        assert delivered.should_retry is False
        assert delivered.error is not None
        assert delivered.error.code == Code.CALLS_REFUSED
        told = json.loads(delivered.body)["error"]["surecall"]
        assert told["code"] == "CALLS_REFUSED"
        assert all(reason["message"] for reason in told["errors"])
    streamed = stream_wrong(client, upstream, wrong, ())
    if streamed is not None and wrong.good:
        assert calls_in(read(client, streamed[0], stream=True)) == [("look", json.loads(RIGHT))]
        assert SECRET.encode() not in streamed[0]
    elif streamed is not None:
        assert streamed[1].outcome == "refused"
        with pytest.raises(ProviderError):
            read(client, streamed[0], stream=True)


@pytest.mark.parametrize("way", get_args(RefusedCalls))
@pytest.mark.parametrize("kind", WRONG)
async def test_a_policy_means_the_same_with_and_without_a_loop(
    kind: str, way: RefusedCalls
) -> None:
    """Under every one a cut call is never delivered, and a good call is never lost."""
    wrong, policy = WRONG[kind], Policy(refused_calls=way)
    whole: tuple[tuple[str, Any], ...] = ()
    good = tuple(call for call in wrong.delivered if call == ("look", json.loads(RIGHT)))
    for history in (LOOP, ()):
        means = way
        if way == "auto":
            means = "deliver" if history else ("tell" if wrong.good else "error")
        whole = wrong.delivered if means == "deliver" else good
        delivered = await answer(
            "chat_completions", "chat_completions", wrong, history, policy=policy
        )
        streamed = stream_wrong(
            "chat_completions", "chat_completions", wrong, history, policy=policy
        )
        assert delivered is not None
        assert streamed is not None
        if means == "error" and not good:
            assert (delivered.status, streamed[1].outcome) == (422, "refused")
            continue
        assert (delivered.outcome, streamed[1].outcome) == ("unrepaired", "unrepaired")
        for reply in (
            read("chat_completions", delivered.body, stream=False),
            read("chat_completions", streamed[0], stream=True),
        ):
            assert tuple(calls_in(reply)) == whole
            assert (reply.content or "").count(NOTE) == len(wrong.calls) - len(whole)
            assert reply.finish_reason == ("tool_calls" if whole else "stop")


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@pytest.mark.parametrize("history", [LOOP, ()], ids=["loop", "single"])
async def test_text_beside_a_wrong_call_is_delivered(
    history: Sequence[Message], client: str, upstream: str
) -> None:
    """What the model said comes before the line about its call."""
    wrong = WRONG["full"]
    delivered = await answer(client, upstream, wrong, history, "I save it.")
    assert delivered is not None
    streamed = stream_wrong(client, upstream, wrong, history, "I save it.")
    assert streamed is not None
    whole = read(client, delivered.body, stream=False)
    for reply in (whole, read(client, streamed[0], stream=True)):
        assert (reply.content or "").startswith("I save it.")
        assert (reply.content or "").count(NOTE) == 1
        assert (reply.calls, reply.finish_reason) == ((), "stop")
    assert (delivered.outcome, streamed[1].outcome) == ("unrepaired", "unrepaired")


@pytest.mark.parametrize(("client", "upstream"), [pair for pair in PAIRS if pair[1] != "gemini"])
@pytest.mark.parametrize(
    ("first", "again"), [("type", "type"), ("length", "type"), ("length", "length")]
)
def test_text_that_a_client_has_is_enough_to_tell(
    first: str, again: str, client: str, upstream: str
) -> None:
    """Also where the reply that its calls are taken from has none."""
    request = question(client, stream=True)
    stream = StreamRelay(request, route_to(upstream), Policy(), request_id="r-1")
    replies = [_events(upstream, WRONG[first], "I save it."), _events(upstream, WRONG[again], "")]
    sent = b"".join([stream.feed(event) for event in replies[0]])
    ending = stream.finish()
    while ending.ask is not None:
        sent += b"".join([stream.feed(event) for event in replies[1]])
        ending = stream.finish()
    reply = fold(client, sent + ending.data)
    assert (ending.outcome, reply.calls) == ("unrepaired", ())
    assert (reply.content or "").count("I save it.") == 1
    assert (reply.content or "").count(NOTE) == 1


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
@pytest.mark.parametrize("text", ["", "I save it."])
@pytest.mark.parametrize("is_right", [True, False])
def test_a_stream_that_ends_in_a_call_is_asked_for_again_in_a_loop(
    is_right: bool, text: str, client: str, upstream: str
) -> None:
    """A loop goes on with the call of the second reply, or with a line of text."""
    call = RawCall("call_1", "save", json.dumps({"title": SECRET, "count": 1}))
    whole = stream_of(upstream, call, text=text)
    begins = next(at for at, event in enumerate(whole) if b'"save"' in event)
    cut = whole[: begins + 1]
    for history in (LOOP, ()):
        request = question(client, history, stream=True)
        stream = StreamRelay(request, route_to(upstream), Policy(), request_id="r-1")
        sent = b"".join([stream.feed(event) for event in cut])
        ending = stream.finish()
        while ending.ask is not None:
            sent += b"".join([stream.feed(event) for event in (whole if is_right else cut)])
            ending = stream.finish()
        sent += ending.data
        if not history:
            assert ending.error is not None
            assert ending.error.code == Code.STREAM_TRUNCATED
            continue
        reply = fold(client, sent)
        assert (reply.content or "").startswith(text)
        assert ending.error is None
        if is_right:
            assert calls_in(reply) == [("save", {"title": SECRET, "count": 1})]
            assert (ending.outcome, reply.finish_reason) == ("reasked", "tool_calls")
        else:
            assert (ending.outcome, reply.finish_reason) == ("unrepaired", "stop")
            assert (reply.calls, (reply.content or "").count(NOTE)) == ((), 1)
            assert SECRET.encode() not in sent


@given(
    arguments=st.dictionaries(st.sampled_from(["title", "count", "x"]), st.integers() | st.text()),
    end=st.integers(0, 60),
    finish=st.sampled_from(["tool_calls", "length"]),
    in_loop=st.booleans(),
)
def test_no_beginning_of_a_call_is_delivered(
    arguments: dict[str, Any], end: int, finish: str, in_loop: bool
) -> None:
    """Whatever a call is cut to, what is delivered is all of it, or nothing."""
    written = json.dumps(arguments)
    call = RawCall("call_1", "save", written[:end])
    history = LOOP if in_loop else ()
    chunks = stream_of("chat_completions", call, finish=finish)
    request = question("chat_completions", history, stream=True)
    done = relay(request, route_to("chat_completions"), chunks)
    try:
        delivered = calls_in(fold("chat_completions", done.sent))
    except ProviderError:
        delivered = []
    is_cut = end < len(written) or finish == "length"
    assert not (delivered and is_cut)


async def test_of_two_wrong_replies_the_one_with_better_calls_is_delivered() -> None:
    """A cut call is not what a loop gets when the model then made a whole one."""
    cut = completion(("call_1", "save", '{"title": "a"'), finish="length")
    history = [{"role": "tool", "tool_call_id": "c", "content": "x"}]
    body = json.loads(write_request("chat_completions", "m"))
    body["messages"] += history
    delivered = await ask(Script(cut, BAD), body=json.dumps(body).encode())
    assert delivered.outcome == "unrepaired"
    message = json.loads(delivered.body)["choices"][0]["message"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"])["count"] == []


async def test_a_demanded_call_that_does_not_come_leaves_the_words_of_a_loop() -> None:
    """In a loop the words are delivered; a single question is answered with an error."""
    said = completion(content="I would rather not.")
    for history, status in ((LOOP, 200), ((), 422)):
        asked = question("chat_completions", history, tool_choice="required").body
        delivered = await ask(Script(said), body=asked)
        assert delivered.status == status
        assert (b"I would rather not." in delivered.body) == (status == 200)


async def test_a_forbidden_call_is_told_and_not_delivered() -> None:
    """A client that wants no calls does not look for any."""
    asked = question("chat_completions", LOOP, tool_choice="none").body
    reply = completion(("call_1", "save", RIGHT))
    delivered = await ask(Script(reply), body=asked)
    message = json.loads(delivered.body)["choices"][0]["message"]
    assert (delivered.outcome, "tool_calls" in message) == ("unrepaired", False)
    assert message["content"] == f"{NOTE} save was not executed: The request allows no calls."


async def test_one_call_at_most_is_delivered_where_one_is_allowed() -> None:
    """The other is told as text."""
    asked = question("chat_completions", LOOP, parallel_tool_calls=False).body
    pair = WRONG["pair"].calls
    calls = [(str(call.id), str(call.name), str(call.arguments)) for call in pair]
    delivered = await ask(Script(completion(*calls)), body=asked)
    message = json.loads(delivered.body)["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["save"]
    assert "look was not executed" in message["content"]


async def test_what_else_a_reply_has_stays_where_it_is() -> None:
    """Fields that nobody here knows are delivered with a call that is wrong."""
    reply = json.loads(json.dumps(BAD))
    reply["choices"][0]["message"]["tool_calls"][0]["extra_content"] = {"signature": "s"}
    reply["choices"][0]["message"]["tool_calls"][0]["id"] = "a1B2c3D4e"
    reply["served_by"] = "x"
    asked = question("chat_completions", LOOP).body
    delivered = await ask(Script(reply), body=asked)
    assert json.loads(delivered.body) == reply


async def test_nothing_is_said_of_asking_again_that_did_not_happen() -> None:
    """Without steps the error says what is wrong, and every sentence has its end."""
    loose = completion(("call_1", "save", "{title: 'a', count: 1, tags: ['x']}"))
    delivered = await ask(Script(loose), policy=Policy(steps=()))
    assert (delivered.status, delivered.upstream_requests) == (422, 1)
    message = json.loads(delivered.body)["error"]["message"]
    assert "asking again" not in message
    assert ". Sending the same request again" in message


async def test_several_replies_are_settled_one_by_one() -> None:
    """In a loop each choice gets what can be delivered of it."""
    pair = json.loads(json.dumps(GOOD))
    pair["choices"] += json.loads(json.dumps(BAD))["choices"]
    pair["choices"][1]["index"] = 1
    body = json.loads(write_request("chat_completions", "m", n=2))
    body["messages"].append({"role": "tool", "tool_call_id": "c", "content": "x"})
    script = Script(pair, BAD)
    delivered = await ask(script, body=json.dumps(body).encode())
    choices = json.loads(delivered.body)["choices"]
    assert (delivered.outcome, len(choices)) == ("unrepaired", 2)
    assert all(choice["message"]["tool_calls"] for choice in choices)


# A finish that says calls, and an answer


def _said_calls(name: str, *, stream: bool) -> bytes | None:
    reply = Reply(content="All is done.", finish_reason="tool_calls", model="m1", id="r1")
    protocol = find_protocol(name)
    if name not in ("chat_completions", "messages"):
        return None  # whose finish does not say so
    if stream:
        writer = protocol.open_writer(model="m1", reply_id="r1")
        written = writer.begin() + writer.text("All is done.") + writer.end(reply)
        return written.replace(b"end_turn", b"tool_use")
    return json.dumps(protocol.render_reply(reply)).encode().replace(b"end_turn", b"tool_use")


@pytest.mark.parametrize("client", FORMATS)
@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("has_tools", [True, False])
async def test_an_answer_is_one_whatever_its_finish_says(
    has_tools: bool, client: str, upstream: str
) -> None:
    """The finish is put right, with a receipt, and nothing is asked again."""
    body, events = _said_calls(upstream, stream=False), _said_calls(upstream, stream=True)
    if body is None or events is None:
        return
    asked = question(client, LOOP) if has_tools else request_for(client, tools={})
    script = Script(Sent(200, {"content-type": "application/json"}, body))
    delivered = await ask(script, client=client, upstream=upstream, body=asked.body)
    reply = read(client, delivered.body, stream=False)
    assert (reply.content, reply.finish_reason, reply.calls) == ("All is done.", "stop", ())
    request = question(client, LOOP, stream=True) if has_tools else request_for(client, tools={})
    done = relay(request, route_to(upstream), [events], policy=Policy())
    said = fold(client, done.sent)
    assert (said.content, said.finish_reason, said.calls) == ("All is done.", "stop", ())
    assert len(script.asked) == 1
    assert done.ending.ask is None
    for found in (delivered, done.ending):
        assert found.outcome == "repaired"
        assert [receipt.rule for receipt in found.receipts] == ["set_finish_reason"]


async def test_an_empty_list_of_calls_beside_an_answer_is_none() -> None:
    """Some local servers write it on every final answer."""
    reply = completion(content="All is done.", finish="tool_calls", tool_calls=[])
    delivered = await ask(Script(reply))
    choice = json.loads(delivered.body)["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", "All is done.")
    assert "tool_calls" not in choice["message"]
    assert delivered.upstream_requests == 1


@pytest.mark.parametrize("history", [LOOP, ()], ids=["loop", "single"])
async def test_no_answer_and_no_calls_is_asked_about(history: Sequence[Message]) -> None:
    """A reply that says that it has calls, and has neither these nor words, is no answer."""
    script = Script(completion(content="", finish="tool_calls"))
    asked = question("chat_completions", history).body
    delivered = await ask(script, body=asked)
    assert len(script.asked) > 1
    assert delivered.status == (200 if history else 422)


@pytest.mark.parametrize("way", get_args(RefusedCalls))
@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_text_that_is_cut_ends_for_a_loop_as_it_came(
    client: str, upstream: str, way: RefusedCalls
) -> None:
    """A program that runs a loop asks again; anybody else gets the error of the format."""
    whole = stream_of(upstream, text="I save it for you now.", finish="stop")
    for history in (LOOP, ()):
        request = question(client, history, stream=True)
        stream = StreamRelay(request, route_to(upstream), Policy(refused_calls=way))
        sent = b"".join([stream.feed(event) for event in whole[: len(whole) // 2 + 1]])
        ending = stream.finish()
        assert ending.error is not None
        assert (ending.outcome, ending.error.code) == ("failed", "STREAM_TRUNCATED")
        runs_loop = way in ("deliver", "tell") or (way == "auto" and bool(history))
        assert b"STREAM_TRUNCATED" not in ending.data or not runs_loop
        with pytest.raises(ProviderError) as seen:
            fold(client, sent + ending.data)
        assert (seen.value.code == "STREAM_TRUNCATED") or not runs_loop
