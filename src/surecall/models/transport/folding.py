"""One exchange with a transport: what it streams is folded, and it can always be given up."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter
from typing import Final, TypeVar

from msgspec.structs import replace

from surecall.base.background import read_aside, run_apart
from surecall.wire import RawReply, StreamDelta, StreamFolder

from .http import HttpTransport
from .interface import Transport, WireStream

_T = TypeVar("_T")

_SLICE_BYTES: Final = 8 * 1024
_SLICE_CHARS: Final = 8 * 1024
_MAX_INLINE_BYTES: Final = 256 * 1024
"""A longer line, and the end of a longer stream, is read in a thread."""
_MAX_BUSY_S: Final = 0.01
"""How long a stream is worked on before other tasks get their turn."""


async def ask_transport(transport: Transport, ask: Callable[[], Awaitable[_T]]) -> _T:
    """Await one exchange; a transport that does not react to cancellation is abandoned."""
    if isinstance(transport, HttpTransport):  # it does
        return await ask()
    outcome = await run_apart(ask, what=f"a request to {type(transport).__name__}")
    assert outcome is not None
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


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
    return await read_aside(folder.close, is_long=total_bytes > _MAX_INLINE_BYTES)


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
