"""Requests and replies on their way through an endpoint that speaks another format."""

import json
from typing import Any

import pytest

from surecall.base.records import Reply, Usage
from surecall.exchange.policy import Policy, Route
from surecall.models.profiles import resolve_capabilities
from surecall.wire import find_protocol

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


# what the other format cannot carry


@pytest.mark.parametrize(
    ("client", "upstream", "fields", "name"),
    [
        ("gemini", "chat_completions", {"cachedContent": "cachedContents/1"}, "cachedContent"),
        ("gemini", "messages", {"cached_content": "cachedContents/1"}, "cached_content"),
        (
            "messages",
            "chat_completions",
            {"mcp_servers": [{"type": "url", "url": "https://m.test", "name": "x"}]},
            "mcp_servers",
        ),
        ("chat_completions", "messages", {"modalities": ["text", "audio"]}, "modalities"),
        ("chat_completions", "responses", {"audio": {"voice": "a", "format": "wav"}}, "audio"),
        ("chat_completions", "gemini", {"web_search_options": {}}, "web_search_options"),
        (
            "chat_completions",
            "responses",
            {
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
                    {"role": "user", "content": "Go on"},
                ]
            },
            "messages.audio",
        ),
    ],
)
async def test_a_part_of_the_prompt_or_a_tool_is_not_left_out(
    client: str, upstream: str, fields: dict[str, Any], name: str
) -> None:
    """Nothing is sent, and the client reads what it was."""
    send = Script(GOOD)
    body = {**json.loads(write_request(client, "m")), **fields}
    answer = await ask(send, client=client, upstream=upstream, body=json.dumps(body).encode())
    assert (answer.status, send.asked) == (400, [])
    assert answer.error is not None
    assert answer.error.code == "CAPABILITY_UNSUPPORTED"
    assert answer.error.message.endswith(f"cannot carry: {name}.")


async def test_a_wish_for_text_is_no_loss() -> None:
    """Every format answers with text."""
    send = Script(find_protocol("messages").render_reply(Reply(content="Hi", finish_reason="stop")))
    body = {**json.loads(write_request("chat_completions", "m")), "modalities": ["text"]}
    answer = await ask(send, upstream="messages", body=json.dumps(body).encode())
    assert (answer.status, answer.defects) == (200, ())


async def test_a_stop_that_a_format_has_no_place_for_is_a_loss_by_name() -> None:
    """The reply may be longer than it had to be, and says the same."""
    said = Reply(content="Hi", finish_reason="stop")
    send = Script(find_protocol("responses").render_reply(said))
    body = write_request("chat_completions", "m", stop=["END"])
    answer = await ask(send, upstream="responses", body=body)
    assert answer.status == 200
    assert [(item.code, item.place) for item in answer.defects] == [("FIELD_NOT_CARRIED", "stop")]


PICTURE: dict[str, Any] = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


def drawn(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return a reply of Gemini with these parts."""
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "g"}


@pytest.mark.parametrize("client", ["chat_completions", "messages", "responses"])
async def test_an_image_that_a_client_cannot_get_is_noted(client: str) -> None:
    """With the text that came with it, and alone."""
    for parts in (({"text": "Here it is."}, PICTURE), (PICTURE,)):
        answer = await ask(Script(drawn(*parts)), client=client, upstream="gemini")
        assert answer.status == 200
        note = answer.defects[0]
        assert note.code == "PART_NOT_KNOWN"
        assert note.message == "A part has inlineData, which is neither text nor a call."


@pytest.mark.parametrize("client", ["chat_completions", "messages", "responses"])
def test_an_image_in_a_stream_is_noted_too(client: str) -> None:
    """The record says what the client did not get."""
    events = [f"data: {json.dumps(drawn({'text': 'Here.'}, PICTURE))}\n\n".encode()]
    route = Route(protocol=find_protocol("gemini"), model="m")
    relayed = relay(request_for(client), route, events)
    assert fold(client, relayed.sent).content == "Here."
    assert relayed.ending.defects[0].code == "PART_NOT_KNOWN"


# files


PDF = "https://files.test/a.pdf"


def with_file(client: str) -> bytes:
    """Return a request about a document at an address."""
    body = json.loads(write_request(client, "m"))
    if client == "gemini":
        data = {"fileUri": PDF, "mimeType": "application/pdf"}
        body["contents"] = [{"role": "user", "parts": [{"text": "Hi"}, {"fileData": data}]}]
    elif client == "responses":
        parts = [{"type": "input_text", "text": "Hi"}, {"type": "input_file", "file_url": PDF}]
        body["input"] = [{"role": "user", "content": parts}]
    else:
        parts = [
            {"type": "text", "text": "Hi"},
            {"type": "document", "source": {"type": "url", "url": PDF}},
        ]
        body["messages"] = [{"role": "user", "content": parts}]
    return json.dumps(body).encode()


@pytest.mark.parametrize("client", ["gemini", "messages", "responses"])
@pytest.mark.parametrize(
    ("upstream", "part"),
    [
        ("gemini", {"fileData": {"mimeType": "application/pdf", "fileUri": PDF}}),
        ("messages", {"type": "document", "source": {"type": "url", "url": PDF}}),
        ("responses", {"type": "input_file", "file_url": PDF}),
    ],
)
async def test_a_document_at_an_address_is_one_in_the_other_format(
    client: str, upstream: str, part: dict[str, Any]
) -> None:
    """The address is no id."""
    said = Reply(content="Hi", finish_reason="stop")
    send = Script(find_protocol(upstream).render_reply(said))
    answer = await ask(send, client=client, upstream=upstream, body=with_file(client))
    assert (answer.status, answer.defects) == (200, ())
    keys = {"gemini": ("contents", "parts"), "responses": ("input", "content")}
    turns, parts = keys.get(upstream, ("messages", "content"))
    assert send.asked[0][turns][0][parts][1] == part


@pytest.mark.parametrize("client", ["gemini", "messages", "responses"])
async def test_a_document_at_an_address_is_refused_where_there_are_none(client: str) -> None:
    """Chat completions know data and ids."""
    send = Script(GOOD)
    answer = await ask(send, client=client, body=with_file(client))
    assert (answer.status, send.asked) == (400, [])
    assert answer.error is not None
    assert answer.error.message.endswith("cannot carry: messages.file_url.")


@pytest.mark.parametrize("upstream", ["chat_completions", "messages", "responses"])
@pytest.mark.parametrize(
    ("uri", "mime"),
    [
        ("gs://bucket/a.pdf", "application/pdf"),
        ("gs://bucket/a.png", "image/png"),
        ("https://generativelanguage.googleapis.com/v1beta/files/abc", "image/png"),
    ],
)
async def test_a_file_that_only_google_can_open_is_refused(
    upstream: str, uri: str, mime: str
) -> None:
    """It depends on what a provider has stored."""
    body = json.loads(write_request("gemini", "m"))
    part = {"fileData": {"fileUri": uri, "mimeType": mime}}
    body["contents"] = [{"role": "user", "parts": [part]}]
    send = Script(GOOD)
    answer = await ask(send, client="gemini", upstream=upstream, body=json.dumps(body).encode())
    assert (answer.status, send.asked) == (400, [])
    assert answer.error is not None
    assert answer.error.message.endswith("cannot carry: messages.file_id.")


@pytest.mark.parametrize(
    ("client", "part", "name"),
    [
        ("responses", {"type": "input_image", "file_id": "file_1"}, "messages.input_image"),
        (
            "messages",
            {"type": "search_result", "source": "x", "title": "y", "content": []},
            "messages.search_result",
        ),
    ],
)
async def test_a_part_that_chat_completions_do_not_know_is_refused(
    client: str, part: dict[str, Any], name: str
) -> None:
    """A server of that format may pass over it without a word."""
    body = json.loads(write_request(client, "m"))
    body["input" if client == "responses" else "messages"] = [{"role": "user", "content": [part]}]
    send = Script(GOOD)
    answer = await ask(send, client=client, body=json.dumps(body).encode())
    assert (answer.status, send.asked) == (400, [])
    assert answer.error is not None
    assert answer.error.message.endswith(f"cannot carry: {name}.")


def test_losses_of_a_streamed_request_are_noted_too() -> None:
    """The record of a stream says no less than that of a whole reply."""
    request = request_for("chat_completions")
    body = json.dumps({**json.loads(request.body), "stop": ["END"], "seed": 1}).encode()
    request = type(request).parse("chat_completions", body)
    said = Reply(content="Hi", finish_reason="stop")
    writer = find_protocol("responses").open_writer(model="m", reply_id="r1")
    events = [writer.begin(), writer.text("Hi"), writer.end(said)]
    relay_to = Route(protocol=find_protocol("responses"), model="m")
    ending = relay(request, relay_to, events).ending
    assert ending.outcome == "clean"
    assert [(item.code, item.place) for item in ending.defects] == [
        ("FIELD_NOT_CARRIED", "seed"),
        ("FIELD_NOT_CARRIED", "stop"),
    ]


def test_an_image_beside_a_streamed_call_is_noted() -> None:
    """The call is clean, and there was more."""
    call = {"functionCall": {"name": "look", "args": {"what": "x"}}}
    events = [f"data: {json.dumps(drawn(call, PICTURE))}\n\n".encode()]
    route = Route(protocol=find_protocol("gemini"), model="m")
    relayed = relay(request_for("chat_completions"), route, events)
    assert len(fold("chat_completions", relayed.sent).calls) == 1
    assert "PART_NOT_KNOWN" in [item.code for item in relayed.ending.defects]
