"""`surecall eval report`: from the store to files, at any time."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.export.stored import keep_rows
from support.eval_rows import make_rows
from surecall.evals.records import Manifest
from surecall.evals.store import RunStore

from .harness import document, invoke


@pytest.fixture
def run_id(tmp_path: Path) -> Iterator[str]:
    """A finished run in the default place."""
    stored = keep_rows(tmp_path / ".surecall", make_rows(trials=1))
    stored.store.tag(stored.run_id, "baseline")
    yield stored.run_id
    stored.store.close()


def test_the_latest_run_is_written_as_a_page_by_default(run_id: str, tmp_path: Path) -> None:
    """Neither a run nor a format nor a folder need be named."""
    result = invoke("eval", "report")
    assert result.exit_code == 0
    page = tmp_path / f"surecall-{run_id}" / "report.html"
    assert result.stdout == f"surecall-{run_id}/report.html\n"
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert f"run {run_id}: 144 trials" in result.stderr


@pytest.mark.parametrize("reference", ["@latest", "@baseline", "baseline"])
def test_a_run_is_found_by_any_of_its_names(run_id: str, reference: str, tmp_path: Path) -> None:
    """Ids, tags and places in time all do."""
    result = invoke("eval", "report", reference, "--format", "md,jsonl", "-o", "out", "-q")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["out/runs.jsonl", "out/summary.md"]
    assert result.stderr == ""
    first = (tmp_path / "out" / "runs.jsonl").read_text("utf-8").partition("\n")[0]
    assert json.loads(first)["run"] == run_id


def test_json_names_every_file(run_id: str) -> None:
    """One document: the run, the folder, the files of each format."""
    result = invoke("eval", "report", run_id, "--format", "csv,junit", "-o", "out", "--json")
    told = document(result)
    assert told["type"] == "report"
    assert told["run"] == run_id
    assert (told["trials"], told["units"], told["status"]) == (144, 144, "complete")
    assert told["files"] == {
        "csv": ["out/trials.csv", "out/calls.csv"],
        "junit": ["out/junit.xml"],
    }
    assert told["left_out"] == []


def test_all_writes_every_format(run_id: str, tmp_path: Path) -> None:
    """What the page of the reference lists is there."""
    result = invoke("eval", "report", "--format", "all", "-o", "out", "--json")
    assert result.exit_code == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {
        "report.html",
        "summary.json",
        "summary_by_scenario.json",
        "summary_by_scenario_and_strategy.json",
        "figures.json",
        "runs",
        "runs.jsonl",
        "trials.csv",
        "calls.csv",
        "summary.md",
        "junit.xml",
    }
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 144


def test_parquet_without_duckdb_says_what_to_install(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for by name it is an error; as a part of all it is left out, and told."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "duckdb" else found(name)
    )
    refused = invoke("eval", "report", run_id, "--format", "parquet,csv", "-o", "out", "--json")
    assert refused.exit_code == 4
    told = document(refused)
    assert (told["type"], told["code"]) == ("error", "EXTRA_MISSING")
    assert "surecall[analytics]" in told["hint"]
    assert not (tmp_path / "out").exists()
    everything = invoke("eval", "report", run_id, "--format", "all", "-o", "out")
    assert everything.exit_code == 0
    assert "parquet left out" in everything.stderr
    assert "pip install 'surecall[analytics]'" in everything.stderr
    assert "parquet" not in everything.stdout


def test_an_unfinished_run_is_written_as_far_as_it_is(tmp_path: Path) -> None:
    """The words say how far that is."""
    rows = make_rows(trials=1)[:20]
    stored = keep_rows(tmp_path, rows, units=144, status="interrupted")
    stored.store.close()
    result = invoke("eval", "report", "--format", "jsonl", "--store", "evals.db", "-o", "out")
    assert result.exit_code == 0
    assert "20 of 144 trials, not finished" in result.stderr
    assert len((tmp_path / "out" / "runs.jsonl").read_bytes().splitlines()) == 20


def test_without_a_store_nothing_is_made(tmp_path: Path) -> None:
    """Looking for runs must not leave an empty store behind."""
    result = invoke("eval", "report", "--json")
    assert result.exit_code == 4
    assert document(result)["code"] == "RUN_NOT_FOUND"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["nosuch"], "RUN_NOT_FOUND", id="run"),
        pytest.param(["--format", "pdf"], "INVALID_OPTION", id="format"),
        pytest.param(["--format", ""], "INVALID_OPTION", id="no format"),
        pytest.param(["--format", "csv", "-o", "taken"], "INVALID_OPTION", id="folder"),
    ],
)
@pytest.mark.usefixtures("run_id")
def test_mistakes_have_codes(arguments: list[str], code: str, tmp_path: Path) -> None:
    """Each ends with 4 and writes nothing."""
    (tmp_path / "taken").write_text("a file")
    before = sorted(tmp_path.iterdir())
    result = invoke("eval", "report", *arguments, "--json")
    assert result.exit_code == 4
    assert document(result)["code"] == code
    assert sorted(tmp_path.iterdir()) == before


def test_the_store_is_where_the_settings_say(tmp_path: Path) -> None:
    """The setting `evals_dir` is used when no file is named."""
    place = tmp_path / "elsewhere"
    with RunStore(place / "evals.db") as store:
        run_id = store.create(Manifest(units=1))
    result = invoke("eval", "report", "--format", "md", "--json", SURECALL_EVALS_DIR=str(place))
    assert document(result)["run"] == run_id
