"""Routes by evidence, in a simulation of upstreams whose rates of broken calls drift."""

from itertools import pairwise
from math import pi, sin
from pathlib import Path
from random import Random

import pytest

from surecall.faults import FaultServer, FaultyProvider
from surecall.gateway.evidence import Choice, Tally

from .harness import ask, chat, make_settings, serve_gateway

REQUESTS = 120_000


def drift(at: int, number: int) -> float:
    """Return how often a call of an upstream is broken at a moment: each is best at some time."""
    turn = 2 * pi * (at / REQUESTS * 1.5 + number / 4)
    return 0.16 + 0.13 * sin(turn)


def simulate(seed: int, trying: float = 0.1) -> tuple[float, list[int], list[int]]:
    """Return the part of an oracle's gain, the requests of each, and the changes of the leader."""
    random, choice = Random(seed), Choice(min_requests=100, trying=trying)
    tallies, asked, changes = [Tally() for _ in range(4)], [0] * 4, []
    by_weight = by_oracle = by_evidence = 0.0
    for at in range(REQUESTS):
        rates = [drift(at, number) for number in range(4)]
        before = choice.leader
        chosen = choice.pick(tallies, [1.0] * 4, random)
        if before not in (None, choice.leader):
            changes.append(at)
        asked[chosen] += 1
        tallies[chosen].note(broken=random.random() < rates[chosen])
        by_weight += sum(rates) / 4
        by_oracle += min(rates)
        by_evidence += rates[chosen]
    return (by_weight - by_evidence) / (by_weight - by_oracle), asked, changes


@pytest.mark.parametrize("seed", range(5))
def test_most_of_an_oracles_gain_without_flapping(seed: int) -> None:
    """At least 80 % of it; the leader changes about as often as the best does, never back at once.

    In the time of the simulation the best upstream changes six times.
    """
    gain, asked, changes = simulate(seed)
    assert gain >= 0.8
    assert len(changes) <= 12
    assert all(later - earlier > 500 for earlier, later in pairwise(changes))
    assert min(asked) >= REQUESTS * 0.1 / 3 * 0.9  # its trying share, but for chance


def test_chance_alone_moves_nothing() -> None:
    """Of upstreams that are equally good one leads, for thousands of requests."""
    random, choice = Random(7), Choice(min_requests=100, trying=0.1)
    tallies, leaders = [Tally() for _ in range(4)], []
    for _ in range(50_000):
        chosen = choice.pick(tallies, [1.0] * 4, random)
        tallies[chosen].note(broken=random.random() < 0.1)
        leaders.append(choice.leader)
    assert sum(a != b for a, b in pairwise(leaders)) <= 15


def test_too_little_evidence_leaves_the_weights() -> None:
    """Nothing leads before every target has its number of requests."""
    choice, random = Choice(min_requests=10, trying=0.1), Random(1)
    tallies = [Tally(), Tally()]
    picked = [choice.pick(tallies, [3.0, 1.0], random) for _ in range(400)]
    assert 270 <= picked.count(0) <= 330
    assert choice.shares([3.0, 1.0]) == [0.75, 0.25]
    for tally, broken in zip(tallies, (True, False), strict=True):
        for _ in range(50):
            tally.note(broken=broken)
    choice.pick(tallies, [3.0, 1.0], random)
    assert choice.leader == 1
    assert choice.shares([3.0, 1.0]) == pytest.approx([0.1, 0.9])


async def test_a_route_moves_to_the_upstream_with_fewer_broken_calls(tmp_path: Path) -> None:
    """Over loopback: the one that leads gets most requests, and the Models page says why."""
    async with FaultServer(FaultyProvider()) as upstream:
        text = f"""
[upstreams.good]
url = "{upstream.url}"
probe = "off"
[upstreams.bad]
url = "{upstream.url}"
probe = "off"
[routes.m]
by = "evidence"
min_requests = 20
targets = [
  {{ upstream = "bad", model = "faults:arguments_python" }},
  {{ upstream = "good", model = "faults:clean" }},
]
"""
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            for _ in range(60):
                await ask(served, "POST", "/v1/chat/completions", chat("m"))
            before = len(served.store.records)
            for _ in range(60):
                await ask(served, "POST", "/v1/chat/completions", chat("m"))
            later = [record.upstream for record in served.store.records[before:]]
            shown = (await ask(served, "GET", "/ui/data/models")).json["routes"][0]
            named = served.gateway.state.router.list_targets("m")
    assert later.count("good") >= 45
    assert later.count("bad") >= 1
    assert [target.upstream.name for target in named] == ["bad", "good"]
    assert [target["leads"] for target in shown["targets"]] == [False, True]
    assert [target["share"] for target in shown["targets"]] == pytest.approx([0.1, 0.9])
    assert shown["targets"][0]["broken"]["low"] > shown["targets"][1]["broken"]["value"]
