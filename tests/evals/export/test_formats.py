"""Choosing formats, and what holds for all of them."""

import hashlib
import importlib.util
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from evals.trial_rows import call, row, series
from support.eval_rows import make_rows
from surecall.base.errors import ConfigError, StoreError
from surecall.evals.export import (
    FORMATS,
    export_run,
    parse_formats,
    write_csv,
    write_json,
    write_jsonl,
    write_junit,
    write_markdown,
)
from surecall.evals.gates import check_stored
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.records import TrialRow

from .stored import Stored, keep_rows, no_body

OWN = {"json", "csv", "jsonl", "md", "junit"}


def digests(folder: Path) -> dict[str, str]:
    """Return a hash of every file in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_formats_are_named_with_commas() -> None:
    """Spaces, case and repetition do not matter."""
    assert parse_formats("html, MD,html,") == ("html", "md")
    assert parse_formats("all") == ("all",)


@pytest.mark.parametrize(
    ("text", "hint"), [("htm", "Did you mean 'html'"), ("", "Choose from html"), (",", "Choose")]
)
def test_unknown_formats_are_refused(text: str, hint: str) -> None:
    """The error suggests what may have been meant."""
    with pytest.raises(ConfigError) as caught:
        parse_formats(text)
    assert caught.value.code == "INVALID_OPTION"
    assert hint in (caught.value.hint or "")


def test_every_summary_names_what_is_undecided_and_why(tmp_path: Path) -> None:
    """Markdown, JUnit, JSON and the page have verdict and reason of each gate, however many."""
    gates = ("strict>=0.5", "strict>=0.8", *(f"p95_ms<={limit}" for limit in range(90, 95)))
    stored = keep_rows(tmp_path, series("+++++++++-", elapsed_ms=100.0), gates=gates)
    export_run(stored.store, stored.run_id, stored.out, ["html", "json", "md", "junit"])
    note = "n = 10 cannot tell 90.0% from 80.0%; about 62 would"
    summary = (stored.out / "summary.md").read_text("utf-8")
    assert "- more gates: `p95_ms<=94` failed, `strict>=0.8` undecided, `strict>=0.5`" in summary
    found = json.loads((stored.out / "figures.json").read_text("utf-8"))["gates"]
    assert [one["gate"]["text"] for one in found] == list(gates)
    assert (found[1]["verdict"], found[1]["ok"], found[1]["note"]) == ("undecided", True, note)
    assert not found[2]["ok"]
    suites = ElementTree.parse(stored.out / "junit.xml").getroot()
    (skipped,) = suites.findall(".//testcase[@name='strict>=0.8']/skipped")
    assert note in skipped.get("message", "")
    assert len(suites.findall(".//testsuite[@name='gates']/testcase/failure")) == 5
    page = (stored.out / "report.html").read_text("utf-8")
    assert "undecided</b>, let through" in page


def test_a_baseline_that_is_gone_leaves_the_other_gates(tmp_path: Path) -> None:
    """Only the gate that needs it has nothing to check."""
    gates = ("regression<=0.02 vs gone", "strict>=0.5")
    stored = keep_rows(tmp_path, series("+" * 40), gates=gates)
    info = stored.store.info(stored.run_id)
    found = check_stored(stored.store, info, tally_rows(stored.store.rows(stored.run_id)))
    assert [one.verdict for one in found] == ["empty", "passed"]
    assert "'gone'" in found[0].note


def test_every_format_gives_the_same_bytes_again(tmp_path: Path) -> None:
    """The time of writing is nowhere, and neither is the folder."""
    stored = keep_rows(tmp_path, make_rows(trials=1))
    first = export_run(stored.store, stored.run_id, tmp_path / "a", ["all"])
    second = export_run(stored.store, stored.run_id, tmp_path / "b", ["all"])
    assert list(first.files) == list(second.files)
    assert set(first.files) >= OWN
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert len(digests(tmp_path / "a")) > 144


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    """Every file that is named is there, and no other."""
    stored = keep_rows(tmp_path, make_rows(trials=1), body=no_body)
    exported = export_run(stored.store, stored.run_id, stored.out, sorted(OWN))
    named = {path for paths in exported.files.values() for path in paths}
    assert set(stored.out.iterdir()) == named
    assert list(stored.out.rglob("*.part")) == []


def test_a_failure_while_writing_leaves_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader never finds half a table."""
    stored = keep_rows(tmp_path, [row()], body=no_body)
    (path,) = stored.write(write_jsonl)
    before = path.read_bytes()

    def broken(_run: str) -> Iterator[TrialRow]:
        yield row()
        raise StoreError("STORE_CORRUPT", "gone.")

    monkeypatch.setattr(stored.store, "rows", broken)
    with pytest.raises(StoreError):
        stored.write(write_jsonl)
    assert path.read_bytes() == before
    assert list(stored.out.iterdir()) == [path]


def test_all_leaves_out_what_is_not_installed_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever names a format gets an error instead, before anything is written."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "duckdb" else found(name)
    )
    stored = keep_rows(tmp_path, [row()], body=no_body)
    with pytest.raises(ConfigError) as caught:
        export_run(stored.store, stored.run_id, stored.out, ["csv", "parquet", "all"])
    assert caught.value.code == "EXTRA_MISSING"
    assert not stored.out.exists()
    exported = export_run(stored.store, stored.run_id, stored.out, ["all"])
    assert list(exported.left_out) == ["parquet"]
    assert set(exported.files) == set(FORMATS) - {"parquet"}


def test_a_folder_that_cannot_be_made_is_a_coded_error(tmp_path: Path) -> None:
    """A file in the way is told by name."""
    stored = keep_rows(tmp_path, [row()], body=no_body)
    place = tmp_path / "file"
    place.write_text("mine")
    with pytest.raises(ConfigError) as caught:
        export_run(stored.store, stored.run_id, place, ["csv"])
    assert caught.value.code == "INVALID_OPTION"
    assert str(place) in caught.value.message
    assert place.read_text() == "mine"


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_run_that_goes_on_is_written_as_it_was(tmp_path: Path, name: str) -> None:
    """Trials that arrive while files are written are in none of them."""
    stored = keep_rows(tmp_path, [row(index=n, trial=n + 1) for n in range(3)], status="running")
    alone = export_run(stored.store, stored.run_id, tmp_path / "alone", [name])
    rows = stored.store.rows
    added = iter(range(10, 100))

    def growing(run_id: str) -> Iterator[TrialRow]:
        for one in rows(run_id):
            number = next(added)
            late = row(index=number, trial=number, model="late")
            stored.store.add(stored.run_id, [(late, None)])
            yield one

    stored.store.rows = growing  # type: ignore[method-assign]  # the store of this test only
    export_run(stored.store, stored.run_id, tmp_path / "grown", [name])
    assert list(alone.files) == [name]
    assert next(added) > 12
    assert digests(tmp_path / "alone") == digests(tmp_path / "grown")


class Endless:
    """A store that makes its rows up, so that only what an export keeps takes memory."""

    def __init__(self, stored: Stored, count: int) -> None:
        self._stored = stored
        self._count = count

    def info(self, run_id: str) -> Any:
        return self._stored.store.info(run_id)

    def row(self, _run: str, index: int) -> TrialRow:
        return row(ok=False, index=index)

    def find_body(self, run_id: str, _index: int) -> Any:
        return self._stored.store.body(run_id, 0)

    def rows(self, _run: str) -> Iterator[TrialRow]:
        calls = tuple(call(turn=turn, arguments_bytes=turn) for turn in range(4))
        one = row(calls=calls, text="x" * 500)
        for index in range(self._count):
            yield replace(one, index=index, trial=index % 50, text=f"{index} {one.text}")


@pytest.mark.parametrize(
    "writer",
    [
        pytest.param(write_csv, id="csv"),
        pytest.param(write_jsonl, id="jsonl"),
        pytest.param(write_junit, id="junit"),
        pytest.param(write_markdown, id="md"),
        pytest.param(write_json, id="json"),
    ],
)
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, writer: Callable[..., Any]) -> None:
    """A row more costs less than 300 bytes: its time, and the name of its file."""
    stored = keep_rows(tmp_path, [row()])
    few, many = 100, 900

    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            writer(Endless(stored, count), stored.run_id, tmp_path / str(count))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(few)
    # Python's own table of interned names, which paths go into, doubles now and then; the smaller
    # of two peaks is without that.
    assert min(peak(many), peak(many)) - peak(few) < (many - few) * 300
