"""What every transport promises, whatever is behind it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from support.upstream import FaultyUpstream, Pause, Received, Script, http_response
from surecall.base.errors import Code, ProviderError, ProviderStatusError
from surecall.base.records import WireRequest
from surecall.models.transport import (
    HttpTransport,
    RetryPolicy,
    ScriptedReply,
    ScriptedTransport,
    Transport,
)

BODY = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}]}'
REQUEST = WireRequest(path="/chat/completions", body={"model": "m", "messages": []})


@dataclass(frozen=True)
class Answer:
    """One answer, for any transport."""

    body: bytes = BODY
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    delay_s: float = 0.0


@dataclass
class Setting:
    """A transport with its answers, and a count of the requests that arrived."""

    transport: Transport
    count: Callable[[], int]


@asynccontextmanager
async def over_http(answers: list[Answer]) -> AsyncIterator[Setting]:
    """Give the answers over a socket."""

    def script(_: Received) -> Script:
        answer = answers[min(upstream.calls, len(answers)) - 1]
        data = http_response(answer.body, answer.status, answer.headers)
        return [Pause(answer.delay_s), data]

    upstream = FaultyUpstream(script)
    async with upstream:
        transport = HttpTransport(upstream.url, retry=RetryPolicy(max_retries=0))
        yield Setting(transport, lambda: upstream.calls)
        await transport.aclose()


@asynccontextmanager
async def from_script(answers: list[Answer]) -> AsyncIterator[Setting]:
    """Give the answers from a script."""
    transport = ScriptedTransport(
        [
            ScriptedReply(
                body=answer.body,
                status=answer.status,
                headers=answer.headers,
                delay_s=answer.delay_s,
            )
            for answer in answers
        ],
        chunk_bytes=7,
    )
    yield Setting(transport, lambda: len(transport.requests))
    await transport.aclose()


Opener = Callable[[list[Answer]], AbstractAsyncContextManager[Setting]]


@pytest.fixture(params=[over_http, from_script], ids=["http", "scripted"])
def opened(request: pytest.FixtureRequest) -> Opener:
    """Open one kind of transport with its answers."""
    return request.param


async def read(transport: Transport) -> bytes:
    """Return all bytes of a streamed answer."""
    async with transport.stream(REQUEST) as stream:
        return b"".join([chunk async for chunk in stream])


async def test_a_whole_answer(opened: Opener) -> None:
    """Status, headers with lower-case names and the body come back."""
    async with opened([Answer(headers={"X-Request-Id": "req_1"})]) as setting:
        answer = await setting.transport.send(REQUEST)
        assert setting.count() == 1
    assert (answer.status, answer.body, answer.attempts) == (200, BODY, 1)
    assert answer.headers["x-request-id"] == "req_1"
    assert answer.headers["content-type"] == "application/json"
    assert answer.elapsed_ms >= 0


async def test_a_streamed_answer(opened: Opener) -> None:
    """The pieces of a stream are the body, in order."""
    events = b'data: {"n": 1}\n\ndata: [DONE]\n\n'
    async with opened([Answer(events, headers={"X-A": "b"})]) as setting:
        async with setting.transport.stream(REQUEST) as stream:
            assert (stream.status, stream.attempts, stream.headers["x-a"]) == (200, 1, "b")
            chunks = [chunk async for chunk in stream]
        assert setting.count() == 1
    assert b"".join(chunks) == events
    assert all(chunks)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_error_status_is_raised(opened: Opener, streamed: bool) -> None:
    """The provider's own code, message, wish and headers are in the error."""
    body = json.dumps({"error": {"message": "slow down", "code": "busy"}}).encode()
    headers = {"Retry-After": "9", "X-Request-Id": "req_2", "Server": "x"}
    async with opened([Answer(body, 429, headers)]) as setting:
        work = read(setting.transport) if streamed else setting.transport.send(REQUEST)
        with pytest.raises(ProviderStatusError) as caught:
            await work
    error = caught.value
    assert (error.code, error.status, error.retryable) == (Code.RATE_LIMIT, 429, True)
    assert (error.provider_code, error.provider_message) == ("busy", "slow down")
    assert (error.retry_after_s, error.request_id) == (9.0, "req_2")
    assert error.headers["retry-after"] == "9"
    assert "server" not in error.headers


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(b""), Code.UPSTREAM_EMPTY, id="empty"),
        pytest.param(Answer(b"<html>"), Code.UPSTREAM_HTML, id="page"),
        pytest.param(Answer(b"", 302), Code.UPSTREAM_REDIRECT, id="redirect"),
        pytest.param(Answer(b"<html>", 502), Code.UPSTREAM_HTML, id="page with 502"),
    ],
)
async def test_what_is_no_reply_is_refused(opened: Opener, answer: Answer, code: Code) -> None:
    """A page, nothing, or a redirect never passes for an answer."""
    async with opened([answer]) as setting:
        with pytest.raises(ProviderError) as caught:
            await setting.transport.send(REQUEST)
    assert (caught.value.code, caught.value.status) == (code, answer.status)


async def test_a_stream_may_be_left_early(opened: Opener) -> None:
    """The transport answers the next request as if nothing had happened."""
    async with opened([Answer(BODY * 500), Answer()]) as setting:
        async with setting.transport.stream(REQUEST) as stream:
            async for _ in stream:
                break
        assert (await setting.transport.send(REQUEST)).body == BODY
        assert setting.count() == 2


async def test_errors_of_the_reader_pass_through(opened: Opener) -> None:
    """An exception inside the context is not touched."""
    async with opened([Answer()]) as setting:
        with pytest.raises(KeyError, match="mine"):
            async with setting.transport.stream(REQUEST):
                raise KeyError("mine")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_waiting_can_be_cancelled(opened: Opener, streamed: bool) -> None:
    """A cancelled request ends at once, and the next one is answered."""
    async with opened([Answer(delay_s=5), Answer()]) as setting:
        work = read(setting.transport) if streamed else setting.transport.send(REQUEST)
        task = asyncio.ensure_future(work)
        while not setting.count():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await read(setting.transport) == BODY


async def test_requests_may_overlap(opened: Opener) -> None:
    """Several requests at once get one answer each."""
    async with opened([Answer()] * 5) as setting:
        answers = await asyncio.gather(*(setting.transport.send(REQUEST) for _ in range(5)))
        assert setting.count() == 5
    assert [answer.body for answer in answers] == [BODY] * 5


async def test_closing_twice_is_no_error(opened: Opener) -> None:
    """Closing is safe at any time."""
    async with opened([Answer()]) as setting:
        await setting.transport.aclose()
        await setting.transport.send(REQUEST)
        await setting.transport.aclose()
        await setting.transport.aclose()
