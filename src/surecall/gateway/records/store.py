"""The one interface of stores for requests: filters, pages, retention, and what a store does."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, Protocol

from msgspec import Struct

from surecall.base.errors import Code, StoreError
from surecall.base.limits import MIB

from .record import RequestRecord, first_id_at

MAX_PAGE: Final = 1000
"""The most records of one page."""

DAY_S: Final = 86_400.0

NOT_CLEAN: Final = "not-clean"
"""Stands for every outcome in which something was wrong."""


class RecordFilter(Struct, frozen=True, kw_only=True):
    """Which records are wanted; what is unset does not matter."""

    since: float | None = None
    """Seconds since 1970; from this moment on."""
    until: float | None = None
    """Seconds since 1970; before this moment."""
    model: str | None = None
    """The model asked for, or the one that answered."""
    upstream: str | None = None
    outcome: str | None = None
    """An outcome, or `not-clean` for all that a reply was changed, asked for again or missed."""
    code: str | None = None
    """The code of a defect, or of the error that ended the request."""
    status: str | None = None
    """An HTTP status such as `429`, or all that begin like it: `4xx`."""
    key_id: str | None = None


class Selection(Struct, frozen=True, kw_only=True):
    """Figures that are asked of a store."""

    columns: tuple[str, ...]
    """Expressions over the table `r`; in braces, what a `Dialect` writes in its own way."""
    group_by: int = 0
    """How many of the columns, from the first on, make a group; 0 means none."""
    order_by: str = ""
    limit: int = 1000
    """The most rows that each file of a store gives."""


Figures = list[tuple[Any, ...]]
"""Rows of figures, in the order of the columns that were asked for."""


class RecordPage(Struct, frozen=True, kw_only=True):
    """Some records, the latest first, without their bodies."""

    records: tuple[RequestRecord, ...]
    next: str | None = None
    """Give this as `before` to get the page that follows; None when there is none."""


class Retention(Struct, frozen=True, kw_only=True):
    """How long and how many records are kept; None means without limit."""

    max_age_s: float | None = 30 * DAY_S
    max_records: int | None = 1_000_000


class StoreCounts(Struct, kw_only=True):
    """What a store has done since it was opened."""

    stored: int = 0
    batches: int = 0
    spooled: int = 0
    """Records that went to the spool because the store was away."""
    replayed: int = 0
    """Records that came back from the spool into the store."""
    refused: int = 0
    """Records that no store will ever take; they are in the dead-letter file."""
    dropped: int = 0
    """Records that are nowhere: the spool was full or failed as well."""
    reopened: int = 0
    """How often the store was opened again, because its server or its file had gone."""
    restarts: int = 0
    """How often a task that writes died and was started again."""

    def note_restart(self) -> None:
        """Count a task that died."""
        self.restarts += 1


DEFAULT_SPOOL_BYTES: Final = 256 * MIB
"""How large the file may get that holds records while their store cannot be reached."""


class RecordStore(Protocol):
    """Where requests are kept."""

    counts: StoreCounts

    async def add(self, record: RequestRecord) -> None:
        """Keep a record; when this returns it survives the death of the process.

        A record whose id is there already is left out. A caller that is cancelled while it waits
        has its record kept all the same.

        Raises:
            StoreError: It could not be kept.
        """
        ...

    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it, as after a client that has left."""
        ...

    async def list(
        self, wanted: RecordFilter = ..., *, before: str | None = None, limit: int = 50
    ) -> RecordPage:
        """Return a page of records, the latest first."""
        ...

    async def get(self, record_id: str) -> RequestRecord | None:
        """Return one record with its bodies."""
        ...

    def export(self, wanted: RecordFilter = ...) -> AsyncIterator[RequestRecord]:
        """Yield all records that are wanted, the earliest first, with their bodies."""
        ...

    async def select(self, selection: Selection, wanted: RecordFilter = ...) -> Figures:
        """Return figures of the records that are wanted; groups of several files are not merged."""
        ...

    async def prune(self, retention: Retention) -> int:
        """Remove what need not be kept any more, and return how many records that were."""
        ...

    async def close(self) -> None:
        """Write what is waiting, and let go of everything."""
        ...


def closed_store() -> StoreError:
    """Return the error for a store that is used after it was closed."""
    return StoreError(Code.STORE_WRITE_FAILED, "the store of requests is closed.")


def render_filter(
    wanted: RecordFilter,
    sign: str,
    find: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> tuple[str, list[str]]:
    """Return a filter as a condition of SQL on the table `r`, and its values.

    Args:
        wanted: What is looked for.
        sign: What numbered values begin with, such as `$`.
        find: The function that finds a text inside another.
        before: The page begins below this id.
        after: The page begins above this id.
    """
    conditions: list[str] = []
    values: list[str] = []
    for condition, value in _conditions(wanted, find, before, after):
        if value is not None:
            values.append(value.replace("\0", "\N{REPLACEMENT CHARACTER}"))
            condition = condition.replace("?", f"{sign}{len(values)}")
        conditions.append(condition)
    return " AND ".join(conditions) or "1 = 1", values


def _conditions(
    wanted: RecordFilter, find: str, before: str | None, after: str | None
) -> Iterator[tuple[str, str | None]]:
    if wanted.since is not None:
        yield "r.id >= ?", first_id_at(wanted.since)
    if wanted.until is not None:
        yield "r.id < ?", first_id_at(wanted.until)
    if before is not None:
        yield "r.id < ?", before
    if after is not None:
        yield "r.id > ?", after
    if wanted.model is not None:
        yield "(r.model_asked = ? OR r.model_answered = ?)", wanted.model
    if wanted.upstream is not None:
        yield "r.upstream = ?", wanted.upstream
    if wanted.outcome == NOT_CLEAN:
        yield "r.outcome <> 'clean' AND r.outcome <> 'relayed'", None
    elif wanted.outcome is not None:
        # Said twice, so that the index of what is not clean can be used.
        also = "" if wanted.outcome == "clean" else " AND r.outcome <> 'clean'"
        yield f"r.outcome = ?{also}", wanted.outcome
    if wanted.status is not None:
        begins = "substr(CAST(r.status AS TEXT), 1, length(?)) = ?"
        yield begins, wanted.status.rstrip("x") or "-"
    if wanted.key_id is not None:
        yield "r.key_id = ?", wanted.key_id
    if wanted.code is not None:
        yield f"r.findings IS NOT NULL AND {find}(r.findings, ?) > 0", f"|{wanted.code}|"


def first_kept(retention: Retention, beyond: str | None) -> str:
    """Return the id below which records go; `beyond` is the latest that is one too many."""
    last = ""
    if retention.max_age_s is not None:
        last = first_id_at(time.time() - retention.max_age_s)
    return last if beyond is None else max(last, f"{beyond}0")
