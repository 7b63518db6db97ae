"""What every executor must do."""

import asyncio
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.eval_fakes import fake_finished, fake_job, fake_units
from surecall.base.errors import ConfigError
from surecall.evals.executors import Executor, LocalExecutor, ProcessExecutor
from surecall.evals.jobs import Finished, Job

Make = Callable[[Job], Executor]

ENGINES = ["local", "processes", *(["ray"] if importlib.util.find_spec("ray") else [])]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Start one small cluster for all tests of this file."""
    from surecall.evals.executors import connect_cluster

    with connect_cluster(None, cpus=2):
        yield


@pytest.fixture(params=ENGINES)
def make(request: pytest.FixtureRequest) -> Make:
    """Return how to make an executor of one kind."""
    return _maker(request)


def _maker(request: pytest.FixtureRequest) -> Make:
    if request.param == "local":
        return lambda job: LocalExecutor(job, concurrency=4)
    if request.param == "processes":
        return lambda job: ProcessExecutor(job, workers=2, concurrency=4)
    request.getfixturevalue("cluster")
    from surecall.evals.executors import RayExecutor

    return lambda job: RayExecutor(job, workers=2, concurrency=4)


@pytest.fixture(params=[engine for engine in ENGINES if engine != "local"])
def make_workers(request: pytest.FixtureRequest) -> Make:
    """Return how to make an executor whose workers can die."""
    return _maker(request)


class Basket:
    """Takes what is delivered."""

    def __init__(self, *, then: Callable[["Basket"], Any] | None = None) -> None:
        self.finished: list[Finished] = []
        self._then = then

    async def put(self, finished: Finished) -> None:
        """Keep one trial."""
        self.finished.append(finished)
        if self._then is not None:
            self._then(self)

    @property
    def indexes(self) -> list[int]:
        """The places of what arrived, sorted."""
        return sorted(item.row.index for item in self.finished)


async def test_every_unit_is_delivered_once(make: Make) -> None:
    """Nothing is lost, nothing comes twice, and each trial is what its unit makes of it."""
    units = fake_units(models=("fake:a", "fake:b"), trials=4)
    basket = Basket()
    await make(fake_job()).run(units, basket.put)
    assert basket.indexes == [unit.index for unit in units]
    by_index = {item.row.index: item for item in basket.finished}
    assert by_index == {unit.index: fake_finished(unit) for unit in units}


async def test_nothing_to_do_is_done(make: Make) -> None:
    """Without units nothing is opened and nothing delivered."""
    basket = Basket()
    await make(fake_job(bad="must not be opened")).run((), basket.put)
    assert basket.finished == []


async def test_draining_begins_nothing_more(make: Make) -> None:
    """What is under way is delivered; the rest is left for another time."""
    units = fake_units(trials=40)
    executor = make(fake_job(delay_s=0.02))
    basket = Basket(then=lambda _: executor.drain())
    await executor.run(units, basket.put)
    assert 1 <= len(basket.finished) < len(units)
    assert len(set(basket.indexes)) == len(basket.indexes)


async def test_draining_before_the_start_begins_nothing(make: Make) -> None:
    """An executor that was told to stop before it began does nothing."""
    executor, basket = make(fake_job()), Basket()
    executor.drain()
    await executor.run(fake_units(), basket.put)
    assert basket.finished == []


async def test_cancelling_stops_what_is_under_way(make: Make) -> None:
    """A cancelled run ends at once, however long its trials would take."""
    executor, arrived = make(fake_job(delay_s=0.01)), asyncio.Event()
    basket = Basket(then=lambda _: arrived.set())
    units = fake_units(trials=2000)
    running = asyncio.create_task(executor.run(units, basket.put))
    await arrived.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 0 < len(basket.finished) < len(units)


async def test_a_job_that_cannot_be_opened_is_an_error(make: Make) -> None:
    """The reason reaches whoever started the experiment."""
    job = Job(open="support.eval_fakes:no_such_name")
    with pytest.raises(ConfigError, match="no_such_name") as caught:
        await make(job).run(fake_units(), Basket().put)
    assert caught.value.code == "INVALID_CONFIG"


async def test_what_was_under_way_when_a_worker_died_is_run_again(
    make_workers: Make, tmp_path: Path
) -> None:
    """Every unit is delivered once; those that were finished are not run again."""
    log = tmp_path / "log"
    units = fake_units(trials=8)
    job = fake_job(dies_once=[5, 17], marks=str(tmp_path), log=str(log), delay_s=0.001)
    basket = Basket()
    await make_workers(job).run(units, basket.put)
    assert basket.indexes == [unit.index for unit in units]
    began = [int(line.split()[0]) for line in log.read_text().splitlines()]
    assert began.count(5) == 2
    assert len(began) <= len(units) + 2 * 2, "two deaths, two units under way in each"
