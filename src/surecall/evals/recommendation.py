"""Which model to take: one sentence made by rule from the trials, and why."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from surecall.base.errors import Code, ConfigError

from .clusters import METHOD
from .diff import Judged
from .gates.text import MAX_ERRORS, Gate, explain_errors, limit_errors
from .metrics.tally import Tallies
from .standings import (
    Standing,
    Standings,
    best_strategy,
    list_strategies,
    rank,
    stand_all,
)

MIN_TRIALS: Final = 20
"""Fewer trials than this name no model."""
MAX_RIVALS: Final = 3
"""More models than this that cannot be told apart name no model."""
_CHEAPER: Final = 0.6
"""A rival is offered that costs, or takes, at most this share of the first."""

Emphasis = Literal["", "strong", "quiet"]


class Words(NamedTuple):
    """Part of a sentence, and how much weight it has."""

    text: str
    emphasis: Emphasis = ""


class Recommendation(Struct, frozen=True, kw_only=True):
    """The answer of a run."""

    strategy: str
    judged: Judged
    chosen: str | None
    """The contender to take; None when the trials do not say."""
    headline: tuple[Words, ...]
    more: tuple[Words, ...]
    """Who cannot be told from it, and who is cheaper or faster."""
    why: tuple[str, ...]
    standings: Standings

    @property
    def sentence(self) -> str:
        """The headline as plain text."""
        return "".join(part.text for part in self.headline)

    @property
    def remark(self) -> str:
        """What follows the headline, as plain text; empty when there is nothing to add."""
        return "".join(part.text for part in self.more).strip()


def recommend(
    tallies: Tallies,
    *,
    strategy: str | None = None,
    judged: Judged = "strict",
    max_errors: str = MAX_ERRORS,
) -> Recommendation:
    """Recommend a model, or explain why none stands out.

    Args:
        tallies: The trials of a run, counted by `tally_rows`.
        strategy: The strategy that is looked at; by default production, or another that is surely
            better.
        judged: The verdict that decides.
        max_errors: How many trials of a model may end with an endpoint's error, as a count or a
            share. With more of any model, none is named. A request that the endpoint refused is
            the model's failure, and bars only the model itself.

    Raises:
        ConfigError: `NOTHING_SELECTED`: the run has trials, but none with this strategy.
    """
    strategies = list_strategies(tallies)
    if strategy and strategies and strategy not in strategies:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"the run has no trials with the strategy {strategy!r}.",
            hint=f"It has: {', '.join(strategies)}.",
        )
    chosen_strategy = strategy or best_strategy(tallies, judged)
    standings = rank(tallies, chosen_strategy, judged)
    answer = _Answer(standings, limit_errors(max_errors))
    headline, chosen = answer.headline()
    return Recommendation(
        strategy=chosen_strategy,
        judged=judged,
        chosen=chosen,
        headline=tuple(headline),
        more=tuple([*answer.remark(), *_say_others(tallies, standings, chosen)] if chosen else []),
        why=tuple(answer.reasons()),
        standings=standings,
    )


class _Answer:
    """The sentences about one order of merit."""

    def __init__(self, standings: Standings, limit: Gate) -> None:
        self.standings = standings
        self.lost = [
            f"{one.name}: {reason}"
            for one in standings.ranked
            if (reason := explain_errors(limit, one.group, with_refusals=False))
        ]
        self.able = [one for one in standings.ranked if one.is_eligible]
        self.ranked = len(standings.ranked)
        self.first = self.able[0] if self.able else None
        if self.first is not None and not self.lost:
            refused = explain_errors(limit, self.first.group)
            self.lost = [f"{self.first.name}: {refused}"] if refused else []
        self.rivals = [
            one for one in self.able[1:] if one.against_first and not one.against_first.is_told
        ]

    def headline(self) -> tuple[list[Words], str | None]:
        """Return the sentence, and who is named in it."""
        first = self.first
        if self.lost:
            return [Words("No choice.", "strong"), Words(f" {self.lost[0]}.")], None
        if first is None:
            return [Words(self._say_nobody())], None
        figures = [
            Words(percent(first.rate.value), "strong"),
            Words(f" {bracket(first)}", "quiet"),
            Words(" right"),
            *_say_costs(first),
            Words("."),
        ]
        if self.ranked == 1:
            return [
                Words(first.name, "strong"),
                *self._say_strategy(),
                Words(" is right in "),
                *figures[:2],
                Words(f" of {first.rate.n:,} trials"),
                *figures[3:],
            ], first.name
        if first.rate.n < MIN_TRIALS or len(self.rivals) >= MAX_RIVALS:
            return [Words("No choice yet.", "strong"), Words(" " + self._say_too_few(first))], None
        named = [Words(first.name, "strong"), *self._say_strategy()]
        return [Words("Choose "), *named, Words(": "), *figures], first.name

    def _say_strategy(self) -> list[Words]:
        return [Words(" with "), Words(self.standings.strategy, "strong")]

    def _say_nobody(self) -> str:
        if self.standings.ranked:
            return "No choice: no model has all its trials without an invented call."
        if self.standings.simulated:
            return (
                "All models are simulated: this shows what surecall does with known behaviour, "
                "not which model to take."
            )
        return "No trial was made yet."

    def _say_too_few(self, first: Standing) -> str:
        n = first.rate.n
        if n < MIN_TRIALS:
            return f"With n = {n} a model, nothing is named; {MIN_TRIALS} trials are the least."
        told = f"At n = {n:,} the first {len(self.rivals) + 1} models cannot be told apart."
        contest = self.rivals[0].against_first
        needed = None if contest is None else contest.needed
        return (
            f"{told} About {needed:,} trials a model would tell the first two." if needed else told
        )

    def remark(self) -> list[Words]:
        """Return who cannot be told from the first, and who of them is the better deal."""
        first, rivals = self.first, self.rivals
        if first is None or self.ranked == 1:
            return []
        if not rivals:
            runner = self.able[1] if len(self.able) > 1 else None
            if runner is None or runner.against_first is None:
                return []
            low, high = _points(runner)
            return [
                Words(runner.name, "strong"),
                Words(f" is next: {percent(runner.rate.value)}, {low} to {high} points lower."),
            ]
        said = _join_names(rivals)
        said.append(Words(f" cannot be told from it at n = {first.rate.n:,}."))
        deal = next((one for one in rivals if _describe_deal(first, one)), None)
        if deal is not None:
            worst = max(0, _points(deal)[1])
            said += [
                Words(f" {deal.name} {_describe_deal(first, deal)}: take it if a rate up to "),
                Words(f"{worst} points lower is worth that to you."),
            ]
        return said

    def reasons(self) -> list[str]:
        """Return how the answer was found, a sentence each."""
        everyone = self.standings.everyone
        trials = sum(one.group.n for one in everyone)
        invented = sum(one.group.fabrications for one in everyone)
        errors = sum(one.group.errors for one in everyone)
        refused = sum(one.group.unanswered.k for one in everyone) - errors
        found = [
            f"{invented:,} calls were invented in {trials:,} trials."
            if invented
            else f"No call was invented in {trials:,} trials."
        ]
        if errors:
            found.append(f"{errors:,} of all trials met an endpoint error, which counts as wrong.")
        if refused:
            found.append(f"{refused:,} of all requests were refused, which counts as wrong.")
        found += [f"{reason}." for reason in self.lost]
        short = [one.name for one in self.standings.ranked if one not in self.able]
        if short:
            found.append(
                f"Not considered, with trials missing or invented calls: {', '.join(short)}."
            )
        if self.first is not None:
            first = self.first.name
            found += [
                f"{rival.name} and {first}: {rival.against_first.sentence}."
                for rival in self.rivals[:MAX_RIVALS]
                if rival.against_first is not None
            ]
        found.append(
            "First is the highest rate; ties go to fewer false calls, then to lower cost, then to "
            f"lower p95. An endpoint error counts as wrong. Intervals are at 95 %, {METHOD}. Two "
            "models are told apart when the exact McNemar test has p < 0.05 and the interval of "
            "their difference leaves out 0."
        )
        return found


def _say_others(tallies: Tallies, standings: Standings, chosen: str) -> list[Words]:
    """Say what each other strategy does for the model that is named, and at what price."""
    said: list[Words] = []
    for strategy in list_strategies(tallies):
        if strategy == standings.strategy:
            continue
        for one in stand_all(tallies, strategy, standings.judged):
            if one.name == chosen:
                said += [Words(f" With {strategy}: "), Words(percent(one.rate.value), "strong")]
                said += [*_say_costs(one), Words(".")]
    return said


def percent(value: float | None) -> str:
    """Return a share as it stands in a sentence: `96 %`, and `99.6 %` near the ends."""
    if value is None:
        return "–"
    points = 100 * value
    shown = f"{points:.0f}"
    if shown in {"0", "100"} and points not in {0.0, 100.0}:
        shown = f"{points:.1f}"
    return f"{shown}\u202f%"


def bracket(one: Standing) -> str:
    """Return the interval of a rate, such as `[92–98]`."""
    interval = one.rate.interval
    return f"[{100 * interval.low:.0f}–{100 * interval.high:.0f}]"


def dollars(cost: float | None) -> str:
    """Return a cost with two digits that count; an unknown one is a dash, never 0."""
    if cost is None:
        return "–"
    return f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.2g}"


def duration(ms: float | None, limit_ms: float | None = None) -> str:
    """Return a time with two digits that count; one beyond the limit says so."""
    if ms is None:
        return "–" if limit_ms is None else f">\u202f{duration(limit_ms)}"
    if ms < 1:
        return "<\u202f1\u202fms"
    if ms < 999.5:
        return f"{ms:.0f}\u202fms"
    return f"{ms / 1000:.1f}\u202fs" if ms < 9950 else f"{ms / 1000:,.0f}\u202fs"


def _say_costs(first: Standing) -> list[Words]:
    said = [Words(", p95 "), Words(duration(first.p95_ms), "strong")]
    if first.p95_ms is None:
        said = [Words(", p95 beyond the time limit")]
    if first.cost_per_100 is not None:
        said += [Words(", "), Words(dollars(first.cost_per_100), "strong"), Words(" per 100 tasks")]
    return said


def _join_names(rivals: Sequence[Standing]) -> list[Words]:
    said: list[Words] = []
    for place, one in enumerate(rivals):
        if place:
            said.append(Words(" and " if place == len(rivals) - 1 else ", "))
        said.append(Words(one.name, "strong"))
    return said


def _describe_deal(first: Standing, one: Standing) -> str:
    """Say what a rival saves, if it costs or takes much less."""
    found: list[str] = []
    if first.p95_ms and one.p95_ms and one.p95_ms <= _CHEAPER * first.p95_ms:
        found.append(f"is faster (p95 {duration(one.p95_ms)})")
    a, b = first.cost_per_100, one.cost_per_100
    if a and b is not None and b <= _CHEAPER * a:
        found.append(f"costs {100 * b / a:.0f}\u202f% of it ({dollars(b)})")
    return " and ".join(found)


def _points(one: Standing) -> tuple[int, int]:
    """Return the interval of how far a rival is below the first, in points."""
    assert one.against_first is not None
    interval = one.against_first.interval
    return (round(-100 * interval.high), round(-100 * interval.low))
