"""Kills a gateway under load, and checks that every request it acknowledged is in the store.

    python bench/kill_gateway.py [--kills 200] [--seed 1] [--postgres]

Sixteen clients ask for whole answers and streams through `surecall serve`; some leave early. Each
kill is a SIGKILL at a random moment, and the next gateway goes on with the store that was left
behind. A request counts as acknowledged once its client has the last byte. The tests do the same
twice.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.gateway_victim import GatewayVictim, serve_upstream


async def run(options: argparse.Namespace, folder: Path, store: str) -> None:
    began = time.perf_counter()
    async with serve_upstream() as port:
        victim = GatewayVictim(folder, store, port, random.Random(options.seed))
        for number in range(options.kills):
            await victim.kill_one()
            if number % 20 == 19:
                lost = await victim.find_lost()
                print(f"{number + 1} kills, {len(victim.acknowledged)} acknowledged", flush=True)
                assert not lost, lost
        lost = await victim.find_lost()
    print(
        f"{options.kills} kills: {len(victim.acknowledged)} requests acknowledged, "
        f"{len(lost)} lost, {victim.cut} cut ({time.perf_counter() - began:.0f} s, "
        f"seed {options.seed})"
    )
    sys.exit(1 if lost else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true", help="in PostgreSQL, not SQLite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not options.postgres:
            asyncio.run(run(options, folder, str(folder / "requests.db")))
        from support.request_records import run_postgres

        with run_postgres() as server:
            asyncio.run(run(options, folder, server.get_uri()))


if __name__ == "__main__":
    main()
