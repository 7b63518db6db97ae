"""What is sent: nothing a caller passes can change where a request ends or whom it is for."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from support.upstream import FaultyUpstream, Pause, http_response
from surecall.base.errors import Code, ProviderError, RequestError
from surecall.models.client import Origin
from surecall.models.client.framing import render_head
from surecall.models.transport import Deadlines

OK = http_response(b"{}")


def test_a_head_is_rendered_whole() -> None:
    """Own headers frame the request; the caller's follow in their order."""
    head = render_head("POST", "/v1/x?a=b", "h:1", [("X-A", "1"), ("x-b", "a, b")]).end(7)
    assert head == (
        b"POST /v1/x?a=b HTTP/1.1\r\nHost: h:1\r\nAccept-Encoding: gzip, identity\r\n"
        b"X-A: 1\r\nx-b: a, b\r\nContent-Length: 7\r\n\r\n"
    )
    assert b"Content-Length" not in render_head("GET", "/", "h", []).end(0)
    assert b"Content-Length: 0" in render_head("POST", "/", "h", []).end(0)


@pytest.mark.parametrize(
    "header",
    [
        ("x", "a\r\nHost: evil"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "a\0b"),
        ("x", "a\tb"),
        ("x", "a\x7fb"),
        ("x", "é"),
        ("x", "a\u2028b"),
        ("x\r\ny", "a"),
        ("x y", "a"),
        ("x:", "a"),
        ("", "a"),
        ("é", "a"),
        ("Host", "evil"),
        ("host", "evil"),
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "close"),
        ("Expect", "100-continue"),
        ("Upgrade", "h2c"),
        ("TE", "trailers"),
        ("Accept-Encoding", "br"),
        ("Content-Encoding", "gzip"),
    ],
    ids=repr,
)
def test_a_header_that_could_break_out_is_refused(header: tuple[str, str]) -> None:
    """Line breaks, odd characters, and headers that frame the message; twice, in case of memory."""
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            render_head("POST", "/", "h", [header])
        assert caught.value.code == Code.INVALID_REQUEST
        assert "evil" not in str(caught.value)


@pytest.mark.parametrize("path", ["", "x", "http://evil/", "/a b", "/a\r\nb", "/é", "/\0", "*"])
def test_a_path_is_plain(path: str) -> None:
    """It begins at the root and has no spaces or line breaks."""
    with pytest.raises(RequestError):
        render_head("POST", path, "h", [])


@pytest.mark.parametrize("method", ["", "get", "CONNECT", "TRACE", "GET /", "GET\r\n"])
def test_methods_are_listed(method: str) -> None:
    """Others are not sent."""
    with pytest.raises(RequestError):
        render_head(method, "/", "h", [])


async def test_a_refused_request_opens_no_connection() -> None:
    """Nothing is sent."""
    async with FaultyUpstream([[OK]]) as upstream:
        origin = Origin(upstream.url)
        with pytest.raises(RequestError):
            await origin.send("POST", "/", [("x", "a\nb")], b"{}")
        assert origin.open_count == 0
        await origin.close()
    assert upstream.connections == 0


@pytest.mark.parametrize("size", [0, 10, 65_537, 5_000_000])
async def test_a_body_arrives_whole(size: int) -> None:
    """Small ones and large ones, and the connection is used again."""
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with FaultyUpstream([[OK]]) as upstream:
        origin = Origin(upstream.url)
        for _ in range(2):
            answer = await origin.send("POST", "/v1/x", [("x-a", "b")], body)
            assert await answer.read() == b"{}"
        await origin.close()
    assert [sent.body == body for sent in upstream.requests] == [True, True]
    assert [sent.connection for sent in upstream.requests] == [1, 1]
    assert upstream.requests[0].headers == {
        "host": upstream.url.removeprefix("http://"),
        "accept-encoding": "gzip, identity",
        "x-a": "b",
        "content-length": str(size),
    }


async def test_an_upstream_that_does_not_take_the_request_is_left() -> None:
    """It counts as no answer."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        origin = Origin(f"http://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(ProviderError) as caught:
            await origin.send(
                "POST", "/", [], bytes(20_000_000), deadlines=Deadlines(first_byte_s=0.1)
            )
        await origin.close()
        await asyncio.sleep(0)
        assert origin.open_count == 0
    assert caught.value.code == Code.FIRST_BYTE_TIMEOUT


@contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve one connection from a thread, which can block."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def run() -> None:
            sock, _ = server.accept()
            with closing(sock):
                serve(sock)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


async def test_a_slow_upload_is_not_no_answer() -> None:
    """While the upstream takes bytes, the first-byte deadline begins anew."""
    size = 16_000_000

    def serve(sock: socket.socket) -> None:
        taken, pauses = 0, 12
        while taken < size:
            taken += len(sock.recv(1_000_000))
            pauses -= 1
            time.sleep(0.02 if pauses > 0 else 0)
        sock.sendall(OK)
        sock.recv(1)

    with serving(serve) as url:
        origin = Origin(url)
        answer = await origin.send(
            "POST", "/", [], bytes(size), deadlines=Deadlines(first_byte_s=0.1)
        )
        assert await answer.read() == b"{}"
        await origin.close()


async def test_an_answer_before_the_end_of_the_request_costs_the_connection() -> None:
    """The rest of the request would be taken for the next one."""

    def serve(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(http_response(b"{}", status=413))
        time.sleep(0.05)

    with serving(serve) as url:
        origin = Origin(url)
        answer = await origin.send("POST", "/", [], bytes(20_000_000))
        assert (answer.status, await answer.read()) == (413, b"{}")
        assert origin.idle_count == 0
        await origin.close()


async def test_errors_hold_nothing_of_the_request() -> None:
    """Neither the key nor the body is in the error, its causes or its frames."""
    async with FaultyUpstream([[b"nonsense"]]) as upstream:
        origin = Origin(upstream.url)
        with pytest.raises(ProviderError) as caught:
            await origin.send("POST", "/", [("authorization", "Bearer canary-key")], b"canary")
        await origin.close()
    error = caught.value
    assert "canary" not in repr(error) + str(vars(error))
    assert (error.__cause__, error.__context__) == (None, None)


async def test_no_deadline_ends_a_request_early() -> None:
    """It ends when its time is up, however short that is, and on a connection that was used."""
    loop = asyncio.get_running_loop()
    async with FaultyUpstream([[OK], [Pause(2)]]) as upstream:
        origin = Origin(upstream.url)
        await (await origin.send("POST", "/", [], b"{}")).read()
        for first_byte_s in (0.05, 0.1):
            started = loop.time()
            with pytest.raises(ProviderError) as caught:
                await origin.send(
                    "POST", "/", [], b"", deadlines=Deadlines(first_byte_s=first_byte_s)
                )
            assert loop.time() - started >= first_byte_s - 0.005
            assert caught.value.code == Code.FIRST_BYTE_TIMEOUT
        await origin.close()
