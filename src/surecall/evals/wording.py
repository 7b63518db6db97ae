"""Figures in words: the same on the terminal, in Markdown, in JUnit and in HTML."""

from surecall.evals.metrics.records import Simulated
from surecall.evals.records import Reason
from surecall.evals.stats import Interval, Rate


def label_simulated(simulated: Simulated, form: str = " ({})") -> str:
    """Return what to add to a name so that nobody takes simulated models for real ones."""
    words = {"none": "", "some": "partly simulated", "all": "simulated"}[simulated]
    return form.format(words) if words else ""


def describe_rate(rate: Rate, digits: int = 0) -> str:
    """Return a rate as counts, with its interval in percent."""
    if not rate.n:
        return "-"
    low, high = 100 * rate.interval.low, 100 * rate.interval.high
    return f"{rate.k}/{rate.n} [{low:.{digits}f}, {high:.{digits}f}]"


def describe_cost(cost_usd: float | None) -> str:
    """Return what trials cost, in dollars; a dash where no price is known."""
    if cost_usd is None:
        return "-"
    return f"${cost_usd:.2f}" if cost_usd >= 1 or not cost_usd else f"${cost_usd:.2g}"


def describe_points(difference: float | None, interval: Interval, unit: str = "") -> str:
    """Return a difference in percentage points, with its interval."""
    if difference is None:
        return "-"
    low, high = 100 * interval.low, 100 * interval.high
    return f"{100 * difference:+.1f}{unit} [{low:+.1f}, {high:+.1f}]"


def describe_reasons(reasons: tuple[Reason, ...]) -> str:
    """Return why a trial failed, in one line."""
    return "; ".join(reason.message or reason.code for reason in reasons)
