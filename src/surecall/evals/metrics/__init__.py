"""From trials to figures, in one pass: rates with intervals, failures, recoveries, consistency."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from operator import attrgetter
from typing import Any, Final, get_args

from msgspec.structs import asdict, replace

from surecall.evals.clusters import compare_pairs
from surecall.evals.records import Cell, Outcome, Task, TrialRow
from surecall.evals.stats import (
    pass_at_k,
    pass_hat_k,
    percentile,
    rate_of,
    survival_quantile,
)
from surecall.evals.taxonomy import Failure

from .records import (
    AXES,
    CallFigures,
    Consistency,
    Costs,
    FailureCount,
    Group,
    Item,
    Latency,
    PassPoint,
    Recovery,
    Stability,
    StrategyComparison,
    Summary,
    say_simulated,
)
from .tally import (
    CALL_RATES,
    SAVED_BY,
    CaseTrials,
    Tallies,
    Tally,
    group_tallies,
    merge_tallies,
    pair_trials,
    rate_cases,
    tally_rows,
)

__all__ = ["Group", "Summary", "group_tasks", "render_group", "summarize", "summarize_tallies"]

MAX_CURVE_K: Final = 100
"""Curves of consistency go no further than this."""


def summarize(rows: Iterable[TrialRow]) -> Summary:
    """Return every figure of an experiment; the rows are read once and not kept."""
    return summarize_tallies(tally_rows(rows))


def summarize_tallies(tallies: Tallies) -> Summary:
    """Return every figure of trials that were counted before."""
    tools = {cell: tally for (cell, control), tally in tallies.items() if not control}
    controls = [tally for (_, control), tally in tallies.items() if control]
    return Summary(
        rows=sum(tally.n for tally in tallies.values()),
        overall=render_group(merge_tallies(tools.values()), axis="overall", value="all"),
        controls=(
            render_group(merge_tallies(controls), axis="controls", value="controls", control=True)
            if controls
            else None
        ),
        axes={
            axis: tuple(
                render_group(tally, axis=axis, value=value)
                for value, tally in group_tallies(tallies, attrgetter(axis)).items()
            )
            for axis in AXES
        },
        cells=tuple(
            render_group(tally, axis="cell", value=cell.label, cell=cell, control=control)
            for (cell, control), tally in tallies.items()
        ),
        items=tuple(_items_of(tallies)),
        strategies=compare_strategies(tools),
    )


def group_tasks(tallies: Tallies) -> list[tuple[Task, Group]]:
    """Return the figures of each model, profile, strategy and fallback; controls left out."""
    found = group_tallies(tallies, Task.of)
    return [
        (task, render_group(tally, axis="overall", value="row")) for task, tally in found.items()
    ]


def render_group(
    tally: Tally, *, axis: Any, value: str, cell: Cell | None = None, control: bool = False
) -> Group:
    """Return the figures of what was counted."""
    return Group(
        axis=axis,
        value=value,
        cell=cell,
        control=control,
        simulated=say_simulated(tally.simulated, tally.n),
        n=tally.n,
        original=rate_cases(tally, "original_ok"),
        strict=rate_cases(tally, "strict_ok"),
        answer=rate_cases(tally, "answer_ok", "answers"),
        false_calls=rate_cases(tally, "false_calls"),
        original_of_all=rate_cases(tally, "original_ok", "tried"),
        strict_of_all=rate_cases(tally, "strict_ok", "tried"),
        errors=tally.errors,
        unanswered=rate_of(tally.errors + tally.refused, tally.n),
        error_causes=_failures(tally, tally.error_causes),
        outcomes={name: tally.outcomes[name] for name in get_args(Outcome)},
        categories=_by_count(tally.categories),
        calls=_call_figures(tally),
        saved=rate_cases(tally, "saved_runs", "strict_ok"),
        recoveries=_recoveries(tally),
        fabrications=tally.fabrications,
        failures=_failures(tally, tally.failures),
        cut_by_limit=tally.cut_by_limit,
        latency=_latency(tally),
        costs=Costs(
            turns=tally.turns,
            requests=tally.requests,
            escalations=tally.escalations,
            usage=tally.usage,
            cost_usd=tally.cost_usd if tally.priced else None,
            priced=tally.priced,
            cached_replies=tally.cached_replies,
        ),
        pass_curve=_pass_curve(tally.cases.values()),
        stability=_stability(tally.cases.values()),
    )


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _call_figures(tally: Tally) -> CallFigures:
    return CallFigures(
        count=sum(trials.counts["calls"] for trials in tally.cases.values()),
        **{name: rate_cases(tally, name, "calls") for name in CALL_RATES},
        exact=rate_cases(tally, "exact", "expected"),
        repair_precision=rate_cases(tally, "changed_exact", "changed_expected"),
        error_kinds=_by_count(tally.error_kinds),
        error_codes=_by_count(tally.error_codes),
        formats=_by_count(tally.formats),
    )


def _recoveries(tally: Tally) -> tuple[Recovery, ...]:
    found = [
        Recovery(
            rule=rule,
            saved=rate_cases(tally, f"{SAVED_BY}{rule}", "strict_ok"),
            fired=tally.fired[rule],
            example=tally.saved_examples.get(rule),
        )
        for rule in {**tally.saved_examples, **tally.fired}
    ]
    return tuple(sorted(found, key=lambda one: (-one.saved.k, -one.fired, one.rule)))


def _failures(tally: Tally, counts: Counter[Failure]) -> tuple[FailureCount, ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        FailureCount(failure, count, tally.examples[failure]) for failure, count in ordered
    )


def _latency(tally: Tally) -> Latency:
    ended, stopped = tally.elapsed_ms, tally.censored_ms
    every = sorted([*ended, *stopped])
    times: dict[str, Any] = {}
    for percent in (50, 95, 99):
        times[f"p{percent}_ms"] = percentile(every, percent / 100)
        times[f"true_p{percent}_ms"] = survival_quantile(ended, stopped, percent / 100)
    return Latency(n=len(every), censored=len(stopped), **times)


# Repeated trials


def _pass_curve(cases: Iterable[CaseTrials]) -> tuple[PassPoint, ...]:
    """Return both measures for every k that was tried; an endpoint error breaks a series."""
    shapes = Counter((trials.tried.bit_count(), trials.strict.bit_count()) for trials in cases)
    points: list[PassPoint] = []
    for k in range(1, min(max((n for n, _ in shapes), default=0), MAX_CURVE_K) + 1):
        some = every = 0.0
        items = 0
        for (n, right), count in shapes.items():
            if k <= n:
                items += count
                some += count * (pass_at_k(n, right, k) or 0.0)
                every += count * (pass_hat_k(n, right, k) or 0.0)
        points.append(PassPoint(k, some / items, every / items, items))
    return tuple(points)


def _stability(cases: Iterable[CaseTrials]) -> Stability:
    counts = Counter(_consistency(trials) for trials in cases if trials.made)
    return Stability(**counts)


def _consistency(trials: CaseTrials) -> Consistency:
    n, right = trials.made.bit_count(), trials.strict.bit_count()
    if n < 2:
        return "once"
    if right == n:
        return "always"
    return "sometimes" if right else "never"


def _items_of(tallies: Tallies) -> Iterable[Item]:
    for (cell, control), tally in tallies.items():
        for (_, case), trials in tally.cases.items():
            yield Item(
                cell=cell,
                case=case,
                control=control,
                n=trials.counts["judged"],
                tried=trials.counts["tried"],
                k=trials.counts["strict_ok"],
                original_k=trials.counts["original_ok"],
                drawn=trials.drawn,
                consistency=_consistency(trials),
            )


# Strategies


def compare_strategies(tools: Mapping[Cell, Tally]) -> tuple[StrategyComparison, ...]:
    """Compare every two strategies on trials equal in all but that: overall, then by model."""
    by_strategy: dict[str, dict[str, list[Tally]]] = {}
    for cell, tally in tools.items():
        by_strategy.setdefault(cell.strategy, {}).setdefault(cell.model, []).append(tally)
    found: list[StrategyComparison] = []
    for a, b in combinations(by_strategy, 2):
        models = [model for model in by_strategy[a] if model in by_strategy[b]]
        for chosen in [None, *models]:
            wanted = models if chosen is None else [chosen]
            sides = [
                [tally for model in wanted for tally in by_strategy[side][model]] for side in (a, b)
            ]
            found.append(_compare(a, b, chosen, *sides))
    return tuple(one for one in found if one.counts.n)


def _compare(
    a: str, b: str, model: str | None, of_a: list[Tally], of_b: list[Tally]
) -> StrategyComparison:
    simulated = sum(tally.simulated for tally in (*of_a, *of_b))
    pairs = compare_pairs(pair_trials(_without_strategy(of_a), _without_strategy(of_b)))
    return StrategyComparison(
        **asdict(pairs),
        a=a,
        b=b,
        model=model,
        simulated=say_simulated(simulated, sum(tally.n for tally in (*of_a, *of_b))),
    )


def _without_strategy(tallies: list[Tally]) -> dict[tuple[Cell, str], CaseTrials]:
    return {
        (replace(cell, strategy=""), case): trials
        for tally in tallies
        for (cell, case), trials in tally.cases.items()
    }
