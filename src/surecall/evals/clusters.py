"""Intervals for trials that share cases: ten repeats of one case tell less than ten cases.

Everything pooled over cases is counted case by case. Where the cases differ more than chance
explains, the trials count for less; with few cases they do too. The result is never narrower than
if all trials were of different cases, and never wider than if each case had been tried once.
"""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

from .stats import CONFIDENCE, Interval, PairCounts, Rate, newcombe_paired, wilson

METHOD: Final = "clustered by case"
"""How these intervals are named wherever they are shown."""


def clustered_rate(k: int, n: int, cases: Iterable[tuple[int, int]]) -> Rate:
    """Return a share whose interval knows which trials are of the same case.

    Args:
        k: How many there are.
        n: Of how many.
        cases: The same counts, case by case.
    """
    worth = effective_trials([(right, made) for right, made in cases if made])
    if not n or not worth:
        return Rate(k, n, wilson(k, n))
    return Rate(k, n, wilson(k / n * worth, worth))


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


def clustered_difference(cases: Iterable[PairCounts], confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of B's rate less A's, of trials that are paired within cases.

    It is Newcombe's paired interval, widened by as much as the cases differ more than chance
    explains.
    """
    found = [counts for counts in cases if counts.n]
    whole = sum(found, PairCounts())
    plain, difference, n = newcombe_paired(whole, confidence), whole.difference, whole.n
    if difference is None:
        return plain
    gains = [counts.only_b - counts.only_a - difference * counts.n for counts in found]
    alone = (whole.discordant - n * difference**2) / n**2
    worth = _count_effective([counts.n for counts in found], alone, _spread(gains, n), confidence)
    wider = math.sqrt(n / worth)
    return Interval(
        max(-1.0, difference - wider * (difference - plain.low)),
        min(1.0, difference + wider * (plain.high - difference)),
    )


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
