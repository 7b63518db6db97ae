"""What official clients find in replies without an answer, and in errors of their own provider."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

from .harness import (
    STREAM_HEAD,
    Served,
    Stub,
    ask,
    chunk,
    make_settings,
    reply,
    serve_gateway,
    serve_stub,
)

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

KEY = "client-key-0123456789"
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-x",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
}
FAILED = {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "boom"}}
LIMITED = {**FAILED, "error": {"code": "rate_limit_exceeded", "message": "slow"}}
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}
UNAVAILABLE = {"error": {"code": 503, "message": "The model is busy", "status": "UNAVAILABLE"}}


def stream_of(*events: dict[str, Any]) -> list[bytes]:
    """Return a stream of these events."""
    written = b""
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        written += f"{name}data: {json.dumps(event)}\n\n".encode()
    return [STREAM_HEAD + chunk(written) + b"0\r\n\r\n"]


@asynccontextmanager
async def serve(folder: Path, protocol: str, *answers: Any) -> AsyncIterator[tuple[Served, Stub]]:
    """Serve a gateway in front of a stub that speaks a format."""
    async with serve_stub(*answers) as stub:
        root = stub.url.removesuffix("/v1")
        url = {"gemini": f"{root}/v1beta", "messages": root}.get(protocol, stub.url)
        text = f'[upstreams.stub]\nurl = "{url}"\nprotocol = "{protocol}"\nprobe = "off"\n'
        settings = make_settings(folder, text)
        async with serve_gateway(settings, facts=folder / "facts.db") as served:
            yield served, stub


def open_openai(served: Served) -> openai.AsyncOpenAI:
    """Return OpenAI's client."""
    return openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=KEY)


async def test_a_response_in_the_background_has_its_id(tmp_path: Path) -> None:
    """Whole and streamed, and nothing is asked twice."""
    begun = {**RESPONSE, "status": "queued"}
    events = [
        {"type": "response.created", "response": begun, "sequence_number": 0},
        {"type": "response.queued", "response": begun, "sequence_number": 1},
    ]
    answers = [reply(begun)], stream_of(*events)
    async with serve(tmp_path, "responses", *answers) as (served, stub):
        async with open_openai(served) as client:
            made = await client.responses.create(model="m", input="x", background=True)
            assert (made.id, made.status) == ("resp_1", "queued")
            stream = await client.responses.create(
                model="m", input="x", background=True, stream=True
            )
            kinds = [event.type async for event in stream]
            assert kinds == ["response.created", "response.queued"]
        assert [record.outcome for record in served.store.records] == ["clean", "clean"]
        assert len(stub.heads) == 2


async def test_a_failed_response_shows_its_error(tmp_path: Path) -> None:
    """The client finds it on the response, as without a gateway; the record has its code."""
    begun = {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}}
    failed = {"type": "response.failed", "response": FAILED, "sequence_number": 1}
    streams = stream_of({**begun, "sequence_number": 0}, failed), stream_of(failed)
    async with serve(tmp_path, "responses", [reply(FAILED)], *streams) as (served, stub):
        async with open_openai(served) as client:
            made: Any = await client.responses.create(model="m", input="x")
            assert (made.status, made.error.code, made.error.message) == (
                "failed",
                "server_error",
                "boom",
            )
            for kinds in (["response.created", "response.failed"], ["response.failed"]):
                stream = await client.responses.create(model="m", input="x", stream=True)
                events: list[Any] = [event async for event in stream]
                assert [event.type for event in events] == kinds
                assert events[-1].response.error.message == "boom"
                assert events[-1].sequence_number == 1
        assert {record.outcome for record in served.store.records} == {"failed"}
        assert {record.error_code for record in served.store.records} <= {
            "STREAM_ERROR",
            "UPSTREAM_ERROR_BODY",
        }
        assert len(stub.heads) == 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_fallback_is_asked_before_a_failed_response_is_shown(
    stream: bool, tmp_path: Path
) -> None:
    """What may pass elsewhere is tried there; the last failed response goes on as it came."""
    event = {"type": "response.failed", "response": LIMITED, "sequence_number": 0}
    answer = stream_of(event) if stream else [reply(LIMITED)]
    async with serve_stub(answer) as first, serve_stub(answer) as second:
        text = "".join(
            f'[upstreams.{name}]\nurl = "{stub.url}"\nprotocol = "responses"\nprobe = "off"\n'
            for name, stub in (("a", first), ("b", second))
        )
        text += '[routes.r]\ntargets = [{upstream = "a", model = "x"}]\n'
        text += 'fallbacks = [{upstream = "b", model = "y"}]\n'
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            asked = {"model": "r", "input": "x", "stream": stream}
            got = await ask(served, "POST", "/v1/responses", asked)
            assert got.status == 200
            assert b'"rate_limit_exceeded"' in got.body
            assert (len(first.heads), len(second.heads)) == (1, 1)
            assert (served.last.upstream, served.last.error_code) == ("b", "RATE_LIMIT")
            if not stream:
                assert got.json == LIMITED


async def test_a_blocked_prompt_says_why(tmp_path: Path) -> None:
    """Google's client finds the reason, whole and streamed."""
    async with serve(tmp_path, "gemini", [reply(BLOCKED)], stream_of(BLOCKED)) as (served, _):
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=served.url))
        try:
            made = await client.aio.models.generate_content(model="m", contents="hi")
            stream = await client.aio.models.generate_content_stream(model="m", contents="hi")
            found = [made, *[part async for part in stream]]
        finally:
            await client.aio.aclose()
        assert len(found) == 2
        for part in found:
            assert part.prompt_feedback is not None
            assert part.prompt_feedback.block_reason == types.BlockedReason.SAFETY
        codes = [(record.error_code, record.prompt_tokens) for record in served.store.records]
        assert codes == [("PROMPT_BLOCKED", 5), ("PROMPT_BLOCKED", 5)]


async def test_a_blocked_prompt_of_several_replies_is_an_event(tmp_path: Path) -> None:
    """Who asks for a stream of several replies gets one, though they are asked for whole."""
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "look"}]}],
        "generationConfig": {"candidateCount": 2},
    }
    async with serve(tmp_path, "gemini", [reply(BLOCKED)]) as (served, _):
        path = "/v1beta/models/m:streamGenerateContent?alt=sse"
        got = await ask(served, "POST", path, asked)
        assert got.headers["content-type"].startswith("text/event-stream")
        assert json.loads(got.body.removeprefix(b"data: ")) == BLOCKED
        assert (served.last.outcome, served.last.error_code) == ("failed", "PROMPT_BLOCKED")


async def test_googles_error_in_a_stream_keeps_its_status(tmp_path: Path) -> None:
    """Before the first text it is the status of the answer, behind it that of the event."""
    parts = {"role": "model", "parts": [{"text": "Hello"}]}
    text = {"candidates": [{"content": parts, "index": 0}]}
    answers = stream_of(UNAVAILABLE), stream_of(text, UNAVAILABLE)
    async with serve(tmp_path, "gemini", *answers) as (served, _):
        client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=served.url))

        async def read() -> None:
            async for _ in await client.aio.models.generate_content_stream(
                model="m", contents="hi"
            ):
                pass

        try:
            for _ in range(2):
                with pytest.raises(errors.ServerError) as caught:
                    await read()
                assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")
                assert caught.value.message == "The model is busy"
        finally:
            await client.aio.aclose()


async def test_anthropics_error_in_a_stream_keeps_its_words(tmp_path: Path) -> None:
    """An error behind the first event is raised with the provider's own type and message."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"type": "message_start", "message": {**message, "usage": usage}}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with serve(tmp_path, "messages", stream_of(start, error)) as (served, _):
        async with anthropic.AsyncAnthropic(base_url=served.url, api_key=KEY) as client:
            asked: Any = {"role": "user", "content": "hi"}
            stream = await client.messages.create(
                model="m", max_tokens=9, messages=[asked], stream=True
            )
            with pytest.raises(anthropic.APIStatusError) as caught:
                [event async for event in stream]
        assert caught.value.body == error
        assert served.last.error_code == "OVERLOADED"
