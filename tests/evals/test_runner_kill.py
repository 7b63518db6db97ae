"""Killed at any moment, an experiment goes on: nothing that was counted is lost or counted twice.

`python bench/kill_evals.py` does the same two hundred times.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.eval_victim import Scene, Victims

KILLS = 20


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """The process that forks the victims of this file."""
    started = Victims()
    yield started
    started.close()


def test_killed_at_random_moments(victims: Victims, tmp_path: Path) -> None:
    """Twenty kills in a row, most of them while an earlier run is resumed."""
    chance = random.Random(20261115)
    scene = Scene(tmp_path)
    kept, killed = 0, 0
    for _ in range(KILLS):
        pid = victims.start(scene.order)
        time.sleep(chance.uniform(0.0, 0.05))
        killed += victims.kill(pid) == -9
        now = scene.check()
        assert now >= kept, "a trial that was there is gone"
        kept = now
    assert killed >= KILLS // 2
    victims.start(scene.order)
    assert victims.wait() == 0
    assert scene.check() >= len(scene.units)
    assert scene.unfinished == 0


def test_workers_do_not_outlive_the_process_that_started_them(
    victims: Victims, tmp_path: Path
) -> None:
    """Killed with all its workers at work, the main process leaves a run to go on with."""
    scene = Scene(tmp_path, trials=200, engine="processes")
    pid = victims.start(scene.order)
    deadline = time.monotonic() + 60
    while not (tmp_path / "acks").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    workers = _children(pid)
    assert workers
    assert victims.kill(pid) == -9
    assert scene.check() > 0
    while any(map(_is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(_is_alive, workers))
    victims.start({**scene.order, "engine": "local"})
    assert victims.wait() == 0
    assert scene.check() == len(scene.units)


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(number) for number in path.read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
