"""The run that is exported: always read from the store, a trial at a time."""

from collections.abc import Iterator

from surecall.errors import Code, StoreError
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.store import RunStore

__all__ = ["RunSource"]


class RunSource:
    """One run as it is at this moment; a run that goes on does not change under the reader."""

    def __init__(self, store: RunStore, run_id: str) -> None:
        self.store = store
        self.info = store.info(run_id)
        self.run_id = run_id
        complete = self.info.status == "complete"
        self._places = None if complete else frozenset(store.done(run_id))

    def rows(self) -> Iterator[TrialRow]:
        """Yield the trials in the order of the matrix; every time the same ones."""
        places = self._places
        for row in self.store.rows(self.run_id):
            if places is None or row.index in places:
                yield row

    def body(self, index: int) -> TrialBody | None:
        """Return what was kept of a trial beside its row, if anything was."""
        try:
            return self.store.body(self.run_id, index)
        except StoreError as error:
            if error.code != Code.RUN_NOT_FOUND:
                raise
            return None
