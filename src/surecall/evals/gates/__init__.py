"""Whether an experiment is good enough: gates on rates, counts, times and regressions.

A gate on a rate compares the rate that was counted. A gate on a regression fails only when the
drop is supported by its statistics; where too few trials were made to tell, it says so.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.evals.clusters import clustered_difference
from surecall.evals.metrics import render_group
from surecall.evals.metrics.records import Group, Simulated, say_simulated
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies, pair_trials, tally_rows
from surecall.evals.records import Cell, TrialRow
from surecall.evals.stats import (
    CONFIDENCE,
    Interval,
    PairCounts,
    Rate,
    mcnemar,
    min_pairs,
    min_trials_against,
    wilson,
)
from surecall.profiles.filters import matches_glob

from .text import MEASURES, Gate, Measure, limit_errors, parse_gate

__all__ = [
    "MEASURES",
    "Gate",
    "GateReport",
    "GateResult",
    "Measure",
    "check_gates",
    "check_tallies",
    "limit_errors",
    "parse_gate",
]

RowsOf = Callable[[str], Iterable[TrialRow]]
"""Returns the trials of a run by its name, such as `@baseline`."""

_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class GateResult(Struct, frozen=True, kw_only=True):
    """What became of one gate."""

    gate: Gate
    verdict: Literal["passed", "failed", "undecided", "empty"]
    """`undecided` passes: a drop was seen that chance may explain. `empty` does not."""
    observed: float | None
    k: int | None = None
    n: int = 0
    """Trials, calls or pairs that it was measured on."""
    interval: Interval | None = None
    p: float | None = None
    """Of the exact McNemar test, for a regression."""
    note: str = ""
    """What the figures can and cannot tell."""
    simulated: Simulated = "none"

    @property
    def ok(self) -> bool:
        """Whether the gate lets the experiment through."""
        return self.verdict in {"passed", "undecided"}


class GateReport(Struct, frozen=True):
    """What became of all gates."""

    results: tuple[GateResult, ...]

    @property
    def ok(self) -> bool:
        """Whether every gate lets the experiment through."""
        return all(result.ok for result in self.results)


def check_gates(
    gates: Sequence[Gate], rows: Iterable[TrialRow], *, rows_of: RowsOf | None = None
) -> GateReport:
    """Check all gates in one pass over the trials.

    Args:
        gates: From `parse_gate`.
        rows: The trials of the experiment.
        rows_of: Where the trials of a run that a regression is measured from come from.
    """
    return check_tallies(gates, tally_rows(rows), rows_of=rows_of)


def check_tallies(
    gates: Sequence[Gate], tallies: Tallies, *, rows_of: RowsOf | None = None
) -> GateReport:
    """Check all gates on trials that were counted before."""
    baselines: dict[str, Tallies] = {}
    for gate in gates:
        if gate.against is not None and gate.against not in baselines:
            if rows_of is None:
                raise ConfigError(
                    Code.INVALID_GATE,
                    f"the gate {gate.text!r} needs the trials of {gate.against}.",
                    hint="Say with rows_of where they come from.",
                )
            baselines[gate.against] = tally_rows(rows_of(gate.against))
    return GateReport(tuple(_check(gate, tallies, baselines) for gate in gates))


def _check(gate: Gate, tallies: Tallies, baselines: Mapping[str, Tallies]) -> GateResult:
    chosen = _select(gate, tallies)
    if not chosen:
        return GateResult(gate=gate, verdict="empty", observed=None, note=_why_empty(gate, tallies))
    whole = merge_tallies(chosen)
    if gate.against is not None:
        return _regression(gate, whole, merge_tallies(_select(gate, baselines[gate.against])))
    group = render_group(whole, axis="overall", value="gate")
    found = gate.read(group)
    if isinstance(found, Rate):
        return _rate(gate, found, group.simulated)
    if found is None:
        note = f"no trial shows: {gate.measure.meaning}"
        return GateResult(gate=gate, verdict="empty", observed=None, n=group.n, note=note)
    holds = _COMPARE[gate.operator](found, gate.bound)
    note = _about_timeouts(gate, group)
    if note and "<" in gate.operator:
        holds = False  # nobody knows how long it would have taken
    return GateResult(
        gate=gate,
        verdict="passed" if holds else "failed",
        observed=float(found),
        n=group.n,
        note=note,
        simulated=group.simulated,
    )


def _about_timeouts(gate: Gate, group: Group) -> str:
    """Say when a percentile is only known to be longer than what was waited for."""
    if getattr(group.latency, f"true_{gate.metric}", 0.0) is not None:
        return ""
    return f"{group.latency.censored} timeouts: the true time is longer, by an unknown amount"


def _select(gate: Gate, tallies: Tallies) -> list[Tally]:
    """Return the trials a gate is about; controls only when it selects nothing else."""
    found = [(control, t) for (cell, control), t in tallies.items() if _matches(gate, cell)]
    tools = [tally for control, tally in found if not control]
    return tools or [tally for _, tally in found]


def _matches(gate: Gate, cell: Cell) -> bool:
    return all(
        matches_glob(value.lower(), str(getattr(cell, axis)).lower()) for axis, value in gate.where
    )


def _why_empty(gate: Gate, tallies: Tallies) -> str:
    if not tallies:
        return "no trial was made"
    for axis, value in gate.where:
        known = {str(getattr(cell, axis)) for cell, _ in tallies}
        if not any(matches_glob(value.lower(), name.lower()) for name in known):
            return f"no trial has {axis} {value!r}. {did_you_mean(value, known)}"
    return "no trial has all of these"


def _rate(gate: Gate, rate: Rate, simulated: Simulated) -> GateResult:
    value, bound = rate.value, gate.bound
    if value is None:
        note = f"nothing to count: {gate.measure.meaning}"
        return GateResult(gate=gate, verdict="empty", observed=None, note=note)
    note = ""
    if bound in rate.interval and value != bound:
        needed = math.ceil((min_trials_against(value, bound) or 0) * _weigh_cases(rate))
        note = f"n = {rate.n} cannot tell {value:.1%} from {bound:.1%}; about {needed} would"
    return GateResult(
        gate=gate,
        verdict="passed" if _COMPARE[gate.operator](value, bound) else "failed",
        observed=value,
        k=rate.k,
        n=rate.n,
        interval=rate.interval,
        note=note,
        simulated=simulated,
    )


def _weigh_cases(rate: Rate) -> float:
    """Return how many trials of these cases are worth one of a case of its own."""
    alone = wilson(rate.k, rate.n)
    return ((rate.interval.high - rate.interval.low) / (alone.high - alone.low)) ** 2


def _regression(gate: Gate, now: Tally, before: Tally) -> GateResult:
    cases = pair_trials(before.cases, now.cases, original=gate.metric == "original_regression")
    counts = sum(cases, PairCounts())
    difference = counts.difference
    if difference is None:
        note = f"no trial has a partner of the same cell, case and number in {gate.against}"
        return GateResult(gate=gate, verdict="empty", observed=None, note=note)
    drop = 0.0 - difference  # and never -0.0
    interval = clustered_difference(cases)
    of_drop = Interval(-interval.high, -interval.low)
    p = mcnemar(counts.only_a, counts.only_b).p
    holds = _COMPARE[gate.operator](drop, gate.bound)
    supported = of_drop.low > gate.bound and p < 1 - CONFIDENCE
    return GateResult(
        gate=gate,
        verdict="passed" if holds else "failed" if supported else "undecided",
        observed=drop,
        n=counts.n,
        interval=of_drop,
        p=p,
        note=_about_drop(gate, counts, of_drop, holds=holds, supported=supported),
        simulated=say_simulated(now.simulated, now.n),
    )


def _about_drop(
    gate: Gate, counts: PairCounts, of_drop: Interval, *, holds: bool, supported: bool
) -> str:
    if supported and not holds:
        return f"{counts.only_a} trials got worse, {counts.only_b} better"
    if not holds:
        drop = (counts.only_a - counts.only_b) / counts.n
        needed = min_pairs(counts.discordant / counts.n, drop - gate.bound)
        enough = f"; about {needed} would" if needed else ""
        return f"n = {counts.n} pairs cannot tell this drop from chance{enough}"
    if of_drop.high > gate.bound:
        return f"a drop of up to {of_drop.high:.1%} is possible with n = {counts.n} pairs"
    return ""
