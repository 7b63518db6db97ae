"""Looking across trials: how an experiment went over time, and what was replied to one case."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean

from .experiments import open_run_store
from .metrics import group_tasks
from .metrics.records import Simulated
from .metrics.tally import tally_rows
from .records import Reason, Task, TrialBody
from .stats import Rate
from .store import LATEST


class TrendPoint(Struct, frozen=True, kw_only=True):
    """One row of the matrix in one run."""

    run: str
    created_at: float
    """Seconds since 1970."""
    package: str
    regraded_from: str
    task: Task
    simulated: Simulated
    strict: Rate
    p95_ms: float
    cost_usd: float | None


def find_trend(reference: str = LATEST, *, store: str | Path | None = None) -> list[TrendPoint]:
    """Return how an experiment went in each of its runs, the oldest first.

    Runs belong together when their trials are the same: models, cases, options and seeds. The
    versions of surecall, of suites and of the catalog may differ; they are what a trend shows.

    Args:
        reference: Any run of the experiment.
        store: The file with the runs; the one of the settings by default.
    """
    with open_run_store(store, must_exist=True) as opened:
        wanted = opened.info(opened.resolve(reference)).manifest
        return [
            TrendPoint(
                run=info.id,
                created_at=info.created_at,
                package=info.manifest.package,
                regraded_from=info.manifest.regraded_from,
                task=task,
                simulated=group.simulated,
                strict=group.strict_of_all,
                p95_ms=group.latency.p95_ms,
                cost_usd=group.costs.cost_usd,
            )
            for info in reversed(opened.runs())
            if info.manifest.units_hash == wanted.units_hash
            and info.manifest.options == wanted.options
            for task, group in group_tasks(tally_rows(opened.rows(info.id)))
        ]


class CaseReply(Struct, frozen=True, kw_only=True):
    """What came of one case in one trial."""

    index: int
    task: Task
    simulated: bool
    trial: int
    strict_ok: bool
    reasons: tuple[Reason, ...]
    calls: tuple[str, ...]
    """Every call, turn by turn, as `name(arguments)`."""
    text: str
    """The final answer, or why there is none."""


def compare_case(
    case: str, reference: str = LATEST, *, store: str | Path | None = None
) -> list[CaseReply]:
    """Return what every model replied to one case, under every strategy.

    Args:
        case: The id of the case, its scenario if that has only one, or `scenario/case`.
        reference: The run.
        store: The file with the runs; the one of the settings by default.

    Raises:
        ConfigError: The run has no such case.
    """
    replies: list[CaseReply] = []
    known: dict[str, None] = {}
    with open_run_store(store, must_exist=True) as opened:
        run_id = opened.resolve(reference)
        for row in opened.rows(run_id):
            scenario = row.cell.scenario
            names = (row.case, f"{scenario}/{row.case}") if row.case else (scenario,)
            known[names[0]] = None
            if case in names:
                replies.append(
                    CaseReply(
                        index=row.index,
                        task=Task.of(row.cell),
                        simulated=row.simulated,
                        trial=row.trial,
                        strict_ok=row.strict_ok,
                        reasons=row.strict_reasons,
                        calls=_list_calls(opened.find_body(run_id, row.index)),
                        text=row.text or row.error or "",
                    )
                )
    if not replies:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"Run {run_id} has no case {case!r}.",
            hint=did_you_mean(case, known),
        )
    return replies


def _list_calls(body: TrialBody | None) -> tuple[str, ...]:
    turns: tuple[dict[str, Any], ...] = () if body is None else body.transcript
    return tuple(
        f"{call['name']}({call.get('raw') or call.get('arguments')})"
        for turn in turns
        for call in (*turn.get("calls", ()), *turn.get("ignored", ()))
    )
