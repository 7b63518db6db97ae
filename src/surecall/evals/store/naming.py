"""How runs are named and held: ids that sort by time, tags, `@latest`, one process at a time."""

import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from surecall.base.errors import Code, ConfigError, StoreError, did_you_mean
from surecall.base.files import is_disk_full, lock_file, open_private

LATEST: Final = "@latest"
"""Names the run that was begun last."""
FIRST_EVAL: Final = "surecall eval --models 'zoo:*'"
"""A command that makes a run everywhere: without settings, a key or a network."""

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""No letters that look like digits, none that need a second look."""
_FIRST_S: Final = 1_767_225_600  # 2026-01-01
_TIME_CHARS: Final = 6
_RANDOM_CHARS: Final = 2
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_run_id(now_s: float) -> str:
    """Return eight characters: six of time, so that ids sort, and two of chance."""
    seconds = max(int(now_s) - _FIRST_S, 0)
    text = ""
    for _ in range(_TIME_CHARS):
        seconds, digit = divmod(seconds, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text + "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM_CHARS))


def parse_latest(reference: str) -> int | None:
    """Return how many runs to go back from the latest, or None for any other reference."""
    name, separator, count = reference.partition("~")
    if name != LATEST:
        return None
    if not separator:
        return 0
    if not count.isascii() or not count.isdigit() or len(count) > 9:
        raise StoreError(
            Code.RUN_NOT_FOUND,
            f"{reference!r} does not name a run.",
            hint="@latest is the last run, @latest~1 the one before.",
        )
    return int(count)


def check_tag(name: str) -> str:
    """Return the tag without its `@`, or raise `ConfigError`."""
    bare = name.removeprefix("@")
    if bare == LATEST[1:]:
        hint = f"{LATEST} always names the run that was begun last. Choose another tag."
    elif not _TAG.fullmatch(bare):
        hint = "Use letters, digits, dots, dashes and underscores, such as baseline."
    else:
        return bare
    raise ConfigError(Code.INVALID_OPTION, f"{name!r} cannot be a tag.", hint=hint)


def unknown_run(reference: str, matches: list[str], known: list[str]) -> StoreError:
    """Build the error for a reference that names no run, or several."""
    if matches:
        listed = ", ".join(matches[:6]) + (", …" if len(matches) > 6 else "")
        return StoreError(
            Code.RUN_NOT_FOUND,
            f"{reference!r} is the beginning of {len(matches)} runs.",
            hint=f"Type more of it: {listed}.",
        )
    hint = did_you_mean(reference, known) if known else f"There are no runs yet: {FIRST_EVAL}."
    if reference.endswith((".db", ".sqlite")):
        hint = f"A store is named with --store {reference}."
    return StoreError(Code.RUN_NOT_FOUND, f"There is no run {reference!r}.", hint=hint)


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
