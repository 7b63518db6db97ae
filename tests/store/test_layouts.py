"""The tables of every store: steps that were released never change, and lead to one layout."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from surecall.base.errors import StoreError
from surecall.base.sqlite_files import Layout, connect
from surecall.evals.store.rows import LAYOUT as EVALS
from surecall.models.probe.facts import LAYOUT as FACTS
from surecall.store import workspaces
from surecall.store.records.ledger import BUDGETS
from surecall.store.records.tables import POSTGRES_LAYOUT, SQLITE_LAYOUT
from surecall.store.remembered_signatures import ECHOES

RELEASED: dict[str, tuple[Layout, list[str]]] = {
    "budgets": (BUDGETS, ["042cb640"]),
    "echoes": (ECHOES, ["0dd8639b"]),
    "evals": (EVALS, ["7dceb1d9"]),
    "facts": (FACTS, ["1b613c65"]),
    "requests": (SQLITE_LAYOUT, ["0537faff", "57b05e7a"]),
    "requests on a server": (POSTGRES_LAYOUT, ["a25b6a57", "d3b28fcc", "fee2f8ba"]),
    "workspaces": (workspaces.SQLITE_LAYOUT, ["b988c5a5"]),
    "workspaces on a server": (workspaces.POSTGRES_LAYOUT, ["bfcf9a90"]),
}
"""Each layout with the beginnings of the digests of its steps; a new step adds one."""
FILES = [layout for layout, _ in RELEASED.values() if not layout.table]


@pytest.mark.parametrize("name", RELEASED)
def test_a_released_step_never_changes(name: str) -> None:
    """Whoever has the tables of a step would never get the changed ones."""
    layout, digests = RELEASED[name]
    texts = (" ".join(step.split()) for step in layout.steps)
    assert [hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts] == digests


def test_every_layout_has_a_number_of_its_own() -> None:
    """One that tells the files of a store from those of all others."""
    assert len({layout.number for layout in FILES}) == len(FILES)


@pytest.mark.parametrize("layout", FILES, ids=lambda layout: f"{layout.number:x}")
def test_a_file_of_any_step_gets_the_steps_that_it_lacks(layout: Layout, tmp_path: Path) -> None:
    """Once, whoever opens it; what is in it stays; an earlier surecall leaves it alone then."""
    path = tmp_path / "new" / "file.db"
    later = layout._replace(steps=(*layout.steps, "CREATE TABLE later (a);\nCREATE TABLE more (b)"))
    for end in range(1, len(later.steps) + 1):
        connect(path, later._replace(steps=later.steps[:end])).close()
    with closing(connect(path, later)) as file:
        (tables_there,) = file.execute(
            "SELECT count(*) FROM sqlite_master WHERE name IN ('later', 'more')"
        ).fetchone()
        assert tables_there == 2
    with pytest.raises(StoreError, match="has layout"):
        connect(path, layout)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (len(later.steps),)
