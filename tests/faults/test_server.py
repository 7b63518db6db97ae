"""The provider over real sockets: what it serves beside replies, and what it refuses."""

import asyncio
import json
from typing import Any

import pytest

from surecall.faults import FAULTS, FaultPlan, FaultServer, FaultyProvider, zoo
from surecall.protocols import ChatCompletions
from surecall.records import Message
from surecall.transport import HttpTransport

from .conversations import request_of

BODY = {"model": "faults:clean", "messages": [{"role": "user", "content": "hi"}]}


async def exchange(server: FaultServer, data: bytes) -> bytes:
    """Send bytes and return all that comes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def post(body: Any, path: str = "/v1/chat/completions") -> bytes:
    """Return the bytes of a request."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def split(answer: bytes) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def test_models_and_state_are_listed() -> None:
    """Every fault and every simulated model can be named, and what was served is counted."""
    async with FaultServer(FaultyProvider(seed=5)) as server:
        status, models = split(await exchange(server, b"GET /v1/models HTTP/1.1\r\n\r\n"))
        ids = {row["id"] for row in models["data"]}
        await exchange(server, post(BODY | {"model": "faults:id_missing"}))
        _, state = split(await exchange(server, b"GET /faults HTTP/1.1\r\n\r\n"))
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
        pytest.param(b"GET /v1/nothing HTTP/1.1\r\n\r\n", 404, "nothing", id="GET"),
        pytest.param(b"PUT /v1/models HTTP/1.1\r\n\r\n", 404, "PUT", id="PUT"),
        pytest.param(b"nonsense\r\n\r\n", 400, "request line", id="no HTTP"),
        pytest.param(
            b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: x\r\n\r\n",
            400,
            "length",
            id="length",
        ),
        pytest.param(
            b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n",
            413,
            "bytes",
            id="too large",
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
    head = b"POST /chat/completions HTTP/1.1\r\nexpect: 100-continue\r\ntransfer-encoding: chunked"
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    async with FaultServer(FaultyProvider()) as server:
        answer = await exchange(server, head + b"\r\n\r\n" + chunks)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    _, body = split(answer.partition(b"\r\n\r\n")[2])
    assert body["choices"][0]["message"]["content"] == "Done."


async def test_one_connection_serves_many_requests() -> None:
    """A clean answer leaves its connection open."""
    async with FaultServer(FaultyProvider()) as server:
        answers = await exchange(server, post(BODY) * 3)
    assert answers.count(b"HTTP/1.1 200 OK") == 3


async def test_clients_that_leave_do_no_harm() -> None:
    """A server with broken and waiting connections goes on, and stops when told."""
    plan = FaultPlan.of("stall")
    async with FaultServer(FaultyProvider(plan=plan)) as server:
        for data in (b"", b"POST", post(BODY)[:60], post(BODY | {"model": "m"})):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data)
            writer.transport.abort()
        _, waiting = await asyncio.open_connection("127.0.0.1", server.port)
        waiting.write(post(BODY | {"model": "m"}))
        async with HttpTransport(server.url) as transport:
            request = request_of(Message("user", "hi"), model="faults:clean")
            reply = await transport.send(ChatCompletions().render_request(request))
        assert b"Done." in reply.body
    waiting.close()
