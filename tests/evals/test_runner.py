"""An experiment is run to its end, stopped, and resumed; no trial is lost or counted twice."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.eval_fakes import (
    FakeMatrix,
    fake_finished,
    fake_job,
    fake_manifest,
    fake_row,
    fake_trials_job,
    fake_units,
)
from surecall.base.errors import ConfigError, StoreError
from surecall.evals.executors import Deliver, LocalExecutor, ProcessExecutor
from surecall.evals.jobs import Finished, Job
from surecall.evals.records import TrialRow, Unit
from surecall.evals.runner import (
    CellFinished,
    ExperimentEnded,
    ExperimentStarted,
    Outbox,
    ProgressEvent,
    Stop,
    Stopping,
    Tally,
    TrialFinished,
    run_experiment,
)
from surecall.evals.store import RunInfo, RunStore
from surecall.evals.suites import SUITES, load_suite
from surecall.evals.taxonomy import was_unanswered

UNITS = fake_units(models=("fake:a", "fake:b"), trials=5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """An empty store."""
    with RunStore(tmp_path / "evals.db") as made:
        yield made


class Experiment:
    """One experiment that may be run several times."""

    def __init__(self, store: RunStore, units: tuple[Unit, ...] = UNITS) -> None:
        self.store = store
        self.units = units
        self.manifest = fake_manifest(units)
        self.events: list[ProgressEvent] = []

    async def run(
        self, executor: Any, *, run_id: str | None = None, stop: Stop | None = None
    ) -> RunInfo:
        """Run what is left."""
        return await run_experiment(
            FakeMatrix(self.units),
            self.manifest,
            self.store,
            executor=executor,
            run_id=run_id,
            on_progress=self.events.append,
            stop=stop,
        )

    def told(self, kind: type) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


async def test_an_experiment_is_run_to_its_end(store: RunStore) -> None:
    """Every trial is there, in order, and the run is complete."""
    experiment = Experiment(store)
    info = await experiment.run(LocalExecutor(fake_job(), concurrency=4))
    rows = [fake_row(unit) for unit in UNITS]
    assert list(store.rows(info.id)) == rows
    assert (info.status, info.done, info.units) == ("complete", len(UNITS), len(UNITS))
    assert info.strict_ok == sum(row.strict_ok for row in rows)
    assert store.find_unfinished(experiment.manifest.hash) is None
    assert store.body(info.id, 3) == fake_finished(UNITS[3]).body


async def test_what_happens_is_told(store: RunStore) -> None:
    """A start, every trial, every cell that is over, and an end."""
    experiment = Experiment(store)
    info = await experiment.run(LocalExecutor(fake_job(), concurrency=4))
    started, *between, ended = experiment.events
    assert isinstance(started, ExperimentStarted)
    assert (started.run_id, started.resumed) == (info.id, False)
    assert isinstance(ended, ExperimentEnded)
    assert ended.info == info
    trials, cells = experiment.told(TrialFinished), experiment.told(CellFinished)
    assert len(between) == len(trials) + len(cells)
    assert sorted(event.row.index for event in trials) == [unit.index for unit in UNITS]
    assert {event.count.cell for event in cells} == {unit.cell for unit in UNITS}
    assert all(event.count.done == event.count.total == 5 for event in cells)


async def test_a_trial_is_on_disk_before_it_is_told(store: RunStore) -> None:
    """Whoever hears of a trial finds it in the file, also with another connection."""
    seen: list[bool] = []
    reader = sqlite3.connect(store.path)

    def look(event: ProgressEvent) -> None:
        if isinstance(event, TrialFinished):
            query = "SELECT count(*) FROM v_trials WHERE idx = ?"
            seen.append(reader.execute(query, (event.row.index,)).fetchone() == (1,))

    manifest = fake_manifest(UNITS)
    executor = LocalExecutor(fake_job(), concurrency=3)
    await run_experiment(FakeMatrix(UNITS), manifest, store, executor=executor, on_progress=look)
    reader.close()
    assert seen == [True] * len(UNITS)


async def test_draining_leaves_a_run_that_can_be_resumed(store: RunStore) -> None:
    """What was under way is kept; the next time only the rest is run."""
    experiment, stop = Experiment(store), Stop()
    executor = StoppingExecutor(fake_job(delay_s=0.002), stop, after=7)
    first = await experiment.run(executor, stop=stop)
    assert first.status == "interrupted"
    assert 7 <= first.done < len(UNITS)
    assert [event.how for event in experiment.told(Stopping)] == ["draining"]
    assert store.find_unfinished(experiment.manifest.hash) == first.id
    experiment.events.clear()
    second = await experiment.run(LocalExecutor(fake_job()), run_id=first.id)
    assert (second.id, second.status, second.done) == (first.id, "complete", len(UNITS))
    (started,) = experiment.told(ExperimentStarted)
    assert started.resumed
    assert len(experiment.told(TrialFinished)) == len(UNITS) - first.done
    (ended,) = experiment.told(ExperimentEnded)
    assert (ended.tally.done, ended.tally.earlier) == (len(UNITS), first.done)
    assert list(store.rows(first.id)) == [fake_row(unit) for unit in UNITS]


async def test_stopping_at_once_keeps_what_was_finished(store: RunStore) -> None:
    """The second request cancels what is under way, and everything that was told is there."""
    experiment, stop = Experiment(store), Stop()
    executor = StoppingExecutor(fake_job(delay_s=0.001), stop, after=4, times=2)
    info = await experiment.run(executor, stop=stop)
    assert info.status == "interrupted"
    assert info.done < len(UNITS)
    assert [event.how for event in experiment.told(Stopping)] == ["draining", "now"]
    told = {event.row.index for event in experiment.told(TrialFinished)}
    assert told == store.done(info.id)


async def test_patience_with_what_is_under_way_ends(store: RunStore) -> None:
    """A trial that never ends does not hold up the end for ever."""
    experiment, stop = Experiment(store), Stop(drain_s=0.01)
    stop.ask()
    info = await experiment.run(HangingExecutor(), stop=stop)
    assert (info.status, info.done) == ("interrupted", 0)
    assert [event.how for event in experiment.told(Stopping)] == ["draining", "now"]


async def test_cancelling_keeps_what_was_finished(store: RunStore) -> None:
    """The run is interrupted, and can be resumed."""
    experiment = Experiment(store)
    task = asyncio.create_task(experiment.run(HangingExecutor(after=3)))
    while len(experiment.told(TrialFinished)) < 3:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    run = store.find_unfinished(experiment.manifest.hash)
    assert run is not None
    assert store.info(run).status == "interrupted"
    assert not store.is_held(run)
    assert {event.row.index for event in experiment.told(TrialFinished)} == store.done(run)


async def test_a_complete_run_has_nothing_left_to_do(store: RunStore) -> None:
    """Going on with it opens nothing and changes nothing."""
    experiment = Experiment(store)
    info = await experiment.run(LocalExecutor(fake_job()))
    again = await experiment.run(LocalExecutor(fake_job(bad="opened")), run_id=info.id)
    assert (again.id, again.status, again.done) == (info.id, "complete", len(UNITS))


async def test_two_processes_cannot_work_on_one_run(store: RunStore) -> None:
    """The second one is told before it asks anybody anything."""
    experiment = Experiment(store)
    run = store.create(experiment.manifest)
    with store.hold(run), pytest.raises(StoreError) as caught:
        await experiment.run(LocalExecutor(fake_job()), run_id=run)
    assert caught.value.code == "RUN_IN_USE"
    assert store.done(run) == set()


async def test_a_job_that_cannot_be_opened_leaves_an_interrupted_run(store: RunStore) -> None:
    """The error comes through, and the run can be resumed once it is mended."""
    experiment = Experiment(store)
    with pytest.raises(ConfigError):
        await experiment.run(LocalExecutor(Job(open="nowhere:at_all")))
    run = store.find_unfinished(experiment.manifest.hash)
    assert run is not None
    assert store.info(run).status == "interrupted"
    assert (await experiment.run(LocalExecutor(fake_job()), run_id=run)).status == "complete"


async def test_a_disk_that_fails_ends_the_experiment(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more is begun, and nothing is counted that is not on disk."""
    experiment = Experiment(store)
    add, calls = store.add, 0

    def failing(run_id: str, trials: Any) -> tuple[int, ...]:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise StoreError("STORE_WRITE_FAILED", "disk full")
        return add(run_id, trials)

    monkeypatch.setattr(store, "add", failing)
    with pytest.raises(StoreError, match="disk full"):
        await experiment.run(LocalExecutor(fake_job(delay_s=0.001), concurrency=2))
    run = store.find_unfinished(experiment.manifest.hash)
    assert run is not None
    assert {event.row.index for event in experiment.told(TrialFinished)} == store.done(run)


async def test_results_that_come_twice_count_once(store: RunStore) -> None:
    """Whatever an executor does, a trial is told and counted one time."""
    experiment = Experiment(store)
    info = await experiment.run(StutteringExecutor())
    assert info.done == len(UNITS)
    assert len(experiment.told(TrialFinished)) == len(UNITS)
    (ended,) = experiment.told(ExperimentEnded)
    assert ended.tally.done == len(UNITS)


async def test_several_processes_give_the_same_rows(store: RunStore) -> None:
    """Where trials run makes no difference to what is kept."""
    info = await Experiment(store).run(ProcessExecutor(fake_job(), workers=2, concurrency=4))
    assert list(store.rows(info.id)) == [fake_row(unit) for unit in UNITS]
    assert store.body(info.id, 7) == fake_finished(UNITS[7]).body


async def test_cases_go_through_the_real_loop(store: RunStore) -> None:
    """The whole way from a unit to a row: two of three seeds pass."""
    job = fake_trials_job(models=["fake:a", "fake:b"])
    info = await Experiment(store).run(LocalExecutor(job, concurrency=8))
    rows = list(store.rows(info.id))
    assert [row.strict_ok for row in rows] == [unit.seed % 3 != 0 for unit in UNITS]
    assert all(row.simulated and len(row.calls) == 1 and row.turns == 2 for row in rows)
    body = store.body(info.id, 0)
    assert body.transcript


async def test_the_outbox_gives_all_that_wait_at_once() -> None:
    """And holds back whoever brings more than it takes."""
    outbox = Outbox(max_waiting=2)
    finished = [fake_finished(unit) for unit in UNITS[:3]]
    await outbox.put(finished[0])
    await outbox.put(finished[1])
    third = asyncio.create_task(outbox.put(finished[2]))
    await asyncio.sleep(0)
    assert not third.done()
    assert await outbox.take() == finished[:2]
    await third
    outbox.close()
    assert await outbox.take() == finished[2:]
    assert await outbox.take() == []


def test_a_tally_guesses_what_is_left() -> None:
    """From the pace of this process, not from trials that were there before."""
    tally = Tally(UNITS)
    assert tally.remaining_s(10.0) is None
    for unit in UNITS[:10]:
        tally.add(fake_row(unit), is_earlier=True)
    for unit in UNITS[10:15]:
        tally.add(fake_row(unit))
    assert (tally.done, tally.earlier, tally.total) == (15, 10, 30)
    assert tally.remaining_s(10.0) == 30.0
    assert (tally.input_tokens, tally.output_tokens, tally.cost_usd) == (1500, 150, None)


def row_with(**fields: Any) -> TrialRow:
    """Return a row with some fields set."""
    given: dict[str, Any] = {"original_ok": False, "strict_ok": False, **fields}
    return TrialRow(index=0, cell=UNITS[0].cell, **given)


def test_cells_in_which_nobody_answered_are_known() -> None:
    """A model that was never heard is not a model that failed."""
    tally = Tally(UNITS)
    for unit in UNITS:
        refused = replace(row_with(code="AUTH"), cell=unit.cell)
        tally.add(refused if unit.cell.model == "fake:b" else fake_row(unit))
    assert {cell.model for cell in tally.unanswered_cells} == {"fake:b"}
    assert tally.unanswered == 15


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, False),
        ({"code": "AUTH"}, True),
        ({"code": "CONNECTION_REFUSED", "turns": 1}, True),
        ({"code": "UPSTREAM_HTML", "turns": 1}, True),
        ({"code": "MAX_TURNS_REACHED", "turns": 1}, False),
        ({"code": "RATE_LIMIT", "turns": 2}, False),
        ({"code": "NO_TOOL_CALLS", "turns": 1}, False),
    ],
)
def test_unanswered_means_never_heard(fields: dict[str, Any], expected: bool) -> None:
    """One answer is enough to say something about a model."""
    assert was_unanswered(row_with(**fields)) is expected


def test_an_unknown_suite_is_an_error_with_a_suggestion() -> None:
    """A slip of the pen is answered with what was meant."""
    assert next(iter(SUITES)) == "state"
    assert load_suite("state").name == "state"
    with pytest.raises(ConfigError, match="Did you mean 'state'"):
        load_suite("stat")


# executors that behave in special ways


class StoppingExecutor(LocalExecutor):
    """Asks for a stop after so many trials."""

    def __init__(self, job: Job, stop: Stop, *, after: int, times: int = 1) -> None:
        super().__init__(job, concurrency=3)
        self._stop, self._after, self._times = stop, after, times
        self._count = 0

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run, and count what is delivered."""

        async def counted(finished: Finished) -> None:
            await deliver(finished)
            self._count += 1
            if self._count == self._after:
                for _ in range(self._times):
                    self._stop.ask()

        await super().run(units, counted)


class HangingExecutor:
    """Finishes so many trials, and then none any more."""

    name = "hanging"

    def __init__(self, after: int = 0) -> None:
        self._after = after

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Deliver the first ones, then wait for ever."""
        for unit in units[: self._after]:
            await deliver(fake_finished(unit))
        await asyncio.Event().wait()

    def drain(self) -> None:
        """Do not care."""


class StutteringExecutor:
    """Delivers everything twice."""

    name = "stuttering"

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Deliver each unit two times."""
        for unit in units:
            await deliver(fake_finished(unit))
            await deliver(fake_finished(unit))

    def drain(self) -> None:
        """Nothing to drain."""
