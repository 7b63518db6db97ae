"""Counting trials, cell by cell, without keeping them."""

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, Self, TypeVar

from surecall.base.records import Usage
from surecall.evals.clusters import CasePairs, clustered_rate
from surecall.evals.records import CallFact, Cell, TrialRow
from surecall.evals.stats import PairCounts, Rate
from surecall.evals.taxonomy import Failure, classify, has_false_call, was_unanswered

from .records import AXES

T = TypeVar("T", bound=Hashable)

CALL_RATES: Final = ("structured", "valid_before", "valid_after", "changed", "executed")
"""What is counted of every call: fields of a call, and rates of its group."""


SAVED_BY: Final = "saved by "
"""Before the name of a rule: how many right trials of a case needed it."""

CaseKey = tuple[str, str, str]
"""What tells cases apart, whoever tries them: suite, scenario and case."""


class CaseTrials:
    """The trials of one case in one cell, a bit each."""

    __slots__ = ("counts", "drawn", "made", "original", "strict", "tried")

    def __init__(self) -> None:
        self.tried = 0
        """Every trial; one that the endpoint failed is not right."""
        self.made = 0
        """Those that were judged."""
        self.original = self.strict = 0
        self.drawn = False
        """Whether the case stands for others, and not for itself."""
        self.counts: Counter[str] = Counter()
        """Whatever else is counted of its trials and their calls."""

    def add(self, row: TrialRow) -> None:
        """Note a trial; of two with the same number the first is paired."""
        self.drawn = row.drawn
        self.counts["tried"] += 1
        if not row.is_error:
            self.counts["judged"] += 1
            self.counts["strict_ok"] += row.strict_ok
            self.counts["original_ok"] += row.original_ok
        bit = 1 << row.trial
        if not self.tried & bit:
            self.tried |= bit
            self.made |= 0 if row.is_error else bit
            self.original |= bit if row.original_ok else 0
            self.strict |= bit if row.strict_ok else 0

    def pair(self, other: Self, *, original: bool = False) -> PairCounts:
        """Count how the trials that both have agree."""
        common = self.tried & other.tried
        a, b = (self.original, other.original) if original else (self.strict, other.strict)
        return PairCounts(
            both=(common & a & b).bit_count(),
            only_a=(common & a & ~b).bit_count(),
            only_b=(common & ~a & b).bit_count(),
            neither=(common & ~a & ~b).bit_count(),
        )


class Tally:
    """Running counts of some trials; two of them can be added."""

    def __init__(self) -> None:
        self.n = self.original_ok = self.strict_ok = self.simulated = 0
        self.errors = self.refused = self.unanswered = 0
        self.turns = self.requests = self.escalations = self.fabrications = 0
        self.cut_by_limit = self.priced = self.cached_replies = 0
        self.cost_usd = 0.0
        self.usage = Usage()
        self.outcomes: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()
        self.formats: Counter[str] = Counter()
        self.error_kinds: Counter[str] = Counter()
        self.error_codes: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.saved_examples: dict[str, int] = {}
        self.failures: Counter[Failure] = Counter()
        self.error_causes: Counter[Failure] = Counter()
        self.examples: dict[Failure, int] = {}
        self.elapsed_ms = array("d")
        self.censored_ms = array("d")
        self.cases: dict[tuple[Cell, str], CaseTrials] = {}

    def add(self, row: TrialRow) -> None:
        """Count one trial; one that the endpoint failed is in no rate."""
        self.n += 1
        self.simulated += row.simulated
        self.outcomes[row.outcome] += 1
        if row.category is not None:
            self.categories[row.category] += 1
        failure = classify(row)
        if failure is not None:
            (self.error_causes if row.is_error else self.failures)[failure] += 1
            self.examples.setdefault(failure, row.index)
        self._add_costs(row)
        if row.censored:  # it would have taken longer, whoever is to blame
            self.censored_ms.append(row.elapsed_ms)
        elif not row.is_error and not row.is_refused:  # an endpoint that fails at once is not fast
            self.elapsed_ms.append(row.elapsed_ms)
        self.refused += row.is_refused
        self.unanswered += was_unanswered(row)
        case = self.cases.setdefault((row.cell, row.case), CaseTrials())
        case.add(row)
        if row.is_error:
            self.errors += 1
        else:
            self._add_judged(case, row)

    def _add_judged(self, case: CaseTrials, row: TrialRow) -> None:
        """Count what rates are made of."""
        self.original_ok += row.original_ok
        self.strict_ok += row.strict_ok
        case.counts["false_calls"] += has_false_call(row)
        if row.answer_ok is not None:
            case.counts["answers"] += 1
            case.counts["answer_ok"] += row.answer_ok
        for call in row.calls:
            self._add_call(case, call)
        self._add_rules(case, row)

    @property
    def judged(self) -> int:
        """How many trials rates are of: all but those that the endpoint failed."""
        return self.n - self.errors

    def _add_call(self, case: CaseTrials, call: CallFact) -> None:
        counts = case.counts
        counts["calls"] += 1
        for name in CALL_RATES:
            counts[name] += getattr(call, name)
        if call.exact is not None:
            counts["expected"] += 1
            counts["exact"] += call.exact
            counts["changed_expected"] += call.changed
            counts["changed_exact"] += call.changed and call.exact
        self.formats[call.format] += 1
        self.error_kinds.update(call.error_kinds)
        self.error_codes.update(call.error_codes)

    def _add_rules(self, case: CaseTrials, row: TrialRow) -> None:
        self.fired.update(row.rules)
        if row.strict_ok and row.saved_by:
            case.counts["saved_runs"] += 1
            for rule in dict.fromkeys(row.saved_by):
                case.counts[f"{SAVED_BY}{rule}"] += 1
                self.saved_examples.setdefault(rule, row.index)

    def _add_costs(self, row: TrialRow) -> None:
        self.turns += row.turns
        self.requests += row.requests
        self.cached_replies += row.cached_replies
        self.escalations += row.escalations
        self.fabrications += row.fabrications
        self.cut_by_limit += row.cut_by_limit
        self.usage += row.usage
        if row.cost_usd is not None:
            self.priced += 1
            self.cost_usd += row.cost_usd

    def include(self, other: Self) -> None:
        """Add the counts of other trials."""
        for name, value in vars(other).items():
            if isinstance(value, Counter):
                getattr(self, name).update(value)
            elif not isinstance(value, dict):  # numbers, usage and times
                setattr(self, name, getattr(self, name) + value)
        for rule, index in other.saved_examples.items():
            self.saved_examples[rule] = min(index, self.saved_examples.get(rule, index))
        for failure, index in other.examples.items():
            self.examples[failure] = min(index, self.examples.get(failure, index))
        self.cases.update(other.cases)


Tallies = Mapping[tuple[Cell, bool], Tally]
"""Counts by cell, and by whether they are of controls."""


def tally_rows(rows: Iterable[TrialRow]) -> Tallies:
    """Count trials by cell, and by whether they are controls, in one pass.

    What is kept grows with the number of cells and cases, and by one number a trial for its time.
    """
    tallies: dict[tuple[Cell, bool], Tally] = {}
    for row in rows:
        key = (row.cell, row.control)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally()
        tally.add(row)
    return tallies


def merge_tallies(tallies: Iterable[Tally]) -> Tally:
    """Return the counts of all of them together."""
    whole = Tally()
    for tally in tallies:
        whole.include(tally)
    return whole


def group_tallies(
    tallies: Tallies,
    key: Callable[[Cell], T],
    *,
    strategy: str | None = None,
    control: bool = False,
) -> dict[T, Tally]:
    """Return the counts of all cells with one key together, in the order in which they came.

    Args:
        tallies: Counts by cell.
        key: What is the same of the cells of a group, such as `Task.of`.
        strategy: The only strategy that is looked at.
        control: Whether the controls are looked at, in place of everything else.
    """
    found: dict[T, list[Tally]] = {}
    for (cell, is_control), tally in tallies.items():
        if is_control == control and strategy in (None, cell.strategy):
            found.setdefault(key(cell), []).append(tally)
    return {each: merge_tallies(members) for each, members in found.items()}


def pair_trials(
    a: Mapping[tuple[Cell, str], CaseTrials],
    b: Mapping[tuple[Cell, str], CaseTrials],
    *,
    original: bool = False,
) -> tuple[CasePairs, ...]:
    """Count, case by case, how the trials agree that both sides have: same cell and number.

    A drawn case is the same in every cell; a named one is paired cell by cell.
    """
    common = [key for key in a if key in b]
    counts = {key: a[key].pair(b[key], original=original) for key in common}
    return merge_pairs((key, counts[key], b[key].drawn) for key in common)


def merge_pairs(
    found: Iterable[tuple[tuple[Cell, str], PairCounts, bool]], names: Sequence[str] = ()
) -> tuple[CasePairs, ...]:
    """Return pairs case by case.

    Args:
        found: Of each case in each cell: the cell and the case, the pairs, and whether it is drawn.
        names: The axes that tell named cases apart; those in which cells differ by default.
    """
    drawn: dict[CaseKey, PairCounts] = {}
    named: dict[tuple[Cell, str], PairCounts] = {}
    for (cell, case), counts, is_drawn in found:
        if is_drawn:
            key = (cell.suite, cell.scenario, case)
            drawn[key] = drawn.get(key, PairCounts()) + counts
        else:
            named[cell, case] = counts
    axes = names or find_axes(cell for cell, _ in named)
    return (
        *(CasePairs(name=key[-1], counts=counts, drawn=True) for key, counts in drawn.items()),
        *(
            CasePairs(name=_name_case(cell, case, axes), counts=counts)
            for (cell, case), counts in named.items()
        ),
    )


def find_axes(cells: Iterable[Cell]) -> list[str]:
    """Return the axes in which cells differ, and the scenario."""
    found = list(cells)
    return [
        axis
        for axis in AXES
        if axis == "scenario" or len({getattr(cell, axis) for cell in found}) > 1
    ]


def _name_case(cell: Cell, case: str, axes: Iterable[str]) -> str:
    return " / ".join(part for part in (*(getattr(cell, axis) for axis in axes), case) if part)


def rate_cases(tally: Tally, part: str, whole: str = "judged") -> Rate:
    """Return the share that one count is of another, clustered where cases are drawn."""
    found: dict[CaseKey, tuple[int, int]] = {}
    k = n = 0
    for (cell, case), trials in tally.cases.items():
        right, made = trials.counts[part], trials.counts[whole]
        k, n = k + right, n + made
        if trials.drawn:
            key = (cell.suite, cell.scenario, case)
            before = found.get(key, (0, 0))
            found[key] = (before[0] + right, before[1] + made)
    return clustered_rate(k, n, found.values())
