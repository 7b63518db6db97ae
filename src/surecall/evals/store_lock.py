"""One process at a time works on a run; the lock is gone when its process is."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from surecall.errors import Code, StoreError
from surecall.files import is_disk_full, lock_file, open_private

__all__ = ["hold_run", "is_held"]


@contextmanager
def hold_run(store: Path, run_id: str) -> Generator[None]:
    """Keep all others from working on a run.

    Raises:
        StoreError: `RUN_IN_USE` when another process, or another part of this one, works on it.
    """
    path = _lock_path(store, run_id)
    descriptor = _acquire(path)
    if descriptor is None:
        raise StoreError(
            Code.RUN_IN_USE,
            f"another process is working on run {run_id}.",
            hint="Wait for it, or begin another run with --new.",
        )
    try:
        yield
    finally:
        # While it is still held, so that nobody else's lock is taken away.
        path.unlink(missing_ok=True)
        os.close(descriptor)


def is_held(store: Path, run_id: str) -> bool:
    """Tell whether somebody works on the run right now."""
    path = _lock_path(store, run_id)
    if not path.exists():
        return False
    descriptor = _acquire(path)
    if descriptor is None:
        return True
    path.unlink(missing_ok=True)
    os.close(descriptor)
    return False


def _lock_path(store: Path, run_id: str) -> Path:
    return store.with_name(f"{store.name}.{run_id}.lock")


def _acquire(path: Path) -> int | None:
    while True:
        try:
            descriptor = open_private(path)
        except OSError as error:
            raise StoreError(
                Code.DISK_FULL if is_disk_full(error) else Code.STORE_WRITE_FAILED,
                f"{path} cannot be written: {error.strerror or error}.",
                hint="Check the place and the permissions.",
            ) from error
        if not lock_file(descriptor):
            os.close(descriptor)
            return None
        if _is_same_file(descriptor, path):
            return descriptor
        # Its holder took the file away between our opening and our locking it.
        os.close(descriptor)


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
