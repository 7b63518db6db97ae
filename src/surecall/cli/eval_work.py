"""One `surecall eval`: shown beforehand, run, and summed up."""

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from surecall.evals.executors import Executor
from surecall.evals.export import export_run
from surecall.evals.gates import Gate, check_tallies
from surecall.evals.matrix import estimate
from surecall.evals.metrics_tally import tally_rows
from surecall.evals.progress import ExperimentEnded, ProgressEvent, Tally
from surecall.evals.records import TrialRow
from surecall.evals.runner import Stop, run_experiment
from surecall.evals.store import RunInfo, RunStore

from .eval_page import plan_data, show_plan, show_summary, summary_data
from .eval_plan import Experiment
from .eval_progress import EvalDisplay, make_display
from .gate_page import show_gates
from .output import ExitCode, Output
from .terminal import line_of

__all__ = ["EvalWork"]

_HISTORY: Final = 2_000
"""Trials of earlier runs by which an experiment is judged beforehand."""


class EvalWork:
    """What all ways through the command need."""

    def __init__(self, output: Output, gates: list[Gate], store_file: str | None) -> None:
        self._output = output
        self._gates = gates
        self._store_file = store_file

    def note(self, lines: tuple[str, ...]) -> None:
        """Say something on the side."""
        if self._output.quiet:
            return
        for line in lines:
            if self._output.json:
                self._output.data({"type": "note", "message": line})
            else:
                self._output.stderr.write(line_of(line) + "\n")
        self._output.stderr.flush()

    def show_plan(
        self, store: RunStore | None, experiment: Experiment, run_id: str | None
    ) -> ExitCode:
        """Show what would be run; without a store nothing is known of earlier runs."""
        earlier = () if store is None else islice(_history(store), _HISTORY)
        guess = estimate(experiment.matrix, earlier, concurrency=experiment.concurrency)
        if self._output.json:
            self._output.data(plan_data(experiment, guess, run_id))
        else:
            show_plan(self._output, experiment, guess, run_id)
        return ExitCode.OK

    def run(
        self, store: RunStore, experiment: Experiment, executor: Executor, run_id: str | None
    ) -> tuple[RunInfo, Tally]:
        """Run what is left of the experiment."""
        display = make_display(self._output, experiment.manifest, str(store.path))
        # What tools and engines print must not get between the data.
        with contextlib.redirect_stdout(self._output.stderr), display:
            return asyncio.run(_run(store, experiment, executor, run_id, display))

    def finish(
        self,
        store: RunStore,
        info: RunInfo,
        tally: Tally | None,
        formats: tuple[str, ...],
        folder: str | None,
    ) -> ExitCode:
        """Show what it came to, write reports, check gates, and say how it ended."""
        tallies = tally_rows(store.rows(info.id))
        if self._output.json:
            self._output.data(summary_data(info, tallies, self._resume_command(info)))
        elif info.done:
            show_summary(self._output, info, tallies)
        if formats:
            self._report(store, info, formats, folder)
        if not info.is_complete:
            return self._interrupted(info)
        report = check_tallies(
            self._gates, tallies, rows_of=lambda name: store.rows(store.resolve(name))
        )
        if self._gates and show_gates(self._output, report) != ExitCode.OK:
            return ExitCode(1)
        return _exit_code(tally)

    def _report(
        self, store: RunStore, info: RunInfo, formats: tuple[str, ...], folder: str | None
    ) -> None:
        out = Path(folder or f"surecall-{info.id}")
        exported = export_run(store, info.id, out, formats)
        paths = [str(path) for written in exported.files.values() for path in written]
        if self._output.json:
            self._output.data({"type": "report", "run": info.id, "files": paths})
        else:
            self.note(tuple(f"written: {path}" for path in paths))

    def _interrupted(self, info: RunInfo) -> ExitCode:
        resume = self._resume_command(info)
        if self._output.json:
            self._output.data({"type": "interrupted", "run": info.id, "resume": resume})
        else:
            self._output.stderr.write(
                f"interrupted: {info.done} of {info.units} trials are kept; to go on:\n"
                f"  {line_of(resume)}\n"
            )
            self._output.stderr.flush()
        return ExitCode.INTERRUPTED

    def _resume_command(self, info: RunInfo) -> str:
        words = ["surecall", "eval", "--resume", info.id]
        return shlex.join([*words, "--store", self._store_file] if self._store_file else words)


async def _run(
    store: RunStore,
    experiment: Experiment,
    executor: Executor,
    run_id: str | None,
    display: EvalDisplay,
) -> tuple[RunInfo, Tally]:
    stop = Stop()
    last: list[Tally] = []

    def tell(event: ProgressEvent) -> None:
        display.tell(event)
        if isinstance(event, ExperimentEnded):
            last.append(event.tally)

    async def draw() -> None:
        while True:
            display.refresh()
            await asyncio.sleep(display.interval_s)

    drawing = asyncio.create_task(draw())
    try:
        with _interrupts(stop):
            info = await run_experiment(
                experiment.matrix,
                experiment.manifest,
                store,
                executor=executor,
                run_id=run_id,
                on_progress=tell,
                stop=stop,
            )
    finally:
        drawing.cancel()
    return info, last[0]


@contextlib.contextmanager
def _interrupts(stop: Stop) -> Generator[None]:
    """Let Ctrl-C ask for a stop, and a second one ask again."""
    loop = asyncio.get_running_loop()
    caught: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop.ask)
        except (RuntimeError, ValueError):
            continue  # not here, or not in this thread: it ends as any program does
        caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def _exit_code(tally: Tally | None) -> ExitCode:
    """Say whether everybody was heard."""
    unheard = len(tally.unanswered_cells) if tally is not None else 0
    if tally is None or not unheard:
        return ExitCode.OK
    return ExitCode.PROVIDER if unheard == len(tally.cells) else ExitCode.PARTIAL


def _history(store: RunStore) -> Iterator[TrialRow]:
    for info in store.runs():
        yield from store.rows(info.id)
