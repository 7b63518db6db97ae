"""What reaches an endpoint of chat completions is what templates of models take, word for word."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Policy, Route, Sent
from surecall.exchange.prepare import Preparation, pass_on
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.models.profiles import resolve_capabilities
from surecall.wire import find_protocol

from .scene import completion

CACHE = {"type": "ephemeral"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
SERVERS = ("ollama", "vllm", "llamacpp", "lmstudio", "sglang")


class RefusedError(Exception):
    """What a template raises."""


def render_strictly(body: dict[str, Any]) -> str:
    """Return a prompt as the strictest templates write it, or raise as they do."""
    prompt: list[str] = []
    turn = 0
    for place, message in enumerate(body["messages"]):
        role, content = message["role"], message["content"] or ""
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content)
        if role not in ("system", "user", "assistant", "tool"):
            raise RefusedError(f"Unexpected message role: {role}")
        if role == "system" and place:
            raise RefusedError("System message must be at the beginning.")
        for call in message.get("tool_calls", ()):
            if len(call["id"]) != 9 or not call["id"].isalnum():
                raise RefusedError("Tool call IDs should be alphanumeric strings with length 9!")
            json.loads(call["function"]["arguments"])
        if role in ("user", "assistant") and not message.get("tool_calls"):
            if (role == "user") != (turn % 2 == 0):
                raise RefusedError("Conversation roles must alternate user/assistant/user/...")
            turn += 1
        prompt.append(f"<{role}> {content}")
    return "\n".join(prompt)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every marked text."""
    if isinstance(value, str):
        yield from (word for word in value.split() if word.startswith("word-"))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def route_to(provider: str | None, model: str = "m", **declared: Any) -> Route:
    """Return the way to a model."""
    found = resolve_capabilities(provider, model, declared)
    return Route.of(find_protocol("chat_completions"), model, found)


def send(client: str, document: dict[str, Any], route: Route) -> tuple[dict[str, Any], set[str]]:
    """Return the body that an endpoint gets, and what was left out; a stream gets the same."""
    body = json.dumps(document).encode()
    request = ClientRequest.parse(client, body)
    asked = Preparation(request, route, Policy()).first()
    streamed = StreamRelay(ClientRequest.parse(client, body), route, Policy()).asked
    sent = json.loads(asked.body)
    again = {name: json.loads(streamed.body).get(name) for name in sent}
    assert again == sent
    assert streamed.losses == asked.losses
    return sent, set(asked.losses)


# Whatever a client sends

_words = st.integers(0, 10**9).map(lambda number: f"word-{number}")
_contents = st.one_of(
    _words,
    st.lists(
        _words.map(lambda word: {"type": "text", "text": word, "cache_control": CACHE})
        | _words.map(lambda word: {"type": "text", "text": word}),
        min_size=1,
        max_size=3,
    ),
)


@st.composite
def chats(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a conversation in chat completions in which anything follows anything."""
    messages: list[dict[str, Any]] = []
    kinds = st.sampled_from(["system", "developer", "user", "assistant", "calls"])
    for number, kind in enumerate(draw(st.lists(kinds, min_size=1, max_size=8))):
        if kind != "calls":
            messages.append({"role": kind, "content": draw(_contents)})
            continue
        ids = [f"call_{number}_{at}" for at in range(draw(st.integers(1, 3)))]
        function = {"name": "look", "arguments": '{"n": 1}'}
        calls = [{"id": call_id, "type": "function", "function": function} for call_id in ids]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": call_id, "content": draw(_contents)} for call_id in ids
        ]
    return messages


@settings(max_examples=300, deadline=None)
@given(messages=chats(), provider=st.sampled_from(SERVERS))
def test_any_conversation_is_taken_and_no_word_is_lost(
    messages: list[dict[str, Any]], provider: str
) -> None:
    """Whatever follows what, a template renders it, results stay with their calls, once for all."""
    route = route_to(provider)
    sent, _ = send("chat_completions", {"model": "m", "messages": messages}, route)
    if any(item["role"] in ("user", "assistant") for item in messages):
        prompt = render_strictly(sent)
        assert [*texts_in(prompt)] == [*texts_in(messages)]
    calls = [call["id"] for item in sent["messages"] for call in item.get("tool_calls", ())]
    results = [item["tool_call_id"] for item in sent["messages"] if item["role"] == "tool"]
    assert sorted(calls) == sorted(results)
    assert send("chat_completions", sent, route)[0] == sent


@settings(max_examples=200, deadline=None)
@given(messages=chats(), more=chats())
def test_a_longer_conversation_begins_as_the_shorter_one(
    messages: list[dict[str, Any]], more: list[dict[str, Any]]
) -> None:
    """Prompt caches hold: only the last message may grow."""
    messages = [{"role": "user", "content": "word-0"}, *messages]
    rest = [item for item in more if not item.get("tool_calls") and item["role"] != "tool"]
    route = route_to("vllm")
    before, _ = send("chat_completions", {"model": "m", "messages": messages}, route)
    after, _ = send("chat_completions", {"model": "m", "messages": [*messages, *rest]}, route)
    kept = len(before["messages"]) - 1
    assert after["messages"][:kept] == before["messages"][:kept]


@pytest.mark.parametrize("provider", [None, *SERVERS, "groq", "openrouter", "openai"])
def test_a_request_that_needs_nothing_keeps_its_bytes(provider: str | None) -> None:
    """Odd blanks and all, with calls and without."""
    plain = b'{ "model":"qwen3","messages" :[{"role":"system","content":"developer"},'
    plain += b'{"role":"user","content":"hi"}, {"role":"assistant","content":"x"} ] }'
    route = route_to(provider, "qwen3")
    request = ClientRequest.parse("chat_completions", plain)
    passed = pass_on(request, route)
    assert passed is not None
    assert passed.body == plain
    function = b'{"name":"look","arguments":"{}"}'
    calls = b'[{"id":"abcDEF123","type":"function","function":' + function + b"}]"
    result = b'{"role":"tool","tool_call_id":"abcDEF123","content":"1"}'
    long = plain[:-4] + b',{"role":"user","content":"a"},{"role":"assistant","content":null,'
    long += b'"tool_calls":' + calls + b"}," + result + b"] }"
    request = ClientRequest.parse("chat_completions", long)
    assert Preparation(request, route, Policy()).first().body == long


# What agent programs send

CODEX: dict[str, Any] = {
    "model": "m",
    "instructions": "word-1",
    "store": False,
    "prompt_cache_key": "k" * 36,
    "client_metadata": {"a": "b"},
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "medium", "summary": "auto"},
    "parallel_tool_calls": True,
    "tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}],
    "input": [
        {"role": "developer", "content": [{"type": "input_text", "text": "word-2"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "word-3"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "word-4"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "name": "look", "arguments": '{"n": 1}', "call_id": "call_one1"},
        {"type": "function_call", "name": "look", "arguments": '{"n": 2}', "call_id": "call_two22"},
        {"type": "function_call_output", "call_id": "call_one1", "output": "word-5"},
        {"type": "function_call_output", "call_id": "call_two22", "output": "word-6"},
        {"role": "developer", "content": [{"type": "input_text", "text": "word-7"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "word-8"}]},
    ],
}
CLAUDE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "metadata": {"user_id": "u" * 150},
    "top_k": 5,
    "system": [{"type": "text", "text": "word-1", "cache_control": CACHE}],
    "tools": [{"name": "look", "input_schema": SCHEMA, "cache_control": CACHE}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "word-2"},
                {"type": "text", "text": "word-3", "cache_control": CACHE},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "abc"},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"n": 1}},
                {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"n": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "word-4", "cache_control": CACHE}],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "word-5"},
                {"type": "text", "text": "word-6"},
            ],
        },
        {"role": "system", "content": "word-7"},
        {"role": "user", "content": "word-8"},
    ],
}
CHAT: dict[str, Any] = {
    "model": "m",
    "user": "u" * 150,
    "metadata": {"a": "b"},
    "store": True,
    "tools": [
        {
            "type": "function",
            "function": {"name": "look", "parameters": SCHEMA},
            "cache_control": CACHE,
        }
    ],
    "messages": [
        {"role": "developer", "content": "word-1"},
        {"role": "user", "content": [{"type": "text", "text": "word-2", "cache_control": CACHE}]},
        {"role": "user", "content": "word-3"},
        {"role": "assistant", "content": "word-4"},
        {"role": "system", "content": "word-5"},
        {"role": "user", "content": "word-6"},
    ],
}
PROGRAMS = pytest.mark.parametrize(
    ("client", "document"),
    [("responses", CODEX), ("messages", CLAUDE), ("chat_completions", CHAT)],
    ids=["responses", "messages", "chat"],
)


@PROGRAMS
@pytest.mark.parametrize(
    ("provider", "model"),
    [(None, "devstral"), ("mistral", "m"), *((name, "m") for name in SERVERS)],
)
def test_what_agent_programs_send_is_rendered_whole(
    client: str, document: dict[str, Any], provider: str | None, model: str
) -> None:
    """Nothing in it is refused by a template or by a strict server, and no text is lost."""
    sent, losses = send(client, document, route_to(provider, model))
    assert [*texts_in(render_strictly(sent))] == [*texts_in(document)]
    assert "cache_control" not in json.dumps(sent)
    assert not {"client_metadata", "prompt_cache_key", "store"} & sent.keys()
    assert len(sent.get("user", "")) <= 64
    expected = {
        "responses": {"client_metadata", "prompt_cache_key"},
        "messages": {"messages.cache_control", "tools.cache_control"},
        "chat_completions": {"messages.cache_control", "tools.cache_control", "store"},
    }
    assert expected[client] <= losses


@pytest.mark.parametrize(("client", "document"), [("responses", CODEX), ("messages", CLAUDE)])
@pytest.mark.parametrize(
    ("provider", "declared"),
    [(None, {}), ("groq", {}), ("together", {}), ("openrouter", {"takes_repeated_roles": False})],
)
def test_a_program_of_another_format_says_it_as_all_templates_take_it(
    client: str, document: dict[str, Any], provider: str | None, declared: dict[str, Any]
) -> None:
    """It cannot know what the endpoint takes, so what nobody knows is not tried."""
    route = route_to(provider, "m", **declared)
    if provider == "openrouter":  # another server that is named after it
        route = replace(route, known=route.known - {"takes_user_after_result"})
    sent, _ = send(client, document, route)
    assert [*texts_in(render_strictly(sent))] == [*texts_in(document)]


@PROGRAMS
def test_what_an_endpoint_takes_reaches_it(client: str, document: dict[str, Any]) -> None:
    """Known providers get what is theirs, and names no longer than they take."""
    sent, _ = send(client, document, route_to("openrouter", "anthropic/claude-sonnet-4.5"))
    assert ("cache_control" in json.dumps(sent)) is (client != "responses")
    sent, losses = send(client, document, route_to("openai", "gpt-5"))
    roles = [item["role"] for item in sent["messages"]]
    if client != "messages":
        assert "developer" in roles
        assert "user user" in " ".join(roles)
    assert "client_metadata" not in sent
    assert "top_k" not in sent
    assert ("top_k" in losses) is (client == "messages")
    if client == "responses":
        assert sent["prompt_cache_key"] == document["prompt_cache_key"]
    if client == "chat_completions":
        assert sent["metadata"] == {"a": "b"}
        assert sent["store"] is True
    if client != "responses":
        assert len(sent["user"]) == 64
        assert sent["user"] == send(client, document, route_to("openai", "gpt-5"))[0]["user"]


async def test_what_was_left_out_is_named() -> None:
    """Also where the reply is clean and everything else passed as it was."""

    async def answer(_: bytes) -> Sent:
        return Sent(200, {}, json.dumps(completion(content="ok")).encode())

    document = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "store": True}
    request = ClientRequest.parse("chat_completions", json.dumps(document).encode())
    for route, named in ((route_to(None), ["store"]), (route_to("openai"), [])):
        delivered = await mediate(request, route, Policy(), answer)
        assert delivered.outcome == "clean"
        assert [defect.place for defect in delivered.defects] == named


def test_images_stay_parts_and_names_stay_apart() -> None:
    """Nothing of a message is lost when it is joined, and whoever has another name is another."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [
        {"role": "user", "content": "look"},
        {"role": "user", "content": [image]},
        {"role": "user", "content": "and", "name": "bob"},
    ]
    sent, _ = send("chat_completions", {"model": "m", "messages": messages}, route_to("vllm"))
    first, second = sent["messages"]
    assert first == {"role": "user", "content": [{"type": "text", "text": "look"}, image]}
    assert second == messages[2]
