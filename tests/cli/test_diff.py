"""`surecall eval diff`: two kept runs, in words, as JSON and as a page."""

from pathlib import Path

import msgspec
import pytest

from surecall.cli import ExitCode
from surecall.evals.records import Cell, Manifest, Reason, TrialBody, TrialRow
from surecall.evals.store import RunStore

from .harness import document, documents, invoke

STORE = Path(".surecall/evals.db")


def trial(index: int, verdict: str, **facts: object) -> TrialRow:
    """Return trial number `index`; `+` is right."""
    ok = verdict == "+"
    reasons = () if ok else (Reason("DRAFT_WRONG", "draft is not as asked"),)
    row = TrialRow(
        index=index,
        cell=Cell(model="m", scenario="happy_path"),
        trial=index + 1,
        original_ok=ok,
        strict_ok=ok,
        strict_reasons=reasons,
        outcome="called",
    )
    return msgspec.structs.replace(row, **facts)


def keep(
    verdicts: str, *, tag: str = "", units: int = 0, body: bool = False, **facts: object
) -> str:
    """Keep a run with these verdicts and return its id."""
    rows = [trial(index, verdict, **facts) for index, verdict in enumerate(verdicts)]
    manifest = Manifest(units=units or len(rows), package=f"0.{len(tag)}")
    with RunStore(STORE) as store:
        run_id = store.create(manifest, now_s=1_800_000_000 + len(store.runs()))
        turn = {"raw": {"content": "Sorry."}}
        kept = TrialBody(index=0, transcript=(turn,))
        store.add(
            run_id,
            [
                (row, msgspec.structs.replace(kept, index=row.index) if body else None)
                for row in rows
            ],
        )
        store.finish(run_id, "complete")
        if tag:
            store.tag(run_id, tag)
    return run_id


def lines_of(text: str) -> list[str]:
    """Return the lines with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_comparison_in_words() -> None:
    """Settings, rates with interval and test, then the trials that changed."""
    first, second = keep("+" * 40), keep("+" * 30 + "-" * 10, tag="x")
    result = invoke("eval", "diff", first, second, "--limit", "2", COLUMNS="120")
    assert result.exit_code == 0, result.stderr
    lines = lines_of(result.stdout)
    assert lines[0] == f"{first} → {second}"
    assert "package: 0.0 → 0.1" in lines
    assert "all 40/40 30/40 -25.0 [-40.2, -11.1] 0/10 0.00195 worse" in lines
    assert "Newly failing: 10" in lines
    assert "✗ m / default / production / best_effort / happy_path, trial 31" in lines
    assert "#30 → #30 ok → behaviour/DRAFT_WRONG: draft is not as asked" in lines
    assert lines[-1] == "and 8 more; raise --limit to see them"


def test_the_latest_run_is_compared_when_none_is_named() -> None:
    """The second name may be left out, the first may be a tag."""
    keep("++", tag="baseline")
    second = keep("++")
    lines = lines_of(invoke("eval", "diff", "@baseline").stdout)
    assert lines[0].startswith("@baseline (")
    assert lines[0].endswith(f"→ @latest ({second})")


def test_an_unfinished_run_is_pointed_out() -> None:
    """Missing trials are no failures, but the reader should know."""
    keep("++"), keep("+", units=2)
    result = invoke("eval", "diff", "@latest~1", COLUMNS="120")
    assert "is not complete: 1 of 2 trials." in result.stdout
    assert "without a partner: 1 trials of A, 0 of B" in result.stdout


def test_a_comparison_as_json() -> None:
    """One document with every pair and figure."""
    keep("++-"), keep("+-+")
    found = document(invoke("eval", "diff", "@latest~1", "--json"))
    assert found["type"] == "diff"
    assert (found["newly_failing_count"], found["newly_passing_count"]) == (1, 1)
    assert found["overall"]["counts"] == {"both": 1, "only_a": 1, "only_b": 1, "neither": 0}
    assert found["pairs"][0]["b"]["failure"] == {
        "layer": "behaviour",
        "code": "DRAFT_WRONG",
        "detail": "called",
    }


def test_a_supported_regression_exits_with_1() -> None:
    """The gate is measured from A without naming it."""
    keep("+" * 40), keep("+" * 30 + "-" * 10)
    result = invoke("eval", "diff", "@latest~1", "--gate", "regression<=0.02", COLUMNS="140")
    assert result.exit_code == 1
    assert "✗ failed" in result.stdout
    assert "✗ 1 of 1 gates failed" in result.stdout


def test_a_drop_that_cannot_be_told_from_chance_exits_with_0() -> None:
    """It says so, also in JSON."""
    keep("+" * 10), keep("+" * 9 + "-")
    result = invoke("eval", "diff", "@latest~1", "--gate", "regression<=0.02", "--json")
    assert result.exit_code == 0
    gates = documents(result)[1]
    assert (gates["type"], gates["ok"]) == ("gates", True)
    assert gates["gates"][0]["verdict"] == "undecided"
    assert "cannot tell" in gates["gates"][0]["note"]


def test_endpoint_errors_of_a_later_run_fail_every_gate_above_a_limit_of_ones_own() -> None:
    """A tenth is too much by default; `--max-errors` is a gate itself and moves the limit."""
    keep("+" * 10, tag="first")
    with RunStore(STORE) as store:
        rows = [trial(n, "+") for n in range(9)]
        rows.append(trial(9, "-", outcome="error", code="RATE_LIMIT"))
        run_id = store.create(Manifest(units=10), now_s=1_800_000_001)
        store.add(run_id, [(row, None) for row in rows])
        store.finish(run_id, "complete")
    gate = ("eval", "diff", "@first", "--gate", "strict>=0.5", "--json")
    codes = {
        limit: invoke(*gate, *(("--max-errors", limit) if limit else ())).exit_code
        for limit in ("", "10%", "1", "0")
    }
    assert codes == {"": 1, "10%": 0, "1": 0, "0": 1}


def test_a_page_is_written_with_both_transcripts() -> None:
    """What was kept of the trials stands side by side."""
    keep("++", body=True), keep("+-", body=True)
    result = invoke("eval", "diff", "@latest~1", "--html", "diff.html")
    assert result.exit_code == 0
    assert "written: diff.html" in result.stderr
    text = Path("diff.html").read_text("utf-8")
    assert text.count("Sorry.") == 2
    assert "Newly failing: 1" in text


def test_a_page_needs_no_transcripts() -> None:
    """Where only rows were kept, rows are shown."""
    keep("+"), keep("-")
    assert invoke("eval", "diff", "@latest~1", "--html", "diff.html").exit_code == 0
    assert "Newly failing: 1" in Path("diff.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(("@latest~1", "--gate", "strickt>=1"), "INVALID_GATE", id="gate"),
        pytest.param(("@latest~1", "--across", "modle"), "INVALID_OPTION", id="axis"),
        pytest.param(("@latest~1", "--html", "no/such/folder.html"), "INVALID_OPTION", id="page"),
    ],
)
def test_what_is_wrong_in_the_command_is_told(words: tuple[str, ...], code: str) -> None:
    """Exit code 4 and the code, with a way out."""
    keep("+"), keep("+")
    result = invoke("eval", "diff", *words)
    assert result.exit_code == ExitCode.USAGE
    assert code in result.stderr
    assert "fix" in result.stderr


def test_a_run_that_is_not_there_is_told() -> None:
    """The code is RUN_NOT_FOUND."""
    assert "RUN_NOT_FOUND" in invoke("eval", "diff", "@nothing").stderr
    assert not STORE.exists()
    keep("+")
    assert "RUN_NOT_FOUND" in invoke("eval", "diff", "@nothing").stderr


def test_simulated_results_are_labelled() -> None:
    """Nobody takes them for those of a real model."""
    keep("+", simulated=True), keep("+", simulated=True)
    assert "all (simulated)" in invoke("eval", "diff", "@latest~1").stdout


def test_a_gate_pairs_trials_across_the_same_axes() -> None:
    """A regression is measured on the pairs that are shown."""
    for strategy, verdicts in (("raw", "+" * 20), ("production", "-" * 20)):
        cell = Cell(model="m", scenario="happy_path", strategy=strategy)
        keep(verdicts, tag=strategy, cell=cell)
    words = ("eval", "diff", "raw", "production", "--across", "strategy", "--json")
    result = invoke(*words, "--gate", "regression[strategy=production]<=0.02")
    (gate,) = documents(result)[-1]["gates"]
    assert (gate["verdict"], gate["n"], gate["observed"]) == ("failed", 20, 1.0)
    assert result.exit_code == 1


def test_trials_that_are_listed_say_that_they_are_simulated() -> None:
    """At a terminal and on the page, as the rates do."""
    keep("++", tag="before", simulated=True)
    keep("+-", tag="after", simulated=True)
    result = invoke("eval", "diff", "before", "after", "--html", "diff.html")
    title = "happy_path, trial 2 (simulated)"
    assert title in result.stdout
    assert title in Path("diff.html").read_text()
