"""Connections that are only used again when they are clean, and whose end is always noticed.

Two habits of aiohttp are mended here. It hands out an idle connection on which bytes have
arrived unasked: they would be taken for the answer to the next request. And when a chunk is
malformed in the middle of a body, the reader of that body is not woken up.
"""

import asyncio
from functools import partial
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

__all__ = ["CleanConnector"]


class CleanConnector(aiohttp.TCPConnector):
    """A connector without a limit on the number of connections."""

    def __init__(self) -> None:
        super().__init__(limit=0)  # pyright: ignore[reportUnknownMemberType] - aiohttp's annotation
        self._readers: WeakKeyDictionary[ResponseHandler, aiohttp.StreamReader | None] = (
            WeakKeyDictionary()
        )

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the overridden signature
    ) -> Connection:
        """Return a connection on which nothing has arrived yet."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is None or not protocol.should_close:
                break
            connection.close()
        if protocol is not None and protocol not in self._readers:
            self._readers[protocol] = None
            closed = protocol.closed
            if closed is not None:
                closed.add_done_callback(partial(self._tell_reader, protocol))
        return connection

    def note_reader(self, protocol: ResponseHandler, reader: aiohttp.StreamReader) -> None:
        """Remember who reads from a connection, to be told when it is lost."""
        self._readers[protocol] = reader

    def _tell_reader(self, protocol: ResponseHandler, closed: "asyncio.Future[None]") -> None:
        if not closed.cancelled():
            closed.exception()  # fetched, or asyncio would complain that nobody did
        reader = self._readers.pop(protocol, None)
        if reader is not None and not reader.is_eof() and reader.exception() is None:
            reader.set_exception(protocol.exception() or aiohttp.ServerDisconnectedError())
