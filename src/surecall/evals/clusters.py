"""Rates and differences of trials that share cases.

Cases are drawn or named. Drawn ones, such as those of a leaderboard, stand for many more, so ten
repeats of one tell less than ten cases: they are clusters. An interval is never narrower than if
all trials were of different cases, and never wider than if each case had been tried once.

Named ones, such as scenarios, stand for themselves: they are strata. Each is tested by itself, so
that one that breaks is seen however many others are as they were. How far they differ among each
other is no error, so the interval of the whole is that of independent trials.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from .stats import (
    CONFIDENCE,
    SURE,
    Interval,
    McNemar,
    PairCounts,
    Rate,
    chance_of_breaks,
    correct_pairs,
    mcnemar,
    newcombe_paired,
    wilson,
)

METHOD: Final = "clustered where cases are drawn"
"""How these intervals are named wherever they are shown."""
MIN_BREAK: Final = 3
"""A case that was always right and is now always wrong was tried at least so often."""
_MAX_TIMES: Final = 2.0**20
_MAX_LISTED: Final = 3

DifferenceVerdict = Literal["better", "worse", "mixed", "undecided", "no difference seen"]
"""What pairs show; `mixed` where some named cases are better and others worse."""


class CasePairs(Struct, frozen=True, kw_only=True):
    """The pairs of one case."""

    name: str
    counts: PairCounts
    drawn: bool = False
    """Whether the case stands for others; a named one stands for itself."""

    @property
    def is_break(self) -> bool:
        """Whether it was always right, often enough to mean something, and is now always wrong."""
        return self.counts.only_a == self.counts.n >= MIN_BREAK

    @property
    def figures(self) -> str:
        """What became of it: `happy_path 10/10 → 0/10`."""
        counts = self.counts
        a, b = counts.both + counts.only_a, counts.both + counts.only_b
        return f"{self.name} {a}/{counts.n} → {b}/{counts.n}"

    def swap(self) -> "CasePairs":
        """Return the same with A and B the other way round."""
        counts = self.counts
        swapped = PairCounts(
            both=counts.both, only_a=counts.only_b, only_b=counts.only_a, neither=counts.neither
        )
        return CasePairs(name=self.name, counts=swapped, drawn=self.drawn)


class Difference(Struct, frozen=True, kw_only=True):
    """How B differs from A on the trials that both have, and what that proves."""

    counts: PairCounts
    interval: Interval
    """Of B's rate less A's."""
    test: McNemar
    """Exact and two-sided, over all pairs."""
    verdict: DifferenceVerdict
    is_told: bool
    """Whether test and interval both say that the rates differ, by more than is allowed."""
    is_open: bool = False
    """Whether these pairs cannot tell, over all."""
    needed: int | None = None
    """About how many pairs would."""
    worse: tuple[CasePairs, ...] = ()
    """Named cases that are worse beyond chance."""
    better: tuple[CasePairs, ...] = ()
    undecided: tuple[CasePairs, ...] = ()
    """Named cases that are worse, which may be chance."""
    sentence: str = ""
    """What the pairs show, in words: the same wherever it is said."""

    @property
    def difference(self) -> float:
        """The rate of B less that of A; 0 without pairs."""
        return self.counts.difference or 0.0

    @property
    def p(self) -> float:
        """The p of the test."""
        return self.test.p

    @property
    def is_worse(self) -> bool:
        """Whether B is worse beyond chance, in all or in a named case."""
        return self.verdict in ("worse", "mixed")


def list_cases(cases: Sequence[CasePairs]) -> str:
    """Return named cases with their figures, the first few of many."""
    left = len(cases) - _MAX_LISTED
    shown = ", ".join(case.figures for case in cases[:_MAX_LISTED])
    return f"{shown} and {left} more" if left > 0 else shown


def compare_pairs(
    cases: Iterable[CasePairs],
    allowed: float | None = None,
    *,
    p: float | None = None,
    among: Difference | None = None,
) -> Difference:
    """Compare two sides on the trials that both have.

    Args:
        cases: The pairs, case by case.
        allowed: A drop of the rate that does not count; None where every difference does.
        p: Of the exact McNemar test, where it was corrected for being one of several.
        among: The comparison that these cases are a part of, which says what became of named ones.
    """
    found = [case for case in cases if case.counts.n]
    named = [case for case in found if not case.drawn]
    drawn = [case.counts for case in found if case.drawn]
    fixed = sum((case.counts for case in named), PairCounts())
    counts = sum(drawn, fixed)
    interval = clustered_difference(drawn, fixed=fixed)
    test = mcnemar(counts.only_a, counts.only_b)
    p = test.p if p is None else p
    bound = -(allowed or 0.0)
    is_told = p < 1 - CONFIDENCE and (interval.high < bound or interval.low > 0)
    if among is None:
        worse = _find_told(named, allowed or 0.0)
        better = [case.swap() for case in _find_told([case.swap() for case in named], 0.0)]
    else:
        worse, better = ([c for c in named if c in told] for told in (among.worse, among.better))
    dropped = [
        case for case in named if -(case.counts.difference or 0.0) > max(0.0, allowed or 0.0)
    ]

    wider = _find_widening(drawn, counts.n, SURE)

    def tells(times: float) -> bool:
        more = _widen(counts, wider, SURE, times)
        return more.high < bound or more.low > (0 if allowed is None else bound)

    is_open = bool(counts.discordant) if allowed is None else interval.low < bound
    found = Difference(
        counts=counts,
        interval=interval,
        test=replace(test, p=p),
        verdict="no difference seen",
        is_told=is_told,
        is_open=is_open and not is_told,
        needed=_count_needed(tells, counts.n) if is_open and not is_told else None,
        worse=tuple(sorted(worse, key=_by_drop)),
        better=tuple(sorted(better, key=_by_drop, reverse=True)),
        undecided=tuple(sorted((case for case in dropped if case not in worse), key=_by_drop)),
    )
    return replace(found, verdict=_find_verdict(found), sentence=_explain(found, allowed))


def _find_verdict(found: Difference) -> DifferenceVerdict:
    is_worse = bool(found.worse) or (found.is_told and found.difference < 0)
    is_better = bool(found.better) or (found.is_told and found.difference > 0)
    if is_worse:
        return "mixed" if is_better else "worse"
    if is_better:
        return "better"
    return "undecided" if found.is_open or found.undecided else "no difference seen"


def _explain(found: Difference, allowed: float | None) -> str:
    told = "worse" if found.difference < 0 else "better"
    said = [f"{told} over all (p = {found.p:.2g})"] if found.is_told else []
    said += [
        f"{word} in {list_cases(cases)}"
        for word, cases in (("worse", found.worse), ("better", found.better))
        if cases
    ]
    if found.is_open:
        said.append(f"{'over all ' if said else ''}undecided: {_explain_open(found, allowed)}")
    if found.undecided:
        said.append(f"may be chance: {list_cases(found.undecided)}")
    return "; ".join(said) or f"no difference seen in {found.counts.n:,} pairs"


def _explain_open(found: Difference, allowed: float | None) -> str:
    n, needed = found.counts.n, f"; about {found.needed:,} would" if found.needed else ""
    if allowed is None or -found.difference > allowed:
        return f"{n:,} pairs cannot tell this from chance{needed}"
    most = f"a drop of up to {-found.interval.low:.1%} is possible with {n:,} pairs"
    return f"{most}{needed and f'{needed} rule out more than {allowed:.1%}'}"


def _by_drop(case: CasePairs) -> float:
    return case.counts.difference or 0.0


def _find_told(named: Sequence[CasePairs], allowed: float) -> list[CasePairs]:
    """Return the cases that are worse in B beyond chance, by more than is allowed."""
    corrected = correct_pairs([(case.counts.only_a, case.counts.only_b) for case in named])
    breaks = [case for case in named if case.is_break]
    halves = [
        case.counts.n
        for case in named
        if case.counts.n >= MIN_BREAK and case.counts.both == case.counts.neither
    ]
    are_breaks = bool(breaks) and chance_of_breaks(halves, len(breaks)) <= 1 - CONFIDENCE + 1e-12
    return [
        case
        for case, p in zip(named, corrected, strict=True)
        if (are_breaks and case.is_break and allowed < 1)
        or (p < 1 - CONFIDENCE and newcombe_paired(case.counts).high < -allowed)
    ]


def _count_needed(tells: Callable[[float], bool], n: int) -> int | None:
    """Return how many pairs at the same rates would tell; None when no number does."""
    low, high = 1.0, 2.0
    while not tells(high):
        low, high = high, 2 * high
        if high > _MAX_TIMES:
            return None
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    return max(n + 1, math.ceil(n * high))


def clustered_rate(k: int, n: int, cases: Iterable[tuple[int, int]]) -> Rate:
    """Return a share whose interval knows which trials are of the same drawn case.

    Args:
        k: How many there are.
        n: Of how many.
        cases: The same counts, drawn case by drawn case; what is left is of named cases.
    """
    found = [(right, made) for right, made in cases if made]
    drawn = sum(made for _, made in found)
    if not n or not drawn:
        return Rate(k, n, wilson(k, n))
    worth = n / _join_worth(n, drawn, effective_trials(found))
    return Rate(k, n, wilson(k / n * worth, worth))


def _join_worth(n: int, drawn: int, worth: float) -> float:
    """Return by how much the variance grows when so many of all trials are drawn."""
    share = drawn / n
    return 1 - share + share * drawn / worth


def effective_trials(cases: Sequence[tuple[int, int]]) -> float:
    """Return as how many independent trials those of these cases count.

    The variance over cases is the cluster-robust one, G / (G - 1) * sum((k_i - p n_i)^2) / n^2;
    what it is above the binomial one makes trials count for less, and so does Student's t with
    G - 1 degrees of freedom.
    """
    n = sum(made for _, made in cases)
    share = sum(right for right, _ in cases) / n if n else 0.0
    spread = _spread([right - share * made for right, made in cases], n)
    return _count_effective(
        [made for _, made in cases], share * (1 - share) / n if n else 0, spread
    )


def clustered_difference(
    cases: Iterable[PairCounts],
    confidence: float = CONFIDENCE,
    *,
    fixed: PairCounts = PairCounts(),  # noqa: B008 - frozen
) -> Interval:
    """Return the interval of B's rate less A's, of trials that are paired within cases.

    It is Newcombe's paired interval, widened by as much as drawn cases differ more than chance
    explains.

    Args:
        cases: The pairs of each drawn case.
        confidence: Of the interval.
        fixed: The pairs of all named cases together.
    """
    drawn = list(cases)
    whole = sum(drawn, fixed)
    return _widen(whole, _find_widening(drawn, whole.n, confidence), confidence)


def _widen(
    whole: PairCounts, wider: float, confidence: float = CONFIDENCE, times: float = 1.0
) -> Interval:
    plain, difference = newcombe_paired(whole, confidence, times), whole.difference or 0.0
    return Interval(
        max(-1.0, difference - wider * (difference - plain.low)),
        min(1.0, difference + wider * (plain.high - difference)),
    )


def _find_widening(cases: Iterable[PairCounts], n: int, confidence: float = CONFIDENCE) -> float:
    """Return how much wider an interval of `n` pairs is for those that are of drawn cases."""
    found = [counts for counts in cases if counts.n]
    drawn = sum(found, PairCounts())
    difference = drawn.difference
    if difference is None:
        return 1.0
    gains = [counts.only_b - counts.only_a - difference * counts.n for counts in found]
    alone = (drawn.discordant - drawn.n * difference**2) / drawn.n**2
    sizes, spread = [counts.n for counts in found], _spread(gains, drawn.n)
    worth = _count_effective(sizes, alone, spread, confidence)
    return math.sqrt(_join_worth(n, drawn.n, worth))


def _spread(residuals: Sequence[float], n: int) -> float:
    """Return the variance of a mean from what each case is off it."""
    groups = len(residuals)
    if groups < 2:
        return 0.0
    return groups / (groups - 1) * sum(each * each for each in residuals) / n**2


def _count_effective(
    sizes: Sequence[int], alone: float, spread: float, confidence: float = CONFIDENCE
) -> float:
    """Return as how many trials these count, from the variance without and with the cases."""
    n, groups = sum(sizes), len(sizes)
    if groups < 2 or max(sizes) == 1:
        return float(n)
    share = min(1.0, alone / spread) if spread > 0 and alone > 0 else 1.0
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    few = (normal / student_t(groups - 1, confidence)) ** 2
    once_each = n * n / sum(size * size for size in sizes)
    return max(once_each, n * share * few)


@lru_cache(maxsize=1024)
def student_t(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t; the series is off by 0.1 % at the most."""
    p = (1 + confidence) / 2
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = NormalDist().inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
