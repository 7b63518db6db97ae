"""The matrix: who meets what, in which order, with which seed, at what price."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from support.eval_fakes import ORIGINAL_PROFILES
from surecall.base.errors import ConfigError
from surecall.base.records import Usage
from surecall.evals.cases import Case, Contender, parse_price
from surecall.evals.choosing import choose, choose_strategies
from surecall.evals.matrix import (
    Axes,
    Matrix,
    build_matrix,
    derive_seed,
    estimate,
)
from surecall.evals.records import Cell
from surecall.evals.scenarios import StateSuite
from surecall.evals.strategies import list_ablations
from surecall.models.profiles import Catalog

from .desk import DeskCase
from .trial_rows import row

LIVE = tuple(
    Contender(label=entry.id, model=entry.id, provider="openrouter", tags=entry.tags)
    for entry in Catalog.builtin().models
    if not entry.id.startswith("embedded:")
)
TWO = (
    Contender(label="a", model="a", tags=("small",)),
    Contender(label="b", model="b", kind="simulated"),
)


class PlainSuite:
    """Scenarios without groups; the second has two cases."""

    name = "plain"
    version = "1"

    def scenarios(self) -> Sequence[str]:
        """Name them."""
        return ("one", "two")

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return one case, or two."""
        cases = [DeskCase() for _ in range(1 if scenario == "one" else 2)]
        for number, case in enumerate(cases):
            case.id = f"c{number}" if scenario == "two" else ""
        return cases


def build(contenders: Sequence[Contender] = TWO, **axes: Any) -> Matrix:
    """Build a matrix of the plain suite."""
    return build_matrix(Axes(**axes), [PlainSuite()], contenders)


def test_the_order_is_that_of_the_original() -> None:
    """Model, profile, strategy, fallback; then trials outside, scenarios and cases inside."""
    matrix = build(strategies="baseline,production", fallbacks="both", trials=2)
    first = [
        (u.cell.model, u.cell.strategy, u.cell.fallback, u.trial, u.cell.scenario, u.case)
        for u in matrix.units
    ]
    begin = ("a", "baseline", "fallback_off")
    assert first[:6] == [
        (*begin, 1, "one", ""),
        (*begin, 1, "two", "c0"),
        (*begin, 1, "two", "c1"),
        (*begin, 2, "one", ""),
        (*begin, 2, "two", "c0"),
        (*begin, 2, "two", "c1"),
    ]
    assert first[6][:3] == ("a", "baseline", "fallback_on")
    assert first[12][:3] == ("a", "production", "fallback_off")
    assert first[24][:3] == ("b", "baseline", "fallback_off")
    assert [unit.index for unit in matrix.units] == list(range(48))
    assert len(matrix.cells) == len(set(matrix.cells)) == 16


def test_a_matrix_is_the_same_every_time() -> None:
    """Nothing in it depends on chance, hashing or the clock."""
    axes = Axes(profiles=ORIGINAL_PROFILES, strategies="all", trials=3, seed=4)
    again = [build_matrix(axes, [StateSuite()], LIVE) for _ in range(2)]
    assert msgspec.json.encode(again[0]) == msgspec.json.encode(again[1])


def test_the_matrix_of_the_original_has_its_size() -> None:
    """Seventeen models with their profiles are 29 rows, and 1,450 trials of five scenarios."""
    matrix = build_matrix(Axes(profiles=ORIGINAL_PROFILES, trials=10), [StateSuite()], LIVE)
    assert len(matrix.contenders) == 17
    assert len(matrix.describe()["rows"]) == 29
    assert len(matrix.units) == 1450


def test_profiles_are_for_the_models_they_are_meant_for() -> None:
    """A model without one of its own runs with the default, unless applicability is off."""
    chosen = [item for item in LIVE if item.model.startswith(("x-ai", "openai/gpt-5.2:"))]
    rows = build(chosen, profiles="recommended").describe()["rows"]
    assert [(item["model"], item["profile"]) for item in rows] == [
        ("x-ai/grok-4.1-fast", "grok_default"),
        ("openai/gpt-5.2:nitro", "default"),
    ]
    loose = build(chosen, profiles="grok_default", enforce_applicability=False).describe()["rows"]
    assert [item["profile"] for item in loose] == ["grok_default", "grok_default"]


def test_raw_runs_once_whatever_the_fallback() -> None:
    """It looks for nothing in text, so on and off would be the same trials paid for twice."""
    rows = build(TWO[:1], strategies="raw,naive,baseline", fallbacks="both").describe()["rows"]
    assert [(item["strategy"], item["fallback"]) for item in rows] == [
        ("raw", "fallback_off"),
        ("naive", "fallback_off"),
        ("baseline", "fallback_off"),
        ("baseline", "fallback_on"),
    ]


# seeds


def test_strategies_meet_the_same_chances() -> None:
    """A trial has the same seed under every strategy, and another one in any other respect."""
    cell = Cell(model="m", scenario="s", strategy="raw")
    seed = derive_seed(1, cell, "", 1)
    other = msgspec.structs.replace(cell, strategy="production", fallback="fallback_on")
    assert derive_seed(1, other, "", 1) == seed
    different = {
        derive_seed(2, cell, "", 1),
        derive_seed(1, cell, "x", 1),
        derive_seed(1, cell, "", 2),
        *(
            derive_seed(1, msgspec.structs.replace(cell, **{field: "other"}), "", 1)
            for field in ("model", "profile", "suite", "scenario")
        ),
    }
    assert len(different) == 7
    assert seed not in different
    assert 0 <= seed < 2**53


def test_the_seed_of_a_trial_does_not_depend_on_its_neighbours() -> None:
    """Leaving scenarios out, or adding trials, changes nothing for those that stay."""
    small = {(u.cell, u.case, u.trial): u.seed for u in build(scenarios="two").units}
    large = {(u.cell, u.case, u.trial): u.seed for u in build(trials=5).units}
    assert small.items() <= large.items()


# filters


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param("", "happy_path missing_workspace_id type_error_recovery "
                     "long_arguments_guard chat_only", id="default"),
        pytest.param("simple", "happy_path chat_only", id="preset"),
        pytest.param("simple,!chat_only", "happy_path", id="without"),
        pytest.param("chat_only,happy_path", "happy_path chat_only", id="catalog order"),
        pytest.param("*guard,single*", "single_call long_arguments_guard", id="globs"),
    ],
)  # fmt: skip
def test_scenarios_are_chosen_by_name_glob_and_preset(expression: str, names: str) -> None:
    """The order is always that of the suite."""
    matrix = build_matrix(Axes(scenarios=expression), [StateSuite()], TWO[:1])
    assert [cell.scenario for cell in matrix.cells] == names.split()


def test_a_name_need_not_be_known_to_every_suite() -> None:
    """Each suite takes what it knows; the name of a suite is all of it."""
    suites = [StateSuite(), PlainSuite()]
    matrix = build_matrix(Axes(scenarios="chat_only,plain,!one"), suites, TWO[:1])
    assert [(cell.suite, cell.scenario) for cell in matrix.cells] == [
        ("state", "chat_only"),
        ("plain", "two"),
    ]


@pytest.mark.parametrize(
    ("axes", "hint"),
    [
        pytest.param({"scenarios": "happy_pth"}, "happy_path", id="scenario"),
        pytest.param({"profiles": "grok_defalt"}, "grok_default", id="profile"),
        pytest.param({"profiles": "creatve"}, "'creative'", id="tag"),
        pytest.param({"strategies": "prodution"}, "production", id="strategy"),
        pytest.param({"strategies": "ablate:strip_fence"}, "ablate:", id="ablation"),
        pytest.param({"fallbacks": "of"}, "'off'", id="fallback"),
        pytest.param({"scenarios": "all,!nobody"}, "happy_path", id="exclusion"),
    ],
)
def test_a_part_of_a_filter_that_matches_nothing_is_an_error(
    axes: dict[str, Any], hint: str
) -> None:
    """A slip of the pen never makes an experiment smaller without a word."""
    with pytest.raises(ConfigError) as caught:
        build_matrix(Axes(**axes), [StateSuite()], TWO)
    assert caught.value.code == "NOTHING_SELECTED"
    assert hint in str(caught.value.hint)


def test_nothing_left_is_an_error() -> None:
    """Excluding everything that was included leaves nothing to run."""
    with pytest.raises(ConfigError, match="NOTHING_SELECTED"):
        build(scenarios="one,!o*")


def test_models_are_chosen_by_label_glob_and_tag() -> None:
    """The filter is the one for the catalog."""
    assert [item.label for item in choose(TWO, "small", "model")] == ["a"]
    assert [item.label for item in choose(TWO, "!small", "model")] == ["b"]
    assert [item.model for item in choose(LIVE, "stable,!qwen*", "model")] == [
        "google/gemini-2.5-flash:nitro",
        "anthropic/claude-opus-4.6:nitro",
        "openai/gpt-5.2:nitro",
    ]


@pytest.mark.parametrize(
    ("expression", "hint"),
    [("aa", "'a'"), ("all,!nobody", "a, b"), ("a,!small", "")],
    ids=["misspelt", "exclusion", "nothing left"],
)
def test_a_filter_of_models_that_leaves_nothing_is_an_error(expression: str, hint: str) -> None:
    """A slip of the pen never makes an experiment smaller without a word."""
    with pytest.raises(ConfigError, match="NOTHING_SELECTED") as caught:
        choose(TWO, expression, "model")
    assert hint in str(caught.value.hint)


def test_strategies_keep_their_order_and_ablations_come_last() -> None:
    """`all` is everything but guided; ablations are added by name or glob."""
    assert choose_strategies("production,raw") == ("raw", "production")
    everything = ("raw", "naive", "baseline", "production", "gated")
    assert choose_strategies("all") == everything
    assert choose_strategies("raw,guided") == ("raw", "guided")
    assert choose_strategies("all,guided") == (*everything, "guided")
    assert choose_strategies("prod,ablate:strip_code_fence,ablate:fix_empty_final") == (
        "production",
        "ablate:fix_empty_final",
        "ablate:strip_code_fence",
    )
    everything = choose_strategies("ablate:*,!ablate:max_*")
    left = [item.id for item in list_ablations() if not item.name.startswith("max_")]
    assert list(everything) == left


def test_wrong_numbers_and_repeated_models_are_errors() -> None:
    """There is at least one trial, and a label means one contender."""
    with pytest.raises(ConfigError, match="1 trial or more"):
        build(trials=0)
    with pytest.raises(ConfigError, match="twice"):
        build((TWO[0], TWO[0]))


def test_absurdly_many_trials_are_refused_before_they_are_listed() -> None:
    """They are counted, not made; a typo does not fill the memory."""
    with pytest.raises(ConfigError, match="trials are too many") as caught:
        build(trials=10**12)
    assert caught.value.code == "INVALID_OPTION"


def test_what_would_run_can_be_told_beforehand() -> None:
    """The description is plain data with counts, and says what is simulated."""
    told = build(trials=3, strategies="raw,production").describe()
    assert (told["trials"], told["cells"]) == (36, 8)
    assert [item["simulated"] for item in told["models"]] == [False, True]
    assert told["scenarios"] == [
        {"suite": "plain", "scenario": "one", "trials": 12},
        {"suite": "plain", "scenario": "two", "trials": 24},
    ]
    assert msgspec.json.decode(msgspec.json.encode(told)) == told


# estimates


def test_without_history_an_estimate_is_a_guess() -> None:
    """It says for how many trials it knows anything; simulated ones take no time."""
    guess = estimate(build())
    assert guess.known_trials == 0
    assert guess.requests == 18
    assert guess.seconds == 30.0
    assert guess.cost_usd is None
    assert estimate(build(TWO[1:])).cost_usd == 0.0


def test_history_of_the_same_kind_makes_an_estimate() -> None:
    """The closest earlier trials are taken: same cell, same scenario, same model."""
    past = [
        row(
            model="a",
            suite="plain",
            scenario="one",
            requests=requests,
            usage=Usage(1000, 100, 1100),
            elapsed_ms=4000.0,
        )
        for requests in (2, 4)
    ]
    priced = msgspec.structs.replace(TWO[0], price=parse_price("1/10"))
    matrix = build((priced,), scenarios="one", trials=10)
    found = estimate(matrix, past, concurrency=4)
    assert (found.known_trials, found.requests, found.tokens) == (10, 30, 11_000)
    assert found.seconds == pytest.approx(10.0)
    assert found.cost_usd == pytest.approx(0.02)
    other = estimate(build((priced,), scenarios="two", strategies="raw"), past)
    assert (other.known_trials, other.requests) == (2, 6)
    assert estimate(build((TWO[0],), scenarios="one"), past).cost_usd is None
