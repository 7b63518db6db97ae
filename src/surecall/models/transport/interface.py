"""The seam between a request and the network, and what every transport has in common."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Self

from surecall.base.records import WireReply, WireRequest


class WireStream(Protocol):
    """An open, successful streamed answer."""

    status: int
    """The HTTP status; never an error, those are raised on opening."""
    headers: dict[str, str]
    """Response headers, names in lower case."""
    attempts: int
    """How many requests it took to get this answer."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the decompressed body as it arrives; raise `ProviderError` when it breaks."""
        ...


class Transport(Protocol):
    """Sends one request and returns what came back, or raises `ProviderError`."""

    async def send(self, request: WireRequest) -> WireReply:
        """Send the request and return the whole answer (status below 300)."""
        ...

    def stream(self, request: WireRequest) -> AbstractAsyncContextManager[WireStream]:
        """Open a streamed answer; leaving the context closes the connection."""
        ...

    async def aclose(self) -> None:
        """Give up all connections."""
        ...


class Closing:
    """An async context manager that closes itself at its end."""

    async def aclose(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
