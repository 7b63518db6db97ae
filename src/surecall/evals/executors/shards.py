"""Units dealt out to workers that may die: what was under way is dealt out again."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from surecall.errors import Code
from surecall.evals.records import TrialBody, TrialRow, Unit

from .base import Finished

__all__ = ["MAX_DEATHS", "ShardBook", "lost_trial"]

MAX_DEATHS: Final = 3
"""How many workers one trial may take with it before it is given up."""

_SHARDS_PER_WORKER: Final = 3
_MAX_SHARD: Final = 256


class ShardBook:
    """Who has which units. A unit is in one place: waiting, dealt to one worker, or over."""

    def __init__(self, units: Iterable[Unit], *, workers: int, min_shard: int = 1) -> None:
        self._waiting = deque(units)
        self._suspects: deque[Unit] = deque()
        self._dealt: dict[int, Unit] = {}
        self._deaths: dict[int, int] = {}
        self._workers = max(workers, 1)
        self._min_shard = max(min_shard, 1)

    @property
    def has_waiting(self) -> bool:
        """Whether anything is left to be dealt."""
        return bool(self._waiting or self._suspects)

    @property
    def is_over(self) -> bool:
        """Whether nothing waits and nobody has anything."""
        return not (self._waiting or self._suspects or self._dealt)

    def deal(self) -> tuple[Unit, ...]:
        """Deal the next shard: large ones first, then smaller, so that all end together.

        A unit that was under way when a worker died is dealt alone, so that it takes no other
        with it and the blame is certain.
        """
        if self._suspects:
            shard = (self._suspects.popleft(),)
        else:
            share = len(self._waiting) // (self._workers * _SHARDS_PER_WORKER)
            size = min(max(share, self._min_shard), _MAX_SHARD, len(self._waiting))
            shard = tuple(self._waiting.popleft() for _ in range(size))
        self._dealt.update((unit.index, unit) for unit in shard)
        return shard

    def finish(self, index: int) -> bool:
        """Note that a unit is over; False when it was not dealt and must not count again."""
        return self._dealt.pop(index, None) is not None

    def lose(self, shard: Sequence[Unit], started: Iterable[int]) -> tuple[Unit, ...]:
        """Take back what a dead worker had not finished; return what is given up.

        When nothing is known to have been under way, because the worker could not tell any more,
        it is taken to be what it must have begun with.
        """
        left = [unit.index for unit in shard if unit.index in self._dealt]
        under_way = set(started) & set(left) or set(left[: self._min_shard])
        given_up: list[Unit] = []
        back: list[Unit] = []
        for unit in shard:
            if self._dealt.pop(unit.index, None) is None:
                continue
            if unit.index not in under_way:
                back.append(unit)
                continue
            deaths = self._deaths[unit.index] = self._deaths.get(unit.index, 0) + 1
            if deaths >= MAX_DEATHS:
                given_up.append(unit)
            else:
                self._suspects.append(unit)
        self._waiting.extendleft(reversed(back))
        return tuple(given_up)

    def leave(self, shard: Sequence[Unit]) -> None:
        """Forget what a worker did not begin because it was told not to."""
        for unit in shard:
            self._dealt.pop(unit.index, None)

    def clear(self) -> None:
        """Deal nothing more."""
        self._waiting.clear()
        self._suspects.clear()


def lost_trial(unit: Unit) -> Finished:
    """Record a unit that kills whatever runs it."""
    message = f"The process that ran this trial died {MAX_DEATHS} times."
    row = TrialRow(
        index=unit.index,
        cell=unit.cell,
        case=unit.case,
        trial=unit.trial,
        seed=unit.seed,
        seed_ok=False,
        strict_ok=False,
        outcome="broke",
        category="EXCEPTION",
        code=Code.WORKER_LOST,
        error=message,
    )
    return Finished(row, TrialBody(index=unit.index))
