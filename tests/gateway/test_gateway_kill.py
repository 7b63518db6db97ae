"""A gateway that is killed under load: every request it acknowledged is in the store.

`python bench/kill_gateway.py` does the same two hundred times.
"""

import random
from pathlib import Path

from support.gateway_victim import GatewayVictim, serve_upstream

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
