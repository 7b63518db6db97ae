"""Some of the cases: by name, by lot, by number, and in another order."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import ConfigError
from surecall.evals import plan
from surecall.evals.choosing import CaseFilter, ChosenScenario, choose_cases

THREE = [
    ChosenScenario("s", "big", tuple(f"big_{n}" for n in range(50))),
    ChosenScenario("s", "small", tuple(f"small_{n}" for n in range(5))),
    ChosenScenario("s", "single", ("",)),
]


def choose(seed: int = 0, **wanted: object) -> dict[str, tuple[str, ...]]:
    """Return the cases that are left, by scenario."""
    found = choose_cases(THREE, CaseFilter(**wanted), seed=seed)  # type: ignore[arg-type]
    return {item.name: item.cases for item in found}


def test_without_a_filter_nothing_changes() -> None:
    """All cases take part."""
    assert choose() == {item.name: item.cases for item in THREE}


def test_cases_are_named_by_id_glob_or_scenario() -> None:
    """A scenario with one case has no other name for it."""
    assert choose(cases="small_3, big/big_7,single") == {
        "big": ("big_7",),
        "small": ("small_3",),
        "single": ("",),
    }
    assert choose(cases="SMALL_*") == {"small": THREE[1].cases}


def test_a_case_that_does_not_exist_is_an_error() -> None:
    """A typo never silently drops a case."""
    with pytest.raises(ConfigError, match=r"there is no case 'smal_3'.*small_3"):
        choose(cases="small_1,smal_3")
    with pytest.raises(ConfigError, match="no case is left"):
        choose(cases=",")


def test_the_limit_takes_the_first() -> None:
    """Over all scenarios together, in their order."""
    assert choose(limit=52) == {"big": THREE[0].cases, "small": ("small_0", "small_1")}
    assert choose(cases="small*", limit=1) == {"small": ("small_0",)}


@pytest.mark.parametrize("name", ["limit", "sample"])
def test_there_must_be_at_least_one(name: str) -> None:
    """Nothing is not a number of cases."""
    with pytest.raises(ConfigError, match=f"{name} must be 1 or more, not 0"):
        choose(**{name: 0})


@given(st.integers(1, 70), st.integers(0, 5))
def test_a_sample_is_stratified_and_grows(size: int, seed: int) -> None:
    """It has the size asked for, every scenario if possible, and all of a smaller sample."""
    found = choose(seed, sample=size)
    counts = [len(found.get(item.name, ())) for item in THREE]

    assert sum(counts) == min(size, 56)
    if size >= 3:
        assert min(counts) >= 1
    if 10 <= size <= 56:
        assert abs(counts[0] - size * 50 / 56) <= 2
    drawn = {case for cases in found.values() for case in cases}
    larger = {case for cases in choose(seed, sample=70).values() for case in cases}
    assert drawn <= larger


def test_the_seed_decides_the_sample() -> None:
    """The same seed draws the same cases, another one others."""
    assert choose(3, sample=20) == choose(3, sample=20)
    assert choose(3, sample=20) != choose(4, sample=20)


def test_every_model_and_strategy_gets_the_same_cases() -> None:
    """Otherwise they could not be compared trial by trial."""
    planned = plan(
        "zoo:steady,zoo:tag-writer", suites="one_tool", strategies="raw,production", sample=7
    )
    counts = Counter(unit.case for unit in planned.matrix.units)

    assert len(counts) == 7
    assert set(counts.values()) == {4}
    assert planned.manifest.axes["sample"] == 7
    assert "limit" not in planned.manifest.axes


def test_a_shuffled_experiment_is_the_same_in_another_order() -> None:
    """Each trial keeps its place, seed and case; only the order of running differs."""
    plain = plan("zoo:steady", suites="one_tool", trials=2)
    shuffled = plan("zoo:steady", suites="one_tool", trials=2, shuffle=True)

    assert shuffled.manifest.hash == plain.manifest.hash
    assert shuffled.matrix.units != plain.matrix.units
    assert sorted(shuffled.matrix.units, key=lambda unit: unit.index) == list(plain.matrix.units)
