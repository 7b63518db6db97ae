"""Streamed answers over HTTP."""

import asyncio
import gzip
import resource
import tracemalloc
from collections.abc import AsyncIterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.upstream import (
    CLOSE,
    HANG,
    RESET,
    FaultyUpstream,
    Pause,
    Repeat,
    Script,
    chunked,
    completion_bytes,
    gzip_bomb,
    http_response,
    reply,
    sse_bytes,
    sse_head,
    sse_response,
)
from surecall.base.errors import Code, ProviderError
from surecall.base.records import WireRequest
from surecall.models.transport import HttpTransport, RetryPolicy, WireLimits

MIB = 1024 * 1024
EVENTS = [{"n": 1}, {"n": 2}]


async def read(transport: HttpTransport, request: WireRequest) -> tuple[bytes, str]:
    """Return what a stream gave, and the code it ended with."""
    found: list[bytes] = []
    try:
        async with transport.stream(request) as stream:
            async for chunk in stream:
                found.append(chunk)  # noqa: PERF401 - kept when the stream breaks
    except ProviderError as error:
        return b"".join(found), error.code
    return b"".join(found), ""


async def test_a_stream_arrives_as_it_is_sent(request_of_chat: WireRequest) -> None:
    """Each piece is there before the next one is sent."""
    async with (
        FaultyUpstream(
            [[sse_head(), b"3\r\nabc\r\n", Pause(0.02), b"3\r\ndef\r\n0\r\n\r\n"]]
        ) as up,
        HttpTransport(up.url) as transport,
        transport.stream(request_of_chat) as stream,
    ):
        assert (stream.status, stream.attempts) == (200, 1)
        assert stream.headers["content-type"] == "text/event-stream"
        chunks = aiter(stream)
        assert await anext(chunks) == b"abc"
        assert await anext(chunks) == b"def"
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)
        with pytest.raises(StopAsyncIteration):
            await anext(chunks)


async def test_a_stream_that_was_read_to_its_end_leaves_the_connection_usable(
    request_of_chat: WireRequest,
) -> None:
    """Stream after stream goes over one connection."""
    async with (
        FaultyUpstream([sse_response(EVENTS)]) as upstream,
        HttpTransport(upstream.url) as transport,
    ):
        for _ in range(3):
            assert await read(transport, request_of_chat) == (sse_bytes(EVENTS), "")
    assert upstream.connections == 1


async def test_leaving_a_stream_early_closes_the_connection(request_of_chat: WireRequest) -> None:
    """The provider notices that nobody listens any more."""
    async with (
        FaultyUpstream([[sse_head(), chunked(b"abc", end=False), HANG], [reply()]]) as upstream,
        HttpTransport(upstream.url) as transport,
    ):
        async with transport.stream(request_of_chat) as stream:
            await anext(aiter(stream))
        await upstream.wait_departure()
        await transport.send(request_of_chat)
    assert [sent.connection for sent in upstream.requests] == [1, 2]


async def test_cancelling_a_reader_closes_the_connection(request_of_chat: WireRequest) -> None:
    """A task that is cancelled in the middle of a stream leaves nothing open."""
    async with (
        FaultyUpstream([[sse_head(), HANG]]) as upstream,
        HttpTransport(upstream.url) as transport,
    ):
        task = asyncio.create_task(read(transport, request_of_chat))
        while not upstream.calls:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await upstream.wait_departure()


@dataclass(frozen=True)
class Case:
    """What the upstream does, and what a reader must get."""

    id: str
    script: Script
    code: str
    found: bytes = b""
    calls: int = 1
    limits: WireLimits = field(default_factory=WireLimits)


def head(**headers: str | None) -> bytes:
    """Return the head of a stream that ends with its connection."""
    named: dict[str, Any] = {"content-type": "text/event-stream", "content-length": None}
    return http_response(headers=named | {k.replace("_", "-"): v for k, v in headers.items()})


PART = b'data: {"n": 1}\n\n'
CASES = [
    Case("A1 clean end without a finish", [head(), PART, CLOSE], "", PART),
    Case("A1 clean end of chunks", [sse_head(), chunked(PART)], "", PART),
    Case("A2 cut inside an event", [head(), PART[:7], CLOSE], "", PART[:7]),
    Case(
        "A3 reset",
        [sse_head(), chunked(PART, end=False), Pause(0.03), RESET],
        Code.CONNECTION_RESET,
        PART,
    ),
    Case(
        "A3 reset without a length",
        [head(), PART, Pause(0.03), RESET],
        Code.CONNECTION_RESET,
        PART,
    ),
    Case(
        "A9 chunks without an end",
        [sse_head(), chunked(PART, end=False), Pause(0.03), CLOSE],
        Code.UPSTREAM_TRUNCATED_BODY,
        PART,
    ),
    Case(
        "A9 shorter than its length",
        [head(content_length="999"), PART, Pause(0.03), CLOSE],
        Code.UPSTREAM_TRUNCATED_BODY,
        PART,
    ),
    Case(
        "A9 bad chunk later",
        [sse_head(), chunked(PART, end=False), Pause(0.03), b"zz\r\n"],
        Code.UPSTREAM_BAD_FRAMING,
        PART,
    ),
    Case("A7 page with 502", [http_response(b"<html>", 502)], Code.UPSTREAM_HTML, calls=2),
    Case(
        "A8 page with 200",
        [http_response(b"<html>", headers={"content-type": "text/html"})],
        Code.UPSTREAM_HTML,
    ),
    Case("429", [http_response(b"{}", 429)], Code.RATE_LIMIT, calls=2),
    Case("reset at once", [RESET], Code.CONNECTION_RESET, calls=2),
    Case("A16 brotli", [head(content_encoding="br"), b"x", CLOSE], Code.UPSTREAM_ENCODING),
    Case(
        "A16 gzip",
        [head(content_encoding="gzip"), gzip.compress(PART), CLOSE],
        "",
        PART,
    ),
    Case(
        "A16 cut gzip",
        [head(content_encoding="gzip"), gzip.compress(PART)[:-4], CLOSE],
        Code.UPSTREAM_TRUNCATED_BODY,
        PART,
    ),
    Case(
        "A17 larger than allowed",
        [head(), PART, Pause(0.02), PART, CLOSE],
        Code.STREAM_TOO_LARGE,
        PART,
        limits=WireLimits(max_stream_bytes=20),
    ),
    Case(
        "a whole body instead of a stream",
        [http_response(completion_bytes("hi"))],
        "",
        completion_bytes("hi"),
    ),
    Case("empty", [http_response(b"")], ""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_how_a_stream_ends(
    case: Case, request_of_chat: WireRequest, quick: RetryPolicy
) -> None:
    """What arrived is given, then the one right code; no retry after the first byte."""
    async with (
        FaultyUpstream([case.script]) as upstream,
        HttpTransport(upstream.url, retry=quick, limits=case.limits) as transport,
    ):
        assert await read(transport, request_of_chat) == (case.found, case.code)
    assert upstream.calls == case.calls


async def test_a_stream_counts_the_attempts_it_took(
    request_of_chat: WireRequest, quick: RetryPolicy
) -> None:
    """A failure before the first byte is tried again."""
    async with (
        FaultyUpstream([RESET, sse_response(EVENTS)]) as upstream,
        HttpTransport(upstream.url, retry=quick) as transport,
        transport.stream(request_of_chat) as stream,
    ):
        assert stream.attempts == upstream.calls == 2


async def test_a17_an_endless_stream_is_cut_in_flat_memory(request_of_chat: WireRequest) -> None:
    """Sixty kilobytes at a time for ever end at the limit."""
    event = chunked(b"data: " + b"x" * 60_000 + b"\n\n", end=False)
    total = 0

    async def drain(chunks: AsyncIterable[bytes]) -> None:
        nonlocal total
        async for chunk in chunks:
            total += len(chunk)

    async with (
        FaultyUpstream([[sse_head(), Repeat(event)]]) as upstream,
        HttpTransport(upstream.url, limits=WireLimits(max_stream_bytes=20 * MIB)) as transport,
        transport.stream(request_of_chat) as stream,
    ):
        tracemalloc.start()
        with pytest.raises(ProviderError) as caught:
            await drain(stream)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await upstream.wait_departure()
    assert caught.value.code == Code.STREAM_TOO_LARGE
    assert 19 * MIB < total <= 20 * MIB
    assert peak < 4 * MIB


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a16_a_gzip_bomb_costs_little_memory(
    streamed: bool, request_of_chat: WireRequest
) -> None:
    """A megabyte that would be a gigabyte is refused within 64 MB."""
    bomb = http_response(gzip_bomb(1024 * MIB), headers={"content-encoding": "gzip"})
    async with FaultyUpstream([bomb]) as upstream, HttpTransport(upstream.url) as transport:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if streamed:
            found, code = await read(transport, request_of_chat)
            assert len(found) < 8 * MIB
            assert code == Code.STREAM_TOO_LARGE
        else:
            with pytest.raises(ProviderError) as caught:
                await transport.send(request_of_chat)
            assert caught.value.code == Code.UPSTREAM_TOO_LARGE
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 <= 64 * MIB
    assert upstream.calls == 1
