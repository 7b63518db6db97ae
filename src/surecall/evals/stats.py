"""Statistics for small counts: intervals, paired tests, repeated trials and cut-off times.

Nothing here uses the normal approximation to a rate: with the few dozen trials of a cell it would
give intervals that leave 0..1 or have no width at all.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal

from msgspec import Struct

CONFIDENCE: Final = 0.95

_POWER: Final = 0.8
SURE: Final = 2 * NormalDist().cdf(NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(_POWER)) - 1
"""The confidence at which an interval of the rates that are expected must leave a bound out, so
that one at 95 % leaves it out in 80 % of all experiments."""


class Interval(Struct, frozen=True):
    """The values that are compatible with what was counted."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


class Rate(Struct, frozen=True):
    """A share that was counted, with its interval."""

    k: int
    n: int
    interval: Interval
    """At 95 %; 0..1 when nothing was counted."""

    @property
    def value(self) -> float | None:
        """The share; None when nothing was counted."""
        return self.k / self.n if self.n else None


class PairCounts(Struct, frozen=True, kw_only=True):
    """How two verdicts on the same trials agree: the four cells of a paired table."""

    both: int = 0
    """Yes in both."""
    only_a: int = 0
    only_b: int = 0
    neither: int = 0

    @property
    def n(self) -> int:
        """The number of pairs."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def discordant(self) -> int:
        """The number of pairs that differ; only they can tell which is better."""
        return self.only_a + self.only_b

    @property
    def difference(self) -> float | None:
        """The rate of B less the rate of A; None without pairs."""
        return (self.only_b - self.only_a) / self.n if self.n else None

    def __add__(self, other: "PairCounts") -> "PairCounts":
        return PairCounts(
            both=self.both + other.both,
            only_a=self.only_a + other.only_a,
            only_b=self.only_b + other.only_b,
            neither=self.neither + other.neither,
        )


def count_pairs(pairs: Iterable[tuple[bool, bool]]) -> PairCounts:
    """Count how pairs of verdicts agree, A first."""
    found = Counter(pairs)
    return PairCounts(
        both=found[True, True],
        only_a=found[True, False],
        only_b=found[False, True],
        neither=found[False, False],
    )


class McNemar(Struct, frozen=True):
    """A two-sided test of whether two paired rates differ."""

    p: float
    method: Literal["exact"]
    only_a: int
    only_b: int


class F1(Struct, frozen=True):
    """How well yes and no of one agree with those of a reference."""

    value: float | None
    """None when neither ever said yes."""
    interval: Interval
    true_positives: int
    false_positives: int
    false_negatives: int


# Rates


def wilson(k: float, n: float, confidence: float = CONFIDENCE) -> Interval:
    """Return the Wilson score interval of `k` out of `n`; 0..1 when `n` is 0.

    Neither need be whole: trials that share a case count for less than one each.
    """
    if n < 0 or not 0 <= k <= n:
        raise ValueError(f"{k} out of {n} is not a count")
    if n == 0:
        return Interval(0.0, 1.0)
    z = _z(confidence)
    shrunk = n + z * z
    centre = (k + z * z / 2) / shrunk
    half = z * math.sqrt(k * (n - k) / n + z * z / 4) / shrunk
    # At the ends the formula is exact, and rounding would miss 0 and 1 by a hair.
    low = 0.0 if k == 0 else max(0.0, centre - half)
    high = 1.0 if k == n else min(1.0, centre + half)
    return Interval(low, high)


def rate_of(k: int, n: int, confidence: float = CONFIDENCE) -> Rate:
    """Return a share with its Wilson interval."""
    return Rate(k, n, wilson(k, n, confidence))


def newcombe_paired(
    counts: PairCounts, confidence: float = CONFIDENCE, times: float = 1.0
) -> Interval:
    """Return the interval of B's rate less A's, of trials that are paired.

    This is the square-and-add interval (method 10 of Newcombe 1998 on paired data): two Wilson
    intervals, joined with the correlation of the pairs, which is corrected for continuity.

    Args:
        counts: The pairs.
        confidence: Of the interval.
        times: How often the same pairs are taken, to see what more of them would tell.
    """
    if not counts.n:
        return Interval(-1.0, 1.0)
    n, k_a, k_b = (
        times * count
        for count in (counts.n, counts.both + counts.only_a, counts.both + counts.only_b)
    )
    a, b, correlation = k_a / n, k_b / n, _correlation(counts, times)
    of_a, of_b = wilson(k_a, n, confidence), wilson(k_b, n, confidence)
    down_a, up_a = a - of_a.low, of_a.high - a
    down_b, up_b = b - of_b.low, of_b.high - b
    below = down_b**2 - 2 * correlation * down_b * up_a + up_a**2
    above = up_b**2 - 2 * correlation * up_b * down_a + down_a**2
    # Rounding can leave a hair below zero where the two sides cancel.
    low = b - a - math.sqrt(max(0.0, below))
    high = b - a + math.sqrt(max(0.0, above))
    return Interval(max(-1.0, low), min(1.0, high))


def _correlation(counts: PairCounts, times: float) -> float:
    n = counts.n
    k_a, k_b = counts.both + counts.only_a, counts.both + counts.only_b
    scale = math.sqrt(k_a * (n - k_a) * k_b * (n - k_b))
    if not scale:
        return 0.0
    product = counts.both * counts.neither - counts.only_a * counts.only_b
    if product > 0:
        product = max(product - n / (2 * times), 0)
    return product / scale


def mcnemar(only_a: int, only_b: int) -> McNemar:
    """Test whether two paired rates differ, from the pairs in which only one says yes.

    The p-value is exact and two-sided: under no difference each such pair is a fair coin.
    """
    n, k = only_a + only_b, min(only_a, only_b)
    ways = sum(math.comb(n, i) for i in range(k + 1))
    return McNemar(min(1.0, 2 * ways / 2**n), "exact", only_a, only_b)


def correct_pairs(tests: Sequence[tuple[int, int]]) -> list[float]:
    """Return the exact p of McNemar's test for each pair of counts, corrected for their number.

    This is Holm's method for exact tests: instead of its p once for each test, p is the sum of
    what each could have shown at most that far by chance. A test that has too few pairs which
    differ to show anything costs the others nothing.

    Args:
        tests: For each test how many pairs only A says yes to, and how many only B.
    """
    found = [mcnemar(*counts).p for counts in tests]
    left = Counter(sum(counts) for counts in tests)
    corrected, least = [1.0] * len(tests), 0.0
    for place in sorted(range(len(tests)), key=found.__getitem__):
        p = found[place]
        chance = sum(count * _reach(pairs, p) for pairs, count in left.items())
        corrected[place] = least = min(1.0, max(least, chance))
        left[sum(tests[place])] -= 1
    return corrected


@lru_cache(maxsize=4096)
def _reach(pairs: int, p: float) -> float:
    """Return the largest p that so many discordant pairs can have and that is at most `p`."""
    reached, ways, below = 0.0, 1, 0
    for k in range(pairs // 2 + 1):
        below += ways
        ways = ways * (pairs - k) // (k + 1)
        here = min(1.0, 2 * below / 2**pairs)
        if here > p:
            break
        reached = here
    return reached


def chance_of_breaks(sizes: Iterable[int], breaks: int) -> float:
    """Return the chance that so many cases go from always right to always wrong by accident.

    Args:
        sizes: How often each case was tried on either side, of those that were right in half of
            all their trials; no other case can do this. Their results are dealt to the two sides
            by chance.
        breaks: How many cases did.
    """
    fewer = [1.0] + [0.0] * (breaks - 1)
    for n in sizes:
        chance = 1 / math.comb(2 * n, n)
        for place in range(breaks - 1, -1, -1):
            fewer[place] *= 1 - chance
            fewer[place] += fewer[place - 1] * chance if place else 0.0
    return max(0.0, 1.0 - sum(fewer))


def min_trials(
    rate_a: float, rate_b: float, *, confidence: float = CONFIDENCE, power: float = _POWER
) -> int | None:
    """Return how many trials on each side tell two rates apart; None when they are equal.

    The usual formula for two independent groups.
    """
    if rate_a == rate_b:
        return None
    mean = (rate_a + rate_b) / 2
    under_none = _z(confidence) * math.sqrt(2 * mean * (1 - mean))
    spread = rate_a * (1 - rate_a) + rate_b * (1 - rate_b)
    under_this = NormalDist().inv_cdf(power) * math.sqrt(spread)
    return math.ceil(((under_none + under_this) / (rate_a - rate_b)) ** 2)


def min_trials_against(rate: float, bound: float, *, confidence: float = CONFIDENCE) -> int | None:
    """Return how many trials at this rate have a Wilson interval that leaves the bound out."""
    if rate == bound:
        return None
    return math.floor(_z(confidence) ** 2 * bound * (1 - bound) / (rate - bound) ** 2) + 1


@lru_cache(maxsize=16)
def _z(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


# Repeated trials


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that at least one of `k` trials is right, of `n` with `c` right.

    It is the unbiased estimate 1 - C(n-c, k) / C(n, k); None when fewer than `k` were made.
    """
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"{c} right out of {n}, taken {k} at a time, is not a count")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k) if k <= n else None


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the chance that all of `k` trials are right, of `n` with `c` right.

    It is the unbiased estimate C(c, k) / C(n, k); None when fewer than `k` were made.
    """
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"{c} right out of {n}, taken {k} at a time, is not a count")
    return math.comb(c, k) / math.comb(n, k) if k <= n else None


# Agreement


def f1_score(
    true_positives: int,
    false_positives: int,
    false_negatives: int,
    confidence: float = CONFIDENCE,
) -> F1:
    """Return F1 with an interval that also has a width when everything agrees.

    F1 is 2J / (1 + J), where J is the share of true positives in all that either side called
    positive. J is a plain rate, and the function rises with it, so the ends of J's Wilson
    interval become the ends of F1's.
    """
    counted = true_positives + false_positives + false_negatives
    share = wilson(true_positives, counted, confidence)
    value = 2 * true_positives / (counted + true_positives) if counted else None
    ends = (2 * share.low / (1 + share.low), 2 * share.high / (1 + share.high))
    return F1(value, Interval(*ends), true_positives, false_positives, false_negatives)


# Times


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value at index floor(n * share) of the sorted values; 0 for none.

    The rule of the original experiment: nothing is interpolated, and with ten values the 95th
    percentile is the largest.
    """
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def survival_quantile(
    times: Sequence[float], censored: Sequence[float], share: float
) -> float | None:
    """Return the time by which `share` of all runs have ended (Kaplan-Meier).

    Args:
        times: Of runs that ended by themselves.
        censored: Of runs that were stopped: they would have taken longer, nobody knows how long.
        share: Between 0 and 1, such as 0.95.

    Returns:
        The time, or None when it lies beyond the longest that was waited for.
    """
    ended, stopped = sorted(times), sorted(censored)
    surviving, at, gone = 1.0, 0, 0
    remaining = len(ended) + len(stopped)
    while at < len(ended):
        time = ended[at]
        while gone < len(stopped) and stopped[gone] < time:
            gone += 1
            remaining -= 1
        same = at
        while same < len(ended) and ended[same] == time:
            same += 1
        surviving *= 1 - (same - at) / remaining
        # A product of fractions such as 9/10 * 8/9 misses its own value by a rounding.
        if surviving <= 1 - share + 1e-12:
            return time
        remaining -= same - at
        at = same
    return None
