"""The same model at several endpoints: does each do what the reference does?

Trials are paired by everything but the endpoint. Three things are compared with the reference: how
often the model calls a tool, how often all calls of a trial fit their schemas as they arrived, and
how often the trial is right. The rates of single faults are reported as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean

from .metrics.records import Simulated, say_simulated
from .records import CallFact, Cell, TrialRow
from .stats import (
    CONFIDENCE,
    F1,
    Interval,
    McNemar,
    PairCounts,
    Rate,
    count_pairs,
    f1_score,
    mcnemar,
    min_trials,
    newcombe_paired,
    rate_of,
)
from .taxonomy import Layer, classify

VendorVerdict = Literal["same as far as seen", "better", "worse", "too few to tell"]
Measured = Literal["trigger", "schema", "strict"]

_MARGIN: Final = 0.05
_MEASURES: Final[tuple[Measured, ...]] = ("trigger", "schema", "strict")
_LEVEL: Final = 1 - (1 - CONFIDENCE) / len(_MEASURES)
"""Three things are tested, so each has to be surer (Bonferroni)."""
_BY_WEIGHT: Final[tuple[VendorVerdict, ...]] = ("worse", "too few to tell", "better")
_UNANSWERED: Final = frozenset(
    {Layer.SETUP, Layer.CONNECTION, Layer.PROVIDER, Layer.REPLY, Layer.HARNESS}
)
_UNKNOWN: Final = frozenset({Code.TOOL_NOT_ALLOWED, Code.TOOL_NOT_IMPLEMENTED})
_NAME_RULES: Final = frozenset({"infer_tool_name", "resolve_tool_name"})
_REPEATED_ID: Final = "rename_repeated_id"
_IN_TRIALS: Final = frozenset({"NotStructured", "DuplicateId"})


class CallFault(StrEnum):
    """What can be wrong with a call as it arrived; each call counts once, as the first that fits.

    Two are counted in trials: `NotStructured`, because text that nobody reads is not a call, and
    `DuplicateId`, because it takes two calls.
    """

    TRUNCATED = "Truncated"
    UNKNOWN_NAME = "UnknownName"
    NOT_STRUCTURED = "NotStructured"
    INVALID_JSON = "InvalidJson"
    SCHEMA_MISMATCH = "SchemaMismatch"
    DUPLICATE_ID = "DuplicateId"


def fault_of(call: CallFact) -> CallFault | None:
    """Say what was wrong with a call as it arrived; None when nothing was."""
    if call.state == "cut" or Code.ARGUMENTS_TRUNCATED in call.error_codes:
        return CallFault.TRUNCATED
    if _UNKNOWN.intersection(call.error_codes) or _NAME_RULES.intersection(call.rules):
        return CallFault.UNKNOWN_NAME
    if not call.structured:
        return CallFault.NOT_STRUCTURED
    if call.valid_before:
        return None
    if call.state == "unreadable" or not call.error_kinds:
        return CallFault.INVALID_JSON
    return CallFault.SCHEMA_MISMATCH


class FaultRate(Struct, frozen=True):
    """How often one thing was wrong."""

    fault: CallFault
    rate: Rate
    of: Literal["calls", "trials"]


class Comparison(Struct, frozen=True, kw_only=True):
    """One thing, compared with the reference trial by trial."""

    measure: Measured
    counts: PairCounts
    """A is the reference, B the endpoint."""
    test: McNemar
    interval: Interval
    """Of the endpoint's rate less that of the reference, at 98.3 %: three things are compared."""
    verdict: VendorVerdict
    needed: int | None
    """Trials that would show a difference of the margin, when there are fewer."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """One endpoint in figures."""

    label: str
    simulated: Simulated
    trials: int
    unanswered: Rate
    """Trials that ended with an error of the network or the provider, without a call."""
    called: Rate
    """Answered trials in which the model tried to call."""
    strict: Rate
    valid_before: Rate
    """Schema accuracy: calls that fitted exactly as they arrived."""
    valid_after: Rate
    faults: tuple[FaultRate, ...]
    trigger: F1 | None = None
    """How well it agrees with the reference on when to call; None for the reference."""
    comparisons: tuple[Comparison, ...] = ()
    verdict: VendorVerdict | None = None


class VendorReport(Struct, frozen=True, kw_only=True):
    """All endpoints, and how each compares with the reference."""

    reference: Endpoint
    endpoints: tuple[Endpoint, ...]
    noise: F1 | None
    """How well the reference agrees with itself, trials taken two by two: nobody can do better than
    that. None when every case was tried once."""
    margin: float
    """The difference that the number of trials should be able to show."""

    @property
    def ok(self) -> bool:
        """Whether no endpoint is worse."""
        return all(endpoint.verdict != "worse" for endpoint in self.endpoints)


def compare_vendors(
    rows: Iterable[TrialRow],
    reference: str,
    against: Sequence[str] = (),
    *,
    margin: float = _MARGIN,
) -> VendorReport:
    """Compare endpoints with a reference.

    Args:
        rows: Trials in which the model of a cell is the label of an endpoint; read once.
        reference: The label of the endpoint to measure by.
        against: The labels of the others; all there are when empty.
        margin: The difference that matters; with too few trials to see it, that is the verdict.

    Raises:
        ConfigError: An endpoint has no trials, or none in common with the reference.
    """
    seen: dict[str, _Seen] = {}
    for row in rows:
        if not row.control:
            seen.setdefault(row.cell.model, _Seen(row.cell.model)).add(row)
    labels = list(dict.fromkeys(against)) or [label for label in seen if label != reference]
    for label in (reference, *labels):
        if label not in seen:
            raise _not_comparable(f"{label!r} has no trials.", did_you_mean(label, seen))
    if not labels:
        raise _not_comparable(
            f"there is nothing to compare {reference!r} with.", "Name another endpoint."
        )
    base = seen[reference]
    noise = base.self_agreement()
    return VendorReport(
        reference=base.endpoint(),
        endpoints=tuple(_compare(base, seen[label], margin, noise) for label in labels),
        noise=noise,
        margin=margin,
    )


Key = tuple[Cell, str, int]


class _Trial(Struct, frozen=True):
    """What is kept of one trial."""

    answered: bool
    called: bool
    clean: bool
    """Whether all its calls fitted as they arrived."""
    strict: bool


class _Seen:
    """Running counts of one endpoint."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.trials: dict[Key, _Trial] = {}
        self._simulated = self._calls = self._valid_before = self._valid_after = 0
        self._repeated_ids = 0
        self._faults = dict.fromkeys(CallFault, 0)

    def add(self, row: TrialRow) -> None:
        called = row.outcome in ("called", "broke")
        failure = classify(row)
        answered = called or failure is None or failure.layer not in _UNANSWERED
        faults = [fault_of(call) for call in row.calls]
        for fault in faults:
            if fault is not None and fault not in _IN_TRIALS:
                self._faults[fault] += 1
        unread = row.outcome == "broke" and not row.calls
        self._faults[CallFault.NOT_STRUCTURED] += unread or CallFault.NOT_STRUCTURED in faults
        self._calls += len(row.calls)
        self._valid_before += sum(call.valid_before for call in row.calls)
        self._valid_after += sum(call.valid_after for call in row.calls)
        self._faults[CallFault.DUPLICATE_ID] += _REPEATED_ID in row.rules
        self._simulated += row.simulated
        clean = called and bool(row.calls) and not any(faults)
        key = (replace(row.cell, model=""), row.case, row.trial)
        self.trials[key] = _Trial(answered, called, clean, row.strict_ok)

    def endpoint(self) -> Endpoint:
        trials = self.trials.values()
        answered = sum(trial.answered for trial in trials)
        called = sum(trial.called for trial in trials)
        n = len(trials)
        return Endpoint(
            label=self.label,
            simulated=say_simulated(self._simulated, n),
            trials=n,
            unanswered=rate_of(n - answered, n),
            called=rate_of(called, answered),
            strict=rate_of(sum(trial.strict for trial in trials), n),
            valid_before=rate_of(self._valid_before, self._calls),
            valid_after=rate_of(self._valid_after, self._calls),
            faults=tuple(
                FaultRate(fault, rate_of(count, self._calls), "calls")
                if fault not in _IN_TRIALS
                else FaultRate(fault, rate_of(count, called), "trials")
                for fault, count in self._faults.items()
            ),
        )

    def self_agreement(self) -> F1 | None:
        """Compare the trials of the same case two by two."""
        first = {key: trial for key, trial in self.trials.items() if key[2] % 2}
        second = {
            (cell, case, number - 1): trial
            for (cell, case, number), trial in self.trials.items()
            if number % 2 == 0
        }
        counts = _trigger_counts(first, second)
        return _trigger_score(counts) if counts.n else None


def _compare(base: _Seen, other: _Seen, margin: float, noise: F1 | None) -> Endpoint:
    trigger = _trigger_counts(base.trials, other.trials)
    score = _trigger_score(trigger)
    if not any(key in base.trials for key in other.trials):
        raise _not_comparable(
            f"{other.label!r} and {base.label!r} have no trial in common.",
            "Run the same scenarios, strategies and profiles on both.",
        )
    counts: dict[Measured, PairCounts] = {
        "trigger": trigger,
        "schema": count_pairs(
            (a.clean, b.clean)
            for a, b in _pairs(base.trials, other.trials)
            if a.called and b.called
        ),
        "strict": count_pairs((a.strict, b.strict) for a, b in _pairs(base.trials, other.trials)),
    }
    comparisons = [_comparison(name, counts[name], margin) for name in _MEASURES]
    if noise is not None and score.interval.high < noise.interval.low:
        # It calls as often as the reference, but at other times.
        comparisons[0] = replace(comparisons[0], verdict="worse", needed=None)
    return replace(
        other.endpoint(),
        trigger=score,
        comparisons=tuple(comparisons),
        verdict=_grade_all(comparisons),
    )


def _pairs(a: Mapping[Key, _Trial], b: Mapping[Key, _Trial]) -> Iterable[tuple[_Trial, _Trial]]:
    return ((trial, b[key]) for key, trial in a.items() if key in b)


def _trigger_counts(a: Mapping[Key, _Trial], b: Mapping[Key, _Trial]) -> PairCounts:
    answered = ((x, y) for x, y in _pairs(a, b) if x.answered and y.answered)
    return count_pairs((x.called, y.called) for x, y in answered)


def _trigger_score(counts: PairCounts) -> F1:
    """Return F1 with the calls of A as what should have been done."""
    return f1_score(counts.both, counts.only_b, counts.only_a)


def _comparison(measure: Measured, counts: PairCounts, margin: float) -> Comparison:
    test, interval = mcnemar(counts.only_a, counts.only_b), newcombe_paired(counts, _LEVEL)
    difference = counts.difference or 0.0
    verdict: VendorVerdict = "same as far as seen"
    needed = None
    if difference and test.p < 1 - _LEVEL and 0 not in interval:
        # Calling more often than the reference is no better than calling less often.
        is_better = difference > 0 and measure != "trigger"
        verdict = "better" if is_better else "worse"
    else:
        required = _count_required(counts, margin)
        if counts.n < required:
            verdict, needed = "too few to tell", required
    return Comparison(
        measure=measure,
        counts=counts,
        test=test,
        interval=interval,
        verdict=verdict,
        needed=needed,
    )


def _count_required(counts: PairCounts, margin: float) -> int:
    """Return how many trials show a change of the margin from the rate of the reference."""
    rate = (counts.both + counts.only_a) / counts.n if counts.n else 1.0
    other = rate - margin if rate >= margin else rate + margin
    return min_trials(rate, other, confidence=_LEVEL) or 0


def _grade_all(comparisons: Sequence[Comparison]) -> VendorVerdict:
    found = {comparison.verdict for comparison in comparisons}
    for verdict in _BY_WEIGHT:
        if verdict in found:
            return verdict
    return "same as far as seen"


def _not_comparable(message: str, hint: str) -> ConfigError:
    return ConfigError(Code.RUNS_NOT_COMPARABLE, message, hint=hint)
