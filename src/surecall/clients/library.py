"""The HTTP library under an SDK, `httpx` or `httpx2`, in one shape for blocking and waiting use.

Code with `await` serves both: for a blocking client nothing that is awaited ever waits.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from surecall.base.background import run_at_once
from surecall.base.errors import Code, ConfigError
from surecall.models.client.bodies import limit_encodings, open_decoder
from surecall.models.transport import WireLimits

_LIBRARIES: Final = ("httpx2", "httpx")
_FRAMING: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that say how a body is sent, which is another one now."""

_LIMITS: Final = WireLimits()

_MEDIATED: Final = "surecall.mediated"
"""The extension of a request that is on its way from here: nobody below has to look at it."""

Answer = Callable[[Any], Awaitable[Any]]
"""Takes a request of the library and returns a response of it."""


def find_library(*clients: Any) -> ModuleType:
    """Return the library that an HTTP client is of, or else the one that is installed.

    Raises:
        ConfigError: `EXTRA_MISSING`: there is none. `INVALID_OPTION`: there are two. Frameworks
            know one of them, and may go on without a client of the other and without a word.
    """
    for client in clients:
        for base in type(client).__mro__:
            name = base.__module__.partition(".")[0]
            if name in _LIBRARIES:
                return import_module(name)
    found = [name for name in _LIBRARIES if find_spec(name) is not None]
    if len(found) == 1:
        return import_module(found[0])
    if found:
        raise ConfigError(
            Code.INVALID_OPTION,
            "httpx2 and httpx are both installed, and most frameworks take clients of one only.",
            hint="Say which one yours takes, as in surecall.http_client(library=httpx2). "
            "openai and anthropic take httpx2.",
        )
    raise ConfigError(
        Code.EXTRA_MISSING,
        "Neither httpx2 nor httpx is installed.",
        hint="Install the one that your SDK uses; openai and anthropic bring it along.",
    )


class Library:
    """One of the libraries, blocking or not, with something that sends requests."""

    def __init__(self, module: ModuleType, send: Callable[[Any], Any], *, blocks: bool) -> None:
        self._module = module
        self._send = send
        self._blocks = blocks

    async def post(self, request: Any, body: bytes) -> Any:
        """Send a request, which was read, with this body, and return the open response.

        It asks for no encodings but those that are decoded here, within limits. One that is fine as
        it is goes out as it is.
        """
        fields = request.headers
        accepted = fields.get("accept-encoding", "")
        limited = limit_encodings(accepted)
        if limited == accepted and "content-length" in fields and request.content == body:
            return await self.send(request)
        headers: list[tuple[bytes, bytes]] = []
        for name, value in fields.raw:
            known = name.lower().decode("latin-1")
            if known not in _FRAMING:
                headers.append((name, limited.encode() if known == "accept-encoding" else value))
        sent = self._module.Request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )
        return await self.send(sent)

    async def send(self, request: Any) -> Any:
        """Send a request as it is, and return the open response."""
        extensions = request.extensions
        request.extensions = {**extensions, _MEDIATED: True}
        try:
            return self._send(request) if self._blocks else await self._send(request)
        finally:
            request.extensions = extensions

    async def read_request(self, request: Any) -> bytes:
        """Return the whole content of a request."""
        return request.read() if self._blocks else await request.aread()

    async def read(self, response: Any) -> bytes:
        """Return the whole content of a response, decoded.

        Raises:
            ProviderReplyError: It is too large, cut, or in an encoding that is not read.
        """
        limit, code = _LIMITS.max_body_bytes, Code.UPSTREAM_TOO_LARGE
        return b"".join([piece async for piece in self.iterate(response, limit, code)])

    async def iterate(
        self,
        response: Any,
        max_bytes: int = _LIMITS.max_stream_bytes,
        code: Code = Code.STREAM_TOO_LARGE,
    ) -> AsyncIterator[bytes]:
        """Yield the content of a response as it comes, decoded in bounded steps.

        Raises:
            ProviderReplyError: It is too large, cut, or in an encoding that is not read.
        """
        if response.is_stream_consumed:  # somebody has read it, such as a hook of the client
            yield response.content
            return
        encoding = response.headers.get("content-encoding", "")
        decoder = open_decoder(encoding, _LIMITS, max_bytes=max_bytes, code=code)
        async for data in self._iterate_raw(response):
            decoder.feed(data)
            while piece := decoder.step():
                yield piece
        decoder.close()

    async def _iterate_raw(self, response: Any) -> AsyncIterator[bytes]:
        if self._blocks:
            for piece in response.iter_raw():
                yield piece
        else:
            async for piece in response.aiter_raw():
                yield piece

    async def close(self, response: Any) -> None:
        """Close a response, which may not have ended."""
        if self._blocks:
            response.close()
        else:
            await response.aclose()

    def is_failure(self, error: Exception) -> bool:
        """Tell whether an error says that the connection failed."""
        return isinstance(error, (self._module.TransportError, self._module.DecodingError))

    def is_break(self, error: Exception) -> bool:
        """Tell whether an error says that an open connection broke."""
        return isinstance(
            error, (self._module.NetworkError, self._module.RemoteProtocolError)
        ) and (not isinstance(error, self._module.ConnectError))

    def respond(
        self,
        request: Any,
        status: int,
        last: Any,
        headers: Mapping[str, str],
        body: bytes | AsyncIterator[bytes],
        extensions: Mapping[str, Any],
        interrupt: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Return a response of the library.

        Args:
            request: The request that it answers.
            status: Its status.
            last: The endpoint's last response, of which it keeps what holds for it as well.
            headers: Headers that take the place of those of the same name.
            body: Its content, whole or as it comes.
            extensions: Its further facts.
            interrupt: Ends what brings the content, for whoever closes it while another reads.
        """
        changed = dict(headers)
        if isinstance(body, bytes):
            stream = self._module.ByteStream(body)
            changed["content-length"] = str(len(body))
        else:
            blocking, waiting = _make_streams(self._module)
            stream = (blocking if self._blocks else waiting)(body, interrupt)
        dropped = {name.encode() for name in (*_FRAMING, *changed)}
        given: list[tuple[bytes, bytes]] = [] if last is None else last.headers.raw
        kept: list[Any] = [field for field in given if field[0].lower() not in dropped]
        own: dict[str, Any] = {}
        if last is not None and last.status_code == status:
            own = last.extensions
        return self._module.Response(
            status,
            headers=[*kept, *changed.items()],
            request=request,
            stream=stream,
            extensions={**own, **extensions},
        )

    def transport(self, answer: Answer, close: Callable[[], Any] | None) -> Any:
        """Return a transport of the library that has requests answered."""
        blocking, waiting = _make_transports(self._module)
        return (blocking if self._blocks else waiting)(answer, close)


def is_mediated(request: Any) -> bool:
    """Tell whether a request comes from here: its reply is made reliable above."""
    return _MEDIATED in request.extensions


def kept_headers(response: Any) -> dict[str, str]:
    """Return the headers of a response that hold for another body too, names in lower case."""
    return {name: value for name, value in response.headers.items() if name not in _FRAMING}


@cache
def _make_streams(module: ModuleType) -> tuple[Any, Any]:
    """Return a blocking and a waiting stream, with the bases that the library looks for."""

    class Blocking(module.SyncByteStream):
        def __init__(self, pieces: Any, interrupt: Any) -> None:
            self._pieces = pieces
            self._interrupt = interrupt

        def __iter__(self) -> Iterator[bytes]:
            while True:
                try:
                    piece = run_at_once(_next_of(self._pieces))
                except StopAsyncIteration:
                    return
                yield piece

        def close(self) -> None:
            run_at_once(_close(self._pieces, self._interrupt))

    class Waiting(module.AsyncByteStream):
        def __init__(self, pieces: Any, interrupt: Any) -> None:
            self._pieces = pieces
            self._interrupt = interrupt

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._pieces:
                yield piece

        async def aclose(self) -> None:
            await _close(self._pieces, self._interrupt)

    return Blocking, Waiting


@cache
def _make_transports(module: ModuleType) -> tuple[Any, Any]:
    """Return a blocking and a waiting transport, with the bases that the library looks for."""

    class Blocking(module.BaseTransport):
        def __init__(self, answer: Any, close: Any) -> None:
            self._answer = answer
            self._close = close

        def handle_request(self, request: Any) -> Any:
            return run_at_once(self._answer(request))

        def close(self) -> None:
            if self._close is not None:
                self._close()

    class Waiting(module.AsyncBaseTransport):
        def __init__(self, answer: Any, close: Any) -> None:
            self._answer = answer
            self._close = close

        async def handle_async_request(self, request: Any) -> Any:
            return await self._answer(request)

        async def aclose(self) -> None:
            if self._close is not None:
                await self._close()

    return Blocking, Waiting


async def _close(pieces: Any, interrupt: Callable[[], Awaitable[None]]) -> None:
    """Close a stream; one that somebody else reads just now loses its connection instead."""
    try:
        await pieces.aclose()
    except RuntimeError:
        if not pieces.ag_running:
            raise
        await interrupt()


async def _next_of(pieces: AsyncIterator[bytes]) -> bytes:
    return await anext(pieces)
