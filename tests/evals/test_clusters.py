"""Intervals of trials that share cases: by hand, at the ends, and by simulation."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.evals.clusters import (
    CasePairs,
    Difference,
    clustered_difference,
    clustered_rate,
    compare_pairs,
    effective_trials,
    student_t,
)
from surecall.evals.stats import PairCounts, newcombe_paired, wilson

CASES = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=30,
)


def pool(cases: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the counts of all cases together."""
    return sum(k for k, _ in cases), sum(n for _, n in cases)


def test_four_cases_by_hand() -> None:
    """10, 10, 8 and 2 of 10: 40 trials count as 4.08, because two cases are another world.

    p = 30/40; residuals 2.5, 2.5, 0.5, -5.5, squares 43; spread = 4/3 * 43 / 1600 = 0.035833;
    alone = 0.1875 / 40 = 0.0046875; share = 0.130814; 40 * share = 5.2326;
    t(3) = 3.182: (1.95996 / 3.182)^2 = 0.3793; 5.2326 * 0.3793 = 1.985, which is below the four
    trials that would be left with one of each case, so four it is.
    """
    cases = [(10, 10), (10, 10), (8, 10), (2, 10)]
    assert effective_trials(cases) == 4.0
    rate = clustered_rate(30, 40, cases)
    assert (rate.k, rate.n) == (30, 40)
    assert rate.interval == wilson(3.0, 4.0)


def test_twelve_cases_by_hand() -> None:
    """Nine times 9 of 10 and three times 6 of 10: 120 trials count as 75.

    p = 99/120 = 0.825; residuals 0.75 and -2.25, squares 9 * 0.5625 + 3 * 5.0625 = 20.25;
    spread = 12/11 * 20.25 / 14400 = 0.00153409; alone = 0.144375 / 120 = 0.001203125;
    share = 0.784259; t(11) = 2.2010: few = 0.79297; 120 * 0.784259 * 0.79297 = 74.63.
    """
    cases = [(9, 10)] * 9 + [(6, 10)] * 3
    assert effective_trials(cases) == pytest.approx(74.63, abs=0.05)
    interval = clustered_rate(99, 120, cases).interval
    assert (interval.low, interval.high) == pytest.approx((0.7236, 0.8946), abs=0.0005)


def test_trials_of_different_cases_have_the_plain_interval() -> None:
    """One trial a case is what the plain interval is made for."""
    cases = [(1, 1)] * 7 + [(0, 1)] * 3
    assert clustered_rate(7, 10, cases).interval == wilson(7, 10)


def test_repeats_of_one_case_have_the_plain_interval() -> None:
    """Nothing is pooled over cases where there is one."""
    assert clustered_rate(7, 10, [(7, 10)]).interval == wilson(7, 10)


def test_nothing_counted_is_anything() -> None:
    """Without trials every rate is possible."""
    rate = clustered_rate(0, 0, [])
    assert (rate.value, rate.interval.low, rate.interval.high) == (None, 0.0, 1.0)


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_it_lies_between_all_trials_and_one_a_case(cases: list[tuple[int, int]]) -> None:
    """Never narrower than the plain interval, and the rate is inside."""
    k, n = pool(cases)
    rate = clustered_rate(k, n, cases)
    assert n * n / sum(made**2 for _, made in cases) - 1e-9 <= effective_trials(cases) <= n
    assert rate.interval.low - 1e-12 <= k / n <= rate.interval.high + 1e-12
    width, plain = rate.interval.high - rate.interval.low, wilson(k, n)
    assert width >= plain.high - plain.low - 1e-12


def test_a_difference_is_widened_by_the_spread_over_cases() -> None:
    """The same counts: spread evenly, and all in one case."""
    even = [PairCounts(both=6, only_b=2, neither=2)] * 6
    lumped = [PairCounts(both=6, neither=4)] * 4
    lumped += [PairCounts(only_b=6, both=4), PairCounts(only_b=6, both=8, neither=6)]
    plain = newcombe_paired(sum(even, PairCounts()))
    interval = clustered_difference(even)
    assert interval.low < plain.low
    assert 0 not in interval
    assert 0 in clustered_difference(lumped)


def test_pairs_of_different_cases_have_the_plain_interval() -> None:
    """One pair a case is not widened."""
    pairs = [PairCounts(only_b=1)] * 5 + [PairCounts(both=1)] * 9 + [PairCounts(only_a=1)]
    assert clustered_difference(pairs) == newcombe_paired(sum(pairs, PairCounts()))


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (11, 2.201), (30, 2.042), (1000, 1.962)],
)
def test_student_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    """Two-sided, at 95 %."""
    assert math.isclose(student_t(freedom), quantile, rel_tol=1.5e-3)


@pytest.mark.parametrize("spread", [0.0, 0.2, 0.6])
def test_it_covers_the_truth(spread: float) -> None:
    """Of 400 experiments with 20 cases and 8 repeats, 95 % have the true rate inside.

    Each case has a chance of its own, from a beta distribution with this correlation. The plain
    interval is tried beside it, and loses most of its truth where cases differ.
    """
    dice, true = random.Random(f"coverage {spread}"), 0.75
    inside = plain = 0
    for _ in range(400):
        cases = [(_try_case(dice, true, spread), 8) for _ in range(20)]
        k, n = pool(cases)
        inside += true in clustered_rate(k, n, cases).interval
        plain += true in wilson(k, n)
    assert inside / 400 >= 0.92
    assert (plain / 400 < 0.8) == (spread > 0)


def _try_case(dice: random.Random, true: float, spread: float) -> int:
    chance = true
    if spread:
        strength = 1 / spread - 1
        chance = dice.betavariate(true * strength, (1 - true) * strength)
    return sum(dice.random() < chance for _ in range(8))


# Named cases: each stands for itself


def compare(*cases: tuple[int, int, int, int], drawn: bool = False, **given: object) -> Difference:
    """Compare cases of so many pairs right in both, only in A, only in B and in neither."""
    return compare_pairs(
        (
            CasePairs(
                name=f"case_{number}",
                counts=PairCounts(both=both, only_a=only_a, only_b=only_b, neither=neither),
                drawn=drawn,
            )
            for number, (both, only_a, only_b, neither) in enumerate(cases)
        ),
        **given,  # type: ignore[arg-type]  # passed on
    )


@pytest.mark.parametrize("others", [3, 5, 17, 199])
@pytest.mark.parametrize("trials", [3, 10, 1000])
def test_one_named_case_that_breaks_is_seen_among_any_number(others: int, trials: int) -> None:
    """Always right before, always wrong now: nothing that the others do hides it."""
    found = compare((0, trials, 0, 0), *[(trials, 0, 0, 0)] * others)
    assert found.verdict == "worse"
    assert [case.name for case in found.worse] == ["case_0"]
    assert f"worse in case_0 {trials}/{trials} → 0/{trials}" in found.sentence


def test_a_break_stays_seen_where_the_others_improve() -> None:
    """A better rate over all does not make up for it."""
    found = compare((0, 10, 0, 0), *[(0, 0, 10, 0)] * 3)
    assert found.verdict == "mixed"
    assert found.is_worse
    assert (len(found.worse), len(found.better)) == (1, 3)


def test_two_trials_are_no_break() -> None:
    """Twice right and twice wrong is too little to say so, and is named as undecided."""
    found = compare((0, 2, 0, 0), (2, 0, 0, 0))
    assert (found.verdict, found.worse) == ("undecided", ())
    assert "may be chance: case_0 2/2 → 0/2" in found.sentence


def test_a_break_among_cases_that_swing_may_be_chance() -> None:
    """Where half of all trials are right anyway, three of three to none of three happens."""
    found = compare((0, 3, 0, 0), *[(1, 1, 0, 1), (1, 0, 1, 1)] * 9)
    assert found.verdict == "undecided"
    assert "may be chance: case_0 3/3 → 0/3" in found.sentence


def test_a_drawn_case_that_breaks_is_one_of_many() -> None:
    """Drawn cases are clusters, so one of four proves nothing about the others."""
    found = compare((0, 10, 0, 0), *[(10, 0, 0, 0)] * 3, drawn=True)
    assert (found.verdict, found.worse) == ("undecided", ())
    assert found.needed is not None
    assert found.needed > found.counts.n


@pytest.mark.parametrize("trials", [3, 10])
@pytest.mark.parametrize("others", [4, 18])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_without_a_break_nothing_is_called_worse(trials: int, others: int, rate: float) -> None:
    """Of 400 pairs of runs that are alike, at most one in twenty is; both ends are measured."""
    dice = random.Random(f"{trials} {others} {rate}")
    alarms = 0
    for _ in range(400):
        pairs: list[tuple[int, int, int, int]] = []
        for _ in range(others):
            seen = [(dice.random() < rate, dice.random() < rate) for _ in range(trials)]
            kinds = [(True, True), (True, False), (False, True), (False, False)]
            both, only_a, only_b, neither = (seen.count(kind) for kind in kinds)
            pairs.append((both, only_a, only_b, neither))
        alarms += compare(*pairs, allowed=0.02).is_worse
    assert alarms <= 20


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 8)] * 4), min_size=1, max_size=12), st.booleans())
def test_more_trials_are_needed_than_were_made(
    cases: list[tuple[int, int, int, int]], drawn: bool
) -> None:
    """What would tell is more than what does not; where it is named, the sentence has it."""
    found = compare(*cases, drawn=drawn)
    assert found.needed is None or found.needed > found.counts.n
    assert (found.needed is None) or f"about {found.needed:,} would" in found.sentence
    assert ("undecided" in found.sentence) == found.is_open


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 8)] * 4), min_size=1, max_size=12))
def test_the_other_way_round_says_the_opposite(cases: list[tuple[int, int, int, int]]) -> None:
    """What is worse in one direction is better in the other."""
    found = compare(*cases)
    turned = compare(*((both, b, a, neither) for both, a, b, neither in cases))
    assert {case.name for case in found.worse} == {case.name for case in turned.better}
    opposite = {"worse": "better", "better": "worse", "no difference seen": "undecided"}
    verdicts = {opposite.get(found.verdict, found.verdict), found.verdict}
    assert turned.verdict in verdicts | {"no difference seen"}


@pytest.mark.parametrize("rates", [(0.9, 0.9), (0.95, 0.6), (0.5, 0.3)])
def test_the_interval_of_named_cases_covers_the_truth(rates: tuple[float, float]) -> None:
    """Cases of very different rates: of 600 experiments, 95 % have the true difference inside."""
    dice, cases = random.Random(f"strata {rates}"), [(1.0, 0.2), (0.9, 0.9), (0.1, 0.5), rates]
    true = sum(b - a for a, b in cases) / len(cases)
    inside = 0
    for _ in range(600):
        counts = PairCounts()
        for a, b in cases:
            for _ in range(10):
                was, now = dice.random() < a, dice.random() < b
                counts += PairCounts(
                    both=was and now,
                    only_a=was and not now,
                    only_b=now and not was,
                    neither=not (was or now),
                )
        inside += true in clustered_difference([], fixed=counts)
    assert inside / 600 >= 0.94
