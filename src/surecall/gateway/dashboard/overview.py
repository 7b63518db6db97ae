"""The first page in figures: what came of all requests, of whom, and what is worse than before."""

import asyncio
import time
from calendar import timegm
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.rates import Share, percentiles, share
from surecall.gateway.dashboard.lists import describe_row
from surecall.gateway.report import MIN_REPLIES, READ, describe, summarize
from surecall.gateway.state import Core, State
from surecall.store.records.store import (
    Counts,
    ModelCount,
    TimeCount,
    TimedRequest,
    count_all,
    count_by_model,
    count_by_time,
    list_times,
    sum_costs,
)
from surecall.store.records.tables import NOT_CLEAN, RecordFilter, Selection

OUTCOMES: Final = (*READ, "failed", "relayed")
UNPARSED: Final = ("unrepaired", "refused")
"""Outcomes of replies whose calls nothing made right."""
_WRONG: Final = ("repaired", "reasked", *UNPARSED)

_RECENT: Final = 6
_CACHE_S: Final = 2.0
_COST_FACTOR: Final = 20
"""Figures that took long to count are shown for so many times as long."""


class Range(Struct, frozen=True):
    """A time that can be chosen."""

    name: str
    length_s: float
    slot_s: float


RANGES: Final[Mapping[str, Range]] = {
    item.name: item
    for item in (
        Range("1h", 3600.0, 60.0),
        Range("24h", 86_400.0, 1800.0),
        Range("7d", 7 * 86_400.0, 3 * 3600.0),
    )
}


class Overviews:
    """Overviews that are counted once for everybody who looks at the same time."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._made: dict[str, tuple[float, dict[str, Any]]] = {}
        self._locks = {name: asyncio.Lock() for name in RANGES}

    async def show(self, state: State, name: str) -> dict[str, Any]:
        """Return the overview of a time, at most a few seconds old."""
        chosen = RANGES.get(name) or RANGES["1h"]
        async with self._locks[chosen.name]:
            good_until, made = self._made.get(chosen.name, (0.0, {}))
            if time.monotonic() >= good_until:
                began = time.monotonic()
                made = await self._count(state, chosen)
                ended = time.monotonic()
                kept_s = max(_CACHE_S, _COST_FACTOR * (ended - began))
                if made["has_any"]:  # the first request is shown at once
                    self._made[chosen.name] = (ended + kept_s, made)
        now = {"now": time.time(), "gateway": self._describe_gateway(state)}
        return {**made, **now, "down": list_down(state)}

    def _describe_gateway(self, state: State) -> dict[str, Any]:
        gate, store = self._core.gate, self._core.store
        return {
            "in_flight": gate.inside,
            "waiting": gate.waiting,
            "open_breakers": [
                name for name, item in state.upstreams.items() if item.breaker.is_open
            ],
            "store_away": bool(getattr(store, "is_away", False)),
        }

    async def _count(self, state: State, chosen: Range) -> dict[str, Any]:
        store = self._core.store
        # Whole stretches, so that bars do not change their meaning while one looks.
        until = (time.time() // chosen.slot_s + 1) * chosen.slot_s
        since = until - chosen.length_s
        head = {"range": chosen.name, "since": since, "until": until, "slot_s": chosen.slot_s}
        if not hasattr(store, "select"):
            return {**head, "is_recorded": False, "has_any": False}
        wanted = RecordFilter(since=since)
        slots, models, times = await asyncio.gather(
            count_by_time(store, wanted, since, chosen.slot_s),
            count_by_model(store, wanted),
            list_times(store, wanted),
        )
        if not slots and not await _has_any(store):
            return {**head, "is_recorded": True, "has_any": False}
        recent = await store.list(RecordFilter(since=since, outcome=NOT_CLEAN), limit=_RECENT)
        total, _ = _group(models, lambda _: ()).get((), (Counter[str](), None))
        size = round(chosen.length_s / chosen.slot_s)
        return {
            **head,
            "is_recorded": True,
            "has_any": True,
            "total": {name: total[name] for name in OUTCOMES},
            "slots": [_describe_slot(slots, number) for number in range(size)],
            "pairs": _describe_pairs(models, times),
            "turns": _describe_turns(models),
            "observed": _describe_tools(models),
            "parse": _describe_parsing(models),
            "changed": await find_change(store, models, since, chosen.slot_s),
            "spent": await _describe_spending(state, store),
            "recent": [describe_row(record) for record in recent.records],
            "not_clean": await count_all(store, RecordFilter(since=since, outcome=NOT_CLEAN)),
        }


def list_down(state: State) -> list[dict[str, Any]]:
    """Describe upstreams that only fail; behind a fallback no request has failed with them."""
    return [
        {"upstream": name, "failed": item.failures, "since": item.since, "code": item.code}
        for name, item in ((name, item.health) for name, item in state.upstreams.items())
        if item.is_down
    ]


async def _describe_spending(state: State, store: Any) -> list[dict[str, Any]]:
    """Say what each key that may spend so much has spent since its month began."""
    limits = {key.settings.id: key.settings.cost_per_month for key in state.settings.keys}
    if not any(limits.values()):
        return []
    now = time.gmtime()
    since = float(timegm((now.tm_year, now.tm_mon, 1, 0, 0, 0)))
    costs = await sum_costs(store, RecordFilter(since=since))
    return [
        {
            "key": name,
            "spent": sum(c for (key, _), c in costs.items() if key == name),
            "limit": most,
        }
        for name, most in limits.items()
        if most is not None
    ]


async def _has_any(store: Any) -> bool:
    return bool((await store.list(limit=1)).records)


def _group(
    models: Iterable[ModelCount], key_of: Callable[[ModelCount], tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[Counter[str], Counts]]:
    """Add up what has the same key: requests by outcome, and all figures."""
    groups: dict[tuple[str, ...], tuple[Counter[str], Counts]] = {}
    for item in models:
        found, counts = groups.setdefault(key_of(item), (Counter(), Counts()))
        found[item.outcome] += item.counts.requests
        counts.add(asdict(item.counts).values())
    return groups


def _describe_slot(slots: Iterable[TimeCount], number: int) -> dict[str, int]:
    found: dict[str, int] = dict.fromkeys((*OUTCOMES, "unparsed", "unparsed_after"), 0)
    for item in slots:
        if item.slot != number:
            continue
        found[item.outcome] = found.get(item.outcome, 0) + item.requests
        found["unparsed"] += item.parse_errors
        if item.outcome in UNPARSED:
            found["unparsed_after"] += item.parse_errors
    return found


def _describe_pairs(
    models: Iterable[ModelCount], times: Iterable[TimedRequest]
) -> list[dict[str, Any]]:
    """Describe each model at each upstream, the busiest first."""
    spent: dict[Pair, list[TimedRequest]] = {}
    for timed in times:
        spent.setdefault((timed.model, timed.upstream), []).append(timed)
    groups = _group(models, lambda item: (item.model, item.upstream))
    pairs = [_describe_pair(key, *found, spent.get(key, [])) for key, found in groups.items()]
    return sorted(pairs, key=lambda pair: -pair["counts"]["requests"])


def _describe_pair(
    key: tuple[str, ...], outcomes: Counter[str], all_of: Counts, times: list[TimedRequest]
) -> dict[str, Any]:
    replies = sum(outcomes[name] for name in READ)
    return {
        "model": key[0],
        "upstream": key[1],
        "outcomes": {name: outcomes[name] for name in OUTCOMES},
        "counts": asdict(all_of),
        "wrong": _plain(share(sum(outcomes[name] for name in _WRONG), replies)),
        "defects": _plain(share(min(all_of.with_defects, replies), replies)),
        "receipts": _plain(share(all_of.with_receipts, all_of.requests)),
        "unparsed": _plain(share(min(all_of.parse_errors, replies), replies)),
        "upstream_ms": percentiles([item.upstream_ms for item in times if item.upstream_ms]),
        "added_ms": percentiles([item.added_ms for item in times if item.upstream_ms]),
    }


def _describe_turns(models: Iterable[ModelCount]) -> list[dict[str, Any]]:
    """Say how often a turn came to a usable reply, by model, prompt and strategy."""
    asked = (item for item in models if item.outcome != "relayed" and item.strategy)
    groups = _group(asked, lambda item: (item.model, item.prompt, item.strategy))
    turns = [
        {
            "model": model,
            "prompt": prompt,
            "strategy": strategy,
            "success": _plain(
                share(found["clean"] + found["repaired"] + found["reasked"], found.total())
            ),
            "without_help": _plain(share(found["clean"], found.total())),
            "unparsed": _plain(share(counts.parse_errors, found.total())),
            "asked_again": counts.upstream_requests - found.total(),
        }
        for (model, prompt, strategy), (found, counts) in groups.items()
    ]
    return sorted(turns, key=lambda turn: -turn["success"]["n"])


def _describe_tools(models: Iterable[ModelCount]) -> dict[str, Any]:
    """Say what observing has shown, by model and upstream."""
    rows = [row for row in summarize(models, by=("model", "upstream")) if row.is_observed]
    shown = [
        {**asdict(row), "broken": _plain(row.broken), "success": _plain(row.success)}
        for row in rows
    ]
    return {"rows": shown, "said": describe(rows) if rows else []}


def _describe_parsing(models: Iterable[ModelCount]) -> dict[str, Any]:
    """Say how many replies could not be parsed: as they came, and after all that was tried."""
    read = [item for item in models if item.outcome in READ]
    replies = sum(item.counts.requests for item in read)
    received = sum(item.counts.parse_errors for item in read)
    after = sum(item.counts.parse_errors for item in read if item.outcome in UNPARSED)
    return {"received": _plain(share(received, replies)), "after": _plain(share(after, replies))}


def _plain(found: Share) -> dict[str, Any]:
    return {**asdict(found), "value": found.value}


_BEFORE_S: Final = 86_400.0
_MAX_FINDINGS: Final = 100

Pair = tuple[str, ...]
"""A model and an upstream."""


async def find_change(
    store: Any, models: Iterable[ModelCount], since: float, slot_s: float
) -> dict[str, Any] | None:
    """Return the pair that became worse by most, since when, and what is wrong with it."""
    now = _rate_pairs(models)
    day_before = RecordFilter(since=since - _BEFORE_S, until=since)
    before = _rate_pairs(await count_by_model(store, day_before))
    worse: list[tuple[float, Pair, Share]] = []
    for pair, found in now.items():
        usual = before.get(pair)
        if usual is None or min(usual.n, found.n) < MIN_REPLIES or found.low <= usual.high:
            continue
        worse.append((found.value - usual.value, pair, usual))
    if not worse:
        return None
    _, pair, usual = max(worse, key=lambda item: (item[0], item[1]))
    wanted = RecordFilter(since=since, model=pair[0], upstream=pair[1])
    return {
        "model": pair[0],
        "upstream": pair[1],
        "now": now[pair].value,
        "usual": usual.value,
        "code": await _find_code(store, wanted),
        **await _find_time(store, wanted, usual, now[pair], since, slot_s),
    }


def _rate_pairs(models: Iterable[ModelCount]) -> dict[Pair, Share]:
    """Return the share of replies that were not clean, by model and upstream."""
    read = (item for item in models if item.outcome in READ)
    groups = _group(read, lambda item: (item.model, item.upstream))
    return {
        pair: share(found.total() - found["clean"], found.total())
        for pair, (found, _) in groups.items()
    }


async def _find_time(
    store: Any, wanted: RecordFilter, usual: Share, now: Share, since: float, slot_s: float
) -> dict[str, Any]:
    """Return the first and the last moment at which more was wrong than usual."""
    slots: dict[int, Counter[bool]] = {}
    for item in await count_by_time(store, wanted, since, slot_s):
        if item.outcome in READ:
            found = slots.setdefault(item.slot, Counter())
            found[item.outcome != "clean"] += item.requests
    first, last = _find_stretch(slots, (usual.value + now.value) / 2)
    return {
        "from": since + first * slot_s,
        "to": since + (last + 1) * slot_s,
        "is_over": last < max(slots),
    }


def _find_stretch(slots: Mapping[int, Counter[bool]], expected: float) -> tuple[int, int]:
    """Return the slots between which most was wrong beyond an expected share."""
    best, begun, summed = (float("-inf"), 0, 0), min(slots), 0.0
    for slot in sorted(slots):
        if summed <= 0:
            begun, summed = slot, 0.0
        summed += slots[slot][True] - expected * slots[slot].total()
        best = max(best, (summed, begun, slot), key=lambda found: found[0])
    return best[1], best[2]


async def _find_code(store: Any, wanted: RecordFilter) -> str:
    """Return the code that is found most often in what was not clean."""
    asked = Selection(
        columns=("CASE WHEN r.outcome = 'failed' THEN '' ELSE r.findings END", "count(*)"),
        group_by=1,
        order_by="2 DESC",
        limit=_MAX_FINDINGS,
    )
    narrowed = RecordFilter(
        since=wanted.since, model=wanted.model, upstream=wanted.upstream, outcome=NOT_CLEAN
    )
    codes = Counter[str]()
    for findings, count in await store.select(asked, narrowed):
        for code in (findings or "").strip("|").split("|"):
            if code:
                codes[code] += count
    return codes.most_common(1)[0][0] if codes else ""
