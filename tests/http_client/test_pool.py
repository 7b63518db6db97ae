"""Connections: which are used again, what is sent twice, and how many there are."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from support.upstream import CLOSE, HANG, RESET, FaultyUpstream, Pause, Script, http_response
from surecall.base.errors import Code, ConfigError, ProviderError, SurecallError
from surecall.models.client import ClientLimits, Origin, pool
from surecall.models.transport import Deadlines

OK = http_response(b"{}")
SHORT = Deadlines(connect_s=2, first_byte_s=0.2, idle_s=0.2, total_s=2)


async def ask(origin: Origin, path: str = "/v1/x", deadlines: Deadlines = SHORT) -> bytes:
    """Send a small request and read its answer."""
    answer = await origin.send(
        "POST", path, [("content-type", "application/json")], b"{}", deadlines=deadlines
    )
    return await answer.read()


async def settle(done: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    for _ in range(10_000):
        if done():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to pass")


async def test_the_latest_connection_is_used_first() -> None:
    """Two at once make two connections; later single requests share the one used last."""
    scripts: list[Script] = [[Pause(0.03), OK], [OK]]
    async with FaultyUpstream(scripts) as upstream:
        origin = Origin(upstream.url)
        await asyncio.gather(ask(origin), ask(origin))
        assert (origin.open_count, origin.idle_count) == (2, 2)
        for _ in range(3):
            await ask(origin)
        await origin.close()
    first, second, *rest = [sent.connection for sent in upstream.requests]
    assert {first, second} == {1, 2}
    assert rest == [1, 1, 1]  # the slower one came back last


@pytest.mark.parametrize("ending", [CLOSE, RESET], ids=["closed", "reset"])
async def test_a_stale_connection_is_replaced_once(ending: object) -> None:
    """Closed before a byte of the answer, after it was idle: sent again on a new connection."""
    async with FaultyUpstream([[OK], [ending], [OK]]) as upstream:  # pyright: ignore
        origin = Origin(upstream.url)
        await ask(origin)
        answer = await origin.send("POST", "/v1/x", [], b"{}", deadlines=SHORT)
        assert (await answer.read(), answer.attempts) == (b"{}", 2)
        await origin.close()
    assert [sent.connection for sent in upstream.requests] == [1, 1, 2]


async def test_the_second_attempt_is_the_last() -> None:
    """A dead upstream gets two requests at most."""
    async with FaultyUpstream([[OK], [CLOSE]]) as upstream:
        origin = Origin(upstream.url)
        await ask(origin)
        with pytest.raises(ProviderError) as caught:
            await ask(origin)
        await origin.close()
    assert (caught.value.code, caught.value.attempts) == (Code.CONNECTION_RESET, 2)
    assert [sent.connection for sent in upstream.requests] == [1, 1, 2]


async def test_the_second_attempt_does_not_trust_another_idle_connection() -> None:
    """When one idle connection was dead, the others may be too."""
    scripts: list[Script] = [[Pause(0.02), OK], [OK], [CLOSE], [OK]]
    async with FaultyUpstream(scripts) as upstream:
        origin = Origin(upstream.url)
        await asyncio.gather(ask(origin), ask(origin))
        await ask(origin)
        await origin.close()
    assert [sent.connection for sent in upstream.requests][-1] == 3


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([b"H", CLOSE], Code.CONNECTION_RESET),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", CLOSE], Code.CONNECTION_RESET),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", CLOSE], Code.UPSTREAM_TRUNCATED_BODY),
        ([Pause(0.05), CLOSE], Code.CONNECTION_RESET),
        ([HANG], Code.FIRST_BYTE_TIMEOUT),
        ([b"nonsense"], Code.UPSTREAM_BAD_FRAMING),
    ],
    ids=["first byte", "interim reply", "head", "after a while", "timeout", "not HTTP"],
)
async def test_anything_else_is_sent_once(
    script: Script, code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the upstream may have worked on is never sent again."""
    monkeypatch.setattr(pool, "_STALE_S", 0.03)
    async with FaultyUpstream([[OK], script, [OK]]) as upstream:
        origin = Origin(upstream.url)
        await ask(origin)
        with pytest.raises(ProviderError) as caught:
            await ask(origin)
        assert (caught.value.code, caught.value.attempts) == (code, 1)
        assert upstream.calls == 2
        assert await ask(origin) == b"{}"
        await origin.close()
    assert [sent.connection for sent in upstream.requests] == [1, 1, 2]


async def test_unasked_bytes_are_never_an_answer() -> None:
    """A reply that was sent ahead of its request is thrown away with its connection."""
    smuggled = http_response(b"smuggled")
    scripts: list[Script] = [[OK, Pause(0.01), smuggled], [OK]]
    async with FaultyUpstream(scripts) as upstream:
        origin = Origin(upstream.url)
        await ask(origin)
        await settle(lambda: origin.open_count == 0)
        assert await ask(origin) == b"{}"
        await origin.close()


async def test_bytes_in_the_socket_are_seen_before_it_is_used_again() -> None:
    """Also when the loop has had no time to read them."""
    scripts: list[Script] = [[OK], [OK]]
    async with FaultyUpstream(scripts, greeting=()) as upstream:
        origin = Origin(upstream.url)
        await ask(origin)
        [connection] = origin._idle  # pyright: ignore[reportPrivateUsage]
        assert connection.is_clean
        connection.hold(wanted=True)  # as if the loop were busy
        upstream.scripts = [[OK]]
        server_side = next(iter(upstream._tasks))  # pyright: ignore[reportPrivateUsage]
        server_side.cancel()  # closes the connection from the other side
        await settle(lambda: not connection.is_clean)
        assert connection.is_usable
        assert await ask(origin) == b"{}"
        await origin.close()
    assert [sent.connection for sent in upstream.requests] == [1, 2]


async def test_idle_connections_do_not_stay_for_ever() -> None:
    """After a while without a request they are closed."""
    async with FaultyUpstream([[OK]]) as upstream:
        origin = Origin(upstream.url, limits=ClientLimits(max_idle_s=0.05))
        await ask(origin)
        assert origin.idle_count == 1
        await upstream.wait_departure()
        await settle(lambda: (origin.idle_count, origin.open_count) == (0, 0))
        await origin.close()


async def test_requests_above_the_limit_take_turns() -> None:
    """No more connections than allowed are made, and each request is answered."""
    async with FaultyUpstream([[Pause(0.005), OK]]) as upstream:
        origin = Origin(upstream.url, limits=ClientLimits(max_connections=2))
        answers = await asyncio.gather(*(ask(origin) for _ in range(12)))
        assert (origin.open_count, origin.waiting_count) == (2, 0)
        await origin.close()
    assert answers == [b"{}"] * 12
    assert upstream.connections == 2


async def test_turns_are_passed_on_when_connections_are_lost() -> None:
    """A place that becomes free is given to the next request, which opens a connection."""
    closing = http_response(b"{}", headers={"connection": "close"})
    async with FaultyUpstream([[closing], [HANG], [OK]]) as upstream:
        origin = Origin(upstream.url, limits=ClientLimits(max_connections=1))
        answers = await asyncio.gather(*(ask(origin) for _ in range(4)), return_exceptions=True)
        assert (origin.open_count, origin.waiting_count) == (1, 0)
        await origin.close()
    assert [isinstance(answer, ProviderError) for answer in answers].count(True) == 1
    assert upstream.connections == 3


async def test_the_wait_for_a_connection_is_bounded() -> None:
    """Too long a wait and too long a queue have a code of their own; nothing is sent."""
    limits = ClientLimits(max_connections=1, max_waiting=1, max_wait_s=0.05)
    async with FaultyUpstream([[HANG]]) as upstream:
        origin = Origin(upstream.url, limits=limits)
        first = asyncio.ensure_future(ask(origin, deadlines=Deadlines()))
        await settle(lambda: upstream.calls == 1)
        second = asyncio.ensure_future(ask(origin))
        await asyncio.sleep(0)
        with pytest.raises(ProviderError, match="1 requests wait") as refused:
            await ask(origin)
        with pytest.raises(ProviderError, match="none became free") as late:
            await second
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await settle(lambda: origin.open_count == 0)
        await origin.close()
    assert refused.value.code == late.value.code == Code.CONNECTION_LIMIT
    assert upstream.calls == 1


async def test_a_cancelled_wait_leaves_its_turn_to_others() -> None:
    """Whenever it is cancelled, the connection it was given is not lost."""
    async with FaultyUpstream([[Pause(0.01), OK]]) as upstream:
        origin = Origin(upstream.url, limits=ClientLimits(max_connections=1))
        for turns in range(6):
            first = asyncio.ensure_future(ask(origin))
            await asyncio.sleep(0)
            second = asyncio.ensure_future(ask(origin))
            third = asyncio.ensure_future(ask(origin))
            await first
            for _ in range(turns):
                await asyncio.sleep(0)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            assert await third == b"{}"
            await settle(lambda: origin.waiting_count == 0 and origin.open_count <= 1)
        await origin.close()
        await settle(lambda: origin.open_count == 0)


async def test_cancelling_closes_the_socket_at_once() -> None:
    """While the head is awaited, while the body is read, and while it is piped."""
    part = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"

    async def read(origin: Origin) -> None:
        await (await origin.send("POST", "/", [], b"{}")).read()

    async def pipe(origin: Origin) -> None:
        await (await origin.send("POST", "/", [], b"{}")).pipe(lambda piece: None)

    cases: list[tuple[bytes, Callable[[Origin], Awaitable[None]]]] = [
        (b"", read),
        (part, read),
        (part, pipe),
    ]
    for sent, reader in cases:
        async with FaultyUpstream([[sent, HANG]]) as upstream:
            origin = Origin(upstream.url)
            task = asyncio.ensure_future(reader(origin))
            await settle(lambda upstream=upstream: upstream.calls == 1)
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert origin.open_count == 0
            await upstream.wait_departure(0.5)
            await origin.close()


async def test_closing_lets_answers_end() -> None:
    """Idle connections close at once, others after their answer; nothing new is sent."""
    async with FaultyUpstream([[OK], [OK[:-1], Pause(0.03), OK[-1:]]]) as upstream:
        origin = Origin(upstream.url)
        await ask(origin)
        answer = await origin.send("POST", "/", [], b"{}")
        await origin.close()
        assert await answer.read() == b"{}"
        with pytest.raises(ProviderError, match="have been closed"):
            await ask(origin)
        await settle(lambda: origin.open_count == 0)


async def test_closing_ends_waits() -> None:
    """Requests that wait for a connection are refused."""
    async with FaultyUpstream([[Pause(0.05), OK]]) as upstream:
        origin = Origin(upstream.url, limits=ClientLimits(max_connections=1))
        first = asyncio.ensure_future(ask(origin))
        await settle(lambda: upstream.calls == 1)
        second = asyncio.ensure_future(ask(origin))
        await asyncio.sleep(0)
        await origin.close()
        with pytest.raises(ProviderError, match="have been closed"):
            await second
        assert await first == b"{}"


async def test_requests_leave_no_cycles_behind() -> None:
    """Memory is freed with each answer, not by the garbage collector."""
    chunks = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    bad = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz"
    async with FaultyUpstream(
        lambda sent: {"/bad": bad, "/c": chunks}.get(sent.head.split()[1], OK)
    ) as upstream:
        origin = Origin(upstream.url)
        await ask(origin)
        frames = "ReplyFrame"
        gc.collect()
        gc.disable()
        try:
            for path in ("/c", "/l", "/bad") * 10:
                try:
                    await ask(origin, path)
                except ProviderError:
                    pass
            left = [item for item in gc.get_objects() if type(item).__name__ == frames]
        finally:
            gc.enable()
        await origin.close()
    assert len(left) <= 1


def test_an_origin_belongs_to_one_loop() -> None:
    """In a second one it is refused while the first is open, and starts anew after that."""

    async def use(origin: Origin) -> bytes:
        return await ask(origin)

    async def main() -> Origin:
        async with FaultyUpstream([[OK]]) as upstream:
            origin = Origin(upstream.url)
            await use(origin)
            other = asyncio.new_event_loop()
            try:
                with pytest.raises(SurecallError, match="another event loop"):
                    await asyncio.to_thread(other.run_until_complete, use(origin))
            finally:
                other.close()
            return origin

    origin = asyncio.run(main())
    with pytest.raises(ProviderError):  # the server is gone
        asyncio.run(use(origin))


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/v1", "ftp://127.0.0.1", "http://u:p@127.0.0.1", "127.0.0.1", "http://h:0"],
)
def test_the_address_is_checked(url: str) -> None:
    """Scheme, host and port, and nothing else."""
    with pytest.raises(ConfigError):
        Origin(url)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://example.com", "example.com"),
        ("http://example.com:80", "example.com"),
        ("https://example.com:443/", "example.com"),
        ("https://example.com:80", "example.com:80"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
def test_the_host_is_written_as_servers_expect(url: str, host: str) -> None:
    """The default port is left out, and addresses of version 6 are in brackets."""
    assert repr(Origin(url)).removesuffix(")").endswith(f"//{host}")
