"""Which model a run speaks for: every rule of the sentence, and the same totals everywhere."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from support.eval_rows import make_rows
from surecall.cli import cli
from surecall.evals import load_run
from surecall.evals.export.markdown import render_markdown
from surecall.evals.metrics import summarize
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.recommendation import Recommendation, dollars, duration, percent, recommend
from surecall.evals.records import Cell, Manifest, Reason, TrialRow
from surecall.evals.standings import rank
from surecall.evals.store import RunStore

CASES = 10
REPEATS = 4


def trials(
    model: str,
    right: Sequence[int],
    *,
    cost: float | None = None,
    ms: float = 1000.0,
    simulated: bool = False,
) -> list[TrialRow]:
    """Make the trials of a model: of each case, how many of its repeats are right."""
    return [
        TrialRow(
            index=0,
            cell=Cell(model=model, strategy="production", scenario=f"case_{number}"),
            trial=trial,
            original_ok=trial <= k,
            strict_ok=trial <= k,
            simulated=simulated,
            outcome="called",
            elapsed_ms=ms,
            cost_usd=cost,
        )
        for number, k in enumerate(right)
        for trial in range(1, REPEATS + 1)
    ]


def answer(*models: list[TrialRow], max_errors: str = "2%") -> Recommendation:
    """Return what is said about these trials together."""
    rows = [row for found in models for row in found]
    tallies = tally_rows(replace(row, index=index) for index, row in enumerate(rows))
    return recommend(tallies, max_errors=max_errors)


BEST = trials("best", [4] * 9 + [3], cost=0.004, ms=2100.0)
NEAR = trials("near", [4] * 9 + [2], cost=0.001, ms=900.0)
FAR = trials("far", [1] * 10)


def test_the_best_is_named_with_rate_interval_time_and_cost() -> None:
    """39 of 40 is 98 %; the second line says who cannot be told from it, and who is cheaper."""
    found = answer(FAR, NEAR, BEST)
    assert found.chosen == "best"
    assert found.sentence == (
        "Choose best with production: 98\u202f% [87–100] right, p95 2.1\u202fs, "
        "$0.40 per 100 tasks."
    )
    assert found.remark.startswith(
        "near cannot be told from it at n = 40. near is faster (p95 900\u202fms) and costs "
        "25\u202f% of it ($0.10): take it if a rate up to "
    )
    assert [one.name for one in found.standings.ranked] == ["best", "near", "far"]
    assert [one.places for one in found.standings.ranked] == [(1, 2), (1, 2), (3, 3)]


def test_a_runner_up_that_is_told_apart_is_named_as_such() -> None:
    """Nobody else is near, so the second line says how far the next one is."""
    found = answer(BEST, FAR)
    assert found.chosen == "best"
    assert found.remark.startswith("far is next: 25\u202f%, ")
    assert found.remark.endswith(" points lower.")


def under(strategy: str, rows: list[TrialRow]) -> list[TrialRow]:
    """Return the same trials under another strategy."""
    return [replace(row, cell=replace(row.cell, strategy=strategy)) for row in rows]


def test_a_strategy_that_is_surely_better_is_named_with_the_price_of_the_others() -> None:
    """Production is looked at first only where no other strategy does better beyond chance."""
    better = under("gated", trials("m", [4] * 9 + [3], cost=0.004, ms=2100.0))
    found = answer(trials("m", [1] * 10, cost=0.001, ms=900.0), better)
    assert (found.strategy, found.chosen) == ("gated", "m")
    assert found.sentence.startswith("m with gated is right in 98\u202f%")
    assert found.remark == "With production: 25\u202f%, p95 900\u202fms, $0.10 per 100 tasks."


def test_a_strategy_that_may_be_better_by_chance_is_only_shown() -> None:
    """One trial more of forty tells nothing."""
    found = answer(NEAR, under("gated", trials("near", [4] * 9 + [3])))
    assert found.strategy == "production"
    assert "With gated: 98\u202f%" in found.remark


def test_too_few_trials_name_nobody() -> None:
    """Nineteen trials are not enough."""
    few = [row for row in BEST if row.trial == 1], [row for row in FAR if row.trial == 1]
    found = answer(*few)
    assert found.chosen is None
    assert found.sentence.startswith("No choice yet. With n = 10 a model")


def test_too_many_that_are_alike_name_nobody() -> None:
    """Four models of one rate cannot be told apart."""
    found = answer(*(trials(name, [4] * 5 + [3] * 5) for name in "abcd"))
    assert found.chosen is None
    assert found.sentence == ("No choice yet. At n = 40 the first 4 models cannot be told apart.")


def test_simulated_models_are_never_named() -> None:
    """Neither beside others, nor alone."""
    fake = trials("zoo:steady", [4] * 10, simulated=True)
    assert answer(fake, BEST, FAR).chosen == "best"
    alone = answer(fake)
    assert alone.chosen is None
    assert alone.sentence.startswith("All models are simulated")
    assert [one.places for one in alone.standings.simulated] == [None]


def test_an_invented_call_rules_a_model_out() -> None:
    """However often it was right, it is never named, and comes last."""
    liar = [replace(row, fabrications=int(row.trial == 1)) for row in trials("liar", [4] * 10)]
    found = answer(liar, BEST, FAR)
    assert found.chosen == "best"
    assert found.standings.ranked[-1].name == "liar"
    assert "Not considered, with trials missing or invented calls: liar." in found.why


def test_a_model_without_all_its_trials_is_ruled_out() -> None:
    """What is missing might have failed."""
    found = answer(trials("quick", [4] * 10)[:20], BEST, FAR)
    assert found.chosen == "best"


def test_one_model_is_described_and_not_ranked() -> None:
    """There is nobody to compare it with."""
    found = answer(BEST)
    assert found.sentence.startswith(
        "best with production is right in 98\u202f% [87–100] of 40 trials, p95 2.1"
    )
    assert found.standings.ranked[0].places is None


def test_endpoint_errors_count_as_wrong() -> None:
    """The rate without them is there as well."""
    failed = [
        replace(row, outcome="error", strict_ok=False) if row.trial == 4 else row for row in BEST
    ]
    found = answer(failed, FAR, max_errors="50%")
    first = found.standings.ranked[0]
    assert (first.rate.k, first.rate.n, first.group.errors) == (30, 40, 10)
    assert (first.rate_answered.k, first.rate_answered.n) == (30, 30)
    assert "10 of all trials met an endpoint error, which counts as wrong." in found.why
    assert found.chosen == "best"


def test_too_many_endpoint_errors_name_nobody() -> None:
    """A model that errs is not named, and neither is one that nobody could compare it with."""
    lost = [
        replace(row, outcome="error", code="RATE_LIMIT", strict_ok=False) if n >= 4 else row
        for n, row in enumerate(trials("lost", [4] * 10))
    ]
    good = trials("good", [4] * 8 + [0] * 2)
    found = answer(lost, good)
    assert found.chosen is None
    assert found.sentence == (
        "No choice. lost: 36 of 40 trials ended with an endpoint's error (RATE_LIMIT), "
        "and <= 2 % is the limit."
    )
    assert answer(lost, good, max_errors="100%").chosen == "good"


def test_a_model_whose_requests_are_refused_is_not_named() -> None:
    """A refusal is the model's failure in that trial, also where it runs alone."""
    refused = [
        replace(row, outcome="refused", code="BAD_REQUEST", strict_ok=False) if n >= 2 else row
        for n, row in enumerate(trials("alone", [4] * 10))
    ]
    found = answer(refused)
    first = found.standings.ranked[0]
    assert (found.chosen, first.rate.k, first.rate.n, first.group.errors) == (None, 2, 40, 0)
    assert "38 of 40 trials ended with an endpoint's error (BAD_REQUEST)" in found.sentence


def test_requests_that_are_refused_bar_no_other_model() -> None:
    """They are failures of the model that they were meant for, so there is enough evidence."""
    refused = [
        replace(row, outcome="refused", code="BAD_REQUEST", strict_ok=False) if n >= 4 else row
        for n, row in enumerate(trials("refused", [4] * 10))
    ]
    found = answer(refused, trials("good", [4] * 8 + [0] * 2))
    last = found.standings.ranked[-1]
    assert (found.chosen, last.name, last.rate.k, last.rate.n) == ("good", "refused", 4, 40)
    assert last.rate_answered == last.rate
    assert "36 of all requests were refused, which counts as wrong." in found.why


def test_a_model_that_mostly_errs_is_never_named_over_one_that_answers() -> None:
    """20 of 200 with 180 errors, against 160 of 200: nobody, or else the one that answers."""
    rows = {name: trials(name, [4] * 50) for name in ("errs", "works")}
    errs = [
        replace(row, outcome="error", code="RATE_LIMIT", strict_ok=False) if n >= 20 else row
        for n, row in enumerate(rows["errs"])
    ]
    works = [replace(row, strict_ok=n < 160) for n, row in enumerate(rows["works"])]
    assert answer(errs, works).chosen is None
    assert answer(errs, works, max_errors="100%").chosen == "works"


def test_ties_go_to_fewer_false_calls_then_to_the_cheaper() -> None:
    """Equal rates are ordered by what else they cost."""
    careless = [
        replace(row, strict_reasons=(Reason("NEEDLESS_CALL"),)) if not row.strict_ok else row
        for row in trials("careless", [3] * 10, cost=0.001)
    ]
    dear, cheap = trials("dear", [3] * 10, cost=0.01), trials("cheap", [3] * 10, cost=0.002)
    ranked = rank(tally_rows([*careless, *dear, *cheap]), "production").ranked
    assert [one.name for one in ranked] == ["cheap", "dear", "careless"]
    assert [one.group.false_calls.k for one in ranked] == [0, 0, 10]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (percent(0.961), "96\u202f%"),
        (percent(0.9986), "99.9\u202f%"),
        (percent(None), "–"),
        (dollars(None), "–"),
        (dollars(0.4), "$0.40"),
        (dollars(0.0123), "$0.012"),
        (duration(None), "–"),
        (duration(None, 60_000), ">\u202f60\u202fs"),
        (duration(0.2), "<\u202f1\u202fms"),
        (duration(2140), "2.1\u202fs"),
    ],
)
def test_figures_are_written_as_people_read_them(shown: str, expected: str) -> None:
    """Two digits that count, and a dash for what is not known."""
    assert shown == expected


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """Keep a run with controls and an endpoint error."""
    rows = make_rows(trials=3)
    rows[0] = replace(rows[0], outcome="error", strict_ok=False, original_ok=False)
    path = tmp_path / "evals.db"
    with RunStore(path) as store:
        run = store.create(Manifest(units=len(rows)))
        store.add(run, [(row, None) for row in rows])
    return path


def invoke(*words: str) -> str:
    """Run the command line and return what it wrote."""
    done = CliRunner().invoke(cli, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_says_what_python_says(store_path: Path) -> None:
    """Sentence and reasons, as text and as data."""
    found = load_run(store=store_path).recommend()
    text = invoke("eval", "recommend", "--store", str(store_path))
    assert text.startswith(found.sentence)
    data = json.loads(invoke("eval", "recommend", "--json", "--store", str(store_path)))
    assert (data["chosen"], data["sentence"]) == (found.chosen, found.sentence)
    assert [one["name"] for one in data["models"]] == [one.name for one in found.standings.everyone]


def test_a_strategy_without_trials_is_an_error(store_path: Path) -> None:
    """The strategies of the run are named; nothing is said about a model."""
    words = ("eval", "recommend", "--store", str(store_path), "--strategy", "nope", "--json")
    done = CliRunner().invoke(cli, list(words))
    error = json.loads(done.stdout)
    assert (done.exit_code, error["code"]) == (5, "NOTHING_SELECTED")
    strategies = dict.fromkeys(row.cell.strategy for row in make_rows(trials=3))
    assert all(name in error["hint"] for name in strategies)
    invoke("eval", "recommend", "--store", str(store_path), "--strategy", next(iter(strategies)))


def test_without_trials_every_strategy_waits() -> None:
    """A run that has not begun yet may still get them."""
    assert recommend(tally_rows([]), strategy="raw").chosen is None


def test_every_surface_has_the_same_totals(store_path: Path) -> None:
    """Terminal, list of runs, Markdown and the order of merit count the same trials."""
    run = load_run(store=store_path)
    summary = summarize(run.rows())
    of_all = summary.overall.strict_of_all  # where an error counts as wrong
    total = f"{of_all.k}/{of_all.n}"
    assert summary.overall.errors == of_all.n - summary.overall.strict.n == 1
    assert total in invoke("eval", "runs", "list", "--store", str(store_path))
    shown = json.loads(invoke("eval", "runs", "show", "--json", "--store", str(store_path)))
    assert shown["overall"]["strict"]["k"] == summary.overall.strict.k
    assert shown["overall"]["strict"]["n"] == summary.overall.strict.n
    assert f"### Tool calls: {total} " in render_markdown(tally_rows(run.rows()), run.info)
    counted = [
        (one.rate.k, one.rate.n)
        for strategy in ("raw", "baseline", "production")
        for one in rank(tally_rows(run.rows()), strategy).everyone
    ]
    assert (sum(k for k, _ in counted), sum(n for _, n in counted)) == (of_all.k, of_all.n)
