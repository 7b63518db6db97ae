"""What became worse: a model whose replies are wrong more often, an upstream that only fails.

A model at an upstream is named only where its interval and that of the day before do not touch,
so that chance is no news.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from surecall.gateway.records import ModelCount, RecordFilter, count_by_model, count_by_time
from surecall.gateway.records.base import NOT_CLEAN, Selection

from .rates import Share, share

_BEFORE_S: Final = 86_400.0
_MIN_REPLIES: Final = 30
_READ: Final = frozenset({"clean", "repaired", "reasked", "unrepaired", "refused"})
_MAX_FINDINGS: Final = 100
_DOWN_S: Final = 300.0
_DOWN_FAILURES: Final = 3

Pair = tuple[str, str]
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
        if usual is None or min(usual.n, found.n) < _MIN_REPLIES or found.low <= usual.high:
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
    counts: dict[Pair, Counter[bool]] = {}
    for item in models:
        if item.outcome in _READ:
            found = counts.setdefault((item.model, item.upstream), Counter())
            found[item.outcome != "clean"] += item.counts.requests
    return {pair: share(found[True], found.total()) for pair, found in counts.items()}


async def _find_time(
    store: Any, wanted: RecordFilter, usual: Share, now: Share, since: float, slot_s: float
) -> dict[str, Any]:
    """Return the first and the last moment at which more was wrong than usual."""
    slots: dict[int, Counter[bool]] = {}
    for item in await count_by_time(store, wanted, since, slot_s):
        if item.outcome in _READ:
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
        columns=("r.findings", "count(*)"),
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


async def find_down(store: Any) -> list[dict[str, Any]]:
    """Name the upstreams that have only failed in the last minutes, and since when."""
    now = time.time()
    failed = "r.outcome = 'failed' AND r.error_code <> 'CLIENT_CLOSED'"
    recent = f"r.time >= {now - _DOWN_S:.3f}"
    asked = Selection(
        columns=(
            "r.upstream",
            f"sum(CASE WHEN {failed} AND {recent} THEN 1 ELSE 0 END)",
            f"sum(CASE WHEN NOT ({failed}) AND {recent} THEN 1 ELSE 0 END)",
            f"max(CASE WHEN {failed} THEN NULL ELSE r.time END)",
            f"min(CASE WHEN {failed} THEN r.time END)",
            f"max(CASE WHEN {failed} THEN r.error_code END)",
        ),
        group_by=1,
        limit=100,
    )
    rows = await store.select(asked, RecordFilter(since=now - 3600.0))
    merged: dict[str, list[Any]] = {}
    for row in rows:
        had = merged.get(row[0])
        merged[row[0]] = list(row) if had is None else _merge_down(had, row)
    return [
        {"upstream": name, "failed": bad, "since": last or first, "code": code}
        for name, bad, good, last, first, code in merged.values()
        if name and bad >= _DOWN_FAILURES and not good
    ]


def _merge_down(had: list[Any], row: Any) -> list[Any]:
    latest = max((moment for moment in (had[3], row[3]) if moment), default=None)
    earliest = min((moment for moment in (had[4], row[4]) if moment), default=None)
    return [had[0], had[1] + row[1], had[2] + row[2], latest, earliest, had[5] or row[5]]
