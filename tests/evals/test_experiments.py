"""Evals from Python: what the command line does, without it."""

import asyncio
from pathlib import Path

import pytest

import surecall.evals
from surecall.base.errors import Code, ConfigError, StoreError
from surecall.evals import evaluate, evaluate_sync, list_runs, load_run, plan

MODELS = "zoo:tag-writer,zoo:loose-arguments"


def small(**arguments: object) -> surecall.evals.Experiment:
    """Plan two trials of two simulated models."""
    return plan(MODELS, scenarios="single_call", strategies="production", trials=2, **arguments)  # type: ignore[arg-type]


def test_an_experiment_is_run_and_summed_up(tmp_path: Path) -> None:
    """Every planned trial is a row, and the figures count them."""
    run = evaluate_sync(small(), store=tmp_path / "evals.db")
    assert (run.info.done, run.info.units, run.info.is_complete) == (4, 4, True)
    assert {row.cell.model for row in run.rows()} == set(MODELS.split(","))
    assert run.summary().overall.n == 4
    assert run.transcript(0) is not None


def test_finished_trials_are_not_repeated(tmp_path: Path) -> None:
    """The run of a complete experiment is returned as it is, and a new one on request."""
    store = tmp_path / "evals.db"
    with pytest.raises(StoreError) as refused:
        evaluate_sync(small(), store=store, resume="@latest")
    assert refused.value.code == Code.RUN_NOT_FOUND
    first = evaluate_sync(small(), store=store, tag="baseline")
    again = evaluate_sync(small(), store=store, resume="@baseline")
    fresh = evaluate_sync(small(), store=store, new=True)
    assert again.id == first.id
    assert fresh.id != first.id
    assert [run.id for run in list_runs(store=store)] == [fresh.id, first.id]


def test_runs_are_loaded_compared_checked_and_exported(tmp_path: Path) -> None:
    """All that is said of a run afterwards comes from its store."""
    store = tmp_path / "evals.db"
    first = evaluate_sync(small(), store=store, tag="baseline")
    second = evaluate_sync(small(seed=1), store=store)
    assert load_run(store=store).id == second.id
    assert load_run("@baseline", store=store).manifest == first.manifest
    assert second.compare(first).overall.counts.n == 4
    assert second.check("strict >= 0").ok
    assert not second.check("strict > 1").ok
    files = second.export(tmp_path / "out", ["md"]).files["md"]
    assert all(path.exists() for path in files)


async def test_progress_is_reported_and_an_experiment_can_be_stopped(tmp_path: Path) -> None:
    """Events arrive while it runs; a stop keeps what is finished, and the rest is run later."""
    from surecall.evals.runner import Stop, TrialFinished

    stop, seen = Stop(), list[object]()

    def note(event: object) -> None:
        seen.append(event)
        if isinstance(event, TrialFinished):
            stop.ask()

    experiment = plan("zoo:tag-writer", scenarios="single_call", trials=200, concurrency=1)
    store = tmp_path / "evals.db"
    stopped = await evaluate(experiment, store=store, on_progress=note, stop=stop)
    assert 0 < stopped.info.done < 200
    resumed = await evaluate(experiment, store=store)
    assert (resumed.id, resumed.info.done) == (stopped.id, 200)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"models": "zoo:nobody"}, Code.UNKNOWN_MODEL),
        ({"models": "zoo:tag-writer", "scenarios": "nothing"}, Code.NOTHING_SELECTED),
        ({"models": "zoo:tag-writer", "prices": {"zoo:tag-writer": "free"}}, Code.INVALID_OPTION),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_runs(
    arguments: dict[str, object], code: Code
) -> None:
    """A plan with an unknown name is an error."""
    with pytest.raises(ConfigError) as refused:
        plan(**arguments)  # type: ignore[arg-type]
    assert refused.value.code == code


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    """A typo in the engine is an error and begins no run."""
    with pytest.raises(ConfigError):
        asyncio.run(evaluate(small(), store=tmp_path / "evals.db", engine="cluster"))
