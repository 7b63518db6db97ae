"""A run judged again: every trial gets the verdict of today, and nothing is sent."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .experiments import EvalRun, open_run_store
from .kept_replies import Judge
from .records import Manifest, Reason, TrialBody, TrialRow, make_manifest
from .store import LATEST, RunStore, check_tag


class VerdictChange(Struct, frozen=True, kw_only=True):
    """A trial whose verdict is another one now."""

    index: int
    cell: str
    case: str
    verdict: str
    """`strict` or `original`."""
    ok: bool
    """What it is now."""
    reasons: tuple[Reason, ...]
    """What speaks against it now, or spoke against it before."""


class Regraded(Struct, frozen=True, kw_only=True):
    """What judging a run again gave."""

    source: str
    """The run that was judged."""
    run: EvalRun | None
    """The run with the new verdicts; None when nothing was to be written."""
    trials: int
    undecided: tuple[int, ...]
    """Places of trials that could not be decided again and keep their verdicts."""
    changes: tuple[VerdictChange, ...]


async def regrade(
    reference: str = LATEST,
    *,
    store: str | Path | None = None,
    tag: str | None = None,
    dry_run: bool = False,
) -> Regraded:
    """Judge the trials of a run again and write them as a new run; the old one stays as it is.

    Args:
        reference: The run: its id, the beginning of one, a tag, or `@latest~1`.
        store: The file with the runs; the one of the settings by default.
        tag: A name for the new run.
        dry_run: Whether nothing is to be written.

    Raises:
        StoreError: There is no such run.
        ConfigError: A suite of the run is not there any more.
    """
    if tag is not None:
        check_tag(tag)
    with open_run_store(store, must_exist=True) as opened:
        info = opened.info(opened.resolve(reference))
        judge = Judge(info.manifest)
        pairs = [
            (row, *await judge.decide(row, opened.find_body(info.id, row.index)))
            for row in opened.rows(info.id)
        ]
        trials = [(new or row, body) for row, new, body in pairs]
        manifest = _describe(info.manifest, judge.versions, info.id)
        run = None if dry_run else _write(opened, manifest, trials, tag)
    return Regraded(
        source=info.id,
        run=run,
        trials=len(trials),
        undecided=tuple(row.index for row, new, _ in pairs if new is None),
        changes=tuple(
            change for row, new, _ in pairs if new is not None for change in _compare(row, new)
        ),
    )


def regrade_sync(reference: str = LATEST, **arguments: Any) -> Regraded:
    """Judge a run again where no event loop runs; takes what `regrade` takes."""
    return asyncio.run(regrade(reference, **arguments))


def _describe(old: Manifest, versions: dict[str, str], source: str) -> Manifest:
    """Return the manifest of the new run: that of the old, with the versions of today."""
    return replace(
        old,
        suites=versions,
        package=make_manifest((), axes={}).package,
        command=f"surecall eval regrade {source}",
        regraded_from=source,
    )


def _write(
    store: RunStore,
    manifest: Manifest,
    trials: list[tuple[TrialRow, TrialBody | None]],
    tag: str | None,
) -> EvalRun:
    run_id = store.create(manifest)
    with store.hold(run_id):
        store.add(run_id, trials)
        is_over = len(trials) >= manifest.units
        store.finish(run_id, "complete" if is_over else "interrupted")
    if tag is not None:
        store.tag(run_id, tag)
    return EvalRun(store.path, store.info(run_id))


def _compare(old: TrialRow, new: TrialRow) -> Iterator[VerdictChange]:
    for verdict in ("strict", "original"):
        was, now = (getattr(row, f"{verdict}_ok") for row in (old, new))
        if was != now:
            yield VerdictChange(
                index=new.index,
                cell=new.cell.label,
                case=new.case,
                verdict=verdict,
                ok=now,
                reasons=getattr(old if now else new, f"{verdict}_reasons"),
            )
