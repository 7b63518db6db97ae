"""How fast a model writes: when a streamed reply began, and how long it went on."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from surecall.base.records import WireReply, WireRequest
from surecall.models.transport import Transport, WireStream


class TimedTransport:
    """Passes everything on, and looks at the clock while a reply is streamed."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.first_token_ms: float | None = None
        """From the first request to the first piece of its reply."""
        self.writing_ms = 0.0
        """From the first piece of a reply to its end, over all replies."""

    async def send(self, request: WireRequest) -> WireReply:
        """Send a request whose reply is not streamed."""
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[WireStream, None]:
        """Open a stream and time its pieces."""
        started = time.perf_counter()
        async with self._inner.stream(request) as stream:
            timed = _TimedStream(stream)
            try:
                yield timed
            finally:
                self._note(started, timed.first)

    def _note(self, started: float, first: float | None) -> None:
        if first is not None:
            self.writing_ms += (time.perf_counter() - first) * 1000
            if self.first_token_ms is None:
                self.first_token_ms = (first - started) * 1000

    async def aclose(self) -> None:
        """Close nothing: the transport inside belongs to whoever opened it."""

    def measure_speed(self, output_tokens: int) -> float | None:
        """Return the tokens per second at which replies were written; None when it is not known."""
        return output_tokens / self.writing_ms * 1000 if self.writing_ms and output_tokens else None


class _TimedStream:
    """A stream that remembers when its first piece arrived."""

    def __init__(self, inner: WireStream) -> None:
        self.status, self.headers, self.attempts = inner.status, inner.headers, inner.attempts
        self.first: float | None = None
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            if self.first is None:
                self.first = time.perf_counter()
            yield chunk
