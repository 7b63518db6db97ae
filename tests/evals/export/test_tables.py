"""Trials and calls as tables: CSV, JSON lines, Parquet, and the views they share names with."""

import csv
import importlib.util
import json
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.trial_rows import call, row
from support.eval_rows import make_rows
from surecall.base.errors import ConfigError
from surecall.base.spreadsheets import disarm_text
from surecall.evals.export import (
    CALL_COLUMNS,
    TRIAL_COLUMNS,
    Column,
    write_csv,
    write_jsonl,
    write_parquet,
)

from .stored import HOSTILE, Stored, keep_rows, no_body

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "report-files.md"

TABLES = [
    pytest.param("v_trials", TRIAL_COLUMNS, id="trials"),
    pytest.param("v_tool_calls", CALL_COLUMNS, id="calls"),
]


@pytest.fixture
def sample(tmp_path: Path) -> Stored:
    """A run with every kind of trial."""
    return keep_rows(tmp_path, make_rows(trials=1), body=no_body)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a table as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.mark.parametrize(("view", "columns"), TABLES)
def test_tables_have_the_columns_of_the_views(
    sample: Stored, view: str, columns: Sequence[Column]
) -> None:
    """A query on a view works on a file; files may have more."""
    database = sqlite3.connect(sample.store.path)
    found = [one[0] for one in database.execute(f"SELECT * FROM {view}").description]
    database.close()
    names = ["run", *(column.name for column in columns)]
    assert [name for name in found if name not in names] == []
    assert [name for name in names if name in found] == [name for name in found if name in names]


@pytest.mark.parametrize(("view", "columns"), TABLES)
def test_the_views_hold_what_the_tables_hold(
    sample: Stored, view: str, columns: Sequence[Column]
) -> None:
    """The same trial has the same values in a view and in CSV."""
    trials, calls = sample.write(write_csv)
    table = read_csv(trials if view == "v_trials" else calls)
    database = sqlite3.connect(sample.store.path)
    database.row_factory = sqlite3.Row
    position = ", position" if view == "v_tool_calls" else ""
    stored = [dict(one) for one in database.execute(f"SELECT * FROM {view} ORDER BY idx{position}")]
    database.close()
    assert len(stored) == len(table) > 100
    for mine, theirs in zip(table, stored, strict=True):
        for column in columns:
            if column.name in theirs and column.type != "time":
                assert mine[column.name] == as_text(theirs[column.name], column)


def as_text(value: Any, column: Column) -> str:
    """Write a value of a view as CSV has it."""
    if value is None:
        return ""
    if column.type == "boolean":
        return "true" if value else "false"
    return str(value)


@pytest.mark.parametrize(("view", "columns"), TABLES)
def test_the_reference_lists_every_column(view: str, columns: Sequence[Column]) -> None:
    """Names, types and meanings on the page are those of the code."""
    heading = "trial" if view == "v_trials" else "call"
    page = PAGE.read_text("utf-8").partition(f"### Columns of a {heading}\n")[2]
    listed = re.findall(r"^- `(\w+)`: (\w+)\. (.+)$", page.partition("\n#")[0], re.MULTILINE)
    assert listed == [(column.name, column.type, column.about) for column in columns]


def test_csv_keeps_text_with_quotes_commas_and_line_ends(tmp_path: Path) -> None:
    """Whatever a model says comes back as it was."""
    text = 'a,"b"\r\nc\rd\ne;\u2028f\U0001f600'
    stored = keep_rows(tmp_path, [row(text=text), row(index=1, trial=2)], body=no_body)
    trials, _ = stored.write(write_csv)
    assert [one["text"] for one in read_csv(trials)] == [text, ""]
    assert trials.read_bytes().endswith(b"Z,,,,,\r\n")


FORMULAS = (
    "=1+1", "+1", "-1", "@cmd", "\tx", "\r=1", "\n=1", "\n\n =1", '"=1', '""=1', "'=1", "`=1", "-",
    ";=1", ",=1", "|=1", "\t=1", "\x01=1", "\x1f@", "\0=1", "\x7f=1", "\x85=1", "\x0b=1", "   =1",
    "\u200b=1", "\ufeff=1", "\ufeff\u200b =1", "\xa0=1", "\u3000=1", "\u2028=1", "\u2060+1",
    "\xad-1", "\u202e=1", "\ufe0f=1", "\u3164=1", "\u2800=1", "\U000e0020=1", "\ud83d=1", "“=1”",
    "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "\ufe661", "\u207a1",
)  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_csv_never_begins_a_cell_as_a_formula(tmp_path: Path, text: str) -> None:
    """A spreadsheet must not run what a model wrote."""
    made = row(text=text, model=text, calls=(call(name=text),))
    trials, calls = keep_rows(tmp_path, [made], body=no_body).write(write_csv)
    kept = "'" + text.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
    assert [(one["text"], one["model"]) for one in read_csv(trials)] == [(kept, kept)]
    assert [one["name"] for one in read_csv(calls)] == [kept]


def test_csv_leaves_other_text_and_numbers_alone(tmp_path: Path) -> None:
    """Signs inside a text do no harm, and a number below zero is a number."""
    texts = [
        "a=1",
        "1-2",
        "x\n=1",
        '{"a": -1}',
        "<tool_call>",
        "",
        "  a",
        "\n\na",
        "\ufeffé",
        "“Yes”",
        "(=)",
    ]
    rows = [
        row(text=text, index=at, trial=at + 1, elapsed_ms=-1.5, seed=-7)
        for at, text in enumerate(texts)
    ]
    trials, _ = keep_rows(tmp_path, rows, body=no_body).write(write_csv)
    assert [one["text"] for one in read_csv(trials)] == texts
    assert {(one["elapsed_ms"], one["seed"]) for one in read_csv(trials)} == {("-1.5", "-7")}


@given(
    blank=st.text(
        st.characters(categories=["Cc", "Cf", "Zs", "Zl", "Zp", "Mn"], include_characters="\"';,|")
    ),
    sign=st.sampled_from("=+-@＝＋－＠"),
    rest=st.text(),
)
def test_csv_hides_a_formula_behind_anything_unseen(blank: str, sign: str, rest: str) -> None:
    """Whatever blanks, quotes, separators and controls stand before the sign."""
    text = blank + sign + rest
    assert disarm_text(text) == f"'{text}".replace("\0", "\ufffd")


def test_csv_has_no_nul(tmp_path: Path) -> None:
    """Many readers would stop there."""
    trials, _ = keep_rows(tmp_path, [row(text="a\0b")], body=no_body).write(write_csv)
    assert b"\0" not in trials.read_bytes()
    assert read_csv(trials)[0]["text"] == "a\ufffdb"


def test_lists_and_unknown_values_in_csv(tmp_path: Path) -> None:
    """A list is JSON, unknown is empty, and zero is not unknown."""
    made = row(rules=("a", "b"), calls=(call(exact=None), call(exact=False)))
    trials, calls = keep_rows(tmp_path, [made], body=no_body).write(write_csv)
    (trial,) = read_csv(trials)
    assert (trial["rules"], trial["saved_by"]) == ('["a","b"]', "[]")
    assert (trial["cost_usd"], trial["fabrications"], trial["calls"]) == ("", "0", "2")
    assert [one["exact"] for one in read_csv(calls)] == ["", "false"]


def test_a_line_of_json_holds_a_trial(tmp_path: Path) -> None:
    """Columns by name, with reasons and calls in full."""
    made = [row(text=HOSTILE, calls=(call(),)), row(ok=False, index=1, trial=2)]
    (path,) = keep_rows(tmp_path, made, body=no_body).write(write_jsonl)
    lines = path.read_bytes().splitlines()
    first, second = (json.loads(line) for line in lines)
    assert [name for name in (column.name for column in TRIAL_COLUMNS) if name not in first] == []
    assert first["text"] == HOSTILE
    assert first["calls"][0]["name"] == "state_patch"
    assert second["strict_reasons"] == [{"code": "DRAFT_WRONG", "message": "draft is not as asked"}]
    assert second["usage"]["input_tokens"] == 0


def test_without_duckdb_parquet_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written, and the message says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    stored = keep_rows(tmp_path, [row()], body=no_body)
    with pytest.raises(ConfigError) as caught:
        stored.write(write_parquet)
    assert caught.value.code == "EXTRA_MISSING"
    assert "pip install 'surecall[analytics]'" in (caught.value.hint or "")
    assert not stored.out.exists()


if importlib.util.find_spec("duckdb") is not None:

    def test_parquet_holds_what_csv_holds(sample: Stored) -> None:
        """Every trial and call, in order, with types."""
        import duckdb

        trials, calls = sample.write(write_parquet)
        texts, _ = sample.write(write_csv)
        found = duckdb.read_parquet(str(trials))
        assert found.columns == ["run", *(column.name for column in TRIAL_COLUMNS)]
        kinds = dict(zip(found.columns, map(str, found.types), strict=True))
        assert kinds["strict_ok"] == "BOOLEAN"
        assert kinds["rules"] == "VARCHAR[]"
        assert kinds["started_at"] == "TIMESTAMP"
        ids = [(str(one[0]), one[1]) for one in found.project("idx, scenario").fetchall()]
        assert ids == [(one["idx"], one["scenario"]) for one in read_csv(texts)]
        rows = make_rows(trials=1)
        table = duckdb.read_parquet(str(calls))
        assert table.aggregate("count(*)").fetchall() == [(sum(len(one.calls) for one in rows),)]

    def test_parquet_keeps_hostile_text_and_unknown_values(tmp_path: Path) -> None:
        """Nothing is lost, not even a NUL, and unknown is null."""
        import duckdb

        made = row(text=HOSTILE, rules=("a", "b"), calls=(call(exact=None),))
        trials, calls = keep_rows(tmp_path, [made], body=no_body).write(write_parquet)
        found = duckdb.read_parquet(str(trials)).project("text, rules, cost_usd").fetchall()
        assert found == [(HOSTILE, ["a", "b"], None)]
        assert duckdb.read_parquet(str(calls)).project("exact").fetchall() == [(None,)]

    def test_parquet_takes_long_text_and_no_rows(tmp_path: Path) -> None:
        """Lines may be longer than DuckDB reads by default, and a table may be empty."""
        import duckdb

        long = "x" * 40_000_000
        trials, calls = keep_rows(tmp_path, [row(text=long)], body=no_body).write(write_parquet)
        size = duckdb.read_parquet(str(trials)).project("length(text)").fetchall()
        assert size == [(40_000_000,)]
        assert duckdb.read_parquet(str(calls)).fetchall() == []
