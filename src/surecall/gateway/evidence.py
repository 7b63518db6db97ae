"""Routes by evidence: traffic goes where fewer calls are broken, and a share is kept for trying.

An upstream is measured by its latest hundred replies or so. The one that leads keeps its
place until another is better beyond chance: its rate lies below the leader's interval, and the
leader's above its own.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from msgspec import Struct

from surecall.base.rates import Share, share

_MEMORY: Final = 120
"""Of so many replies the first weighs about a third of the last."""


class Tally:
    """How many of the latest replies of a model at an upstream had broken calls.

    >>> tally = Tally()
    >>> for number in range(100):
    ...     tally.note(broken=number % 10 == 0)
    >>> round(tally.rate.value, 1)
    0.1
    """

    __slots__ = ("_broken", "_weight", "replies")

    def __init__(self) -> None:
        self.replies = 0
        """All that were counted."""
        self._weight = 0.0
        self._broken = 0.0

    def note(self, *, broken: bool) -> None:
        """Count a reply; what was counted before fades."""
        self.replies += 1
        kept = 1 - 1 / _MEMORY
        self._weight = self._weight * kept + 1
        self._broken = self._broken * kept + broken

    @property
    def rate(self) -> Share:
        """The share of broken ones, with its interval at 95 %."""
        return share(self._broken, self._weight)


class Choice(Struct):
    """Which target of a route leads."""

    min_requests: int
    trying: float
    leader: int | None = None

    def pick(self, tallies: Sequence[Tally], weights: Sequence[float], random: Random) -> int:
        """Return the number of the target for the next request.

        By weights as long as too little is known of any of them.
        """
        if any(tally.replies < self.min_requests for tally in tallies):
            self.leader = None
            return random.choices(range(len(tallies)), weights)[0]
        rates = [tally.rate for tally in tallies]
        best = min(range(len(rates)), key=lambda at: rates[at].value)
        leader = self.leader
        if leader is None or leader >= len(rates) or _is_better(rates[best], rates[leader]):
            leader = self.leader = best
        others = [at for at in range(len(rates)) if at != leader]
        if others and random.random() < self.trying:
            return random.choice(others)
        return leader

    def shares(self, weights: Sequence[float]) -> list[float]:
        """Return which part of the traffic each target gets now."""
        if self.leader is None:
            return [weight / sum(weights) for weight in weights]
        rest = self.trying / max(len(weights) - 1, 1)
        leading = 1 - self.trying if len(weights) > 1 else 1.0
        return [leading if at == self.leader else rest for at in range(len(weights))]


def _is_better(one: Share, other: Share) -> bool:
    """Tell whether a rate is lower beyond chance: each lies outside the interval of the other."""
    return one.value < other.low and other.value > one.high
