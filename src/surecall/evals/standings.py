"""Who stands where: the models of a run, best first, with what the trials cannot tell apart."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.models.profiles import STRATEGIES

from .clusters import Difference, compare_pairs
from .diff import Judged
from .metrics import Group, render_group
from .metrics.records import Simulated
from .metrics.tally import CaseTrials, Tallies, Tally, merge_tallies, pair_trials
from .records import Cell
from .stats import Rate

KNOWN_STRATEGIES: Final = tuple(strategy.id for strategy in STRATEGIES)
"""In the order in which they are shown; others follow."""

_COST_TRIALS: Final = 100


class Standing(Struct, frozen=True, kw_only=True):
    """One contender under one strategy."""

    name: str
    """The model, and what else tells contenders apart."""
    cell: Cell
    """Any of its cells: its model, profile and fallback."""
    group: Group
    """Its figures."""
    rate: Rate
    """Right by the verdict that decides; an endpoint error counts as wrong."""
    rate_answered: Rate
    """The same without the trials that the endpoint failed."""
    is_eligible: bool
    """Whether it may be named: all its trials are there, and no call was invented."""
    cost_per_100: float | None
    """Dollars for a hundred tasks; None when no price is known."""
    places: tuple[int, int] | None = None
    """The places that the trials allow; None where there is nothing to rank."""
    against_first: Difference | None = None
    """None for the first, and for those that are not compared."""

    @property
    def simulated(self) -> Simulated:
        """Whether its model is simulated."""
        return self.group.simulated

    @property
    def p95_ms(self) -> float | None:
        """The time within which 95 % of trials ended; None when it lies beyond the limit."""
        return self.group.latency.true_p95_ms


class Standings(Struct, frozen=True, kw_only=True):
    """All contenders under one strategy."""

    strategy: str
    judged: Judged
    ranked: tuple[Standing, ...]
    """Best first."""
    simulated: tuple[Standing, ...]
    """Best first, and never ranked."""

    @property
    def everyone(self) -> tuple[Standing, ...]:
        """The ranked ones, then the simulated ones."""
        return (*self.ranked, *self.simulated)


def list_strategies(tallies: Tallies) -> list[str]:
    """Return the strategies of a run: known ones in their order, then others as they came."""
    found = list(dict.fromkeys(cell.strategy for cell, _ in tallies))
    known = [name for name in KNOWN_STRATEGIES if name in found]
    return [*known, *(name for name in found if name not in known)]


def main_strategy(strategies: Sequence[str]) -> str:
    """Return the strategy that is shown first: production, or the last one."""
    return "production" if "production" in strategies else strategies[-1] if strategies else ""


def best_strategy(tallies: Tallies, judged: Judged = "strict") -> str:
    """Return the strategy to look at first: the main one, unless another is surely better.

    What is compared is the best model of each strategy, on the trials that both have.
    """
    strategies = list_strategies(tallies)
    chosen = main_strategy(strategies)
    found = {name: leader for name in strategies if (leader := _lead(tallies, name, judged))}
    for name, (standing, cases) in found.items():
        if chosen not in found:
            break
        best, best_cases = found[chosen]
        is_higher = (standing.rate.value or 0.0) > (best.rate.value or 0.0)
        if is_higher and compare_cases(best_cases, cases, judged).is_told:
            chosen = name
    return chosen


Cases = dict[tuple[Cell, str], CaseTrials]


def _lead(tallies: Tallies, strategy: str, judged: Judged) -> tuple[Standing, Cases] | None:
    """Return the best model of a strategy that may be named, with its trials."""
    found = stand_all(tallies, strategy, judged)
    able = [one for one in found if one.is_eligible and one.simulated != "all"]
    if not able:
        return None
    best = min(able, key=_order)
    return best, _without_contender(_collect(tallies, strategy)[0][key_of(best.cell)])


def stand_all(tallies: Tallies, strategy: str, judged: Judged = "strict") -> list[Standing]:
    """Return the figures of all contenders under one strategy, in no order and not compared."""
    tools, made = _collect(tallies, strategy)
    names = name_contenders(cell for cell, _ in tallies)
    most = max(made.values(), default=0)
    return [
        _stand(
            names[key],
            members[0][0],
            merge_tallies(tally for _, tally in members),
            judged,
            has_all=made[key] == most,
        )
        for key, members in tools.items()
    ]


def rank(tallies: Tallies, strategy: str, judged: Judged = "strict") -> Standings:
    """Order the contenders of one strategy, and say what the trials cannot tell.

    Higher rate first; ties go to fewer false calls, then to lower cost, then to lower p95. Those
    that may not be named come last.
    """
    found = sorted(stand_all(tallies, strategy, judged), key=_order)
    tools, _ = _collect(tallies, strategy)
    cases = {one.name: _without_contender(tools[key_of(one.cell)]) for one in found}
    ranked = [one for one in found if one.simulated != "all"]
    contests = {
        (a.name, b.name): compare_cases(cases[a.name], cases[b.name], judged)
        for a in ranked
        for b in ranked
        if a is not b
    }
    return Standings(
        strategy=strategy,
        judged=judged,
        ranked=tuple(
            replace(
                one,
                places=_places(one, ranked, contests) if len(ranked) > 1 else None,
                against_first=contests.get((ranked[0].name, one.name)),
            )
            for one in ranked
        ),
        simulated=tuple(one for one in found if one.simulated == "all"),
    )


def compare_cases(
    a: Mapping[tuple[Cell, str], CaseTrials],
    b: Mapping[tuple[Cell, str], CaseTrials],
    judged: Judged,
) -> Difference:
    """Compare B with A on the trials that both have."""
    return compare_pairs(pair_trials(a, b, original=judged == "original"))


ContenderKey = tuple[str, str, str]
"""Model, profile and fallback."""


def key_of(cell: Cell) -> ContenderKey:
    """Return what tells contenders apart."""
    return (cell.model, cell.profile, cell.fallback)


def name_contenders(cells: Iterable[Cell]) -> dict[ContenderKey, str]:
    """Name each contender by its model, with its profile and fallback where these differ."""
    keys = list(dict.fromkeys(map(key_of, cells)))
    profiles, fallbacks = {key[1] for key in keys}, {key[2] for key in keys}
    names: dict[ContenderKey, str] = {}
    for model, profile, fallback in keys:
        parts = [model]
        if len(profiles) > 1 or profile != "default":
            parts.append(profile)
        if len(fallbacks) > 1:
            parts.append(fallback)
        names[model, profile, fallback] = " · ".join(parts)
    return names


def _collect(
    tallies: Tallies, strategy: str
) -> tuple[dict[ContenderKey, list[tuple[Cell, Tally]]], dict[ContenderKey, int]]:
    """Return the tallies of tools by contender, and how many trials each has in all."""
    tools: dict[ContenderKey, list[tuple[Cell, Tally]]] = {}
    made: dict[ContenderKey, int] = {}
    for (cell, control), tally in tallies.items():
        if cell.strategy != strategy:
            continue
        made[key_of(cell)] = made.get(key_of(cell), 0) + tally.n
        if not control:
            tools.setdefault(key_of(cell), []).append((cell, tally))
    return tools, made


def _stand(name: str, cell: Cell, tally: Tally, judged: Judged, *, has_all: bool) -> Standing:
    group = render_group(tally, axis="model", value=name)
    costs = group.costs
    # A cost that is known for some trials only would look cheaper than it is.
    is_priced = costs.cost_usd is not None and costs.priced >= group.judged
    return Standing(
        name=name,
        cell=cell,
        group=group,
        rate=group.strict_of_all if judged == "strict" else group.original_of_all,
        rate_answered=group.strict if judged == "strict" else group.original,
        is_eligible=has_all and group.judged > 0 and not group.fabrications,
        cost_per_100=_COST_TRIALS * (costs.cost_usd or 0.0) / costs.priced if is_priced else None,
    )


def _order(one: Standing) -> tuple[float, ...]:
    false_calls = one.group.false_calls.value or 0.0
    cost = float("inf") if one.cost_per_100 is None else one.cost_per_100
    time = float("inf") if one.p95_ms is None else one.p95_ms
    rate = -1.0 if one.rate.value is None else one.rate.value
    return (not one.is_eligible, -rate, false_calls, cost, time)


def _without_contender(members: Sequence[tuple[Cell, Tally]]) -> Cases:
    return {
        (replace(cell, model="", profile="", fallback="", strategy=""), case): trials
        for _, tally in members
        for (cell, case), trials in tally.cases.items()
    }


def _places(
    one: Standing, ranked: Sequence[Standing], contests: Mapping[tuple[str, str], Difference]
) -> tuple[int, int]:
    """Return the first and the last place that the trials allow."""
    others = [contests[other.name, one.name] for other in ranked if other.name != one.name]
    ahead = sum(contest.is_told and contest.difference < 0 for contest in others)
    behind = sum(contest.is_told and contest.difference > 0 for contest in others)
    return (1 + ahead, len(ranked) - behind)
