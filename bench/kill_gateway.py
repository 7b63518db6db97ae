"""Kills a gateway under load, and checks that every request it acknowledged is in the store.

    python bench/kill_gateway.py [--kills 200] [--seed 1] [--postgres]
    python bench/kill_gateway.py --kill-store [--kills 30]
    python bench/kill_gateway.py --poison [--requests 3000] [--postgres]

Sixteen clients ask for whole answers and streams through `surecall serve`; some leave early. Each
kill is a SIGKILL at a random moment, and the next gateway goes on with the store that was left
behind. A request counts as acknowledged once its client has the last byte. The tests do the same
twice.

With `--kill-store` the server of the store is killed instead, under 24 clients and with the bodies
kept; it has to be used again after each kill. With `--poison` every number of every reply is one
that no store takes. Both also want a log without a traceback.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.gateway_victim import FIGURES, GatewayVictim, serve_upstream


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


async def serve(options: argparse.Namespace, folder: Path, store: str, server: Any) -> None:
    """Serve one gateway in trouble, and check what is left of it."""
    began = time.perf_counter()
    async with serve_upstream(FIGURES if options.poison else ("",)) as port:
        chance = random.Random(options.seed)
        kinds = {"keep_bodies": not options.poison, "is_poisoned": options.poison}
        victim = GatewayVictim(folder, store, port, chance, **kinds)

        async def trouble(port: int) -> None:
            if options.poison:
                await victim.wait_for_requests(options.requests)
                return
            for number in range(options.kills):
                await victim.kill_store(server, port)
                print(f"{number + 1}: {len(victim.acknowledged)} acknowledged", flush=True)

        log = await victim.serve(trouble)
        lost = await victim.find_lost()
    print(
        f"{len(victim.acknowledged)} requests acknowledged, {len(lost)} lost, {victim.cut} cut, "
        f"{log.count('Traceback')} tracebacks in {len(log.splitlines())} lines of the log "
        f"({time.perf_counter() - began:.0f} s, seed {options.seed})"
    )
    sys.exit(1 if lost or "Traceback" in log else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true", help="in PostgreSQL, not SQLite")
    parser.add_argument(
        "--kill-store", action="store_true", help="kill its server, not the gateway"
    )
    parser.add_argument("--poison", action="store_true", help="answer with figures no store takes")
    parser.add_argument("--requests", type=int, default=3000, help="how many with --poison")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not (options.postgres or options.kill_store):
            file = str(folder / ".surecall/requests.db")
            asyncio.run(
                serve(options, folder, file, None) if options.poison else run(options, folder, file)
            )
        from support.request_records import run_postgres

        with run_postgres() as server:
            uri = server.get_uri()
            if options.poison or options.kill_store:
                asyncio.run(serve(options, folder, uri, server))
            asyncio.run(run(options, folder, uri))


if __name__ == "__main__":
    main()
