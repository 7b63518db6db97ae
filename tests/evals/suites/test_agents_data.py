"""The questions and the databases they are about."""

from contextlib import closing

import pytest

from surecall.evals.suites.agents.database import open_database, run_query
from surecall.evals.suites.agents.questions import (
    WORKSPACE_IDS,
    Question,
    answer_of,
    find_workspace,
    load_questions,
)

each_question = pytest.mark.parametrize("question", load_questions(), ids=lambda item: item.id)
each_workspace = pytest.mark.parametrize("name", WORKSPACE_IDS)


def test_there_are_forty_questions_about_three_workspaces() -> None:
    """Every question has an id of its own, and every workspace a fair share of them."""
    ids = [question.id for question in load_questions()]
    assert len(set(ids)) == len(ids) == 40
    shares = [sum(name.startswith(f"{workspace}-") for name in ids) for workspace in WORKSPACE_IDS]
    assert shares == [13, 13, 14]


@each_question
def test_the_known_query_gives_the_known_answer(question: Question) -> None:
    """The rows in the file are the rows that the database returns, in the same order."""
    found = run_query(question.sql, question.workspace.script)
    assert found.rows == question.answer
    assert found.is_complete


@each_question
def test_the_known_query_reads_what_the_question_says(question: Question) -> None:
    """Tables and columns of a question are exactly those that its query reads."""
    found = run_query(question.sql, question.workspace.script)
    assert sorted(found.tables) == sorted(question.tables)
    assert sorted(found.read) == sorted(question.columns)


@each_question
def test_other_rows_give_another_answer(question: Question) -> None:
    """A query that repeats the answer, or guesses it, is wrong on the changed rows."""
    here, there = answer_of(question.id, changed=False), answer_of(question.id, changed=True)
    assert sorted(map(repr, here.rows)) != sorted(map(repr, there.rows))


@each_question
def test_an_order_that_is_asked_for_leaves_no_choice(question: Question) -> None:
    """No two rows of an ordered answer are the same, on either data."""
    if question.is_ordered:
        for changed in (False, True):
            rows = answer_of(question.id, changed=changed).rows
            assert len(set(rows)) == len(rows) >= 1


@each_workspace
def test_a_workspace_has_four_tables_that_say_what_they_are(name: str) -> None:
    """Every table has a note and one key, which is its first column."""
    workspace = find_workspace(name)
    assert len(workspace.tables) == 4
    assert workspace.note.endswith(".")
    for table in workspace.tables:
        assert table.note
        assert [column.name for column in table.columns if column.is_key] == ["id"]


@each_workspace
@pytest.mark.parametrize("changed", [False, True])
def test_every_reference_leads_to_a_row(name: str, changed: bool) -> None:
    """Rows and changed rows keep what the foreign keys promise, so that joins lose nothing."""
    workspace = find_workspace(name)
    scripts = (workspace.script, workspace.changes) if changed else (workspace.script,)
    with closing(open_database(*scripts)) as database:
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_schema_shows_what_was_kept() -> None:
    """Only tables and columns that may be read are in the statements, with their notes."""
    workspace = find_workspace("shop")
    readable = workspace.readable(["orders"], ["orders.status", "customers.city"])
    assert readable == {"orders.id", "orders.status"}
    assert workspace.render_schema(readable) == (
        "CREATE TABLE orders ( -- one row for each order, without what is in it\n"
        "  id INTEGER PRIMARY KEY,\n"
        "  status TEXT -- open, shipped, delivered or cancelled\n"
        ");"
    )
