"""`surecall eval vendors`: the same model at several endpoints, measured by one of them."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from surecall.errors import Code, ConfigError
from surecall.evals.contenders import Contender
from surecall.evals.executors import DEFAULT_CONCURRENCY, LocalExecutor
from surecall.evals.executors.trials import make_trials_job
from surecall.evals.known_suites import load_suite
from surecall.evals.manifest import hash_of, make_manifest
from surecall.evals.matrix import Axes, build_matrix
from surecall.evals.progress import CellFinished, ProgressEvent
from surecall.evals.runner import run_experiment
from surecall.evals.store import RunInfo, RunStore
from surecall.evals.vendors import compare_vendors
from surecall.profiles import Catalog

from .contenders import find_contenders
from .flags import output_flags
from .output import ExitCode, Output
from .run_store import open_run_store
from .terminal import line_of
from .vendors_page import show_vendors

__all__ = ["vendors"]

_OPEN_TRANSPORT: Final = "surecall.cli.contenders:open_transport"


@click.command
@click.option("--reference", required=True, metavar="MODEL", help="The endpoint to measure by.")
@click.option(
    "--against",
    "named",
    multiple=True,
    metavar="MODEL",
    help="An endpoint to compare with it; others may follow, or repeat the option.",
)
@click.argument("others", nargs=-1, metavar="[MODEL]...")
@click.option("--suite", "suites", multiple=True, help="Suites to run; state when none is named.")
@click.option("--scenarios", default="default", show_default=True, help="Scenarios to run.")
@click.option("--strategy", default="raw", show_default=True, help="How replies are treated.")
@click.option(
    "--trials", type=click.IntRange(min=1), default=5, show_default=True, help="Of every case."
)
@click.option("--seed", type=int, default=0, show_default=True, help="For what is left to chance.")
@click.option("--timeout", "timeout_s", type=float, help="Seconds that a trial may take.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=DEFAULT_CONCURRENCY,
    show_default=True,
    help="Trials at once at each provider.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0.001, 0.999),
    default=0.05,
    show_default=True,
    help="The difference that matters.",
)
@click.option("--run", "run", metavar="RUN", help="Compare within a kept run; nothing is asked.")
@click.option("--new", is_flag=True, help="Ask again, also when there is such a run already.")
@click.option("--store", "store_file", metavar="FILE", help="The file with the runs.")
@output_flags
@click.pass_obj
def vendors(
    output: Output,
    *,
    reference: str,
    named: tuple[str, ...],
    others: tuple[str, ...],
    suites: tuple[str, ...],
    scenarios: str,
    strategy: str,
    trials: int,
    seed: int,
    timeout_s: float | None,
    concurrency: int,
    margin: float,
    run: str | None,
    new: bool,
    store_file: str | None,
) -> ExitCode:
    """Compare endpoints that serve the same model with one that you trust.

    Exits with 1 when one of them is worse. For example:

    surecall eval vendors --reference m@https://a.example/v1 --against m@https://b.example/v1
    """
    against = (*named, *others)
    with open_run_store(store_file, must_exist=run is not None) as store:
        if run is not None:
            info = store.info(store.resolve(run))
            report = compare_vendors(store.rows(info.id), reference, against, margin=margin)
        else:
            contenders = _endpoints((reference, *against))
            axes = Axes(
                scenarios=scenarios, strategies=strategy, trials=trials, seed=seed, models="all"
            )
            work = _Work(output, store, contenders, suites or ("state",), axes, timeout_s)
            info = work.run(concurrency, is_new=new)
            labels = [contender.label for contender in contenders]
            report = compare_vendors(store.rows(info.id), labels[0], labels[1:], margin=margin)
    if output.json:
        run_data = {"id": info.id, "done": info.done, "units": info.units}
        output.data(
            {"type": "vendors", "run": run_data, "ok": report.ok} | msgspec.to_builtins(report)
        )
    else:
        show_vendors(output, report)
        if not output.quiet:
            output.stderr.write(f"run {info.id}: {info.done} of {info.units} trials\n")
    return ExitCode.OK if report.ok else ExitCode(1)


def _endpoints(references: Sequence[str]) -> list[Contender]:
    if len(references) < 2:
        raise ConfigError(
            Code.INVALID_OPTION,
            "there is nothing to compare the reference with.",
            hint="Name at least one endpoint with --against.",
        )
    found: list[Contender] = []
    for reference in references:
        contenders = find_contenders(reference)
        if len(contenders) != 1:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"{reference!r} stands for {len(contenders)} models.",
                hint="Name one model at one address, such as ID@https://HOST/v1.",
            )
        found += contenders
    return found


class _Work:
    """One comparison that is run, or continued where it was left."""

    def __init__(
        self,
        output: Output,
        store: RunStore,
        contenders: Sequence[Contender],
        suites: Sequence[str],
        axes: Axes,
        timeout_s: float | None,
    ) -> None:
        self._output = output
        self._store = store
        self._contenders = contenders
        self._suites = suites
        self._timeout_s = timeout_s
        loaded = [load_suite(name) for name in suites]
        catalog = Catalog.builtin()
        self._matrix = build_matrix(axes, loaded, contenders, catalog)
        self._manifest = make_manifest(
            self._matrix.units,
            axes=axes,
            suites={suite.name: suite.version for suite in loaded},
            contenders={item.label: msgspec.to_builtins(item) for item in contenders},
            catalog=hash_of(catalog.models),
            options={"timeout_s": timeout_s},
            command="surecall eval vendors",
            simulated=[item.label for item in contenders if item.simulated],
        )

    def run(self, concurrency: int, *, is_new: bool) -> RunInfo:
        """Run what is not there yet."""
        job = make_trials_job(
            suites=self._suites,
            contenders=self._contenders,
            open_transport=_OPEN_TRANSPORT,
            timeout_s=self._timeout_s,
        )
        return asyncio.run(
            run_experiment(
                self._matrix,
                self._manifest,
                self._store,
                executor=LocalExecutor(job, concurrency=concurrency),
                run_id=None if is_new else self._earlier(),
                on_progress=self._tell,
            )
        )

    def _earlier(self) -> str | None:
        """Return the run of this very comparison, to be continued or only read."""
        unfinished = self._store.find_unfinished(self._manifest.hash)
        return unfinished or self._store.find_complete(self._manifest.hash)

    def _tell(self, event: ProgressEvent) -> None:
        if not isinstance(event, CellFinished) or self._output.quiet:
            return
        cell, count = event.count.cell, event.count
        figures: dict[str, Any] = {"done": count.done, "strict_ok": count.strict_ok}
        if self._output.json:
            self._output.data({"type": "cell", **msgspec.to_builtins(cell), **figures})
        else:
            words = f"{cell.model} / {cell.scenario}: {count.strict_ok}/{count.done}"
            self._output.stderr.write(line_of(words) + "\n")
            self._output.stderr.flush()
