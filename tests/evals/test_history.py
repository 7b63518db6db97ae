"""Across runs, and across models."""

from pathlib import Path

import pytest

from surecall.base.errors import ConfigError
from surecall.evals import compare_case, evaluate_sync, find_trend, plan, regrade_sync


def test_runs_of_the_same_trials_are_a_trend(tmp_path: Path) -> None:
    """The oldest first, one point for each row of the matrix; other experiments are left out."""
    store = tmp_path / "evals.db"
    experiment = plan("zoo:steady", scenarios="single_call", strategies="raw,production")
    first = evaluate_sync(experiment, store=store)
    evaluate_sync(plan("zoo:steady", scenarios="single_call", seed=7), store=store)
    second = evaluate_sync(experiment, store=store, new=True)
    third = regrade_sync(second.id, store=store).run
    points = find_trend(first.id, store=store)

    assert third is not None
    assert [(point.run, point.task.strategy) for point in points] == [
        (run.id, strategy) for run in (first, second, third) for strategy in ("raw", "production")
    ]
    assert [point.regraded_from for point in points[-2:]] == [second.id] * 2
    assert all((point.strict.k, point.simulated) == (1, "all") for point in points)


def test_replies_to_one_case_are_side_by_side(tmp_path: Path) -> None:
    """Every model under every strategy, with its calls and its answer."""
    store = tmp_path / "evals.db"
    models = "zoo:steady,zoo:storyteller"
    experiment = plan(models, scenarios="single_call,happy_path", strategies="raw,production")
    evaluate_sync(experiment, store=store)
    replies = compare_case("single_call", store=store)

    assert [(reply.task.model, reply.task.strategy) for reply in replies] == [
        (model, strategy) for model in models.split(",") for strategy in ("raw", "production")
    ]
    assert replies[0].strict_ok
    assert replies[0].calls[0].startswith("save_word({")
    assert replies[0].text == "Done."
    assert not replies[2].strict_ok
    assert replies[2].reasons


def test_a_case_that_a_run_does_not_have_is_an_error(tmp_path: Path) -> None:
    """With the one that was probably meant."""
    evaluate_sync(plan("zoo:steady", scenarios="single_call"), store=tmp_path / "evals.db")
    with pytest.raises(ConfigError, match=r"has no case 'single_cal'.*single_call"):
        compare_case("single_cal", store=tmp_path / "evals.db")
