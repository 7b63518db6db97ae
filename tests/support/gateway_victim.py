"""A gateway in a process of its own that is killed while clients wait for its answers.

Clients note the id of every request whose last byte they have: whole answers and streams, some
of them cut short by clients that leave. What they noted has to be in the store, whenever the kill
came.
"""

import asyncio
import json
import os
import random
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from surecall.gateway.records import open_for_reading, open_records

__all__ = ["GatewayVictim", "serve_upstream"]

_SOURCES = Path(__file__).parents[2] / "src"
_PATH = "/v1/chat/completions"
_CLIENTS = 16
_START_S = 60.0
_LEAVES = 0.05
"""The share of clients that leave before their answer."""


def _request(*, stream: bool) -> bytes:
    message = {"role": "user", "content": "Say hello."}
    return json.dumps({"model": "m", "messages": [message], "stream": stream}).encode()


def _reply() -> bytes:
    message = {"role": "assistant", "content": "Hello."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def _stream() -> list[bytes]:
    pieces = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"]
    pieces[0] += b"transfer-encoding: chunked\r\n\r\n"
    for text, finish in (("Hel", None), ("lo.", None), ("", "stop")):
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        event = b"data: %b\n\n" % json.dumps({"id": "c", "choices": [choice]}).encode()
        pieces.append(b"%x\r\n%b\r\n" % (len(event), event))
    pieces.append(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    return pieces


async def _read_message(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Return the head and the body of a request or an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    if fields.get("transfer-encoding") != "chunked":
        return head, await reader.readexactly(int(fields.get("content-length", "0")))
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return head, body


@asynccontextmanager
async def serve_upstream() -> AsyncGenerator[int, None]:
    """Serve short answers, whole and streamed, after a few milliseconds; yield the port."""
    whole, pieces, chance = _reply(), _stream(), random.Random(1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                _, body = await _read_message(reader)
                for piece in pieces if b'"stream": true' in body else [whole]:
                    await asyncio.sleep(chance.uniform(0.0, 0.004))
                    writer.write(piece)
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class GatewayVictim:
    """Starts gateways on one store, one after the other, and kills each of them under load.

    Args:
        folder: Where it works.
        store: A file, or the address of a PostgreSQL server.
        upstream_port: Where requests go.
        chance: Decides when.
    """

    def __init__(self, folder: Path, store: str, upstream_port: int, chance: random.Random) -> None:
        self.acknowledged: set[str] = set()
        """Requests whose last byte a client has."""
        self.cut = 0
        """Requests that were under way when a gateway was killed, or whose client left."""
        self._folder = folder
        self._store = store
        self._upstream = f"http://127.0.0.1:{upstream_port}/v1"
        self._chance = chance

    async def kill_one(self, most_s: float = 0.15) -> int:
        """Start a gateway, load it, and kill it; return how many requests it had acknowledged."""
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "surecall", "-q", "serve", "--upstream", self._upstream),
            *("--port", str(port), "--store", self._store),
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(_SOURCES)},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        before = len(self.acknowledged)
        try:
            ready = await asyncio.wait_for(process.stdout.readline(), _START_S)
            assert ready.startswith(b"ready on "), ready
            clients = [asyncio.create_task(self._ask(port)) for _ in range(_CLIENTS)]
            while len(self.acknowledged) == before:
                await asyncio.sleep(0.002)
            await asyncio.sleep(self._chance.uniform(0.0, most_s))
        finally:
            process.kill()
            code = await process.wait()
        assert code == -9
        await asyncio.gather(*clients)
        return len(self.acknowledged) - before

    async def _ask(self, port: int) -> None:
        """Send requests until the gateway is gone."""
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return
            try:
                while True:
                    if await self._ask_once(port, reader, writer):
                        break
            except (asyncio.IncompleteReadError, OSError):
                self.cut += 1
                return
            finally:
                writer.close()

    async def _ask_once(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send one request; return whether the client left without its answer."""
        body = _request(stream=self._chance.random() < 0.5)
        head = f"POST {_PATH} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        if self._chance.random() < _LEAVES:
            await asyncio.sleep(self._chance.uniform(0.0, 0.005))
            self.cut += 1
            return True
        answer, _ = await _read_message(reader)
        assert " 200 " in answer.split("\r\n", 1)[0], answer
        self.acknowledged.add(answer.split("x-surecall-request-id: ", 1)[1].split("\r\n", 1)[0])
        return False

    async def find_lost(self) -> set[str]:
        """Return the requests that were acknowledged and are not in the store."""
        store = open_records(self._store, spool=self._folder / ".surecall/requests.spool")
        await store.replay()
        await store.close()
        reading = open_for_reading(self._store)
        kept = {record.id async for record in reading.export()}
        await reading.close()
        return self.acknowledged - kept
