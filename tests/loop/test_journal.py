"""The journal file: torn lines, corruption, locks and disk errors."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import Code, JournalError
from surecall.loop import FileJournal
from surecall.loop import journal as journal_module
from surecall.loop.journal import JournalRecord, RecordedIntent, RunHeader

HEADER = RunHeader("r1", "f")
INTENTS = [RecordedIntent(n, f"c{n}", "säve", "write", f"r1/{n}/c{n}") for n in range(3)]
RECORDS: tuple[JournalRecord, ...] = (HEADER, *INTENTS)


def write(path: Path, *records: JournalRecord) -> bytes:
    """Write a journal and return its bytes."""
    journal = FileJournal(path)
    for record in records:
        journal.append(record, durable=False)
    journal.close()
    return path.read_bytes()


def test_a_torn_last_line_is_cut_off_wherever_it_was_torn(tmp_path: Path) -> None:
    """At every byte of the last record: the others are there, and the file goes on cleanly."""
    path = tmp_path / "j"
    content = write(path, *RECORDS)
    start = content.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(content)):
        path.write_bytes(content[:end])
        journal = FileJournal(path)
        assert journal.load() == RECORDS[:-1]
        journal.append(RECORDS[-1], durable=False)
        journal.close()
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param(b"\0" * 64, id="zeroes"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b'{"kind":"run"', id="half a record"),
        pytest.param(b"\0\0\0\n", id="zeroes and a line end"),
    ],
)
def test_a_tail_that_a_loss_of_power_left_is_cut_off(tail: bytes, tmp_path: Path) -> None:
    """What was not written completely was not acknowledged either."""
    path = tmp_path / "j"
    content = write(path, *RECORDS)
    path.write_bytes(content + tail)
    journal = FileJournal(path)
    assert journal.load() == RECORDS
    journal.close()
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"\n", id="empty"),
        pytest.param(b"garbage\n", id="not JSON"),
        pytest.param(b'{"kind":"int\n', id="torn"),
        pytest.param(b"\0\0\0\0\n", id="zeroes"),
        pytest.param(b'{"kind":"unheard_of"}\n', id="unknown kind"),
        pytest.param(b'{"kind":"intent","turn":"x"}\n', id="wrong type"),
        pytest.param(b"[]\n", id="not an object"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_corrupt_line_in_the_middle_is_refused(line: bytes, at: int, tmp_path: Path) -> None:
    """The error names the line, nothing is changed, and the file is not kept locked."""
    path = tmp_path / "j"
    lines = write(path, *RECORDS).splitlines(keepends=True)
    content = b"".join((*lines[:at], line, *lines[at:]))
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(JournalError) as caught:
            FileJournal(path).load()
        assert caught.value.code == Code.JOURNAL_CORRUPT
        assert f"Line {at + 1} " in caught.value.message
    assert path.read_bytes() == content


def test_a_whole_last_record_of_an_unknown_kind_is_not_thrown_away(tmp_path: Path) -> None:
    """It was not torn: another version wrote it, and cutting it off would lose what it says."""
    path = tmp_path / "j"
    content = write(path, *RECORDS) + b'{"kind":"from_the_future"}\n'
    path.write_bytes(content)
    with pytest.raises(JournalError, match="JOURNAL_CORRUPT"):
        FileJournal(path).load()
    assert path.read_bytes() == content


def test_only_one_may_have_the_journal_open(tmp_path: Path) -> None:
    """The second one is told; when the first has closed, it may go on."""
    first, second = FileJournal(tmp_path / "j"), FileJournal(tmp_path / "j")
    first.load()
    with pytest.raises(JournalError) as caught:
        second.load()
    assert caught.value.code == Code.JOURNAL_IN_USE
    first.close()
    assert second.load() == ()
    second.close()


def test_the_file_is_only_for_its_owner(tmp_path: Path) -> None:
    """Prompts and results are nobody else's business."""
    write(tmp_path / "j", HEADER)
    assert (tmp_path / "j").stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A file is not a folder."""
    write(tmp_path / "file", HEADER)
    with pytest.raises(JournalError) as caught:
        FileJournal(tmp_path / "file" / "j").load()
    assert caught.value.code == Code.JOURNAL_WRITE_FAILED


def test_the_repr_names_the_file() -> None:
    """It is clear which journal is meant."""
    assert repr(FileJournal("runs/a.journal")) == "FileJournal('runs/a.journal')"


class FaultyDisk:
    """The `os` module with one call that fails."""

    def __init__(self, call: str, fault: int | str) -> None:
        self.call, self.fault, self.failed = call, fault, 0

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self.call else getattr(os, name)

    def _fail(self, descriptor: int, *rest: Any) -> int:
        self.failed += 1
        if self.fault == "short":
            return os.write(descriptor, rest[0][:-5])
        assert isinstance(self.fault, int)
        raise OSError(self.fault, os.strerror(self.fault))


DISK = [
    pytest.param("write", errno.ENOSPC, Code.DISK_FULL, id="no space"),
    pytest.param("write", errno.EDQUOT, Code.DISK_FULL, id="no quota"),
    pytest.param("write", errno.EFBIG, Code.DISK_FULL, id="largest size"),
    pytest.param("write", errno.EIO, Code.JOURNAL_WRITE_FAILED, id="broken disk"),
    pytest.param("write", "short", Code.JOURNAL_WRITE_FAILED, id="short write"),
    pytest.param("fsync", errno.EIO, Code.JOURNAL_WRITE_FAILED, id="not synced"),
    pytest.param("fsync", errno.ENOSPC, Code.DISK_FULL, id="no space to sync"),
]


@pytest.mark.parametrize(("call", "fault", "code"), DISK)
def test_a_disk_error_is_told_and_leaves_a_journal_that_goes_on(
    call: str, fault: int | str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has a code; when the disk works again, nothing is corrupt."""
    journal = FileJournal(tmp_path / "j")
    journal.append(HEADER, durable=True)
    with monkeypatch.context() as patch:
        disk = FaultyDisk(call, fault)
        patch.setattr(journal_module, "os", disk)
        with pytest.raises(JournalError) as caught:
            journal.append(INTENTS[0], durable=True)
        assert caught.value.code == code
        assert disk.failed == (2 if fault == "short" else 1)
    journal.append(INTENTS[1], durable=True)
    journal.close()
    loaded = FileJournal(tmp_path / "j").load()
    kept = (INTENTS[0],) if call == "fsync" else ()
    assert loaded == (HEADER, *kept, INTENTS[1])


@pytest.mark.parametrize("call", ["read", "ftruncate", "lseek"])
def test_a_journal_that_cannot_be_read_is_told(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors on loading have a code too, and leave the file unlocked."""
    write(tmp_path / "j", HEADER)
    with (tmp_path / "j").open("ab") as file:
        file.write(b"torn")
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "os", FaultyDisk(call, errno.EIO))
        with pytest.raises(JournalError, match="JOURNAL_WRITE_FAILED"):
            FileJournal(tmp_path / "j").load()
    assert FileJournal(tmp_path / "j").load() == (HEADER,)


def test_the_folder_of_a_new_journal_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose name is lost with the power would let a run begin anew."""
    synced: list[str] = []

    class Watching:
        def __getattr__(self, name: str) -> Any:
            return self.fsync if name == "fsync" else getattr(os, name)

        def fsync(self, descriptor: int) -> None:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            synced.append("folder" if is_folder else "file")

    monkeypatch.setattr(journal_module, "os", Watching())
    journal = FileJournal(tmp_path / "j")
    for record in RECORDS[:3]:
        journal.append(record, durable=True)
    journal.append(RECORDS[3], durable=False)
    journal.close()
    assert synced == ["file", "folder", "file", "file"]
