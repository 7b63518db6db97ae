"""Runs in a store, made of rows at hand."""

import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from support.eval_rows import make_body
from surecall.evals.records import Manifest, TrialBody, TrialRow
from surecall.evals.store import RunStore

__all__ = ["BEGAN_S", "HOSTILE", "Stored", "keep_rows", "no_body"]

BEGAN_S = 1_790_000_000.0
HOSTILE = "\x00\x1b[31m]]></failure><x a='\"'>&#0; |`*_ \ufffe\U0001f600\r\n=1+1 @everyone \u202e"


class Stored:
    """A run, the store it is in, and a folder to write to; the store is open as long as this is."""

    def __init__(self, store: RunStore, run_id: str, out: Path) -> None:
        self.store = store
        self.run_id = run_id
        self.out = out
        weakref.finalize(self, store.close)

    def write(self, writer: Callable[[RunStore, str, Path], tuple[Path, ...]]) -> tuple[Path, ...]:
        """Let a format write its files."""
        return writer(self.store, self.run_id, self.out)


def no_body(_row: TrialRow) -> None:
    """Keep nothing of a trial but its row."""


def keep_rows(
    folder: Path,
    rows: Iterable[TrialRow],
    *,
    body: Callable[[TrialRow], TrialBody | None] = make_body,
    units: int | None = None,
    status: Any = "complete",
    **manifest: Any,
) -> Stored:
    """Put a run into a new store."""
    kept = list(rows)
    store = RunStore(folder / "evals.db")
    made = Manifest(units=len(kept) if units is None else units, package="1.2.3", **manifest)
    run_id = store.create(made, now_s=BEGAN_S)
    store.add(run_id, [(row, body(row)) for row in kept])
    store.finish(run_id, status, now_s=BEGAN_S + 60)
    return Stored(store, run_id, folder / "out")
