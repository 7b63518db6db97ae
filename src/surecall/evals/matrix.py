"""What an experiment will take, judged by earlier trials of the same kind."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError
from surecall.base.limits import MAX_EXPERIMENT_TRIALS
from surecall.base.records import Usage
from surecall.evals.cases import Contender, Price, cost_of
from surecall.models.profiles import Catalog, select_profiles

from .cases import Suite
from .choosing import (
    CaseFilter,
    choose_cases,
    choose_fallbacks,
    choose_scenarios,
    choose_strategies,
    require_known,
)
from .records import Cell, Task, TrialRow, Unit
from .strategies import UNAIDED


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


class _Sum(Struct):
    """What some trials took together."""

    count: int = 0
    requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    seconds: float = 0.0

    def add(self, row: TrialRow) -> None:
        self.count += 1
        self.requests += row.requests
        self.input_tokens += row.usage.input_tokens
        self.output_tokens += row.usage.output_tokens
        self.seconds += row.elapsed_ms / 1000


_GUESS: Final = _Sum(1, 3.0, 2_400.0, 300.0, 10.0)
_GUESS_SIMULATED: Final = replace(_GUESS, seconds=0.0)

_Key = Callable[[Cell], tuple[str, ...]]
_KEYS: Final[tuple[_Key, ...]] = (
    lambda cell: ("cell", cell.model, cell.strategy, cell.suite, cell.scenario),
    lambda cell: ("case", cell.model, cell.suite, cell.scenario),
    lambda cell: ("model", cell.model),
)
"""From the closest kind of trial to one that will do."""


def estimate(
    matrix: "Matrix", history: Iterable[TrialRow] = (), *, concurrency: int = 1
) -> Estimate:
    """Estimate what a matrix will take from the rows of earlier experiments."""
    sums: dict[tuple[str, ...], _Sum] = defaultdict(_Sum)
    for row in history:
        for key in _KEYS:
            sums[key(row.cell)].add(row)
    contenders = {contender.label: contender for contender in matrix.contenders}
    known = 0
    requests = tokens = seconds = cost = 0.0
    is_priced = True
    for unit in matrix.units:
        contender = contenders[unit.cell.model]
        took = next((sums[key(unit.cell)] for key in _KEYS if key(unit.cell) in sums), None)
        known += took is not None
        took = took or (_GUESS_SIMULATED if contender.simulated else _GUESS)
        count = took.count
        requests += took.requests / count
        tokens += (took.input_tokens + took.output_tokens) / count
        seconds += took.seconds / count
        price = _price_of(contender)
        if price is None:
            is_priced = False
        else:
            usage = Usage(round(took.input_tokens / count), round(took.output_tokens / count))
            cost += cost_of(usage, price)
    return Estimate(
        requests=round(requests),
        tokens=round(tokens),
        seconds=seconds / max(concurrency, 1),
        cost_usd=cost if is_priced else None,
        known_trials=known,
    )


def _price_of(contender: Contender) -> Price | None:
    """Return what a contender costs: nothing, unless somebody serves it."""
    if contender.kind != "live":
        return Price(input_usd=0.0, output_usd=0.0)
    return contender.price


_DEFAULT: Final = "default"
_SEED_BYTES: Final = 6
_DESCRIBED: Final = ("label", "model", "provider", "kind", "simulated")


class Axes(Struct, frozen=True, kw_only=True):
    """What is compared; each text is a filter such as `stable,qwen*,!openai`."""

    scenarios: str = _DEFAULT
    """Scenarios by name, glob or preset."""
    profiles: str = _DEFAULT
    strategies: str = "production"
    fallbacks: str = "best_effort"
    """`best_effort`, `off`, `on` or `both`."""
    trials: int = 1
    seed: int = 0
    enforce_applicability: bool = True
    """Whether a model gets only the sampling profiles that are meant for it."""
    case_filter: CaseFilter = CaseFilter()
    """Which cases of the scenarios take part; all of them by default."""


class Matrix(Struct, frozen=True, kw_only=True):
    """The trials of an experiment, in order, and who takes part."""

    units: tuple[Unit, ...]
    cells: tuple[Cell, ...]
    contenders: tuple[Contender, ...]
    """Those that are in at least one cell, in order."""

    def describe(self) -> dict[str, Any]:
        """Return what would run, as plain data."""
        scenarios = dict.fromkeys((cell.suite, cell.scenario) for cell in self.cells)
        counts = Counter((unit.cell.suite, unit.cell.scenario) for unit in self.units)
        return {
            "trials": len(self.units),
            "cells": len(self.cells),
            "models": [
                {name: getattr(item, name) for name in _DESCRIBED} for item in self.contenders
            ],
            "rows": [task._asdict() for task in dict.fromkeys(map(Task.of, self.cells))],
            "scenarios": [
                {"suite": suite, "scenario": scenario, "trials": counts[suite, scenario]}
                for suite, scenario in scenarios
            ],
        }


def build_matrix(
    axes: Axes,
    suites: Sequence[Suite],
    contenders: Sequence[Contender],
    catalog: Catalog | None = None,
) -> Matrix:
    """Build the matrix; anything that chooses nothing, or nothing that exists, is an error.

    `raw` and `naive` read no text formats, so they have one fallback, however many are asked for.
    """
    catalog = catalog or Catalog.builtin()
    if axes.trials < 1:
        raise ConfigError(Code.INVALID_OPTION, f"there must be 1 trial or more, not {axes.trials}.")
    _refuse_repeated(contenders)
    strategies = choose_strategies(axes.strategies, catalog)
    fallbacks = choose_fallbacks(axes.fallbacks)
    scenarios = choose_scenarios(suites, axes.scenarios)
    scenarios = choose_cases(scenarios, axes.case_filter, seed=axes.seed)
    require_known(axes.profiles, catalog.sampling, "sampling profile")
    tasks = list(_list_tasks(axes, contenders, strategies, fallbacks, catalog))
    _refuse_too_many(len(tasks) * sum(len(each.cases) for each in scenarios) * axes.trials)
    units: list[Unit] = []
    cells: dict[Cell, None] = {}
    for task in tasks:
        planned = [
            (scenario, Cell(**task._asdict(), suite=scenario.suite, scenario=scenario.name))
            for scenario in scenarios
        ]
        cells.update(dict.fromkeys(cell for _, cell in planned))
        for trial in range(1, axes.trials + 1):
            for scenario, cell in planned:
                for case in scenario.cases:
                    seed = derive_seed(axes.seed, cell, case, trial)
                    units.append(
                        Unit(index=len(units), cell=cell, case=case, trial=trial, seed=seed)
                    )
    return Matrix(units=tuple(units), cells=tuple(cells), contenders=tuple(contenders))


def shuffle_units(units: Iterable[Unit], seed: int) -> tuple[Unit, ...]:
    """Return the trials in an order that only the seed decides; each keeps its place in results."""

    def lot(unit: Unit) -> bytes:
        return hashlib.sha256(f"{seed}/{unit.index}".encode()).digest()

    return tuple(sorted(units, key=lot))


def derive_seed(seed: int, cell: Cell, case: str, trial: int) -> int:
    """Return the seed of a trial, which follows from what it is, not from its place.

    Strategy and fallback are left out on purpose: a simulated model meets the same chances under
    each of them, so that they are compared trial by trial and nothing but the strategy differs.
    """
    parts = (seed, cell.model, cell.profile, cell.suite, cell.scenario, case, trial)
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "replace")).digest()
    # Small enough to be exact in every JSON reader.
    return int.from_bytes(digest[:_SEED_BYTES], "big")


def _list_tasks(
    axes: Axes,
    contenders: Iterable[Contender],
    strategies: Sequence[str],
    fallbacks: Sequence[str],
    catalog: Catalog,
) -> Iterator[Task]:
    for contender in contenders:
        profiles = select_profiles(
            axes.profiles,
            contender.model,
            enforce_applicability=axes.enforce_applicability,
            catalog=catalog,
        )
        for profile in profiles:
            for strategy in strategies:
                for fallback in _of_unaided(fallbacks) if strategy in UNAIDED else fallbacks:
                    yield Task(contender.label, profile.id, strategy, fallback)


def _of_unaided(fallbacks: Sequence[str]) -> tuple[str, ...]:
    """Return the one fallback of a strategy that reads no text formats."""
    return ("best_effort" if "best_effort" in fallbacks else "fallback_off",)


def _refuse_too_many(trials: int) -> None:
    if trials > MAX_EXPERIMENT_TRIALS:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"{trials:,} trials are too many; a run has at most {MAX_EXPERIMENT_TRIALS:,}.",
            hint="Lower --trials, or choose fewer models, strategies or cases.",
        )


def _refuse_repeated(contenders: Sequence[Contender]) -> None:
    labels = [contender.label for contender in contenders]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"{', '.join(repeated)} would take part twice.",
            hint="Name each model once; to run it more often, raise the number of trials.",
        )
