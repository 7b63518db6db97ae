"""The table of the original experiment, and its recommendations, of any run that it describes."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from surecall.base.json_values import as_fields
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies
from surecall.evals.records import Manifest, Task
from surecall.evals.stats import percentile

from .names import PRESET

_YES: Final = 0.975
_CONDITIONAL: Final = 0.875
_BRITTLE: Final = 0.5
RULE: Final = (
    f"Yes: at least {_YES:.1%} of the tool scenarios right; Conditional: at least "
    f"{_CONDITIONAL:.1%}; (tool scenarios): under {_BRITTLE:.0%} of chat_only right."
)
"""How a recommendation is found; the limits are those of the table in its documents."""


class Table(NamedTuple):
    """A table of texts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class _Row(NamedTuple):
    """One model under one profile, strategy and fallback."""

    model: str
    task: Task
    tools: Tally
    controls: Tally
    failures: str

    @property
    def rate(self) -> float:
        return self.tools.original_ok / self.tools.n if self.tools.n else 0.0

    @property
    def verdict(self) -> str:
        if self.rate < _CONDITIONAL:
            return "No (for tool calling)"
        is_brittle = self.controls.n and self.controls.original_ok < _BRITTLE * self.controls.n
        word = "Yes" if self.rate >= _YES else "Conditional"
        return f"{word} (tool scenarios)" if is_brittle else word


def list_tables(manifest: Manifest, tallies: Tallies) -> dict[str, Table]:
    """Return the tables of a run that the variables of the experiment describe, by title."""
    options = as_fields(manifest.options.get("options"))
    if PRESET not in cast("Sequence[str]", options.get("preset", ())):
        return {}
    return {
        "Model/profile matrix": tabulate_run(manifest, tallies),
        "Recommendations": recommend_by_model(manifest, tallies),
    }


def tabulate_run(manifest: Manifest, tallies: Tallies) -> Table:
    """Return the experiment's table: a row for each model and sampling profile."""
    rows = _list_rows(manifest, tallies)
    axes = [axis for axis in ("strategy", "fallback") if len({_of(row, axis) for row in rows}) > 1]
    figures = ("tool_ok", "tool_ok_rate", "control_ok", "p95_ms", "top tool failures")
    return Table(
        ("model", "sampling_profile", *axes, *figures),
        tuple(
            (
                row.model,
                row.task.profile,
                *(_of(row, axis) for axis in axes),
                f"{row.tools.original_ok}/{row.tools.n}",
                f"{row.rate:.1%}" if row.tools.n else "-",
                f"{row.controls.original_ok}/{row.controls.n}",
                f"{percentile(row.tools.elapsed_ms + row.tools.censored_ms, 0.95):.0f}",
                row.failures,
            )
            for row in rows
        ),
    )


def recommend_by_model(manifest: Manifest, tallies: Tallies) -> Table:
    """Return for each model its best profile, and Yes, Conditional or No."""
    best: dict[str, _Row] = {}
    for row in _list_rows(manifest, tallies):
        if row.model not in best or row.rate > best[row.model].rate:
            best[row.model] = row
    return Table(
        ("model", "recommended sampling profile", "strategy", "recommended?", "notes"),
        tuple(
            (
                model,
                row.task.profile,
                row.task.strategy,
                row.verdict,
                f"{row.rate:.1%} of {row.tools.n} tool runs"
                + (f"; {row.failures}" if row.failures != "-" else ""),
            )
            for model, row in best.items()
        ),
    )


def _of(row: _Row, axis: str) -> str:
    return cast("str", getattr(row.task, axis))


def _list_rows(manifest: Manifest, tallies: Tallies) -> list[_Row]:
    found: dict[Task, dict[bool, dict[str, Tally]]] = {}
    for (cell, control), tally in tallies.items():
        group = found.setdefault(Task.of(cell), {False: {}, True: {}})[control]
        group[cell.scenario] = merge_tallies(
            [*([group[cell.scenario]] if cell.scenario in group else []), tally]
        )
    rows = [
        _Row(
            _model_of(manifest, task.model),
            task,
            merge_tallies(group[False].values()),
            merge_tallies(group[True].values()),
            _list_failures(group[False]),
        )
        for task, group in found.items()
    ]
    return sorted(rows, key=lambda row: (row.model, row.task.profile))


def _model_of(manifest: Manifest, label: str) -> str:
    known: Any = as_fields(manifest.contenders.get(label)).get("model")
    return str(known or label)


def _list_failures(scenarios: dict[str, Tally]) -> str:
    """Return the two scenarios with the most failures, and the most frequent category."""
    missed = {name: tally.n - tally.original_ok for name, tally in scenarios.items()}
    worst = sorted((name for name in missed if missed[name]), key=lambda name: -missed[name])[:2]
    categories = merge_tallies(scenarios.values()).categories.most_common(1)
    return (
        "; ".join(
            [f"{name} x{missed[name]}" for name in worst]
            + [f"{category} x{count}" for category, count in categories if worst]
        )
        or "-"
    )
