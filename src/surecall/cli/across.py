"""`surecall runs trend` and `surecall runs case`: across runs, and across models."""

from datetime import UTC, datetime
from typing import Final

import click
import msgspec

from surecall.evals.history import CaseReply, TrendPoint, compare_case, find_trend
from surecall.evals.wording import describe_cost, describe_rate, describe_reasons, label_simulated

from .flags import pass_output, store_flag
from .output import Output
from .suggestions import complete_runs
from .terminal import line_of, make_table

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
    if output.json:
        output.data({"type": "trend", "points": [_point_data(point) for point in points]})
        return
    table = make_table(
        {"model": "", "strategy": "", "started": "whole", "run": "whole"}
        | dict.fromkeys(("strict", "p95", "cost"), "right whole")
        | {"note": "dim"},
        optional=("note", "cost", "p95", "started"),
    )
    order = list(dict.fromkeys(point.task for point in points))
    for point in sorted(points, key=lambda point: order.index(point.task)):
        table.add_row(
            line_of(_name(point)) + label_simulated(point.simulated),
            line_of(point.task.strategy),
            f"{datetime.fromtimestamp(point.created_at, UTC):%Y-%m-%d %H:%M}",
            point.run,
            describe_rate(point.strict),
            f"{point.p95_ms:.0f} ms",
            describe_cost(point.cost_usd),
            "regraded" if point.regraded_from else "",
        )
    output.page().print(table)


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
    if output.json:
        output.data({"type": "case", "replies": [_point_data(reply) for reply in replies]})
        return
    table = make_table(
        {"trial": "right", "model": "", "strategy": "", "verdict": "whole"}
        | {"calls": "", "answer": ""}
    )
    for reply in replies:
        calls = [line_of(call, _MAX_TEXT) for call in reply.calls]
        answer = line_of(reply.text, _MAX_TEXT)
        if not reply.strict_ok:
            answer = f"{answer}\n✗ {line_of(describe_reasons(reply.reasons), _MAX_TEXT)}".strip()
        table.add_row(
            f"#{reply.index}",
            line_of(_name(reply)) + label_simulated("all" if reply.simulated else "none"),
            line_of(reply.task.strategy),
            "✓" if reply.strict_ok else "✗",
            "\n".join(calls) or "-",
            answer,
        )
    output.page().print(table)
