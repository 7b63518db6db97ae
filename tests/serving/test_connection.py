"""What clients may send to a server of ours, in how many pieces, and what they get."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.serving import HttpServer, ServerLimits

LIMITS = ServerLimits(header_s=0.4, body_s=0.8, idle_s=5, max_header_bytes=4096)
HOST = b"host: x\r\n"


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer with method, target and body; paths ask for other kinds of answers."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message["body"]
        if not message["more_body"]:
            break
    said = b"%b %b %b" % (scope["method"].encode(), scope["raw_path"], body)
    headers = [(b"content-length", b"%d" % len(said))]
    if scope["path"] == "/chunks":
        headers = []
    elif scope["path"] == "/fails":
        raise RuntimeError("on purpose")
    elif scope["path"] == "/half":
        headers = [(b"content-length", b"999")]
    elif scope["path"] == "/breaks":
        headers.append((b"x", b"a\r\nset-cookie: b"))
    elif scope["path"] == "/slow":
        await asyncio.sleep(0.05)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said, "more_body": False})


@asynccontextmanager
async def serving(app: Any = echo) -> AsyncGenerator[tuple[HttpServer, int]]:
    """Serve an application on loopback."""
    sock = socket.create_server(("127.0.0.1", 0))
    sock.settimeout(0)
    port = sock.getsockname()[1]
    server = HttpServer(app, LIMITS)
    await server.listen(sock)
    try:
        yield server, port
    finally:
        server.cut()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert not server.connections


async def exchange(port: int, *pieces: bytes, pause_s: float = 0.01) -> bytes:
    """Send pieces one after another and return all that comes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause_s)
    said = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return said


def post(path: str, body: bytes, *headers: bytes, last: bool = True) -> bytes:
    """Return a request."""
    lines = b"".join(b"%b\r\n" % header for header in headers)
    close = b"connection: close\r\n" if last else b""
    head = b"POST %b HTTP/1.1\r\n" % path.encode() + HOST + lines + close
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize("at", [1, 5, 20, 60, 64])
async def test_a_request_may_come_in_pieces(at: int) -> None:
    """Wherever it is split, it is the same request."""
    sent = post("/a?b", b"hello")
    async with serving() as (_, port):
        said = await exchange(port, sent[:at], sent[at:])
    assert said.endswith(b"\r\n\r\nPOST /a hello")


async def test_requests_in_one_read_are_answered_in_order() -> None:
    """Also when the first takes longest."""
    sent = post("/slow", b"1", last=False) + post("/b", b"2", last=False) + post("/c", b"3")
    async with serving() as (_, port):
        said = await exchange(port, sent)
    places = [said.index(text) for text in (b"/slow 1", b"/b 2", b"/c 3")]
    assert places == sorted(places)


async def test_an_offer_of_another_protocol_is_not_taken() -> None:
    """A request with a body that offers HTTP/2, as Java's client does, is served as it is."""
    offer = (b"connection: Upgrade, HTTP2-Settings", b"upgrade: h2c", b"http2-settings: x")
    sent = post("/a", b"hello", *offer, last=False)
    async with serving() as (_, port):
        for pieces in ((sent,), (sent[:90], sent[90:]), (sent[:-3], sent[-3:])):
            said = await exchange(port, *pieces, post("/b", b"again"))
            assert said.count(b"HTTP/1.1 200 OK") == 2
            assert b"/a hello" in said
            assert said.endswith(b"/b again")


async def test_head_and_chunks() -> None:
    """A HEAD has no body, and a body of unknown length comes in chunks."""
    async with serving() as (_, port):
        asked = b"HEAD /a HTTP/1.1\r\n" + HOST + b"\r\n"
        said = await exchange(port, asked, post("/chunks", b"hello"))
    head, _, rest = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert rest.startswith(b"HTTP/1.1 200 OK")
    assert rest.endswith(b"\r\n\r\n12\r\nPOST /chunks hello\r\n0\r\n\r\n")


@dataclass(frozen=True)
class Refused:
    id: str
    sent: bytes
    status: int


REFUSED = [
    Refused("no HTTP", b"nonsense\r\n\r\n", 400),
    Refused("another protocol", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    Refused("CONNECT", b"CONNECT a:1 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Refused("absolute target", b"GET http://a/ HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    Refused("two lengths", post("/", b"a", b"content-length: 2"), 400),
    Refused("length and chunks", post("/", b"a", b"transfer-encoding: chunked"), 400),
    Refused(
        "another coding",
        b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: gzip, chunked\r\n\r\n",
        400,
    ),
    Refused("folded header", b"GET / HTTP/1.1\r\n" + HOST + b"a: b\r\n c\r\n\r\n", 400),
    Refused("large head", b"GET / HTTP/1.1\r\n" + HOST + b"a: " + b"x" * 5000 + b"\r\n\r\n", 431),
    Refused("endless head", b"GET / HTTP/1.1\r\n" + HOST + b"a: " + b"x" * 5000, 431),
    Refused("many headers", b"GET / HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 300 + b"\r\n", 431),
    Refused("half a head", b"GET / HTTP/1.1\r\nho", 408),
    Refused("half a body", post("/", b"hello")[:-2], 408),
    Refused("a failure", post("/fails", b""), 500),
    Refused("a header with a line break", post("/breaks", b""), 500),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_what_cannot_be_served_is_refused_and_the_connection_closed(case: Refused) -> None:
    """There is one answer, with its status, and the server serves others as before."""
    async with serving() as (_, port):
        said = await exchange(port, case.sent)
        assert said.startswith(b"HTTP/1.1 %d " % case.status)
        assert said.count(b"HTTP/1.1") == 1
        assert b"connection: close" in said
        assert b"hello" in await exchange(port, post("/", b"hello"))


async def test_a_refusal_reaches_a_client_that_still_sends() -> None:
    """What nobody reads does not reset the connection before its answer was read."""
    sent = b"POST / HTTP/1.1\r\n" + HOST + b"transfer-encoding: gzip\r\n\r\n" + b"x" * 300_000
    async with serving() as (_, port):
        assert (await exchange(port, sent)).startswith(b"HTTP/1.1 400 ")


async def test_an_answer_that_breaks_off_cuts_the_connection() -> None:
    """A body that is shorter than its length is never taken for a whole one."""
    async with serving() as (_, port):
        said = await exchange(port, post("/half", b"hello"))
    assert b"content-length: 999" in said
    assert len(said) < 999


async def test_a_client_that_waits_to_be_asked_is_asked() -> None:
    """`Expect: 100-continue` is answered when somebody reads the body."""
    sent = post("/a", b"hello", b"expect: 100-continue")
    async with serving() as (_, port):
        said = await exchange(port, sent[:-5], sent[-5:])
    assert said.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")


async def test_a_client_that_leaves_is_told_to_the_application() -> None:
    """`receive` says so after the body, at once."""
    left = asyncio.Event()

    async def waiting(_: Any, receive: Any, __: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    async with serving(waiting) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post("/", b"hello"))
        await asyncio.sleep(0.05)
        assert not left.is_set()
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 60)


async def test_the_end_lets_answers_finish() -> None:
    """Idle connections close, requests under way are answered, and then nothing is left."""
    async with serving() as (server, port):
        idle, writer = await asyncio.open_connection("127.0.0.1", port)
        asking = asyncio.create_task(exchange(port, post("/slow", b"hello", last=False)))
        await asyncio.sleep(0.02)
        await server.drain(2)
        assert await idle.read() == b""
        writer.close()
        said = await asking
        assert said.endswith(b"/slow hello")
        assert b"connection: close" in said
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
