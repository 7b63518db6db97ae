"""Replies that were cut at a limit, answers of a demanded form, and turns with one call only."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.records import RawCall
from surecall.exchange.policy import Policy
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.models.profiles import Capabilities

from .scene import ARGUMENTS, FORMATS, GOOD, Script, ask, completion, write_request
from .streaming import calls_in, fold, relay, request_for, route_to, stream_of, text_call

CUT = completion(("c1", "save", '{"title": "a'), finish="length")
CALL_TEXT = json.dumps({"name": "save", "arguments": ARGUMENTS})
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
FORMS: dict[str, dict[str, Any]] = {
    "chat_completions": {
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    },
    "gemini": {"generationConfig": {"responseMimeType": "application/json"}},
    "messages": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "responses": {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}},
}
LIMITS = {
    "chat_completions": ("max_tokens", "max_completion_tokens"),
    "messages": ("max_tokens",),
    "responses": ("max_output_tokens",),
}


def with_members(name: str, **members: Any) -> bytes:
    """Return a request with more members."""
    return json.dumps({**json.loads(write_request(name, "m")), **members}).encode()


@pytest.mark.parametrize("limit", [None, 50, 3000])
@pytest.mark.parametrize("field", LIMITS["chat_completions"])
async def test_a_cut_reply_may_be_longer_when_it_is_asked_for_again(
    field: str, limit: int | None
) -> None:
    """The limit is raised where the client set it, and set where the provider had its own."""
    script = Script(CUT, GOOD)
    members = {} if limit is None else {field: limit}
    delivered = await ask(script, body=with_members("chat_completions", **members))
    assert delivered.outcome == "reasked"
    raised = script.asked[1].get(field if limit else "max_tokens")
    assert raised == (12_000 if limit == 3000 else 1024)
    assert {*script.asked[1]} - {*script.asked[0]} == (set() if limit else {"max_tokens"})


async def test_a_reply_that_fills_the_context_is_not_asked_for_again() -> None:
    """There is no room for a longer one."""
    full = completion(("c1", "save", '{"title": "a'), finish="model_context_window_exceeded")
    script = Script(full, GOOD)
    delivered = await ask(script)
    assert (delivered.outcome, len(script.asked)) == ("refused", 1)


@pytest.mark.parametrize("name", LIMITS)
def test_a_cut_stream_is_asked_for_again_with_a_higher_limit(name: str) -> None:
    """Every format names its limit in its own way."""
    body = json.loads(request_for(name).body)
    field = LIMITS[name][0]
    asked = json.dumps({**body, field: 2000}).encode()
    request = ClientRequest.parse(name, asked, model="m", stream=True)
    call = RawCall("c1", "save", {"text": "a", "count": 1, "tags": []})
    chunks = stream_of(name, call, finish="length")
    stream = StreamRelay(request, route_to(name), Policy())
    for chunk in chunks:
        stream.feed(chunk)
    ask_again = stream.finish().ask
    assert ask_again is not None
    assert json.loads(ask_again)[field] == 8000


@pytest.mark.parametrize("name", FORMATS)
async def test_an_answer_of_a_demanded_form_is_no_call(name: str) -> None:
    """Whole and streamed: what the form demands may look like a call of an offered tool."""
    request = ClientRequest.parse(name, with_members(name, **FORMS[name]), model="m")
    assert request.demands_form
    assert not ClientRequest.parse(name, write_request(name, "m"), model="m").demands_form
    said = CALL_TEXT.replace(json.dumps(ARGUMENTS), '{"text": "a", "count": 1, "tags": []}')
    asked = json.dumps({**json.loads(request_for(name).body), **FORMS[name]}).encode()
    form = ClientRequest.parse(name, asked, model="m", stream=True)
    done = relay(form, route_to(name), text_call(name, said))
    reply = fold(name, done.sent)
    assert (calls_in(reply), reply.content) == ([], said)
    plain = relay(request_for(name), route_to(name), text_call(name, said))
    assert [call for call, _ in calls_in(fold(name, plain.sent))] == ["save"]


async def test_a_whole_answer_of_a_demanded_form_keeps_its_bytes() -> None:
    """It also is an answer in a request that is translated."""
    body = with_members("chat_completions", **FORMS["chat_completions"])
    said = json.dumps(completion(content=CALL_TEXT)).encode()
    delivered = await ask(Script(said), body=body)
    assert (delivered.outcome, delivered.body) == ("clean", said)


@pytest.mark.parametrize("text", ["", " \n", None])
async def test_an_empty_final_answer_is_asked_for_again_without_tools(text: str | None) -> None:
    """The last request of a loop may offer none."""
    body = json.loads(write_request("chat_completions", "m"))
    del body["tools"]
    call = {"id": "c", "type": "function", "function": {"name": "save", "arguments": "{}"}}
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    script = Script(completion(content=text), completion(content="All is saved."))
    delivered = await ask(script, body=json.dumps(body).encode())
    assert (delivered.outcome, b"All is saved." in delivered.body) == ("reasked", True)
    body["stream"] = True
    request = ClientRequest.parse("chat_completions", json.dumps(body).encode())
    stream = StreamRelay(request, route_to("chat_completions"), Policy())
    sent = b"".join(map(stream.feed, text_call("chat_completions", text or "")))
    assert stream.finish().ask is not None
    sent += b"".join(map(stream.feed, text_call("chat_completions", "All is saved.")))
    ending = stream.finish()
    assert fold("chat_completions", sent + ending.data).content == f"{text or ''}All is saved."


def test_one_call_is_delivered_of_a_model_that_takes_one() -> None:
    """Whole and streamed the others are named in the defects."""
    route = route_to("chat_completions")
    route = type(route)(
        protocol=route.protocol,
        model="m",
        capabilities=Capabilities(supports_parallel_tools=False),
        known=frozenset({"supports_parallel_tools"}),
    )
    calls = (
        RawCall("c1", "save", '{"text": "a", "count": 1, "tags": []}'),
        RawCall("c2", "look", '{"what": "b"}'),
    )
    done = relay(request_for("chat_completions"), route, stream_of("chat_completions", *calls))
    assert [name for name, _ in calls_in(fold("chat_completions", done.sent))] == ["save"]
    named = [item.message for item in done.ending.defects if item.code == "CALLS_IGNORED"]
    assert len(named) == 1
    assert "look" in named[0]


async def test_a_whole_reply_has_one_call_as_well() -> None:
    """Other models may make several."""
    two = completion(("c1", "save", json.dumps(ARGUMENTS)), ("c2", "ping", "{}"))
    lacks = {"supports_parallel_tools"}
    for known, count in ((frozenset(lacks), 1), (frozenset[str](), 2)):
        capabilities = Capabilities(supports_parallel_tools=False)
        delivered = await ask(Script(two), capabilities=capabilities, known=known)
        assert delivered.calls == count
        assert any("ping" in item.message for item in delivered.defects) == (count == 1)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_words_of_a_form_elsewhere_demand_none(fields: dict[str, str]) -> None:
    """Only the members count that demand one."""
    body = {"model": "m", "messages": [{"role": "user", "content": "json_schema"}]}
    body["metadata"] = {**fields, "response_format": '{"type": "json_schema"}'}
    assert not ClientRequest.parse("chat_completions", json.dumps(body).encode()).demands_form
