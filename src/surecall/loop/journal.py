"""A record of a run that survives its process: intent before a tool runs, result after.

A run that was killed is resumed by starting it again with the same journal. Replies and results
that were recorded are used again; a tool whose intent was recorded but whose result was not is
repeated only when that is safe, and is otherwise reported as `OUTCOME_UNKNOWN`.
"""

import errno
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, JournalError, JSONTextError
from surecall.base.files import is_disk_full, lock_file, open_private
from surecall.base.records import Effect, ToolResult
from surecall.base.sealed_lines import checksum, seal_line, split_sealed
from surecall.text import decode_own
from surecall.tools.outputs import encode_stored
from surecall.wire import RawReply

JOURNAL_VERSION: Final = 3

_BEGINNING: Final = b'{"kind":"run","run_id":"'
_ANY_RECORD: Final = b'{"kind":"'
_LOOKED_AT_BYTES: Final = 1 << 16
_NOT_A_FILE: Final = frozenset({errno.EISDIR, errno.ELOOP, errno.ENXIO})
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
    """A journal in a file, one JSON record a line; only one process may have it open.

    Every line ends with a checksum over itself and all lines before it.

        transport = surecall.ScriptedTransport(["Hello."])
        journal = surecall.FileJournal("run.journal")
        surecall.run_sync("Hi", model="small", transport=transport, journal=journal)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._size = 0
        self._check = b""
        self._new_folders: tuple[Path, ...] = ()
        self._turn = threading.RLock()

    def __repr__(self) -> str:
        return f"FileJournal({str(self.path)!r})"

    def load(self) -> tuple[JournalRecord, ...]:
        """Open and lock the file and return its records; a torn last line is cut off.

        Raises:
            JournalError: `NOT_A_JOURNAL` for a file that is something else, `JOURNAL_CORRUPT` for
                a damaged line, `JOURNAL_IN_USE`, `DISK_FULL` or `JOURNAL_WRITE_FAILED`.
        """
        with self._turn:
            descriptor = self._open()
            try:
                content = self._read(descriptor)
                records, self._size, self._check = self._parse(content)
                if self._size < len(content):
                    os.ftruncate(descriptor, self._size)
                os.lseek(descriptor, self._size, os.SEEK_SET)
            except OSError as error:
                self.close()
                raise self._failed(error) from error
            except JournalError:
                self.close()
                raise
            return records

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Write the record as one line."""
        text = encode_stored(record)
        with self._turn:
            if self._descriptor is None:
                self.load()
            check = checksum(self._check, text)
            line = seal_line(text, check) + b"\n"
            try:
                self._write(line, durable=durable)
            except OSError as error:
                # The next use loads the file, and cuts off what may be left of the line.
                self.close()
                raise self._failed(error) from error
            self._size += len(line)
            self._check = check

    def close(self) -> None:
        """Close the file, which also unlocks it."""
        with self._turn:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is not None:
            return self._descriptor
        try:
            missing = [folder for folder in self.path.parents if not folder.exists()]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = open_private(self.path)
        except OSError as error:
            if error.errno in _NOT_A_FILE:
                raise self._not_a_journal("it is not a regular file") from error
            raise self._failed(error) from error
        if not lock_file(descriptor):
            os.close(descriptor)
            raise JournalError(
                Code.JOURNAL_IN_USE,
                f"{self.path} is in use by another process.",
                hint="Wait for that run to end; a lock is gone when its process is.",
            )
        self._descriptor = descriptor
        self._new_folders = tuple(missing)
        return descriptor

    def _read(self, descriptor: int) -> bytes:
        """Return what is in the file, unless its beginning shows that it is not a journal."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        pieces = [os.read(descriptor, _LOOKED_AT_BYTES)]
        if pieces[0] and not pieces[0].startswith(_BEGINNING):
            if _ANY_RECORD not in pieces[0]:
                raise self._not_a_journal("it holds something else")
            raise self._corrupt(1, "it does not begin a run")
        while piece := os.read(descriptor, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)

    def _parse(self, content: bytes) -> tuple[tuple[JournalRecord, ...], int, bytes]:
        """Return the records, how many bytes they take, and the checksum of the last."""
        records: list[JournalRecord] = []
        check = b""
        size = 0
        *lines, tail = content.split(b"\n")
        for number, line in enumerate(lines, 1):
            # A loss of power may leave zeroes where a line was to be; none was acknowledged.
            if number == len(lines) and not tail and line and not line.strip(b"\0"):
                break
            try:
                check, record = _read_line(check, line)
            except (JSONTextError, msgspec.ValidationError) as error:
                raise self._corrupt(number, str(error)) from error
            records.append(record)
            size += len(line) + 1
        # A line without its end was not acknowledged, unless its end was there and was changed.
        if _has_changed_end(check, tail):
            raise self._corrupt(len(lines) + 1, "its end is damaged")
        return tuple(records), size, check

    def _write(self, line: bytes, *, durable: bool) -> None:
        assert self._descriptor is not None
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):  # the rest tells why
                written += os.write(self._descriptor, line[written:])
            if written < len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        if durable:
            os.fsync(self._descriptor)
            if self._size == 0:
                for folder in (self.path.parent, *(made.parent for made in self._new_folders)):
                    _sync_folder(folder)

    def _not_a_journal(self, reason: str) -> JournalError:
        return JournalError(
            Code.NOT_A_JOURNAL,
            f"{self.path} is not a journal: {reason}.",
            hint="Name a file that does not exist yet; this one is left as it is.",
        )

    def _corrupt(self, number: int, reason: str) -> JournalError:
        return JournalError(
            Code.JOURNAL_CORRUPT,
            f"Line {number} of {self.path} is damaged: {reason.rstrip('.')}.",
            hint="Restore the file, or start the run again with another journal.",
        )

    def _failed(self, error: OSError) -> JournalError:
        return JournalError(
            Code.DISK_FULL if is_disk_full(error) else Code.JOURNAL_WRITE_FAILED,
            f"{self.path} cannot be used: {error.strerror or error}.",
            hint="Free some space or choose another place; the run can then be resumed.",
        )


def _read_line(before: bytes, line: bytes) -> tuple[bytes, JournalRecord]:
    """Return the checksum of a line that follows the one with another checksum, and its record.

    Raises:
        JSONTextError: The line is not JSON, or has not the checksum it must have.
        msgspec.ValidationError: It is not a record.
    """
    text, found = split_sealed(line)
    check = checksum(before, text)
    if found is None:
        raise JSONTextError(Code.INVALID_JSON, "it has no checksum")
    if found != check:
        raise JSONTextError(Code.INVALID_JSON, "its checksum does not fit")
    return check, msgspec.convert(decode_own(text), JournalRecord)


def _has_changed_end(before: bytes, tail: bytes) -> bool:
    """Tell whether what follows the last line end is a whole line and something else."""
    if split_sealed(tail[:-1])[1] is not None:
        return True
    try:
        _read_line(before, tail[:-1])
    except (JSONTextError, msgspec.ValidationError):
        return False
    return True


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
