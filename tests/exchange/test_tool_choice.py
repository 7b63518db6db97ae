"""What a request demands of its reply besides schemas: a call, this tool, or none at all."""

import json
from typing import Any

import pytest

from surecall.base.records import RawCall, Reply
from surecall.exchange import Policy
from surecall.exchange.request import FREE, ClientRequest, ToolChoice, read_choice
from surecall.exchange.streams import StreamRelay

from .scene import ARGUMENTS, FORMATS, GOOD, Script, ask, calls_in, completion, write_request
from .streaming import calls_in as calls_of
from .streaming import fold, request_for, route_to, stream_of, text_call

PING = completion(("call_9", "ping", "{}"))
WORDS = completion(content="I will save it now.")
RIGHT = [("save", ARGUMENTS)]
CHOICES: dict[str, dict[str, Any]] = {
    "chat_completions": {
        "call": "required",
        "save": {"type": "function", "function": {"name": "save"}},
        "none": "none",
    },
    "responses": {
        "call": "required",
        "save": {"type": "function", "name": "save"},
        "none": "none",
    },
    "messages": {
        "call": {"type": "any"},
        "save": {"type": "tool", "name": "save"},
        "none": {"type": "none"},
    },
    "gemini": {
        "call": {"functionCallingConfig": {"mode": "ANY"}},
        "save": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["save"]}},
        "none": {"functionCallingConfig": {"mode": "NONE"}},
    },
}


SOME = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "a"}]}
DEMANDED = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "required",
        "tools": [{"type": "function", "function": {"name": "a"}}],
    },
}


@pytest.mark.parametrize("name", FORMATS)
def test_choices_are_read_in_every_format(name: str) -> None:
    """The same three demands are found, whatever they are called."""
    found = [read_choice(json.dumps(CHOICES[name][kind]).encode()) for kind in CHOICES[name]]
    named = ToolChoice("call", frozenset({"save"}))
    assert found == [ToolChoice("call"), named, ToolChoice("none")]


@pytest.mark.parametrize(
    ("written", "choice"),
    [
        (b"", FREE),
        (b'"auto"', FREE),
        (b'{"type": "web_search_preview"}', FREE),
        (b'{"functionCallingConfig": {"mode": "AUTO"}}', FREE),
        (b'{"name": "save"}', ToolChoice("call", frozenset({"save"}))),
        (
            json.dumps(SOME).encode(),
            ToolChoice("any", frozenset({"a"})),
        ),
        (
            json.dumps(DEMANDED).encode(),
            ToolChoice("call", frozenset({"a"})),
        ),
    ],
)
def test_other_choices_are_read(written: bytes, choice: ToolChoice) -> None:
    """A choice of tools that are not functions is left to the endpoint."""
    assert read_choice(written) == choice


def test_a_built_in_tool_meets_the_demand_of_any_call() -> None:
    """Only the endpoint knows whether one of its own tools was used."""
    assert read_choice(b'"required"', has_others=True) == FREE


def body_with(choice: Any, **fields: Any) -> bytes:
    """Return a request of chat completions with a choice."""
    document = json.loads(write_request("chat_completions", "m"))
    return json.dumps({**document, "tool_choice": choice, **fields}).encode()


async def test_a_missing_call_is_asked_for_and_refused() -> None:
    """Words do not meet the demand of a call; the model is told so, and then the client."""
    script = Script(WORDS, GOOD)
    delivered = await ask(script, body=body_with("required"))
    assert (calls_in("chat_completions", delivered), delivered.outcome) == (RIGHT, "reasked")
    assert "a call of one of these tools is demanded: save, ping." in str(script.asked[1])
    refused = await ask(Script(WORDS), body=body_with("required"))
    assert (refused.outcome, refused.should_retry) == ("refused", False)
    assert refused.defects[-1].code == "NO_TOOL_CALLS"
    assert (await ask(Script(WORDS), body=body_with("auto"))).outcome == "clean"


async def test_another_tool_is_not_the_one_that_was_named() -> None:
    """It is asked for again, at last without a choice that the endpoint does not follow."""
    named = CHOICES["chat_completions"]["save"]
    script = Script(PING, PING, GOOD)
    delivered = await ask(script, body=body_with(named))
    assert (calls_in("chat_completions", delivered), delivered.outcome) == (RIGHT, "reasked")
    assert "Call one of these, spelled exactly: save." in str(script.asked[1])
    assert [request.get("tool_choice") for request in script.asked] == [named, named, None]
    assert (await ask(Script(PING), body=body_with(named))).outcome == "refused"


async def test_a_call_that_was_forbidden_is_not_delivered() -> None:
    """The model is asked for words, at last without tools."""
    script = Script(GOOD, GOOD, WORDS)
    delivered = await ask(script, body=body_with("none"))
    assert (delivered.calls, delivered.outcome) == (0, "reasked")
    assert "tools" in script.asked[1]
    assert "tools" not in script.asked[2]
    assert (await ask(Script(GOOD), body=body_with("none"))).outcome == "refused"


async def test_a_required_call_is_taught_where_tools_are() -> None:
    """A model without tool use is held to the demand as well."""
    refused = await ask(Script(WORDS), body=body_with("required"), strategy="taught")
    assert refused.outcome == "refused"


def demanding(name: str, kind: str) -> ClientRequest:
    """Return a request for a stream that demands something."""
    document = json.loads(request_for(name).body)
    document["toolConfig" if name == "gemini" else "tool_choice"] = CHOICES[name][kind]
    return ClientRequest.parse(name, json.dumps(document).encode(), model="m", stream=True)


@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_of_words_is_followed_by_the_call(name: str, upstream: str) -> None:
    """What was said stays; the second reply supplies the call, and only that."""
    stream = StreamRelay(demanding(name, "save"), route_to(upstream), Policy())
    flowed = b"".join([stream.feed(event) for event in text_call(upstream, "I will save it.")])
    first = stream.finish()
    assert first.ask is not None
    assert b"is demanded: save" in first.ask
    assert b"I will save it." in first.ask
    right = RawCall("c2", "save", '{"text": "a", "count": 1, "tags": []}')
    for event in stream_of(upstream, right, text="Sorry."):
        assert stream.feed(event) == b""
    ending = stream.finish()
    assert ending.outcome == "reasked"
    reply = fold(name, flowed + ending.data)
    assert calls_of(reply) == [("save", {"text": "a", "count": 1, "tags": []})]
    assert (reply.content or "").strip() == "I will save it."


@pytest.mark.parametrize("kind", ["save", "none"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_streamed_call_of_another_tool_is_refused(name: str, kind: str) -> None:
    """Nothing of it reaches the client."""
    stream = StreamRelay(demanding(name, kind), route_to(name), Policy(max_requests=1))
    other = RawCall("c1", "look", '{"what": "x"}')
    flowed = b"".join([stream.feed(event) for event in stream_of(name, other)])
    ending = stream.finish()
    assert (ending.outcome, ending.calls) == ("refused", 0)
    assert b"what" not in flowed + ending.data


@pytest.mark.parametrize("upstream", ["chat_completions", "messages"])
def test_likely_calls_in_streamed_text_follow_the_policy(upstream: str) -> None:
    """They are asked for again, delivered, or left; where asking does not help, the text is."""
    name = "chat_completions"
    events = text_call(upstream, f"To the moon:\nlook {json.dumps({'what': 'moon'})}")

    def relayed(policy: Policy) -> tuple[StreamRelay, bytes]:
        stream = StreamRelay(request_for(name), route_to(upstream), policy)
        return stream, b"".join([stream.feed(event) for event in events])

    stream, _ = relayed(Policy())
    assert stream.finish().ask is not None
    stream, flowed = relayed(Policy(likely_calls="deliver"))
    ending = stream.finish()
    assert (ending.outcome, calls_of(fold(name, flowed + ending.data))) == (
        "repaired",
        [("look", {"what": "moon"})],
    )
    stream, flowed = relayed(Policy(likely_calls="leave"))
    ending = stream.finish()
    reply = fold(name, flowed + ending.data)
    assert (ending.outcome, reply.content) == ("clean", 'To the moon:\nlook {"what": "moon"}')
    stream, flowed = relayed(Policy(steps=("repair",)))
    ending = stream.finish()
    reply = fold(name, flowed + ending.data)
    assert (ending.outcome, reply.content) == ("clean", 'To the moon:\nlook {"what": "moon"}')
    stream, flowed = relayed(Policy(max_requests=2))
    assert stream.finish().ask is not None
    for event in events:
        stream.feed(event)
    ending = stream.finish()
    reply = fold(name, flowed + ending.data)
    assert (ending.outcome, reply.content) == ("reasked", 'To the moon:\nlook {"what": "moon"}')


@pytest.mark.parametrize("name", FORMATS)
def test_blank_text_after_results_is_asked_for_again(name: str) -> None:
    """Blanks are no answer; the second reply supplies the words."""
    request = request_for(name)
    history: Any = {
        "chat_completions": [
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c0",
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c0", "content": "a moon"},
        ],
        "responses": [
            {"type": "function_call", "call_id": "c0", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": "a moon"},
        ],
        "messages": [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c0", "name": "look", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c0", "content": "a moon"}],
            },
        ],
        "gemini": [
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "look", "response": {"output": "a moon"}}}],
            },
        ],
    }[name]
    document = json.loads(request.body)
    key = {"responses": "input", "gemini": "contents"}.get(name, "messages")
    document[key] += history
    request = ClientRequest.parse(name, json.dumps(document).encode(), model="m", stream=True)
    stream = StreamRelay(request, route_to(name), Policy())
    assert stream.body
    flowed = b"".join([stream.feed(event) for event in text_call(name, "   ")])
    assert stream.finish().ask is not None
    for event in text_call(name, "I see the moon."):
        stream.feed(event)
    ending = stream.finish()
    assert ending.outcome == "reasked"
    reply = fold(name, flowed + ending.data)
    assert (reply.content or "").strip() == "I see the moon."
    assert isinstance(reply, Reply)
