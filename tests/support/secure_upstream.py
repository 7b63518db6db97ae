"""A scripted upstream behind TLS, or not.

async with SecureUpstream([[reply()]], authority.issue("api.test")) as upstream: ...
"""

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from .upstream import FaultyUpstream


class SecureUpstream(FaultyUpstream):
    """A faulty upstream on loopback with a certificate.

    Args:
        scripts: What it answers.
        certificate: Its certificate and key in one file; without one there is no TLS.
        asks_for: The authority of the certificates that clients must show.
        greeting: What it says before anybody asks.
    """

    def __init__(
        self,
        scripts: Any,
        certificate: Path | None = None,
        *,
        asks_for: Path | None = None,
        greeting: Sequence[bytes] = (),
    ) -> None:
        super().__init__(scripts, greeting=greeting)
        self._certificate = certificate
        self._asks_for = asks_for
        self.names: list[str | None] = []
        """The names that clients asked for."""

    async def __aenter__(self) -> Self:
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            context.sni_callback = lambda _sock, name, _context: self.names.append(name)
            if self._asks_for is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self._asks_for)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self
