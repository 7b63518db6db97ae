"""How trials share a provider, and what becomes of a worker that dies."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.eval_fakes import fake_finished, fake_job, fake_units
from surecall.base.errors import ConfigError
from surecall.evals import executors
from surecall.evals.executors import LocalExecutor, ProcessExecutor, lost_trial
from surecall.evals.jobs import Finished, Job, Lane, load_name
from surecall.evals.records import Unit


class Watch:
    """A job of this process that notes how many trials are under way."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.most: dict[str, int] = {}

    async def run(self, unit: Unit) -> Finished:
        """Run a unit with a short wait in it."""
        model = unit.cell.model
        self.now[model] = self.now.get(model, 0) + 1
        self.most[model] = max(self.most.get(model, 0), self.now[model])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.now[model] -= 1
        return fake_finished(unit)


async def run_watched(
    monkeypatch: pytest.MonkeyPatch, units: tuple[Unit, ...], job: Job, concurrency: int
) -> Watch:
    """Run units in this process under watch."""
    from contextlib import asynccontextmanager

    watch = Watch()

    @asynccontextmanager
    async def opened(_job: Job) -> Any:
        yield watch.run

    monkeypatch.setattr(executors, "open_job", opened)

    async def put(_: Finished) -> None:
        return None

    await LocalExecutor(job, concurrency=concurrency).run(units, put)
    return watch


async def test_as_many_run_at_once_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each provider has its own limit, and one trial at a time where its lane says so."""
    units = fake_units(models=("calm", "local"), trials=20)
    job = fake_job(lanes={"local": Lane(name="local", max_concurrency=1)})
    watch = await run_watched(monkeypatch, units, job, 6)
    assert watch.most == {"calm": 6, "local": 1}


async def test_a_provider_that_protests_gets_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first round only its own lane is slower."""
    units = fake_units(models=("pressed", "calm"), trials=30)
    watch = await run_watched(monkeypatch, units, fake_job(), 8)
    assert watch.most == {"pressed": 8, "calm": 8}
    assert watch.now == {"pressed": 0, "calm": 0}


async def test_units_begin_in_their_order(tmp_path: Path) -> None:
    """One at a time, the order of running is the order of the matrix."""
    log = tmp_path / "log"
    units = fake_units(trials=5)

    async def put(_: Finished) -> None:
        return None

    await LocalExecutor(fake_job(log=str(log)), concurrency=1).run(units, put)
    began = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert began == [unit.index for unit in units]


async def test_what_a_unit_raises_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that breaks its promise is an error of the program, and nothing goes on behind it."""
    from contextlib import asynccontextmanager

    begun: list[int] = []

    async def run(unit: Unit) -> Finished:
        begun.append(unit.index)
        await asyncio.sleep(0)
        raise RuntimeError("broken")

    @asynccontextmanager
    async def opened(_job: Job) -> Any:
        yield run

    monkeypatch.setattr(executors, "open_job", opened)

    async def put(_: Finished) -> None:
        return None

    with pytest.raises(RuntimeError, match="broken"):
        await LocalExecutor(fake_job(), concurrency=2).run(fake_units(trials=10), put)
    assert len(begun) <= 4


def test_a_lost_trial_is_recorded_as_one() -> None:
    """It is an error of the endpoint, with a code of its own."""
    (unit, *_) = fake_units()
    row = lost_trial(unit).row
    assert (row.code, row.original_ok, row.strict_ok, row.cell, row.is_error) == (
        "WORKER_LOST",
        False,
        False,
        unit.cell,
        True,
    )


@pytest.mark.parametrize("path", ["", "no.such.module:x", "surecall.evals.records:Nothing", "os"])
def test_a_name_that_cannot_be_loaded_is_a_coded_error(path: str) -> None:
    """Whatever is wrong with it, it is the configuration that is wrong."""
    with pytest.raises(ConfigError) as caught:
        load_name(path)
    assert caught.value.code == "INVALID_CONFIG"


# processes


async def test_a_worker_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    """Somebody kills a process; the run ends as if nothing had happened."""
    log = tmp_path / "log"
    units = fake_units(trials=20)
    executor = ProcessExecutor(fake_job(delay_s=0.005, log=str(log)), workers=2, concurrency=4)
    delivered: list[int] = []
    killed: set[int] = set()

    async def put(finished: Finished) -> None:
        delivered.append(finished.row.index)
        if len(delivered) == 5:
            killed.add(min(executor.pids))
            os.kill(min(executor.pids), signal.SIGKILL)

    await executor.run(units, put)
    assert sorted(delivered) == [unit.index for unit in units]
    began = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert len(began) <= len(units) + 2, "at most the two that were under way are repeated"
    assert executor.pids == set()
    assert len(killed) == 1


async def test_a_unit_that_kills_every_worker_is_given_up() -> None:
    """It is recorded as lost after three deaths; all others are what they should be."""
    units = fake_units(trials=3)
    delivered: list[Finished] = []

    async def put(finished: Finished) -> None:
        delivered.append(finished)

    await ProcessExecutor(fake_job(dies=[4]), workers=2, concurrency=4).run(units, put)
    assert sorted(item.row.index for item in delivered) == [unit.index for unit in units]
    lost = [item.row for item in delivered if item.row.code == "WORKER_LOST"]
    assert [(row.index, row.strict_ok, row.outcome) for row in lost] == [(4, False, "error")]


async def test_workers_that_die_before_they_begin_are_an_error() -> None:
    """Three of them are enough to know that the fault is not in any trial."""

    async def put(_: Finished) -> None:
        raise AssertionError("nothing can have been run")

    executor = ProcessExecutor(fake_job(dies_when_opened=True), workers=1, concurrency=1)
    with pytest.raises(ConfigError, match="before they could begin") as caught:
        await executor.run(fake_units(), put)
    assert caught.value.code == "WORKER_LOST"
