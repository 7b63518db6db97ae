"""A gateway over loopback, in the loop of the test, in front of a faulty provider."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from surecall.faults import FaultServer, FaultyProvider
from surecall.gateway.app import Gateway
from surecall.gateway.server import GatewayServer, bind_socket
from surecall.gateway.settings.load import GatewaySettings, load_settings
from surecall.store.records.record import RequestRecord
from surecall.store.records.store import StoreCounts

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

    is_full = False

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self.counts = StoreCounts()
        self.is_full = False

    async def add(self, record: RequestRecord) -> None:
        await asyncio.sleep(0)
        self.records.append(record)

    def add_soon(self, record: RequestRecord) -> None:
        self.records.append(record)

    async def find_latest(self, _skipped: int) -> str:
        """Find nothing to remove."""
        return ""

    async def remove_some(self, _last: str) -> tuple[int, bool]:
        """Remove nothing."""
        return 0, False

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
async def serve_gateway(settings: GatewaySettings, **options: Any) -> AsyncGenerator[Served]:
    """Serve a gateway with these settings; `store` keeps its records, by default a list."""
    store: Any = options.pop("store", None) or KeptRecords()
    gateway = Gateway(settings, store=store, **options)
    await gateway.open()
    server = GatewayServer(gateway)
    sock = bind_socket(settings.server.host, 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    await server.startup(sock)
    try:
        yield Served(gateway, url, store, server)
    finally:  # quicker than the end that a signal brings
        gateway.cut_all()
        server.http.close_listener()
        await asyncio.gather(*server.http.tasks, return_exceptions=True)
        server.http.cut()
        sock.close()
        await gateway.close()
        await asyncio.sleep(0)


@asynccontextmanager
async def serve_faults(
    folder: Path, text: str = "", *, protocol: str = "", **options: Any
) -> AsyncGenerator[tuple[Served, FaultyProvider]]:
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
        return Plain(await asyncio.wait_for(reader.read(), 60))
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


class Stub:
    """An upstream that does what a test says, and notes what it sees."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()
        self.answers: list[Any] = []
        """Bytes to send, seconds or something to wait for, or None to close; the last one stays."""
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                self.heads.append(head)
                length = next(
                    (
                        int(line.split(":")[1])
                        for line in head.lower().split("\r\n")
                        if line.startswith("content-length:")
                    ),
                    0,
                )
                self.bodies.append(await reader.readexactly(length))
                self.asked.set()
                turn = min(len(self.heads), len(self.answers)) - 1
                for step in self.answers[turn]:
                    if step is None:
                        return
                    if isinstance(step, bytes):
                        writer.write(step)
                        await writer.drain()
                        continue
                    if not isinstance(step, int | float):
                        await step()
                        continue
                    waiting = asyncio.ensure_future(reader.read(1))
                    done, _ = await asyncio.wait({waiting}, timeout=step)
                    if done:
                        self.gone.set()
                        return
                    waiting.cancel()
                    await asyncio.gather(waiting, return_exceptions=True)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serve_stub(*answers: Any) -> AsyncGenerator[Stub]:
    """Serve a stub with these answers, one list of steps for each request."""
    stub = Stub()
    stub.answers = list(answers)
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
    stub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield stub
    finally:
        server.close()


def reply(body: Any, status: int = 200, **headers: str) -> bytes:
    """Return a whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content-type": "application/json", "content-length": str(len(data))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in fields.items()), "", ""]
    return "\r\n".join(lines).encode() + data


def completion(text: str = "Hello.") -> dict[str, Any]:
    """Return a reply of chat completions."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def piece(text: str, finish: str | None = None) -> bytes:
    """Return one event of a stream of chat completions, as a chunk."""
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    event = {"id": "c-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return chunk(b"data: " + json.dumps(event).encode() + b"\n\n")


def chunk(data: bytes) -> bytes:
    """Return bytes as a chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM_END = chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


@asynccontextmanager
async def serve_stubbed(
    folder: Path, *answers: Any, text: str = "", **options: Any
) -> AsyncGenerator[tuple[Served, Stub]]:
    """Serve a gateway in front of a stub; `text` comes behind the table of the upstream."""
    async with serve_stub(*answers) as stub:
        head = f'[upstreams.stub]\nurl = "{stub.url}"\nprobe = "off"\n'
        async with serve_gateway(
            make_settings(folder, head + text), facts=folder / "facts.db", **options
        ) as served:
            yield served, stub
