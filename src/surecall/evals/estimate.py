"""What an experiment will take, judged by earlier trials of the same kind."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from surecall.records import Usage

from .contenders import Contender, Price, cost_of
from .records import Cell, TrialRow, Unit

__all__ = ["Estimate", "PlannedTrials", "estimate"]

_GUESS_REQUESTS: Final = 3.0
_GUESS_INPUT_TOKENS: Final = 2_400.0
_GUESS_OUTPUT_TOKENS: Final = 300.0
_GUESS_SECONDS: Final = 10.0


class PlannedTrials(Protocol):
    """A matrix: what is to be run, and by whom."""

    @property
    def units(self) -> Sequence[Unit]:
        """All trials."""
        ...

    @property
    def contenders(self) -> Sequence[Contender]:
        """Everybody who takes part."""
        ...


class Estimate(Struct, frozen=True, kw_only=True):
    """What an experiment will probably take."""

    requests: int
    tokens: int
    seconds: float
    """Of waiting for models, with as many trials at once as were asked for."""
    cost_usd: float | None
    """None when the price of a model that costs something is not known."""
    known_trials: int
    """Trials that are judged by earlier ones; for the others it is a rough guess."""


class _Mean:
    """The average trial of some kind."""

    __slots__ = ("count", "input_tokens", "output_tokens", "requests", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.requests = self.input_tokens = self.output_tokens = self.seconds = 0.0

    def add(self, row: TrialRow) -> None:
        self.count += 1
        self.requests += row.requests
        self.input_tokens += row.usage.input_tokens
        self.output_tokens += row.usage.output_tokens
        self.seconds += row.elapsed_ms / 1000


_Key = Callable[[Cell], tuple[str, ...]]
_KEYS: Final[tuple[_Key, ...]] = (
    lambda cell: ("cell", cell.model, cell.strategy, cell.suite, cell.scenario),
    lambda cell: ("case", cell.model, cell.suite, cell.scenario),
    lambda cell: ("model", cell.model),
)
"""From the closest kind of trial to one that will do."""


def estimate(
    matrix: PlannedTrials, history: Iterable[TrialRow] = (), *, concurrency: int = 1
) -> Estimate:
    """Estimate what a matrix will take from the rows of earlier experiments."""
    means: dict[tuple[str, ...], _Mean] = defaultdict(_Mean)
    for row in history:
        for key in _KEYS:
            means[key(row.cell)].add(row)
    contenders = {contender.label: contender for contender in matrix.contenders}
    known = 0
    requests = tokens = seconds = cost = 0.0
    is_priced = True
    for unit in matrix.units:
        contender = contenders[unit.cell.model]
        mean = next((means[key(unit.cell)] for key in _KEYS if key(unit.cell) in means), None)
        known += mean is not None
        took = _took(mean, contender)
        requests += took.requests
        tokens += took.input_tokens + took.output_tokens
        seconds += took.seconds
        price = _price_of(contender)
        if price is None:
            is_priced = False
        else:
            usage = Usage(round(took.input_tokens), round(took.output_tokens))
            cost += cost_of(usage, price)
    return Estimate(
        requests=round(requests),
        tokens=round(tokens),
        seconds=seconds / max(concurrency, 1),
        cost_usd=cost if is_priced else None,
        known_trials=known,
    )


class _Took(Struct, frozen=True):
    requests: float
    input_tokens: float
    output_tokens: float
    seconds: float


def _took(mean: _Mean | None, contender: Contender) -> _Took:
    if mean is None:
        seconds = 0.0 if contender.simulated else _GUESS_SECONDS
        return _Took(_GUESS_REQUESTS, _GUESS_INPUT_TOKENS, _GUESS_OUTPUT_TOKENS, seconds)
    count = mean.count
    return _Took(
        mean.requests / count,
        mean.input_tokens / count,
        mean.output_tokens / count,
        mean.seconds / count,
    )


def _price_of(contender: Contender) -> Price | None:
    """Return what a contender costs: nothing, unless somebody serves it."""
    if contender.kind != "live":
        return Price(input_usd=0.0, output_usd=0.0)
    return contender.price
