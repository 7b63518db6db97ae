"""Files on disk: private to their owner, locked, written whole, and refused with a code."""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from surecall.base.errors import Code, ConfigError

__all__ = [
    "PRIVATE",
    "explain_write_errors",
    "is_disk_full",
    "lock_file",
    "make_private",
    "open_private",
    "unlock_file",
    "write_whole",
]

PRIVATE: Final = 0o600
"""Mode of a file that only its owner may read."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A full disk, a used-up quota, and a file that may not grow any more."""

_FAILED: Final = frozenset({errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE})
"""The device failed; every other refusal is about the place that was chosen."""

_NOT_FOLLOWED: Final = getattr(os, "O_NOFOLLOW", 0)
_NOT_WAITED_FOR: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_CLOSED_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0)


def is_disk_full(error: OSError) -> bool:
    """Tell whether there was no room for what had to be written."""
    return error.errno in _FULL


@contextmanager
def explain_write_errors(place: str | Path) -> Generator[None]:
    """Turn a refusal of the file system into an error with a code.

    Raises:
        ConfigError: `DISK_FULL`, `FILE_WRITE_FAILED`, or `INVALID_OPTION` for a wrong place.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has left, which is not a failure
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        if is_disk_full(error):
            code, hint = Code.DISK_FULL, "Free some space, or choose a place on another disk."
        elif error.errno in _FAILED:
            code, hint = Code.FILE_WRITE_FAILED, "Check the device, or choose another place."
        else:
            code, hint = Code.INVALID_OPTION, "Choose a place that can be written."
        raise ConfigError(code, f"{place} cannot be written: {reason}.", hint=hint) from error


def open_private(path: Path) -> int:
    """Open a file for reading and writing, made new when it is not there, and return it.

    Neither a symbolic link nor a device, pipe or folder is opened: `OSError` with `ELOOP`,
    `EISDIR` or `ENXIO`. The open file is checked, not its name, which could change meanwhile.
    """
    flags = os.O_RDWR | os.O_CREAT | _CLOSED_ON_EXEC | _NOT_FOLLOWED | _NOT_WAITED_FOR
    descriptor = os.open(path, flags, PRIVATE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "it is not a regular file", str(path))
    return descriptor


def make_private(path: Path) -> None:
    """Make an empty file for its owner only; one that is there stays as it is.

    It is for databases: what they put next to their file gets the mode of the file.
    """
    try:
        # Nobody can have opened a file that did not exist: closing it takes no lock away.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED_ON_EXEC, PRIVATE))
    except FileExistsError:
        return


def lock_file(descriptor: int, *, waits: bool = False) -> bool:
    """Lock an open file and tell whether that succeeded; the lock ends with its process."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - platforms without advisory locks
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def unlock_file(descriptor: int) -> None:
    """Let others lock an open file."""
    with suppress(ImportError):
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def write_whole(path: str | Path, *, mode: int = 0o666) -> Generator[BinaryIO]:
    """Open a file that appears under its name only when everything is in it.

    What is not a regular file, such as `/dev/stdout`, is written to directly.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    half = path.with_name(f"{path.name}.part")
    half.unlink(missing_ok=True)  # left behind by a process that was killed, or a link
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED_ON_EXEC
    try:
        with open(os.open(half, flags, mode), "wb") as file:
            yield file
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
