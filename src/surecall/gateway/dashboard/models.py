"""What is known about models at upstreams: facts of probes with their dates, and asking again."""

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from surecall.base.errors import Code, ConfigError, ProviderStatusError
from surecall.gateway.state import State
from surecall.gateway.upstreams import Target, Upstream
from surecall.store.records.store import count_by_model
from surecall.store.records.tables import RecordFilter

if TYPE_CHECKING:
    from surecall.models.probe import FactKey, ProbedFact

_SEEN_S: Final = 86_400.0
_PROBE_S: Final = 120.0
_MAX_NAME_CHARS: Final = 200
_under_way: Final[set[tuple[str, str]]] = set()


async def list_models(state: State, store: Any) -> dict[str, Any]:
    """Return every upstream with what is known about its models.

    Args:
        state: The settings in force.
        store: Where requests are recorded, for the models that were asked; `None` without records.
    """
    seen = [] if store is None else await _find_seen(state, store)
    try:
        facts = await asyncio.to_thread(state.strategies.list_facts)
        problem = ""
    except ConfigError as error:
        facts, problem = (), error.message
    return {
        "now": time.time(),
        "problem": problem,
        "routes": _describe_routes(state),
        "upstreams": [_describe(state, item, facts, seen) for item in state.upstreams.values()],
    }


def _describe_routes(state: State) -> list[dict[str, Any]]:
    """Say which target of each route by evidence leads, and why."""
    found: list[dict[str, Any]] = []
    for name, choice in state.router.choices.items():
        targets = [item for item in state.settings.routes[name].targets if item.weight]
        shares = choice.shares([item.weight for item in targets])
        rows: list[dict[str, Any]] = []
        for at, item in enumerate(targets):
            tally = state.upstreams[item.upstream].tallies[item.model]
            rate = tally.rate
            broken = {"value": rate.value, "low": rate.low, "high": rate.high}
            names = {"upstream": item.upstream, "model": item.model, "leads": at == choice.leader}
            rows.append({**names, "n": tally.replies, "broken": broken, "share": shares[at]})
        limits = {"min_requests": choice.min_requests, "trying": choice.trying}
        found.append({"name": name, **limits, "targets": rows})
    return found


async def _find_seen(state: State, store: Any) -> list[Target]:
    """Return the models that were asked within a day, as their upstreams name them."""
    counts = await count_by_model(store, RecordFilter(since=time.time() - _SEEN_S))
    found: list[Target] = []
    for item in counts:
        try:
            targets = state.router.list_targets(item.model)
        except ProviderStatusError:
            continue
        found += [target for target in targets if target.upstream.name == item.upstream]
    return found


def _describe(
    state: State,
    upstream: Upstream,
    facts: "tuple[tuple[FactKey, ProbedFact], ...]",
    seen: list[Target],
) -> dict[str, Any]:
    from surecall.models.probe import FactKey

    entry = upstream.entry
    place = FactKey.of(upstream.fact_address, entry.protocol, "")[:2]
    models: dict[str, list[dict[str, Any]]] = {
        name: [] for name in entry.settings.models if "*" not in name
    }
    if entry.embedded:
        models[entry.embedded] = []
    for name, item in state.settings.models.items():
        if item.upstream == upstream.name:
            models.setdefault(name, [])
    for target in seen:
        if target.upstream is upstream:
            models.setdefault(target.model, [])
    for key, fact in facts:
        if key[:2] == place:
            models.setdefault(key.model, []).append(
                {
                    "field": fact.field,
                    "value": fact.value,
                    "evidence": fact.evidence,
                    "asked_at": fact.asked_at,
                    "expires_at": fact.expires_at,
                }
            )
    return {
        "name": upstream.name,
        "protocol": entry.protocol,
        "address": "inside this process" if entry.embedded else place[0],
        "is_ready": upstream.is_ready,
        "is_failing": upstream.health.is_down or upstream.breaker.is_open,
        "in_flight": upstream.gate.inside,
        "no_probe": _why_no_probe(upstream),
        "models": [
            {
                "name": name,
                "facts": found,
                "is_probed_now": (upstream.name, name) in _under_way,
                **_describe_strategy(state, upstream, name),
            }
            for name, found in models.items()
        ],
    }


def _describe_strategy(state: State, upstream: Upstream, model: str) -> dict[str, Any]:
    known = state.strategies.recall(Target(upstream, model))
    return {
        "strategy": known.route.strategy if known is not None else "",
        "probe_ok": known.probe_ok if known is not None else None,
        "probe_error": known.probe_error if known is not None else "",
    }


def _why_no_probe(upstream: Upstream) -> str:
    """Return why an upstream is not asked; empty when it may be."""
    entry = upstream.entry
    if entry.may_be_probed:
        return ""
    if entry.settings.probe != "auto":
        return 'The settings say probe = "off".'
    return "The gateway has no key of its own for it, and keys of clients are never used to probe."


async def probe_again(state: State, upstream_name: str, model: str) -> dict[str, Any]:
    """Ask an upstream anew what a model can do, and return what was found.

    Raises:
        ProviderStatusError: It is not known, may not be asked, or is being asked.
    """
    upstream = state.upstreams.get(upstream_name)
    if upstream is None or not model or len(model) > _MAX_NAME_CHARS:
        raise ProviderStatusError(Code.NOT_FOUND, "There is no such upstream or model.", status=404)
    reason = _why_no_probe(upstream)
    if reason:
        raise ProviderStatusError(Code.CONFLICT, reason, status=409)
    key = (upstream_name, model)
    if key in _under_way:
        raise ProviderStatusError(Code.CONFLICT, "It is being asked already.", status=409)
    _under_way.add(key)
    try:
        async with asyncio.timeout(_PROBE_S):
            report = await state.strategies.probe_again(Target(upstream, model))
    except TimeoutError as error:
        raise ProviderStatusError(
            Code.TOTAL_TIMEOUT, f"{upstream_name} did not answer in time.", status=504
        ) from error
    finally:
        _under_way.discard(key)
    assert report is not None
    return {
        "found": len(report.fields),
        "requests": report.cost.requests,
        "error": None
        if report.error is None
        else {"code": str(report.error.code), "message": report.error.message},
    }
