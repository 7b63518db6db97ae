"""A gateway over loopback, in the loop of the test, in front of a faulty provider."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from surecall.faults import FaultServer, FaultyProvider
from surecall.gateway.app import Gateway
from surecall.gateway.records import RequestRecord, StoreCounts
from surecall.gateway.server import bind_socket, make_server
from surecall.gateway.settings import GatewaySettings, load_settings

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
CALL = 'call get_weather with {"city": "Paris", "days": 3}'
SAY = "say Hello there."


class KeptRecords:
    """Keeps records in a list."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self.counts = StoreCounts()

    async def add(self, record: RequestRecord) -> None:
        await asyncio.sleep(0)
        self.records.append(record)

    def add_soon(self, record: RequestRecord) -> None:
        self.records.append(record)

    async def prune(self, _retention: Any) -> int:
        return 0

    async def close(self) -> None:
        pass


class Served:
    """A gateway that is being served."""

    def __init__(self, gateway: Gateway, url: str, store: KeptRecords, server: Any) -> None:
        self.gateway = gateway
        self.url = url
        self.store = store
        self.server = server

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def last(self) -> RequestRecord:
        return self.store.records[-1]


def make_settings(folder: Path, text: str = "", **options: Any) -> GatewaySettings:
    """Return settings from the text of a file."""
    path: Path | None = None
    if text:
        path = folder / "gateway.toml"
        path.write_text(text)
    return load_settings(path, server={"port": 0}, store="off", **options)


@asynccontextmanager
async def serve_gateway(settings: GatewaySettings, **options: Any) -> AsyncIterator[Served]:
    """Serve a gateway with these settings."""
    store = KeptRecords()
    gateway = Gateway(settings, store=store, **options)
    await gateway.open()
    server = make_server(gateway)
    sock = bind_socket(settings.server.host, 0)
    ready = asyncio.Event()
    server.on_ready = ready.set
    task = asyncio.get_running_loop().create_task(server.serve(sockets=[sock]))
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    await asyncio.wait_for(ready.wait(), 5)
    try:
        yield Served(gateway, url, store, server)
    finally:
        server.should_exit = True
        server.force_exit = True
        gateway.cut_all()
        await asyncio.wait_for(task, 10)
        await gateway.close()


@asynccontextmanager
async def serve_faults(
    folder: Path, text: str = "", *, protocol: str = "", **options: Any
) -> AsyncIterator[tuple[Served, FaultyProvider]]:
    """Serve a gateway in front of a faulty provider that speaks a format."""
    provider = FaultyProvider()
    async with FaultServer(provider) as upstream:
        url = upstream.url if protocol != "gemini" else upstream.url.replace("/v1", "/v1beta")
        head = (
            f'[upstreams.faults]\nurl = "{url}"\nprotocol = "{protocol or "chat_completions"}"\n'
            'probe = "off"\n'
        )
        settings = make_settings(folder, text.replace("{url}", url) if text else head)
        async with serve_gateway(settings, facts=folder / "facts.db", **options) as served:
            yield served, provider


class Plain:
    """What came back on a plain socket."""

    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if data else 0
        pairs = (line.partition(":") for line in lines[1:])
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if self.headers.get("transfer-encoding") == "chunked":
            self.body = b"".join(_chunks(self.body))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def _chunks(body: bytes) -> Sequence[bytes]:
    found: list[bytes] = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            break
        found.append(body[:length])
        body = body[length + 2 :]
    return found


async def ask(
    served: Served,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Plain:
    """Send one request on a socket of its own, and return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    own = {"host": f"127.0.0.1:{served.port}", "connection": "close"}
    if data:
        own |= {"content-type": "application/json", "content-length": str(len(data))}
    own |= {name.lower(): value for name, value in (headers or {}).items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in own.items() if v), "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + data)
    try:
        return Plain(await asyncio.wait_for(reader.read(), 10))
    finally:
        writer.close()


def chat(model: str = "faults:clean", text: str = CALL, **fields: Any) -> dict[str, Any]:
    """Return a request for chat completions."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "tools": [WEATHER],
        **fields,
    }


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]
