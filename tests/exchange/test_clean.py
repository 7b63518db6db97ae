"""A clean reply comes back byte for byte, and any bytes give a coded outcome."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.records import RawCall, Reply, Usage
from surecall.exchange.checks import read_clean
from surecall.exchange.mediation import relay
from surecall.exchange.policy import Policy, Route, Sent
from surecall.reading import read_reply
from surecall.wire import find_protocol

from .scene import (
    ARGUMENTS,
    FORMATS,
    GOOD,
    Script,
    ask,
    calls_in,
    completion,
    parse,
    write_request,
)

KEYS = [
    "choices",
    "message",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "name",
    "id",
    "role",
    "candidates",
    "parts",
    "functionCall",
    "args",
    "output",
    "type",
    "text",
    "input",
    "stop_reason",
    "finish_reason",
]
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="{}[]<>()`~:"), max_size=30)
SAVED = st.fixed_dictionaries(
    {
        "title": st.text(max_size=20),
        "count": st.integers(-(2**70), 2**70),
        "tags": st.lists(st.text(max_size=5), max_size=3),
    }
)


@st.composite
def replies(draw: Any) -> Reply:
    """Replies."""
    arguments = draw(st.lists(SAVED, max_size=2))
    calls = tuple(
        RawCall(f"call_{number}", "save", json.dumps(item, ensure_ascii=draw(st.booleans())))
        for number, item in enumerate(arguments)
    )
    text = draw(WORDS)
    return Reply(
        content=text if calls or text.strip() else "Done",
        calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(3, 4, 7),
        model="m1",
        id="r1",
    )


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=30, deadline=None)
@given(reply=replies(), indent=st.sampled_from([None, 1]), extra=WORDS)
async def test_clean_bytes_come_back(name: str, reply: Reply, indent: Any, extra: str) -> None:
    """Clean bytes come back."""
    protocol = find_protocol(name)
    document = {**protocol.render_reply(reply), "x_unknown": {"kept": extra}}
    body = json.dumps(document, indent=indent).encode()
    delivered = await ask(Script(body), client=name, upstream=name)
    assert delivered.body == body
    assert (delivered.outcome, delivered.upstream_requests) == ("clean", 1)
    assert delivered.calls == len(reply.calls)
    assert delivered.usage is not None


@settings(max_examples=30, deadline=None)
@given(reply=replies(), name=st.sampled_from(FORMATS), data=st.data())
def test_what_is_clean_is_read_without_a_change(name: str, reply: Reply, data: Any) -> None:
    """Whatever part of a reply is changed: what is still clean needs nothing done to it."""
    protocol = find_protocol(name)
    text = json.dumps(protocol.render_reply(reply))
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    new = data.draw(st.sampled_from(["", '"', "}", ",", "1", "null", " ", "x"]))
    body = (text[:at] + new + text[at + cut :]).encode()
    request = parse(name, write_request(name, "m"))
    found = read_clean(request, body)
    if found is None:
        return
    read = protocol.parse_message(protocol.parse_body(body))
    reading = read_reply(read, tools=request.tools.names)
    assert len(reading.calls) == found.calls
    for call in reading.calls:
        assert (call.state, call.errors, call.certainty) == ("whole", (), "certain")
        assert all(receipt.rule == "assign_call_id" for receipt in call.receipts)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40, deadline=None)
@given(
    body=st.binary(max_size=80)
    | st.sampled_from([b"", b"{}", b"[]", b"null", b"<html></html>", b'{"choices":null}'])
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
    status=st.sampled_from([200, 200, 200, 204, 301, 400, 404, 429, 500, 503, 599]),
)
async def test_any_answer_has_a_coded_outcome(name: str, body: bytes, status: int) -> None:
    """Any answer has a coded outcome."""
    other = FORMATS[(FORMATS.index(name) + 1) % len(FORMATS)]
    for client in (name, other):
        script = Script(Sent(status, {}, body))
        delivered = await ask(script, client=client, upstream=name)
        assert delivered.outcome in {"clean", "repaired", "reasked", "refused", "failed"}
        assert isinstance(json.loads(delivered.body), dict)
        if delivered.error is not None:
            assert delivered.status >= 400
            assert delivered.error.code != "INTERNAL_ERROR"


@pytest.mark.parametrize("figure", ["NaN", "-Infinity", "1e400"])
@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
async def test_a_figure_that_is_not_finite_costs_nobody_the_answer(
    client: str, upstream: str, figure: str
) -> None:
    """A provider that counts wrongly has answered all the same, and text keeps such words."""
    call = RawCall("call_1", "save", json.dumps({**ARGUMENTS, "title": "NaN 1e400"}))
    usage = Usage(77, 4, 81)
    reply = Reply(calls=(call,), finish_reason="tool_calls", usage=usage, model="m1", id="r1")
    body = json.dumps(find_protocol(upstream).render_reply(reply)).replace("77", figure)
    assert figure in body
    delivered = await ask(Script(body.encode()), client=client, upstream=upstream)
    assert delivered.status == 200
    assert calls_in(client, delivered) == [("save", {**ARGUMENTS, "title": "NaN 1e400"})]
    if client == upstream:
        assert delivered.outcome == "repaired"
        assert "null_non_finite" in {receipt.rule for receipt in delivered.receipts}


@pytest.mark.parametrize("name", ["messages", "gemini"])
async def test_an_argument_that_is_not_finite_is_not_made_null(name: str) -> None:
    """Null is another value than the number that the model meant."""
    call = RawCall("call_1", "save", json.dumps({**ARGUMENTS, "count": 77}))
    reply = Reply(calls=(call,), finish_reason="tool_calls", model="m1", id="r1")
    body = json.dumps(find_protocol(name).render_reply(reply)).replace("77", "1e400")
    delivered = await ask(Script(body.encode()), client=name, upstream=name)
    assert delivered.status >= 400


async def test_text_that_begins_like_a_call_is_looked_at_and_left() -> None:
    """Text that begins like a call is looked at and left."""
    body = json.dumps(completion(content='Use `save({"title": 1})` or {"name": "x"}, as you like.'))
    delivered = await ask(Script(body.encode()))
    assert (delivered.body, delivered.outcome) == (body.encode(), "clean")


async def test_without_tools_nothing_is_looked_for() -> None:
    """Without tools nothing is looked for."""
    text = '<tool_call>{"name": "save", "arguments": {}}</tool_call>'
    body = json.dumps(completion(content=text)).encode()
    asked = json.loads(write_request("chat_completions", "m"))
    del asked["tools"]
    delivered = await ask(Script(body), body=json.dumps(asked).encode())
    assert delivered.body == body


@pytest.mark.parametrize(
    "change",
    [
        {"finish": "length"},
        {"finish": "stop"},
        {"function_call": {"name": "save", "arguments": "{}"}},
        {"role": "user"},
    ],
)
def test_what_is_odd_is_not_called_clean(change: dict[str, Any]) -> None:
    """What is odd is not called clean."""
    call = ("call_1", "save", json.dumps(ARGUMENTS))
    request = parse("chat_completions", write_request("chat_completions", "m"))
    assert read_clean(request, json.dumps(GOOD).encode()) is not None
    assert read_clean(request, json.dumps(completion(call, **change)).encode()) is None


async def test_receipts_are_shown_on_request_only() -> None:
    """Receipts are shown on request only."""
    body = json.dumps(GOOD).encode()
    delivered = await ask(Script(body), policy=Policy(show_receipts=True))
    document = json.loads(delivered.body)
    assert document.pop("surecall")["outcome"] == "clean"
    assert document == GOOD
    assert delivered.body.startswith(body[:-1])


@pytest.mark.parametrize("client", FORMATS)
async def test_a_relayed_reply_is_not_read(client: str) -> None:
    """In the same format its bytes pass, whatever they are; in another they are translated."""
    request = parse(client, write_request(client, "m"))
    route = Route(protocol=find_protocol(client), model="m")
    delivered = await relay(request, route, Script(b"anything"))
    assert (delivered.body, delivered.outcome) == (b"anything", "relayed")
    route = Route(protocol=find_protocol("chat_completions"), model="m")
    loose = completion(("call_1", "save", json.dumps({"count": "3"})))
    delivered = await relay(request, route, Script(loose))
    assert calls_in(client, delivered) == [("save", {"count": "3"})]
    refused = await relay(request, route, Script(Sent(429, {"retry-after": "1"}, b"{}")))
    assert refused.status == 429


async def test_a_huge_reply_is_read_elsewhere() -> None:
    """It comes back as it is, and nothing else waits for it."""
    body = json.dumps(completion(content="many words, " * 20_000)).encode()
    delivered = await ask(Script(body))
    assert (delivered.body, delivered.outcome) == (body, "clean")
