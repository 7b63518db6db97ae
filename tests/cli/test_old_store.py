"""A store that an earlier surecall (commit a28da04) wrote is listed, reported and resumed.

The store has two runs: `whole`, and `half`, which was interrupted. What is compared with was
written by the same version: a report of `whole`, and one of `half` after that version had resumed
it. The loose verdicts are what they were; the strict ones of a resumed run are those of today.
"""

import csv
import gzip
import json
import platform
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from surecall.evals.records import VERDICT_VERSION
from surecall.evals.store import RunStore

from .harness import document, documents, invoke, of_type

OLD: Final = Path(__file__).with_name("old_store")
RENAMED: Final = {"seed": "original"}
MIXED: Final = "Trials were judged by different versions of the verdicts"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Unpack the store and return its path; commands see the Python that it was written with."""
    monkeypatch.setattr(platform, "python_version_tuple", lambda: ("3", "11", "7"))
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

    Scenarios are named cases now, so an interval may have become narrower around its rate.
    """
    if where.endswith(".interval"):
        held = old["low"] - 0.05 <= new["low"] < new["high"] <= old["high"] + 0.05
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


FLAGS: Final = (
    *("--models", "zoo:loose-arguments", "--scenarios", "happy_path,type_error_recovery"),
    *("--strategies", "production", "--trials", "4", "--seed", "3", "--option", "max_turns=6"),
)
"""What the unfinished run was begun with."""


@pytest.mark.parametrize("words", [("--resume", "@half"), FLAGS], ids=["by name", "by command"])
def test_an_old_unfinished_run_is_resumed(
    store: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """What is left is run, and what is kept is judged by the rules of today before it counts."""
    found = documents(invoke("eval", *words, "--store", store, "--json"))
    assert (found[0]["resumed"], found[0]["done"], found[0]["judged_again"]) == (True, 5, 5)
    assert sorted(item["index"] for item in of_type(found, "trial")) == [5, 6, 7]
    with RunStore(store) as opened:
        info = opened.info(opened.resolve("@half"))
        rows = list(opened.rows(info.id))
    assert (info.is_complete, info.original_ok, info.strict_ok) == (True, 8, 5)
    assert {row.verdict_version for row in rows} == {VERDICT_VERSION}
    assert {row.index for row in rows if not row.strict_ok} == {1, 2, 3}
    made = report("@half", store, tmp_path / "out", "json,md,html")
    scenarios = json.loads((made / "summary_by_scenario.json").read_text("utf-8"))
    before = json.loads((OLD / "half.summary_by_scenario.json").read_text("utf-8"))
    assert {name: each["ok"] for name, each in scenarios.items()} == {
        name: each["ok"] for name, each in before.items()
    }
    loose = counts((OLD / "half.summary.md").read_text("utf-8"))
    assert counts((made / "summary.md").read_text("utf-8"))[1] == loose[1] == "8/8"
    assert MIXED not in (made / "summary.md").read_text("utf-8")


def test_a_resumed_run_is_one_of_today(store: str) -> None:
    """It is found complete by its old command, and nothing is judged a second time."""
    run = documents(invoke("eval", "--resume", "@half", "--store", store, "--json"))[0]["run"]
    note, summary = documents(invoke("eval", *FLAGS, "--resume", "--store", store, "--json"))
    assert note["message"] == f"run {run} is already complete"
    assert summary["verdict_versions"] == {str(VERDICT_VERSION): 8}


def test_the_old_command_plans_what_is_left(store: str) -> None:
    """A dry run counts the kept trials and changes none of them."""
    plan = document(invoke("eval", *FLAGS, "--dry-run", "--json", "--store", store))
    with RunStore(store) as opened:
        half = opened.resolve("@half")
        versions = {row.verdict_version for row in opened.rows(half)}
    assert (plan["run"], plan["done"], versions) == (half, 5, {1})


def test_trials_without_replies_keep_their_verdicts_and_reports_say_so(
    store: str, tmp_path: Path
) -> None:
    """Two versions of verdicts are never pooled in silence."""
    database = sqlite3.connect(store)
    with closing(database), database:
        database.execute("DELETE FROM bodies")
    resumed = invoke("eval", "--resume", "@half", "--store", store)
    assert f"{MIXED}: 5 of version 1, 3 of version {VERDICT_VERSION}." in resumed.stdout
    assert "judged again" not in resumed.stderr
    made = report("@half", store, tmp_path / "out", "md,html")
    assert MIXED in (made / "summary.md").read_text("utf-8")
    assert MIXED in (made / "report.html").read_text("utf-8")
    again = documents(invoke("eval", "--resume", "@half", "--store", store, "--json"))
    assert again[-1]["verdict_versions"] == {"1": 5, str(VERDICT_VERSION): 3}


@pytest.mark.parametrize(
    ("field", "value"),
    [("$.suites.state", "1-000000000000"), ("$.catalog", "other"), ("$.python", "3.10")],
)
def test_an_old_run_of_something_else_is_not_resumed(store: str, field: str, value: str) -> None:
    """Other scenarios, another catalog or another Python are another experiment."""
    database = sqlite3.connect(store)
    with closing(database), database:
        database.execute("UPDATE runs SET manifest = json_set(manifest, ?, ?)", (field, value))
    refused = invoke("eval", "--resume", "@half", "--store", store)
    assert "RUN_MISMATCH" in refused.stderr
    assert f"{field.removeprefix('$.')}: {value} →" in refused.stderr


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
    assert [item["verdict"] for item in results] == ["undecided", "undecided"]
    assert [item["n"] for item in results] == [4, 8]
