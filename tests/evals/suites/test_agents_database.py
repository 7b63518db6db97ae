"""Queries of a model can read what they may, and nothing else."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surecall.evals.suites.agents.database import MAX_ROWS, QueryRefused, run_query

SCRIPT = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, stars REAL);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO notes VALUES (1, 'tea', 4.5), (2, 'salt', 3.0), (3, 'tea', NULL);
INSERT INTO people VALUES (1, 'Ada');
"""
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"
LARGE = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@dataclass(frozen=True)
class Refused:
    """A query, and what it is answered with."""

    id: str
    sql: str
    code: str
    told: str


REFUSED = [
    Refused("two statements", "SELECT 1; SELECT 2", "SQL_NOT_ALLOWED", "more than one statement"),
    Refused(
        "deletes behind a read",
        "SELECT 1; DELETE FROM notes",
        "SQL_NOT_ALLOWED",
        "more than one statement",
    ),
    Refused("deletes", "DELETE FROM notes", "SQL_NOT_ALLOWED", "begins with 'DELETE'"),
    Refused("attaches", "ATTACH 'other.db' AS other", "SQL_NOT_ALLOWED", "begins with 'ATTACH'"),
    Refused("pragma", "PRAGMA query_only = OFF", "SQL_NOT_ALLOWED", "begins with 'PRAGMA'"),
    Refused("hidden by a comment", "/* SELECT */ DROP TABLE notes", "SQL_NOT_ALLOWED", "'DROP'"),
    Refused("hidden by a line", "-- SELECT\n;;VACUUM INTO 'x'", "SQL_NOT_ALLOWED", "'VACUUM'"),
    Refused("explains", "EXPLAIN SELECT 1", "SQL_NOT_ALLOWED", "begins with 'EXPLAIN'"),
    Refused("no word", "(SELECT 1)", "SQL_NOT_ALLOWED", "begins with '('"),
    Refused(
        "writes behind WITH",
        "WITH x AS (SELECT 1) INSERT INTO notes SELECT 9, 'x', 1",
        "SQL_NOT_ALLOWED",
        "does more than read",
    ),
    Refused(
        "loads code", "SELECT load_extension('x.so')", "SQL_NOT_ALLOWED", "function load_extension"
    ),
    Refused("chance", "SELECT random()", "SQL_NOT_ALLOWED", "function random may not be used"),
    Refused("schema", "SELECT sql FROM sqlite_master", "SQL_NOT_ALLOWED", "sqlite_master"),
    Refused(
        "pragma function", "SELECT * FROM pragma_table_info('notes')", "SQL_NOT_ALLOWED", "read"
    ),
    Refused("syntax", "SELECT FROM notes", "SQL_ERROR", "syntax error"),
    Refused("unknown column", "SELECT colour FROM notes", "SQL_ERROR", "no such column: colour"),
    Refused("unknown table", "SELECT 1 FROM pets", "SQL_ERROR", "no such table: pets"),
    Refused("nothing", " \n", "SQL_ERROR", "no query"),
    Refused("only a comment", "-- SELECT 1", "SQL_ERROR", "no query"),
    Refused("open comment", "/* SELECT 1", "SQL_ERROR", "no query"),
    Refused("null character", "SELECT 1\0", "SQL_ERROR", "null character"),
    Refused("half a character", "SELECT '\ud800'", "SQL_ERROR", "surrogates"),
    Refused(
        "long text", "SELECT replace(printf('%4000s', 'x'), ' ', 'yyy')", "SQL_ERROR", "too big"
    ),
    Refused("without end", ENDLESS, "SQL_LIMIT_EXCEEDED", "takes too long"),
    Refused("too long", f"SELECT '{'x' * 5000}'", "SQL_LIMIT_EXCEEDED", "limit is 4000"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_query_that_may_not_run_is_refused_with_a_way_out(case: Refused) -> None:
    """Every refusal has a code, says what is wrong, and says what to do."""
    with pytest.raises(QueryRefused) as caught:
        run_query(case.sql, SCRIPT)
    assert caught.value.code == case.code
    assert case.told in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "sql", ["ATTACH '{}' AS x", "VACUUM INTO '{}'", "SELECT 1; ATTACH '{}' AS x"]
)
def test_no_query_makes_a_file(sql: str, tmp_path: Path) -> None:
    """Statements that would write outside of the database write nothing."""
    with pytest.raises(QueryRefused):
        run_query(sql.format(tmp_path / "made.db"), SCRIPT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT COUNT(*) FROM notes;", ((3,),)),
        ("with t as (select text from notes) select distinct text from t", (("tea",), ("salt",))),
        ("VALUES (1, 'a')", ((1, "a"),)),
        ("SELECT text FROM notes WHERE text LIKE 't%' AND stars > 4", (("tea",),)),
        (
            "SELECT id, ROW_NUMBER() OVER (ORDER BY text, id) FROM notes ORDER BY id",
            ((1, 2), (2, 1), (3, 3)),
        ),
        ("SELECT stars FROM notes WHERE id = 3", ((None,),)),
        ("SELECT 9e999, x'00ff'", (("inf", "x'00ff'"),)),
    ],
)
def test_reading_works(sql: str, rows: tuple[tuple[object, ...], ...]) -> None:
    """What a SELECT of SQLite can do is there, and values are such as JSON has."""
    assert run_query(sql, SCRIPT).rows == rows


def test_what_was_read_is_known() -> None:
    """Tables and columns are noted, also those inside of views of the query itself."""
    sql = "WITH t AS (SELECT text FROM notes) SELECT t.text FROM t, people"
    found = run_query(sql, SCRIPT)
    assert found.tables == {"notes", "people"}
    assert found.read == {"notes.text"}
    assert found.columns == ("text",)


def test_only_kept_columns_can_be_read() -> None:
    """A column that was left out is refused by name, wherever it stands in the query."""
    kept = {"notes.id", "notes.text"}
    assert len(run_query("SELECT COUNT(*), text FROM notes", SCRIPT, readable=kept).rows) == 1
    with pytest.raises(QueryRefused) as caught:
        run_query("SELECT text FROM notes ORDER BY stars", SCRIPT, readable=kept)
    assert caught.value.code == "SQL_NOT_ALLOWED"
    assert "notes.stars is not among the columns that were kept" in caught.value.message
    assert caught.value.hint == "Keep notes.stars first, or write the query without it."


def test_a_table_that_was_not_chosen_cannot_be_counted() -> None:
    """Reading no column of a table is reading it all the same."""
    with pytest.raises(QueryRefused, match="people was not chosen"):
        run_query("SELECT COUNT(*) FROM people", SCRIPT, readable={"notes.id"})


def test_many_rows_are_cut_and_said_to_be() -> None:
    """A query without end whose rows are read one by one gives the first of them."""
    found = run_query(LARGE, SCRIPT)
    assert len(found.rows) == MAX_ROWS
    assert not found.is_complete


@given(st.text(max_size=60))
@example("SELECT")
@example("WITH")
@example("SELECT * FROM notes, notes a, notes b")
@settings(max_examples=150, deadline=None)
def test_any_text_is_answered_or_refused(text: str) -> None:
    """Whatever a model writes, there is a result or a refusal, and no other exception."""
    sql = f"SELECT {text}" if len(text) % 2 else text
    with contextlib.suppress(QueryRefused):
        assert run_query(sql, SCRIPT).tables <= {"notes", "people"}
