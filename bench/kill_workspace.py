"""Kills processes that patch, propose, confirm and commit, and checks the workspace they leave.

    python bench/kill_workspace.py [--kills 250] [--seed 1]

Over SQLite and a real PostgreSQL server each. Every fifth kill is a SIGKILL from outside at a
random moment; the others are at a boundary: before and after each transaction and each of its
statements, also between using a confirmation and the commit. The next process goes
on with what was left behind, with the same request ids. The tests do the same a dozen times.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.request_records import run_postgres
from support.workspace_victim import KillScene, Workers

BOUNDARIES = 25


def kill(workers: Workers, scene: KillScene, kills: int, chance: random.Random) -> None:
    started, outside = time.perf_counter(), 0
    asyncio.run(scene.begin())
    for number in range(kills):
        if number % 5 == 4:
            (pid,) = workers.start(scene.order(None))
            time.sleep(chance.uniform(0.0, 0.15))
            os.kill(pid, signal.SIGKILL)
            outside += 1
        else:
            workers.start(scene.order(chance.randrange(BOUNDARIES)))
        assert workers.wait() == [-9]
        if number % 50 == 49:
            asyncio.run(scene.check())
    acknowledged, committed = asyncio.run(scene.check())
    print(
        f"{scene.place.partition(':')[0] if '://' in scene.place else 'sqlite'}: {kills} kills, "
        f"{outside} of them from outside; {acknowledged} commits acknowledged, {committed} in the "
        f"store, 0 lost, 0 doubled ({time.perf_counter() - started:.0f} s)"
    )
    for boundary, count in sorted(scene.boundaries.items()):
        print(f"    {count:4}  {boundary.replace(':', ' ').replace('_', ' ')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=250, help="for each database")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    workers = Workers()
    with tempfile.TemporaryDirectory() as folder:
        kill(workers, KillScene(str(Path(folder) / "s.db"), Path(folder)), options.kills, chance)
    with tempfile.TemporaryDirectory() as folder, run_postgres() as server:
        kill(workers, KillScene(server.get_uri(), Path(folder)), options.kills, chance)
    workers.close()


if __name__ == "__main__":
    main()
