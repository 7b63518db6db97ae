"""What else trials say: what a strategy adds, which rules were at work, and how it was measured."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from surecall.evals.clusters import METHOD, Difference
from surecall.evals.diff import Judged
from surecall.evals.gains import (
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
from surecall.evals.store import RunInfo
from surecall.models.profiles import STRATEGIES

from .markup import Html, code, join, link, name, trials_link

View = dict[str, Any]

_MAX_RULES = 8
_MAX_REASONS = 12
_NAMED = 3
_MEANINGS = {strategy.id: strategy.meaning for strategy in STRATEGIES}
_ABOUT_INTERVALS = (
    f"95\u202f%, {METHOD}: where cases differ more than chance, or are few, trials count for "
    "less. Fields of the map show counts alone."
)
_ABOUT_VERDICTS = (
    "strict is state and process together; the answer is counted separately. original is the loose "
    "assertion of the original experiment."
)
_ABOUT_TIMES = (
    "Kaplan-Meier: a trial that was stopped would have taken longer. A dash lies beyond "
    "what was waited for."
)


def view_remarks(tallies: Tallies, strategy: str, judged: Judged) -> View:
    """Say in a line each what a strategy adds over all models, where it is worse, and its cost."""
    gains = list_gains(tallies, strategy, judged)
    return {
        "gain_lines": [
            {"who": gain.strategy, "rest": gain.sentence.removeprefix(gain.strategy)}
            for gain in gains
        ],
        "gain_remarks": list(gains[-1].remarks) if gains else [],
    }


def view_gains(tallies: Tallies, base: str, standings: Standings) -> View | None:
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
    return {"rows": [_view_gain(*item) for item in found]} if found else None


def _view_gain(who: str, contest: Difference) -> View:
    a, b = shares(contest)
    low, high = sorted((100 * a, 100 * b))
    return {
        "who": who,
        "tone": "" if not contest.is_told else " told worse" if b < a else " told",
        "from": f"{100 * a:.0f}",
        "to": f"{100 * b:.0f}",
        **{key: f"{value:.2f}" for key, value in (("low", low), ("high", high))},
        **{key: f"{100 * value:.2f}" for key, value in (("a", a), ("b", b))},
        "right": percent(b),
        "is_told": contest.is_told,
        "points": points(contest),
        "range": points_range(contest),
        "sentence": contest.sentence,
    }


def view_rules(tallies: Tallies, strategy: str) -> View | None:
    """Return the rules that right trials used, most often first."""
    used = [one for one in _render_strategy(tallies, strategy).recoveries if one.saved.k]
    rows = [
        {
            "rule": one.rule,
            "share": f"{100 * one.saved.k / used[0].saved.k:.1f}",
            "saved": f"{one.saved.k:,}",
        }
        for one in used[:_MAX_RULES]
    ]
    return {"rows": rows} if rows else None


def view_comparators(tallies: Tallies, strategies: Sequence[str], judged: Judged) -> View | None:
    """Return all strategies side by side, over all models, with what each costs."""
    if len(strategies) < 2:
        return None
    base = choose_base(strategies)
    return {"rows": [_view_comparator(tallies, base, one, judged) for one in strategies]}


def _view_comparator(tallies: Tallies, base: str, strategy: str, judged: Judged) -> View:
    group, contest = _render_strategy(tallies, strategy), contrast(tallies, base, strategy, judged)
    rate = group.strict_of_all if judged == "strict" else group.original_of_all
    spending = average_spending(select_tools(tallies, strategy))
    is_base = strategy == base
    return {
        "who": strategy,
        "meaning": _MEANINGS.get(strategy),
        "rate": percent(rate.value),
        "ends": f"{100 * rate.interval.low:.0f}–{100 * rate.interval.high:.0f}",
        "against": "–" if is_base else f"{points(contest)} {points_range(contest)}",
        "sentence": None if is_base or not contest.counts.n else contest.sentence,
        "false_calls": f"{group.false_calls.k:,}",
        "requests": f"{spending.requests:.1f}",
        "tokens": f"{spending.tokens:,.0f}",
        "trials": f"{group.n:,}",
    }


def _render_strategy(tallies: Tallies, strategy: str) -> Group:
    return render_group(select_tools(tallies, strategy), axis="strategy", value=strategy)


def list_findings(tallies: Tallies, standings: Standings) -> list[View]:
    """Return what else the trials of a strategy say: why they fail, how steadily, how long."""
    whole, everyone = _render_strategy(tallies, standings.strategy), standings.everyone
    words = ("always", "sometimes", "never", "once")
    return [
        _view_table(
            "Why trials fail",
            _say_reasons(whole),
            ("Reason", "Layer", "Trials", "Example"),
            [
                (
                    join(code(one.code), Html(f" <small>{name(one.detail)}</small>")),
                    str(one.layer),
                    link(f"{found.count:,}", trials_link(failure=one.code)),
                    link(f"trial {found.example}", f"#/trial/{found.example}"),
                )
                for found in whole.failures[:_MAX_REASONS]
                for one in (found.failure,)
            ],
            texts=1,
        ),
        _view_table(
            "Right every time",
            _say_repeats(standings),
            ("Cases that are right", "always", "sometimes", "never", "tried once"),
            [
                (name(one.name), *(f"{getattr(one.group.stability, word):,}" for word in words))
                for one in everyone
            ],
        ),
        _view_table(
            "How long trials take",
            _say_times(whole),
            ("Model", "p50", "p95", "p99", "stopped"),
            [
                (
                    name(one.name),
                    duration(one.group.latency.true_p50_ms),
                    duration(one.p95_ms),
                    duration(one.group.latency.true_p99_ms),
                    f"{one.group.latency.censored:,}",
                )
                for one in everyone
            ],
            note=_ABOUT_TIMES,
        ),
    ]


def _view_table(
    title: str,
    said: str,
    head: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    *,
    texts: int = 0,
    note: str = "",
) -> View:
    """Return a table that can be opened; so many of its columns after the first hold texts."""
    first, *others = head
    return {
        "title": title,
        "said": said,
        "first": first,
        "head": [{"text": text, "css": place >= texts} for place, text in enumerate(others)],
        "rows": [{"about": about, "cells": cells} for about, *cells in rows],
        "note": note,
    }


def _say_reasons(whole: Group) -> str:
    if not whole.failures:
        return "No trial failed."
    first, failed = whole.failures[0], whole.judged - whole.strict.k
    return join("Most often ", code(first.failure.code), f" ({first.count:,} of {failed:,}).")


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


def _say_times(whole: Group) -> str:
    if not whole.latency.n:
        return "No trial was timed."
    said = f"Half of all trials end within {duration(whole.latency.true_p50_ms)}."
    stopped = whole.latency.censored
    return f"{said} {stopped:,} were stopped by a time limit." if stopped else said


# How it was measured


def list_kicker(info: RunInfo, tallies: Tallies, standings: Standings) -> list[str]:
    """Return what ran, for one line above the answer."""
    cells = {cell for cell, _ in tallies}
    tools = {(cell.suite, cell.scenario) for cell, control in tallies if not control}
    controls = {(cell.suite, cell.scenario) for cell, control in tallies if control}
    sizes = sorted({one.group.judged for one in standings.everyone})
    with_controls = f" and {_count(len(controls), 'control')}" if controls else ""
    span = "–".join(f"{size:,}" for size in sizes[:1] + sizes[1:][-1:])
    parts = [
        f"suite {', '.join(dict.fromkeys(cell.suite for cell, _ in tallies))}" if cells else "",
        _count(len({cell.model for cell in cells}), "model"),
        _count(len(tools), "scenario") + with_controls,
        f"n = {span} a model" if sizes else "",
        f"strategy {standings.strategy}" if standings.strategy else "",
        f"{standings.judged} verdict",
        f"{datetime.fromtimestamp(info.created_at, UTC):%d %b %Y}" if info.created_at else "",
    ]
    return [part for part in parts if part]


def list_notices(info: RunInfo, left_out: int, strategies: Sequence[str]) -> list[str]:
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
    return found


def list_measured(info: RunInfo, kept: int, choice: str) -> list[View]:
    """Return how the run was made and how its figures are."""
    manifest = info.manifest
    whose = {"failed": "failed trials, and one right trial of each case"}.get(choice, choice)
    suites = ", ".join(f"{suite} {version}" for suite, version in manifest.suites.items())
    software = f"surecall {manifest.package}, Python {manifest.python}, engine {manifest.engine}"
    measured = {
        "Run": name(info.id),
        "Command": code(manifest.command) if manifest.command else "–",
        "Trials": f"{info.done:,} of {info.units:,}, {info.status}",
        "Begun, ended": f"{_moment(info.created_at)}, {_moment(info.ended_at)}",
        "Software": name(software),
        "Suites": name(suites) if suites else "–",
        "Experiment": code(manifest.hash),
        "Intervals": _ABOUT_INTERVALS,
        "Verdict": _ABOUT_VERDICTS,
        "Transcripts here": f"{kept:,} ({whose})",
    }
    tags = {"Run": list(info.tags)}
    return [
        {"about": about, "text": text, "tags": tags.get(about)} for about, text in measured.items()
    ]


def _moment(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC" if seconds else "–"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
