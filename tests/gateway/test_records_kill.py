"""Killed at any moment: every record that was acknowledged is in the store.

`python bench/kill_records.py` does the same two hundred times.
"""

import asyncio
import random
import time
from pathlib import Path

from support.record_victim import RecordScene, RecordVictims
from surecall.store.records import open_records

KILLS = 5


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Five kills in a row of a process that records sixteen requests at once."""
    chance = random.Random(20261116)
    victims, scene = RecordVictims(), RecordScene(tmp_path)
    acknowledged: set[str] = set()
    for number in range(KILLS):
        pid = victims.start(scene.order(is_away=number == 2))
        deadline = time.monotonic() + 60
        while scene.acks.stat().st_size == scene.checked_bytes and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.05))
        assert victims.kill(pid) == -9
        fresh = scene.new_acks()
        assert fresh
        acknowledged |= fresh
        if number != 2:  # what waits in the spool comes with the next one
            continue
        assert (tmp_path / "requests.spool").stat().st_size > 0
    victims.close()
    asyncio.run(replay(scene.store))
    assert scene.check(acknowledged) >= len(acknowledged)


async def replay(path: Path) -> None:
    """Bring in what still waits."""
    store = open_records(path)
    await store.replay()
    await store.close()
