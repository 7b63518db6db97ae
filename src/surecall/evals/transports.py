"""What lies between a trial and its endpoint: the pace, kept replies, and a clock.

An endpoint is asked as fast as it answers, and slower each time it refuses. A refusal that passes,
such as a status of 429 or 503, is waited out and not given to the trial.
All trials that ask one endpoint share its pace. It falls by a factor with a refusal and rises by
a constant with time (AIMD). The time that a request waits is not the trial's own.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ProviderError
from surecall.base.files import PRIVATE, explain_write_errors, write_whole
from surecall.base.records import WireReply, WireRequest
from surecall.evals.cases import Case, Contender, OpenTransport, close_transports
from surecall.evals.records import Unit
from surecall.loop import pause_deadline
from surecall.models.transport import Transport, WireStream
from surecall.text import canonical_hash

T = TypeVar("T")

MAX_WAIT_S: Final = 300.0
"""How long a request that is refused again and again is waited for."""
_REFUSALS: Final = frozenset({429, 503, 529})
_BACK_OFF: Final = 0.7
_MIN_RATE: Final = 1 / 30
_RISE: Final = 0.1
"""Requests a second that are added in a second, or the share of the fastest pace below."""
_RISE_SHARE: Final = 0.01
_WINDOW_S: Final = 1.0


def is_pressed(error: ProviderError) -> bool:
    """Tell whether an endpoint refused because it was asked too much, and may be asked again."""
    return error.retryable and error.status in _REFUSALS


class Pace:
    """How fast one endpoint may be asked; without a limit until it refuses."""

    def __init__(self, max_wait_s: float = MAX_WAIT_S) -> None:
        self.rate: float | None = None
        """Requests a second."""
        self._max_wait_s = max_wait_s
        self._fastest = 0.0
        self._next_at = 0.0
        self._lowered_at = 0.0
        self._silent_since: float | None = None
        self._asked: deque[float] = deque()
        self._turn = asyncio.Lock()

    async def ask(self, attempt: Callable[[], Awaitable[T]]) -> tuple[T, int, float]:
        """Ask until there is an answer; return it, the attempts before it and the time waited.

        Raises:
            ProviderError: It is no refusal that passes, or waiting took too long.
        """
        arrived, refused_at, refusals, waited_s = time.monotonic(), 0.0, 0, 0.0
        while True:
            with pause_deadline():
                await self._take_turn()
            began = time.monotonic()
            waited_s += began - arrived
            try:
                answer = await attempt()
            except ProviderError as error:
                if not is_pressed(error):
                    self._note_answer()
                    raise
                arrived = time.monotonic()
                refused_at, refusals = refused_at or arrived, refusals + error.attempts
                self._note_refusal(began, error.retry_after_s or 0.0)
                self._check_patience(error, arrived - refused_at)
            else:
                self._note_answer()
                return answer, refusals, waited_s

    async def _take_turn(self) -> None:
        if self.rate is not None and not self._is_hopeless():
            async with self._turn:
                while (left := self._next_at - time.monotonic()) > 0:
                    if self._is_hopeless():
                        break
                    await asyncio.sleep(left)
                self._next_at = time.monotonic() + 1 / self.rate
        now = time.monotonic()
        self._asked.append(now)
        while self._asked[0] < now - _WINDOW_S:
            self._asked.popleft()

    def _is_hopeless(self) -> bool:
        """Tell whether the endpoint has refused everything for longer than anybody waits."""
        since = self._silent_since
        return since is not None and time.monotonic() - since > self._max_wait_s

    def _note_answer(self) -> None:
        self._silent_since = None
        if self.rate is not None:
            self.rate += max(_RISE, _RISE_SHARE * self._fastest) / self.rate

    def _note_refusal(self, began: float, retry_after_s: float) -> None:
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if began >= self._lowered_at:  # what was asked before tells of the same moment
            if self.rate is None:
                self.rate = self._fastest = max(1.0, len(self._asked) / _WINDOW_S)
            self.rate = max(_MIN_RATE, self.rate * _BACK_OFF)
            self._lowered_at = now
        if retry_after_s <= self._max_wait_s:
            self._next_at = max(self._next_at, now + retry_after_s)

    def _check_patience(self, error: ProviderError, refused_s: float) -> None:
        """Raise the refusal, and say how long it was waited for, once that is too long."""
        asked_s = error.retry_after_s or 0.0
        if refused_s + asked_s <= self._max_wait_s and not self._is_hopeless():
            return
        since = self._silent_since or time.monotonic()
        shown_s = max(refused_s, time.monotonic() - since)
        words = (
            f"It asks to wait {asked_s:g} s; --max-wait allows {self._max_wait_s:g} s."
            if asked_s > self._max_wait_s
            else f"It refused for {shown_s:.0f} s, also at {self.rate or 0:.2g} requests a second; "
            f"--max-wait allows {self._max_wait_s:g} s."
        )
        error.hint = f"{error.hint} {words}" if error.hint else words
        raise error


class PacedTransport:
    """Asks an endpoint at its pace, and counts how long a trial waited for it."""

    def __init__(self, inner: Transport, pace: Pace) -> None:
        self._inner = inner
        self._pace = pace
        self.waited_s = 0.0

    async def send(self, request: WireRequest) -> WireReply:
        """Send a request when it is its turn."""
        reply, refusals, waited_s = await self._pace.ask(lambda: self._inner.send(request))
        self.waited_s += waited_s
        return replace(reply, attempts=reply.attempts + refusals) if refusals else reply

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[WireStream, None]:
        """Open a stream when it is its turn."""
        async with AsyncExitStack() as stack:
            stream, refusals, waited_s = await self._pace.ask(
                lambda: stack.enter_async_context(self._inner.stream(request))
            )
            self.waited_s += waited_s
            stream.attempts += refusals
            yield stream

    async def aclose(self) -> None:
        """Close nothing: the transport inside belongs to whoever opened it."""


_KEPT_HEADERS: Final = frozenset({"content-type", "request-id", "x-request-id"})
_FORM: Final = 1
"""Changes when files of before can no longer be read."""


class CachedTransport:
    """Looks for a reply in a folder before it asks; what is asked is kept there.

    Only whole replies are kept; streams and errors are not.
    """

    def __init__(
        self,
        open_inner: Callable[[], Awaitable[Transport]],
        folder: Path,
        identity: dict[str, Any],
    ) -> None:
        """Take where replies come from.

        Args:
            open_inner: Opens what asks the model, once a reply is not there: a run whose replies
                are all kept needs neither key nor weights.
            folder: Where replies are kept.
            identity: What tells requests of equal bytes apart: model, address and trial.
        """
        self._open_inner = open_inner
        self._opening: asyncio.Future[Transport] | None = None
        self._folder = folder
        self._identity = identity
        self.hits = 0
        """Replies that were there."""
        self.saved_ms = 0.0
        """How long these took when they were asked for."""
        self.opening_ms = 0.0
        """How long it took until a model could be asked, such as to load it."""

    async def send(self, request: WireRequest) -> WireReply:
        """Return the kept reply to this very request, or ask and keep the reply."""
        place = self._place_of(request)
        found = await asyncio.to_thread(_read, place)
        if found is not None:
            self.hits += 1
            self.saved_ms += found.elapsed_ms
            return found
        inner = await self._open()
        started = time.perf_counter() - self.waited_s
        reply = await inner.send(request)
        elapsed_ms = (time.perf_counter() - started - self.waited_s) * 1000
        headers = {name: text for name, text in reply.headers.items() if name in _KEPT_HEADERS}
        kept = _KeptReply(reply.status, headers, reply.body, elapsed_ms)
        await asyncio.to_thread(_write, place, kept)
        return reply

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[WireStream, None]:
        """Ask for a stream, which is not kept."""
        inner = await self._open()
        async with inner.stream(request) as stream:
            yield stream

    async def aclose(self) -> None:
        """Close nothing: the transport inside belongs to whoever opened it."""

    @property
    def waited_s(self) -> float:
        """How long the transport inside waited for its turn."""
        if self._opening is None or not self._opening.done():
            return 0.0
        return getattr(self._opening.result(), "waited_s", 0.0)

    async def _open(self) -> Transport:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_now())
        return await asyncio.shield(self._opening)

    async def _open_now(self) -> Transport:
        started = time.perf_counter()
        inner = await self._open_inner()
        self.opening_ms = (time.perf_counter() - started) * 1000
        return inner

    def _place_of(self, request: WireRequest) -> Path:
        key = canonical_hash(
            {
                "form": _FORM,
                **self._identity,
                "path": request.path,
                "headers": request.headers,
                "body": request.body,
            }
        )
        return self._folder / key[:2] / f"{key}.reply"


class CachedOpener:
    """Opens transports that look into a folder first; simulated models are always asked."""

    def __init__(self, open_transport: OpenTransport, folder: str | Path) -> None:
        self._open_transport = open_transport
        self._folder = Path(folder)

    @asynccontextmanager
    async def __call__(
        self, contender: Contender, unit: Unit, case: Case
    ) -> AsyncGenerator[Transport, None]:
        """Open a transport to a model for one trial."""
        async with AsyncExitStack() as stack:

            async def open_inner() -> Transport:
                return await stack.enter_async_context(self._open_transport(contender, unit, case))

            if contender.kind == "simulated":
                yield await open_inner()
                return
            identity = {
                "model": contender.model,
                "address": contender.base_url,
                "protocol": contender.protocol,
                # Trials of one case send the same request, and must not share one reply.
                "trial": unit.trial,
            }
            yield CachedTransport(open_inner, self._folder, identity)

    async def aclose(self) -> None:
        """Close what is open."""
        await close_transports(self._open_transport)


class _KeptReply(Struct, array_like=True):
    """A reply as it is kept in a file."""

    status: int
    headers: dict[str, str]
    body: bytes
    elapsed_ms: float


def _read(place: Path) -> WireReply | None:
    """Return a kept reply; a file that is not there or not whole is none."""
    try:
        kept = msgspec.msgpack.decode(place.read_bytes(), type=_KeptReply)
    except (OSError, msgspec.DecodeError):
        return None
    return WireReply(
        status=kept.status, headers=kept.headers, body=kept.body, elapsed_ms=kept.elapsed_ms
    )


def _write(place: Path, kept: _KeptReply) -> None:
    # Another process may keep the same reply right now, which is as good.
    with explain_write_errors(place), suppress(FileExistsError, FileNotFoundError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(place, mode=PRIVATE) as file:
            file.write(msgspec.msgpack.encode(kept))


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
