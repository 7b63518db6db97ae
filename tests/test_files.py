"""Files on disk: private, whole or not at all, and refused with a code."""

import errno
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

import surecall
from evals.export.stored import keep_rows
from support.eval_rows import make_rows
from surecall.base.errors import ConfigError, SurecallError
from surecall.base.files import PRIVATE, explain_write_errors, write_whole
from surecall.evals.export import FORMATS, export_run
from surecall.loop import load_trace, save_trace


@contextmanager
def little_room(limit_bytes: int) -> Generator[None]:
    """Let no file of this process become larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "DISK_FULL"),
        (errno.EDQUOT, "DISK_FULL"),
        (errno.EFBIG, "DISK_FULL"),
        (errno.EIO, "FILE_WRITE_FAILED"),
        (errno.EROFS, "INVALID_OPTION"),
        (errno.EACCES, "INVALID_OPTION"),
        (errno.ENOENT, "INVALID_OPTION"),
        (errno.ENAMETOOLONG, "INVALID_OPTION"),
    ],
)
def test_a_refusal_of_the_file_system_has_a_code(number: int, code: str) -> None:
    """The message says where and why."""
    with pytest.raises(ConfigError) as caught, explain_write_errors("there"):
        raise OSError(number, os.strerror(number))
    assert caught.value.code == code
    assert caught.value.message == f"there cannot be written: {os.strerror(number)}."


def test_a_reader_that_left_is_not_a_full_disk() -> None:
    """A closed pipe is told as what it is."""
    with pytest.raises(BrokenPipeError), explain_write_errors("there"):
        raise BrokenPipeError


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    """What fails in the middle leaves neither half a file nor a trace."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), write_whole(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_bytes() == b"before"
    with write_whole(path) as file:
        file.write(b"after")
    assert path.read_bytes() == b"after"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    """Neither under the final name nor under the one that is used until then."""
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    for name in ("file", "file.part"):
        (tmp_path / name).symlink_to(other)
        with write_whole(tmp_path / "file", mode=PRIVATE) as file:
            file.write(b"new")
        assert other.read_bytes() == b"mine"
        assert (tmp_path / "file").read_bytes() == b"new"
        assert not (tmp_path / "file").is_symlink()
        (tmp_path / "file").unlink()


def test_a_device_is_written_to_and_not_replaced() -> None:
    """A page may go to standard output; one for a full device has a code."""
    with write_whole("/dev/null") as file:
        file.write(b"x")
    assert Path("/dev/null").is_char_device()
    with (
        pytest.raises(ConfigError, match="DISK_FULL"),
        explain_write_errors("/dev/full"),
        write_whole("/dev/full") as file,
    ):
        file.write(b"x")
    assert Path("/dev/full").is_char_device()


def test_a_trace_is_only_for_its_owner(tmp_path: Path) -> None:
    """It holds what was said; a full disk has its own code and leaves the old one."""
    result = surecall.run_sync("hi", model="m", transport=surecall.ScriptedTransport(["hello"]))
    path = tmp_path / "trace.json"
    save_trace(result.trace, path)
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    with little_room(20), pytest.raises(SurecallError, match="DISK_FULL"):
        save_trace(result.trace, path)
    assert path.read_bytes() == before
    assert load_trace(path) == result.trace


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"parquet"}))
def test_an_export_to_a_full_disk_has_a_code(name: str, tmp_path: Path) -> None:
    """And leaves nothing half-written behind."""
    stored = keep_rows(tmp_path / "store", make_rows(trials=1)[:20])
    out = tmp_path / "out"
    with little_room(50), pytest.raises(ConfigError) as caught:
        export_run(stored.store, stored.run_id, out, (name,))
    stored.store.close()
    assert caught.value.code == "DISK_FULL"
    assert [path for path in out.rglob("*") if path.is_file()] == []
