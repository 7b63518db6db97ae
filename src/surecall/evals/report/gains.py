"""What a strategy adds over another, model by model, and which rules were at work."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from surecall.evals.diff import Judged
from surecall.evals.metrics import render_group
from surecall.evals.metrics.tally import CaseTrials, Tallies, Tally, merge_tallies
from surecall.evals.recommendation import percent
from surecall.evals.records import Cell
from surecall.evals.standings import (
    Contest,
    Standings,
    compare_cases,
    key_of,
    name_contenders,
)
from surecall.evals.stats import Rate

from .board import signed
from .markup import Html, code, name, table, tag

_MAX_RULES = 8


def gain_line(tallies: Tallies, base: str, strategy: str, judged: Judged) -> Html | None:
    """Say in one line what a strategy adds over another, over all models."""
    if base == strategy:
        return None
    contest = compare_cases(_cases(tallies, base), _cases(tallies, strategy), judged)
    if not contest.counts.n:
        return None
    counts = contest.counts
    before, after = _rates(contest)
    return tag(
        "p",
        {"class": "gain"},
        tag("b", None, name(strategy)),
        f" against {base}: {percent(before)} → {percent(after)} right over all models, ",
        tag("b", None, _points(contest)),
        f" points {_range(contest)}; {counts.only_b:,} trials were gained and {counts.only_a:,} "
        f"lost of {counts.n:,}."
        if contest.is_told
        else f" points {_range(contest)}, which may be chance in {counts.n:,} trials.",
    )


def gains_view(tallies: Tallies, base: str, standings: Standings) -> Html | None:
    """Return a line for each model from one strategy to the other, the largest gain first."""
    strategy, judged = standings.strategy, standings.judged
    if base == strategy:
        return None
    names = name_contenders(cell for cell, _ in tallies)
    before, after = _by_contender(tallies, base), _by_contender(tallies, strategy)
    found = [
        (names[key], compare_cases(_strip(before[key]), _strip(after[key]), judged))
        for key in after
        if key in before
    ]
    found = [(who, contest) for who, contest in found if contest.counts.n]
    found.sort(key=lambda item: -item[1].difference)
    if not found:
        return None
    head = [
        ("Model", ""),
        (f"{base} to {strategy}", "viz"),
        ("right", "num"),
        ("points [95\u202f%]", "num"),
    ]
    return tag(
        "section",
        {"aria-label": "What it adds"},
        tag(
            "div",
            {"class": "head"},
            tag("h2", None, "What ", name(strategy), " adds over ", name(base)),
            tag("p", {"class": "right"}, "○ ", name(base), "  ● ", name(strategy)),
        ),
        table(
            f"{strategy} against {base}", "dumbbells", head, [_dumbbell(*item) for item in found]
        ),
    )


def _dumbbell(who: str, contest: Contest) -> Html:
    a, b = _rates(contest)
    told = contest.is_told
    tone = "" if not told else " told worse" if b < a else " told"
    low, high = sorted((100 * a, 100 * b))
    drawn = Html(
        f'<svg class="dumbbell{tone}" role="img" '
        f'aria-label="from {100 * a:.0f} to {100 * b:.0f} percent">'
        '<line class="grid" x1="0" x2="100%" y1="50%" y2="50%"/>'
        f'<line class="gain" x1="{low:.2f}%" x2="{high:.2f}%" y1="50%" y2="50%"/>'
        f'<circle class="from" cx="{100 * a:.2f}%" cy="50%" r="4.5"/>'
        f'<circle class="to" cx="{100 * b:.2f}%" cy="50%" r="5"/></svg>'
    )
    points = (
        [tag("b", None, _points(contest)), " ", tag("small", None, _range(contest))]
        if told
        else [tag("span", {"class": "k3"}, f"{_points(contest)} may be chance")]
    )
    return tag(
        "tr",
        {"role": "row"},
        tag("th", {"scope": "row", "role": "rowheader"}, name(who)),
        tag("td", {"class": "viz", "role": "cell"}, drawn),
        tag("td", {"class": "num fromto", "role": "cell"}, f"{100 * a:.0f} → {percent(b)}"),
        tag("td", {"class": "num", "role": "cell"}, *points),
    )


def rules_view(tallies: Tallies, strategy: str) -> Html | None:
    """Return the rules that right trials used, most often first."""
    tools = _tools(tallies, strategy)
    group = render_group(merge_tallies(tools), axis="strategy", value=strategy)
    used = [one for one in group.recoveries if one.saved.k][:_MAX_RULES]
    if not used:
        return None
    most = used[0].saved.k
    rows = [
        tag(
            "tr",
            {"role": "row"},
            tag("th", {"scope": "row", "role": "rowheader"}, code(one.rule)),
            tag(
                "td",
                {"class": "viz", "role": "cell"},
                Html(
                    '<svg class="bar" aria-hidden="true"><rect class="f-changed" height="100%" '
                    f'width="{100 * one.saved.k / most:.1f}%"/></svg>'
                ),
            ),
            tag("td", {"class": "num", "role": "cell"}, f"{one.saved.k:,}"),
        )
        for one in used
    ]
    head = [("Rule", ""), ("share", "viz"), ("right trials that used it", "num")]
    return tag(
        "section",
        {"aria-label": "Rules"},
        tag("div", {"class": "head"}, tag("h2", None, "Which rules were at work")),
        table("Rules", "rules", head, rows),
        tag(
            "p",
            {"class": "caption"},
            "Right trials in which a call could be used because of the rule. A trial may need "
            "several, and another rule might have done the same: ablation tells.",
        ),
    )


def comparators_view(tallies: Tallies, strategies: Sequence[str], judged: Judged) -> Html | None:
    """Return all strategies side by side, over all models."""
    if len(strategies) < 2:
        return None
    first = strategies[0]
    rows: list[Html] = []
    for strategy in strategies:
        group = render_group(
            merge_tallies(_tools(tallies, strategy)), axis="strategy", value=strategy
        )
        contest = compare_cases(_cases(tallies, first), _cases(tallies, strategy), judged)
        rate: Rate = group.strict if judged == "strict" else group.original
        against = "–" if strategy == first else f"{_points(contest)} {_range(contest)}"
        if strategy != first and not contest.is_told:
            against += ", may be chance"
        low, high = 100 * rate.interval.low, 100 * rate.interval.high
        rows.append(
            tag(
                "tr",
                {"role": "row"},
                tag("th", {"scope": "row", "role": "rowheader"}, name(strategy)),
                tag(
                    "td",
                    {"class": "num", "role": "cell", "data-label": "right"},
                    tag("b", None, percent(rate.value)),
                    " ",
                    tag("small", None, f"{low:.0f}–{high:.0f}"),
                ),
                tag(
                    "td",
                    {"class": "num", "role": "cell", "data-label": f"against {first}"},
                    against,
                ),
                tag(
                    "td",
                    {"class": "num", "role": "cell", "data-label": "false calls"},
                    f"{group.false_calls.k:,}",
                ),
                tag(
                    "td",
                    {"class": "num", "role": "cell", "data-label": "trials"},
                    f"{group.judged:,}",
                ),
            )
        )
    head = [
        ("Strategy", ""),
        ("Right, 95\u202f% interval", "num"),
        (f"against {first}", "num"),
        ("False calls", "num"),
        ("Trials", "num"),
    ]
    return tag(
        "section",
        {"class": "block", "aria-label": "Comparators"},
        tag(
            "div",
            {"class": "head"},
            tag("h2", None, "Strategies side by side"),
            tag("p", None, "All models together, the same cases and seeds."),
        ),
        table("Strategies", "plain", head, rows),
    )


def _tools(tallies: Tallies, strategy: str) -> list[Tally]:
    return [
        tally
        for (cell, control), tally in tallies.items()
        if cell.strategy == strategy and not control
    ]


def _cases(tallies: Tallies, strategy: str) -> dict[tuple[Cell, str], CaseTrials]:
    return _strip(_tools(tallies, strategy))


def _strip(tallies: Sequence[Tally]) -> dict[tuple[Cell, str], CaseTrials]:
    return {
        (replace(cell, strategy=""), case): trials
        for tally in tallies
        for (cell, case), trials in tally.cases.items()
    }


def _by_contender(tallies: Tallies, strategy: str) -> Mapping[tuple[str, str, str], list[Tally]]:
    found: dict[tuple[str, str, str], list[Tally]] = {}
    for (cell, control), tally in tallies.items():
        if cell.strategy == strategy and not control:
            found.setdefault(key_of(cell), []).append(tally)
    return found


def _rates(contest: Contest) -> tuple[float, float]:
    counts = contest.counts
    return ((counts.both + counts.only_a) / counts.n, (counts.both + counts.only_b) / counts.n)


def _points(contest: Contest) -> str:
    points = round(100 * contest.difference)
    return f"+{points}" if points > 0 else signed(points)


def _range(contest: Contest) -> str:
    low, high = round(100 * contest.interval.low), round(100 * contest.interval.high)
    return f"[{signed(low)} to {signed(high)}]"
