"""New verdicts on kept replies."""

from pathlib import Path

import pytest

from surecall.base.errors import Code, StoreError
from surecall.evals import EvalRun, evaluate_sync, list_runs, load_run, plan, regrade_sync

CASES = """
[[tools]]
name = "weather"
effect = "read"
result = {{ celsius = 4 }}
[tools.parameters]
type = "object"
required = ["city"]
properties = {{ city = {{ type = "string" }} }}

[[cases]]
id = "oslo"
prompt = "How warm is it in Oslo?"
[[cases.calls]]
tool = "weather"
arguments = {{ city = "Oslo" }}
[cases.checks]
text_contains = ["{word}"]
"""


def run_custom(folder: Path) -> EvalRun:
    """Try a case of a file with a simulated model."""
    (folder / "cases.toml").write_text(CASES.format(word="Done"))
    experiment = plan("zoo:steady", suites=f"custom:{folder / 'cases.toml'}", trials=2)
    return evaluate_sync(experiment, store=folder / "evals.db")


@pytest.mark.parametrize(
    "arguments",
    [
        {"models": "zoo:*", "strategies": "raw,naive,production", "scenarios": "happy_path"},
        {"models": "zoo:tag-writer,zoo:loose-arguments", "suites": "one_tool", "sample": 8},
        {"models": "faults:html_502,faults:html_200", "scenarios": "single_call"},
        {"models": "zoo:steady", "suites": "errands", "strategies": "guided", "limit": 2},
        {"models": "zoo:tag-writer", "scenarios": "single_call", "options": {"stream": True}},
    ],
    ids=["zoo", "one_tool", "faults", "guided", "streamed"],
)
def test_unchanged_cases_give_unchanged_verdicts(
    tmp_path: Path, arguments: dict[str, object]
) -> None:
    """Every trial is decided again from its replies and comes out as it was."""
    run = evaluate_sync(plan(**arguments), store=tmp_path / "evals.db")  # type: ignore[arg-type]
    found = regrade_sync(run.id, store=tmp_path / "evals.db")

    assert (found.trials, found.undecided, found.changes) == (run.info.done, (), ())
    assert found.run is not None
    assert found.run.rows() == run.rows()
    assert found.run.transcript(0) == run.transcript(0)


def test_changed_checks_change_verdicts(tmp_path: Path) -> None:
    """The new run has the new verdicts, the versions of today, and the times of then."""
    first = run_custom(tmp_path)
    (tmp_path / "cases.toml").write_text(CASES.format(word="four degrees"))
    found = regrade_sync(first.id, store=tmp_path / "evals.db", tag="again")

    assert [(each.index, each.verdict, each.ok) for each in found.changes] == [
        (0, "strict", False),
        (1, "strict", False),
    ]
    assert found.changes[0].reasons[0].code == "TEXT_WRONG"
    again = load_run("@again", store=tmp_path / "evals.db")
    assert (again.info.strict_ok, first.info.strict_ok) == (0, 2)
    assert again.manifest.suites != first.manifest.suites
    assert again.manifest.regraded_from == first.id
    old, new = first.rows()[0], again.rows()[0]
    assert (new.elapsed_ms, new.started_at, new.usage) == (
        old.elapsed_ms,
        old.started_at,
        old.usage,
    )


def test_nothing_is_written_in_a_dry_run(tmp_path: Path) -> None:
    """It only says what would change."""
    first = run_custom(tmp_path)
    (tmp_path / "cases.toml").write_text(CASES.format(word="four degrees"))
    found = regrade_sync(first.id, store=tmp_path / "evals.db", dry_run=True)

    assert (len(found.changes), found.run) == (2, None)
    assert [run.id for run in list_runs(store=tmp_path / "evals.db")] == [first.id]


def test_a_trial_that_would_go_otherwise_keeps_its_verdict(tmp_path: Path) -> None:
    """A case that is not there any more cannot be judged, nor can one that asks for more."""
    first = run_custom(tmp_path)
    changed = CASES.format(word="Done").replace('id = "oslo"', 'id = "bergen"')
    (tmp_path / "cases.toml").write_text(changed)
    gone = regrade_sync(first.id, store=tmp_path / "evals.db", dry_run=True)
    shorter = CASES.format(word="Done").replace("[[cases]]", "[[cases]]\noptions.max_turns = 1")
    (tmp_path / "cases.toml").write_text(shorter)
    otherwise = regrade_sync(first.id, store=tmp_path / "evals.db", dry_run=True)

    assert (gone.undecided, gone.changes) == ((0, 1), ())
    assert (otherwise.undecided, otherwise.changes) == ((0, 1), ())


def test_a_trial_whose_replies_had_a_secret_keeps_its_verdict(tmp_path: Path) -> None:
    """Secrets are not kept, so the call that was right cannot be made again."""
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    (tmp_path / "cases.toml").write_text(CASES.format(word="Done").replace("Oslo", secret))
    experiment = plan("zoo:steady", suites=f"custom:{tmp_path / 'cases.toml'}", trials=1)
    run = evaluate_sync(experiment, store=tmp_path / "evals.db")
    found = regrade_sync(run.id, store=tmp_path / "evals.db")

    assert run.rows()[0].strict_ok
    assert secret not in str(run.transcript(0))
    assert (found.undecided, found.changes) == ((0,), ())


def test_a_run_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """Without a store there is nothing to judge."""
    with pytest.raises(StoreError) as refused:
        regrade_sync("@latest", store=tmp_path / "none.db")
    assert refused.value.code == Code.RUN_NOT_FOUND
