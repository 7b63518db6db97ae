"""Records that could not be stored: kept in a file of bounded size until the store is back.

Each record is a line with its checksum; half a line that a kill left behind spoils no other.
Replaying a record twice does no harm, since a store keeps an id once; so a process may be killed at
any moment of a replay. Lines are taken from the beginning, and the file is removed when all of them
are stored; whoever writes or removes it holds its lock, since gateways may share a spool.
"""

import asyncio
import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from surecall.base.background import Supervised
from surecall.base.errors import Code, RowRefusedError, StoreError, explain
from surecall.base.files import PRIVATE, lock_file, open_private, unlock_file
from surecall.base.redaction import open_log
from surecall.base.sealed_lines import checksum, seal_line, split_sealed
from surecall.base.sqlite_files import explain_database_errors
from surecall.store.databases import Query, Rows

from .record import RequestRecord, decode_line, encode_line
from .store import DEFAULT_SPOOL_BYTES, RecordStore, StoreCounts

_RETRY_S: Final = 1.0
_REPLAYED_AT_ONCE: Final = 100

_log = open_log("surecall.gateway")


class Spool:
    """A file of records that wait for their store, or that no store takes.

    Args:
        path: The file.
        max_bytes: How large it may be.
    """

    def __init__(self, path: str | Path, *, max_bytes: int = DEFAULT_SPOOL_BYTES) -> None:
        self.path = Path(path)
        self.max_bytes = max_bytes
        self.lost = 0
        """How many records of this process were in a file that somebody removed."""
        self._descriptor: int | None = None
        self._waiting = 0
        self._taken = 0

    @property
    def size_bytes(self) -> int:
        """How much is waiting."""
        found = _look_at(self.path)
        return 0 if found is None else found.st_size

    def append(self, record: RequestRecord) -> None:
        """Write a record to the end of the file, whole or not at all.

        Raises:
            StoreError: `DISK_FULL` when the spool has its size, or what the disk says.
        """
        text = encode_line(record)
        line = seal_line(text, checksum(b"", text)) + b"\n"
        with self._lock() as descriptor:
            end = os.lseek(descriptor, 0, os.SEEK_END)
            if end + len(line) > self.max_bytes:
                raise StoreError(
                    Code.DISK_FULL,
                    f"the spool {self.path} has reached {self.max_bytes} bytes.",
                    hint="Bring the store back, or free some space for the spool.",
                )
            if end and os.pread(descriptor, 1, end - 1) != b"\n":
                line = b"\n" + line  # somebody was killed in the middle of a line
            try:
                if os.write(descriptor, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                with suppress(OSError):  # half a line that stays is left out by whoever reads
                    os.ftruncate(descriptor, end)
                raise
        self._waiting += 1

    def next_lines(self) -> list[bytes]:
        """Return the next lines that are waiting; when there are none, the file is removed."""
        if self._descriptor is None and not self.size_bytes:
            return []
        with self._lock() as descriptor:
            with open(descriptor, "rb", closefd=False) as file:
                file.seek(self._taken)
                lines = list(islice(file, _REPLAYED_AT_ONCE))
            if not lines:
                os.ftruncate(descriptor, 0)  # so that others see that nothing in it was lost
                self.path.unlink(missing_ok=True)
        return lines

    def take(self, lines: list[bytes]) -> None:
        """Go on behind lines that need not wait any more."""
        self._taken += sum(map(len, lines))
        self._waiting = max(self._waiting - len(lines), 0)

    def close(self) -> None:
        """Close the file; what is waiting stays in it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    @contextmanager
    def _lock(self) -> Generator[int]:
        """Have the file that has the name, which nobody else writes or removes meanwhile."""
        with explain_database_errors(self.path):
            while True:
                if self._descriptor is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._descriptor = open_private(self.path)
                    os.fchmod(self._descriptor, PRIVATE)
                lock_file(self._descriptor, waits=True)
                opened, named = os.fstat(self._descriptor), _look_at(self.path)
                if named is not None and os.path.samestat(opened, named):
                    break
                if opened.st_size and not opened.st_nlink:
                    self.lost += self._waiting
                self._waiting = self._taken = 0
                self.close()
            try:
                yield self._descriptor
            finally:
                unlock_file(self._descriptor)


def read_spool(file: Path) -> Iterator[RequestRecord | None]:
    """Yield the records of a file, and None for a line that is damaged or was cut by a kill."""
    with explain_database_errors(file), file.open("rb") as lines:
        yield from map(_decode, lines)


def _decode(line: bytes) -> RequestRecord | None:
    text, check = split_sealed(line.rstrip(b"\n"))
    try:
        return decode_line(text) if check == checksum(b"", text) else None
    except ValueError:
        return None


class SpooledRecords(RecordStore):
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
        self.dialect = store.dialect
        self._dead = spool and Spool(spool.path.with_suffix(".dead"), max_bytes=spool.max_bytes)
        self._is_away = False
        self._why = ""
        self._trouble = ""
        """What became of the latest record, as the log was told, if that is not the usual."""
        self._replaying = Supervised(
            "bringing records back", self._come_back, self.counts.note_restart
        )
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
        if self._is_away:
            self._put_in_spool(record)
            return
        try:
            await self.store.add(record)
        except RowRefusedError as error:
            self._bury(record, error)
        except Exception as error:
            self._is_away, self._why = True, explain(error)
            self._put_in_spool(record)
            self._watch()
        except asyncio.CancelledError:  # nobody waits any more, and the store may yet fail
            self.add_soon(record)
            raise
        else:
            if self._trouble:
                self._note("")

    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it."""
        if self._is_closed:
            self._put_in_spool(record)
            return
        task = asyncio.get_running_loop().create_task(self.add(record))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def _put_in_spool(self, record: RequestRecord) -> None:
        """Let a record wait for the store, or count it as dropped where it cannot wait either."""
        if failed := self._append(self.spool, record):
            self._note("dropped", "Records are dropped. Store: %s Spool: %s", self._why, failed)
            return
        self.counts.spooled += 1
        path = self.spool and self.spool.path
        self._note("waits", "Records wait in %s because the store fails: %s", path, self._why)

    def _bury(self, record: RequestRecord, why: StoreError) -> None:
        """Put a record where it is in nobody's way, because no store will ever take it."""
        if failed := self._append(self._dead, record):
            _log.error("Request %s is dropped: %s %s", record.id, explain(why), failed)
            return
        self.counts.refused += 1
        path = self._dead and self._dead.path
        _log.error("Request %s is in %s: %s", record.id, path, explain(why))

    def _append(self, file: Spool | None, record: RequestRecord) -> str:
        """Write a record to a file, or count it as dropped and return why."""
        try:
            if file is None:
                raise StoreError(Code.STORE_WRITE_FAILED, "there is no spool.")
            file.append(record)
        except Exception as error:  # a full disk, or a record that cannot be written down
            self.counts.dropped += 1
            return explain(error)
        self._count_lost(file)
        return ""

    def _count_lost(self, file: Spool) -> None:
        if lost := file.lost:
            file.lost = 0
            self.counts.dropped += lost
            _log.error("The file %s was removed, with %d records that were in it", file.path, lost)

    def _note(self, trouble: str, text: str = "", *values: object) -> None:
        """Write to the log what becomes of records, when that has changed."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            _log.warning(text, *values)
        else:
            _log.warning(
                "Records are stored again; %d came back from the spool, %d were dropped, so far",
                self.counts.replayed,
                self.counts.dropped,
            )

    # coming back

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
            await self.store.list(limit=1)  # the spool is not read for a store that is still away
            before = self.counts.replayed
            waiting = self.spool.size_bytes if self.spool is not None else 0
            while self.spool is not None and (lines := self.spool.next_lines()):
                await self._store_lines(lines)
                self.spool.take(lines)
                waiting -= sum(map(len, lines))
                if waiting <= 0:
                    self._is_away = False  # what comes now need not wait; the rest is next
            if self.spool is not None:
                self._count_lost(self.spool)
            self._is_away = False
            if self.counts.replayed > before:
                self._note("")
            return self.counts.replayed - before

    async def _store_lines(self, lines: list[bytes]) -> None:
        records = [record for record in map(_decode, lines) if record is not None]
        done = await asyncio.gather(*map(self.store.add, records), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException) and not isinstance(error, RowRefusedError):
                raise error
        for record, error in zip(records, done, strict=True):
            if isinstance(error, RowRefusedError):
                self._bury(record, error)
        self.counts.replayed += sum(error is None for error in done)
        if damaged := sum(map(bool, map(bytes.strip, lines))) - len(records):
            self.counts.dropped += damaged
            _log.warning("In the spool %d damaged lines were left out.", damaged)

    # the rest is the store's

    async def fetch(self, query: Query) -> list[Rows]:
        """Ask the store."""
        return await self.store.fetch(query)

    def explain_damage(self, reason: str) -> StoreError:
        """Return the error for a row that cannot be right."""
        return self.store.explain_damage(reason)

    async def find_latest(self, skipped: int) -> str:
        """Ask the store."""
        return await self.store.find_latest(skipped)

    async def remove_some(self, last: str) -> tuple[int, bool]:
        """Remove some records from the store."""
        return await self.store.remove_some(last)

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
