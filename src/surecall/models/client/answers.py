"""One reply, from the request being sent to its last byte: who reads it, and how fast.

Bytes arrive by callbacks, are taken apart by `framing`, and go to one reader: a buffer or a
function. Nothing is awaited for a piece of a body; a reader that is slow stops the socket.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from surecall.base.errors import Code, ProviderConnectionError, ProviderError
from surecall.base.limits import MIB

from .bodies import BodyDecoder, open_decoder, too_large
from .failures import map_failure
from .framing import ReplyFrame
from .network import ClientLimits

_TURN_BYTES: Final = MIB
"""How much is decompressed before other work gets its turn."""

_ENDED: Final = RuntimeError("The answer has ended with an error.")


class Carrier(Protocol):
    """The connection that an answer comes on."""

    def finish(self, *, reusable: bool) -> None:
        """Take leave of the answer: keep the connection if it is clean, or close it."""
        ...

    def hold(self, *, wanted: bool) -> None:
        """Stop taking bytes off the socket, or take them again."""
        ...

    def expect(self) -> None:
        """Take note that the reader waits from now."""
        ...


class Answer:
    """A reply whose head has arrived; read its body once, or `abort` it.

    `read` returns all of it, `pipe` hands it on as it arrives, `next_piece` returns the next part.

    A body that nobody reads is held by its connection until the total deadline passes.
    """

    __slots__ = (
        "_connection",
        "_decoder",
        "_error",
        "_feed",
        "_frame",
        "_is_done",
        "_is_flowing",
        "_is_paused",
        "_is_pulled",
        "_is_scheduled",
        "_limits",
        "_loop",
        "_max_bytes",
        "_read_bytes",
        "_too_large",
        "_unread",
        "_unread_bytes",
        "_waiter",
        "attempts",
        "status",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: Carrier,
        limits: ClientLimits,
        is_head: bool,
        attempts: int,
    ) -> None:
        self._loop = loop
        self._connection: Carrier | None = connection
        self._limits = limits
        self._frame = ReplyFrame(limits, is_head)
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._feed: Callable[[bytes], object] | None = None
        self._decoder: BodyDecoder | None = None
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._read_bytes = 0
        self._is_done = False
        self._is_paused = False
        self._is_pulled = False
        self._is_scheduled = False
        self._is_flowing = False
        self.status = 0
        """The status, once the head is there."""
        self.attempts = attempts
        """How many requests were sent for it: 2 when an idle connection had been closed."""

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers as they came, names in lower case."""
        return self._frame.headers

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers, names in lower case; one that came twice is there twice."""
        return [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in self._frame.headers
        ]

    @property
    def header_map(self) -> Mapping[str, str]:
        """The headers by their names in lower case, decoded when somebody looks at them."""
        return _HeaderMap(self)

    @property
    def received_bytes(self) -> int:
        """How much of the body has come, decompressed as far as somebody has read it."""
        return self._read_bytes + self._unread_bytes

    @property
    def is_complete(self) -> bool:
        """Whether the last byte has arrived."""
        return self._frame.is_complete

    @property
    def has_surplus(self) -> bool:
        """Whether more came with the body than its declared length."""
        return self._frame.has_surplus

    # what its reader does

    async def read(self) -> bytes:
        """Return the whole body, decompressed.

        Raises:
            ProviderError: The body is too large, cut, late, or in an encoding that is not read.
        """
        frame, max_bytes = self._frame, self._limits.max_body_bytes
        if (
            frame.is_complete
            and self._feed is None
            and self._error is None
            and not frame.encoding
            and self._unread_bytes <= max_bytes
        ):
            self._feed = _drop_piece
            self._is_done = True
            pieces, self._unread = self._unread, []
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        body = bytearray()
        self._open(body.extend, max_bytes, Code.UPSTREAM_TOO_LARGE)
        await self._wait_for_end()
        return bytes(body)

    async def pipe(self, feed: Callable[[bytes], object]) -> None:
        """Call a function with each piece of the body as it arrives; return after the last.

        Args:
            feed: Called from the loop's callbacks, so it must not block. It may call `pause`, and
                what it raises ends the answer and is raised here.

        Raises:
            ProviderError: The body is too large, cut, late, or in an encoding that is not read.
        """
        self._open(feed, self._limits.max_stream_bytes, Code.STREAM_TOO_LARGE)
        try:
            await self._wait_for_end()
        finally:
            self._feed = _drop_piece  # a reader may know its answer

    async def next_piece(self) -> bytes:
        """Return what has arrived of the body, decompressed in steps; nothing after the last byte.

        A reader that takes its time stops the socket and the idle deadline, not the total one.

        Raises:
            ProviderError: The body is too large, cut, late, or in an encoding that is not read.
        """
        if not self._is_pulled:
            self._prepare(self._limits.max_stream_bytes, Code.STREAM_TOO_LARGE)
            self._is_pulled = True
        while True:
            try:
                piece = self._next_piece()
                if not piece and self._frame.is_complete and self._error is None:
                    self._finish()
            except ProviderError as error:
                self.fail(error)
                break
            if piece:  # also what came before an error
                self._regulate()
                self._read_bytes += len(piece)
                if self._read_bytes <= self._max_bytes:
                    return piece
                self.fail(too_large(self._too_large, self._max_bytes))
                break
            if self._is_done:
                return b""
            if self._error is not None:
                break
            if self._connection is not None:
                self._connection.expect()
            await self._wait()
        self._unread.clear()
        self._raise_error()
        return b""

    async def read_start(self, max_bytes: int) -> bytes:
        """Return the readable start of a body, and give up the rest, however it ends."""
        found = bytearray()
        try:
            while len(found) < max_bytes and (piece := await self.next_piece()):
                found += piece
        except ProviderError:
            pass
        finally:
            self.abort()
        return bytes(found[:max_bytes])

    def pause(self) -> None:
        """Stop the pieces of `pipe`; the idle deadline stops too, the total one does not."""
        self._is_paused = True
        self._is_flowing = False
        self._regulate()

    def resume(self) -> None:
        """Let the pieces of `pipe` come again."""
        if self._is_paused:
            self._is_paused = False
            if self._feed is not None:
                self._deliver_soon()
            self._note_flow()
            self._regulate()

    def abort(self) -> None:
        """Give up the reply; its connection is closed at once, and nothing more is handed on."""
        self._unread.clear()
        self._unread_bytes = 0
        self.fail(
            ProviderConnectionError(
                Code.CONNECTION_RESET, "The answer was given up before its end was read."
            )
        )

    # what its connection does

    async def wait_for_head(self) -> ProviderError | None:
        """Wait until the head is there; return the error if it does not come."""
        if not self._frame.has_head and self._error is None:
            await self._wait()
        if self._error is None:
            return None
        error = self._take_error()
        return error if error is None or isinstance(error, ProviderError) else map_failure(error)

    def take(self, data: bytes) -> bool:
        """Take what arrived on the connection; return whether more of the body is to come."""
        frame = self._frame
        if frame.is_complete:  # more than it should be
            frame.is_reusable = False
            return False
        had_head = frame.has_head
        try:
            body = frame.feed(data)
        except ProviderError as error:
            self.fail(error)
            return False
        if frame.is_complete:
            self._take_last(body)
        elif body:
            if self._is_flowing:
                self._emit(body)
            else:
                self._take_body(body)
        if had_head:
            return True
        if frame.has_head:
            self.status = frame.status
            self._wake()
            return True
        return False

    def _take_last(self, body: bytes) -> None:
        frame = self._frame
        # What is compressed may turn out to be damaged: its connection is kept until that is known.
        if not frame.encoding:
            self._release(reusable=frame.is_reusable)
        if body:
            self._take_body(body)
        if self._feed is not None:
            self._finish_if_delivered()
        elif self._is_pulled:
            self._wake()

    def take_end(self, failure: BaseException | None = None) -> None:
        """Take the end of the connection, by a failure or in peace."""
        if self._error is not None or self._frame.is_complete:
            return
        error = map_failure(failure) if failure is not None else self._frame.end()
        if error is not None:
            self.fail(error)
            return
        if not self._frame.encoding:
            self._release(reusable=False)
        if self._is_pulled:
            self._wake()
        else:
            self._finish_if_delivered()

    def fail(self, error: Exception) -> None:
        """End the answer with an error, unless it has ended; its connection is closed."""
        if self._error is not None or self._is_done:
            return
        if isinstance(error, ProviderError):
            error.attempts = self.attempts
            if error.status is None and self._frame.has_head:
                error.status = self._frame.status
        self._error = error.with_traceback(None)
        self._frame.drop()
        self._release(reusable=False)
        self._wake()

    @property
    def has_started(self) -> bool:
        """Whether any byte has arrived."""
        return self._frame.has_started

    @property
    def has_head(self) -> bool:
        """Whether the head has arrived."""
        return self._frame.has_head

    @property
    def is_awaited(self) -> bool:
        """Whether more of the body is to come, and its reader waits for it."""
        return not self._frame.is_complete and not (self._is_pulled and self._waiter is None)

    # the body on its way to its reader

    def _open(self, feed: Callable[[bytes], object], max_bytes: int, code: Code) -> None:
        self._prepare(max_bytes, code)
        self._feed = feed
        if self._error is None or self._decoder is None:
            self._deliver_unread()  # what came before an error is still delivered

    def _prepare(self, max_bytes: int, code: Code) -> None:
        if self._feed is not None or self._is_pulled:
            raise RuntimeError("The body of an answer is read once.")
        self._max_bytes = max_bytes
        self._too_large = code
        if not self._frame.is_complete and self._frame.length > max_bytes:
            self._unread.clear()
            self.fail(too_large(code, max_bytes))
            return
        encoding = self._frame.encoding
        if encoding:
            self._decoder = open_decoder(
                encoding.decode("latin-1"), self._limits, max_bytes=max_bytes, code=code
            )

    def _take_body(self, body: bytes) -> None:
        """Hand a piece of the body on, or keep it while its reader is not ready."""
        if self._is_flowing:
            self._emit(body)
            return
        self._unread.append(body)
        self._unread_bytes += len(body)
        if self._feed is not None and not self._is_paused and not self._is_scheduled:
            self._deliver_unread()
        elif self._connection is not None:
            self._regulate()
        if self._is_pulled:
            self._wake()

    def _note_flow(self) -> None:
        """Note whether pieces go to the reader as they come: every one of a stream asks."""
        self._is_flowing = not (
            self._is_paused
            or self._is_scheduled
            or self._feed is None
            or self._decoder is not None
            or self._unread
        )

    def _deliver_unread(self) -> None:
        """Hand on what has arrived, in turns if there is much of it."""
        if self._is_done:
            return
        budget_bytes = _TURN_BYTES
        while not self._is_paused:
            try:
                piece = self._next_piece()
            except ProviderError as error:
                self.fail(error)
                return
            if not piece:
                self._finish_if_delivered()
                break
            if not self._emit(piece):
                return
            budget_bytes -= len(piece)
            if budget_bytes <= 0:
                self._deliver_soon()
                break
        self._note_flow()
        self._regulate()

    def _deliver_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._is_flowing = False
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_scheduled = False
        if self._error is None:
            self._deliver_unread()

    def _next_piece(self) -> bytes:
        decoder = self._decoder
        piece = decoder.step() if decoder is not None else b""
        if piece or not self._unread:
            return piece
        piece = b"".join(self._unread)
        self._unread.clear()
        self._unread_bytes = 0
        if decoder is None:
            return piece
        decoder.feed(piece)
        return decoder.step()

    def _emit(self, piece: bytes) -> bool:
        """Give a piece to the reader; return whether more may follow."""
        self._read_bytes += len(piece)
        if self._read_bytes > self._max_bytes:
            self.fail(too_large(self._too_large, self._max_bytes))
            return False
        feed = self._feed
        assert feed is not None
        try:
            feed(piece)
        except Exception as error:
            self.fail(error)
        return self._error is None

    def _finish_if_delivered(self) -> None:
        if (
            self._feed is None
            or self._is_paused
            or self._is_scheduled
            or self._error is not None
            or not self._frame.is_complete
        ):
            return
        try:
            self._finish()
        except ProviderError as error:
            self.fail(error)
            return
        self._wake()

    def _finish(self) -> None:
        """Note that everything has been delivered; raise if compressed data is not at its end."""
        if self._decoder is not None:
            self._decoder.close()
            self._release(reusable=self._frame.is_reusable)
        self._is_done = True

    def _regulate(self) -> None:
        """Stop or start the socket, by how much waits for the reader."""
        connection = self._connection
        if connection is not None:
            connection.hold(
                wanted=self._is_paused
                or self._is_scheduled
                or self._unread_bytes > self._limits.max_unread_bytes
            )

    def _release(self, *, reusable: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.finish(reusable=reusable)

    # waiting

    async def _wait_for_end(self) -> None:
        if not self._is_done and self._error is None:
            await self._wait()
        self._raise_error()

    def _raise_error(self) -> None:
        error = self._take_error()
        if error is not None:
            try:
                raise error
            finally:
                del error  # or it would hold this frame, which holds it

    def _take_error(self) -> Exception | None:
        """Return the error to raise, and keep another: its traceback will lead here."""
        error = self._error
        if error is not None:
            self._error = _ENDED
        return error

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class _HeaderMap(Mapping[str, str]):
    """The headers of an answer, which hardly anybody looks at."""

    __slots__ = ("_answer", "_found")

    def __init__(self, answer: Answer) -> None:
        self._answer: Answer | None = answer
        self._found: dict[str, str] = {}

    def _read(self) -> dict[str, str]:
        if self._answer is not None:
            self._found, self._answer = dict(self._answer.headers), None
        return self._found

    def __getitem__(self, name: str) -> str:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def _drop_piece(piece: bytes) -> None:
    """Stand for a reader that has everything."""
