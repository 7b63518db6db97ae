"""A server: it listens, keeps connections and tasks, and ends in good order."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from surecall.base.limits import MAX_BODY_BYTES

from .http_connection import Application, HttpConnection, ServingLimits


class ServerLimits(Struct, frozen=True, kw_only=True):
    """How long a client may take to send a request, and how large it may be."""

    header_s: float = 10.0
    """Until all headers have arrived, from the connection or the first byte of a later request."""
    body_s: float = 60.0
    """Until the whole body has arrived."""
    min_body_bytes_per_s: int = 1024
    """How fast the body has to come, on average over any `header_s`."""
    idle_s: float = 75.0
    """How long a connection is kept between two requests."""
    max_header_bytes: int = 32 * 1024
    max_body_bytes: int = MAX_BODY_BYTES
    max_connections: int = 512
    max_unsent_bytes: int = 64 * 1024
    """How much is held for a client that reads slowly."""


class HttpServer:
    """Serves an application on a socket.

    Args:
        app: A function of ASGI.
        limits: How long a client may take, and how much is taken of it.
        make: Makes a connection; it is given the server.
    """

    def __init__(
        self,
        app: Application,
        limits: ServingLimits,
        make: Callable[["HttpServer"], HttpConnection] = HttpConnection,
    ) -> None:
        self.app = app
        self.limits = limits
        self.connections: set[HttpConnection] = set()
        self.tasks: set[asyncio.Task[Any]] = set()
        self._make = make
        self._listener: asyncio.Server | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Begin to take connections."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: self._make(self), sock=sock)

    def close_listener(self) -> None:
        """Take no more connections."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def drain(self, within_s: float) -> None:
        """Let what is under way end, each connection after its answer; cut what does not."""
        self.close_listener()
        for connection in list(self.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while (self.connections or self.tasks) and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(min(0.02, max(0.0, until - loop.time())))
        self.cut()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def cut(self) -> None:
        """End everything now."""
        self.close_listener()
        for task in self.tasks:
            task.cancel()
        for connection in list(self.connections):
            connection.transport.abort()
