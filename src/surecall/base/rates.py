"""Shares with their doubt: Wilson's interval at 95 %, and percentiles."""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any, Final

from msgspec import Struct

_Z: Final = 1.959964


class Share(Struct, frozen=True):
    """So many of so many, with the interval in which the true share probably is."""

    of: float
    n: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share itself; 0 when there is nothing to share."""
        return self.of / self.n if self.n else 0.0


def share(of: float, n: float) -> Share:
    """Return a share with its interval."""
    if not n:
        return Share(0, 0, 0.0, 1.0)
    p, z2 = of / n, _Z * _Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the interval reaches them exactly, which floats miss by a hair.
    return Share(of, n, max(0.0, middle - half) if of else 0.0, middle + half if of < n else 1.0)


def percentiles(values: Sequence[float]) -> dict[str, Any] | None:
    """Return the median and the 95th percentile, by the nearest rank."""
    if not values:
        return None
    ordered = sorted(values)

    def rank(part: float) -> float:
        return ordered[max(0, ceil(part * len(ordered)) - 1)]

    return {"p50": rank(0.5), "p95": rank(0.95), "n": len(ordered)}
