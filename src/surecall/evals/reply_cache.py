"""Replies kept from one run to the next: the same request to the same model is not sent again."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.base.files import PRIVATE, explain_write_errors, write_whole
from surecall.base.records import WireReply, WireRequest
from surecall.models.transport import Transport, WireStream
from surecall.text import canonical_hash

from .cases import Case
from .contenders import Contender, OpenTransport, close_transports
from .records import Unit

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
