"""What a strategy adds over the naive rescue, where it is worse, and what it costs."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner
from msgspec.structs import replace

from surecall.base.records import Usage
from surecall.cli import cli
from surecall.evals.export.markdown import render_markdown
from surecall.evals.gains import choose_base, find_gain, list_gains, list_helped_gains
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.records import Manifest, TrialRow
from surecall.evals.report import render_html
from surecall.evals.store import RunStore

from .trial_rows import series

SPENT: dict[str, Any] = {"requests": 1, "usage": Usage(80, 20), "elapsed_ms": 500.0}
MORE: dict[str, Any] = {"requests": 3, "usage": Usage(700, 50), "elapsed_ms": 2500.0}


def make_rows() -> list[TrialRow]:
    """Make a run in which production gains one scenario and loses another."""
    needless: dict[str, Any] = {"scenario": "no_call_needed", "reason": "NEEDLESS_CALL"}
    return [
        *series("-" * 10, strategy="raw", scenario="single_call", **SPENT),
        *series("-" * 9 + "+", strategy="naive", scenario="single_call", **SPENT),
        *series("+" * 10, strategy="production", scenario="single_call", **MORE),
        *series("++++", strategy="raw", scenario="no_call_needed", **SPENT),
        *series("++++", strategy="naive", scenario="no_call_needed", **SPENT),
        *series("---+", strategy="production", **needless, **MORE),
    ]


def test_the_line_says_what_is_gained_and_lost() -> None:
    """Rates, points with their interval, and the trials on both sides."""
    gain = find_gain(tally_rows(make_rows()), "naive", "production")
    assert gain is not None
    assert (gain.contest.counts.only_b, gain.contest.counts.only_a) == (9, 3)
    assert gain.sentence.startswith(
        "production against naive: 36\u202f% → 79\u202f% right, +43 points"
    )
    assert gain.sentence.endswith(
        "; of 14 trials 9 were gained and 3 lost; better in single_call 1/10 → 10/10; "
        "over all undecided: 14 pairs cannot tell this from chance; about 36 would; "
        "may be chance: no_call_needed 4/4 → 1/4."
    )


def test_the_cost_is_that_of_one_trial() -> None:
    """Requests, tokens and time of both sides."""
    (_, gain) = list_gains(tally_rows(make_rows()), "production")
    assert gain.cost == (
        "A trial with production takes 3.0 requests, 750 tokens and 2.5\u202fs; "
        "with naive it takes 1.0, 100 and 500\u202fms."
    )


def test_where_it_is_better_and_worse_is_said() -> None:
    """The scenario, both counts, and the meaning of the commonest reason."""
    (gain,) = list_helped_gains(tally_rows(make_rows()))
    assert gain.setback == (
        "production is worse in no_call_needed: 1 of 4 right instead of 4, "
        "most often because a tool was called, though none was needed."
    )
    assert gain.advance == "production is better in single_call: 10 of 10 right instead of 1."
    assert gain.remarks == (gain.advance, gain.setback, gain.cost)
    better = [row for row in make_rows() if row.cell.scenario == "single_call"]
    (gain,) = list_helped_gains(tally_rows(better))
    assert gain.setback == ""


def test_strategies_are_held_to_the_naive_rescue_if_it_ran() -> None:
    """Else to raw, else to the first there is; without either nothing is said of gains."""
    assert choose_base(["raw", "naive", "production"]) == "naive"
    assert choose_base(["raw", "production"]) == "raw"
    assert choose_base(["baseline", "production"]) == "baseline"
    helped = [row for row in make_rows() if row.cell.strategy == "production"]
    assert list_helped_gains(tally_rows(helped)) == ()
    assert find_gain(tally_rows(make_rows()), "raw", "guided") is None


def test_every_surface_shows_the_line(tmp_path: Path) -> None:
    """The page, `recommend`, `runs show` and Markdown say the same of the same run."""
    rows = [replace(row, index=index) for index, row in enumerate(make_rows())]
    with RunStore(tmp_path / "evals.db") as store:
        run = store.create(Manifest(units=len(rows), units_hash="", axes={}))
        store.add(run, [(row, None) for row in rows])
        store.finish(run, "complete")
        info, page = store.info(run), render_html(store, store.info(run)).decode()
    gain = find_gain(tally_rows(rows), "naive", "production")
    assert gain is not None
    for words in (("eval", "recommend"), ("eval", "runs", "show")):
        found = CliRunner().invoke(cli, [*words, "--store", str(tmp_path / "evals.db")])
        assert gain.sentence in found.output
        assert gain.setback in found.output
    assert gain.sentence.removeprefix("production") in page
    assert gain.cost in page
    assert "- `production` against `naive`: +42.9 points" in render_markdown(tally_rows(rows), info)
