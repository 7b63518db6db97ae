"""Records that could not be stored: kept in a file of bounded size until the store is back.

Each record is a line with its checksum. Replaying a record twice does no harm, since a store
keeps an id once; so a process may be killed at any moment of a replay.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from surecall.database import explain_database_errors
from surecall.errors import Code, StoreError, SurecallError
from surecall.files import PRIVATE, open_private
from surecall.loop.stored import checksum, seal_line, split_sealed
from surecall.redaction import open_log

from .base import (
    DEFAULT_SPOOL_BYTES,
    Figures,
    RecordFilter,
    RecordPage,
    RecordStore,
    Retention,
    Selection,
    StoreCounts,
    closed_store,
)
from .record import RequestRecord, decode_line, encode_line

WhenFull = Literal["drop", "refuse"]
"""What happens when neither the store nor the spool takes a record: it is dropped and counted, or
the request is refused."""

Records = list[RequestRecord]

_RETRY_S: Final = 1.0
_REPLAYED_AT_ONCE: Final = 200

_log = open_log("surecall.gateway")


class Spool:
    """A file of records that wait for their store.

    Args:
        path: The file; while it is replayed, what is replayed is next to it.
        max_bytes: How large both may be together.
    """

    def __init__(self, path: str | Path, *, max_bytes: int = DEFAULT_SPOOL_BYTES) -> None:
        self.path = Path(path)
        self.max_bytes = max_bytes
        self._replayed = self.path.with_name(f"{self.path.name}.replaying")
        self._descriptor: int | None = None
        self._bytes = sum(_size_of(file) for file in (self.path, self._replayed))

    @property
    def size_bytes(self) -> int:
        """How much is waiting."""
        return self._bytes

    def append(self, record: RequestRecord) -> None:
        """Write a record to the end of the file.

        Raises:
            StoreError: `DISK_FULL` when the spool has its size, or what the disk says.
        """
        text = encode_line(record)
        line = seal_line(text, checksum(b"", text)) + b"\n"
        if self._bytes + len(line) > self.max_bytes:
            raise StoreError(
                Code.DISK_FULL,
                f"the spool {self.path} has reached {self.max_bytes} bytes.",
                hint="Bring the store back, or allow the spool more room.",
            )
        with explain_database_errors(self.path):
            if self._descriptor is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = open_private(self.path)
                os.fchmod(self._descriptor, PRIVATE)
                os.lseek(self._descriptor, 0, os.SEEK_END)
            start = os.lseek(self._descriptor, 0, os.SEEK_CUR)
            try:
                written = os.write(self._descriptor, line)
                if written != len(line):
                    raise OSError(28, "it was written only in part")
            except OSError:  # half a line would spoil the next one
                with suppress(OSError):
                    os.ftruncate(self._descriptor, start)
                    os.lseek(self._descriptor, start, os.SEEK_SET)
                raise
        self._bytes += len(line)

    def begin_replay(self) -> Path | None:
        """Put aside what is waiting, and return where it is; None when there is nothing."""
        with explain_database_errors(self.path):
            if not self._replayed.exists():
                self.close()
                if not _size_of(self.path):
                    return None
                self.path.replace(self._replayed)
        return self._replayed

    def end_replay(self) -> None:
        """Forget what was put aside."""
        with explain_database_errors(self._replayed):
            self._replayed.unlink(missing_ok=True)
        self._bytes = _size_of(self.path)

    def close(self) -> None:
        """Close the file; what is waiting stays in it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_spool(file: Path) -> Iterator[RequestRecord | None]:
    """Yield the records of a file, and None for a line that is damaged or was cut by a kill."""
    with explain_database_errors(file), file.open("rb") as lines:
        for line in lines:
            text, check = split_sealed(line.rstrip(b"\n"))
            try:
                yield decode_line(text) if check == checksum(b"", text) else None
            except ValueError:
                yield None


class SpooledRecords:
    """A store with a spool: what cannot be stored now waits on disk, and nothing is lost silently.

    Args:
        store: Where records belong.
        spool: Where they wait; None keeps none.
        when_full: What happens to a record that neither takes.
    """

    def __init__(
        self, store: RecordStore, spool: Spool | None, *, when_full: WhenFull = "drop"
    ) -> None:
        self.store = store
        self.spool = spool
        self.counts: StoreCounts = store.counts
        self._when_full = when_full
        self._is_away = False
        self._replaying: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._one_replay = asyncio.Lock()
        self._is_closed = False

    @property
    def is_away(self) -> bool:
        """Whether records go to the spool at the moment."""
        return self._is_away

    async def start(self) -> None:
        """Replay what an earlier process left behind."""
        if self.spool is not None and self.spool.size_bytes:
            self._watch()

    async def add(self, record: RequestRecord) -> None:
        """Keep a record in the store, or in the spool while the store is away."""
        if not self._is_away:
            try:
                await self.store.add(record)
            except StoreError as error:
                self._note_away(error)
            else:
                return
        self._put_aside(record)

    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it."""
        if self._is_closed:
            raise closed_store()
        task = asyncio.get_running_loop().create_task(self._add_quietly(record))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _add_quietly(self, record: RequestRecord) -> None:
        try:
            await self.add(record)
        except SurecallError as error:
            _log.warning("a request was not recorded: %s", error)

    def _note_away(self, error: StoreError) -> None:
        if not self._is_away:
            _log.warning("records wait on disk, the store cannot be used: %s", error)
        self._is_away = True
        self._watch()

    def _put_aside(self, record: RequestRecord) -> None:
        try:
            if self.spool is None:
                raise StoreError(Code.STORE_WRITE_FAILED, "the store is away, without a spool.")
            self.spool.append(record)
            self.counts.spooled += 1
        except StoreError:
            self.counts.dropped += 1
            if self._when_full == "refuse":
                raise

    # coming back

    def _watch(self) -> None:
        if self._replaying is None and not self._is_closed:
            self._replaying = asyncio.get_running_loop().create_task(self._come_back())

    async def _come_back(self) -> None:
        try:
            while True:
                try:
                    await self.replay()
                except StoreError as error:
                    _log.info("the store is still away: %s", error)
                    await asyncio.sleep(_RETRY_S)
                else:
                    return
        finally:
            self._replaying = None

    async def replay(self) -> int:
        """Bring everything that waits into the store, and return how many records that were.

        Raises:
            StoreError: The store is still away; what it did not take goes on waiting.
        """
        async with self._one_replay:
            return await self._replay_all()

    async def _replay_all(self) -> int:
        await self.store.list(limit=1)  # nothing is put aside for a store that is still away
        count = 0
        while self.spool is not None and (file := self.spool.begin_replay()) is not None:
            count += await self._replay_file(file)
            self.spool.end_replay()
            self._is_away = False  # what comes now need not wait; the rest is replayed next
        self._is_away = False
        return count

    async def _replay_file(self, file: Path) -> int:
        count = 0
        batch: Records = []
        for record in read_spool(file):
            if record is None:
                self.counts.dropped += 1
                _log.warning("a damaged record in %s was left out", file)
                continue
            batch.append(record)
            if len(batch) == _REPLAYED_AT_ONCE:
                count += await self._store_all(batch)
                batch = []
        return count + await self._store_all(batch)

    async def _store_all(self, batch: Records) -> int:
        done = await asyncio.gather(*map(self.store.add, batch), return_exceptions=True)
        failed = [error for error in done if isinstance(error, BaseException)]
        if failed:
            raise failed[0]
        self.counts.replayed += len(batch)
        return len(batch)

    # the rest is the store's

    async def list(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> RecordPage:
        """Return a page of what is stored."""
        return await self.store.list(wanted, before=before, limit=limit)

    async def get(self, record_id: str) -> RequestRecord | None:
        """Return one record that is stored."""
        return await self.store.get(record_id)

    def export(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> AsyncIterator[RequestRecord]:
        """Yield all records that are stored and wanted."""
        return self.store.export(wanted)

    async def select(
        self,
        selection: Selection,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> Figures:
        """Return figures of what is stored."""
        return await self.store.select(selection, wanted)

    async def prune(self, retention: Retention) -> int:
        """Remove from the store what need not be kept."""
        return await self.store.prune(retention)

    async def close(self) -> None:
        """Write what is waiting; what the store does not take stays in the spool."""
        self._is_closed = True
        if self._later:
            await asyncio.gather(*self._later)
        if self._replaying is not None:
            self._replaying.cancel()
            await asyncio.gather(self._replaying, return_exceptions=True)
        if self.spool is not None:
            self.spool.close()
        await self.store.close()


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
