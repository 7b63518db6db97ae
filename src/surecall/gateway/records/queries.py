"""Figures of many requests: counted by time, by model and upstream, and how long they took.

The database counts; what several files of one store have found is added up here.
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from .store import Figures, RecordFilter, RecordStore, Selection

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
