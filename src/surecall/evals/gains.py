"""What a strategy adds over one that helps less, where it is worse, and what it costs."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from .clusters import Difference
from .diff import Judged
from .metrics.tally import CaseTrials, Tallies, Tally, group_tallies, pair_trials
from .recommendation import duration, percent
from .records import Cell
from .standings import KNOWN_STRATEGIES, compare_cases, list_strategies
from .stats import PairCounts
from .strategies import UNAIDED
from .taxonomy import MEANINGS

_MAX_SHIFTS: Final = 3
_MINUS: Final = "\u2212"


class Spending(Struct, frozen=True):
    """What one trial takes on average."""

    requests: float
    tokens: float
    """Read and written."""
    ms: float


class Shift(Struct, frozen=True):
    """A scenario in which a strategy is more or less often right than the other."""

    scenario: str
    counts: PairCounts
    """A is the other, B the strategy; only trials that both have."""
    reason: str
    """The code that its trials fail for most often."""

    @property
    def difference(self) -> float:
        """The rate of right trials less that of the other."""
        return self.counts.difference or 0.0

    @property
    def figures(self) -> str:
        """What happened, in figures."""
        counts = self.counts
        right, other = counts.both + counts.only_b, counts.both + counts.only_a
        return f"{self.scenario}: {right} of {counts.n} right instead of {other}"

    @property
    def why(self) -> str:
        """What its failures have in common, in words."""
        meaning = MEANINGS["state"].get(self.reason, "").rstrip(".")
        why = f"because {meaning[:1].lower()}{meaning[1:]}" if meaning else f"for {self.reason}"
        return f"most often {why}"


class Gain(Struct, frozen=True, kw_only=True):
    """One strategy against another, over all models."""

    base: str
    strategy: str
    contest: Difference
    spending: Spending
    base_spending: Spending
    shifts: tuple[Shift, ...]
    """Scenarios in which it is better or worse, the worst first."""

    @property
    def rates(self) -> tuple[float, float]:
        """The share of right trials, of the other and of this one."""
        return shares(self.contest)

    @property
    def sentence(self) -> str:
        """What it adds, in one line."""
        counts = self.contest.counts
        before, after = (percent(share) for share in self.rates)
        said = (
            f"{self.strategy} against {self.base}: {before} → {after} right, "
            f"{points(self.contest)} points {points_range(self.contest)}"
        )
        moved = f"of {counts.n:,} trials {counts.only_b:,} were gained and {counts.only_a:,} lost"
        return f"{said}; {moved}; {self.contest.sentence}."

    @property
    def cost(self) -> str:
        """What it takes, in one line."""
        mine, other = self.spending, self.base_spending
        return (
            f"A trial with {self.strategy} takes {mine.requests:.1f} requests, {mine.tokens:,.0f} "
            f"tokens and {duration(mine.ms)}; with {self.base} it takes {other.requests:.1f}, "
            f"{other.tokens:,.0f} and {duration(other.ms)}."
        )

    @property
    def advance(self) -> str:
        """Where it is better, in one line; empty where it is not."""
        found = [shift.figures for shift in reversed(self.shifts) if shift.difference > 0]
        return _list_shifts(f"{self.strategy} is better in", found)

    @property
    def setback(self) -> str:
        """Where it is worse and why, in one line; empty where it is not."""
        found = [f"{one.figures}, {one.why}" for one in self.shifts if one.difference < 0]
        return _list_shifts(f"{self.strategy} is worse in", found)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Where it is better, where it is worse, and what it costs, a line each."""
        return tuple(text for text in (self.advance, self.setback, self.cost) if text)


def _list_shifts(words: str, found: list[str]) -> str:
    left = len(found) - _MAX_SHIFTS
    more = f"; and in {left} more" if left > 0 else ""
    return f"{words} {'; '.join(found[:_MAX_SHIFTS])}{more}." if found else ""


def find_gain(tallies: Tallies, base: str, strategy: str, judged: Judged = "strict") -> Gain | None:
    """Return what a strategy adds over another; None without a trial that both have."""
    contest = contrast(tallies, base, strategy, judged)
    if base == strategy or not contest.counts.n:
        return None
    return Gain(
        base=base,
        strategy=strategy,
        contest=contest,
        spending=average_spending(select_tools(tallies, strategy)),
        base_spending=average_spending(select_tools(tallies, base)),
        shifts=tuple(_find_shifts(tallies, base, strategy, judged)),
    )


def contrast(tallies: Tallies, base: str, strategy: str, judged: Judged) -> Difference:
    """Compare a strategy with another on the trials that both have."""
    before, after = (strip_strategy(select_tools(tallies, name)) for name in (base, strategy))
    return compare_cases(before, after, judged)


def list_gains(tallies: Tallies, strategy: str, judged: Judged = "strict") -> tuple[Gain, ...]:
    """Return what a strategy adds over each that ran without help of surecall."""
    bases = [name for name in list_strategies(tallies) if name in UNAIDED]
    found = (find_gain(tallies, base, strategy, judged) for base in bases)
    return tuple(gain for gain in found if gain is not None)


def list_helped_gains(tallies: Tallies, judged: Judged = "strict") -> tuple[Gain, ...]:
    """Return what each strategy adds over the naive rescue or raw; ablations are left out."""
    ran = list_strategies(tallies)
    base = choose_base(ran)
    helped = [name for name in ran if name in KNOWN_STRATEGIES and name not in UNAIDED]
    found = (find_gain(tallies, base, name, judged) for name in helped if base in UNAIDED)
    return tuple(gain for gain in found if gain is not None)


def choose_base(strategies: Iterable[str]) -> str:
    """Return what others are held to: the naive rescue, or raw, or the first there is."""
    names = list(strategies)
    return next((name for name in ("naive", "raw") if name in names), names[0] if names else "")


def select_tools(tallies: Tallies, strategy: str) -> Tally:
    """Return the counts of a strategy, without controls."""
    return group_tallies(tallies, _all, strategy=strategy).get(None, Tally())


def _all(_cell: Cell) -> None:
    """Put all cells into one group."""


def strip_strategy(tally: Tally) -> dict[tuple[Cell, str], CaseTrials]:
    """Return the trials by case and by everything of their cell but the strategy."""
    return {
        (replace(cell, strategy=""), case): trials for (cell, case), trials in tally.cases.items()
    }


def shares(contest: Difference) -> tuple[float, float]:
    """Return the share of right trials, of the other and of the one that is compared."""
    counts = contest.counts
    return ((counts.both + counts.only_a) / counts.n, (counts.both + counts.only_b) / counts.n)


def points(contest: Difference) -> str:
    """Return a difference in points, with its sign."""
    found = round(100 * contest.difference)
    return f"+{found}" if found > 0 else signed(found)


def points_range(contest: Difference) -> str:
    """Return the interval of a difference in points."""
    low, high = round(100 * contest.interval.low), round(100 * contest.interval.high)
    return f"[{signed(low)} to {signed(high)}]"


def signed(number: int) -> str:
    """Return a number with a true minus."""
    return f"{_MINUS}{-number}" if number < 0 else str(number)


def average_spending(whole: Tally) -> Spending:
    """Return what one trial takes, those that were stopped or failed included."""
    times = [*whole.elapsed_ms, *whole.censored_ms]
    usage, n = whole.usage, max(1, whole.n)
    return Spending(
        whole.requests / n,
        (usage.input_tokens + usage.output_tokens) / n,
        sum(times) / max(1, len(times)),
    )


def _find_shifts(tallies: Tallies, base: str, strategy: str, judged: Judged) -> list[Shift]:
    before, after = (
        group_tallies(tallies, attrgetter("suite", "scenario"), strategy=name)
        for name in (base, strategy)
    )
    found: list[Shift] = []
    for key, mine in after.items():
        sides = (strip_strategy(before.get(key, Tally())), strip_strategy(mine))
        pairs = pair_trials(*sides, original=judged == "original")
        counts = sum((case.counts for case in pairs), PairCounts())
        if counts.only_a == counts.only_b:
            continue
        failures = mine.failures.items()
        worst = max(failures, key=lambda item: (item[1], item[0]), default=None)
        found.append(Shift(key[1], counts, "" if worst is None else worst[0].code))
    return sorted(found, key=lambda shift: shift.difference)
