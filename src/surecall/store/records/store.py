"""The one interface of stores for requests: pages, figures, counts."""

import asyncio
import heapq
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import islice, repeat
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, StoreError, explain
from surecall.base.limits import MIB
from surecall.base.redaction import open_log
from surecall.store.databases import Query, Rows

from .record import RequestRecord, StoredRow, decode_row
from .tables import Dialect, RecordFilter, Selection

_log = open_log("surecall.gateway")
MAX_PAGE: Final = 1000
"""The most records of one page."""
DEFAULT_SPOOL_BYTES: Final = 256 * MIB
"""How large the file may get that holds records while their store cannot be reached."""

Figures = list[tuple[Any, ...]]
"""Rows of figures, in the order of the columns that were asked for."""


class RecordPage(Struct, frozen=True, kw_only=True):
    """Some records, the latest first, without their bodies."""

    records: tuple[RequestRecord, ...]
    next: str | None = None
    """Give this as `before` to get the page that follows; None when there is none."""


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


class RecordStore(ABC):
    """Where requests are kept: who implements it adds, removes, and answers one query."""

    counts: StoreCounts
    dialect: Dialect

    @abstractmethod
    async def add(self, record: RequestRecord) -> None:
        """Keep a record; when this returns it survives the death of the process.

        A record whose id is there already is left out. A caller that is cancelled while it waits
        has its record kept all the same.

        Raises:
            StoreError: It could not be kept.
        """

    @abstractmethod
    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it, as after a client that has left."""

    @abstractmethod
    async def fetch(self, query: Query) -> list[Rows]:
        """Return the rows that a query finds, for each file of the store."""

    @abstractmethod
    def explain_damage(self, reason: str) -> StoreError:
        """Return the error for a row that cannot be right."""

    @abstractmethod
    async def find_latest(self, skipped: int) -> str:
        """Return the latest id but so many, of the records that are this store's to remove."""

    @abstractmethod
    async def remove_some(self, last: str) -> tuple[int, bool]:
        """Remove some records below an id; return how many, and whether there may be more."""

    @abstractmethod
    async def close(self) -> None:
        """Write what is waiting, and let go of everything."""

    async def list(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> RecordPage:
        """Return a page of records, the latest first."""
        limit = max(1, min(limit, MAX_PAGE))
        found = await self._page(self.dialect.page(wanted, limit + 1, before=before), limit + 1)
        records = tuple(found[:limit])
        return RecordPage(records=records, next=records[-1].id if len(found) > limit else None)

    async def get(self, record_id: str) -> RequestRecord | None:
        """Return one record with its bodies."""
        if "\0" in record_id:
            return None
        query = Query(f"{self.dialect.rows(bodies=True)} WHERE r.id = $1", (record_id,))
        found = await self._page(query, 1)
        return found[0] if found else None

    async def export(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> AsyncIterator[RequestRecord]:
        """Yield all records that are wanted, the earliest first, with their bodies."""
        after = ""
        while True:
            query = self.dialect.page(wanted, MAX_PAGE, after=after, bodies=True)
            found = await self._page(query, MAX_PAGE, latest_first=False)
            for record in found:
                yield record
            if len(found) < MAX_PAGE:
                return
            after = found[-1].id

    async def select(
        self,
        selection: Selection,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> Figures:
        """Return figures of the records that are wanted; groups of several files are not merged."""
        pages = await self.fetch(self.dialect.figures(selection, wanted))
        return [tuple(row) for page in pages for row in page]

    async def _page(
        self, query: Query, limit: int, *, latest_first: bool = True
    ) -> "list[RequestRecord]":
        pages = await self.fetch(query)
        merged = heapq.merge(*pages, key=lambda row: row[0], reverse=latest_first)
        return [self._decode(tuple(row)) for row in islice(merged, limit)]

    def _decode(self, row: tuple[Any, ...]) -> RequestRecord:
        try:
            return decode_row(row[:-2], *row[-2:])
        except (ValueError, TypeError) as error:
            raise self.explain_damage(str(error)) from error


def closed_store() -> StoreError:
    """Return the error for a store that is used after it was closed."""
    return StoreError(Code.STORE_WRITE_FAILED, "the store of requests is closed.")


# Group commit: all records that come within one turn of the loop are written together

Waiting = tuple[StoredRow, "asyncio.Future[None] | None"]


class WaitingRows:
    """Rows that are not written yet, with whoever waits for them."""

    __slots__ = ("_begin", "_is_begun", "_rows")

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin = begin
        """Called once, in the next turn of the loop, when there is something to write."""
        self._rows: list[Waiting] = []
        self._is_begun = False

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, row: StoredRow, *, waits: bool = True) -> "asyncio.Future[None] | None":
        """Add a row, and return what is done when it is durable."""
        loop = asyncio.get_running_loop()
        future = loop.create_future() if waits else None
        self._rows.append((row, future))
        if not self._is_begun:
            self._is_begun = True
            loop.call_soon(self._begin)
        return future

    def take(self) -> list[Waiting]:
        """Return everything that is waiting."""
        taken, self._rows, self._is_begun = self._rows, [], False
        return taken


def finish(taken: Sequence[Waiting], errors: Sequence[StoreError | None] = ()) -> None:
    """Tell everybody how it went; one who was cancelled meanwhile is passed over.

    Args:
        taken: Rows, with whoever waits for them.
        errors: What kept each row out; empty when all of them are stored.
    """
    for (_, future), error in zip(taken, errors or repeat(None), strict=False):
        if future is None:
            if error is not None:
                _log.warning("A request was not recorded: %s", explain(error))
        elif not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


# Figures of many requests, counted by the database; what several files found is added up

MAX_GROUPS: Final = 2000
"""How many groups are told apart; names of models and prompts come from clients."""
MAX_TIMED: Final = 20_000
"""How many of the latest requests times are taken from."""

_COUNTS: Final = (
    "count(*)",
    "sum(CASE WHEN r.findings IS NOT NULL AND r.outcome <> 'failed' THEN 1 ELSE 0 END)",
    "sum(CASE WHEN r.observed = '' THEN {has_receipts} ELSE 0 END)",
    "sum({has_parse_error})",
    "sum(r.retries)",
    "sum(r.upstream_requests)",
    "sum(r.calls)",
)


class Counts(Struct):
    """Figures of some requests; those of others can be added."""

    requests: int = 0
    with_defects: int = 0
    """Requests with a reply in which a defect was found; errors of an endpoint are not counted."""
    with_receipts: int = 0
    """Requests in which something was changed."""
    parse_errors: int = 0
    retries: int = 0
    upstream_requests: int = 0
    calls: int = 0

    def add(self, figures: Iterable[Any]) -> None:
        """Add the figures of a row, in the order of the fields."""
        for name, value in zip(self.__struct_fields__, figures, strict=True):
            setattr(self, name, getattr(self, name) + int(value or 0))


class TimeCount(Struct, frozen=True):
    """Requests of one stretch of time with one outcome."""

    slot: int
    """The number of the stretch, from the beginning of what was asked for."""
    outcome: str
    requests: int
    parse_errors: int


class ModelCount(Struct, frozen=True):
    """Requests for a model at an upstream with one prompt, asked in one way, with one outcome."""

    model: str
    upstream: str
    strategy: str
    prompt: str
    outcome: str
    observed: str
    """What would have become of replies that were passed on untouched."""
    with_tools: bool
    counts: Counts


class TimedRequest(Struct, frozen=True):
    """How long one request took."""

    model: str
    upstream: str
    upstream_ms: float
    added_ms: float


async def count_by_time(
    store: RecordStore, wanted: RecordFilter, since: float, slot_s: float
) -> list[TimeCount]:
    """Count requests by outcome in stretches of time."""
    slot = f"{{floor}}(r.time - {since:.3f}) / {slot_s:.3f}{{end_floor}}"
    asked = Selection(
        columns=(slot, "r.outcome", "count(*)", "sum({has_parse_error})"), group_by=2, limit=10_000
    )
    found: dict[tuple[int, str], tuple[int, int]] = {}
    for number, outcome, requests, errors in await store.select(asked, wanted):
        had = found.get((int(number), outcome), (0, 0))
        found[int(number), outcome] = (had[0] + int(requests), had[1] + int(errors or 0))
    return [TimeCount(*key, *counts) for key, counts in found.items()]


async def count_by_model(store: RecordStore, wanted: RecordFilter) -> list[ModelCount]:
    """Count requests by model, upstream, strategy, prompt and outcome, the most frequent first."""
    names = ("r.model_asked", "r.upstream", "r.strategy", "r.prompt", "r.outcome", "r.observed")
    names += ("CASE WHEN r.tools > 0 THEN 1 ELSE 0 END",)
    asked = Selection(
        columns=(*names, *_COUNTS), group_by=7, order_by="8 DESC, 1, 2, 3, 4, 5", limit=MAX_GROUPS
    )
    found = _merge(await store.select(asked, wanted), 7)
    return [
        ModelCount(model, upstream, strategy, prompt, outcome, observed, bool(tools), counts)
        for (model, upstream, strategy, prompt, outcome, observed, tools), counts in found
    ]


async def list_times(store: RecordStore, wanted: RecordFilter) -> list[TimedRequest]:
    """Return how long the latest requests took that got a reply."""
    asked = Selection(
        columns=("r.model_asked", "r.upstream", "r.upstream_ms", "r.added_ms", "r.id"),
        order_by="r.id DESC",
        limit=MAX_TIMED,
    )
    found = await store.select(asked, wanted)
    if len(found) > MAX_TIMED:
        found = sorted(found, key=lambda row: row[-1], reverse=True)[:MAX_TIMED]
    return [TimedRequest(*row[:-1]) for row in found]


async def sum_costs(store: RecordStore, wanted: RecordFilter) -> dict[tuple[str, str], float]:
    """Add up what requests cost, by key and model, the dearest first."""
    asked = Selection(
        columns=("r.key_id", "r.model_asked", "sum(r.cost)"), group_by=2, limit=MAX_GROUPS
    )
    found: dict[tuple[str, str], float] = {}
    for key_id, model, cost in await store.select(asked, wanted):
        found[key_id, model] = found.get((key_id, model), 0.0) + float(cost or 0)
    return {pair: found[pair] for pair in sorted(found, key=lambda p: -found[p]) if found[pair]}


async def count_all(store: RecordStore, wanted: RecordFilter) -> int:
    """Count requests."""
    found = await store.select(Selection(columns=("count(*)",)), wanted)
    return sum(int(row[0]) for row in found)


def _merge(rows: Figures, names: int) -> list[tuple[tuple[Any, ...], Counts]]:
    """Add up the rows of the same group, which each file of a store may have."""
    groups: dict[tuple[Any, ...], Counts] = {}
    for row in rows:
        groups.setdefault(row[:names], Counts()).add(row[names:])
    return sorted(groups.items(), key=lambda item: -item[1].requests)
