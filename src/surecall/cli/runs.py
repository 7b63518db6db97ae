"""`surecall runs`: the eval runs that are kept."""

import sys
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec

from surecall.evals.experiments import open_run_store
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.original import add_old_names
from surecall.evals.store import RunInfo

from .eval.page import show_summary, summary_data
from .flags import output_flags
from .output import ExitCode, Output
from .progress import count_of
from .terminal import line_of, shown_value

__all__ = ["runs"]

_MAX_COMMAND: Final = 200
_WIDE: Final = 130

_store_option = click.option(
    "--store", "store_file", metavar="FILE", help="The file with the runs."
)


@click.group(invoke_without_command=True)
@output_flags
@click.pass_context
def runs(context: click.Context) -> ExitCode | None:
    """List the eval runs that are kept; the commands show, name and remove them.

    A run is named by its id, the beginning of one, a tag such as @baseline, or @latest~1.
    """
    if context.invoked_subcommand is None:
        return context.invoke(list_runs, store_file=None, limit=20)
    return None


@runs.command("list")
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The latest so many."
)
@_store_option
@output_flags
@click.pass_obj
def list_runs(output: Output, limit: int, store_file: str | None) -> ExitCode:
    """List the latest runs; what `surecall runs` does without a command."""
    with open_run_store(store_file, must_exist=True) as store:
        found = store.runs()
        shown = [(info, store.is_held(info.id)) for info in found[:limit]]
    if output.json:
        output.data(
            {"type": "runs", "count": len(found), "runs": [run_data(*each) for each in shown]}
        )
        return ExitCode.OK
    from rich.table import Table

    console = output.page()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", "begun", "status"):
        table.add_column(name, no_wrap=True)
    for name in ("trials", "strict", "original"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("tags")
    is_wide = console.width >= _WIDE
    if is_wide:
        table.add_column("command", style="dim", overflow="ellipsis", no_wrap=True)
    for info, is_held in shown:
        table.add_row(
            info.id,
            _time_text(info.created_at),
            _status(info, is_held=is_held),
            f"{info.done}/{info.units}",
            f"{info.strict_ok}/{info.done}",
            f"{info.original_ok}/{info.done}",
            ", ".join(info.tags) + _simulated(info),
            *([line_of(info.manifest.command, _MAX_COMMAND)] if is_wide else []),
        )
    console.print(table)
    if len(found) > limit:
        console.print(f"… {len(found) - limit} more: --limit {len(found)}", style="dim")
    return ExitCode.OK


@runs.command("show")
@click.argument("run", default="@latest")
@_store_option
@output_flags
@click.pass_obj
def show_run(output: Output, run: str, store_file: str | None) -> ExitCode:
    """Show what a run is made of and what it came to; the latest when none is named."""
    with open_run_store(store_file, must_exist=True) as store:
        info = store.info(store.resolve(run))
        tallies = tally_rows(store.rows(info.id))
        is_held = store.is_held(info.id)
    if output.json:
        data = summary_data(info, tallies, f"surecall eval --resume {info.id}")
        output.data({**data, **run_data(info, is_held), "type": "run", "rows": data["rows"]})
        return ExitCode.OK
    from rich.table import Table

    console = output.page()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    for label, text in _facts(info, is_held=is_held):
        table.add_row(label, line_of(text))
    console.print(table)
    if info.done:
        console.print()
        show_summary(output, info, tallies)
    return ExitCode.OK


@runs.command("tag")
@click.argument("run")
@click.argument("name")
@_store_option
@output_flags
@click.pass_obj
def tag_run(output: Output, run: str, name: str, store_file: str | None) -> ExitCode:
    """Give a run a name, such as baseline; a run that had it loses it."""
    with open_run_store(store_file, must_exist=True) as store:
        run_id = store.resolve(run)
        store.tag(run_id, name)
    bare = name.removeprefix("@")
    return _done(output, {"type": "tagged", "run": run_id, "tag": bare}, f"@{bare} is {run_id}")


@runs.command("untag")
@click.argument("name")
@_store_option
@output_flags
@click.pass_obj
def untag_run(output: Output, name: str, store_file: str | None) -> ExitCode:
    """Take a name away from the run that has it."""
    with open_run_store(store_file, must_exist=True) as store:
        bare = name.removeprefix("@")
        store.resolve(f"@{bare}")  # a name that no run has is a mistake
        store.untag(name)
    return _done(output, {"type": "untagged", "tag": bare}, f"@{bare} names nothing any more")


@runs.command("rm")
@click.argument("references", nargs=-1, required=True, metavar="RUN...")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_store_option
@output_flags
@click.pass_obj
def remove_runs(
    output: Output, references: tuple[str, ...], yes: bool, store_file: str | None
) -> ExitCode:
    """Remove runs with all their trials; there is no way back."""
    with open_run_store(store_file, must_exist=True) as store:
        chosen = [store.info(store.resolve(reference)) for reference in references]
        chosen = list({info.id: info for info in chosen}.values())
        if not yes and not _agreed(output, chosen):
            return ExitCode.INTERRUPTED
        for info in chosen:
            store.remove(info.id)
    ids = [info.id for info in chosen]
    return _done(output, {"type": "removed", "runs": ids}, f"removed {', '.join(ids)}")


def _agreed(output: Output, chosen: list[RunInfo]) -> bool:
    """Ask where somebody can answer; where nobody can, the command itself is the answer."""
    if output.json or not (sys.stdin.isatty() and output.stderr.isatty()):
        return True
    trials = count_of(sum(info.done for info in chosen), "trial")
    ids = ", ".join(info.id for info in chosen)
    return click.confirm(f"Remove {ids} with {trials}?", default=False, err=True)


def _done(output: Output, data: dict[str, Any], words: str) -> ExitCode:
    if output.json:
        output.data(data)
    else:
        output.text(words)
    return ExitCode.OK


def run_data(info: RunInfo, is_held: bool) -> dict[str, Any]:
    """Return a run as data."""
    data = {
        "run": info.id,
        "status": _status(info, is_held=is_held),
        "units": info.units,
        "done": info.done,
        "original_ok": info.original_ok,
        "strict_ok": info.strict_ok,
        "tags": info.tags,
        "created_at": info.created_at,
        "ended_at": info.ended_at,
        "manifest": msgspec.to_builtins(info.manifest),
    }
    return add_old_names(data)


def _status(info: RunInfo, *, is_held: bool) -> str:
    """Say how a run stands: what calls itself running may have been killed."""
    if info.status == "running" and not is_held:
        return "interrupted"
    return info.status


def _simulated(info: RunInfo) -> str:
    manifest = info.manifest
    if not manifest.simulated:
        return ""
    is_all = len(manifest.simulated) >= len(manifest.contenders)
    return " (simulated)" if is_all else " (partly simulated)"


def _facts(info: RunInfo, *, is_held: bool) -> list[tuple[str, str]]:
    manifest = info.manifest
    rows = [
        ("run", info.id),
        ("status", _status(info, is_held=is_held)),
        ("begun", _time_text(info.created_at)),
        ("ended", _time_text(info.ended_at) if info.ended_at else "-"),
        ("tags", ", ".join(info.tags) or "-"),
        ("command", manifest.command or "-"),
        ("surecall", f"{manifest.package}, Python {manifest.python}, engine {manifest.engine}"),
    ]
    rows += [(name, shown_value(value)) for name, value in manifest.axes.items()]
    rows += [(f"suite {name}", version) for name, version in manifest.suites.items()]
    rows += [(name, shown_value(value)) for name, value in manifest.options.items() if value]
    return rows


def _time_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
