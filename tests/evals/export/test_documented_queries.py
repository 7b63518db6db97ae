"""The examples of the page on using results elsewhere, run against a real store."""

import importlib.util
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eval_rows import make_rows
from surecall.evals.export import write_parquet

from .stored import Stored, keep_rows, no_body

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "use-results-elsewhere.md"
TEXT = PAGE.read_text("utf-8")
QUERIES = re.findall(r"\n([^\n]+)\n\n```sql\n(.*?)```", TEXT, re.DOTALL)
PYTHON = re.findall(r"```python no-run\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A store with a run in it that has every kind of trial."""
    return keep_rows(tmp_path_factory.mktemp("store"), make_rows(trials=3), body=no_body)


@pytest.fixture
def database(stored: Stored) -> Iterator[sqlite3.Connection]:
    """The store, opened as a reader would."""
    connection = sqlite3.connect(f"file:{stored.store.path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def test_there_are_ten_examples() -> None:
    """Each asks a question first."""
    assert len(QUERIES) >= 10
    assert [words for words, _ in QUERIES if "?" not in words] == []


@pytest.mark.parametrize("query", [q for _, q in QUERIES], ids=[words for words, _ in QUERIES])
def test_every_example_answers_its_question(
    query: str, database: sqlite3.Connection, stored: Stored
) -> None:
    """It runs on a store that may only be read, gives rows, and no column is empty throughout."""
    rows = [dict(one) for one in database.execute(query, {"run": stored.run_id})]
    assert rows
    empty = [name for name in rows[0] if all(one[name] is None for one in rows)]
    assert [name for name in empty if name != "tags"] == []
    if ":run" in query:
        assert database.execute(query, {"run": "no such run"}).fetchall() == []


def answer(database: sqlite3.Connection, stored: Stored, words: str) -> list[dict[str, object]]:
    """Run the example that asks a question with these words."""
    (query,) = [query for question, query in QUERIES if words in question]
    return [dict(one) for one in database.execute(query, {"run": stored.run_id})]


def test_rates_are_those_of_the_rows(database: sqlite3.Connection, stored: Stored) -> None:
    """The first figures that people ask for are right."""
    rows = [one for one in make_rows(trials=3) if not one.control]
    for found in answer(database, stored, "How often is each model right"):
        mine = [
            one.strict_ok
            for one in rows
            if (one.cell.model, one.cell.strategy) == (found["model"], found["strategy"])
        ]
        assert (found["k"], found["n"]) == (sum(mine), len(mine))


def test_the_percentile_is_that_of_the_summary(
    database: sqlite3.Connection, stored: Stored
) -> None:
    """Place floor(n * 0.95) of the sorted times."""
    rows = make_rows(trials=3)
    for found in answer(database, stored, "How long does a trial take"):
        times = sorted(one.elapsed_ms for one in rows if one.cell.model == found["model"])
        assert found["p95_ms"] == times[int(len(times) * 0.95)]


def test_gains_and_losses_are_counted_on_the_same_trials(
    database: sqlite3.Connection, stored: Stored
) -> None:
    """Every trial under one strategy meets the one under the other, once."""
    for found in answer(database, stored, "What does one strategy gain"):
        assert found["pairs"] == 7 * 3


if importlib.util.find_spec("duckdb") is not None:

    def test_the_parquet_example_runs(
        stored: Stored,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """As it stands on the page, next to the folder with the files."""
        write_parquet(stored.store, stored.run_id, tmp_path / "results")
        monkeypatch.chdir(tmp_path)
        (code,) = PYTHON
        names: dict[str, Any] = {}
        exec(compile(code, str(PAGE), "exec"), names)
        assert "zoo:steady" in capsys.readouterr().out
        made = Counter(rule for one in make_rows(trials=3) for c in one.calls for rule in c.rules)
        assert dict(names["rules"]) == made
