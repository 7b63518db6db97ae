"""The first page of a report, whole in the file: it can be read and printed without a script."""

from collections.abc import Sequence
from typing import Final, get_args

from surecall.evals.diff import Judged
from surecall.evals.gains import choose_base
from surecall.evals.gates import GateResult
from surecall.evals.metrics.tally import Tallies
from surecall.evals.recommendation import recommend
from surecall.evals.standings import best_strategy, list_strategies
from surecall.evals.store import RunInfo

from .board import answer_view, board_view, gates_view
from .findings import findings_view, kicker_view, method_view, notices_view
from .gains import comparators_view, gain_lines, gains_view, rules_view
from .markup import Html, join, name, tag
from .scenario_map import ScenarioMap, views

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
        _page(tallies, info, strategies, strategy, judged, left_out, is_first=strategy == shown)
        for strategy in ordered
        for judged in _JUDGED
    ]
    return join(
        gates_view(gates), *pages, tag("div", {"class": "wrap"}, method_view(info, kept, choice))
    )


def _page(
    tallies: Tallies,
    info: RunInfo,
    strategies: Sequence[str],
    strategy: str,
    judged: Judged,
    left_out: int,
    *,
    is_first: bool,
) -> Html:
    found = recommend(tallies, strategy=strategy or None, judged=judged)
    standings = found.standings
    base = choose_base(strategies)
    sides = [gains_view(tallies, base, standings), rules_view(tallies, strategy)]
    return tag(
        "div",
        {
            "class": "wrap view",
            "data-strategy": strategy,
            "data-judged": judged,
            "hidden": not (is_first and judged == "strict"),
        },
        kicker_view(info, tallies, standings),
        answer_view(found),
        notices_view(info, tallies, left_out, strategies),
        tag(
            "section",
            {"class": "block", "aria-label": "Models, best first"},
            tag(
                "div",
                {"class": "head"},
                tag("h2", None, "Models, best first"),
                _choices(strategies, strategy, judged),
            ),
            board_view(standings),
            gain_lines(tallies, strategy, judged),
        ),
        tag("div", {"class": "block cols"}, *sides) if any(sides) else None,
        views(ScenarioMap(tallies, standings)),
        comparators_view(tallies, strategies, judged),
        findings_view(tallies, standings),
    )


def _choices(strategies: Sequence[str], strategy: str, judged: Judged) -> Html:
    """Return the choice of strategy and verdict; the script follows it."""

    def choice(kind: str, value: str, chosen: str) -> Html:
        return tag(
            "a",
            {
                "href": "#/",
                "data-choice": kind,
                "data-value": value,
                "aria-current": "true" if value == chosen else None,
            },
            name(value),
        )

    return tag(
        "div",
        {"class": "right choices"},
        tag(
            "span",
            {"class": "seg", "role": "group", "aria-label": "Strategy"},
            *(choice("show", value, strategy) for value in strategies),
        )
        if len(strategies) > 1
        else None,
        tag(
            "span",
            {"class": "seg", "role": "group", "aria-label": "Verdict"},
            *(choice("kind", value, judged) for value in _JUDGED),
        ),
    )
