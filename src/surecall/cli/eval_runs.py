"""`surecall eval runs`, `report` and `regrade`: stored eval runs, and what is made of them."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

import click
import msgspec

from surecall.evals.experiments import open_run_store
from surecall.evals.export import FORMATS, Exported, export_run, parse_formats
from surecall.evals.history import CaseReply, TrendPoint, compare_case, find_trend
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.regrading import Regraded, VerdictChange, regrade_sync
from surecall.evals.store import FIRST_EVAL, RightCounts, RunInfo
from surecall.evals.wording import describe_cost, describe_rate, describe_reasons, label_simulated

from .console import ExitCode, Output, select_fields
from .eval.page import show_summary, summary_data
from .event_lines import count_of
from .flags import count_flag, flag, output_flags, pass_output, pass_to_commands, store_flag
from .suggestions import complete_formats, complete_runs
from .terminal import line_of, shown_value

_MAX_CHANGES: Final = 20


@click.command
@click.argument("run", default="@latest", shell_complete=complete_runs)
@flag("--dry-run", "Show what would change; write nothing.")
@flag("--tag NAME", "Give the new run a name.")
@store_flag
@pass_output
def regrade(
    output: Output, *, run: str, dry_run: bool, tag: str | None, store_file: str | None
) -> None:
    """Judge the kept replies of a run again; RUN defaults to the latest.

    Nothing is sent: the loop runs on the stored replies, with fresh tools, and the cases judge what
    happens. The result is a new run; the old one stays as it is. Trials in which other requests
    would be sent now keep their verdicts, and are counted.
    """
    with output.waiting("judging again"):
        found = regrade_sync(run, store=store_file, tag=tag, dry_run=dry_run)
    if output.json:
        output.data(_render_regraded(found))
        return
    console = output.page()
    if found.changes:
        columns = {"trial": "right", "cell": "", "case": "", "verdict": "", "now": "", "why": "dim"}
        output.table(columns, map(_list_change, found.changes[:_MAX_CHANGES]))
        if len(found.changes) > _MAX_CHANGES:
            console.print(f"… {len(found.changes) - _MAX_CHANGES} more: --json", style="dim")
        console.print()
    console.print(_summarize(found), soft_wrap=True)


def _render_regraded(found: Regraded) -> dict[str, Any]:
    return {
        "type": "regraded",
        "source": found.source,
        "run": None if found.run is None else found.run.id,
        "trials": found.trials,
        "undecided": list(found.undecided),
        "changes": msgspec.to_builtins(found.changes),
    }


def _list_change(change: VerdictChange) -> tuple[str, ...]:
    why = "; ".join(f"{reason.code} {reason.message}".strip() for reason in change.reasons)
    return (
        *(f"#{change.index}", line_of(change.cell), line_of(change.case), change.verdict),
        "✓ passed" if change.ok else "✗ failed",
        line_of(f"before: {why}" if change.ok else why),
    )


def _summarize(found: Regraded) -> str:
    ways = Counter((change.verdict, change.ok) for change in found.changes)
    changed = ", ".join(
        f"{count} {verdict} {'passed now' if ok else 'failed now'}"
        for (verdict, ok), count in sorted(ways.items(), reverse=True)
    )
    text = f"run {found.source}: {count_of(found.trials, 'trial')} judged again, "
    text += changed or "no verdict changed"
    if found.undecided:
        text += f"; {len(found.undecided)} could not be decided again and keep their verdicts"
    return text + (f"; written as run {found.run.id}" if found.run else "; nothing was written")


_MAX_TEXT: Final = 300


@click.command("trend")
@click.argument("run", default="@latest", shell_complete=complete_runs)
@store_flag
@pass_output
def trend(output: Output, run: str, store_file: str | None) -> None:
    """Show how an experiment went in all of its runs, the oldest first.

    Runs of the same trials are compared, whatever the versions of surecall and the suites.
    """
    points = find_trend(run, store=store_file)
    columns = {"model": "", "strategy": "", "started": "whole", "run": "whole"}
    columns |= dict.fromkeys(("strict", "p95", "cost"), "right whole") | {"note": "dim"}
    order = list(dict.fromkeys(point.task for point in points))
    rows = (
        (
            line_of(_name(point)) + label_simulated(point.simulated),
            line_of(point.task.strategy),
            f"{datetime.fromtimestamp(point.created_at, UTC):%Y-%m-%d %H:%M}",
            *(point.run, describe_rate(point.strict), f"{point.p95_ms:.0f} ms"),
            describe_cost(point.cost_usd),
            "regraded" if point.regraded_from else "",
        )
        for point in sorted(points, key=lambda point: order.index(point.task))
    )
    data = {"type": "trend", "points": [_point_data(point) for point in points]}
    output.listing(data, columns, rows, optional=("note", "cost", "p95", "started"))


def _name(point: TrendPoint | CaseReply) -> str:
    """Return the model, and what else of its row is not as usual."""
    usual = {"profile": "default", "fallback": "best_effort"}
    values = ((getattr(point.task, name), value) for name, value in usual.items())
    return " ".join((point.task.model, *(given for given, value in values if given != value)))


def _point_data(point: TrendPoint | CaseReply) -> dict[str, object]:
    return {**msgspec.to_builtins(point), "task": point.task._asdict()}


@click.command("case")
@click.argument("run", shell_complete=complete_runs)
@click.argument("case")
@store_flag
@pass_output
def case_replies(output: Output, run: str, case: str, store_file: str | None) -> None:
    """Show what every model replied to one case of a run, side by side.

    CASE is the id of a case, the scenario if it has only one, or SCENARIO/CASE.
    """
    replies = compare_case(case, run, store=store_file)
    columns = {"trial": "right", "model": "", "strategy": "", "verdict": "whole"}
    data = {"type": "case", "replies": [_point_data(reply) for reply in replies]}
    output.listing(data, columns | {"calls": "", "answer": ""}, map(_list_values, replies))


def _list_values(reply: CaseReply) -> tuple[str, ...]:
    answer = line_of(reply.text, _MAX_TEXT)
    if not reply.strict_ok:
        answer = f"{answer}\n✗ {line_of(describe_reasons(reply.reasons), _MAX_TEXT)}".strip()
    return (
        f"#{reply.index}",
        line_of(_name(reply)) + label_simulated("all" if reply.simulated else "none"),
        line_of(reply.task.strategy),
        "✓" if reply.strict_ok else "✗",
        "\n".join(line_of(call, _MAX_TEXT) for call in reply.calls) or "-",
        answer,
    )


_MAX_COMMAND: Final = 200


@click.group(invoke_without_command=True, commands=[trend, case_replies])
@store_flag
@output_flags
@click.pass_context
def runs(context: click.Context, store_file: str | None) -> None:
    """List the stored eval runs; the commands show, compare, tag and remove them.

    Name a run by its id, the start of one, a tag such as @baseline, or @latest~1.
    """
    pass_to_commands(context, "store_file")
    if context.invoked_subcommand is None:
        context.invoke(list_runs, store_file=store_file, limit=20)


@runs.command("list", short_help="List the latest runs.")
@count_flag("--limit", "How many runs to list.", 20)
@store_flag
@pass_output
def list_runs(output: Output, limit: int, store_file: str | None) -> None:
    """List the latest runs; `surecall eval runs` without a command does the same."""
    with open_run_store(store_file, must_exist=True) as store:
        found = store.runs()
        shown = [(info, store.is_held(info.id)) for info in found[:limit]]
        right = {info.id: store.count_right(info.id) for info, _ in shown}
    if output.json:
        rows = [_run_data(info, right[info.id], is_held) for info, is_held in shown]
        output.data({"type": "runs", "count": len(found), "runs": rows})
        return
    columns = dict.fromkeys(("run", "started", "status"), "whole")
    columns |= dict.fromkeys(("trials", "strict", "original", "errors"), "right whole")
    columns |= {"models": "", "tags": "", "command": "dim cut"}
    optional = ("command", "errors", "original", "started", "tags", "models")
    rows = (
        (
            *(info.id, _time_text(info.created_at), _status(info, is_held=is_held)),
            f"{info.done}/{info.units}",
            f"{right[info.id].strict_ok}/{right[info.id].n}",
            f"{right[info.id].original_ok}/{right[info.id].n}",
            *(str(info.errors or ""), _label_simulated(info), ", ".join(info.tags)),
            line_of(info.manifest.command, _MAX_COMMAND),
        )
        for info, is_held in shown
    )
    output.table(columns, rows, optional=optional)
    if not found:
        output.note(f"there are no runs yet: {FIRST_EVAL}")
    if len(found) > limit:
        more = f"… {len(found) - limit} more: --limit {len(found)}"
        output.page().print(more, style="dim")


@runs.command("show")
@click.argument("run", default="@latest", shell_complete=complete_runs)
@store_flag
@pass_output
def show_run(output: Output, run: str, store_file: str | None) -> None:
    """Show the settings and results of a run; by default the latest."""
    with open_run_store(store_file, must_exist=True) as store:
        info = store.info(store.resolve(run))
        tallies = tally_rows(store.rows(info.id))
        is_held = store.is_held(info.id)
        right = store.count_right(info.id)
    if output.json:
        data = summary_data(info, tallies, f"surecall eval --resume {info.id}")
        about = _run_data(info, right, is_held)
        output.data({**data, **about, "type": "run", "rows": data["rows"]})
        return
    output.facts((label, line_of(text)) for label, text in _facts(info, is_held=is_held))
    if info.done:
        output.text("")
        show_summary(output, info, tallies)


@runs.command("tag", short_help="Give a run a name, such as baseline.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("name")
@store_flag
@pass_output
def tag_run(output: Output, run: str, name: str, store_file: str | None) -> None:
    """Give a run a name, such as baseline; the name moves if another run had it."""
    with open_run_store(store_file, must_exist=True) as store:
        run_id = store.resolve(run)
        store.tag(run_id, name)
    bare = name.removeprefix("@")
    output.answer({"type": "tagged", "run": run_id, "tag": bare}, f"@{bare} is {run_id}")


@runs.command("untag")
@click.argument("name")
@store_flag
@pass_output
def untag_run(output: Output, name: str, store_file: str | None) -> None:
    """Remove a name from the run that has it."""
    with open_run_store(store_file, must_exist=True) as store:
        bare = name.removeprefix("@")
        store.resolve(f"@{bare}")  # a name that no run has is a mistake
        store.untag(name)
    output.answer({"type": "untagged", "tag": bare}, f"@{bare} is removed")


@runs.command("rm")
@click.argument(
    "references", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs
)
@flag("-y --yes", "Do not ask.")
@store_flag
@pass_output
def remove_runs(
    output: Output, references: tuple[str, ...], yes: bool, store_file: str | None
) -> ExitCode:
    """Remove runs with all their trials; this cannot be undone."""
    with open_run_store(store_file, must_exist=True) as store:
        chosen = [store.info(store.resolve(reference)) for reference in references]
        chosen = list({info.id: info for info in chosen}.values())
        if not yes and not _ask_consent(output, chosen):
            return ExitCode.INTERRUPTED
        for info in chosen:
            store.remove(info.id)
    ids = [info.id for info in chosen]
    output.answer({"type": "removed", "runs": ids}, f"removed {', '.join(ids)}")
    return ExitCode.OK


def _ask_consent(output: Output, chosen: list[RunInfo]) -> bool:
    """Ask whether to remove the runs; where nobody can be asked, only `--yes` says so."""
    if output.json or not output.is_attended:
        raise click.UsageError("Nobody can be asked here: give --yes to remove without asking.")
    trials = count_of(sum(info.done for info in chosen), "trial")
    ids = ", ".join(info.id for info in chosen)
    return click.confirm(f"Remove {ids} with {trials}?", default=False, err=True)


def _run_data(info: RunInfo, right: RightCounts, is_held: bool) -> dict[str, Any]:
    counts = select_fields(info, "units", "done", "errors")
    counts |= {"tried": right.n} | select_fields(right, "original_ok", "strict_ok")
    facts = select_fields(info, "tags", "created_at", "ended_at", "manifest")
    return {"run": info.id, "status": _status(info, is_held=is_held), **counts, **facts}


def _status(info: RunInfo, *, is_held: bool) -> str:
    """Return the status of a run: one that calls itself running may have been killed."""
    return "interrupted" if info.status == "running" and not is_held else info.status


def _label_simulated(info: RunInfo) -> str:
    manifest = info.manifest
    if not manifest.simulated:
        return ""
    is_all = len(manifest.simulated) >= len(manifest.contenders)
    return label_simulated("all" if is_all else "some", form="{}")


def _facts(info: RunInfo, *, is_held: bool) -> list[tuple[str, str]]:
    manifest = info.manifest
    rows = [
        ("run", info.id),
        ("status", _status(info, is_held=is_held)),
        ("started", _time_text(info.created_at)),
        ("ended", _time_text(info.ended_at) if info.ended_at else "-"),
        ("tags", ", ".join(info.tags) or "-"),
        ("command", manifest.command or "-"),
        ("surecall", f"{manifest.package}, Python {manifest.python}, engine {manifest.engine}"),
    ]
    rows += [(name, _axis_text(value)) for name, value in manifest.axes.items()]
    rows += [(f"suite {name}", version) for name, version in manifest.suites.items()]
    rows += [(name, shown_value(value)) for name, value in manifest.options.items() if value]
    rows += [("gate", text) for text in manifest.gates]
    return rows


def _axis_text(value: Any) -> str:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return ", ".join(map(shown_value, items))


def _time_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


@click.command
@click.argument("run", default="@latest", shell_complete=complete_runs)
@flag(
    "--format LIST",
    f"What to write, separated by commas: {', '.join(FORMATS)} or all.",
    to="formats",
    complete=complete_formats,
    shown="html",
)
@flag("-o --out DIR", "Folder to write to. [default: surecall-RUN]", to="folder")
@store_flag
@pass_output
def report(
    output: Output, *, run: str, formats: str, folder: str | None, store_file: str | None
) -> None:
    """Write a run as a page, tables or summaries; RUN defaults to the latest.

    Name a run by its id, the start of one, a tag such as @baseline, or @latest~1. Everything is
    read from the store: nothing is asked again, and the same run gives the same files. Of an
    unfinished run, the finished trials are written.
    """
    chosen = parse_formats(formats)
    with open_run_store(store_file, must_exist=True) as store:
        info = store.info(store.resolve(run))
        out = Path(folder or f"surecall-{info.id}")
        with output.waiting("writing the report"):
            exported = export_run(store, info.id, out, chosen)
    if output.json:
        output.data(_render(info, out, exported))
    else:
        _show_report(output, info, exported)


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
            {"format": name, **select_fields(error, "code", "message", "hint")}
            for name, error in exported.left_out.items()
        ],
    }


def _show_report(output: Output, info: RunInfo, exported: Exported) -> None:
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
