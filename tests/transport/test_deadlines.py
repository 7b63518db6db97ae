"""Deadlines of one attempt, each with its own code, none of them tried again."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from support.upstream import (
    HANG,
    Drip,
    FaultyUpstream,
    Pause,
    Repeat,
    Script,
    completion_bytes,
    http_response,
    reply,
    sse_head,
)
from surecall.base.errors import Code, ProviderTimeoutError
from surecall.base.records import WireRequest
from surecall.models.transport import Deadlines, HttpTransport

HALF = http_response(b"x" * 10, headers={"content-length": "9999"})


@dataclass(frozen=True)
class Case:
    """An upstream that takes too long, and the deadline that must end it."""

    id: str
    script: Script
    code: Code


CASES = [
    Case("A10 no answer", [HANG], Code.FIRST_BYTE_TIMEOUT),
    Case("A10 headers byte by byte", [Drip(reply())], Code.FIRST_BYTE_TIMEOUT),
    Case("silence inside the body", [HALF, HANG], Code.IDLE_TIMEOUT),
    Case("A11 body byte by byte", [HALF, Drip(b"x" * 9999)], Code.TOTAL_TIMEOUT),
    Case(
        "A11 nothing but comments",
        [sse_head(), Drip(b"5\r\n: hi\n\r\n" * 999, size=10)],
        Code.TOTAL_TIMEOUT,
    ),
]


async def read_stream(transport: HttpTransport, request: WireRequest) -> bytes:
    """Return all bytes of a streamed answer."""
    async with transport.stream(request) as stream:
        return b"".join([chunk async for chunk in stream])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_deadline_ends_the_wait_with_its_own_code(
    case: Case, streamed: bool, request_of_chat: WireRequest, short: Deadlines
) -> None:
    """The upstream sees one call, and that its client left."""
    async with (
        FaultyUpstream([case.script]) as upstream,
        HttpTransport(upstream.url, deadlines=short) as transport,
    ):
        work = read_stream if streamed else HttpTransport.send
        with pytest.raises(ProviderTimeoutError) as caught:
            await work(transport, request_of_chat)
        await upstream.wait_departure()
    assert caught.value.code == case.code
    assert upstream.calls == caught.value.attempts == 1
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr] - in a task


async def test_a_slow_but_steady_answer_is_no_fault(request_of_chat: WireRequest) -> None:
    """Only silence counts against the idle deadline."""
    body = completion_bytes("hi")
    script = [http_response(b"", headers={"content-length": str(len(body))}), Drip(body, 40)]
    deadlines = Deadlines(idle_s=0.5, first_byte_s=0.5)
    async with (
        FaultyUpstream([script]) as upstream,
        HttpTransport(upstream.url, deadlines=deadlines) as transport,
    ):
        assert (await transport.send(request_of_chat)).body == body


async def test_the_time_a_reader_takes_is_not_the_providers(request_of_chat: WireRequest) -> None:
    """A slow consumer of a stream does not run into the idle deadline."""
    script = [sse_head(), b"3\r\nabc\r\n", Pause(0.02), b"3\r\ndef\r\n0\r\n\r\n"]
    async with (
        FaultyUpstream([script]) as upstream,
        HttpTransport(upstream.url, deadlines=Deadlines(idle_s=0.25)) as transport,
        transport.stream(request_of_chat) as stream,
    ):
        found: list[bytes] = []
        async for chunk in stream:
            found.append(chunk)
            await asyncio.sleep(0.3)
    assert b"".join(found) == b"abcdef"


async def test_a_stream_may_not_outlive_the_total_deadline(request_of_chat: WireRequest) -> None:
    """The total also counts what the reader takes, once it waits again."""
    script = [sse_head(), b"3\r\nabc\r\n", HANG]
    async with (
        FaultyUpstream([script]) as upstream,
        HttpTransport(upstream.url, deadlines=Deadlines(total_s=0.3)) as transport,
        transport.stream(request_of_chat) as stream,
    ):
        chunks = aiter(stream)
        assert await anext(chunks) == b"abc"
        await asyncio.sleep(0.35)
        with pytest.raises(ProviderTimeoutError) as caught:
            await anext(chunks)
    assert caught.value.code == Code.TOTAL_TIMEOUT


async def test_a_request_the_provider_does_not_read_is_given_up(short: Deadlines) -> None:
    """An upload that makes no progress counts as no answer."""
    request = WireRequest(path="/c", body={"text": "x" * 20_000_000})
    async with (
        FaultyUpstream([], greeting=[Pause(30)]) as upstream,
        HttpTransport(upstream.url, deadlines=short) as transport,
    ):
        with pytest.raises(ProviderTimeoutError) as caught:
            await transport.send(request)
    assert caught.value.code == Code.FIRST_BYTE_TIMEOUT


async def test_an_error_answer_that_never_ends_is_still_told(
    request_of_chat: WireRequest, short: Deadlines
) -> None:
    """The status is known; its body is not waited for beyond the deadline."""
    script = [http_response(b'{"error": "no"', 400, {"content-length": "99"}), HANG]
    async with (
        FaultyUpstream([script]) as upstream,
        HttpTransport(upstream.url, deadlines=short) as transport,
    ):
        with pytest.raises(Exception, match="BAD_REQUEST"):
            await transport.send(request_of_chat)
    assert upstream.calls == 1


@contextmanager
def black_holes(*hosts: str) -> Iterator[int]:
    """Give a port on which these addresses never accept a connection."""
    with ExitStack() as stack:
        port = 0
        for host in hosts:
            listener = stack.enter_context(socket.socket())
            listener.bind((host, port))
            listener.listen(0)
            port = listener.getsockname()[1]
            for _ in range(4):  # fills the queue of the listener
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex((host, port))
        yield port


async def test_a22_a_host_that_swallows_connections(request_of_chat: WireRequest) -> None:
    """The connect deadline ends it, and it is not tried again."""
    with black_holes("127.0.0.1") as port:
        async with HttpTransport(
            f"http://127.0.0.1:{port}", deadlines=Deadlines(connect_s=0.15)
        ) as transport:
            with pytest.raises(ProviderTimeoutError) as caught:
                await transport.send(request_of_chat)
    assert (caught.value.code, caught.value.attempts) == (Code.CONNECT_TIMEOUT, 1)
    assert "0.15 s" in str(caught.value)


async def test_a22_one_deadline_covers_all_addresses(
    request_of_chat: WireRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many addresses a name has, they share the deadline."""
    hosts = [f"127.0.0.{n}" for n in range(1, 9)]
    with black_holes(*hosts) as port:

        async def resolve(*_: object, **__: object) -> list[object]:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
            return [(*kind, (host, port)) for host in hosts]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        async with (
            asyncio.timeout(2),
            HttpTransport(
                f"http://many.invalid:{port}", deadlines=Deadlines(connect_s=0.4)
            ) as transport,
        ):
            with pytest.raises(ProviderTimeoutError) as caught:
                await transport.send(request_of_chat)
    assert caught.value.code == Code.CONNECT_TIMEOUT


async def test_a_cancellation_from_outside_is_not_taken_for_a_deadline(
    request_of_chat: WireRequest,
) -> None:
    """The caller's own timeout stays the caller's."""
    async with FaultyUpstream([HANG]) as upstream, HttpTransport(upstream.url) as transport:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.05):
                await transport.send(request_of_chat)
        await upstream.wait_departure()
    assert type(caught.value) is TimeoutError


async def test_an_endless_stream_meets_the_total_deadline_too(request_of_chat: WireRequest) -> None:
    """A provider that never pauses is stopped as well."""
    async with (
        FaultyUpstream([[sse_head(), Repeat(b"5\r\nhello\r\n")]]) as upstream,
        HttpTransport(upstream.url, deadlines=Deadlines(total_s=0.2)) as transport,
    ):
        with pytest.raises(ProviderTimeoutError) as caught:
            await read_stream(transport, request_of_chat)
        await upstream.wait_departure()
    assert caught.value.code == Code.TOTAL_TIMEOUT
