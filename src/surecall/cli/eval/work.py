"""One `surecall eval`: planned, run, and summed up."""

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType

from msgspec.structs import replace

from surecall.cli.console import ExitCode, Output
from surecall.evals.executors import Executor
from surecall.evals.experiments import ChosenRun, estimate_rest, find_baselines, unanswered_share
from surecall.evals.export import export_run
from surecall.evals.gates import Gate, check_tallies, parse_gate
from surecall.evals.metrics.tally import Tallies, tally_rows
from surecall.evals.models import require_keys
from surecall.evals.planning import Experiment
from surecall.evals.runner import ExperimentStarted, ProgressEvent, Stop, run_experiment
from surecall.evals.store import RunInfo, RunStore

from .page import plan_data, show_gates, show_plan, show_summary, summary_data
from .progress import EvalDisplay, make_display


class EvalWork:
    """What all ways through the command need."""

    def __init__(
        self,
        output: Output,
        gates: list[Gate],
        store_file: str | None,
        *,
        resume: str | None = None,
    ) -> None:
        """Take what the command says.

        Args:
            output: Where everything is shown.
            gates: What the run must pass.
            store_file: The file that holds the runs, when one is named.
            resume: The command that resumes a run, when its id alone does not do it.
        """
        self._output = output
        self._gates = gates
        self._store_file = store_file
        self._resume = resume
        self._baselines: dict[str, str] = {}
        self._run_id: str | None = None

    def note(self, *lines: str) -> None:
        """Write remarks for people."""
        for line in () if self._output.quiet else lines:
            if self._output.json:
                self._output.data({"type": "note", "message": line})
            else:
                self._output.note(line)

    def retry_errors(self, store: RunStore, chosen: ChosenRun) -> ChosenRun:
        """Make room for new attempts of the trials that their endpoints failed."""
        assert chosen.run_id is not None
        with store.hold(chosen.run_id):
            count = store.retry_errors(chosen.run_id)
        trials = "1 trial" if count == 1 else f"{count} trials"
        self.note(f"{trials} to run again after an error of the endpoint")
        return replace(chosen, is_complete=chosen.is_complete and not count)

    def settle_gates(
        self, store: RunStore, experiment: Experiment, run_id: str | None, *, is_resumed: bool
    ) -> Experiment:
        """Find what gates compare with, before a run of this experiment is the latest.

        Args:
            store: Where the runs are.
            experiment: What is about to be run.
            run_id: The run that is continued.
            is_resumed: Whether the run's own gates hold where the command has none.

        Returns:
            The experiment, whose run will know its gates.
        """
        if is_resumed and run_id is not None and not self._gates:
            self._gates = [parse_gate(text) for text in store.info(run_id).manifest.gates]
        self._baselines = find_baselines(store, self._gates, run_id)
        gates = self._name_gates()
        return replace(experiment, manifest=replace(experiment.manifest, gates=gates))

    def _name_gates(self) -> tuple[str, ...]:
        """Return the gates as text, each with the id of the run that it compares with."""
        return tuple(
            gate.text if gate.against is None else gate.rename(self._baselines[gate.against])
            for gate in self._gates
        )

    def show_plan(
        self, store: RunStore | None, experiment: Experiment, run_id: str | None
    ) -> ExitCode:
        """Show what would run; without a store nothing is known of earlier runs."""
        guess = estimate_rest(store, experiment, run_id)
        done = len(store.done(run_id)) if store is not None and run_id is not None else 0
        if self._output.json:
            self._output.data(plan_data(experiment, guess, run_id, done=done))
        else:
            show_plan(self._output, experiment, guess, run_id, done=done)
        return ExitCode.OK

    def run(
        self,
        store: RunStore,
        experiment: Experiment,
        executor: Executor,
        run_id: str | None,
        display: EvalDisplay | None = None,
    ) -> RunInfo:
        """Run what is left of the experiment."""
        require_keys(experiment.matrix.contenders)
        shown = display or make_display(
            self._output,
            experiment.manifest,
            str(store.path),
            is_plain=bool(experiment.job.params.get("verbose")),
        )
        stop = Stop()

        def report(event: ProgressEvent) -> None:
            if isinstance(event, ExperimentStarted):
                self._run_id = event.run_id
            try:
                shown.tell(event)
            except BrokenPipeError:  # as with any program, but what is done is kept
                self._output.drop_reader()
                stop.ask()

        async def run_and_draw() -> RunInfo:
            drawing = asyncio.create_task(_draw(shown))
            try:
                with _catch_interrupts(stop):
                    return await run_experiment(
                        experiment.matrix,
                        experiment.manifest,
                        store,
                        executor=executor,
                        run_id=run_id,
                        on_progress=report,
                        stop=stop,
                    )
            finally:
                drawing.cancel()

        # What tools and engines print must not get between the data.
        with contextlib.redirect_stdout(self._output.stderr), shown:
            return asyncio.run(run_and_draw())

    def finish(
        self, store: RunStore, info: RunInfo, formats: tuple[str, ...], folder: str | None
    ) -> ExitCode:
        """Show the results, write reports, check gates, and return how it ended."""
        self._run_id = info.id
        if self._gates and self._name_gates() != info.manifest.gates:
            store.set_gates(info.id, self._name_gates())  # reports show the gates of this command
        tallies = tally_rows(store.rows(info.id))
        with self._allow_no_reader():
            if self._output.json:
                self._output.data(summary_data(info, tallies, self._resume_command(info)))
            elif info.done:
                show_summary(self._output, info, tallies)
        if formats:
            self._report(store, info, formats, folder)
        if not info.is_complete:
            return self._report_interrupt(info)
        report = check_tallies(
            self._gates, tallies, rows_of=lambda name: store.rows(self._baselines[name])
        )
        if self._gates:
            with self._allow_no_reader():
                show_gates(self._output, report)
        return ExitCode(1) if not report.ok else exit_code_of_trials(tallies)

    def cut_short(self, store: RunStore) -> ExitCode:
        """Leave out the rest of what would be shown, but not how to resume."""
        if self._run_id is None:
            raise KeyboardInterrupt
        return self._report_interrupt(store.info(self._run_id))

    @contextlib.contextmanager
    def _allow_no_reader(self) -> Generator[None]:
        """Let the command end as it would, also when nobody reads on."""
        try:
            yield
        except BrokenPipeError:
            self._output.drop_reader()

    def _report(
        self, store: RunStore, info: RunInfo, formats: tuple[str, ...], folder: str | None
    ) -> None:
        out = Path(folder or f"surecall-{info.id}")
        exported = export_run(store, info.id, out, formats)
        paths = [str(path) for written in exported.files.values() for path in written]
        with self._allow_no_reader():
            for name, error in exported.left_out.items():
                self.note(f"{name} left out: {error.message} {error.hint or ''}")
            if self._output.json:
                self._output.data({"type": "report", "run": info.id, "files": paths})
            else:
                self.note(*(f"written: {path}" for path in paths))

    def _report_interrupt(self, info: RunInfo) -> ExitCode:
        resume = self._resume_command(info)
        with self._allow_no_reader():
            if self._output.json:
                self._output.data({"type": "interrupted", "run": info.id, "resume": resume})
            else:
                kept = f"{info.done} of {info.units} trials are stored"
                self._output.note(f"interrupted: {kept}; to resume:")
                self._output.note(f"  {resume}")
        if signal.getsignal(signal.SIGINT) is _interrupt_again:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return ExitCode.INTERRUPTED

    def _resume_command(self, info: RunInfo) -> str:
        if self._resume is not None:
            return self._resume
        words = ["surecall", "eval", "--resume", info.id]
        return shlex.join([*words, "--store", self._store_file] if self._store_file else words)


async def _draw(display: EvalDisplay) -> None:
    while True:
        display.refresh()
        await asyncio.sleep(display.interval_s)


@contextlib.contextmanager
def _catch_interrupts(stop: Stop) -> Generator[None]:
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
        if stop.is_asked and signal.SIGINT in caught:
            signal.signal(signal.SIGINT, _interrupt_again)


def _interrupt_again(_number: int, _frame: FrameType | None) -> None:
    """Cut short what is shown after a stop; from then on there is nothing left to interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def exit_code_of_trials(tallies: Tallies) -> ExitCode:
    """Return whether every model could be reached."""
    share = unanswered_share(tallies)
    if not share:
        return ExitCode.OK
    return ExitCode.PROVIDER if share == 1 else ExitCode.PARTIAL
