"""A real PostgreSQL server, and an empty store of each kind."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.request_records import run_postgres
from support.workspace_stores import empty_postgres
from surecall.store import SqliteStore
from surecall.workspace import MemoryStore, WorkspaceStore


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """The one server of these tests."""
    with run_postgres() as started:
        yield started


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[WorkspaceStore]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore()
        return
    if request.param == "postgres":
        made = await empty_postgres(request.getfixturevalue("server").get_uri())
    else:
        made = SqliteStore(tmp_path / "deep" / "store.db")
    async with made:
        yield made
