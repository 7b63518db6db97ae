"""A gateway in trouble under load: every request it acknowledged is in the store.

`python bench/kill_gateway.py` does the same two hundred times, with `--kill-store` thirty times.
"""

import random
from pathlib import Path

from support.gateway_victim import FIGURES, GatewayVictim, serve_upstream
from support.request_records import run_postgres

KILLS = 2


async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    """Two gateways, one after the other on one store, each killed with sixteen clients waiting."""
    async with serve_upstream() as port:
        store = str(tmp_path / "requests.db")
        victim = GatewayVictim(tmp_path, store, port, random.Random(20261116))
        for _ in range(KILLS):
            assert await victim.kill_one() > 0
        assert await victim.find_lost() == set()
    assert len(victim.acknowledged) >= KILLS
    assert victim.cut > 0


async def test_a_server_of_the_store_that_is_killed_is_used_again(tmp_path: Path) -> None:
    """Twice, under 24 clients with bodies kept; no client waits, and no record is lost."""
    with run_postgres() as server:
        async with serve_upstream() as port:
            chance = random.Random(20261118)
            victim = GatewayVictim(tmp_path, server.get_uri(), port, chance, keep_bodies=True)

            async def kill(port: int) -> None:
                for _ in range(KILLS):
                    await victim.kill_store(server, port)

            log = await victim.serve(kill)
            assert await victim.find_lost() == set()
    assert "Traceback" not in log
    assert "Records are stored again" in log


async def test_figures_that_no_store_takes_harm_nobody(tmp_path: Path) -> None:
    """24 clients at once get their answers, and every one of them leaves a record."""
    async with serve_upstream(FIGURES) as port:
        store = str(tmp_path / ".surecall" / "requests.db")
        victim = GatewayVictim(tmp_path, store, port, random.Random(1), is_poisoned=True)
        log = await victim.serve(lambda _: victim.wait_for_requests(300))
        assert await victim.find_lost() == set()
    assert log == ""
