"""Which run an experiment resumes, and bringing the verdicts of its kept trials up to date."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, StoreError

from .kept_replies import Judge
from .records import VERDICT_VERSION, Manifest
from .store import LATEST, RunStore

LATEST_MATCH: Final = "(the latest of this experiment)"
"""What `--resume` without a run stands for."""

_SHOWN_DIFFERENCES: Final = 8
_SAME_REQUESTS: Final = {
    "6-aa3c366d8215": (
        "5-aa3c366d8215",
        "4-aa3c366d8215",
        "3-aa3c366d8215",
        "2-aa3c366d8215",
        "1-c84879e36c86",
    ),
    "6-5ca180d8eaa1": (
        "5-5ca180d8eaa1",
        "4-5ca180d8eaa1",
        "3-5ca180d8eaa1",
        "2-5ca180d8eaa1",
        "1-723588422376",
    ),
    "5-9d5d17f9a232": ("4-9d5d17f9a232", "3-9d5d17f9a232", "2-9d5d17f9a232", "1-9d5d17f9a232"),
    "4-a3f66d05d0ff": ("3-a3f66d05d0ff", "2-a3f66d05d0ff", "a3f66d05d0ff"),
}
"""Versions of suites, each with those of before that asked the same and judged otherwise."""


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
    same = [each.hash for each in _list_same(manifest)]
    unfinished = store.find_unfinished(*same)
    if unfinished is not None:
        return ChosenRun(run_id=unfinished)
    if resume is None:
        return ChosenRun(run_id=None, notes=_explain_left(store, manifest))
    complete = store.find_complete(*same)
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
    differences = min(map(info.manifest.differences, _list_same(manifest)), key=len)
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


def _list_same(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the experiment as it is described now, and as it was described before."""
    versions = (_list_versions(version) for version in manifest.suites.values())
    for chosen in product(*versions):
        yield replace(manifest, suites=dict(zip(manifest.suites, chosen, strict=True)))


def _list_versions(version: str) -> tuple[str, ...]:
    found, slash, sampling = version.partition("/")
    return (version, *(f"{old}{slash}{sampling}" for old in _SAME_REQUESTS.get(found, ())))


async def renew_verdicts(store: RunStore, run_id: str, manifest: Manifest) -> int:
    """Judge trials again whose verdicts are of an earlier version, and return how many.

    A trial whose replies were not kept, or would lead to other requests now, keeps its verdict and
    the version of it; reports say so.

    Args:
        store: Where the run is.
        run_id: The run that is about to be resumed.
        manifest: The experiment as it is described now.
    """
    info = store.info(run_id)
    old = [row for row in store.rows(run_id) if row.verdict_version != VERDICT_VERSION]
    if info.is_complete or (not old and info.manifest.hash == manifest.hash):
        return 0
    judge = Judge(info.manifest)
    decided = [await judge.decide(row, store.find_body(run_id, row.index)) for row in old]
    renewed = [row for row, _ in decided if row is not None]
    store.replace_verdicts(run_id, replace(info.manifest, suites=manifest.suites), renewed)
    return len(renewed)
