"""Stores as files and tables: private, versioned, refused with a code when damaged."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.workspace_stores import empty_postgres
from surecall.base.errors import ApprovalError, Code, StoreError
from surecall.base.sqlite_files import connect
from surecall.store import PostgresStore, SqliteStore, open_store
from surecall.store.workspaces import SQLITE_LAYOUT
from surecall.workspace import ProposedFact, Workspace


async def fill(store: Any) -> tuple[Workspace, str]:
    """Return a workspace with a proposal that was accepted."""
    workspace = await Workspace.create(store, id="w", draft={"a": 1}, locks=["/facts/x"])
    proposal = await workspace.propose([ProposedFact("/facts/a", 1)], request_id="q")
    await workspace.accept(proposal.id, by="ben")
    return workspace, proposal.id


async def read_everything(workspace: Workspace, proposal_id: str) -> None:
    """Read each kind of row."""
    await workspace.read()
    await workspace.changes()
    await workspace.proposal(proposal_id)


async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    """A confirmation given in one process commits in the next."""
    async with SqliteStore(tmp_path / "s.db") as store:
        workspace, proposal_id = await fill(store)
        before = await workspace.read()
    async with open_store(tmp_path / "s.db") as store:
        workspace = Workspace("w", store)
        assert await workspace.read() == before
        assert (await workspace.commit(proposal_id)).state.facts == {"a": 1}


async def test_files_are_private_and_use_a_log(tmp_path: Path) -> None:
    """Whatever the process allows, only the owner reads them."""
    previous = os.umask(0)
    try:
        async with SqliteStore(tmp_path / "s.db") as store:
            await fill(store)
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(previous)
    assert set(modes.values()) == {0o600}
    assert "s.db-wal" in modes


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE surecall_parts SET content = x'7b' WHERE part = 'draft'",
        "UPDATE surecall_parts SET content = x'5b5d' WHERE part = 'facts'",
        "UPDATE surecall_parts SET content = x'7b7d' WHERE part = 'locks'",
        "UPDATE surecall_parts SET content = 'text' WHERE part = 'ui_state'",
        "DELETE FROM surecall_parts WHERE part = 'draft'",
        "UPDATE surecall_revisions SET draft_version = 'x'",
        "UPDATE surecall_revisions SET change = x'7b7d'",
        "UPDATE surecall_revisions SET change = (SELECT change FROM surecall_revisions LIMIT 1)",
        "UPDATE surecall_approvals SET record = x'00'",
        "UPDATE surecall_approvals SET status = 'used'",
        "DROP TABLE surecall_parts",
    ],
)
async def test_damaged_rows_are_refused(tmp_path: Path, damage: str) -> None:
    """Reading everything meets the damage, with a code and without a guess."""
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        _, proposal_id = await fill(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(damage)
    async with SqliteStore(path) as store:
        workspace = Workspace("w", store)
        with pytest.raises(StoreError) as caught:
            await read_everything(workspace, proposal_id)
    assert caught.value.code == Code.STORE_CORRUPT


@pytest.mark.parametrize("edit", [b'"value":2', b'"value":1.0'])
async def test_a_proposal_that_was_edited_after_its_approval_is_refused(
    tmp_path: Path, edit: bytes
) -> None:
    """Also when somebody edits it in the database itself."""
    path = tmp_path / "s.db"
    async with SqliteStore(path) as store:
        _, proposal_id = await fill(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (record,) = connection.execute("SELECT record FROM surecall_approvals").fetchone()
        assert b'"value":1' in record
        connection.execute(
            "UPDATE surecall_approvals SET record = ?", (record.replace(b'"value":1', edit),)
        )
    async with SqliteStore(path) as store:
        workspace = Workspace("w", store)
        with pytest.raises(ApprovalError) as caught:
            await workspace.commit(proposal_id)
        assert caught.value.code == Code.APPROVAL_MISMATCH
        assert (await workspace.read()).facts == {}


async def test_another_program_and_another_version_are_refused(tmp_path: Path) -> None:
    """Untouched, and with a code."""
    foreign, newer = tmp_path / "f.db", tmp_path / "n.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE t (a)")
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(foreign)
    await SqliteStore(newer).close()
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError) as caught:
        SqliteStore(newer)
    assert caught.value.code == Code.STORE_TOO_NEW
    (tmp_path / "text.db").write_text("not a database" * 100)
    with pytest.raises(StoreError) as caught:
        SqliteStore(tmp_path / "text.db")
    assert caught.value.code == Code.STORE_CORRUPT


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """With a code, and closing twice is fine."""
    store = SqliteStore(tmp_path / "s.db")
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="was closed"):
        await store.get("a")


async def test_tables_of_postgres_are_checked_too(server: Any) -> None:
    """A damaged row, a newer layout, and a server that is not there."""
    import asyncpg

    url = server.get_uri()
    async with await empty_postgres(url) as store:
        workspace, _ = await fill(store)
        connection = await asyncpg.connect(url)
        await connection.execute("UPDATE surecall_parts SET content = '[]' WHERE part = 'draft'")
        with pytest.raises(StoreError) as caught:
            await workspace.read()
        assert caught.value.code == Code.STORE_CORRUPT
        await connection.execute("UPDATE surecall_workspace_layout SET version = 99")
        await connection.close()
    async with open_store(url) as store:
        with pytest.raises(StoreError) as caught:
            await Workspace("w", store).read()
        assert caught.value.code == Code.STORE_TOO_NEW
    async with PostgresStore("postgresql://u:pass-word-123@127.0.0.1:9/none") as away:
        assert "pass-word" not in repr(away)
        with pytest.raises(StoreError) as caught:
            await Workspace("w", away).read()
    assert caught.value.code == Code.STORE_WRITE_FAILED


def test_a_file_that_others_begin_or_leave_is_waited_for(tmp_path: Path) -> None:
    """The database gives up at once there, whatever it was told to wait."""
    file = tmp_path / "new.db"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as first:
        first.execute("BEGIN EXCLUSIVE")
        letting_go = threading.Timer(0.2, first.execute, ("COMMIT",))
        letting_go.start()
        with closing(connect(file, SQLITE_LAYOUT)) as second:
            letting_go.join()
            assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)
