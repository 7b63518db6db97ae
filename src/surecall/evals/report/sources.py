"""Where the trials of a report come from: a store, or rows at hand."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from surecall.errors import Code, StoreError
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.store import RunStore

__all__ = ["TrialSource", "Trials", "open_trials"]

TrialSource: TypeAlias = RunStore | Iterable[TrialRow] | Iterable[tuple[TrialRow, TrialBody | None]]
"""A store, rows, or rows each with its body."""


class Trials(Struct, frozen=True):
    """The rows in order, and a way to the body of each."""

    rows: Iterator[TrialRow]
    body: Callable[[int], TrialBody | None]
    """Only to be asked once the rows have been read."""


def open_trials(source: TrialSource, run_id: str) -> Trials:
    """Return the trials of a run, read one by one."""
    if isinstance(source, RunStore):
        return Trials(source.rows(run_id), lambda index: _stored_body(source, run_id, index))
    bodies: dict[int, TrialBody] = {}
    return Trials(_split(source, bodies), bodies.get)


def _stored_body(store: RunStore, run_id: str, index: int) -> TrialBody | None:
    try:
        return store.body(run_id, index)
    except StoreError as error:
        if error.code != Code.RUN_NOT_FOUND:
            raise
        return None


def _split(
    trials: Iterable[TrialRow] | Iterable[tuple[TrialRow, TrialBody | None]],
    bodies: dict[int, TrialBody],
) -> Iterator[TrialRow]:
    for trial in trials:
        row, body = (trial, None) if isinstance(trial, TrialRow) else trial
        if body is not None:
            bodies[row.index] = body
        yield row
