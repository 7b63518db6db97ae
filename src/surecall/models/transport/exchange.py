"""One request and its answer over aiohttp; only this file of the transports knows aiohttp.

Failures are turned into our errors and raised without a cause: aiohttp's exceptions carry
the request headers, and with them the key.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.tracing import Trace
from yarl import URL

from surecall.base.errors import Code, ProviderError
from surecall.base.redaction import excerpt
from surecall.models.client.bodies import open_decoder, too_large
from surecall.models.client.failures import (
    bad_framing,
    cut_body,
    describe_failure,
    insecure,
    map_failure,
    no_address,
)
from surecall.models.client.limits import WireLimits

from .limits import Watch


class _CleanConnector(aiohttp.TCPConnector):
    """A connector without a limit, whose connections are clean and whose ends are noticed.

    Two habits of aiohttp are mended here. It hands out an idle connection on which bytes have
    arrived unasked: they would be taken for the answer to the next request. And when a chunk is
    malformed in the middle of a body, the reader of that body is not woken up.
    """

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
                closed.add_done_callback(partial(self._wake_reader, protocol))
        return connection

    def note_reader(self, protocol: ResponseHandler, reader: aiohttp.StreamReader) -> None:
        """Remember who reads from a connection, to wake it when it is lost."""
        self._readers[protocol] = reader

    def _wake_reader(self, protocol: ResponseHandler, closed: "asyncio.Future[None]") -> None:
        if not closed.cancelled():
            closed.exception()  # fetched, or asyncio would complain that nobody did
        reader = self._readers.pop(protocol, None)
        if reader is not None and not reader.is_eof() and reader.exception() is None:
            reader.set_exception(protocol.exception() or aiohttp.ServerDisconnectedError())


_SLICE_BYTES: Final = 64 * 1024
_YIELD_EVERY_BYTES: Final = 1024 * 1024
_MAX_STATUS_LINE_BYTES: Final = 16 * 1024
_MAX_HEADER_FIELD_BYTES: Final = 64 * 1024


class _RequestBody(aiohttp.Payload):
    """A request body that tells the watch when it is being sent."""

    _autoclose = True

    def __init__(self, data: bytes, watch: Watch) -> None:
        super().__init__(data, content_type="application/json")
        self._size = len(data)
        self._data = data
        self._watch = watch

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return self._data.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body; every slice that is taken counts as progress."""
        watch, data = self._watch, self._data
        watch.sending()
        if len(data) <= _SLICE_BYTES:
            await writer.write(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), _SLICE_BYTES):
            await writer.write(view[start : start + _SLICE_BYTES])
            watch.sending()


class Wire:
    """Connections in one event loop: no cookies, no proxies, no decoding, no redirects."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._connector = _CleanConnector()
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=dict(headers),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            trust_env=False,
            max_line_size=_MAX_STATUS_LINE_BYTES,
            max_field_size=_MAX_HEADER_FIELD_BYTES,
        )

    async def aclose(self) -> None:
        """Give up all connections."""
        await self._session.close()

    async def post(
        self, url: URL, data: bytes, headers: Mapping[str, str] | None, watch: Watch
    ) -> "Answer":
        """Send the request and return its answer once the headers are there."""
        try:
            response = await self._session.post(
                url, data=_RequestBody(data, watch), headers=headers, allow_redirects=False
            )
        except asyncio.CancelledError:
            error = watch.convert()
            if error is None:
                watch.stop()
                raise
        except Exception as failure:
            error = _map_failure(failure)
        else:
            watch.receiving()
            return self._answer(response, watch)
        watch.stop()
        raise error

    def _answer(self, response: aiohttp.ClientResponse, watch: Watch) -> "Answer":
        connection = response.connection
        protocol = connection.protocol if connection is not None else None
        if protocol is not None:
            self._connector.note_reader(protocol, response.content)
        return Answer(response, protocol, watch)


class Answer:
    """An answer whose headers have arrived."""

    __slots__ = ("_protocol", "_response", "_watch", "headers", "status")

    def __init__(
        self, response: aiohttp.ClientResponse, protocol: ResponseHandler | None, watch: Watch
    ) -> None:
        self._response = response
        self._protocol = protocol
        self._watch = watch
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    def check_framing(self) -> ProviderError | None:
        """Return what makes the end of the body ambiguous, if anything does."""
        coding = self.headers.get("transfer-encoding")
        length = self.headers.get("content-length")
        if coding is not None and length is not None:
            return bad_framing("has both a length and a transfer encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            return bad_framing(f"uses the transfer encoding {excerpt(coding, 40)!r}")
        if length is not None and len(self._response.headers.getall("content-length")) > 1:
            return bad_framing("has more than one length")
        return None

    async def read_all(self, limits: WireLimits) -> bytes:
        """Return the whole body, decompressed."""
        code = Code.UPSTREAM_TOO_LARGE
        max_bytes = limits.max_body_bytes
        if (self._response.content_length or 0) > max_bytes:
            raise too_large(code, max_bytes)
        encoding = self.headers.get("content-encoding", "")
        decoder = open_decoder(encoding, limits, max_bytes=max_bytes, code=code)
        pieces: list[bytes] = []
        unyielded_bytes = 0
        while data := await self.next_raw():
            decoder.feed(data)
            while piece := decoder.step():
                pieces.append(piece)
                unyielded_bytes += len(piece)
                if unyielded_bytes >= _YIELD_EVERY_BYTES:
                    unyielded_bytes = 0
                    await self.breathe()
        decoder.close()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def read_start(self, limits: WireLimits) -> bytes:
        """Return the readable start of an error body; how it ends does not matter."""
        encoding = self.headers.get("content-encoding", "")
        wanted = limits.max_error_body_bytes
        found = bytearray()
        try:
            decoder = open_decoder(
                encoding, limits, max_bytes=limits.max_body_bytes, code=Code.UPSTREAM_TOO_LARGE
            )
            while len(found) < wanted and (data := await self.next_raw()):
                decoder.feed(data)
                while len(found) < wanted and (piece := decoder.step()):
                    found += piece
        except ProviderError:
            pass
        return bytes(found[:wanted])

    async def next_raw(self) -> bytes:
        """Return the bytes that have arrived, waiting for some; nothing at the end."""
        try:
            data = await self._response.content.readany()
        except asyncio.CancelledError:
            error = self._watch.convert()
            if error is None:
                self.close()
                raise
        except Exception as failure:
            error = self._map_read_failure(failure)
        else:
            error = self._check_end() if not data else None
            if error is None:
                self._watch.receiving()
                return data
        self.close()
        raise error

    async def wait_raw(self) -> bytes:
        """Like `next_raw`, for a caller that takes its time in between."""
        self._watch.resume()
        try:
            return await self.next_raw()
        finally:
            self._watch.pause()

    def pause(self) -> None:
        """Stop the clock until somebody waits again."""
        self._watch.pause()

    async def breathe(self) -> None:
        """Let other tasks run, in the middle of work that has not waited for long."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            error = self._watch.convert()
            self.close()
            if error is None:
                raise
        else:
            return
        raise error

    def close(self) -> None:
        """Stop watching, and give up the connection unless the answer was read to its end."""
        self._watch.stop()
        self._response.close()

    def _check_end(self) -> ProviderError | None:
        """Return the error when a body that only its connection ends was ended by a failure.

        aiohttp takes any end of such a connection for the end of the body, also a reset.
        """
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        broken = self._protocol.exception() if self._protocol is not None else None
        return _map_failure(broken) if not framed and isinstance(broken, OSError) else None

    def _map_read_failure(self, failure: Exception) -> ProviderError:
        broken = self._protocol.exception() if self._protocol is not None else None
        if isinstance(failure, aiohttp.ClientPayloadError) and not isinstance(broken, OSError):
            if isinstance(broken, HttpProcessingError):
                return bad_framing("is not framed as its headers say")
            return cut_body(self.status)
        return _map_failure(broken if isinstance(broken, OSError) else failure)


def _map_failure(failure: Exception) -> ProviderError:
    """Return our error for whatever aiohttp or the operating system raised."""
    if isinstance(failure, aiohttp.ClientConnectorDNSError):
        return no_address()
    if isinstance(failure, aiohttp.ClientSSLError):
        return insecure(_cause(failure))
    if isinstance(failure, aiohttp.ClientResponseError | HttpProcessingError):
        return bad_framing(f"is not valid HTTP ({describe_failure(failure)})")
    if isinstance(failure, aiohttp.ClientPayloadError):
        return bad_framing("is not framed as its headers say")
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return map_failure(None)
    return map_failure(_cause(failure))


def _cause(failure: Exception) -> Exception:
    return failure.os_error if isinstance(failure, aiohttp.ClientConnectorError) else failure
