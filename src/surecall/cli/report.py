"""`surecall report`: a kept run, written in the formats of others."""

from pathlib import Path
from typing import Any

import click

from surecall.evals.experiments import open_run_store
from surecall.evals.export import FORMATS, Exported, export_run, parse_formats
from surecall.evals.store import RunInfo

from .flags import output_flags
from .output import ExitCode, Output
from .progress import count_of
from .terminal import line_of

__all__ = ["report"]


@click.command
@click.argument("run", default="@latest")
@click.option(
    "--format",
    "formats",
    default="html",
    show_default=True,
    metavar="LIST",
    help=f"What to write, with commas: {', '.join(FORMATS)} or all.",
)
@click.option(
    "-o", "--out", "folder", metavar="DIR", help="Folder to write to; surecall-RUN by default."
)
@click.option("--store", "store_file", metavar="FILE", help="The file with the runs.")
@output_flags
@click.pass_obj
def report(
    output: Output, *, run: str, formats: str, folder: str | None, store_file: str | None
) -> ExitCode:
    """Write a run as a page, tables or summaries; RUN is the latest when it is left out.

    A run is named by its id, the beginning of one, a tag such as @baseline, or @latest~1. All is
    read from the store: nothing is asked again, and the same run gives the same files. A run that
    is not finished is written as far as it is.
    """
    chosen = parse_formats(formats)
    with open_run_store(store_file, must_exist=True) as store:
        info = store.info(store.resolve(run))
        out = Path(folder or f"surecall-{info.id}")
        exported = export_run(store, info.id, out, chosen)
    if output.json:
        output.data(_render(info, out, exported))
    else:
        _tell(output, info, exported)
    return ExitCode.OK


def _render(info: RunInfo, out: Path, exported: Exported) -> dict[str, Any]:
    return {
        "type": "report",
        "run": info.id,
        "status": info.status,
        "trials": info.done,
        "units": info.units,
        "folder": str(out),
        "files": {name: [str(path) for path in paths] for name, paths in exported.files.items()},
        "left_out": [
            {"format": name, "code": error.code, "message": error.message, "hint": error.hint}
            for name, error in exported.left_out.items()
        ],
    }


def _tell(output: Output, info: RunInfo, exported: Exported) -> None:
    if not output.quiet:
        people = output.people()
        counted = count_of(info.done, "trial")
        if info.done < info.units:
            counted = f"{info.done} of {count_of(info.units, 'trial')}, not finished"
        people.print(f"run {info.id}: {counted}", soft_wrap=True)
        for name, error in exported.left_out.items():
            words = f"{name} left out: {error.message} {error.hint or ''}"
            people.print(line_of(words), style="yellow", soft_wrap=True)
    # The paths are the answer, one a line, so that another command can take them.
    paths = [str(path) for written in exported.files.values() for path in written]
    output.text("\n".join(line_of(path) for path in paths))
