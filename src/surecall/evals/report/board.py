"""The first page of a report, whole in the file: the sentence, and the models best first."""

from collections.abc import Sequence
from typing import Final, get_args

from surecall.evals.clusters import METHOD, Difference
from surecall.evals.diff import Judged
from surecall.evals.gains import choose_base, signed
from surecall.evals.gates import VERDICTS, GateResult, describe_observed
from surecall.evals.metrics.tally import Tallies
from surecall.evals.recommendation import Recommendation, dollars, duration, percent, recommend
from surecall.evals.standings import Standing, Standings, best_strategy, list_strategies
from surecall.evals.store import RunInfo

from .findings import (
    comparators_view,
    findings_view,
    gain_lines,
    gains_view,
    kicker_view,
    method_view,
    notices_view,
    rules_view,
)
from .markup import (
    Child,
    Html,
    code,
    join,
    name,
    sentence,
    table,
    table_cell,
    table_row,
    tag,
    trials_link,
)
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


_CAPTION: Final = (
    "The blue column is the interval of the first model. Rank is the range of places that the "
    "trials allow. False calls: trials with a call that should not have been made; ≤ is the "
    "upper end of the interval. A dash under cost: no price is known. Errors of the endpoint "
    f"count as wrong. Intervals are at 95\u202f%, {METHOD}; comparisons use the same cases."
)
_HALF: Final = "M8 3a5 5 0 1 0 0 10 5 5 0 0 0 0-10M8 3v10"


def answer_view(found: Recommendation) -> Html:
    """Return the finding, on top of everything."""
    facts = [tag("span", None, text) for text in found.why[:-1]]
    why = tag(
        "details", {"class": "why"}, tag("summary", None, "Why?"), tag("p", None, found.why[-1])
    )
    return tag(
        "section",
        {"class": "answer", "aria-label": "Answer"},
        tag("h1", None, sentence(found.headline)),
        tag("p", None, sentence(found.more)) if found.more else None,
        tag("div", {"class": "how"}, *facts, why),
    )


def gates_view(results: Sequence[GateResult]) -> Html | None:
    """Return what became of the gates of the run."""
    rows = [
        table_row(
            code(result.gate.text),
            table_cell("", "verdict", tag("b", None, VERDICTS[result.verdict]), _say_let(result)),
            table_cell("", "observed", describe_observed(result)),
            table_cell("", "note", name(result.note)),
        )
        for result in results
    ]
    head = [("Gate", ""), ("Verdict", ""), ("Observed", ""), ("Note", "")]
    if not rows:
        return None
    return tag(
        "section",
        {"class": "wrap block", "aria-label": "Gates"},
        tag("h2", None, "Gates"),
        table("Gates", "plain", head, rows),
    )


def _say_let(result: GateResult) -> str:
    if result.verdict != "undecided":
        return ""
    return ", let through" if result.ok else ", stops the build"


def board_view(standings: Standings) -> Html:
    """Return the leaderboard."""
    first = standings.ranked[0] if standings.ranked else None
    has_answers = any(one.group.answer.n for one in standings.everyone)
    has_errors = any(one.group.errors for one in standings.everyone)
    rows: list[Html] = [_row(one, first, has_answers, has_errors) for one in standings.ranked]
    columns = 8 + has_answers + has_errors
    if standings.simulated:
        words = "Simulated: known behaviour, to test surecall with. Not ranked."
        if standings.ranked:
            rows.append(
                tag(
                    "tr",
                    {"class": "sep", "role": "row"},
                    tag("td", {"colspan": columns, "role": "cell"}, words),
                )
            )
        rows += [_row(one, first, has_answers, has_errors) for one in standings.simulated]
    head = [
        ("Rank", "rank"),
        ("Model", "who"),
        ("Right, 95\u202f% interval", "rate"),
        ("0 to 100\u202f%", "viz"),
        *([("Answer", "num")] if has_answers else []),
        ("False calls", "num"),
        ("p95", "num"),
        ("$ per 100 tasks", "num"),
        *([("Errors", "num")] if has_errors else []),
        ("Same as the first?", "same"),
    ]
    return join(
        table("Models, best first", "board", head, rows),
        tag("p", {"class": "caption"}, _CAPTION),
    )


def _row(one: Standing, first: Standing | None, has_answers: bool, has_errors: bool) -> Html:
    group, is_simulated = one.group, one.simulated == "all"
    low, high = one.places or (0, 0)
    rank = "" if one.places is None else str(low) if low == high else f"{low}–{high}"
    limit = group.latency.p99_ms if group.latency.censored else None
    answer = [table_cell("num", "answer", percent(group.answer.value))] if has_answers else []
    beside = tag("small", None, f" without: {percent(one.rate_answered.value)}")
    shown = [f"{group.errors:,}", *([beside] if group.errors else [])]
    errors = [table_cell("num", "errors", *shown)] if has_errors else []
    is_first = first is not None and one.name == first.name and one.is_eligible
    return tag(
        "tr",
        {"class": "pick" if is_first else "sim" if is_simulated else None, "role": "row"},
        table_cell("rank", None, rank),
        tag(
            "th",
            {"class": "who", "scope": "row", "role": "rowheader"},
            tag(
                "a",
                {"href": trials_link(model=one.cell.model, strategy=one.cell.strategy)},
                name(one.name),
            ),
            tag("small", None, " partly simulated") if one.simulated == "some" else None,
        ),
        table_cell(
            "rate",
            None,
            tag("b", None, percent(one.rate.value)),
            " ",
            tag("small", None, _ends(one)),
            tag("span", {"class": "hidden"}, f", {one.rate.k:,} of {one.rate.n:,}"),
        ),
        table_cell("viz", None, interval_bar(one, first)),
        *answer,
        table_cell(
            "num",
            "false calls",
            f"{group.false_calls.k:,}",
            tag("small", None, f" ≤\u202f{100 * group.false_calls.interval.high:.0f}\u202f%"),
        ),
        table_cell("num", "p95", duration(one.p95_ms, limit)),
        table_cell("num", "per 100", dollars(one.cost_per_100)),
        *errors,
        table_cell("same", None, *_same(one, first)),
    )


def _ends(one: Standing) -> str:
    interval = one.rate.interval
    return f"{100 * interval.low:.0f}–{100 * interval.high:.0f}"


def interval_bar(one: Standing, first: Standing | None) -> Html:
    """Draw a rate with its interval, before the interval of the first."""
    if one.rate.value is None:
        return Html("")
    low, high = 100 * one.rate.interval.low, 100 * one.rate.interval.high
    value = 100 * one.rate.value
    label = f"{value:.0f} percent, interval {low:.0f} to {high:.0f}"
    parts = [
        f'<line class="grid" x1="{x}%" x2="{x}%" y1="0" y2="100%"/>' for x in range(0, 101, 25)
    ]
    if first is not None and first.rate.n:
        start, end = 100 * first.rate.interval.low, 100 * first.rate.interval.high
        parts.insert(
            0, f'<rect class="ref" x="{start:.2f}%" width="{end - start:.2f}%" height="100%"/>'
        )
    parts.append(f'<line class="whisker" x1="{low:.2f}%" x2="{high:.2f}%" y1="50%" y2="50%"/>')
    parts += [
        f'<svg x="{end:.2f}%" y="50%"><line class="whisker" y1="-4" y2="4"/></svg>'
        for end in (low, high)
    ]
    parts.append(f'<circle class="point" cx="{value:.2f}%" cy="50%" r="5"/>')
    return Html(f'<svg class="interval" role="img" aria-label="{label}">{"".join(parts)}</svg>')


def _same(one: Standing, first: Standing | None) -> list[Child]:
    if one.simulated == "all":
        return [tag("span", {"class": "k3"}, "not compared")]
    if not one.is_eligible:
        words = "invented calls" if one.group.fabrications else "trials are missing"
        return [tag("span", {"class": "mark stop"}, words)]
    if first is None or one.against_first is None:
        return [tag("span", {"class": "k3"}, "–")]
    contest = one.against_first
    if contest.is_told:
        return [tag("span", {"class": "k2"}, f"no: {lower(contest)} "), _range(contest)]
    icon = Html(
        f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{_HALF}"/></svg>'
    )
    told = tag("span", {"class": "mark caution"}, icon, "undecided")
    return [told, " ", tag("span", {"class": "k3"}, f"{lower(contest)} "), _range(contest)]


def lower(contest: Difference) -> str:
    """Say how far a rate is below the first: `8 lower`."""
    points = round(-100 * contest.difference)
    if not points:
        return "equal"
    return f"{points} lower" if points > 0 else f"{-points} higher"


def _range(contest: Difference) -> Html:
    low, high = round(-100 * contest.interval.high), round(-100 * contest.interval.low)
    return tag("span", {"class": "k3"}, f"[{signed(low)} to {signed(high)}]")
