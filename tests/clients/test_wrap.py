"""Clients of the official SDKs get right calls through one line, blocking and asynchronous."""

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest

import surecall
from support.upstream import FaultyUpstream, Received, http_response
from surecall.base.errors import ConfigError
from surecall.clients import CallsRefusedError
from surecall.exchange import Policy
from surecall.faults import FaultServer, FaultyProvider

WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "Return the weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
CALL = 'call get_weather with {"city": "Paris", "days": 3}'
RIGHT = [("get_weather", {"city": "Paris", "days": 3})]
REPAIRED = (
    "arguments_trailing_comma",
    "arguments_fenced",
    "arguments_object",
    "arguments_python",
    "tool_calls_object",
    "call_flat",
    "function_call_field",
    "text_hermes",
    "text_in_error",
)
REFUSED = (
    "name_unknown",
    "arguments_prose",
    "arguments_missing_field",
    "cut_at_limit",
    "cut_after_arguments",
)

Calls = list[tuple[str, Any]]
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")


@asynccontextmanager
async def serve() -> AsyncIterator[tuple[str, FaultyProvider]]:
    """Serve a faulty provider."""
    provider = FaultyProvider()
    async with FaultServer(provider) as upstream:
        yield upstream.url, provider


def chat(fault: str, **fields: Any) -> dict[str, Any]:
    """Return the arguments of a chat completion."""
    return {
        "model": f"faults:{fault}",
        "messages": [{"role": "user", "content": CALL}],
        "tools": [{"type": "function", "function": WEATHER}],
        **fields,
    }


def message(fault: str) -> dict[str, Any]:
    """Return the arguments of a message."""
    tool = {key: WEATHER[key] for key in ("name", "description")}
    return {
        "model": f"faults:{fault}",
        "max_tokens": 200,
        "messages": [{"role": "user", "content": CALL}],
        "tools": [{**tool, "input_schema": WEATHER["parameters"]}],
    }


def calls_in(whole: Any) -> Calls:
    """Return the calls of a chat completion."""
    calls = whole.choices[0].message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def fold(chunks: Iterator[Any]) -> Calls:
    """Return the calls of a streamed chat completion."""
    found: dict[int, list[str]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            for delta in choice.delta.tool_calls or []:
                call = found.setdefault(delta.index, ["", ""])
                call[0] += delta.function.name or ""
                call[1] += delta.function.arguments or ""
    return [(name, json.loads(arguments)) for name, arguments in found.values()]


def ask_blocking(url: str, fault: str) -> tuple[Calls, Calls]:
    """Ask with the blocking client, for a whole reply and a stream."""
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        wrapped = surecall.wrap(client)
        whole = wrapped.chat.completions.create(**chat(fault))
        return calls_in(whole), fold(wrapped.chat.completions.create(**chat(fault), stream=True))


async def ask_waiting(url: str, fault: str) -> tuple[Calls, Calls]:
    """Ask with the asynchronous client, for a whole reply and a stream."""
    async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
        wrapped = surecall.wrap(client)
        whole = await wrapped.chat.completions.create(**chat(fault))
        events = [
            e async for e in await wrapped.chat.completions.create(**chat(fault), stream=True)
        ]
        return calls_in(whole), fold(iter(events))


async def ask_messages(url: str, fault: str) -> tuple[Calls, Calls]:
    """Ask with Anthropic's asynchronous client, for a whole reply and a stream."""
    base = url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=base, api_key="k", max_retries=0) as client:
        wrapped = surecall.wrap(client)
        whole = await wrapped.messages.create(**message(fault))
        async with wrapped.messages.stream(**message(fault)) as events:
            streamed = await events.get_final_message()
        first, second = (
            [(part.name, part.input) for part in made.content if part.type == "tool_use"]
            for made in (whole, streamed)
        )
        return first, second


async def in_thread(url: str, fault: str) -> tuple[Calls, Calls]:
    """Ask with the blocking client beside the loop that serves."""
    return await asyncio.to_thread(ask_blocking, url, fault)


@pytest.mark.parametrize("ask", [in_thread, ask_waiting], ids=["blocking", "waiting"])
@pytest.mark.parametrize("fault", REPAIRED)
async def test_openai_gets_the_right_call(ask: Callable[..., Any], fault: str) -> None:
    """Whatever shape the call came in, the client sees one that is right."""
    async with serve() as (url, _):
        assert await ask(url, fault) == (RIGHT, RIGHT)


@pytest.mark.parametrize("fault", ["clean", "arguments_python", "text_hermes"])
async def test_anthropic_gets_the_right_call(fault: str) -> None:
    """The other format has the same."""
    async with serve() as (url, _):
        assert await ask_messages(url, fault) == (RIGHT, RIGHT)


@pytest.mark.parametrize("fault", REFUSED)
async def test_what_cannot_be_used_is_an_error_of_the_sdk(fault: str) -> None:
    """No wrong call reaches the application, and the SDK is told not to try again."""
    async with (
        serve() as (url, provider),
        openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=2) as client,
    ):
        wrapped = surecall.wrap(client, policy=Policy(max_requests=2))
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            await wrapped.chat.completions.create(**chat(fault))
        assert isinstance(refused.value, CallsRefusedError)
        assert refused.value.code == "CALLS_REFUSED"
        assert all(reason["message"] for reason in refused.value.reasons)
        assert str(refused.value).startswith("Error code: 422")
        assert provider.requests == 2
        stream = await wrapped.chat.completions.create(**chat(fault), stream=True)
        with pytest.raises(openai.APIError):
            assert [event async for event in stream] == []


async def test_anthropic_raises_refused_calls_too() -> None:
    """They are of the SDK's class for a request that cannot be processed, and of ours."""
    async with (
        serve() as (url, _),
        anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="k") as client,
    ):
        with pytest.raises(anthropic.UnprocessableEntityError) as refused:
            await surecall.wrap(client).messages.create(**message("arguments_missing_field"))
        assert isinstance(refused.value, CallsRefusedError)
        assert [reason["code"] for reason in refused.value.reasons] == ["ARGUMENTS_INVALID"]


async def test_a_request_and_a_policy_choose_what_becomes_of_wrong_calls() -> None:
    """The header of a request wins over the policy; a word that is not known is refused."""
    deliver, tell = Policy(refused_calls="deliver"), Policy(refused_calls="tell")
    named = "x-surecall-refused-calls"
    async with (
        serve() as (url, provider),
        openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client,
    ):

        async def ask(policy: Policy, **headers: str) -> Any:
            asked = chat("arguments_missing_field", extra_headers=headers)
            return await surecall.wrap(client, policy=policy).chat.completions.create(**asked)

        assert [name for name, _ in calls_in(await ask(deliver))] == ["get_weather"]
        agent = await ask(Policy(), **{"User-Agent": "opencode/1.0.2"})
        assert [name for name, _ in calls_in(agent)] == ["get_weather"]
        note = "get_weather was not executed"
        assert note in (await ask(tell)).choices[0].message.content
        told = await ask(deliver, **{named: "tell"})
        assert note in told.choices[0].message.content
        with pytest.raises(CallsRefusedError):
            await ask(tell, **{named: "error"})
        asked = provider.requests
        with pytest.raises(openai.BadRequestError, match="auto, deliver, tell, error"):
            await ask(tell, **{named: "tall"})
        assert provider.requests == asked


@pytest.mark.parametrize("fault", ["cut_at_limit", "cut_after_arguments", "cut_by_filter"])
async def test_cut_call_is_refused_after_every_step(fault: str) -> None:
    """A model that is stopped in every reply is stopped in the calls it was taught, too."""
    async with (
        serve() as (url, provider),
        openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client,
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await surecall.wrap(client).chat.completions.create(**chat(fault))
        assert refused.value.code == "CALLS_REFUSED"
        assert "allow more tokens, or ask for less at a time" in str(refused.value)
        assert provider.requests == 3


async def test_what_was_done_is_in_the_response() -> None:
    """Receipts are on the object that the SDK returns, and a clean reply has none."""
    async with serve() as (url, _), openai.AsyncOpenAI(base_url=url, api_key="k") as client:
        wrapped = surecall.wrap(client)
        made: Any = await wrapped.chat.completions.create(**chat("arguments_python"))
        assert made.surecall["outcome"] == "repaired"
        assert made.surecall["receipts"][0]["rule"]
        clean: Any = await wrapped.chat.completions.create(**chat("clean"))
        assert "surecall" not in (clean.model_extra or {})


async def test_the_wrapped_client_keeps_its_settings() -> None:
    """Key, headers and limits of the given client hold, and it works as before itself."""
    async with (
        serve() as (url, _),
        openai.AsyncOpenAI(
            base_url=url, api_key="mine", max_retries=5, default_headers={"x-team": "blue"}
        ) as client,
    ):
        wrapped = surecall.wrap(client)
        assert wrapped.max_retries == 5
        raw = await wrapped.chat.completions.with_raw_response.create(**chat("clean"))
        assert raw.headers["x-surecall-outcome"] == "clean"
        assert raw.http_request.headers["authorization"] == "Bearer mine"
        assert raw.http_request.headers["x-team"] == "blue"
        whole = await client.chat.completions.create(**chat("arguments_fenced"))
        assert "```" in whole.choices[0].message.tool_calls[0].function.arguments  # type: ignore


async def test_a_dead_endpoint_raises_the_error_the_sdk_always_raises() -> None:
    """Applications that handle errors of the SDK need no other code."""
    async with openai.AsyncOpenAI(
        base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=0
    ) as client:
        with pytest.raises(openai.APIConnectionError):
            await surecall.wrap(client).chat.completions.create(**chat("clean"))


async def test_requests_for_anything_else_pass_untouched() -> None:
    """A list of models is nobody's reply."""
    async with serve() as (url, _), openai.AsyncOpenAI(base_url=url, api_key="k") as client:
        assert [model.id async for model in surecall.wrap(client).models.list()]


async def test_a_blocking_client_works_inside_a_running_loop() -> None:
    """A notebook has a loop of its own in the same thread."""
    async with serve() as (url, _):

        async def ask() -> tuple[Calls, Calls]:
            return ask_blocking(url, "arguments_python")

        assert await asyncio.to_thread(asyncio.run, ask()) == (RIGHT, RIGHT)


async def test_leaving_a_stream_early_closes_it() -> None:
    """Nothing stays open behind a client that has seen enough."""
    async with serve() as (url, _), openai.AsyncOpenAI(base_url=url, api_key="k") as client:
        stream = await surecall.wrap(client).chat.completions.create(**chat("clean"), stream=True)
        await anext(aiter(stream))
        await stream.close()
        assert stream.response.is_closed


async def test_closing_the_wrapped_client_closes_the_connections() -> None:
    """Nobody has to keep the given client to close what it opened."""
    async with serve() as (url, _):
        client = openai.AsyncOpenAI(base_url=url, api_key="k")
        async with surecall.wrap(client) as wrapped:
            await wrapped.chat.completions.create(**chat("clean"))
            assert not client.is_closed()
        assert client.is_closed()


def test_wrap_says_what_it_takes() -> None:
    """Something that is not a client of an SDK is refused with a way out."""
    with pytest.raises(ConfigError, match=r"surecall\.http_client"):
        surecall.wrap(object())


def packed_completion(window: int) -> bytes:
    """Return a right reply, compressed."""
    function = {"name": "get_weather", "arguments": json.dumps(RIGHT[0][1])}
    said = {"role": "assistant", "content": None}
    said["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": "m"}
    packer = zlib.compressobj(wbits=window)
    return packer.compress(json.dumps({**head, "choices": [choice]}).encode()) + packer.flush()


def packed_spaces(size_mib: int) -> bytes:
    """Return spaces in a thousandth of their size."""
    packer = zlib.compressobj(9, wbits=31)
    pieces = [packer.compress(b" " * 2**20) for _ in range(size_mib)]
    return b"".join([*pieces, packer.flush()])


async def ask_packed(body: bytes, encoding: str, *, blocks: bool, **fields: Any) -> tuple[Any, str]:
    """Return what a wrapped client makes of a compressed body, and what it says it can read."""

    def script(received: Received) -> bytes:
        accepted.append(received.headers["accept-encoding"])
        kind = "text/event-stream" if fields.get("stream") else "application/json"
        return http_response(body, headers={"content-type": kind, "content-encoding": encoding})

    accepted: list[str] = []
    async with FaultyUpstream(script) as upstream:
        url = f"{upstream.url}/v1"
        if blocks:

            def ask() -> Any:
                with surecall.wrap(openai.OpenAI(base_url=url, api_key="k", max_retries=0)) as own:
                    found = own.chat.completions.create(**chat("x", **fields))
                    return list(found) if fields.get("stream") else found

            return await asyncio.to_thread(ask), accepted[0]
        async with surecall.wrap(
            openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0)
        ) as client:
            found = await client.chat.completions.create(**chat("x", **fields))
            return [item async for item in found] if fields.get("stream") else found, accepted[0]


@pytest.mark.parametrize("blocks", [False, True], ids=["waiting", "blocking"])
@pytest.mark.parametrize(("encoding", "window"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
async def test_compressed_replies_are_read(encoding: str, window: int, blocks: bool) -> None:
    """In the encodings that have limits, and the request names no others."""
    found, accepted = await ask_packed(packed_completion(window), encoding, blocks=blocks)
    assert calls_in(found) == RIGHT
    assert set(accepted.split(", ")) <= {"gzip", "deflate"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("blocks", [False, True], ids=["waiting", "blocking"])
async def test_a_bomb_is_an_error_before_it_costs_memory(blocks: bool, stream: bool) -> None:
    """Whole or streamed, through either kind of client."""
    bomb = packed_spaces(200)
    assert len(bomb) < 2**18
    tracemalloc.start()
    with pytest.raises(openai.InternalServerError, match="expands more than 100 times") as raised:
        await ask_packed(bomb, "gzip", blocks=blocks, stream=stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    code = raised.value.code
    assert code == ("STREAM_TOO_LARGE" if stream else "UPSTREAM_TOO_LARGE")
    assert peak < 32 * 2**20


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("change", "encoding", "code"),
    [
        (lambda body: body[:-9], "gzip", "UPSTREAM_TRUNCATED_BODY"),
        (lambda body: body + b"x", "gzip", "UPSTREAM_ENCODING"),
        (lambda body: body * 2, "gzip", "UPSTREAM_ENCODING"),
        (gzip.compress, "gzip, gzip", "UPSTREAM_ENCODING"),
        (lambda body: body, "br", "UPSTREAM_ENCODING"),
        (lambda body: b"plain" + body, "gzip", "UPSTREAM_ENCODING"),
    ],
    ids=["cut", "tail", "two members", "nested", "unasked", "not gzip"],
)
async def test_broken_compression_is_a_coded_error(
    change: Callable[[bytes], bytes], encoding: str, code: str, stream: bool
) -> None:
    """What is damaged is told, not passed on in part."""
    body = change(packed_completion(31))
    with pytest.raises(openai.InternalServerError) as raised:
        await ask_packed(body, encoding, blocks=False, stream=stream)
    assert raised.value.code == code


@pytest.mark.parametrize("blocks", [True, False])
async def test_a_client_hears_something_while_a_call_comes(
    blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that say nothing are handed on while a call is held back, and the call is the same."""
    monkeypatch.setattr("surecall.clients.mediator.PULSE_S", 0.0)
    asked = {**chat("clean"), "stream": True}
    async with serve() as (url, _):
        if blocks:
            client = surecall.wrap(openai.OpenAI(base_url=url, api_key="k", max_retries=0))
            chunks = await asyncio.to_thread(lambda: list(client.chat.completions.create(**asked)))
        else:
            other = surecall.wrap(openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0))
            chunks = [chunk async for chunk in await other.chat.completions.create(**asked)]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert {"content": ""} in [delta.model_dump(exclude_none=True) for delta in deltas[1:]]
    assert fold(iter(chunks)) == RIGHT
