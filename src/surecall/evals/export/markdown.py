"""`summary.md`: a comment for a pull request, sixty lines at the most, details folded."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from surecall.evals.clusters import METHOD
from surecall.evals.gains import choose_base
from surecall.evals.gates import VERDICTS, GateResult, check_stored
from surecall.evals.metrics import group_tasks, summarize_tallies
from surecall.evals.metrics.records import Group, Simulated, StrategyComparison, Summary
from surecall.evals.metrics.tally import Tallies
from surecall.evals.original import RULE, Table, list_tables
from surecall.evals.records import Task
from surecall.evals.run_source import RunSource, write_export
from surecall.evals.standings import main_strategy
from surecall.evals.stats import Rate
from surecall.evals.store import RunInfo, RunStore
from surecall.evals.wording import describe_cost, describe_points, label_simulated

from .junit import explain_row

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
_OUTCOMES: Final = {
    "abstained": "no call was made",
    "broke": "no call ran",
    "called": "at least one call ran",
    "error": "the endpoint failed",
    "refused": "the endpoint refused",
}
"""The outcomes of a trial, as the reasons of failures name them."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def write_markdown(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write `summary.md` into a folder."""
    source = RunSource(store, run_id)
    path = out / "summary.md"
    gates = check_stored(store, source.info, source.tallies)
    text = render_markdown(
        source.tallies, source.info, gates, lambda index: explain_row(store.row(run_id, index))
    )
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
    tallies: Tallies,
    info: RunInfo,
    gates: Sequence[GateResult] = (),
    explain: Callable[[int], str] | None = None,
) -> str:
    """Return the comment; names of models, tools and rules cannot become markup."""
    summary = summarize_tallies(tallies)
    lines = [
        *_head(summary, info),
        *_gates(gates),
        *_rates(group_tasks(tallies)),
        *_comparisons(summary.strategies),
        *_fabrications(summary.overall),
        *_failures(summary.overall, explain),
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
        f"`original` {_share(summary.overall.original_of_all)}",
    ]
    if summary.overall.answer.n:
        parts.append(f"answers {_share(summary.overall.answer)}")
    errors = _count_errors(summary)
    if errors:
        answered = _share(summary.overall.strict)
        parts.append(
            f"**{errors:,} errors** of the endpoint count as wrong; without them {answered}"
        )
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


def _rates(tasks: Sequence[tuple[Task, Group]]) -> Iterator[str]:
    """Yield a line for each model and what else tells rows apart, the strategies side by side."""
    strategies = list(dict.fromkeys(task.strategy for task, _ in tasks))
    has_columns = 1 < len(strategies) <= _MAX_COLUMNS
    columns = [code_span(name) for name in strategies] if has_columns else ["strict", "original"]
    axes = ("profile", "fallback") if has_columns else ("profile", "fallback", "strategy")
    varying = [axis for axis in axes if len({getattr(task, axis) for task, _ in tasks}) > 1]
    found: dict[tuple[str, ...], dict[str, Group]] = {}
    for task, group in tasks:
        key = tuple(getattr(task, axis) for axis in ("model", *varying))
        found.setdefault(key, {})[task.strategy] = group
    rows: list[tuple[float, str]] = []
    for key, groups in found.items():
        last = groups.get(strategies[-1]) if has_columns else next(iter(groups.values()))
        shown = [_describe_task(groups.get(strategy)) for strategy in strategies]
        if not has_columns:
            shown = [_describe_task(last), _share(last.original_of_all) if last else ""]
        marks: list[Simulated] = [group.simulated for group in groups.values()]
        mark = _mark(marks[0] if len(set(marks)) == 1 else "some")
        name = " ".join(map(code_span, key))
        rate = (last.strict_of_all.value or 0.0) if last else 0.0
        rows.append((rate, f"| {name}{mark} | {' | '.join(shown)} |"))
    if not rows:
        return
    left = len(rows) - _MAX_ROWS
    if left > 0:
        rows = sorted(rows, key=lambda row: row[0])[:_MAX_ROWS]
    yield f"| model | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    yield from (line for _, line in rows)
    if left > 0:
        yield f"| {left} more, none of them worse{' |' * len(columns)} |"
    yield ""


def _describe_task(group: Group | None) -> str:
    """Return the rate of a row, with the time and the cost of its trials."""
    if group is None:
        return ""
    cost = f", {describe_cost(group.costs.cost_usd)}" if group.costs.priced else ""
    return f"{_share(group.strict_of_all)}, p95 {group.latency.p95_ms:,.0f} ms{cost}"


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


def _failures(overall: Group, explain: Callable[[int], str] | None) -> Iterator[str]:
    if not overall.failures:
        return
    failed = overall.strict.n - overall.strict.k
    yield f"| why {failed:,} trials failed | trials | example |"
    yield "|---|---|---|"
    for found in overall.failures[:_MAX_FAILURES]:
        failure = found.failure
        detail = _OUTCOMES.get(failure.detail) or (failure.detail and code_span(failure.detail))
        reason = f"{failure.layer}: {code_span(failure.code)}{detail and f', {detail}'}"
        said = f": {code_span(explain(found.example), _MAX_NOTE_CHARS)}" if explain else ""
        yield f"| {reason} | {found.count:,} | trial {found.example}{said} |"
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
    yield "| scenario | strict | original |"
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
    yield "| model | calls sent as calls | valid as sent | valid after reading | errors as sent |"
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


def _mark(simulated: Simulated) -> str:
    return label_simulated(simulated, " *{}*")
