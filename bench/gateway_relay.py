"""A bare relay, the floor of what a gateway in Python costs: bytes in, bytes out, nothing read.

    python bench/gateway_relay.py PORT UPSTREAM_PORT

It finds where a request ends by its length, gives it to a connection of its own to the upstream,
and passes on what comes back. Nothing is checked, limited, recorded or counted; it has no
deadlines and serves one client at a time on a connection.
"""

import asyncio
import sys


class Upstream(asyncio.Protocol):
    """Gives everything that the upstream sends to the client."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.transport.close()


class Client(asyncio.Protocol):
    """Takes the requests of a client."""

    transport: asyncio.Transport

    def __init__(self, upstream_port: int) -> None:
        self._port = upstream_port
        self._upstream: asyncio.Transport | None = None
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        if self._upstream is not None:
            self._upstream.close()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        at = head.lower().find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) < length:
            return
        request, self._data = self._data, b""
        if self._upstream is not None:
            self._upstream.write(request)
        else:
            self._connecting = asyncio.ensure_future(self._connect(request))

    async def _connect(self, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: Upstream(self), "127.0.0.1", self._port)
        self._upstream = transport
        transport.write(request)


async def serve(port: int, upstream_port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Client(upstream_port), "127.0.0.1", port, backlog=4096
    )
    await server.serve_forever()


if __name__ == "__main__":
    running = serve(int(sys.argv[1]), int(sys.argv[2]))
    try:
        import uvloop
    except ImportError:
        asyncio.run(running)
    else:
        uvloop.run(running)
