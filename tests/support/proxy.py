"""An HTTP proxy for tests: it opens ways with CONNECT, forwards plain requests, and can be nasty.

    async with ConnectProxy({"api.test:443": upstream.port}, password="open sesame") as proxy:
        Network(https_proxy=proxy.url_with("user", "open sesame"))

Names lead to ports of this machine as the test says; nothing is looked up.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

Mood = Literal["works", "refuses", "hangs", "leaves", "babbles"]


class ConnectProxy:
    """A proxy on loopback."""

    def __init__(
        self,
        places: Mapping[str, int],
        *,
        password: str = "",
        mood: Mood = "works",
        scheme: str = "Basic",
        certificate: Path | None = None,
    ) -> None:
        self._places = places
        self._auth = f"Basic {b64encode(f'user:{password}'.encode()).decode()}" if password else ""
        self._mood = mood
        self._scheme = scheme
        self._certificate = certificate
        self._tasks: set[asyncio.Task[Any]] = set()
        self.asked: list[str] = []
        """The first lines of all requests."""
        self.heads: list[str] = []

    async def __aenter__(self) -> Self:
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self._certificate else 'http'}://127.0.0.1:{self.port}"

    def url_with(self, user: str, password: str) -> str:
        """Return its address with a user and a password."""
        return self.url.replace("://", f"://{quote(user, '')}:{quote(password, '')}@")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, _, rest = head.partition("\r\n")
        self.asked.append(first)
        self.heads.append(head)
        method, target, _ = first.split(" ")
        if self._mood == "hangs":
            await reader.read()
            return
        if self._mood == "leaves":
            return
        if self._mood == "babbles":
            writer.write(b"220 mail.test ESMTP\r\n\r\n")
            return
        if self._auth and f"proxy-authorization: {self._auth}".lower() not in head.lower():
            writer.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n"
                b'Proxy-Authenticate: %b realm="tests"\r\n\r\n' % self._scheme.encode()
            )
            return
        if self._mood == "refuses":
            writer.write(b"HTTP/1.1 403 Filtered\r\ncontent-length: 0\r\n\r\n")
            return
        if method == "CONNECT":
            there, back = await asyncio.open_connection("127.0.0.1", self._places[target])
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            host, slash, path = target.removeprefix("http://").partition("/")
            there, back = await asyncio.open_connection("127.0.0.1", self._places[host])
            kept = [line for line in rest.split("\r\n") if not line.lower().startswith("proxy-")]
            back.write(f"{method} {slash}{path} HTTP/1.1\r\n".encode() + "\r\n".join(kept).encode())
        try:
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
        finally:
            back.close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(64 * 1024):
            target.write(data)
            await target.drain()
    target.close()
