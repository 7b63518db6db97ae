"""What a strategy adds over another, model by model, and which rules were at work."""

from collections.abc import Mapping, Sequence

from surecall.evals.clusters import Difference
from surecall.evals.diff import Judged
from surecall.evals.gains import (
    Gain,
    average_spending,
    choose_base,
    contrast,
    list_gains,
    points,
    points_range,
    select_tools,
    shares,
    strip_strategy,
)
from surecall.evals.metrics import render_group
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies
from surecall.evals.recommendation import percent
from surecall.evals.standings import (
    Standings,
    compare_cases,
    key_of,
    name_contenders,
)
from surecall.evals.stats import Rate
from surecall.models.profiles import STRATEGIES

from .markup import Child, Html, code, join, name, table, tag

_MAX_RULES = 8
_MEANINGS = {strategy.id: strategy.meaning for strategy in STRATEGIES}


def gain_lines(tallies: Tallies, strategy: str, judged: Judged) -> Html:
    """Say in a line each what a strategy adds over all models, where it is worse, and its cost."""
    gains = list_gains(tallies, strategy, judged)
    about = gains[-1].remarks if gains else ()
    return join(
        *(_gain_line(gain) for gain in gains),
        *(tag("p", {"class": "gain k2"}, text) for text in about),
    )


def _gain_line(gain: Gain) -> Html:
    rest = gain.sentence.removeprefix(gain.strategy)
    return tag("p", {"class": "gain"}, tag("b", None, name(gain.strategy)), rest)


def gains_view(tallies: Tallies, base: str, standings: Standings) -> Html | None:
    """Return a line for each model from one strategy to the other, the largest gain first."""
    strategy, judged = standings.strategy, standings.judged
    if base == strategy:
        return None
    names = name_contenders(cell for cell, _ in tallies)
    before, after = _by_contender(tallies, base), _by_contender(tallies, strategy)
    found = [
        (names[key], compare_cases(strip_strategy(before[key]), strip_strategy(after[key]), judged))
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


def _dumbbell(who: str, contest: Difference) -> Html:
    a, b = shares(contest)
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
    shown = (
        [tag("b", None, points(contest)), " ", tag("small", None, points_range(contest))]
        if told
        else [
            tag("span", {"class": "k3"}, f"{points(contest)} {points_range(contest)}"),
            tag("small", None, f" {contest.sentence}"),
        ]
    )
    return tag(
        "tr",
        {"role": "row"},
        tag("th", {"scope": "row", "role": "rowheader"}, name(who)),
        tag("td", {"class": "viz", "role": "cell"}, drawn),
        tag("td", {"class": "num fromto", "role": "cell"}, f"{100 * a:.0f} → {percent(b)}"),
        tag("td", {"class": "num", "role": "cell"}, *shown),
    )


def rules_view(tallies: Tallies, strategy: str) -> Html | None:
    """Return the rules that right trials used, most often first."""
    tools = select_tools(tallies, strategy)
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
    """Return all strategies side by side, over all models, with what each costs."""
    if len(strategies) < 2:
        return None
    base = choose_base(strategies)
    head = [
        ("Strategy", ""),
        ("Right, 95\u202f% interval", "num"),
        (f"against {base}", "num"),
        ("False calls", "num"),
        ("Requests a trial", "num"),
        ("Tokens a trial", "num"),
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
        table(
            "Strategies",
            "plain comparators",
            head,
            [_comparator(tallies, base, strategy, judged) for strategy in strategies],
        ),
    )


def _comparator(tallies: Tallies, base: str, strategy: str, judged: Judged) -> Html:
    whole = merge_tallies(select_tools(tallies, strategy))
    group = render_group(whole, axis="strategy", value=strategy)
    contest = contrast(tallies, base, strategy, judged)
    rate: Rate = group.strict if judged == "strict" else group.original
    against = "–" if strategy == base else f"{points(contest)} {points_range(contest)}"
    shows_why = strategy != base and contest.counts.n
    low, high = 100 * rate.interval.low, 100 * rate.interval.high
    spending = average_spending(whole)

    def figure(label: str, *children: Child) -> Html:
        return tag("td", {"class": "num", "role": "cell", "data-label": label}, *children)

    meaning = _MEANINGS.get(strategy)
    return tag(
        "tr",
        {"role": "row"},
        tag(
            "th",
            {"scope": "row", "role": "rowheader"},
            name(strategy),
            tag("small", {"class": "k3"}, f" {meaning}") if meaning else None,
        ),
        figure(
            "right",
            tag("b", None, percent(rate.value)),
            " ",
            tag("small", None, f"{low:.0f}–{high:.0f}"),
        ),
        figure(
            f"against {base}",
            against,
            tag("small", {"class": "reason"}, f" {contest.sentence}") if shows_why else None,
        ),
        figure("false calls", f"{group.false_calls.k:,}"),
        figure("requests a trial", f"{spending.requests:.1f}"),
        figure("tokens a trial", f"{spending.tokens:,.0f}"),
        figure("trials", f"{group.judged:,}"),
    )


def _by_contender(tallies: Tallies, strategy: str) -> Mapping[tuple[str, str, str], list[Tally]]:
    found: dict[tuple[str, str, str], list[Tally]] = {}
    for (cell, control), tally in tallies.items():
        if cell.strategy == strategy and not control:
            found.setdefault(key_of(cell), []).append(tally)
    return found
