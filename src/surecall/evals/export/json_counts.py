"""Counts as the original's summaries have them, with ours and the intervals beside them."""

from array import array
from collections import Counter
from typing import Any

from surecall.evals.records import TrialRow
from surecall.evals.stats import percentile, wilson

__all__ = ["Counts", "ScenarioCounts"]


class Counts:
    """How many trials there were, how many were right, and how long they took."""

    __slots__ = ("elapsed_ms", "ok", "runs", "strict_ok")

    def __init__(self) -> None:
        self.runs = self.ok = self.strict_ok = 0
        self.elapsed_ms = array("d")

    def add(self, row: TrialRow) -> None:
        """Count a trial."""
        self.runs += 1
        self.ok += row.original_ok
        self.strict_ok += row.strict_ok
        self.elapsed_ms.append(row.elapsed_ms)

    def render(self, prefix: str = "") -> dict[str, Any]:
        """Return the figures; a rate of nothing is null."""
        fields = {
            "runs": self.runs,
            "ok": self.ok,
            "ok_rate": _rate(self.ok, self.runs),
            "ms_p50": percentile(self.elapsed_ms, 0.5),
            "ms_p95": percentile(self.elapsed_ms, 0.95),
            "ok_interval": _interval(self.ok, self.runs),
            "strict_ok": self.strict_ok,
            "strict_ok_rate": _rate(self.strict_ok, self.runs),
            "strict_ok_interval": _interval(self.strict_ok, self.runs),
        }
        return {f"{prefix}{name}": value for name, value in fields.items()}


class ScenarioCounts:
    """How many trials of a scenario there were, and why they failed."""

    __slots__ = ("control", "errors", "ok", "runs", "simulated", "strict_ok")

    def __init__(self) -> None:
        self.runs = self.ok = self.strict_ok = self.simulated = 0
        self.control = False
        self.errors: Counter[str] = Counter()

    def add(self, row: TrialRow) -> None:
        """Count a trial."""
        self.runs += 1
        self.ok += row.original_ok
        self.strict_ok += row.strict_ok
        self.simulated += row.simulated
        self.control = row.control
        if not row.original_ok:
            self.errors[row.category or "unknown"] += 1

    def render(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "runs": self.runs,
            "ok": self.ok,
            "errors": dict(self.errors),
            "ok_interval": _interval(self.ok, self.runs),
            "strict_ok": self.strict_ok,
            "strict_ok_interval": _interval(self.strict_ok, self.runs),
            "control": self.control,
            "simulated_runs": self.simulated,
        }


def _rate(k: int, n: int) -> float | None:
    return k / n if n else None


def _interval(k: int, n: int) -> list[float] | None:
    if not n:
        return None
    interval = wilson(k, n)
    return [interval.low, interval.high]
