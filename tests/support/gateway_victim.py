"""A gateway in a process of its own, in trouble while clients wait for its answers.

Clients note the id of every request whose last byte they have: whole answers and streams, some
of them cut short by clients that leave. What they noted has to be in the store, whether the gateway
was killed, the server of its store was killed, or a reply held figures that no store takes.
"""

import asyncio
import json
import os
import random
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from support.request_records import kill_postgres
from surecall.store.records import open_for_reading, open_records
from surecall.store.records.spool import read_spool

__all__ = ["FIGURES", "GatewayVictim", "serve_upstream"]

FIGURES = (
    *("9223372036854775808", "-9223372036854775809", "9007199254740993", "-9007199254740993"),
    *("NaN", "1e400", "-1e400", "-1", "1.5", "true", '"12"', "[1]", "null", "{}", "1" + "0" * 400),
)
"""Figures that a reply may hold in the place of a count, as they are written."""

_SOURCES = Path(__file__).parents[2] / "src"
_PATH = "/v1/chat/completions"
_CLIENTS = 16
_START_S = 60.0
_LEAVES = 0.05
"""The share of clients that leave before their answer."""


def _request(*, stream: bool) -> bytes:
    message = {"role": "user", "content": "Say hello."}
    return json.dumps({"model": "m", "messages": [message], "stream": stream}).encode()


def _poison(figure: str) -> bytes:
    """Return the members of a reply whose numbers are all one figure."""
    if not figure:
        return b""
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    counts = ",".join(f'"{name}": {figure}' for name in names)
    details = f'"prompt_tokens_details": {{"cached_tokens": {figure}}}'
    return f', "created": {figure}, "usage": {{{counts}, {details}}}'.encode()


def _reply(figure: str = "") -> bytes:
    message = {"role": "assistant", "content": "Hello."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    name = "m\0\ud800" if figure else "m"
    body = json.dumps({"id": "c", "model": name, "choices": [choice]}).encode()
    body = body[:-1] + _poison(figure) + b"}"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def _stream(figure: str = "") -> list[bytes]:
    pieces = [b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"]
    pieces[0] += b"transfer-encoding: chunked\r\n\r\n"
    for word, finish in (("Hel", None), ("lo.", None), ("", "stop")):
        choice = {"index": 0, "delta": {"content": word}, "finish_reason": finish}
        text = json.dumps({"id": "c", "choices": [choice]}).encode()
        event = b"data: %b%b}\n\n" % (text[:-1], _poison(figure) if finish else b"")
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
async def serve_upstream(figures: Sequence[str] = ("",)) -> AsyncGenerator[int, None]:
    """Serve short answers, whole and streamed, after a few milliseconds; yield the port.

    Their counts are one of the figures, each in its turn.
    """
    replies = cycle([([_reply(figure)], _stream(figure)) for figure in figures])
    chance = random.Random(1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                _, body = await _read_message(reader)
                whole, pieces = next(replies)
                for piece in pieces if b'"stream": true' in body else whole:
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
        keep_bodies: Whether records have the bodies.
        is_poisoned: Whether replies may be no JSON, which is answered with 502.
    """

    def __init__(
        self,
        folder: Path,
        store: str,
        upstream_port: int,
        chance: random.Random,
        *,
        keep_bodies: bool = False,
        is_poisoned: bool = False,
    ) -> None:
        self.acknowledged: set[str] = set()
        """Requests whose last byte a client has."""
        self.cut = 0
        """Requests that were under way when a gateway was killed, or whose client left."""
        self._folder = folder
        self._store = store
        self._keep_bodies = keep_bodies
        self._is_poisoned = is_poisoned
        self._is_over = False
        self._upstream = f"http://127.0.0.1:{upstream_port}/v1"
        self._chance = chance

    async def kill_one(self, most_s: float = 0.15) -> int:
        """Start a gateway, load it, and kill it; return how many requests it had acknowledged."""
        before = len(self.acknowledged)
        process, port = await self._start()
        clients = []
        try:
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

    async def serve(self, work: Any, *, clients: int = 24) -> str:
        """Load one gateway while some work is done, stop it, and return its log."""
        process, port = await self._start()
        asking: list[asyncio.Task[None]] = []
        try:
            asking = [asyncio.create_task(self._ask(port)) for _ in range(clients)]
            await work(port)
        finally:
            self._is_over = True
            await asyncio.gather(*asking)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), _START_S) == 0
        return (self._folder / "log").read_text(errors="replace")

    async def kill_store(self, server: Any, port: int) -> None:
        """Kill the server of the store under load, and wait until it is used again."""
        before = len(self.acknowledged)
        await self._wait_for(lambda: len(self.acknowledged) > before + 50)
        await asyncio.sleep(self._chance.uniform(0.0, 0.1))
        kill_postgres(server)
        before = len(self.acknowledged)
        await self._wait_for(lambda: len(self.acknowledged) > before + 50)
        await asyncio.to_thread(server.ensure_postgres_running)
        stored = await self._read_metric(port, 'surecall_records_total{result="stored"}')
        for _ in range(3000):
            is_away = await self._read_metric(port, "surecall_store_away")
            now = await self._read_metric(port, 'surecall_records_total{result="stored"}')
            if not is_away and now > stored:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the store is still away")

    async def wait_for_requests(self, number: int) -> None:
        """Wait until so many requests are acknowledged."""
        await self._wait_for(lambda: len(self.acknowledged) >= number)

    async def _wait_for(self, is_so: Any) -> None:
        for _ in range(6000):
            if is_so():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the clients wait")

    async def _read_metric(self, port: int, name: str) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % port)
        _, body = await asyncio.wait_for(_read_message(reader), 60)
        writer.close()
        return float(body.decode().split(f"\n{name} ", 1)[1].split("\n", 1)[0])

    async def _start(self) -> tuple[asyncio.subprocess.Process, int]:
        """Start a gateway, and return it with its port."""
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        settings = self._folder / "gateway.toml"
        settings.write_text(f"[store]\nkeep_bodies = {str(self._keep_bodies).lower()}\n")
        with (self._folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "surecall", "-q", "serve", "--config", str(settings)),
                *("--upstream", self._upstream, "--port", str(port), "--store", self._store),
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": str(_SOURCES)},
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        assert process.stdout is not None
        ready = await asyncio.wait_for(process.stdout.readline(), _START_S)
        assert ready.startswith(b"ready on "), ready
        return process, port

    async def _ask(self, port: int) -> None:
        """Send requests until the gateway is gone, or everything is over."""
        while not self._is_over:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return
            try:
                while not self._is_over:
                    asking = self._ask_once(port, reader, writer)
                    if await asyncio.wait_for(asking, _START_S):
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
        status = answer.split("\r\n", 1)[0]
        assert " 200 " in status or (" 502 " in status and self._is_poisoned), answer
        self.acknowledged.add(answer.split("x-surecall-request-id: ", 1)[1].split("\r\n", 1)[0])
        return False

    async def find_lost(self) -> set[str]:
        """Return the acknowledged requests that are neither stored nor in the dead-letter file."""
        spool = self._folder / ".surecall/requests.spool"
        store = open_records(self._store, spool=spool)
        await store.replay()
        await store.close()
        reading = open_for_reading(self._store)
        kept = {record.id async for record in reading.export()}
        await reading.close()
        dead = spool.with_suffix(".dead")
        found = read_spool(dead) if dead.exists() else ()
        return self.acknowledged - kept - {record.id for record in found if record is not None}
