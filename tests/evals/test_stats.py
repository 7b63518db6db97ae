"""Statistics against SciPy, against published values, and against their own definitions."""

import random
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from surecall.evals.stats import (
    Interval,
    PairCounts,
    chance_of_breaks,
    correct_pairs,
    f1_score,
    mcnemar,
    min_trials,
    min_trials_against,
    newcombe_paired,
    pass_at_k,
    pass_hat_k,
    percentile,
    rate_of,
    survival_quantile,
    wilson,
)

COUNTS = [(0, 1), (1, 1), (0, 10), (10, 10), (3, 7), (36, 40), (40, 40), (487, 580), (9999, 10000)]


@dataclass(frozen=True)
class Published:
    id: str
    k: int
    n: int
    percent: tuple[float, float]


@pytest.mark.parametrize(
    "case",
    [
        Published("all of 40", 40, 40, (91.2, 100.0)),
        Published("all of 10", 10, 10, (72.2, 100.0)),
        Published("36 of 40", 36, 40, (76.9, 96.0)),
        # Newcombe 1998, two-sided intervals for the single proportion, method 3
        Published("81 of 263", 81, 263, (25.53, 36.62)),
        Published("15 of 148", 15, 148, (6.24, 16.05)),
        Published("none of 20", 0, 20, (0.0, 16.11)),
        Published("1 of 29", 1, 29, (0.61, 17.18)),
    ],
    ids=lambda case: case.id,
)
def test_wilson_gives_the_published_intervals(case: Published) -> None:
    """The figures in print come out, to the digit."""
    interval = wilson(case.k, case.n)
    ends = (100 * interval.low, 100 * interval.high)
    digits = max(len(str(end).partition(".")[2]) for end in case.percent)
    assert tuple(round(end, digits) for end in ends) == case.percent


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_wilson_is_what_scipy_computes(k: int, n: int, confidence: float) -> None:
    """Every interval agrees with SciPy's."""
    theirs = reference.binomtest(k, n).proportion_ci(confidence, method="wilson")
    ours = wilson(k, n, confidence)
    assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    assert ours.high == pytest.approx(theirs.high, abs=1e-12)


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_wilson_stays_within_bounds_and_around_the_rate(k: int, more: int) -> None:
    """An interval holds its rate, never leaves 0..1, and always has a width."""
    n = k + more
    interval = wilson(k, n)
    assert 0 <= interval.low < interval.high <= 1
    assert n == 0 or k / n in interval


def test_a_rate_of_nothing_is_unknown() -> None:
    """Without trials there is no rate, and any rate is possible."""
    rate = rate_of(0, 0)
    assert rate.value is None
    assert rate.interval == Interval(0.0, 1.0)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    """More successes than trials is a mistake of the caller."""
    with pytest.raises(ValueError, match="is not a count"):
        wilson(k, n)


def test_an_impossible_confidence_is_refused() -> None:
    """A confidence of 95 instead of 0.95 is a mistake of the caller."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson(1, 2, 95)


@dataclass(frozen=True)
class Paired:
    id: str
    counts: PairCounts
    low: float
    high: float


@pytest.mark.parametrize(
    "case",
    [
        # Newcombe 1998, on paired data, method 10
        Paired(
            "36, 12, 2, 0",
            PairCounts(both=36, only_b=12, only_a=2, neither=0),
            0.0569,
            0.3404,
        ),
        # Airway hyper-responsiveness, in Fagerland, Lydersen and Laake 2014
        Paired("1, 1, 7, 12", PairCounts(both=1, only_a=1, only_b=7, neither=12), 0.0256, 0.5069),
    ],
    ids=lambda case: case.id,
)
def test_newcombe_paired_gives_the_published_differences(case: Paired) -> None:
    """The figures of the papers come out, to four digits."""
    interval = newcombe_paired(case.counts)
    assert (round(interval.low, 4), round(interval.high, 4)) == (case.low, case.high)


pair_counts = st.builds(
    PairCounts,
    both=st.integers(0, 60),
    only_a=st.integers(0, 60),
    only_b=st.integers(0, 60),
    neither=st.integers(0, 60),
)


@given(pair_counts)
@settings(max_examples=200, deadline=None)
def test_a_paired_difference_changes_its_sign_with_the_order(counts: PairCounts) -> None:
    """B against A is A against B, turned round; the difference lies inside."""
    turned = PairCounts(
        both=counts.both, only_a=counts.only_b, only_b=counts.only_a, neither=counts.neither
    )
    there, back = newcombe_paired(counts), newcombe_paired(turned)
    assert there.low == pytest.approx(-back.high)
    assert there.high == pytest.approx(-back.low)
    difference = counts.difference
    assert difference is None or there.low - 1e-9 <= difference <= there.high + 1e-9


def test_without_pairs_any_difference_is_possible() -> None:
    """Nothing counted, nothing known."""
    assert newcombe_paired(PairCounts()) == Interval(-1.0, 1.0)
    assert PairCounts().difference is None


def test_the_paired_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """In 2,000 simulated experiments the true difference is missed in about one of twenty."""
    chance = random.Random(7)
    covered = 0
    for _ in range(2000):
        counts = PairCounts()
        for _ in range(40):
            draw = chance.random()
            counts += PairCounts(
                both=int(draw < 0.6),
                only_a=int(0.6 <= draw < 0.65),
                only_b=int(0.65 <= draw < 0.85),
                neither=int(draw >= 0.85),
            )
        covered += 0.15 in newcombe_paired(counts)
    assert 0.93 <= covered / 2000 <= 0.98


def test_forty_of_forty_and_thirty_of_forty_can_be_told_apart() -> None:
    """Ten pairs that all went one way give an exact p of 0.002."""
    result = mcnemar(10, 0)
    assert round(result.p, 3) == 0.002
    assert result.method == "exact"


@pytest.mark.parametrize(
    ("only_a", "only_b", "exact"),
    [
        # Fagerland, Lydersen and Laake 2013: airway hyper-responsiveness; complete response
        pytest.param(1, 7, 0.070, id="airway"),
        pytest.param(6, 16, 0.052, id="response"),
    ],
)
def test_mcnemar_gives_the_published_values(only_a: int, only_b: int, exact: float) -> None:
    """The test gives the figures in print."""
    assert round(mcnemar(only_a, only_b).p, 3) == exact


@given(st.integers(0, 80), st.integers(0, 80))
@settings(max_examples=200, deadline=None)
def test_mcnemar_is_scipys_test_of_a_fair_coin(only_a: int, only_b: int) -> None:
    """The exact p is SciPy's."""
    n = only_a + only_b
    wanted = reference.binomtest(only_a, n, 0.5).pvalue if n else 1.0
    assert mcnemar(only_a, only_b).p == pytest.approx(wanted)


def test_the_correction_is_never_stricter_than_holms() -> None:
    """Tests that cannot show anything cost nothing; equal ones cost as much as in Holm's method."""
    tests = [(9, 1), (6, 0), (1, 0), (0, 0), (3, 3)]
    found = [mcnemar(*counts).p for counts in tests]
    holm, least = [0.0] * len(tests), 0.0
    for rank, place in enumerate(sorted(range(len(tests)), key=found.__getitem__)):
        holm[place] = least = max(least, min(1.0, (len(tests) - rank) * found[place]))
    corrected = correct_pairs(tests)
    assert all(
        p <= one + 1e-12 <= two + 2e-12 for p, one, two in zip(found, corrected, holm, strict=True)
    )
    # 9 to 1 is 0.0215, and 6 to 0 would be 0.03125 or 0.03125 at most; two can reach it.
    assert corrected[0] == pytest.approx(22 / 1024)
    assert correct_pairs([(6, 0)] * 4) == pytest.approx([4 * 2 / 64] * 4)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_corrected_values_keep_their_order(tests: list[tuple[int, int]]) -> None:
    """A smaller p stays at most as large as a larger one, and none becomes smaller."""
    found, corrected = [mcnemar(*counts).p for counts in tests], correct_pairs(tests)
    assert all(p <= one + 1e-12 for p, one in zip(found, corrected, strict=True))
    ordered = [one for _, one in sorted(zip(found, corrected, strict=True))]
    assert ordered == sorted(ordered)


@pytest.mark.parametrize(
    ("sizes", "breaks", "chance"),
    [
        ([3], 1, 1 / 20),
        ([3, 3], 1, 1 - (19 / 20) ** 2),
        ([3, 3], 2, 1 / 400),
        ([10], 1, 1 / 184_756),
        ([3, 4, 5], 1, 1 - 19 / 20 * 69 / 70 * 251 / 252),
    ],
)
def test_breaks_by_accident_are_counted(sizes: list[int], breaks: int, chance: float) -> None:
    """Of six results with three right, one deal in twenty puts all right ones before."""
    assert chance_of_breaks(sizes, breaks) == pytest.approx(chance)


@pytest.mark.parametrize(
    ("rate_a", "rate_b", "trials"),
    [
        # the usual examples of textbooks, two-sided 5 %, power 80 %
        pytest.param(0.5, 0.6, 388, id="50 against 60"),
        pytest.param(0.8, 0.9, 199, id="80 against 90"),
        pytest.param(0.9, 0.8, 199, id="order does not matter"),
        pytest.param(0.1, 0.2, 199, id="mirrored"),
    ],
)
def test_min_trials_gives_the_textbook_sizes(rate_a: float, rate_b: float, trials: int) -> None:
    """The known sample sizes come out."""
    assert min_trials(rate_a, rate_b) == trials


def test_equal_rates_are_never_told_apart() -> None:
    """There is no number of trials for a difference of nothing."""
    assert min_trials(0.9, 0.9) is None


@pytest.mark.parametrize(("rate", "bound"), [(0.9, 0.8), (0.5, 0.6), (0.9, 0.95)])
def test_min_trials_against_is_where_the_interval_leaves_the_bound_out(
    rate: float, bound: float
) -> None:
    """At that many trials SciPy's interval excludes the bound; at a fifth fewer it does not."""
    needed = min_trials_against(rate, bound)
    assert needed is not None
    # Only whole counts have an interval, so take numbers of trials that the rate divides.
    enough, few = 20 * -(-needed // 20), 20 * int(needed * 0.8 / 20)
    for trials, holds in ((enough, False), (few, True)):
        ends = reference.binomtest(round(rate * trials), trials).proportion_ci(method="wilson")
        assert bool(ends.low <= bound <= ends.high) is holds
    assert min_trials_against(bound, bound) is None


@pytest.mark.parametrize(("n", "c", "k"), [(5, 0, 1), (5, 2, 2), (6, 5, 3), (7, 7, 4), (8, 3, 8)])
def test_pass_at_k_and_pass_hat_k_count_every_choice(n: int, c: int, k: int) -> None:
    """Both are shares of all ways to take k of the n trials, and hypergeometric."""
    choices = list(combinations([True] * c + [False] * (n - c), k))
    some = sum(any(choice) for choice in choices) / len(choices)
    every = sum(all(choice) for choice in choices) / len(choices)
    assert pass_at_k(n, c, k) == pytest.approx(some)
    assert pass_hat_k(n, c, k) == pytest.approx(every)
    assert some == pytest.approx(reference.hypergeom.sf(0, n, c, k))
    assert every == pytest.approx(reference.hypergeom.pmf(k, n, c, k))


def test_a_longer_series_than_was_made_is_unknown() -> None:
    """Three trials say nothing about four in a row."""
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 2, 0)])
@pytest.mark.parametrize("measure", [pass_at_k, pass_hat_k])
def test_a_series_that_cannot_be_is_refused(measure: object, n: int, c: int, k: int) -> None:
    """More right than made, or none at a time, is a mistake of the caller."""
    assert callable(measure)
    with pytest.raises(ValueError, match="is not a count"):
        measure(n, c, k)


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    """The value is the usual one."""
    score = f1_score(40, 10, 20)
    precision, recall = 40 / 50, 40 / 60
    assert score.value == pytest.approx(2 * precision * recall / (precision + recall))


def test_f1_has_an_interval_when_everything_agrees() -> None:
    """Ten agreements of ten do not prove that the two always agree."""
    score = f1_score(10, 0, 0)
    low = wilson(10, 10).low
    assert score.value == 1
    assert score.interval == Interval(2 * low / (1 + low), 1.0)
    assert score.interval.low == pytest.approx(0.8389, abs=1e-4)


def test_f1_of_nothing_is_unknown() -> None:
    """Where nobody ever said yes there is no score."""
    score = f1_score(0, 0, 0)
    assert score.value is None
    assert score.interval == Interval(0.0, 1.0)


def test_the_interval_of_f1_agrees_with_a_bootstrap() -> None:
    """Away from the ends, resampling with SciPy gives nearly the same interval."""
    outcomes = np.array([0] * 160 + [1] * 25 + [2] * 35 + [3] * 80)

    def score(sample: "np.ndarray", axis: int = -1) -> "np.ndarray":
        hits = (sample == 0).sum(axis=axis)
        misses = ((sample == 1) | (sample == 2)).sum(axis=axis)
        return 2 * hits / (2 * hits + misses)

    resampled = reference.bootstrap(
        (outcomes,), score, n_resamples=4000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    ours = f1_score(160, 25, 35).interval
    assert ours.low == pytest.approx(resampled.low, abs=0.01)
    assert ours.high == pytest.approx(resampled.high, abs=0.01)


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        pytest.param([], 0.5, 0, id="nothing is 0"),
        pytest.param([7], 0.95, 7, id="one value"),
        pytest.param([4, 1, 3, 2], 0.5, 3, id="the upper middle"),
        pytest.param(list(range(10)), 0.95, 9, id="the largest of ten"),
        pytest.param(list(range(100)), 0.99, 99, id="index 99 of a hundred"),
        pytest.param([1, 2], 1.0, 2, id="never beyond the end"),
    ],
)
def test_percentile_takes_the_value_at_the_rounded_down_index(
    values: list[float], share: float, expected: float
) -> None:
    """Sort, take index floor(n * share), interpolate nothing."""
    assert percentile(values, share) == expected


@given(
    st.lists(st.integers(1, 30), max_size=25),
    st.lists(st.integers(1, 30), max_size=25),
    st.sampled_from([0.1, 0.5, 0.9, 0.95, 0.99]),
)
@settings(max_examples=200, deadline=None)
def test_the_survival_quantile_is_where_scipys_curve_falls_below(
    times: list[int], censored: list[int], share: float
) -> None:
    """The quantile is the first time at which SciPy's Kaplan-Meier curve is low enough."""
    found = survival_quantile(times, censored, share)
    if not times:
        assert found is None
        return
    curve = reference.ecdf(reference.CensoredData(uncensored=times, right=censored)).sf
    low_enough = [
        time
        for time, value in zip(curve.quantiles, curve.probabilities, strict=True)
        if value <= 1 - share + 1e-9 and time in times
    ]
    assert found == (min(low_enough) if low_enough else None)


def test_timeouts_push_a_quantile_out_instead_of_capping_it() -> None:
    """With a tenth of the runs stopped, nobody knows the 95th percentile."""
    times, stopped = [float(i) for i in range(1, 91)], [120.0] * 10
    assert survival_quantile(times, stopped, 0.5) == 50.0
    assert survival_quantile(times, stopped, 0.95) is None
    assert percentile([*times, *stopped], 0.95) == 120.0


def test_pair_counts_add_up() -> None:
    """Counts of parts are the counts of the whole."""
    counts = PairCounts(both=1, only_a=2, only_b=5, neither=4) + PairCounts(both=8)
    assert counts == PairCounts(both=9, only_a=2, only_b=5, neither=4)
    assert (counts.n, counts.discordant) == (20, 7)
    assert counts.difference == pytest.approx(0.15)
