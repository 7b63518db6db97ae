"""What an experiment comes to: every figure with its count and interval."""

from typing import Literal

from msgspec import Struct

from surecall.base.records import Usage
from surecall.evals.clusters import Difference
from surecall.evals.records import Cell
from surecall.evals.stats import Rate
from surecall.evals.taxonomy import Failure

Axis = Literal["model", "profile", "strategy", "fallback", "suite", "scenario"]
AXES: tuple[Axis, ...] = ("model", "profile", "strategy", "fallback", "suite", "scenario")
"""What cells differ in, in order."""

Simulated = Literal["none", "some", "all"]
"""How many of the trials were made with a simulated model."""

Consistency = Literal["always", "sometimes", "never", "once"]
"""Whether repeated trials agree; `once` when there was only one."""


class CallFigures(Struct, frozen=True, kw_only=True):
    """What the calls of a group were like; rates are shares of calls."""

    count: int
    structured: Rate
    """In the place the wire format has for calls; the rest was recovered from text."""
    valid_before: Rate
    """Fitted the schema exactly as they arrived."""
    valid_after: Rate
    """Fitted the schema after repair and coercion."""
    changed: Rate
    executed: Rate
    exact: Rate
    """Of calls whose arguments are known beforehand: those that are exactly that."""
    repair_precision: Rate
    """Of changed calls whose arguments are known beforehand: those that came out exact."""
    error_kinds: dict[str, int]
    """Schema errors by kind, such as `missing`."""
    error_codes: dict[str, int]
    formats: dict[str, int]


class Recovery(Struct, frozen=True, kw_only=True):
    """What one rule did for the trials of a group."""

    rule: str
    saved: Rate
    """Of trials that are strictly right: those that used this rule for a call that ran.

    Whether the model would have found another way without it only an ablation tells.
    """
    fired: int
    """Trials in which it changed something, whatever became of them."""
    example: int | None
    """Index of a trial that used it and is right."""


class FailureCount(Struct, frozen=True):
    """How often trials failed for one reason."""

    failure: Failure
    count: int
    example: int
    """Index of the first such trial."""


class Latency(Struct, frozen=True, kw_only=True):
    """How long trials took, in milliseconds."""

    n: int
    censored: int
    """Trials that were stopped by a timeout: theirs is the time until then."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    """Index floor(n * p) of the sorted times, timeouts included, as the original has it."""
    true_p50_ms: float | None
    true_p95_ms: float | None
    true_p99_ms: float | None
    """Kaplan-Meier, which knows that a timeout is not an end; None: not within the limit."""


class Costs(Struct, frozen=True, kw_only=True):
    """What trials took, summed."""

    turns: int
    requests: int
    escalations: int
    usage: Usage
    cost_usd: float | None
    """None when no trial knows its price."""
    priced: int
    """How many trials know their price."""
    cached_replies: int = 0
    """Replies that came from the cache and were not asked for; they count in everything else."""


class PassPoint(Struct, frozen=True):
    """Consistency over `k` trials, averaged over cases that were tried at least that often."""

    k: int
    some: float
    """pass@k: the chance that at least one of k trials is right."""
    every: float
    """pass^k: the chance that all of k trials are right."""
    items: int
    """How many cases it is the average of."""


class Stability(Struct, frozen=True, kw_only=True):
    """How many cases were always, sometimes or never right."""

    always: int = 0
    sometimes: int = 0
    never: int = 0
    once: int = 0
    """Tried once only, so that nothing is known."""


class Group(Struct, frozen=True, kw_only=True):
    """The figures of some trials: all of them, those with one value of an axis, or of a cell."""

    axis: Axis | Literal["overall", "controls", "cell"]
    value: str
    cell: Cell | None = None
    control: bool = False
    simulated: Simulated
    n: int
    """Trials that were made; rates leave out those that ended with an error of the endpoint."""
    original: Rate
    """Right by the original, loose assertion."""
    strict: Rate
    """Right by what was done: state and process."""
    answer: Rate
    """Of trials with a final text that was judged: those whose text is right."""
    false_calls: Rate
    """Trials with a call that should not have been made."""
    original_of_all: Rate
    """The same of all trials, endpoint errors counted as wrong: what gates look at."""
    strict_of_all: Rate
    errors: int
    """Trials that the endpoint failed: neither right nor wrong."""
    unanswered: Rate
    """The share of trials that the endpoint failed, or whose request it refused."""
    error_causes: tuple[FailureCount, ...]
    """Why the endpoint failed."""
    outcomes: dict[str, int]
    categories: dict[str, int]
    """Failed trials by the categories of the original experiment."""
    calls: CallFigures
    saved: Rate
    """Of trials that are strictly right: those that needed at least one rule."""
    recoveries: tuple[Recovery, ...]
    fabrications: int
    """Calls that ran with something the model did not send; must be 0."""
    failures: tuple[FailureCount, ...]
    cut_by_limit: int
    latency: Latency
    costs: Costs
    pass_curve: tuple[PassPoint, ...]
    stability: Stability

    @property
    def judged(self) -> int:
        """How many trials rates are of: all but those that the endpoint failed."""
        return self.n - self.errors


class Item(Struct, frozen=True, kw_only=True):
    """One case in one cell, over its trials."""

    cell: Cell
    case: str
    control: bool
    n: int
    tried: int
    """All trials, those that the endpoint failed as well."""
    k: int
    """Trials that are strictly right."""
    original_k: int
    """Trials that are right by the original assertion."""
    consistency: Consistency
    drawn: bool = False
    """Whether the case is a sample of many."""


class StrategyComparison(Difference, frozen=True, kw_only=True):
    """Two strategies on trials that are equal in everything else."""

    a: str
    b: str
    model: str | None
    """None over all models."""
    simulated: Simulated


class Summary(Struct, frozen=True, kw_only=True):
    """An experiment in figures; controls are never mixed into rates of tools."""

    rows: int
    overall: Group
    controls: Group | None
    """Trials of scenarios without tools."""
    axes: dict[str, tuple[Group, ...]]
    """By axis, each value in the order in which it was met; controls left out."""
    cells: tuple[Group, ...]
    """Every cell, controls included and marked."""
    items: tuple[Item, ...]
    strategies: tuple[StrategyComparison, ...]


def say_simulated(count: int, n: int) -> Simulated:
    """Say how many of `n` trials were made with a simulated model."""
    if not count:
        return "none"
    return "all" if count >= n else "some"
