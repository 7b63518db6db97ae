"""Whether an experiment is good enough: gates on rates, counts, times and regressions.

A gate on a rate compares the rate that was counted. A gate on a regression fails when the drop is
supported by its statistics, in all or in one named case. Where the trials cannot tell, the gate is
undecided; and where too many of them ended with an endpoint's error, no gate passes.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, StoreError, did_you_mean
from surecall.evals.clusters import compare_pairs
from surecall.evals.metrics import render_group
from surecall.evals.metrics.records import Group, Simulated, say_simulated
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies, pair_trials, tally_rows
from surecall.evals.records import Cell, TrialRow
from surecall.evals.stats import Interval, Rate, min_trials_against, wilson
from surecall.evals.store import RunInfo, RunStore
from surecall.models.profiles.catalog import matches_glob

from .text import (
    MAX_ERRORS,
    MEASURES,
    Gate,
    Measure,
    Undecided,
    explain_errors,
    limit_errors,
    parse_gate,
)

__all__ = [
    "MAX_ERRORS",
    "MEASURES",
    "VERDICTS",
    "Gate",
    "GateReport",
    "GateResult",
    "Measure",
    "Undecided",
    "check_gates",
    "check_stored",
    "check_tallies",
    "describe_observed",
    "limit_errors",
    "parse_gate",
    "refuse_unmatched",
]

RowsOf = Callable[[str], Iterable[TrialRow]]
"""Returns the trials of a run by its name, such as `@baseline`."""


class GateResult(Struct, frozen=True, kw_only=True):
    """What became of one gate."""

    gate: Gate
    verdict: Literal["passed", "failed", "undecided", "empty"]
    """`undecided`: nothing speaks against it, and the trials are too few to say so."""
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
        is_let = self.verdict == "undecided" and self.gate.undecided == "pass"
        return is_let or self.verdict == "passed"


VERDICTS: Final = {
    "passed": "passed",
    "failed": "failed",
    "undecided": "undecided",
    "empty": "nothing to check",
}
"""Each verdict in words."""


def describe_observed(result: GateResult) -> str:
    """Return what was measured, in words."""
    if result.observed is None:
        return "-"
    match result.gate.measure.kind:
        case "rate":
            text = f"{result.k}/{result.n} = {result.observed:.1%}"
        case "regression":
            text = f"{100 * result.observed:+.1f} points, {result.n} pairs"
        case _:
            text = f"{result.observed:g}"
    if result.interval is not None:
        text += f" [{100 * result.interval.low:.1f}, {100 * result.interval.high:.1f}]"
    return text if result.p is None else f"{text}, p = {result.p:.2g}"


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


def refuse_unmatched(gates: Sequence[Gate], cells: Iterable[Cell]) -> None:
    """Refuse a gate on trials that an experiment does not have, before any of them is run.

    Raises:
        ConfigError: `INVALID_GATE`, with what there is.
    """
    tallies: Tallies = {(cell, False): Tally() for cell in cells}
    for gate in gates:
        if not _select(gate, tallies):
            raise ConfigError(
                Code.INVALID_GATE,
                f"the gate {gate.text!r} is about no trial: {_why_empty(gate, tallies)}.",
                hint="Write what is compared, as --dry-run shows it.",
            )


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
    limit = _find_limit(gates)
    return GateReport(tuple(_check(gate, tallies, baselines, limit) for gate in gates))


def check_stored(store: RunStore, info: RunInfo, tallies: Tallies) -> tuple[GateResult, ...]:
    """Check the gates that a complete run was given, on its trials as they were counted."""
    if not info.is_complete:
        return ()
    gates = [parse_gate(text) for text in info.manifest.gates]
    baselines: dict[str, Tallies] = {}
    gone: dict[str, str] = {}
    for name in {gate.against for gate in gates if gate.against is not None}:
        try:
            baselines[name] = tally_rows(store.rows(name))
        except StoreError as error:
            gone[name] = error.message
    limit = _find_limit(gates)
    return tuple(
        GateResult(gate=gate, verdict="empty", observed=None, note=gone[gate.against])
        if gate.against in gone
        else _check(gate, tallies, baselines, limit)
        for gate in gates
    )


def _find_limit(gates: Sequence[Gate]) -> Gate:
    """Return how many endpoint errors there may be: what the last gate on them says."""
    of_errors = [gate for gate in gates if gate.limits_errors and not gate.where]
    return of_errors[-1] if of_errors else limit_errors(MAX_ERRORS)


def _check(
    gate: Gate, tallies: Tallies, baselines: Mapping[str, Tallies], limit: Gate
) -> GateResult:
    chosen = _select(gate, tallies)
    if not chosen:
        return GateResult(gate=gate, verdict="empty", observed=None, note=_why_empty(gate, tallies))
    whole = merge_tallies(chosen)
    group = render_group(whole, axis="overall", value="gate")
    lost = explain_errors(gate if gate.limits_errors else limit, group)
    if gate.against is None:
        result = _measure(gate, group)
    else:
        before = merge_tallies(_select(gate, baselines[gate.against]))
        result = _regression(gate, whole, before)
        lost_before = explain_errors(limit, render_group(before, axis="overall", value="gate"))
        lost = lost or (lost_before and f"{gate.against}: {lost_before}")
    return replace(result, verdict="failed", note=lost) if lost else result


def _measure(gate: Gate, group: Group) -> GateResult:
    """Check a gate on what one group of trials shows."""
    found = gate.read(group)
    if isinstance(found, Rate):
        return _rate(gate, found, group)
    if found is None:
        note = f"no trial shows: {gate.measure.meaning}"
        return GateResult(gate=gate, verdict="empty", observed=None, n=group.n, note=note)
    holds = gate.holds(found)
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


def _rate(gate: Gate, rate: Rate, group: Group) -> GateResult:
    value, bound = rate.value, gate.bound
    if value is None:
        note = f"nothing to count: {gate.measure.meaning}"
        return GateResult(gate=gate, verdict="empty", observed=None, note=note)
    is_open = rate.interval.low < bound < rate.interval.high
    notes: list[str] = []
    if is_open:
        needed = math.ceil((min_trials_against(value, bound) or 0) * _count_worth(rate))
        enough = f"; about {max(needed, rate.n + 1)} would" if needed else ""
        notes.append(f"n = {rate.n} cannot tell {value:.1%} from {bound:.1%}{enough}")
    answered = {"strict": group.strict, "original": group.original}.get(gate.metric)
    if group.errors and answered is not None:
        notes.append(
            f"{group.errors} endpoint errors count as wrong; without them {answered.k}/{answered.n}"
        )
    verdict = "failed" if not gate.holds(value) else "undecided" if is_open else "passed"
    return GateResult(
        gate=gate,
        verdict=verdict,
        observed=value,
        k=rate.k,
        n=rate.n,
        interval=rate.interval,
        note="; ".join(notes),
        simulated=group.simulated,
    )


def _count_worth(rate: Rate) -> float:
    """Return how many trials of these cases are worth one of a case of its own."""
    alone = wilson(rate.k, rate.n)
    return ((rate.interval.high - rate.interval.low) / (alone.high - alone.low)) ** 2


def _regression(gate: Gate, now: Tally, before: Tally) -> GateResult:
    cases = pair_trials(before.cases, now.cases, original=gate.metric == "original_regression")
    found = compare_pairs(cases, gate.bound)
    if not found.counts.n:
        note = f"no trial has a partner of the same cell, case and number in {gate.against}"
        return GateResult(gate=gate, verdict="empty", observed=None, note=note)
    is_undecided = found.is_open or bool(found.undecided)
    missing = len(before.cases.keys() - now.cases.keys())
    left = f"; {missing} cases of {gate.against} were not run" if missing else ""
    return GateResult(
        gate=gate,
        verdict="failed" if found.is_worse else "undecided" if is_undecided else "passed",
        observed=0.0 - found.difference,  # and never -0.0
        n=found.counts.n,
        interval=Interval(-found.interval.high, -found.interval.low),
        p=found.p,
        note=found.sentence + left,
        simulated=say_simulated(now.simulated, now.n),
    )
