"""`surecall eval regrade`: new verdicts on the replies of a stored run."""

from collections import Counter
from typing import Any, Final

import click
import msgspec

from surecall.evals.regrading import Regraded, VerdictChange, regrade_sync

from .flags import pass_output, store_flag
from .output import Output
from .progress import count_of
from .suggestions import complete_runs
from .terminal import line_of, make_table

_MAX_CHANGES: Final = 20


@click.command
@click.argument("run", default="@latest", shell_complete=complete_runs)
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@click.option("--tag", metavar="NAME", help="Give the new run a name.")
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
        output.data(_render(found))
        return
    console = output.page()
    if found.changes:
        console.print(_table(found.changes[:_MAX_CHANGES]))
        if len(found.changes) > _MAX_CHANGES:
            console.print(f"… {len(found.changes) - _MAX_CHANGES} more: --json", style="dim")
        console.print()
    console.print(_summarize(found), soft_wrap=True)


def _render(found: Regraded) -> dict[str, Any]:
    return {
        "type": "regraded",
        "source": found.source,
        "run": None if found.run is None else found.run.id,
        "trials": found.trials,
        "undecided": list(found.undecided),
        "changes": msgspec.to_builtins(found.changes),
    }


def _table(changes: tuple[VerdictChange, ...]) -> Any:
    table = make_table(
        {"trial": "right", "cell": "", "case": "", "verdict": "", "now": "", "why": "dim"}
    )
    for change in changes:
        why = "; ".join(f"{reason.code} {reason.message}".strip() for reason in change.reasons)
        table.add_row(
            f"#{change.index}",
            line_of(change.cell),
            line_of(change.case),
            change.verdict,
            "✓ passed" if change.ok else "✗ failed",
            line_of(f"before: {why}" if change.ok else why),
        )
    return table


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
