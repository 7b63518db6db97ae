"""The first page of a report, whole in the file: the sentence, and the models best first."""

from collections.abc import Sequence
from typing import Any, Final, get_args

from surecall.evals.clusters import METHOD
from surecall.evals.diff import Judged
from surecall.evals.gains import choose_base, signed
from surecall.evals.gates import VERDICTS, GateResult, describe_observed
from surecall.evals.metrics.tally import Tallies
from surecall.evals.recommendation import dollars, duration, percent, recommend
from surecall.evals.standings import Standing, Standings, best_strategy, list_strategies
from surecall.evals.store import RunInfo

from .findings import (
    list_findings,
    list_kicker,
    list_measured,
    list_notices,
    view_comparators,
    view_gains,
    view_remarks,
    view_rules,
)
from .markup import Html, fill, sentence, trials_link
from .scenario_map import ScenarioMap

_JUDGED: Final[tuple[Judged, ...]] = get_args(Judged)


def render_answer(
    tallies: Tallies,
    info: RunInfo,
    *,
    gates: Sequence[GateResult] = (),
    kept: int,
    choice: str,
    left_out: int,
) -> Html:
    """Return the page for every strategy and verdict, all but the first of them hidden."""
    strategies = list_strategies(tallies)
    shown = best_strategy(tallies)
    ordered = [shown, *(name for name in strategies if name != shown)]
    pages = [
        _view_page(tallies, info, strategies, strategy, judged, left_out)
        for strategy in ordered
        for judged in _JUDGED
    ]
    view = {
        "gates": {"rows": [_view_gate(result) for result in gates]} if gates else None,
        "pages": [page | {"is_hidden": place > 0} for place, page in enumerate(pages)],
        "measured": list_measured(info, kept, choice),
        "method": METHOD,
    }
    return fill("answer.html", "surecall.evals.report", view)


def _view_page(
    tallies: Tallies,
    info: RunInfo,
    strategies: Sequence[str],
    strategy: str,
    judged: Judged,
    left_out: int,
) -> dict[str, Any]:
    found = recommend(tallies, strategy=strategy or None, judged=judged)
    standings, base = found.standings, choose_base(strategies)
    gains, rules = view_gains(tallies, base, standings), view_rules(tallies, strategy)
    scenarios = ScenarioMap(tallies, standings)
    return {
        "strategy": strategy,
        "judged": judged,
        "base": base,
        "kicker": list_kicker(info, tallies, standings),
        "headline": sentence(found.headline),
        "more": sentence(found.more),
        "facts": list(found.why[:-1]),
        "why": found.why[-1],
        "notices": list_notices(info, left_out, strategies),
        "has_choice": len(strategies) > 1,
        "strategies": _view_choices(strategies, strategy),
        "verdicts": _view_choices(_JUDGED, judged),
        **_view_board(standings),
        **view_remarks(tallies, strategy, judged),
        "has_sides": bool(gains or rules),
        "gains": gains,
        "rules": rules,
        "map": scenarios.view(),
        "worst": scenarios.view_worst(),
        "comparators": view_comparators(tallies, strategies, judged),
        "findings": list_findings(tallies, standings),
    }


def _view_choices(values: Sequence[str], chosen: str) -> list[dict[str, Any]]:
    return [{"value": value, "is_chosen": value == chosen} for value in values]


def _view_gate(result: GateResult) -> dict[str, Any]:
    let = ", let through" if result.ok else ", stops the build"
    return {
        "text": result.gate.text,
        "verdict": VERDICTS[result.verdict],
        "let": let if result.verdict == "undecided" else "",
        "observed": describe_observed(result),
        "note": result.note,
    }


def _view_board(standings: Standings) -> dict[str, Any]:
    """Return the leaderboard."""
    ranked, everyone = standings.ranked, standings.everyone
    first = ranked[0] if ranked else None
    has_answers = any(one.group.answer.n for one in everyone)
    has_errors = any(one.group.errors for one in everyone)
    return {
        "has_answers": has_answers,
        "has_errors": has_errors,
        "columns": 8 + has_answers + has_errors,
        "standings": [
            _view_standing(one, first)
            | {"separates": bool(ranked) and one in standings.simulated[:1]}
            for one in everyone
        ],
    }


def _view_standing(one: Standing, first: Standing | None) -> dict[str, Any]:
    group, is_simulated = one.group, one.simulated == "all"
    low, high = one.places or (0, 0)
    limit = group.latency.p99_ms if group.latency.censored else None
    is_first = first is not None and one.name == first.name and one.is_eligible
    interval = one.rate.interval
    return {
        "css": "pick" if is_first else "sim" if is_simulated else None,
        "rank": "" if one.places is None else str(low) if low == high else f"{low}–{high}",
        "link": trials_link(model=one.cell.model, strategy=one.cell.strategy),
        "who": one.name,
        "is_partly": one.simulated == "some",
        "rate": percent(one.rate.value),
        "ends": f"{100 * interval.low:.0f}–{100 * interval.high:.0f}",
        "k": f"{one.rate.k:,}",
        "n": f"{one.rate.n:,}",
        "bar": _view_bar(one, first),
        "answer": percent(group.answer.value),
        "false_calls": f"{group.false_calls.k:,}",
        "false_high": f"{100 * group.false_calls.interval.high:.0f}",
        "p95": duration(one.p95_ms, limit),
        "cost": dollars(one.cost_per_100),
        "errors": f"{group.errors:,}",
        "without": percent(one.rate_answered.value) if group.errors else None,
        **_view_same(one, first),
    }


def _view_bar(one: Standing, first: Standing | None) -> dict[str, Any] | None:
    """Return a rate with its interval, before the interval of the first."""
    if one.rate.value is None:
        return None
    low, high = 100 * one.rate.interval.low, 100 * one.rate.interval.high
    value, reference = 100 * one.rate.value, None
    if first is not None and first.rate.n:
        start, end = 100 * first.rate.interval.low, 100 * first.rate.interval.high
        reference = {"start": f"{start:.2f}", "width": f"{end - start:.2f}"}
    return {
        "label": f"{value:.0f} percent, interval {low:.0f} to {high:.0f}",
        "reference": reference,
        "low": f"{low:.2f}",
        "high": f"{high:.2f}",
        "value": f"{value:.2f}",
    }


def _view_same(one: Standing, first: Standing | None) -> dict[str, Any]:
    """Say whether a model can be told from the first."""
    said = {"mark": "k3", "same": "–", "is_open": False, "range": None}
    contest = one.against_first
    if one.simulated == "all":
        return said | {"same": "not compared"}
    if not one.is_eligible:
        words = "invented calls" if one.group.fabrications else "trials are missing"
        return said | {"mark": "mark stop", "same": words}
    if first is None or contest is None:
        return said
    low, high = round(-100 * contest.interval.high), round(-100 * contest.interval.low)
    points = round(-100 * contest.difference)
    lower = f"{points} lower" if points > 0 else f"{-points} higher" if points else "equal"
    said |= {"lower": lower, "range": f"[{signed(low)} to {signed(high)}]"}
    if contest.is_told:
        return said | {"mark": "k2", "same": f"no: {lower} "}
    return said | {"mark": "mark caution", "same": "undecided", "is_open": True}
