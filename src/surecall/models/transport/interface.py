"""The seam between a request and the network, and what every transport has in common."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from time import perf_counter
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from msgspec.structs import replace

from surecall.base.background import read_in_thread, run_bounded
from surecall.base.errors import ProviderError
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import WireReply, WireRequest
from surecall.wire import RawReply, StreamDelta, StreamFolder, WireProtocol
from surecall.wire.replies import DeltaMask


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


class PreparedStream:
    """A streamed answer whose pieces are all there, and the error that it ends with, if any."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: Iterable[bytes],
        failure: ProviderError | None = None,
        *,
        attempts: int = 1,
    ) -> None:
        self.status = status
        self.headers = dict(headers)
        self.attempts = attempts
        self._pieces = iter(pieces)
        self._failure = failure

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        for piece in self._pieces:
            return piece
        if self._failure is not None:
            raise self._failure
        raise StopAsyncIteration


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


_T = TypeVar("_T")

_SLICE_BYTES: Final = 8 * 1024
_SLICE_CHARS: Final = 8 * 1024
_MAX_INLINE_BYTES: Final = 256 * 1024
"""A longer line, and the end of a longer stream, is read in a thread."""
_MAX_BUSY_S: Final = 0.01
"""How long a stream is worked on before other tasks get their turn."""


async def ask_transport(transport: Transport, ask: Callable[[], Awaitable[_T]]) -> _T:
    """Await one exchange; a transport that does not react to cancellation is abandoned."""
    if getattr(transport, "heeds_cancellation", False):
        return await ask()
    outcome = await run_bounded(ask, what=f"a request to {type(transport).__name__}")
    assert outcome is not None
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


class Exchanged(NamedTuple):
    """What came back for one request, parsed as far as its wire format goes."""

    raw: RawReply
    headers: dict[str, str]
    attempts: int
    came_whole: bool = True
    """Whether it came in one piece, though it may have been asked for as a stream."""
    body: bytes = b""
    """The bytes of one that did."""


async def exchange(
    transport: Transport,
    protocol: WireProtocol,
    wire: WireRequest,
    *,
    on_delta: Callable[[StreamDelta], None] | None = None,
    skip_bad_events: bool = False,
) -> Exchanged:
    """Send one request, whole or streamed, and return the reply; `on_delta` gets its pieces."""
    if wire.stream:
        fold = partial(_exchange_stream, transport, protocol, wire, on_delta, skip_bad_events)
        return await ask_transport(transport, fold)
    answer = await ask_transport(transport, partial(transport.send, wire))
    parse = partial(protocol.parse_body, answer.body, answer.headers)
    raw = await read_in_thread(parse, is_long=len(answer.body) > MAX_INLINE_CHARACTERS)
    return Exchanged(raw, answer.headers, answer.attempts, body=answer.body)


async def _exchange_stream(
    transport: Transport,
    protocol: WireProtocol,
    wire: WireRequest,
    on_delta: Callable[[StreamDelta], None] | None,
    skip_bad_events: bool,
) -> Exchanged:
    shown = None if on_delta is None else DeltaMask(on_delta)
    async with transport.stream(wire) as stream:
        folder = protocol.open_stream(stream.headers, skip_bad_events=skip_bad_events)
        is_cut = True
        try:
            raw = await fold_stream(stream, folder, None if shown is None else shown.feed)
            is_cut = False
        finally:
            if shown is not None:
                shown.close(is_cut=is_cut)
        return Exchanged(raw, stream.headers, stream.attempts, folder.came_whole)


async def fold_stream(
    stream: WireStream,
    folder: StreamFolder,
    on_delta: Callable[[StreamDelta], None] | None = None,
) -> RawReply:
    """Feed a folder all that a stream brings, pass on what can be shown, and return the reply.

    However much arrives at once, and in however many events, other tasks get their turns.
    """
    task = asyncio.current_task()
    cancelling = task.cancelling() if task is not None else 0
    busy_s = 0.0
    total_bytes = line_bytes = 0
    async for chunk in stream:
        if task is not None and task.cancelling() > cancelling:
            raise asyncio.CancelledError  # the stream has swallowed it
        began = perf_counter() - busy_s
        total_bytes += len(chunk)
        for start in range(0, len(chunk), _SLICE_BYTES):
            piece = chunk[start : start + _SLICE_BYTES]
            line_end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
            if line_end >= 0 and line_bytes > _MAX_INLINE_BYTES:
                deltas = await asyncio.to_thread(folder.feed, piece)
                began = perf_counter()
            else:
                deltas = folder.feed(piece)
            line_bytes = len(piece) - line_end - 1 + (line_bytes if line_end < 0 else 0)
            for _ in _show(deltas, on_delta):
                if perf_counter() - began >= _MAX_BUSY_S:
                    await asyncio.sleep(0)
                    began = perf_counter()
        if folder.done:
            break
        busy_s = perf_counter() - began
    return await read_in_thread(folder.close, is_long=total_bytes > _MAX_INLINE_BYTES)


def _show(
    deltas: list[StreamDelta], on_delta: Callable[[StreamDelta], None] | None
) -> Iterator[None]:
    """Pass on what can be shown in small steps, after each of which there may be a break."""
    for delta in deltas:
        if on_delta is None or not delta.text:
            continue
        for at in range(0, len(delta.text), _SLICE_CHARS):
            is_short = len(delta.text) <= _SLICE_CHARS
            piece = delta.text[at : at + _SLICE_CHARS]
            on_delta(delta if is_short else replace(delta, text=piece, extra={}))
            yield
    yield
