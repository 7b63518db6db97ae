"""A record of a run that survives its process: intent before a tool runs, result after.

A run that was killed is resumed by starting it again with the same journal. Replies and results
that were recorded are used again; a tool whose intent was recorded but whose result was not is
repeated only when that is safe, and is otherwise reported as `OUTCOME_UNKNOWN`.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from surecall.errors import Code, JournalError, JSONTextError
from surecall.jsontext import decode_own
from surecall.protocols import RawReply
from surecall.records import Effect, ToolResult

from .stored import encode_stored

__all__ = [
    "JOURNAL_VERSION",
    "FileJournal",
    "Journal",
    "JournalRecord",
    "MemoryJournal",
    "RecordedFailure",
    "RecordedIntent",
    "RecordedReply",
    "RecordedResult",
    "RunHeader",
]

JOURNAL_VERSION: Final = 1

_NOT_SYNCED: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSUP})
"""How systems say that a folder is nothing to sync."""


class RunHeader(Struct, frozen=True, tag_field="kind", tag="run"):
    """The first record: which run this is."""

    run_id: str
    fingerprint: str
    version: int = JOURNAL_VERSION


class RecordedReply(Struct, frozen=True, tag_field="kind", tag="reply"):
    """A reply that arrived, as the protocol parsed it."""

    turn: int
    reply: RawReply


class RecordedFailure(Struct, frozen=True, tag_field="kind", tag="failure"):
    """A refused request that was followed by one without tools."""

    turn: int
    code: str
    message: str
    status: int | None


class RecordedIntent(Struct, frozen=True, tag_field="kind", tag="intent"):
    """A tool is about to run."""

    turn: int
    call_id: str
    name: str
    effect: Effect
    key: str
    """The idempotency key the tool is given: run, turn and call."""


class RecordedResult(Struct, frozen=True, tag_field="kind", tag="result"):
    """A call has its result."""

    turn: int
    result: ToolResult


JournalRecord = RunHeader | RecordedReply | RecordedFailure | RecordedIntent | RecordedResult


class Journal(Protocol):
    """Where a run writes what must not be lost."""

    def load(self) -> tuple[JournalRecord, ...]:
        """Return what was recorded so far; empty for a new run."""
        ...

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Record; `durable` means it must survive a loss of power, not only of the process."""
        ...

    def close(self) -> None:
        """Let others use the journal."""
        ...


class MemoryJournal:
    """A journal in memory, for tests."""

    def __init__(self, records: Iterable[JournalRecord] = ()) -> None:
        self.records = list(records)

    def load(self) -> tuple[JournalRecord, ...]:
        """Return what was recorded so far."""
        return tuple(self.records)

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Keep the record."""
        del durable
        self.records.append(record)

    def close(self) -> None:
        """Nothing to let go of."""


class FileJournal:
    """A journal in a file, one JSON record a line; only one process may have it open."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._size = 0

    def __repr__(self) -> str:
        return f"FileJournal({str(self.path)!r})"

    def load(self) -> tuple[JournalRecord, ...]:
        """Open and lock the file and return its records; a torn last line is cut off."""
        descriptor = self._open()
        try:
            content = _read_all(descriptor)
            records, self._size = self._parse(content)
            if self._size < len(content):
                os.ftruncate(descriptor, self._size)
            os.lseek(descriptor, self._size, os.SEEK_SET)
        except OSError as error:
            self.close()
            raise self._write_failed(error) from error
        except JournalError:
            self.close()
            raise
        return records

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Write the record as one line."""
        if self._descriptor is None:
            self.load()
        line = encode_stored(record) + b"\n"
        try:
            self._write(line, durable=durable)
        except OSError as error:
            # The next use loads the file, which cuts off whatever part of the line got there.
            self.close()
            raise self._write_failed(error) from error
        self._size += len(line)

    def close(self) -> None:
        """Close the file, which also unlocks it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is not None:
            return self._descriptor
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(
                Code.JOURNAL_WRITE_FAILED,
                f"{self.path} cannot be opened: {error}.",
                hint="Choose a place that can be written.",
            ) from error
        if not _lock(descriptor):
            os.close(descriptor)
            raise JournalError(
                Code.JOURNAL_IN_USE,
                f"{self.path} is in use by another process.",
                hint="Wait for that run to end; a lock is gone when its process is.",
            )
        self._descriptor = descriptor
        return descriptor

    def _parse(self, content: bytes) -> tuple[tuple[JournalRecord, ...], int]:
        """Return the records and how many bytes they take."""
        records: list[JournalRecord] = []
        good = 0
        for number, line in enumerate(content.splitlines(keepends=True), 1):
            is_last = good + len(line) == len(content)
            try:
                record = msgspec.convert(decode_own(line), JournalRecord)
            except (JSONTextError, msgspec.ValidationError) as error:
                # What was cut off is not JSON; JSON of another shape was written by someone else.
                if is_last and isinstance(error, JSONTextError):
                    break
                raise JournalError(
                    Code.JOURNAL_CORRUPT,
                    f"line {number} of {self.path} cannot be read: {error}.",
                    hint="Restore the file, or start the run anew with another journal.",
                ) from error
            if not line.endswith(b"\n"):
                break
            records.append(record)
            good += len(line)
        return tuple(records), good

    def _write(self, line: bytes, *, durable: bool) -> None:
        assert self._descriptor is not None
        written = os.write(self._descriptor, line)
        if written != len(line):
            raise OSError(f"only {written} of {len(line)} bytes were written")
        if durable:
            os.fsync(self._descriptor)
            if self._size == 0:
                _sync_folder(self.path.parent)

    def _write_failed(self, error: OSError) -> JournalError:
        return JournalError(
            Code.JOURNAL_WRITE_FAILED,
            f"{self.path} cannot be written: {error}.",
            hint="Free some space or choose another place; the run can then be resumed.",
        )


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    pieces: list[bytes] = []
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file survive a loss of power, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # systems that do not open folders
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_SYNCED:
            raise
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:  # pragma: no cover - platforms without advisory locks
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
