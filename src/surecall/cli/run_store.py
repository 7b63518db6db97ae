"""Where the runs of evals are kept."""

from pathlib import Path
from typing import Final

from surecall.config import load_config
from surecall.errors import Code, StoreError
from surecall.evals.store import STORE_FILE, RunStore

__all__ = ["open_run_store", "run_store_path"]

_FOLDER: Final = Path(".surecall")


def run_store_path(path: str | None) -> Path:
    """Return the file that was named, or the one that the settings say."""
    return Path(path) if path else (load_config().evals_dir or _FOLDER) / STORE_FILE


def open_run_store(path: str | None, *, must_exist: bool = False) -> RunStore:
    """Open the file that was named, or the one that the settings say.

    Args:
        path: As given on the command line.
        must_exist: Whether a file that is not there is an error, and not a new store.
    """
    place = run_store_path(path)
    if must_exist and not place.exists():
        raise StoreError(
            Code.RUN_NOT_FOUND,
            f"there are no runs: {place} does not exist.",
            hint="Run surecall eval first, or name the file with --store.",
        )
    is_begun = place.parent == _FOLDER and not place.parent.exists()
    store = RunStore(place)
    if is_begun:
        (_FOLDER / ".gitignore").write_text("# Runs of evals are no part of the project.\n*\n")
    return store
