"""Bodies piece by piece: as they arrive, no faster than they are taken, and never for ever."""

import asyncio
import gzip
import os

import pytest

from support.upstream import (
    CLOSE,
    FaultyUpstream,
    Pause,
    Received,
    Repeat,
    Script,
    chunked,
    gzipped,
    http_response,
)
from surecall.base.errors import Code, ProviderError
from surecall.models.client import Answer, ClientLimits, Origin
from surecall.models.transport import Deadlines

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GZIP_HEAD = HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n"
MIB = 1024 * 1024


async def open_answer(upstream: FaultyUpstream, **options: object):
    """Send a request and return the origin and its answer."""
    origin = Origin(upstream.url, limits=ClientLimits(**options))  # pyright: ignore
    return origin, await origin.send("POST", "/v1/x", [], b"{}")


async def test_pieces_come_as_they_arrive() -> None:
    """Each is handed on at once, and chunks that came together come as one."""
    script: Script = [
        HEAD,
        chunked(b"a", end=False),
        Pause(0.02),
        chunked(b"b", b"c", end=False),
        Pause(0.02),
        chunked(b"d"),
    ]
    pieces: list[bytes] = []
    async with FaultyUpstream([script]) as upstream:
        origin, answer = await open_answer(upstream)
        await answer.pipe(pieces.append)
        assert origin.idle_count == 1
        await origin.close()
    assert pieces == [b"a", b"bc", b"d"]


async def test_what_came_before_a_cut_is_delivered() -> None:
    """Then the cut is raised, also if it happened before anybody read."""
    for wait_s in (0, 0.03):
        async with FaultyUpstream([[HEAD, chunked(b"abc", end=False), CLOSE]]) as upstream:
            origin, answer = await open_answer(upstream)
            await asyncio.sleep(wait_s)
            pieces: list[bytes] = []
            with pytest.raises(ProviderError) as caught:
                await answer.pipe(pieces.append)
            await origin.close()
        assert b"".join(pieces) == b"abc"
        assert (caught.value.code, caught.value.status) == (Code.UPSTREAM_TRUNCATED_BODY, 200)


async def test_a_paused_stream_stops_the_socket() -> None:
    """Nothing is handed on while it is paused, little is read ahead, and all comes afterwards."""
    block = chunked(b"x" * 65_536, end=False)
    received = 0
    async with FaultyUpstream([[HEAD, Repeat(block, 512), b"0\r\n\r\n"]]) as upstream:
        origin, answer = await open_answer(upstream)

        def feed(piece: bytes) -> None:
            nonlocal received
            if received == 0:
                answer.pause()
            received += len(piece)

        task = asyncio.ensure_future(answer.pipe(feed))
        await asyncio.sleep(0.03)
        first = received
        assert 0 < first <= 2 * MIB
        await asyncio.sleep(0.03)
        assert received == first
        assert not answer.is_complete
        answer.resume()
        await task
        await origin.close()
    assert received == 512 * 65_536


async def test_a_body_that_nobody_reads_is_not_taken_off_the_wire() -> None:
    """Only so much is held, however much is sent; the total deadline frees the connection."""
    async with FaultyUpstream([[b"HTTP/1.1 200 OK\r\n\r\n", Repeat(b"x" * 65_536)]]) as upstream:
        origin = Origin(upstream.url)
        deadlines = Deadlines(total_s=0.1, idle_s=0.05)
        answer = await origin.send("POST", "/", [], b"{}", deadlines=deadlines)
        await asyncio.sleep(0.07)
        assert answer._unread_bytes <= MIB  # pyright: ignore[reportPrivateUsage]
        await upstream.wait_departure()
        with pytest.raises(ProviderError) as caught:
            await answer.read()
        assert origin.open_count == 0
        await origin.close()
    assert caught.value.code == Code.TOTAL_TIMEOUT


async def test_a_pause_is_not_counted_as_silence() -> None:
    """The idle deadline stops with the reader and begins anew with it."""
    script: Script = [HEAD, chunked(b"a", end=False), Pause(0.15), chunked(b"b")]
    async with FaultyUpstream([script]) as upstream:
        origin = Origin(upstream.url)
        answer = await origin.send("POST", "/", [], b"{}", deadlines=Deadlines(idle_s=0.08))
        pieces: list[bytes] = []
        task = asyncio.ensure_future(answer.pipe(pieces.append))
        await asyncio.sleep(0.01)
        answer.pause()
        await asyncio.sleep(0.1)
        answer.resume()
        await task
        await origin.close()
    assert pieces == [b"a", b"b"]


async def test_what_a_reader_raises_ends_the_answer() -> None:
    """It is raised where the pipe is awaited, and the socket is closed."""

    def feed(piece: bytes) -> None:
        raise ValueError("no more")

    async with FaultyUpstream([[HEAD, Repeat(chunked(b"x" * 65_536, end=False))]]) as upstream:
        origin, answer = await open_answer(upstream)
        with pytest.raises(ValueError, match="no more"):
            await answer.pipe(feed)
        await upstream.wait_departure()
        assert origin.open_count == 0
        await origin.close()


async def test_an_answer_can_be_given_up() -> None:
    """From within the reader or from elsewhere; whoever waits is told."""
    for from_within in (True, False):
        async with FaultyUpstream([[HEAD, Repeat(chunked(b"x" * 65_536, end=False))]]) as upstream:
            origin, answer = await open_answer(upstream)

            def feed(piece: bytes, answer: Answer | None = answer if from_within else None) -> None:
                if answer is not None:
                    answer.abort()

            if not from_within:
                asyncio.get_running_loop().call_later(0.02, answer.abort)
            with pytest.raises(ProviderError, match="given up"):
                await answer.pipe(feed)
            await upstream.wait_departure()
            await origin.close()


async def test_a_body_is_read_once() -> None:
    """A second reader would get nothing, so it is refused."""
    async with FaultyUpstream([[http_response(b"{}")]]) as upstream:
        origin, answer = await open_answer(upstream)
        assert await answer.read() == b"{}"
        with pytest.raises(RuntimeError, match="once"):
            await answer.read()
        await origin.close()


async def test_headers_are_in_lower_case_and_in_order() -> None:
    """One that came twice is there twice."""
    head = b"HTTP/1.1 200 OK\r\nX-B: 1\r\nX-A: \xe9\r\nx-b: 2\r\nContent-Length: 0\r\n\r\n"
    async with FaultyUpstream([[head]]) as upstream:
        origin, answer = await open_answer(upstream)
        await origin.close()
    assert answer.headers == [("x-b", "1"), ("x-a", "é"), ("x-b", "2"), ("content-length", "0")]
    assert answer.raw_headers[1] == (b"x-a", b"\xe9")


@pytest.mark.parametrize("size", [0, 1, 70_000, 3 * MIB])
async def test_compressed_streams_are_handed_on_decompressed(size: int) -> None:
    """However large the pieces are."""
    data = os.urandom(size // 2) + b"a" * (size - size // 2)
    packed = gzipped(data)
    parts = [packed[at : at + 50_000] for at in range(0, len(packed), 50_000)]
    async with FaultyUpstream([[GZIP_HEAD, chunked(*parts)]]) as upstream:
        origin, answer = await open_answer(upstream)
        found = bytearray()
        await answer.pipe(found.extend)
        assert origin.idle_count == 1
        await origin.close()
    assert bytes(found) == data


async def test_decompression_lets_others_run() -> None:
    """A small body that expands to many megabytes does not stop the loop."""
    data = b"".join(os.urandom(64) + b"a" * 3000 for _ in range(8000))  # 24 MB in about 0.6
    async with FaultyUpstream([[GZIP_HEAD, chunked(gzip.compress(data, 1))]]) as upstream:
        origin, answer = await open_answer(upstream)
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        ticking = asyncio.ensure_future(tick())
        await asyncio.sleep(0)
        body = await answer.read()
        ticking.cancel()
        await origin.close()
    assert len(body) == len(data)
    assert turns > 9, turns


async def test_a_paused_compressed_stream_waits() -> None:
    """What was read ahead is not decompressed before it is wanted."""
    data = bytes(2 * MIB)
    received = 0
    async with FaultyUpstream([[GZIP_HEAD, chunked(gzipped(data))]]) as upstream:
        origin, answer = await open_answer(upstream, max_ratio=10_000)

        def feed(piece: bytes) -> None:
            nonlocal received
            received += len(piece)
            answer.pause()

        task = asyncio.ensure_future(answer.pipe(feed))
        stops = 0
        while not task.done():
            await asyncio.sleep(0.002)
            before = received
            await asyncio.sleep(0.002)
            assert received == before
            stops += 1
            answer.resume()
        await task
        await origin.close()
    assert received == len(data)
    assert stops >= 8


async def test_nothing_is_handed_on_after_the_end() -> None:
    """Neither what is still being decompressed, nor what came before anybody read."""
    script: Script = [GZIP_HEAD, chunked(gzipped(bytes(16 * MIB)))]
    async with FaultyUpstream([script, [http_response(b"{}")]]) as upstream:
        origin, answer = await open_answer(upstream, max_ratio=10_000)
        pieces: list[bytes] = []
        task = asyncio.ensure_future(answer.pipe(pieces.append))
        while not pieces:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        count = len(pieces)
        await asyncio.sleep(0.01)
        assert 0 < count == len(pieces) < 64
        answer = await origin.send("POST", "/", [], b"{}")
        answer.abort()
        with pytest.raises(ProviderError, match="given up"):
            await answer.pipe(pieces.append)
        assert len(pieces) == count
        await origin.close()


async def test_many_streams_at_once() -> None:
    """None of them gets a byte of another."""

    def script(sent: Received) -> Script:
        mark = sent.head.split()[1][1:].encode()
        return [HEAD, *[chunked(mark, end=False), Pause(0.001)] * 5, b"0\r\n\r\n"]

    async with FaultyUpstream(script) as upstream:
        origin = Origin(upstream.url)

        async def one(number: int) -> None:
            answer = await origin.send("POST", f"/{number}", [], b"{}")
            found = bytearray()
            await answer.pipe(found.extend)
            assert bytes(found) == str(number).encode() * 5

        for _ in range(2):
            await asyncio.gather(*(one(number) for number in range(100)))
        await origin.close()
    assert upstream.connections == 100
