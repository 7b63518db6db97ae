"""A store that an earlier surecall (commit a28da04) wrote is listed, reported and resumed.

The store has two runs: `whole`, and `half`, which was interrupted. What is compared with was
written by the same version: a report of `whole`, and one of `half` after that version had resumed
it.
"""

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from surecall.evals.store import RunStore

from .harness import documents, invoke, of_type

OLD: Final = Path(__file__).with_name("old_store")
RENAMED: Final = {"seed": "original"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Unpack the store and return its path."""
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((OLD / "evals.db.gz").read_bytes()))
    return str(path)


def report(name: str, store: str, out: Path, formats: str) -> Path:
    """Report a run of the store."""
    made = invoke("report", name, "--store", store, "--format", formats, "-o", str(out))
    assert made.exit_code == 0, made.output
    return out


def lacking(old: Any, new: Any, where: str = "") -> list[str]:
    """List what an old document says and a new one does not, under today's names.

    Intervals are clustered by case now, so they may only have become wider.
    """
    if where.endswith(".interval"):
        held = new["low"] <= old["low"] + 1e-9 and old["high"] <= new["high"] + 1e-9
        return [] if held else [f"{where}: {old!r} is now {new!r}"]
    if isinstance(old, dict):
        return [
            line
            for name, value in old.items()
            for line in lacking(value, new.get(RENAMED.get(name, name)), f"{where}.{name}")
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [line for at, (a, b) in pairs for line in lacking(a, b, f"{where}[{at}]")]
    return [] if old == new else [f"{where}: {old!r} is now {new!r}"]


def counts(text: str) -> list[str]:
    """Return every count that has an interval, in order."""
    return re.findall(r"(\d+/\d+) \(\d+–\d+ %\)", text)


def test_an_old_store_is_listed(store: str) -> None:
    """With its tags, its counts and what is left of the unfinished run."""
    with RunStore(store) as opened:
        runs = {tag: info for info in opened.runs() for tag in info.tags}
        whole, half = runs["whole"], runs["half"]
        bodies = [opened.body(whole.id, row.index) for row in opened.rows(whole.id)]
    assert (whole.is_complete, whole.done, whole.units) == (True, 12, 12)
    assert (whole.original_ok, whole.strict_ok) == (7, 7)
    assert (half.is_complete, half.done, half.units) == (False, 5, 8)
    assert (half.original_ok, half.strict_ok) == (5, 4)
    assert len(bodies) == 12
    assert all(body.transcript for body in bodies)


def test_an_old_run_is_reported_with_the_same_figures(store: str, tmp_path: Path) -> None:
    """Every number that was in the figures then is there now, and so is every count."""
    made = report("@whole", store, tmp_path / "out", "json,md,csv")
    figures = json.loads((made / "figures.json").read_text("utf-8"))
    assert lacking(json.loads((OLD / "whole.figures.json").read_text("utf-8")), figures) == []
    before = (OLD / "whole.summary.md").read_text("utf-8")
    assert counts((made / "summary.md").read_text("utf-8")) == counts(before)


def test_every_old_column_is_still_written(store: str, tmp_path: Path) -> None:
    """Under its old name, with the same value."""
    made = report("@whole", store, tmp_path / "out", "csv")
    with (
        (OLD / "whole.trials.csv").open(encoding="utf-8", newline="") as before,
        (made / "trials.csv").open(encoding="utf-8", newline="") as after,
    ):
        old, new = list(csv.DictReader(before)), list(csv.DictReader(after))
    assert [{name: row[name] for name in old[0]} for row in new] == old


def test_an_old_unfinished_run_is_not_finished_with_other_verdicts(store: str) -> None:
    """Its trials were judged by other rules, so they are reported, but not mixed with new ones."""
    refused = invoke("eval", "--resume", "@half", "--store", store)
    assert "RUN_MISMATCH" in refused.stderr
    assert "suites.state" in refused.stderr
    flags = (
        *("--models", "zoo:loose-arguments", "--scenarios", "happy_path,type_error_recovery"),
        *("--strategies", "production", "--trials", "4", "--seed", "3", "--option", "max_turns=6"),
    )
    found = documents(invoke("eval", *flags, "--dry-run", "--json", "--store", store))
    assert found[-1]["done"] == 0


def test_an_old_unfinished_run_is_reported(store: str, tmp_path: Path) -> None:
    """With the trials it has."""
    made = report("@half", store, tmp_path / "out", "json,md")
    summary = json.loads((made / "summary.json").read_text("utf-8"))
    assert (summary["done"], summary["units"]) == (5, 8)


def test_gates_with_old_names_read_an_old_run(store: str) -> None:
    """`seed` and `seed_regression` mean the verdict of the original experiment."""
    gates = ("--gate", "seed[scenario=happy_path]<0.5", "--gate", "seed_regression<=0")
    found = documents(invoke("diff", "@whole", "@whole", *gates, "--store", store, "--json"))
    results = of_type(found, "gates")[0]["gates"]
    assert [item["verdict"] for item in results] == ["passed", "passed"]
    assert [item["n"] for item in results] == [4, 8]
