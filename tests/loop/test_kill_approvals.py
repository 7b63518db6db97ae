"""Killed at every step of pausing, deciding and resuming, a run does each thing at most once."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import Code

from .victim import Scene, Zygote, approve_all, check_race

pytest.importorskip("surecall.store")

TURNS = [["write", "pay", "read"], ["pay"], ["write"]]
EFFECTS = 4
UNKNOWN = str(Code.OUTCOME_UNKNOWN)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """The process that forks the victims of this file."""
    process = Zygote()
    yield process
    process.close()


def make_scene(zygote: Zygote, folder: Path) -> Scene:
    """Return a run that waits twice."""
    folder.mkdir()
    return Scene(zygote, folder, TURNS, {"run_id": folder.name})


def finish(scene: Scene, store: str) -> dict[str, Any]:
    """Play without kills to the end."""
    while True:
        report = scene.pause_and_resume(store)
        assert report is not None
        if report["code"] != "APPROVAL_PENDING":
            return report


def check_effects(scene: Scene, report: dict[str, Any]) -> None:
    """Check that nothing happened twice, and that what did not happen was reported."""
    writes = [line.split()[:2] for line in scene.writes]
    assert len(writes) == len({tuple(line) for line in writes}), writes
    if report["code"] == "APPROVAL_NOT_FOUND":
        assert len(writes) == EFFECTS  # it was killed when it had its answer
        return
    assert (report["code"], report["text"]) == ("", "the end")
    lost = sum(UNKNOWN in told for told in report["told"])
    assert EFFECTS - lost <= len(writes) <= EFFECTS
    assert len(report["told"]) == 5


STEPS = [
    # until it waits
    (0, "before add", 1),
    (0, "after add", 1),
    # the approved call runs, and the run waits again
    (1, "before replace_run", 1),
    (1, "before replace_run", 2),
    (1, "after replace_run", 2),
    (1, "before replace_run", 3),
    (1, "after add", 1),
    # to the end
    (2, "after use", 1),
    (2, "before drop_run", 1),
    (2, "after drop_run", 1),
]
"""Which of the three processes is killed, at which step of the store, and at which time of it."""


@pytest.mark.parametrize(("process", "moment", "number"), STEPS)
def test_a_run_killed_at_a_step_of_the_store(
    zygote: Zygote, tmp_path: Path, process: int, moment: str, number: int
) -> None:
    """A claim, an intent, a result, a use, a pause, the end: nothing is repeated."""
    scene = make_scene(zygote, tmp_path / "scene")
    store = str(scene.folder / "approvals.db")
    for _ in range(process):
        scene.pause_and_resume(store)
    assert scene.pause_and_resume(store, moment=moment, number=number) is None
    check_effects(scene, finish(scene, store))


@pytest.mark.parametrize("moment", ["during pay", "during write", "after use", "before use"])
def test_an_approval_that_was_used_by_a_process_that_died(
    zygote: Zygote, tmp_path: Path, moment: str
) -> None:
    """Whatever is not known is refused, and the approval is spent at most once."""
    scene = make_scene(zygote, tmp_path / "scene")
    store = str(scene.folder / "approvals.db")
    paused = scene.pause_and_resume(store)
    assert paused is not None
    assert paused["code"] == "APPROVAL_PENDING"
    assert scene.pause_and_resume(store, moment=moment) is None or moment == "during write"
    report = finish(scene, store)
    check_effects(scene, report)
    lost = [UNKNOWN in told for told in report["told"]]
    assert lost == [False, moment != "during write", False, False, False]
    paid = [line for line in scene.effects if line.startswith("pay 0.1")]
    assert len(paid) == (1 if moment in ("during pay", "during write") else 0)


def test_a_run_killed_at_random_moments(zygote: Zygote, tmp_path: Path) -> None:
    """From outside, wherever it happens to be; `bench/kill_runs.py` does it hundreds of times."""
    chance = random.Random(7)
    for number in range(2):
        scene = make_scene(zygote, tmp_path / f"random{number}")
        store = str(scene.folder / "approvals.db")
        for _ in range(6):
            report = scene.pause_and_resume(store, kill_after_s=chance.uniform(0.0, 0.1))
            if report is not None and report["code"] != "APPROVAL_PENDING":
                break
        else:
            report = finish(scene, store)
        check_effects(scene, report)


@pytest.fixture(scope="module")
def rivals(zygote: Zygote) -> Iterator[list[Zygote]]:
    """Two processes that fork victims at the same time."""
    other = Zygote()
    yield [zygote, other]
    other.close()


@pytest.mark.parametrize("takes_s", [0.0, 0.02, 0.1])
def test_two_processes_that_resume_one_run_pay_once(
    rivals: list[Zygote], tmp_path: Path, takes_s: float
) -> None:
    """Who comes second is told with a code, and nobody is told that an outcome is unknown."""
    store = str(tmp_path / "approvals.db")
    for number in range(3):
        scene = make_scene(rivals[0], tmp_path / f"run{number}")
        report = scene.pause_and_resume(store)
        while report is not None and report["code"] == "APPROVAL_PENDING":
            reports = scene.race(rivals, store, takes_s=takes_s)
            check_race(reports)
            report = next(each for each in reports if each["code"] in ("", "APPROVAL_PENDING"))
            approve_all(store)
        assert report is not None
        check_effects(scene, report)
        assert not any(UNKNOWN in told for told in report["told"])
