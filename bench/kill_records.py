"""Kills a process that records requests, and checks that nothing acknowledged is lost.

    python bench/kill_records.py [--kills 200] [--seed 1]

Every kill is a SIGKILL at a random moment; the next process goes on with the store that was left
behind. In every tenth the store is away, so that records wait in the spool. The tests do the same
five times.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.record_victim import RecordScene, RecordVictims  # pyright: ignore
from surecall.store.records import open_records


async def replay(path: Path) -> None:
    store = open_records(path)
    await store.replay()
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    started, acknowledged, idle = time.perf_counter(), set(), 0
    victims = RecordVictims()
    with tempfile.TemporaryDirectory() as folder:
        scene = RecordScene(Path(folder))
        for number in range(options.kills):
            is_away = number % 10 == 9
            pid = victims.start(scene.order(is_away=is_away))
            while number % 4 and scene.acks.stat().st_size == scene._checked_bytes:
                time.sleep(0.002)  # the others are killed while they begin
            time.sleep(chance.uniform(0.0, 0.06))
            assert victims.kill(pid) == -9
            fresh = scene.new_acks()
            idle += not fresh
            acknowledged |= fresh
            if number % 10 == 8 and scene.store.exists():
                asyncio.run(replay(scene.store))
                scene.check(acknowledged)
        asyncio.run(replay(scene.store))
        kept = scene.check(acknowledged)
    victims.close()
    print(
        f"{options.kills} kills, {idle} of them before anything was acknowledged; "
        f"{len(acknowledged)} records acknowledged, 0 lost, {kept} kept "
        f"({time.perf_counter() - started:.0f} s, seed {options.seed})"
    )


if __name__ == "__main__":
    main()
