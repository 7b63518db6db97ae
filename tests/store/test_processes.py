"""Several real processes on one workspace, and processes that are killed.

`python bench/kill_workspace.py` kills hundreds of times.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.workspace_stores import empty_postgres
from support.workspace_victim import KillScene, Workers
from surecall.store import open_store
from surecall.workspace import Workspace

KILLS = 12
BOUNDARIES = 25
"""How many boundaries one item has, from the first patch to the commit."""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Whoever starts the workers."""
    made = Workers()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> KillScene:
    """An empty workspace in each kind of database."""
    if request.param == "sqlite":
        made = KillScene(str(tmp_path / "s.db"), tmp_path)
    else:
        url: Any = request.getfixturevalue("server").get_uri()
        asyncio.run(drop(url))
        made = KillScene(url, tmp_path)
    asyncio.run(made.begin())
    return made


async def drop(url: str) -> None:
    """Remove our tables."""
    await (await empty_postgres(url)).close()


def test_processes_that_write_at_the_same_time_lose_nothing(
    workers: Workers, scene: KillScene
) -> None:
    """Four of them append to one list."""
    order = {"store": scene.place, "job": "append", "workers": 4, "count": 6}
    workers.start(order)
    assert workers.wait() == [0, 0, 0, 0]

    async def read() -> tuple[list[str], int]:
        async with open_store(scene.place) as store:
            state = await Workspace("w", store).read()
        return state.draft["items"], state.draft_version

    items, version = asyncio.run(read())
    assert sorted(items) == sorted(f"{number}-{count}" for number in range(4) for count in range(6))
    assert version == 24


def test_killed_at_boundaries_nothing_is_lost_or_doubled(
    workers: Workers, scene: KillScene
) -> None:
    """A dozen kills spread over the boundaries of one item, and the next worker goes on."""
    for number in range(KILLS):
        workers.start(scene.order(kill_at=number * BOUNDARIES // KILLS))
        assert workers.wait() == [-9]
    acknowledged, committed = asyncio.run(scene.check())
    assert 0 < acknowledged <= committed
    assert sum(scene.boundaries.values()) == KILLS
