"""Which run an experiment resumes."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from surecall.base.errors import Code, StoreError

from .records import Manifest
from .store import LATEST, RunStore

LATEST_MATCH: Final = "(the latest of this experiment)"
"""What `--resume` without a run stands for."""

_SHOWN_DIFFERENCES: Final = 8


class ChosenRun(Struct, frozen=True, kw_only=True):
    """Which run the trials belong to."""

    run_id: str | None
    """None for a new one."""
    is_complete: bool = False
    notes: tuple[str, ...] = ()


def choose_run(
    store: RunStore, manifest: Manifest, *, resume: str | None, is_new: bool
) -> ChosenRun:
    """Choose the run to resume, or none; one that does not fit is never taken.

    Raises:
        StoreError: The run that is named differs, or there is none to resume.
    """
    if is_new:
        return ChosenRun(run_id=None)
    if resume is not None and resume != LATEST_MATCH:
        return _check_named(store, manifest, resume)
    unfinished = store.find_unfinished(manifest.hash)
    if unfinished is not None:
        return ChosenRun(run_id=unfinished)
    if resume is None:
        return ChosenRun(run_id=None, notes=_explain_left(store, manifest))
    complete = store.find_complete(manifest.hash)
    if complete is None:
        raise StoreError(
            Code.RUN_NOT_FOUND,
            "there is no run of this experiment to resume.",
            hint="Leave out --resume to begin one.",
        )
    return ChosenRun(run_id=complete, is_complete=True)


def find_latest(store: RunStore) -> str:
    """Return the latest run that nobody has finished or works on; otherwise the latest of all."""
    waiting = (
        info.id for info in store.runs() if not info.is_complete and not store.is_held(info.id)
    )
    return next(waiting, LATEST)


def _check_named(store: RunStore, manifest: Manifest, reference: str) -> ChosenRun:
    info = store.info(store.resolve(reference))
    differences = info.manifest.differences(manifest)
    if differences:
        raise StoreError(
            Code.RUN_MISMATCH,
            f"Run {info.id} was made with other settings: {'; '.join(_shorten(differences))}.",
            hint="Give the flags it was begun with, or begin a new run with --new.",
        )
    return ChosenRun(run_id=info.id, is_complete=info.is_complete)


def _explain_left(store: RunStore, manifest: Manifest) -> tuple[str, ...]:
    """Say why an unfinished run that looks the same is not resumed."""
    for info in store.runs():
        if not info.is_complete and info.manifest.axes == manifest.axes:
            differences = _shorten(info.manifest.differences(manifest))
            return (
                f"run {info.id} is not finished, but cannot be resumed:",
                *(f"  {line}" for line in differences),
            )
    return ()


def _shorten(differences: Sequence[str]) -> list[str]:
    more = len(differences) - _SHOWN_DIFFERENCES
    return [*differences[:_SHOWN_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])]
