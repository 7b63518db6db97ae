"""What else trials say: what a strategy adds, which rules were at work, and how it was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from surecall.evals.clusters import METHOD, Difference
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
from surecall.evals.metrics.records import Group
from surecall.evals.metrics.tally import Tallies, group_tallies
from surecall.evals.recommendation import duration, percent
from surecall.evals.standings import Standing, Standings, compare_cases, key_of, name_contenders
from surecall.evals.stats import Rate
from surecall.evals.store import RunInfo
from surecall.models.profiles import STRATEGIES

from .markup import Child, Html, code, join, name, table, table_cell, table_row, tag, trials_link

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
    before, after = (group_tallies(tallies, key_of, strategy=one) for one in (base, strategy))
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
    return table_row(
        name(who),
        table_cell("viz", None, drawn),
        table_cell("num fromto", None, f"{100 * a:.0f} → {percent(b)}"),
        table_cell("num", None, *shown),
    )


def rules_view(tallies: Tallies, strategy: str) -> Html | None:
    """Return the rules that right trials used, most often first."""
    tools = select_tools(tallies, strategy)
    group = render_group(tools, axis="strategy", value=strategy)
    used = [one for one in group.recoveries if one.saved.k][:_MAX_RULES]
    if not used:
        return None
    most = used[0].saved.k
    rows = [
        table_row(
            code(one.rule),
            table_cell(
                "viz",
                None,
                Html(
                    '<svg class="bar" aria-hidden="true"><rect class="f-changed" height="100%" '
                    f'width="{100 * one.saved.k / most:.1f}%"/></svg>'
                ),
            ),
            table_cell("num", None, f"{one.saved.k:,}"),
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
    whole = select_tools(tallies, strategy)
    group = render_group(whole, axis="strategy", value=strategy)
    contest = contrast(tallies, base, strategy, judged)
    rate: Rate = group.strict_of_all if judged == "strict" else group.original_of_all
    against = "–" if strategy == base else f"{points(contest)} {points_range(contest)}"
    shows_why = strategy != base and contest.counts.n
    low, high = 100 * rate.interval.low, 100 * rate.interval.high
    spending = average_spending(whole)

    meaning = _MEANINGS.get(strategy)
    interval = tag("small", None, f"{low:.0f}–{high:.0f}")
    why = tag("small", {"class": "reason"}, f" {contest.sentence}") if shows_why else None
    figures: dict[str, Child] = {
        "right": [tag("b", None, percent(rate.value)), " ", interval],
        f"against {base}": [against, why],
        "false calls": f"{group.false_calls.k:,}",
        "requests a trial": f"{spending.requests:.1f}",
        "tokens a trial": f"{spending.tokens:,.0f}",
        "trials": f"{group.n:,}",
    }
    return table_row(
        [name(strategy), tag("small", {"class": "k3"}, f" {meaning}") if meaning else None],
        *(table_cell("num", label, shown) for label, shown in figures.items()),
    )


_MAX_REASONS = 12
_NAMED = 3
_ABOUT_INTERVALS = (
    f"95\u202f%, {METHOD}: where cases differ more than chance, or are few, trials count for "
    "less. Fields of the map show counts alone."
)
_ABOUT_VERDICTS = (
    "strict is state and process together; the answer is counted separately. original is the loose "
    "assertion of the original experiment."
)


def findings_view(tallies: Tallies, standings: Standings) -> Html:
    """Return what else the trials of a strategy say."""
    whole = render_group(
        select_tools(tallies, standings.strategy), axis="strategy", value=standings.strategy
    )
    return tag(
        "section",
        {"class": "block", "aria-label": "More findings"},
        tag("h2", None, "More findings"),
        tag(
            "div",
            {"class": "findings"},
            _finding("Why trials fail", _say_reasons(whole), _reasons(whole)),
            _finding("Right every time", _say_repeats(standings), _repeats(standings.everyone)),
            _finding("How long trials take", _say_times(whole), _times(standings.everyone)),
        ),
    )


def _finding(title: str, said: Child, opened: Html) -> Html:
    return tag(
        "details",
        None,
        tag("summary", None, tag("b", None, title), tag("span", {"class": "k2"}, said)),
        opened,
    )


def _say_reasons(whole: Group) -> Child:
    if not whole.failures:
        return "No trial failed."
    first, failed = whole.failures[0], whole.judged - whole.strict.k
    return ["Most often ", code(first.failure.code), f" ({first.count:,} of {failed:,})."]


def _reasons(whole: Group) -> Html:
    rows = [
        _row(
            [code(found.failure.code), " ", tag("small", None, name(found.failure.detail))],
            str(found.failure.layer),
            tag("a", {"href": trials_link(failure=found.failure.code)}, f"{found.count:,}"),
            tag("a", {"href": f"#/trial/{found.example}"}, f"trial {found.example}"),
        )
        for found in whole.failures[:_MAX_REASONS]
    ]
    head = [("Reason", ""), ("Layer", ""), ("Trials", "num"), ("Example", "num")]
    return table("Why trials fail", "plain", head, rows)


def _say_repeats(standings: Standings) -> str:
    named = [
        f"{one.name} in {one.group.stability.always:,} of {_count_cases(one):,} cases"
        for one in standings.everyone[:_NAMED]
        if _count_cases(one)
    ]
    if not named:
        return "Every case was tried once, so nothing is known."
    return f"All repeats are right: {', '.join(named)}."


def _count_cases(one: Standing) -> int:
    found = one.group.stability
    return found.always + found.sometimes + found.never


def _repeats(everyone: Sequence[Standing]) -> Html:
    rows = [
        _row(
            name(one.name),
            *(
                f"{getattr(one.group.stability, word):,}"
                for word in ("always", "sometimes", "never", "once")
            ),
        )
        for one in everyone
    ]
    words = ("always", "sometimes", "never", "tried once")
    head = [("Cases that are right", ""), *((word, "num") for word in words)]
    return table("Right every time", "plain", head, rows)


def _say_times(whole: Group) -> str:
    if not whole.latency.n:
        return "No trial was timed."
    said = f"Half of all trials end within {duration(whole.latency.true_p50_ms)}."
    stopped = whole.latency.censored
    return f"{said} {stopped:,} were stopped by a time limit." if stopped else said


def _times(everyone: Sequence[Standing]) -> Html:
    rows = [
        _row(
            name(one.name),
            duration(one.group.latency.true_p50_ms),
            duration(one.p95_ms),
            duration(one.group.latency.true_p99_ms),
            f"{one.group.latency.censored:,}",
        )
        for one in everyone
    ]
    head = [("Model", ""), ("p50", "num"), ("p95", "num"), ("p99", "num"), ("stopped", "num")]
    return join(
        table("How long trials take", "plain", head, rows),
        tag(
            "p",
            {"class": "caption"},
            "Kaplan-Meier: a trial that was stopped would have taken longer. A dash lies beyond "
            "what was waited for.",
        ),
    )


def _row(first: Child, *rest: Child) -> Html:
    return table_row(first, *(table_cell("num", None, cell) for cell in rest))


# How it was measured


def kicker_view(info: RunInfo, tallies: Tallies, standings: Standings) -> Html:
    """Return what ran, in one line above the answer."""
    cells = {cell for cell, _ in tallies}
    tools = {(cell.suite, cell.scenario) for cell, control in tallies if not control}
    controls = {(cell.suite, cell.scenario) for cell, control in tallies if control}
    sizes = sorted({one.group.judged for one in standings.everyone})
    parts = [
        f"suite {', '.join(dict.fromkeys(cell.suite for cell, _ in tallies))}" if cells else "",
        _count(len({cell.model for cell in cells}), "model"),
        _count(len(tools), "scenario")
        + (f" and {_count(len(controls), 'control')}" if controls else ""),
        f"n = {'–'.join(f'{size:,}' for size in sizes[:1] + sizes[1:][-1:])} a model"
        if sizes
        else "",
        f"strategy {standings.strategy}" if standings.strategy else "",
        f"{standings.judged} verdict",
        f"{datetime.fromtimestamp(info.created_at, UTC):%d %b %Y}" if info.created_at else "",
    ]
    return tag(
        "p",
        {"class": "kicker"},
        *(tag("span", None, name(part)) for part in parts if part),
        tag("a", {"href": "#how"}, "How it was measured"),
    )


def notices_view(info: RunInfo, tallies: Tallies, left_out: int, strategies: Sequence[str]) -> Html:
    """Return what a reader must know before the figures."""
    found: list[str] = []
    if info.done < info.units:
        found.append(
            f"The run is not complete: {info.done:,} of {_count(info.units, 'trial')} are done. "
            f"To go on: surecall eval --resume {info.id}"
        )
    if "guided" in strategies:
        found.append(
            "The strategy guided uses what an application would declare for each task: tools that "
            "must have succeeded, and tools that need others first. No other strategy does."
        )
    if left_out:
        found.append(f"{_count(left_out, 'transcript')} found no room in this file.")
    return join(*(tag("p", {"class": "notice"}, name(text)) for text in found))


def method_view(info: RunInfo, kept: int, choice: str) -> Html:
    """Return how the run was made and how its figures are."""
    manifest = info.manifest
    whose = {
        "none": "none",
        "failed": "failed trials, and one right trial of each case",
        "all": "all",
    }
    suites = ", ".join(f"{suite} {version}" for suite, version in manifest.suites.items())
    pairs: list[tuple[str, Child]] = [
        (
            "Run",
            [name(info.id), *(tag("span", {"class": "count"}, name(tag_)) for tag_ in info.tags)],
        ),
        ("Command", code(manifest.command) if manifest.command else "–"),
        ("Trials", f"{info.done:,} of {info.units:,}, {info.status}"),
        ("Begun, ended", f"{_moment(info.created_at)}, {_moment(info.ended_at)}"),
        (
            "Software",
            name(
                f"surecall {manifest.package}, Python {manifest.python}, engine {manifest.engine}"
            ),
        ),
        ("Suites", name(suites) if suites else "–"),
        ("Experiment", code(manifest.hash)),
        ("Intervals", _ABOUT_INTERVALS),
        ("Verdict", _ABOUT_VERDICTS),
        ("Transcripts here", f"{kept:,} ({whose[choice]})"),
    ]
    return tag(
        "section",
        {"class": "block", "id": "how", "aria-label": "How it was measured"},
        tag("div", {"class": "head"}, tag("h2", None, "How it was measured")),
        tag(
            "dl",
            {"class": "facts"},
            *((tag("dt", None, key), tag("dd", None, value)) for key, value in pairs),
        ),
    )


def _moment(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC" if seconds else "–"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
