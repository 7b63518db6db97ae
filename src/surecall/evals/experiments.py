"""An experiment from Python: planned, run or resumed, and looked at afterwards.

The command line is a thin layer over this: it parses flags, draws progress and prints.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, StoreError
from surecall.base.sqlite_files import explain_database_errors
from surecall.evals.cases import Price, parse_price
from surecall.models.config import Config, load_config

from .diff import DiffResult, Judged, diff_rows
from .executors import Executor, LocalExecutor, ProcessExecutor, RayExecutor
from .export import Exported, export_run
from .gates import MAX_ERRORS, Gate, GateReport, Undecided, check_gates, parse_gate
from .jobs import Job
from .matrix import Estimate, estimate
from .metrics import Summary, summarize
from .metrics.tally import Tallies, tally_rows
from .planning import Experiment, Wanted, plan_experiment
from .recommendation import Recommendation, recommend
from .records import Manifest, TrialBody, TrialRow
from .runner import OnProgress, Stop, run_experiment
from .store import FIRST_EVAL, LATEST, STORE_FILE, RunInfo, RunStore, check_tag
from .taxonomy import was_unanswered

LATEST_MATCH: Final = "(the latest of this experiment)"
"""What `--resume` without a run stands for."""

_SHOWN_DIFFERENCES: Final = 8


class ChosenRun(Struct, frozen=True, kw_only=True):
    """Which run the trials belong to."""

    run_id: str | None
    """None for a new one."""
    is_complete: bool = False
    notes: tuple[str, ...] = ()


def choose_run(
    store: RunStore, manifest: Manifest, *, resume: str | None, is_new: bool
) -> ChosenRun:
    """Choose the run to resume, or none; one that does not fit is never taken.

    Raises:
        StoreError: The run that is named differs, or there is none to resume.
    """
    if is_new:
        return ChosenRun(run_id=None)
    if resume is not None and resume != LATEST_MATCH:
        return _check_named(store, manifest, resume)
    unfinished = store.find_unfinished(manifest.hash)
    if unfinished is not None:
        return ChosenRun(run_id=unfinished)
    if resume is None:
        return ChosenRun(run_id=None, notes=_explain_left(store, manifest))
    complete = store.find_complete(manifest.hash)
    if complete is None:
        raise StoreError(
            Code.RUN_NOT_FOUND,
            "there is no run of this experiment to resume.",
            hint="Leave out --resume to begin one.",
        )
    return ChosenRun(run_id=complete, is_complete=True)


def find_latest(store: RunStore) -> str:
    """Return the latest run that nobody has finished or works on; otherwise the latest of all."""
    waiting = (
        info.id for info in store.runs() if not info.is_complete and not store.is_held(info.id)
    )
    return next(waiting, LATEST)


def _check_named(store: RunStore, manifest: Manifest, reference: str) -> ChosenRun:
    info = store.info(store.resolve(reference))
    differences = info.manifest.differences(manifest)
    if differences:
        raise StoreError(
            Code.RUN_MISMATCH,
            f"Run {info.id} was made with other settings: {'; '.join(_shorten(differences))}.",
            hint="Give the flags it was begun with, or begin a new run with --new.",
        )
    return ChosenRun(run_id=info.id, is_complete=info.is_complete)


def _explain_left(store: RunStore, manifest: Manifest) -> tuple[str, ...]:
    """Say why an unfinished run that looks the same is not resumed."""
    for info in store.runs():
        if not info.is_complete and info.manifest.axes == manifest.axes:
            differences = _shorten(info.manifest.differences(manifest))
            return (
                f"run {info.id} is not finished, but cannot be resumed:",
                *(f"  {line}" for line in differences),
            )
    return ()


def _shorten(differences: Sequence[str]) -> list[str]:
    more = len(differences) - _SHOWN_DIFFERENCES
    return [*differences[:_SHOWN_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])]


_FOLDER: Final = Path(".surecall")
_HISTORY: Final = 2_000
"""Trials of earlier runs that an estimate is made from."""


# planning


def plan(
    models: str | None = None,
    *,
    suites: Sequence[str] | str | None = None,
    scenarios: str | None = None,
    profiles: str | None = None,
    strategies: str | None = None,
    fallbacks: str | None = None,
    trials: int | None = None,
    seed: int | None = None,
    timeout_s: float | None = None,
    options: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    max_wait_s: float | None = None,
    cases: str | None = None,
    sample: int | None = None,
    limit: int | None = None,
    shuffle: bool | None = None,
    cache: str | Path | None = None,
    prices: Mapping[str, Price | str] | None = None,
    config: Config | None = None,
) -> Experiment:
    """Plan an experiment: who takes part, in what, how often. Sends and writes nothing.

    The filters are those of `surecall eval`; `None` means its default.

    Args:
        models: Who takes part, such as `zoo:*,embedded:smollm2-135m`.
        suites: Names of suites, or files as `custom:cases.toml`.
        scenarios: Scenarios by name, glob or preset.
        profiles: Sampling profiles.
        strategies: `raw`, `naive`, `baseline`, `production`, `gated`, `guided`, `ablate:NAME`.
        fallbacks: Calls in text: `off`, `on`, `both` or `best_effort`.
        trials: Repetitions of every case.
        seed: The random seed that all others are derived from.
        timeout_s: How long a trial may take.
        options: Options of every trial.
        concurrency: Trials at once at each provider.
        max_wait_s: How long an endpoint is waited for that refuses with 429 or 503.
        cases: Cases by id or glob, separated by commas.
        sample: How many cases to draw, from each scenario in proportion to its size.
        limit: How many cases to take at most.
        shuffle: Whether trials are run in random order.
        cache: A folder with replies; the same request to the same model is not sent again.
        prices: Dollars for a million tokens by model, such as `"0.25/2.00"`.
        config: Settings in force; by default from the environment.

    Raises:
        ConfigError: Something does not exist, or nothing is selected.
    """
    wanted = Wanted(
        models=models,
        suites=(suites,) if isinstance(suites, str) else tuple(suites) if suites else None,
        scenarios=scenarios,
        profiles=profiles,
        strategies=strategies,
        fallbacks=fallbacks,
        trials=trials,
        seed=seed,
        timeout_s=timeout_s,
        options=dict(options) if options else None,
        concurrency=concurrency,
        max_wait_s=max_wait_s,
        cases=cases,
        sample=sample,
        limit=limit,
        shuffle=shuffle,
        cache=None if cache is None else str(cache),
    )
    parsed = {
        name: parse_price(price) if isinstance(price, str) else price
        for name, price in (prices or {}).items()
    }
    return plan_experiment(wanted, config or load_config(), prices=parsed)


def estimate_rest(store: RunStore | None, experiment: Experiment, run_id: str | None) -> Estimate:
    """Estimate what is left to run from what earlier trials took; without a store none did."""
    earlier = () if store is None else islice(_answered_rows(store), _HISTORY)
    done = store.done(run_id) if store is not None and run_id is not None else set[int]()
    left = tuple(unit for unit in experiment.matrix.units if unit.index not in done)
    return estimate(
        replace(experiment.matrix, units=left), earlier, concurrency=experiment.concurrency
    )


def _answered_rows(store: RunStore) -> Iterator[TrialRow]:
    for info in store.runs():
        yield from (row for row in store.rows(info.id) if not was_unanswered(row))


# running


async def evaluate(
    experiment: Experiment,
    *,
    store: str | Path | None = None,
    resume: str | None = None,
    new: bool = False,
    tag: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    on_progress: OnProgress | None = None,
    stop: Stop | None = None,
) -> "EvalRun":
    """Run what is left of an experiment and return its run.

    An unfinished run of the same experiment is resumed; finished trials are never repeated.

    Args:
        experiment: From `plan`.
        store: The file with the runs; the one of the settings by default.
        resume: The run to resume, when not the unfinished one of this experiment.
        new: Begin a new run in any case.
        tag: A name for the run.
        engine: Where trials run: `local`, `processes` or `ray`.
        workers: Processes; one for each processor by default.
        ray_address: A cluster that is already there.
        on_progress: Called with every event, in the thread of the event loop.
        stop: Asks the experiment to stop; what is finished is kept.

    Raises:
        StoreError: Another process works on the run, or it cannot be read or written.
    """
    if tag is not None:
        check_tag(tag)
    with open_run_store(store) as opened:
        chosen = choose_run(opened, experiment.manifest, resume=resume, is_new=new)
        if chosen.is_complete and chosen.run_id is not None:
            info = opened.info(chosen.run_id)
        else:
            info = await run_experiment(
                experiment.matrix,
                experiment.manifest,
                opened,
                executor=make_executor(
                    engine,
                    experiment.job,
                    concurrency=experiment.concurrency,
                    workers=workers,
                    ray_address=ray_address,
                ),
                run_id=chosen.run_id,
                on_progress=on_progress,
                stop=stop,
            )
        if tag is not None:
            opened.tag(info.id, tag)
        return EvalRun(opened.path, opened.info(info.id))


def evaluate_sync(experiment: Experiment, **arguments: Any) -> "EvalRun":
    """Run an experiment where no event loop runs; takes what `evaluate` takes."""
    return asyncio.run(evaluate(experiment, **arguments))


def make_executor(
    engine: str,
    job: Job,
    *,
    concurrency: int,
    workers: int | None = None,
    ray_address: str | None = None,
) -> Executor:
    """Return what runs the trials: this process, several, or a cluster."""
    match engine:
        case "local":
            return LocalExecutor(job, concurrency=concurrency)
        case "processes":
            return ProcessExecutor(job, workers=workers, concurrency=concurrency)
        case "ray":
            return RayExecutor(job, workers=workers, concurrency=concurrency, address=ray_address)
        case _:
            raise ConfigError(Code.INVALID_OPTION, f"there is no engine {engine!r}.")


# looking back


class EvalRun:
    """One run in a store: what was planned, its trials, its figures and its files."""

    def __init__(self, store: Path, info: RunInfo) -> None:
        self.store = store
        """The file with the run."""
        self.info = info

    def __repr__(self) -> str:
        return f"<EvalRun {self.info.id}: {self.info.done} of {self.info.units} trials>"

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.info.id

    @property
    def manifest(self) -> Manifest:
        """What makes the experiment what it is."""
        return self.info.manifest

    def rows(self) -> tuple[TrialRow, ...]:
        """Return every finished trial."""
        with self._open() as store:
            return tuple(store.rows(self.id))

    def transcript(self, index: int) -> TrialBody:
        """Return the request, the turns and the outcome of one trial."""
        with self._open() as store:
            return store.body(self.id, index)

    def summary(self) -> Summary:
        """Return every figure, with intervals."""
        with self._open() as store:
            return summarize(store.rows(self.id))

    def recommend(
        self,
        *,
        strategy: str | None = None,
        judged: Judged = "strict",
        max_errors: str = MAX_ERRORS,
    ) -> Recommendation:
        """Recommend a model, or explain why none stands out."""
        with self._open() as store:
            tallies = tally_rows(store.rows(self.id))
        return recommend(tallies, strategy=strategy, judged=judged, max_errors=max_errors)

    def check(self, *gates: Gate | str, undecided: Undecided | None = None) -> GateReport:
        """Check gates such as `strict >= 0.9` on this run; `undecided="fail"` wants a clear yes."""
        parsed = [
            parse_gate(gate, undecided=undecided) if isinstance(gate, str) else gate
            for gate in gates
        ]
        with self._open() as store:
            baselines = find_baselines(store, parsed, self.id)
            return check_gates(
                parsed, store.rows(self.id), rows_of=lambda name: store.rows(baselines[name])
            )

    def compare(
        self, earlier: "EvalRun", *, judged: Judged = "strict", across: Collection[str] = ()
    ) -> DiffResult:
        """Compare this run with an earlier one, trial by trial."""
        with self._open() as store, earlier._open() as other:
            return diff_rows(
                other.rows(earlier.id),
                store.rows(self.id),
                a=earlier.id,
                b=self.id,
                judged=judged,
                across=across,
                config=earlier.manifest.differences(self.manifest),
            )

    def export(self, folder: str | Path, formats: Sequence[str] = ("html",)) -> Exported:
        """Write the run as a page, tables or summaries."""
        with self._open() as store:
            return export_run(store, self.id, folder, formats)

    def _open(self) -> RunStore:
        return RunStore(self.store)


def load_run(reference: str = LATEST, *, store: str | Path | None = None) -> EvalRun:
    """Return a run by its id, the beginning of one, a tag such as `@baseline`, or `@latest~1`."""
    with open_run_store(store, must_exist=True) as opened:
        return EvalRun(opened.path, opened.info(opened.resolve(reference)))


def list_runs(*, store: str | Path | None = None) -> tuple[EvalRun, ...]:
    """Return every run of a store, the latest first."""
    with open_run_store(store, must_exist=True) as opened:
        return tuple(EvalRun(opened.path, info) for info in opened.runs())


def find_baselines(store: RunStore, gates: Sequence[Gate], run_id: str | None) -> dict[str, str]:
    """Find the runs that gates compare with; before a run begins, or it would be the latest.

    Raises:
        StoreError: There is no such run.
        ConfigError: It is the very run that is judged.
    """
    baselines: dict[str, str] = {}
    for gate in gates:
        if gate.against is None:
            continue
        found = store.resolve(gate.against)
        if found == run_id:
            raise ConfigError(
                Code.INVALID_GATE,
                f"the gate {gate.text!r} would compare run {run_id} with itself.",
                hint="Name the run before it, or tag one: surecall eval runs tag RUN baseline.",
            )
        baselines[gate.against] = found
    return baselines


def unanswered_share(tallies: Tallies) -> float:
    """Return the share of cells whose model never answered: 0 for none, 1 for all."""
    silent = sum(tally.unanswered == tally.n for tally in tallies.values())
    return silent / len(tallies) if tallies else 0.0


# the store


def run_store_path(path: str | Path | None) -> Path:
    """Return the file that was named, or the one that the settings say."""
    return Path(path) if path else (load_config().evals_dir or _FOLDER) / STORE_FILE


def open_run_store(path: str | Path | None, *, must_exist: bool = False) -> RunStore:
    """Open the file that was named, or the one that the settings say.

    Args:
        path: The file with the runs; the one of the settings by default.
        must_exist: Whether a file that is not there is an error, and not a new store.
    """
    place = run_store_path(path)
    if must_exist and not place.exists():
        raise StoreError(
            Code.RUN_NOT_FOUND,
            f"there are no runs: {place} does not exist.",
            hint=f"Run one with {FIRST_EVAL}, or name the file with --store.",
        )
    if place.parent == _FOLDER and not _FOLDER.exists():
        with explain_database_errors(_FOLDER):
            _FOLDER.mkdir(exist_ok=True)
            (_FOLDER / ".gitignore").write_text("# Runs of evals are not part of the project.\n*\n")
    return RunStore(place)
