"""The official openai SDK as a client of our server side, and as a judge of our requests."""

from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent, response_create_params
from pydantic import TypeAdapter

from support.family_server import FamilyServer, render_stream
from surecall.base.errors import Code, ProviderStatusError
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec, Usage
from surecall.wire import Responses

RESPONSES = Responses()
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}}
TOOL: Any = {
    "type": "function",
    "name": "look",
    "description": "Looks.",
    "parameters": SCHEMA,
    "strict": False,
}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "e",
}
CALLING = Reply(
    content="Let me look.",
    reasoning="Hm.",
    calls=(RawCall("c1", "look", '{"what":"é"}'), RawCall("c2", "look", {"what": "b"})),
    finish_reason="tool_calls",
    usage=Usage(7, 5, 12, reasoning_tokens=2, cached_tokens=3),
    model="m",
    id="resp_1",
)
SIGNED = Reply(
    content="Let me look.",
    reasoning="Hm.",
    calls=CALLING.calls,
    finish_reason="tool_calls",
    model="m",
    id="resp_3",
    extra={"reasoning_items": [THOUGHT], "phase": "commentary"},
)
FINAL = Reply(content="Done.", finish_reason="stop", model="m", id="resp_2")
CUT = Reply(calls=(RawCall("c1", "look", '{"wh'),), finish_reason="length", model="m", id="resp_4")
PICTURE: Any = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}


def client(server: FamilyServer) -> openai.AsyncOpenAI:
    """Return a client that talks to the server."""
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="test", max_retries=0)


def check_calling(got: Any, reasoning: str = "reasoning_text") -> None:
    """Assert that the SDK's object says what the reply with calls says."""
    assert (got.id, got.status, got.model) == ("resp_1", "completed", "m")
    assert got.output_text == "Let me look."
    thought, text, first, second = got.output
    assert [part.text for part in thought.content] == ["Hm."]
    assert thought.content[0].type == reasoning
    assert (text.role, text.status) == ("assistant", "completed")
    assert [(c.call_id, c.name, c.arguments) for c in (first, second)] == [
        ("c1", "look", '{"what":"é"}'),
        ("c2", "look", '{"what":"b"}'),
    ]
    usage = got.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (7, 5, 12)
    assert usage.input_tokens_details.cached_tokens == 3
    assert usage.output_tokens_details.reasoning_tokens == 2


async def test_create_understands_a_reply_with_calls() -> None:
    """Text, reasoning, calls, status and usage arrive in the SDK's own objects."""
    async with FamilyServer(RESPONSES, [CALLING]) as server, client(server) as sdk:
        got = await sdk.responses.create(model="m", input="Hi", tools=[TOOL])
    check_calling(got)
    assert server.wires[0].path == "/responses"
    assert server.wires[0].headers["authorization"] == "Bearer test"


async def test_streams_are_folded_by_the_sdk() -> None:
    """The SDK's accumulator takes every event and ends up with what was sent."""
    async with (
        FamilyServer(RESPONSES, [CALLING]) as server,
        client(server) as sdk,
        sdk.responses.stream(model="m", input="Hi", tools=[TOOL]) as stream,
    ):
        seen: list[Any] = [event async for event in stream]
        got = await stream.get_final_response()
    check_calling(got)
    texts = [event for event in seen if event.type == "response.output_text.delta"]
    assert "".join(event.delta for event in texts) == texts[-1].snapshot == "Let me look."
    arguments = [e for e in seen if e.type == "response.function_call_arguments.delta"]
    assert [event.snapshot for event in arguments] == ['{"what":"é"}', '{"what":"b"}']
    assert server.requests[0].stream


async def test_calls_with_one_id_are_folded_by_the_sdk() -> None:
    """Its accumulator tells calls apart by their ids alone; results then pair one to one."""
    calls = (RawCall("c1", "look", {"what": "a"}), RawCall("c1", "look", {"what": "b"}))
    reply = Reply(calls=calls, finish_reason="tool_calls", model="m", id="resp_1")
    async with (
        FamilyServer(RESPONSES, [reply, FINAL]) as server,
        client(server) as sdk,
    ):
        async with sdk.responses.stream(model="m", input="Hi", tools=[TOOL]) as stream:
            got = await stream.get_final_response()
        items: list[Any] = [item.model_dump(exclude_none=True) for item in got.output]
        results: list[Any] = [
            {
                "type": "function_call_output",
                "call_id": item["call_id"],
                "output": item["arguments"],
            }
            for item in items
        ]
        await sdk.responses.create(model="m", input=[*items, *results])
    assistant, *answers = server.requests[1].messages
    assert [call.id for call in assistant.tool_calls] == ["c1", "c1__2"]
    assert [(answer.tool_call_id, answer.text) for answer in answers] == [
        ("c1", '{"what":"a"}'),
        ("c1__2", '{"what":"b"}'),
    ]


async def test_raw_streams_are_understood_event_by_event() -> None:
    """With consecutive numbers and one end."""
    async with FamilyServer(RESPONSES, [CALLING]) as server, client(server) as sdk:
        stream: Any = await sdk.responses.create(model="m", input="Hi", tools=[TOOL], stream=True)
        seen = [event async for event in stream]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert seen[0].type == "response.created"
    check_calling(seen[-1].response)
    thoughts = [event for event in seen if event.type == "response.reasoning_text.delta"]
    assert "".join(event.delta for event in thoughts) == "Hm."


async def test_a_cut_reply_is_incomplete_for_the_sdk_too() -> None:
    """Whole and streamed, with the reason."""
    async with FamilyServer(RESPONSES, [CUT, CUT]) as server, client(server) as sdk:
        got = await sdk.responses.create(model="m", input="Hi")
        stream: Any = await sdk.responses.create(model="m", input="Hi", stream=True)
        *_, last = [event async for event in stream]
    assert last.type == "response.incomplete"
    for response in (got, last.response):
        assert response.status == "incomplete"
        assert response.incomplete_details.reason == "max_output_tokens"
        assert response.output[0].status == "incomplete"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_that_the_sdk_sends_back_is_understood(streamed: bool) -> None:
    """The SDK's own items, dumped by the SDK, become calls, results and reasoning."""
    async with FamilyServer(RESPONSES, [SIGNED, FINAL]) as server, client(server) as sdk:
        items: list[Any] = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "input_text", "text": "What?"}, PICTURE]},
        ]
        first: Any
        if streamed:
            async with sdk.responses.stream(model="m", input=items, tools=[TOOL]) as stream:
                first = await stream.get_final_response()
        else:
            first = await sdk.responses.create(
                model="m",
                instructions="Look well.",
                input=items,
                tools=[TOOL],
                tool_choice={"type": "function", "name": "look"},
                temperature=0,
                max_output_tokens=99,
                reasoning={"effort": "low"},
                text={"format": {"type": "json_object"}},
            )
        items += first.output
        items += [
            {"type": "function_call_output", "call_id": "c1", "output": "one"},
            {"type": "function_call_output", "call_id": "c2", "output": [PICTURE]},
        ]
        second = await sdk.responses.create(
            model="m", input=items, tools=[TOOL], parallel_tool_calls=False
        )
    assert second.output_text == "Done."
    request = server.requests[1]
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"},
    }
    developer, user, turn, one, two = request.messages
    assert developer == Message("developer", "Be brief.")
    assert user == Message("user", [{"type": "text", "text": "What?"}, picture])
    assert (turn.role, turn.content) == ("assistant", "Let me look.")
    assert [(c.id, c.name, c.arguments) for c in turn.tool_calls] == [
        ("c1", "look", {"what": "é"}),
        ("c2", "look", {"what": "b"}),
    ]
    assert turn.extra["phase"] == "commentary"
    (thought,) = turn.extra["reasoning_items"]
    assert {key: thought[key] for key in THOUGHT} == THOUGHT
    assert one == Message("tool", "one", tool_call_id="c1")
    assert two == Message("tool", [picture], tool_call_id="c2")
    spec = ToolSpec(name="look", description="Looks.", parameters=SCHEMA)
    assert (request.tools, request.parallel_tool_calls) == ((spec,), False)
    # What was understood goes to a provider as it came: the reasoning before what it led to.
    sent = RESPONSES.render_request(request).body["input"]
    assert [item.get("type", item.get("role")) for item in sent] == [
        "developer",
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert sent[2] == THOUGHT


async def test_what_the_sdk_asks_for_is_understood() -> None:
    """Choices, formats and parameters get their places."""
    async with FamilyServer(RESPONSES, [FINAL]) as server, client(server) as sdk:
        await sdk.responses.create(
            model="m",
            instructions="Look well.",
            input="Hi",
            tools=[{**TOOL, "strict": True}],
            tool_choice={"type": "function", "name": "look"},
            temperature=0,
            max_output_tokens=99,
            reasoning={"effort": "low"},
            text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
            store=False,
            include=["reasoning.encrypted_content"],
        )
    assert server.requests == [
        ModelRequest(
            model="m",
            messages=(Message("system", "Look well."), Message("user", "Hi")),
            tools=(
                ToolSpec(
                    name="look", description="Looks.", parameters=SCHEMA, extra={"strict": True}
                ),
            ),
            tool_choice={"type": "function", "function": {"name": "look"}},
            response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            params={"temperature": 0, "max_tokens": 99, "reasoning_effort": "low"},
        )
    ]


async def test_an_error_is_raised_by_the_sdk_in_its_own_class() -> None:
    """The status decides the class, and the message arrives."""
    errors = [ProviderStatusError(Code.RATE_LIMIT, "Slow down.", status=429)]
    async with FamilyServer(RESPONSES, errors) as server, client(server) as sdk:
        with pytest.raises(openai.RateLimitError, match=r"Slow down\."):
            await sdk.responses.create(model="m", input="Hi")
        with pytest.raises(openai.BadRequestError, match="send the whole input"):
            await sdk.responses.create(model="m", input="Hi", previous_response_id="resp_1")
        with pytest.raises(openai.BadRequestError, match="an item that is only named"):
            await sdk.responses.create(model="m", input=[{"type": "item_reference", "id": "msg_1"}])


def test_what_is_rendered_is_valid_for_the_types_of_the_sdk() -> None:
    """No field is missing and none has a wrong type, whole and streamed."""
    event_types: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for reply in (CALLING, SIGNED, FINAL, CUT):
        got = Response.model_validate(RESPONSES.render_reply(reply), strict=True)
        assert got.id == reply.id
        for block in b"".join(render_stream(RESPONSES, reply)).decode().split("\n\n")[:-1]:
            name, data = block.split("\n")
            event = event_types.validate_json(data.removeprefix("data: "), strict=True)
            assert name == f"event: {event.type}"
    writer = RESPONSES.open_writer(model="m")
    data = writer.fail(ProviderStatusError(Code.OVERLOADED, "Busy.", status=529)).decode()
    for block in data.split("\n\n")[:-1]:
        event_types.validate_json(block.split("\n")[1].removeprefix("data: "), strict=True)


async def test_a_stream_that_breaks_off_is_an_error_for_the_sdk() -> None:
    """It is raised, not passed over as one more event."""
    writer = RESPONSES.open_writer(model="m")
    error = ProviderStatusError(Code.OVERLOADED, "Busy.", status=529)
    data = writer.begin() + writer.text("Hel") + writer.fail(error)

    class Broken(Responses):
        open_writer: Any = staticmethod(lambda **_: _Recorded(data))

    async with FamilyServer(Broken(), [FINAL]) as server, client(server) as sdk:
        stream: Any = await sdk.responses.create(model="m", input="Hi", stream=True)
        with pytest.raises(openai.APIError, match=r"Busy\."):
            async for _ in stream:
                pass


class _Recorded:
    """Writes what was recorded, whatever it is asked to write."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def begin(self) -> bytes:
        return self._data

    def text(self, _: str) -> bytes:
        return b""

    def reasoning(self, *_: Any) -> bytes:
        return b""

    def end(self, _: Reply) -> bytes:
        return b""


def test_requests_are_valid_for_the_types_of_the_sdk() -> None:
    """What leaves is what the SDK would have let its users send, field by field."""
    picture: dict[str, Any] = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
    calls = tuple(ToolCall(id=f"c{n}", name="look", arguments={"what": "a"}) for n in range(2))
    wire = RESPONSES.render_request(
        ModelRequest(
            model="m",
            messages=(
                Message("system", "Be brief."),
                Message("developer", "In English."),
                Message("user", [{"type": "text", "text": "Hi"}, picture]),
                Message(
                    "assistant",
                    "Wait.",
                    calls,
                    extra={
                        "reasoning_items": [{**THOUGHT, "_before": "c1"}],
                        "phase": "commentary",
                    },
                ),
                Message("tool", "seen", tool_call_id="c0"),
                Message("tool", [picture], tool_call_id="c1"),
                Message("assistant", "Done."),
                Message("user", "Thanks."),
            ),
            tools=(ToolSpec(name="look", parameters=SCHEMA),),
            tool_choice={"type": "function", "function": {"name": "look"}},
            parallel_tool_calls=False,
            response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            params={"temperature": 0.5, "max_tokens": 9, "reasoning_effort": "low", "seed": 1},
        )
    )
    adapter: TypeAdapter[Any] = TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming)
    # Fields that the SDK does not know would be missing in what it gives back.
    checked = adapter.validate_python(wire.body)
    assert set(checked) == set(wire.body)
    assert [_plain(item) for item in checked.pop("input")] == wire.body["input"]
    assert list(checked.pop("tools")) == wire.body["tools"]
    assert checked == {key: wire.body[key] for key in checked}


def _plain(item: Any) -> Any:
    """Return an item with its lazily checked lists as lists."""
    if isinstance(item, dict):
        return {key: _plain(value) for key, value in item.items()}
    if isinstance(item, str | int | float | None):
        return item
    return [_plain(value) for value in item]
