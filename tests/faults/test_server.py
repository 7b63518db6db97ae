"""The provider over real sockets: what it serves beside replies, and what it refuses."""

import asyncio
import json
import socket

import pytest

from surecall.base.records import Message
from surecall.faults import FAULTS, FaultPlan, FaultServer, FaultyProvider, ServerLimits, zoo
from surecall.models.transport import HttpTransport
from surecall.wire import ChatCompletions

from .conversations import request_of
from .wire import BODIES, PATHS, exchange, head_of, post, split

JSON = "content-type: application/json"
BODY = {"model": "faults:clean", "messages": [{"role": "user", "content": "hi"}]}


async def test_models_and_state_are_listed() -> None:
    """Every fault and every simulated model can be named, and what was served is counted."""
    async with FaultServer(FaultyProvider(seed=5)) as server:
        status, models = split(await exchange(server, head_of("GET /v1/models")))
        ids = {row["id"] for row in models["data"]}
        await exchange(server, post(BODY | {"model": "faults:id_missing"}))
        _, state = split(await exchange(server, head_of("GET /faults")))
    assert status == 200
    assert {f"faults:{fault.name}" for fault in FAULTS} <= ids
    assert {f"zoo:{model.name}" for model in zoo()} | {"faults:clean"} <= ids
    assert (state["seed"], state["requests"]) == (5, 1)
    assert state["by_fault"] == {"id_missing": 1}
    assert state["by_model"] == {"faults:id_missing": 1}


@pytest.mark.parametrize(
    ("request_bytes", "status", "words"),
    [
        pytest.param(post(BODY | {"model": "faults:id_mising"}), 404, "id_missing", id="fault"),
        pytest.param(post(BODY | {"model": "zoo:stedy"}), 404, "steady", id="model"),
        pytest.param(post({"model": "m"}), 400, "messages", id="no messages"),
        pytest.param(post(b"{"), 400, "INVALID_JSON", id="no JSON"),
        pytest.param(post([]), 400, "object", id="no object"),
        pytest.param(post(BODY, "/v1/embeddings"), 404, "/v1/embeddings", id="path"),
        pytest.param(head_of("GET /v1/nothing"), 404, "nothing", id="GET"),
        pytest.param(head_of("PUT /v1/models", JSON), 404, "PUT", id="PUT"),
        pytest.param(b"nonsense\r\n\r\n", 400, "method", id="no HTTP"),
        pytest.param(
            head_of("POST /v1/messages", JSON, "content-length: x"), 400, "Content-Length", id="x"
        ),
        pytest.param(
            head_of("POST /v1/messages", JSON, "content-length: +1"), 400, "Content-Length", id="+1"
        ),
        pytest.param(
            head_of("POST /v1/messages", JSON, "content-length: 1", "content-length: 2"),
            400,
            "Content-Length",
            id="two lengths",
        ),
        pytest.param(
            head_of("POST /v1/messages", JSON, "content-length: 9", "transfer-encoding: chunked"),
            400,
            "Content-Length",
            id="length and chunks",
        ),
        pytest.param(
            head_of("POST /v1/messages", JSON, "transfer-encoding: gzip, chunked"),
            400,
            "framing",
            id="encoding",
        ),
        pytest.param(
            head_of("POST /v1/messages", JSON, "transfer-encoding: chunked") + b"0x1\r\na",
            400,
            "chunk",
            id="chunk size",
        ),
        pytest.param(
            head_of("POST /v1/messages", JSON, f"content-length: {32 * 1024 * 1024 + 1}"),
            413,
            "33554432 bytes",
            id="too large",
        ),
        pytest.param(head_of("GET /v1/models", f"x: {'y' * 40_000}"), 431, "bytes", id="head"),
        pytest.param(head_of("GET /v1/models", *["x: y"] * 257), 431, "256 headers", id="headers"),
        pytest.param(head_of("GET http://127.0.0.1/v1/models"), 400, "path", id="absolute"),
        pytest.param(head_of("GET /v1/models", "x : y"), 400, "header", id="blank in a name"),
        pytest.param(head_of("GET /v1/models", " folded: y"), 400, "header", id="folded"),
        pytest.param(
            head_of("GET /v1/models", "x: a\nhost: b"), 400, "header", id="bare line feed"
        ),
        pytest.param(
            post(BODIES["gemini"], "/v1beta/models/m:streamGenerateContent"),
            400,
            "alt=sse",
            id="sse",
        ),
    ],
)
async def test_what_cannot_be_served_is_refused_in_words(
    request_bytes: bytes, status: int, words: str
) -> None:
    """The error says what was wrong; nothing is answered with a clean reply instead."""
    async with FaultServer(FaultyProvider()) as server:
        found, body = split(await exchange(server, request_bytes))
    assert found == status
    assert words in body["error"]["message"]


async def test_the_same_seed_gives_the_same_bytes_on_the_wire() -> None:
    """Heads have no date and no server, so that whole answers can be compared."""

    async def served(seed: int) -> list[bytes]:
        async with FaultServer(FaultyProvider(seed=seed)) as server:
            tools = [{"type": "function", "function": {"name": "save", "parameters": {}}}]
            asked = BODY | {
                "messages": [{"role": "user", "content": "call save with {}"}],
                "tools": tools,
            }
            bodies = (asked, asked | {"stream": True}, asked | {"model": "faults:text_hermes"})
            return [await exchange(server, post(body)) for body in bodies]

    assert await served(1) == await served(1) != await served(2)


async def test_a_request_in_chunks_is_understood() -> None:
    """Clients that do not know their length in advance are served too."""
    data = json.dumps(BODY).encode()
    head = head_of(
        "POST /chat/completions", JSON, "expect: 100-continue", "transfer-encoding: chunked"
    )
    chunks = b"%x;name=value\r\n%s\r\n0\r\ntrailer: x\r\n\r\n" % (len(data), data)
    async with FaultServer(FaultyProvider()) as server:
        answer = await exchange(server, head + chunks)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    _, body = split(answer.partition(b"\r\n\r\n")[2])
    assert body["choices"][0]["message"]["content"] == "Done."


async def test_one_connection_serves_many_requests() -> None:
    """A clean answer leaves its connection open."""
    async with FaultServer(FaultyProvider()) as server:
        answers = await exchange(server, post(BODY) * 3)
    assert answers.count(b"HTTP/1.1 200 OK") == 3


async def test_clients_that_leave_do_no_harm() -> None:
    """A server with broken and waiting connections goes on, and stops when asked to."""
    plan = FaultPlan.of("stall")
    async with FaultServer(FaultyProvider(plan=plan)) as server:
        for data in (b"", b"POST", post(BODY)[:60], post(BODY | {"model": "m"})):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data.replace(b"PORT", str(server.port).encode()))
            writer.transport.abort()
        _, waiting = await asyncio.open_connection("127.0.0.1", server.port)
        waiting.write(post(BODY | {"model": "m"}).replace(b"PORT", str(server.port).encode()))
        async with HttpTransport(server.url) as transport:
            request = request_of(Message("user", "hi"), model="faults:clean")
            reply = await transport.send(ChatCompletions().render_request(request))
        assert b"Done." in reply.body
    waiting.close()


async def test_a_client_that_does_not_read_keeps_no_server_from_stopping() -> None:
    """What it has not taken is thrown away."""
    asked = post(BODY | {"model": "faults:stream_flood", "stream": True})
    async with FaultServer(FaultyProvider()) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(asked.replace(b"PORT", str(server.port).encode()))
        for _ in range(500):  # each lets the server write more, until no buffer takes it
            await asyncio.sleep(0)
    with client:
        client.settimeout(30)
        while received := client.recv(1_000_000):
            assert not received.endswith(b"\r\n0\r\n\r\n")


SLOW = {
    "nothing": [b""],
    "a head that never ends": [b"POST /v1/messages HTTP/1.1\r\n", *[b"x: y\r\n"] * 1000],
    "a byte of a head at a time": [b"G", b"E", b"T", *[b" "] * 1000],
    "a body that never ends": [
        head_of("POST /v1/messages", JSON, "content-length: 100000"),
        *[b"x"] * 1000,
    ],
    "chunks that never end": [
        head_of("POST /v1/messages", JSON, "transfer-encoding: chunked"),
        *[b"1\r\nx\r\n"] * 1000,
    ],
    "a chunk that never begins": [
        head_of("POST /v1/messages", JSON, "transfer-encoding: chunked"),
        *[b"0"] * 1000,
    ],
    "trailers that never end": [
        head_of("POST /v1/messages", JSON, "transfer-encoding: chunked") + b"0\r\n",
        *[b"x"] * 1000,
    ],
}
"""What a client may send piece by piece, each a while after the other."""


async def trickle(server: FaultServer, pieces: list[bytes]) -> bytes:
    """Send pieces slowly and return what the server said before it closed the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    answer = asyncio.create_task(reader.read())
    for piece in pieces:
        writer.write(piece.replace(b"PORT", str(server.port).encode()))
        await asyncio.wait([answer], timeout=0.02)
        if answer.done() or writer.is_closing():
            break
    said = await answer
    writer.transport.abort()
    return said


@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW.keys())
async def test_a_client_that_trickles_is_closed_while_others_are_served(
    pieces: list[bytes],
) -> None:
    """A request has to arrive in time; whoever waits for more waits alone."""
    limits = ServerLimits(header_s=0.5, body_s=0.8)
    async with FaultServer(FaultyProvider(), limits=limits) as server:
        slow = [asyncio.create_task(trickle(server, pieces)) for _ in range(5)]
        while not all(task.done() for task in slow):
            assert b"Done." in await exchange(server, post(BODY))
        answers = [task.result() for task in slow]
    if len(pieces) == 1:
        assert answers == [b""] * 5
    else:
        assert [split(answer)[0] for answer in answers] == [408] * 5
        assert all(b"REQUEST_TIMEOUT" in answer for answer in answers)


async def test_a_large_body_that_keeps_up_is_taken_whole() -> None:
    """Every kilobyte earns time, so that size alone is no reason to be closed."""
    limits = ServerLimits(header_s=0.3, body_s=20)
    text = json.dumps(BODY | {"padding": "x" * 60_000}).encode()
    sent = post(text, headers=(JSON, "connection: close"))
    pieces = [sent[start : start + 2000] for start in range(0, len(sent), 2000)]
    async with FaultServer(FaultyProvider(), limits=limits) as server:
        answer = await trickle(server, pieces)
    assert b"Done." in answer


async def test_a_connection_too_many_is_refused() -> None:
    """Beyond the limit nobody waits for an answer that never comes."""
    limits = ServerLimits(max_connections=2)
    async with FaultServer(FaultyProvider(), limits=limits) as server:
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        status, body = split(await exchange(server, post(BODY)))
        assert (status, body["error"]["code"]) == (503, "OVERLOADED")
        for _, writer in held:
            writer.transport.abort()
        answers = [await exchange(server, post(BODY)) for _ in range(20)]
        assert b"Done." in answers[-1]


async def test_a_later_request_has_to_arrive_in_time_too() -> None:
    """A connection that was served once is not trusted with the next request."""
    limits = ServerLimits(header_s=0.5)
    async with FaultServer(FaultyProvider(), limits=limits) as server:
        answer = await trickle(server, [head_of("GET /faults"), b"GET ", *[b"/"] * 1000])
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in answer


async def test_a_connection_ends_when_the_client_asks_for_it() -> None:
    """`connection: close` is kept, so that clients which read to the end do not wait."""
    async with FaultServer(FaultyProvider()) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        asked = head_of("GET /faults", "connection: close")
        writer.write(asked.replace(b"PORT", str(server.port).encode()))
        assert b'"seed":0' in await reader.read()
        writer.close()


@pytest.mark.parametrize("protocol", PATHS)
async def test_the_models_are_listed_for_every_client(protocol: str) -> None:
    """Each provider has its own list."""
    path = "/v1beta/models" if protocol == "gemini" else "/v1/models"
    headers = ["anthropic-version: 2026-10-21"] if protocol == "messages" else []
    async with FaultServer(FaultyProvider()) as server:
        _, body = split(await exchange(server, head_of(f"GET {path}", *headers)))
    if protocol == "gemini":
        assert body["models"][0]["name"] == "models/faults:clean"
    else:
        assert body["data"][0]["id"] == "faults:clean"
        assert ("has_more" in body) == (protocol == "messages")
