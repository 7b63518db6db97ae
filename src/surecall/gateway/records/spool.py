"""Records that could not be stored: kept in a file of bounded size until the store is back.

Each record is a line with its checksum; half a line that a kill left behind spoils no other.
Replaying a record twice does no harm, since a store keeps an id once; so a process may be killed at
any moment of a replay.
"""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from surecall.base.errors import Code, RowRefusedError, StoreError
from surecall.base.files import PRIVATE, open_private
from surecall.base.redaction import open_log
from surecall.base.sqlite_files import explain_database_errors
from surecall.gateway.log import explain
from surecall.gateway.supervision import Supervised
from surecall.loop.stored import checksum, seal_line, split_sealed

from .record import RequestRecord, decode_line, encode_line
from .store import (
    DEFAULT_SPOOL_BYTES,
    Figures,
    RecordFilter,
    RecordPage,
    RecordStore,
    Retention,
    Selection,
    StoreCounts,
)

Records = list[RequestRecord]

_RETRY_S: Final = 1.0
_REPLAYED_AT_ONCE: Final = 100

_log = open_log("surecall.gateway")


class Spool:
    """A file of records that wait for their store, or that no store takes.

    Args:
        path: The file; while it is replayed, what is replayed is next to it.
        max_bytes: How large both may be together.
    """

    def __init__(self, path: str | Path, *, max_bytes: int = DEFAULT_SPOOL_BYTES) -> None:
        self.path = Path(path)
        self.max_bytes = max_bytes
        self._replayed = self.path.with_name(f"{self.path.name}.replaying")
        self._descriptor: int | None = None
        self._waiting = 0
        """How many records this process has put into the file."""
        self._lost = 0
        self._begun: os.stat_result | None = None
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
                hint="Bring the store back, or free some space for the spool.",
            )
        with explain_database_errors(self.path):
            _write_line(self._open(), line)
            if not self._is_in_place():
                _write_line(self._open(), line)
        self._waiting += 1
        self._bytes += len(line)

    def _open(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = open_private(self.path)
            os.fchmod(self._descriptor, PRIVATE)
        return self._descriptor

    def _is_in_place(self) -> bool:
        """Tell whether the open file has its name; one that was removed or renamed is let go."""
        if self._descriptor is None:
            return True
        opened, named = os.fstat(self._descriptor), _look_at(self.path)
        if named is not None and os.path.samestat(opened, named):
            return True
        self.close()
        if not opened.st_nlink:
            self._lost += self._waiting
        self._waiting = 0
        self._bytes = sum(_size_of(file) for file in (self.path, self._replayed))
        return False

    def take_lost(self) -> int:
        """Return how many records were lost since the last time, because somebody removed them."""
        lost, self._lost = self._lost, 0
        return lost

    def begin_replay(self) -> Path | None:
        """Put aside what is waiting, and return where it is; None when there is nothing."""
        with explain_database_errors(self.path):
            self._is_in_place()
            if not self._replayed.exists():
                self.close()
                if not _size_of(self.path):
                    return None
                self.path.replace(self._replayed)
                self._waiting = 0
            self._begun = _look_at(self._replayed)
        return self._replayed

    def end_replay(self) -> None:
        """Forget what was put aside, unless another process has put aside something else."""
        with explain_database_errors(self._replayed):
            found = _look_at(self._replayed)
            if found is not None and self._begun and os.path.samestat(found, self._begun):
                self._replayed.unlink(missing_ok=True)
        self._bytes = sum(_size_of(file) for file in (self.path, self._replayed))

    def close(self) -> None:
        """Close the file; what is waiting stays in it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _write_line(descriptor: int, line: bytes) -> None:
    """Write a line to the end of a file, whole or not at all."""
    start = os.lseek(descriptor, 0, os.SEEK_END)
    if start and os.pread(descriptor, 1, start - 1) != b"\n":
        line = b"\n" + line  # somebody was killed in the middle of a line
    try:
        if os.write(descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        with suppress(OSError):  # half a line that stays is left out by whoever reads
            os.ftruncate(descriptor, start)
        raise


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

    A record that no store will ever take goes to the dead-letter file, so that it is never in the
    way of others. That file has the form of a spool: renamed to the name of the spool, it is tried
    again at the next start.

    Args:
        store: Where records belong.
        spool: Where they wait; None keeps none.
    """

    def __init__(self, store: RecordStore, spool: Spool | None) -> None:
        self.store = store
        self.spool = spool
        self.counts: StoreCounts = store.counts
        self._dead = spool and Spool(spool.path.with_suffix(".dead"), max_bytes=spool.max_bytes)
        self._buried: set[str] = set()
        self._is_away = False
        self._why = ""
        self._trouble = ""
        """What became of the latest record, as the log was told, if that is not the usual."""
        self._replaying = Supervised("bringing records back", self._come_back, self._note_restart)
        self._later: set[asyncio.Task[None]] = set()
        self._one_replay = asyncio.Lock()
        self._is_closed = False

    @property
    def is_away(self) -> bool:
        """Whether records go to the spool at the moment."""
        return self._is_away

    @property
    def is_full(self) -> bool:
        """Whether the latest record was dropped, because nothing takes it."""
        return self._trouble == "dropped"

    async def start(self) -> None:
        """Replay what an earlier process left behind."""
        if self.spool is not None and self.spool.size_bytes:
            self._watch()

    async def add(self, record: RequestRecord) -> None:
        """Keep a record in the store, or in the spool while the store is away.

        Whatever happens to the record, its request does not fail for it.
        """
        if not self._is_away:
            try:
                await self.store.add(record)
            except RowRefusedError as error:
                self._bury(record, error)
                return
            except Exception as error:
                self._is_away, self._why = True, explain(error)
                self._put_aside(record)
                self._watch()
                return
            except asyncio.CancelledError:  # nobody waits any more, and the store may yet fail
                self.add_soon(record)
                raise
            if self._trouble:
                self._tell("")
            return
        self._put_aside(record)

    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it."""
        if self._is_closed:
            self._put_aside(record)
            return
        task = asyncio.get_running_loop().create_task(self.add(record))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def _put_aside(self, record: RequestRecord) -> None:
        """Let a record wait for the store, or count it as dropped where it cannot wait either."""
        try:
            if self.spool is None:
                raise StoreError(Code.STORE_WRITE_FAILED, "there is no spool.")
            self.spool.append(record)
            self._count_lost(self.spool)
        except Exception as error:  # a full disk, or a record that cannot be written down
            self.counts.dropped += 1
            self._tell(
                "dropped",
                "Records are dropped. Store: %s Spool: %s",
                self._why,
                explain(error),
            )
        else:
            self.counts.spooled += 1
            path = self.spool.path
            self._tell("waits", "Records wait in %s because the store fails: %s", path, self._why)

    def _bury(self, record: RequestRecord, why: StoreError) -> None:
        """Put a record where it is in nobody's way, because no store will ever take it."""
        if record.id in self._buried:
            return
        try:
            if self._dead is None:
                raise StoreError(Code.STORE_WRITE_FAILED, "there is no dead-letter file.")
            self._dead.append(record)
            self._count_lost(self._dead)
        except Exception as error:
            self.counts.dropped += 1
            _log.error("Request %s is dropped: %s %s", record.id, explain(why), explain(error))
        else:
            self.counts.refused += 1
            self._buried.add(record.id)
            _log.error("Request %s is in %s: %s", record.id, self._dead.path, explain(why))

    def _count_lost(self, file: Spool) -> None:
        if lost := file.take_lost():
            self.counts.dropped += lost
            _log.error("The file %s was removed, with %d records that were in it", file.path, lost)

    def _tell(self, trouble: str, text: str = "", *values: object) -> None:
        """Write to the log what becomes of records, when that has changed."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            _log.warning(text, *values)
        else:
            counts = self.counts
            _log.warning(
                "Records are stored again; %d came back from the spool, %d were dropped, so far",
                counts.replayed,
                counts.dropped,
            )

    # coming back

    def _note_restart(self) -> None:
        self.counts.restarts += 1

    def _watch(self) -> None:
        if not self._is_closed:
            self._replaying.start()

    async def _come_back(self) -> None:
        while True:
            try:
                await self.replay()
            except StoreError as error:
                _log.info("The store is still away: %s", explain(error))
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def replay(self) -> int:
        """Bring everything that waits into the store, and return how many records that were.

        Raises:
            StoreError: The store is still away; what it did not take goes on waiting.
        """
        async with self._one_replay:
            await self.store.list(limit=1)  # nothing is put aside for a store that is still away
            count = 0
            if self.spool is not None:
                while (file := self.spool.begin_replay()) is not None:
                    count += await self._replay_file(file)
                    self.spool.end_replay()
                    self._is_away = False  # what comes now need not wait; the rest is next
                    self._buried.clear()
                self._count_lost(self.spool)
            self._is_away = False
            if count:
                self._tell("")
            return count

    async def _replay_file(self, file: Path) -> int:
        before, damaged = self.counts.replayed, 0
        batch: Records = []
        for record in read_spool(file):
            if record is None:
                damaged += 1
                continue
            batch.append(record)
            if len(batch) == _REPLAYED_AT_ONCE:
                await self._store_all(batch)
                batch = []
        await self._store_all(batch)
        if damaged:
            self.counts.dropped += damaged
            _log.warning("In %s %d damaged lines were left out.", file, damaged)
        return self.counts.replayed - before

    async def _store_all(self, batch: Records) -> None:
        done = await asyncio.gather(*map(self.store.add, batch), return_exceptions=True)
        for record, error in zip(batch, done, strict=True):
            if isinstance(error, RowRefusedError):
                self._bury(record, error)
            elif isinstance(error, BaseException):
                raise error
        self.counts.replayed += sum(error is None for error in done)

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
        await self._replaying.stop()
        if self._later:
            await asyncio.gather(*self._later, return_exceptions=True)
        await self.store.close()
        for file in (self.spool, self._dead):
            if file is not None:
                file.close()


def _look_at(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def _size_of(file: Path) -> int:
    found = _look_at(file)
    return 0 if found is None else found.st_size
