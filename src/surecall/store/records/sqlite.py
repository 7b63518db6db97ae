"""Requests in SQLite: group commit on the event loop, checkpoints and reading on threads.

With `durable="process"` a record survives the death of the process; a loss of power may take the
last moments. With `durable="power"` it survives that, too: every batch waits for the disk, on a
thread, because waiting on the loop would stop every stream.

Each worker has a file of its own, since two writers of one file wait for each other; readers
merge the files.
"""

import asyncio
import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from surecall.base.errors import Code, RowRefusedError, StoreError, explain, row_refused
from surecall.base.files import make_private
from surecall.base.limits import MIB
from surecall.base.redaction import open_log
from surecall.base.sqlite_files import (
    connect,
    damaged,
    explain_database_errors,
    is_busy_or_full,
    prepare,
    transaction,
)
from surecall.store.databases import Query, Rows, by_number

from .record import COLUMNS, RequestRecord, StoredRow, encode_row
from .store import (
    RecordStore,
    StoreCounts,
    Waiting,
    WaitingRows,
    closed_store,
    finish,
)
from .tables import SQLITE, SQLITE_LAYOUT

Durability = Literal["process", "power"]
"""What a record survives once `add` has returned."""

Errors = Sequence[StoreError | None]


def _render_insert(names: Sequence[str]) -> str:
    places = ", ".join("?" * len(names))
    # A row that is there already is left out; nothing else is.
    return (
        f"INSERT INTO requests ({', '.join(names)}) VALUES ({places}) "  # noqa: S608
        "ON CONFLICT (id) DO NOTHING"
    )


# Without the last columns where these are null: binding a null costs as much as six numbers.
_INSERT: Final = _render_insert(list(COLUMNS))
_INSERT_STREAM: Final = _render_insert(list(COLUMNS)[:-2])
_INSERT_PLAIN: Final = _render_insert(list(COLUMNS)[:-3])
_INSERT_BODY: Final = (
    "INSERT INTO bodies (id, request, reply) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"
)
_BUSY_S: Final = 2.0
_LOOP_BUSY_MS: Final = 50
"""How long a batch may wait for a file that somebody else locks: this stops the event loop."""
_LOOK_S: Final = 0.05
"""How soon after writing it is looked whether the file still has its name."""
_READ_BUSY_S: Final = 10.0
_CACHE_KIB: Final = 2048
_CHECKPOINT_BYTES: Final = 4 * MIB
_MAX_LOG_BYTES: Final = 64 * MIB
"""With a log of this size writing waits until a checkpoint has taken all of it."""
_CHECKPOINT_ROUNDS: Final = 4
_PRUNE_ROWS: Final = 200
"""Removed at a time: more would stop the loop for longer than a few milliseconds."""

_log = open_log("surecall.gateway")


def worker_path(path: str | Path, worker: int) -> Path:
    """Return the file of a worker: the first has the one that was named."""
    path = Path(path)
    return path if worker == 0 else path.with_name(f"{path.stem}.w{worker}{path.suffix}")


def store_files(path: str | Path) -> list[Path]:
    """Return the files of all workers that are there."""
    path = Path(path)
    others = sorted(path.parent.glob(f"{path.stem}.w[0-9]*{path.suffix}"))
    return [file for file in (path, *others) if file.exists()]


class SqliteRecords(RecordStore):
    """The requests of one worker in a file, and of all workers for reading.

    Args:
        path: The file of the first worker; those of others are next to it.
        worker: Number of this worker.
        durable: What a record survives once `add` has returned.
    """

    dialect = SQLITE

    def __init__(
        self, path: str | Path, *, worker: int = 0, durable: Durability = "process"
    ) -> None:
        self.path = Path(path)
        self.file = worker_path(path, worker)
        self.counts = StoreCounts()
        # Taking over the log inside a commit would delay it: a thread does that.
        self._settings = [f"cache_size = -{_CACHE_KIB}", "wal_autocheckpoint = 0"]
        if durable == "power":
            self._settings.append("synchronous = FULL")
        else:
            self._settings += ["synchronous = NORMAL", f"busy_timeout = {_LOOP_BUSY_MS}"]
        self._is_closed = False
        self._name = str(self.file)
        self._identity = (0, 0)
        self._unsure: list[StoredRow] = []
        """The latest rows, until it is known that their file still has its name."""
        self._gone: list[StoredRow] = []
        """Rows whose file has lost its name; they are written again."""
        self._looking: asyncio.TimerHandle | None = None
        self._seen_frame = 0
        self._database: sqlite3.Connection | None = None
        self._open(_BUSY_S)
        self._waiting = WaitingRows(self._write_waiting)
        self._checkpointer = ThreadPoolExecutor(1, "surecall-checkpoint")
        self._writer = ThreadPoolExecutor(1, "surecall-records") if durable == "power" else None
        self._bytes_since = self._rows_since = 0
        """What was stored since the last checkpoint began."""
        self._is_checkpointing = False
        self._is_writing = False
        self._is_held = False
        """While a long log is being taken over, nothing is written."""
        self.is_alone: Callable[[], bool] | None = None
        """Tells whether nobody else can add a record in this turn of the loop, if that is known:
        then one is written at once, and does not wait for others."""

    def __repr__(self) -> str:
        return f"SqliteRecords({str(self.file)!r})"

    def _open(self, busy_s: float) -> sqlite3.Connection:
        self._database = connect(self.file, SQLITE_LAYOUT, self._settings, busy_s=busy_s)
        found = os.stat(self._name)
        self._identity = (found.st_ino, found.st_dev)
        return self._database

    def _let_go(self) -> None:
        """Close a database that cannot be used; the next batch opens it again."""
        if not self._is_in_place():
            self._gone += self._unsure
            self._unsure = []
        database, self._database = self._database, None
        if database is not None:
            self.counts.reopened += 1
            with suppress(sqlite3.Error):
                database.close()

    # writing

    async def add(self, record: RequestRecord) -> None:
        """Keep a record; when this returns it is durable."""
        if self._is_closed:
            raise closed_store()
        row = encode_row(record)
        if self.is_alone is not None and self.is_alone() and self._is_free():
            alone = [(row, None)]
            errors = self._try_write(alone)
            self._count(alone, errors)
            if errors and (error := errors[0]) is not None:
                raise error
            return
        future = self._waiting.put(row)
        assert future is not None
        await future

    def _is_free(self) -> bool:
        """Tell whether the loop may write now, and nothing waits."""
        return self._writer is None and not self._is_held and not len(self._waiting)

    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it."""
        if self._is_closed:
            raise closed_store()
        self._waiting.put(encode_row(record), waits=False)

    def _write_waiting(self) -> None:
        if self._is_held or self._is_writing:
            return  # whoever holds it writes what has gathered meanwhile
        taken = self._waiting.take()
        if not taken:
            return
        if self._writer is not None:
            self._is_writing = True
            loop = asyncio.get_running_loop()
            written = loop.run_in_executor(self._writer, self._try_write, taken)
            written.add_done_callback(lambda done: self._finish_write(taken, done.result()))
            return
        self._finish_write(taken, self._try_write(taken))

    def _finish_write(self, taken: Sequence[Waiting], errors: Errors) -> None:
        finish(taken, errors)
        self._count(taken, errors)
        if self._is_writing:
            self._is_writing = False
            if len(self._waiting):
                self._write_waiting()

    def _count(self, taken: Sequence[Waiting], errors: Errors) -> None:
        if errors:
            pairs = zip(taken, errors, strict=True)
            taken = [waiting for waiting, error in pairs if error is None]
        if taken:
            self.counts.stored += len(taken)
            self.counts.batches += 1
            self._rows_since += len(taken)
            self._bytes_since += sum([row.size for row, _ in taken])
            if self._looking is None:
                self._look_later()
            if self._bytes_since > _CHECKPOINT_BYTES and not self._is_checkpointing:
                self._begin_checkpoint()

    def _try_write(self, taken: Sequence[Waiting]) -> Errors:
        """Write some rows, and return what kept each of them out; nothing when all are stored.

        If the database refuses a row, each is written by itself, and only that one fails.
        """
        rows = [row for row, _ in taken]
        error = self._write(rows)
        if isinstance(error, RowRefusedError) and len(rows) > 1:
            return [self._write([row]) for row in rows]
        return () if error is None else [error] * len(rows)

    def _write(self, rows: Sequence[StoredRow]) -> StoreError | None:
        """Write some rows durably: all of them, or none."""
        try:
            _insert(self._database or self._open(_LOOP_BUSY_MS / 1000), rows)
        except sqlite3.IntegrityError as error:
            return row_refused(self.file, error)
        except Exception as error:
            if not is_busy_or_full(error):
                self._let_go()
            return self._explain(error)
        self._unsure += rows
        return None

    # a file that somebody removes

    def _look(self) -> None:
        """Make sure that the latest rows are in a file that has its name, or write them again."""
        self._looking = None
        if self._is_writing:
            self._look_later()
            return
        if not self._is_in_place():
            _log.error("The file %s was removed or replaced while it was open.", self.file)
            self._let_go()
        elif self._is_log_cut():
            self._go_back()
        self._unsure = []
        gone, self._gone = self._gone, []
        if gone:
            whole = self.counts.stored
            self.counts.stored -= len(gone)
            again: list[Waiting] = [(row, None) for row in gone]
            self._finish_write(again, self._try_write(again))
            self.counts.dropped += whole - self.counts.stored

    def _look_later(self) -> None:
        if not self._is_closed:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _is_in_place(self) -> bool:
        """Tell whether the open file still has its name: or nobody will ever read it."""
        try:
            found = os.stat(self._name)
        except OSError:
            return False
        return (found.st_ino, found.st_dev) == self._identity

    def _is_log_cut(self) -> bool:
        """Tell whether the log has lost what it held when this was asked before."""
        seen, self._seen_frame = self._seen_frame, _find_last_frame(self._name)
        return 0 < seen <= self._seen_frame and not _has_frame(self._name, seen)

    def _go_back(self) -> None:
        """Return to the file without its log, which somebody cut: using that would ruin the file.

        Lost is what was only in the log, but for the latest rows, which are written again.
        """
        whole = self.file.with_name(f"{self.file.name}.whole")
        with suppress(OSError):
            make_private(whole)
            shutil.copyfile(self.file, whole)
        self._gone, self._unsure = self._gone + self._unsure, []
        lost = max(self._rows_since - len(self._gone), 0)
        _log.error("The log of %s was cut or removed: %d records are lost.", self.file, lost)
        self._let_go()
        with suppress(OSError):
            whole.replace(self.file)
            for ending in ("-wal", "-shm"):
                Path(self._name + ending).unlink(missing_ok=True)
        self.counts.stored -= lost
        self.counts.dropped += lost
        self._bytes_since = self._rows_since = self._seen_frame = 0

    def _explain(self, error: Exception) -> StoreError:
        try:
            with explain_database_errors(self.file):
                raise error
        except StoreError as explained:
            return explained
        except Exception as unexpected:
            return row_refused(self.file, unexpected)

    # checkpoints

    def _begin_checkpoint(self) -> None:
        if self._is_log_cut():  # to take it over would ruin the file
            self._go_back()
            return
        self._is_checkpointing = True
        self._bytes_since = self._rows_since = 0
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._checkpointer, _take_over_log, self.file)
        done.add_done_callback(lambda done: self._finish_checkpoint(done.result()))

    def _finish_checkpoint(self, left_bytes: int) -> None:
        self._is_checkpointing = False
        was_held, self._is_held = self._is_held, False
        if not self._is_closed and left_bytes > _MAX_LOG_BYTES and not was_held:
            # Written faster than it is taken over: hold the next batches for one round.
            self._is_held = True
            self._begin_checkpoint()
            return
        if was_held and len(self._waiting):
            self._write_waiting()

    # reading

    async def fetch(self, query: Query) -> list[Rows]:
        """Ask the files of all workers."""
        return await asyncio.to_thread(_ask, store_files(self.path), query)

    def explain_damage(self, reason: str) -> StoreError:
        """Return the error for a row that cannot be right."""
        return damaged(self.path, reason)

    # keeping it small

    async def find_latest(self, skipped: int) -> str:
        """Return the latest id but so many, of this worker."""
        query = Query("SELECT id FROM requests ORDER BY id DESC LIMIT 1 OFFSET $1", (skipped,))
        (found,) = await asyncio.to_thread(_ask, [self.file], query)
        return found[0][0] if found else ""

    async def remove_some(self, last: str) -> tuple[int, bool]:
        """Remove some records of this worker below an id."""
        if self._is_closed:
            raise closed_store()
        if self._is_held or self._is_writing:
            await asyncio.sleep(0.001)
            return 0, True
        await asyncio.sleep(0)
        with explain_database_errors(self.file):
            count = _remove(self._database or self._open(_LOOP_BUSY_MS / 1000), last)
        return count, count == _PRUNE_ROWS

    async def close(self) -> None:
        """Write what is waiting, take over the log, and close the file."""
        while len(self._waiting) or self._is_writing:
            self._write_waiting()
            await asyncio.sleep(0)
        if self._looking is not None:
            self._looking.cancel()
            self._look()
        self._is_closed = True
        for executor in (self._writer, self._checkpointer):
            if executor is not None:
                await asyncio.to_thread(executor.shutdown)
        database, self._database = self._database, None
        if database is not None:
            await asyncio.to_thread(database.close)


def _insert(database: sqlite3.Connection, rows: Sequence[StoredRow]) -> None:
    """Write some rows durably: all of them, or none."""
    bodies = [row.bodies for row in rows if row.bodies is not None]
    if len(rows) == 1 and not bodies:  # one statement is a transaction of its own
        database.execute(*_bind(rows[0]))
        return
    inserts: dict[str, list[Any]] = {}
    for row in rows:
        insert, values = _bind(row)
        inserts.setdefault(insert, []).append(values)
    database.execute("BEGIN IMMEDIATE")
    try:
        for insert, found in inserts.items():
            database.executemany(insert, found)
        if bodies:
            database.executemany(_INSERT_BODY, bodies)
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _bind(row: StoredRow) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that inserts a row, and the values for it."""
    columns = row.columns
    if columns[-1] is not None or columns[-2] is not None:
        return _INSERT, columns
    if columns[-3] is not None:
        return _INSERT_STREAM, columns[:-2]
    return _INSERT_PLAIN, columns[:-3]


def _remove(database: sqlite3.Connection, last: str) -> int:
    """Remove some of the records up to an id, the earliest first."""
    query = "SELECT id FROM requests WHERE id < ? ORDER BY id LIMIT ?"
    ids = database.execute(query, (last, _PRUNE_ROWS)).fetchall()
    if ids:
        with transaction(database):
            database.executemany("DELETE FROM requests WHERE id = ?", ids)
            database.executemany("DELETE FROM bodies WHERE id = ?", ids)
    return len(ids)


def _take_over_log(file: Path) -> int:
    """Move the log into the file and return how much of it is left."""
    try:
        with closing(_connect_existing(file, _BUSY_S)) as database:
            (page,) = database.execute("PRAGMA page_size").fetchone()
            logged = 0
            for _ in range(_CHECKPOINT_ROUNDS):
                row = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                _, logged, taken = row
                if logged == taken:
                    return 0
            return max(logged, 0) * page
    except Exception as error:  # the next one may succeed, and commits say what is wrong
        _log.warning("The log of %s was not taken over: %s", file, explain(error))
        return 0


def _find_last_frame(name: str) -> int:
    """Return where the last frame of a log begins, as its index says; 0 without one.

    See "WAL-File Format" and "WAL-Index File Format" in the documentation of SQLite.
    """
    try:
        with open(f"{name}-shm", "rb") as index:
            page_bytes, frames = struct.unpack_from("=HI", index.read(20), 14)
    except (OSError, struct.error):
        return 0
    return 32 + (frames - 1) * (24 + page_bytes) if frames else 0


def _has_frame(name: str, place: int) -> bool:
    """Tell whether a log holds a frame at a place: one that was cut has nothing or zeros there."""
    try:
        with open(f"{name}-wal", "rb") as log:
            log.seek(place)
            return any(log.read(4))
    except OSError:
        return False


def _connect_existing(file: Path, busy_s: float) -> sqlite3.Connection:
    """Open a file that is there; one that was removed meanwhile is not made again."""
    place = f"file:{quote(str(file))}?mode=rw"
    return sqlite3.connect(place, timeout=busy_s, isolation_level=None, uri=True)


def _ask(files: Sequence[Path], query: Query) -> list[Rows]:
    """Return what a query finds in each file, with connections of its own that never write."""
    pages: list[Rows] = []
    for file in files:
        with explain_database_errors(file):
            if not file.exists():
                raise StoreError(Code.STORE_WRITE_FAILED, f"{file} is not there.")
            with closing(_connect_existing(file, _READ_BUSY_S)) as database:
                prepare(database, file, SQLITE_LAYOUT)
                database.execute("PRAGMA query_only = ON")
                pages.append(database.execute(query.text, by_number(query.values)).fetchall())
    return pages
