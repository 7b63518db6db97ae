"""`summary.md`: a comment for a pull request, sixty lines at the most, details folded."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from surecall.evals.clusters import METHOD, clustered_rate
from surecall.evals.gains import choose_base
from surecall.evals.gates import VERDICTS, GateResult, check_stored
from surecall.evals.metrics import group_tasks, summarize_tallies
from surecall.evals.metrics.records import Group, Item, Simulated, StrategyComparison, Summary
from surecall.evals.original import RULE, Table, list_tables
from surecall.evals.records import Cell, Task
from surecall.evals.run_source import RunSource, write_export
from surecall.evals.standings import main_strategy
from surecall.evals.stats import Rate
from surecall.evals.store import RunInfo, RunStore
from surecall.evals.wording import describe_cost, describe_points, label_simulated

MAX_LINES: Final = 60
"""A comment that is longer is not read."""

_MAX_ROWS: Final = 10
_MAX_SCENARIOS: Final = 8
_MAX_FAILURES: Final = 5
_MAX_CALL_ROWS: Final = 3
_MAX_RECOVERIES: Final = 4
_MAX_COMPARISONS: Final = 2
_MAX_COLUMNS: Final = 4
_MAX_GATES: Final = 4
_MAX_NAMED_GATES: Final = 20
_MAX_NOTE_CHARS: Final = 400
_MAX_NAME_CHARS: Final = 80
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def write_markdown(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write `summary.md` into a folder."""
    source = RunSource(store, run_id)
    path = out / "summary.md"
    tasks = group_tasks(source.tallies)
    gates = check_stored(store, source.info, source.tallies)
    text = render_markdown(summarize_tallies(source.tallies), source.info, tasks, gates)
    with write_export(path) as file:
        file.write(text.encode("utf-8"))
    tables = list_tables(source.info.manifest, source.tallies)
    if not tables:
        return (path,)
    experiment = out / "experiment.md"
    with write_export(experiment) as file:
        file.write("\n".join(_experiment(tables)).encode("utf-8") + b"\n")
    return (path, experiment)


def _experiment(tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield the table of the original experiment, and what it recommends."""
    for title, table in tables.items():
        yield f"### {title}"
        yield ""
        yield f"| {' | '.join(table.columns)} |"
        yield "|---" * len(table.columns) + "|"
        for model, profile, *cells in table.rows:
            shown = (code_span(model), code_span(profile), *map(_plain_cell, cells))
            yield f"| {' | '.join(shown)} |"
        yield ""
    yield RULE


def _plain_cell(text: str) -> str:
    return text.replace("|", "\\|")


def render_markdown(
    summary: Summary,
    info: RunInfo,
    tasks: Sequence[tuple[Task, Group]] = (),
    gates: Sequence[GateResult] = (),
) -> str:
    """Return the comment; names of models, tools and rules cannot become markup.

    Args:
        summary: The figures.
        info: The run.
        tasks: The figures of each row over all scenarios, for the time and cost beside each rate.
        gates: What became of the gates of the run.
    """
    lines = [
        *_head(summary, info),
        *_gates(gates),
        *_rates(summary, dict(tasks)),
        *_comparisons(summary.strategies),
        *_fabrications(summary.overall),
        *_failures(summary.overall),
        *_details(summary),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def code_span(text: str, limit: int = _MAX_NAME_CHARS) -> str:
    """Return text as code, on one line: no markup, mention or table cell can come out of it."""
    shown = "".join(" " if unicodedata.category(char) in _HIDDEN else char for char in text)
    shown = " ".join(shown.split()) or "-"
    if len(shown) > limit:
        shown = f"{shown[:limit]}…"
    fence = "`"
    while fence in shown:
        fence += "`"
    if fence != "`":
        shown = f" {shown} "
    # A table ends its cell at a bar even inside code, unless there is a backslash.
    return f"{fence}{shown.replace('|', chr(92) + '|')}{fence}"


# Parts


def _head(summary: Summary, info: RunInfo) -> Iterator[str]:
    mark = _mark(summary.overall.simulated)
    yield f"### Tool calls: {_share(summary.overall.strict_of_all)} right{mark}"
    yield ""
    counted = f"{summary.rows:,} trials"
    if summary.rows < info.units:
        counted = f"**unfinished**, {summary.rows:,} of {info.units:,} trials"
    parts = [
        f"Run {code_span(info.id)}: {counted}",
        f"by the original's loose assertion {_share(summary.overall.original_of_all)}",
    ]
    if summary.overall.answer.n:
        parts.append(f"answers {_share(summary.overall.answer)}")
    errors = _count_errors(summary)
    if errors:
        answered = _share(summary.overall.strict)
        parts.append(f"**{errors:,} errors** of the endpoint count as wrong; without {answered}")
    if summary.controls is not None:
        parts.append(f"controls without tools {_share(summary.controls.strict)}")
    parts.append(f"surecall {info.manifest.package}" if info.manifest.package else "surecall")
    yield "; ".join(parts) + f". Intervals: 95 %, {METHOD}."
    yield ""
    if summary.overall.simulated != "none":
        which = "All" if summary.overall.simulated == "all" else "Some"
        yield f"> {which} models here are *simulated*: their results say nothing about real models."
        yield ""


def _count_errors(summary: Summary) -> int:
    return summary.overall.errors + (summary.controls.errors if summary.controls else 0)


def _gates(results: Sequence[GateResult]) -> Iterator[str]:
    """Yield what became of gates, those that do not pass first."""
    ordered = sorted(results, key=lambda result: (result.ok, result.verdict == "passed"))
    for result in ordered[:_MAX_GATES]:
        note = f": {code_span(result.note, _MAX_NOTE_CHARS)}" if result.note else ""
        let = "" if result.ok else ", stops the build"
        yield f"- gate {code_span(result.gate.text)} **{VERDICTS[result.verdict]}**{let}{note}"
    if more := ordered[_MAX_GATES:]:
        named = (
            f"{code_span(result.gate.text)} {VERDICTS[result.verdict]}"
            for result in more[:_MAX_NAMED_GATES]
        )
        left = len(more) - _MAX_NAMED_GATES
        yield f"- more gates: {', '.join(named)}{f' and {left} more' if left > 0 else ''}"
    if ordered:
        yield ""


class _Row(NamedTuple):
    """One line of the table of rates: who, and the rate in each column."""

    name: str
    simulated: Simulated
    rates: tuple[str, ...]
    rank: float
    """The rate that decides which rows are shown when there are too many."""


def _rates(summary: Summary, tasks: Mapping[Task, Group]) -> Iterator[str]:
    cells = [group for group in summary.cells if not group.control]
    strategies = list(dict.fromkeys(_cell(group).strategy for group in cells))
    has_columns = 1 < len(strategies) <= _MAX_COLUMNS
    columns = [code_span(name) for name in strategies] if has_columns else ["right", "loose"]
    rows: list[_Row] = []
    items: dict[Cell, list[Item]] = {}
    for item in summary.items:
        items.setdefault(item.cell, []).append(item)
    for name, members in _group(cells, with_strategy=not has_columns):
        rates = (_pool(members, items), _pool(members, items, loose=True))
        if has_columns:
            rates = tuple(
                _pool([group for group in members if _cell(group).strategy == strategy], items)
                for strategy in strategies
            )
        decisive = rates[-1] if has_columns else rates[0]
        rank = (decisive.value or 0.0) if decisive is not None else 0.0
        found = list(dict.fromkeys(Task.of(_cell(group)) for group in members))
        beside = {task.strategy: _describe_task(tasks.get(task)) for task in found}
        shown = [
            "" if rate is None else _share(rate) + (beside.get(column, "") if has_columns else "")
            for column, rate in zip(strategies if has_columns else columns, rates, strict=True)
        ]
        if not has_columns and len(found) == 1:
            shown[0] += beside[found[0].strategy]
        rows.append(_Row(name, _merge_simulated(members), tuple(shown), rank))
    if not rows:
        return
    listed, left = rows, len(rows) - _MAX_ROWS
    if left > 0:
        listed = sorted(rows, key=lambda row: row.rank)[:_MAX_ROWS]
    yield f"| model | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for row in listed:
        yield f"| {row.name}{_mark(row.simulated)} | {' | '.join(row.rates)} |"
    if left > 0:
        yield f"| {left} more, none of them worse{' |' * len(columns)} |"
    yield ""


def _describe_task(group: Group | None) -> str:
    """Return the time and the cost of trials, to stand beside their rate."""
    if group is None:
        return ""
    cost = f", {describe_cost(group.costs.cost_usd)}" if group.costs.priced else ""
    return f", p95 {group.latency.p95_ms:,.0f} ms{cost}"


def _comparisons(found: Sequence[StrategyComparison]) -> Iterator[str]:
    """Yield what production adds over the naive rescue first, then what is the surest."""
    overall = [one for one in found if one.model is None]
    names = list(dict.fromkeys(name for one in overall for name in (one.a, one.b)))
    claim = (choose_base(names), main_strategy(names))
    overall.sort(key=lambda one: ((one.a, one.b) != claim, one.p))
    for one in overall[:_MAX_COMPARISONS]:
        words = code_span(one.sentence, _MAX_NOTE_CHARS)
        points = describe_points(one.difference, one.interval, " points")
        yield (
            f"- {code_span(one.b)} against {code_span(one.a)}: {points}, "
            f"{one.counts.n:,} pairs{_mark(one.simulated)}; {words}"
        )
    if overall:
        yield ""


def _fabrications(overall: Group) -> Iterator[str]:
    if overall.fabrications:
        yield f"**{overall.fabrications} calls ran with something the model did not send.**"
        yield ""


def _failures(overall: Group) -> Iterator[str]:
    if not overall.failures:
        return
    failed = overall.strict.n - overall.strict.k
    yield f"| why {failed:,} trials failed | trials | example |"
    yield "|---|---|---|"
    for found in overall.failures[:_MAX_FAILURES]:
        failure = found.failure
        detail = f" {code_span(failure.detail)}" if failure.detail else ""
        reason = f"{failure.layer}: {code_span(failure.code)}{detail}"
        yield f"| {reason} | {found.count:,} | trial {found.example} |"
    left = overall.failures[_MAX_FAILURES:]
    if left:
        yield f"| {len(left)} other reasons | {sum(found.count for found in left):,} | |"
    yield ""


def _details(summary: Summary) -> Iterator[str]:
    scenarios = summary.axes.get("scenario", ())
    recoveries = [one for one in summary.overall.recoveries if one.saved.k]
    if not scenarios:
        return
    yield "<details><summary>By scenario, and the rules that right runs used</summary>"
    yield ""
    yield "| scenario | right | loose |"
    yield "|---|---|---|"
    left = len(scenarios) - _MAX_SCENARIOS
    if left > 0:
        scenarios = sorted(scenarios, key=lambda one: one.strict_of_all.value or 0.0)[
            :_MAX_SCENARIOS
        ]
    for group in scenarios:
        name = f"{code_span(group.value)}{_mark(group.simulated)}"
        yield f"| {name} | {_share(group.strict_of_all)} | {_share(group.original_of_all)} |"
    if left > 0:
        yield f"| {left} more, none of them worse | | |"
    yield ""
    yield from _calls(summary)
    if recoveries:
        yield f"| rule | right runs that used it{_mark(summary.overall.simulated)} |"
        yield "|---|---|"
        for one in recoveries[:_MAX_RECOVERIES]:
            yield f"| {code_span(one.rule)} | {_share(one.saved)} |"
        yield ""
    yield "</details>"


def _calls(summary: Summary) -> Iterator[str]:
    """Yield what calls were like as they arrived and after reading, by model if these are few."""
    models = [group for group in summary.axes.get("model", ()) if group.calls.count]
    found = models if len(models) <= _MAX_CALL_ROWS else [summary.overall]
    if not found:
        return
    yield "| model | calls in their place | fit as sent | fit after reading | errors by kind |"
    yield "|---|---|---|---|---|"
    for group in found:
        calls = group.calls
        rates = map(_share, (calls.structured, calls.valid_before, calls.valid_after))
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in calls.error_kinds.items())
        yield f"| {code_span(group.value)} | {' | '.join(rates)} | {kinds or '-'} |"
    yield ""


# Figures


def _share(rate: Rate) -> str:
    if not rate.n:
        return "none"
    low, high = 100 * rate.interval.low, 100 * rate.interval.high
    return f"{rate.k:,}/{rate.n:,} ({low:.0f}–{high:.0f} %)"


def _pool(
    groups: Sequence[Group], items: Mapping[Cell, Sequence[Item]], *, loose: bool = False
) -> Rate | None:
    """Return the rate of several cells together, clustered by case; endpoint errors are wrong."""
    if not groups:
        return None
    found = [item for group in groups for item in items.get(_cell(group), ())]
    drawn: dict[tuple[str, str, str], tuple[int, int]] = {}
    for item in (item for item in found if item.drawn):
        key = (item.cell.suite, item.cell.scenario, item.case)
        k, n = drawn.get(key, (0, 0))
        drawn[key] = (k + (item.original_k if loose else item.k), n + item.tried)
    k = sum(item.original_k if loose else item.k for item in found)
    return clustered_rate(k, sum(item.tried for item in found), drawn.values())


def _merge_simulated(groups: Sequence[Group]) -> Simulated:
    first = groups[0].simulated
    return first if all(group.simulated == first for group in groups) else "some"


def _mark(simulated: Simulated) -> str:
    return label_simulated(simulated, " *{}*")


# Names


def _cell(group: Group) -> Cell:
    assert group.cell is not None
    return group.cell


def _group(groups: Sequence[Group], *, with_strategy: bool) -> Iterator[tuple[str, list[Group]]]:
    """Yield the groups of each row with its name: the model, and what else tells rows apart."""
    others = ("profile", "fallback", "strategy") if with_strategy else ("profile", "fallback")
    varying = [
        name for name in others if len({getattr(_cell(group), name) for group in groups}) > 1
    ]
    rows: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        key = tuple(getattr(_cell(group), name) for name in ("model", *varying))
        rows.setdefault(key, []).append(group)
    for key, members in rows.items():
        yield " ".join(code_span(part) for part in key), members
