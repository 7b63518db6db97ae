"""Gates as text: `strict[scenario=happy_path]>=0.95`, `regression<=0.02 vs @baseline`."""

import math
import operator
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final, Literal, NamedTuple, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.evals.metrics.records import AXES, Group
from surecall.evals.stats import Rate, rate_of
from surecall.evals.taxonomy import ENDPOINT_LAYERS

Undecided = Literal["pass", "fail"]
"""What becomes of a gate that the trials cannot decide."""
Operator = Literal[">=", "<=", "==", "!=", ">", "<"]

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_OPERATORS: Final[tuple[Operator, ...]] = (">=", "<=", "==", "!=", ">", "<")
_SERIES: Final = ("pass^", "pass@")
_PREFIX: Final = len("pass^")
_MAX_SERIES: Final = 100
_HINT: Final = "Write it as strict>=0.9 or strict[scenario=happy_path]>=0.95."
_OF_ERRORS: Final = frozenset({"errors", "error_share"})
_UNDECIDED: Final = "undecided="
_NAME_ENDS: Final = frozenset("[<>=! \t")


class Measure(NamedTuple):
    """What a gate can be about."""

    kind: Literal["rate", "count", "amount", "regression"]
    meaning: str
    path: str = ""
    """Where it is in a `Group`; empty when it does not come from one."""


MEASURES: Final[dict[str, Measure]] = {
    "strict": Measure("rate", "trials that did what was asked", "strict_of_all"),
    "original": Measure("rate", "trials that satisfy the original assertion", "original_of_all"),
    "answer": Measure("rate", "final texts that are right", "answer"),
    "errors": Measure("count", "trials that ended with an endpoint's error", "unanswered.k"),
    "error_share": Measure("amount", "their share", "unanswered.value"),
    "structured": Measure("rate", "calls in the place the wire format has", "calls.structured"),
    "valid_before": Measure("rate", "calls that fit their schema as sent", "calls.valid_before"),
    "valid_after": Measure("rate", "calls that fit it after repair", "calls.valid_after"),
    "exact": Measure("rate", "calls with the expected arguments", "calls.exact"),
    "repair_precision": Measure(
        "rate", "changed calls that came out exact", "calls.repair_precision"
    ),
    "fabrications": Measure("count", "calls that ran with something not sent", "fabrications"),
    "cut_by_limit": Measure("count", "trials that failed at a token limit", "cut_by_limit"),
    "timeouts": Measure("count", "trials stopped by a timeout", "latency.censored"),
    "trials": Measure("count", "trials", "n"),
    "p50_ms": Measure("amount", "half of the trials took no longer", "latency.p50_ms"),
    "p95_ms": Measure("amount", "95 % of the trials took no longer", "latency.p95_ms"),
    "p99_ms": Measure("amount", "99 % of the trials took no longer", "latency.p99_ms"),
    "cost_usd": Measure("amount", "dollars spent", "costs.cost_usd"),
    "regression": Measure("regression", "drop of the strict rate, paired"),
    "original_regression": Measure("regression", "drop of the original rate, paired"),
}
"""By name; apart from these, `pass^3` and `pass@3` for any number of trials."""


class Gate(Struct, frozen=True, kw_only=True):
    """A condition that an experiment must meet."""

    text: str
    metric: str
    where: tuple[tuple[str, str], ...] = ()
    """Axis and value, `*` standing for anything; all must match."""
    operator: Operator
    bound: float
    against: str | None = None
    """The run that a regression is measured from."""
    undecided: Undecided = "pass"
    """Whether it lets through what the trials cannot decide."""

    @property
    def series(self) -> int | None:
        """How many trials in a row `pass^k` and `pass@k` are about; None for other metrics."""
        return int(self.metric[_PREFIX:]) if self.metric.startswith(_SERIES) else None

    @property
    def measure(self) -> Measure:
        """What it is about."""
        if self.series is None:
            return MEASURES[self.metric]
        words = "all" if self.metric.startswith("pass^") else "at least one"
        return Measure("amount", f"{words} of {self.series} trials right")

    @property
    def limits_errors(self) -> bool:
        """Whether it says how many endpoint errors there may be."""
        return self.metric in _OF_ERRORS and self.operator in {"<=", "<", "=="}

    def holds(self, value: float) -> bool:
        """Tell whether a value meets the condition."""
        return _COMPARE[self.operator](value, self.bound)

    def rename(self, run: str) -> str:
        """Return its text with another name for the run that it is measured from."""
        if self.against is None:
            return self.text
        before, _, after = self.text.rpartition(self.against)
        return f"{before}{run}{after}"

    def read(self, group: Group) -> Rate | float | None:
        """Return what it is about in the figures of a group; None when that is not known."""
        if self.series is not None:
            if len(group.pass_curve) < self.series:
                return None
            point = group.pass_curve[self.series - 1]
            return point.every if self.metric.startswith("pass^") else point.some
        path = self.measure.path
        return attrgetter(path)(group) if path else None


def parse_gate(
    text: str, *, against: str | None = None, undecided: Undecided | None = None
) -> Gate:
    """Read a gate.

    Args:
        text: A metric, perhaps axes in brackets, a comparison, a number, perhaps `vs` and a run,
            perhaps `undecided=fail`.
        against: The run a regression is measured from when the text names none.
        undecided: What becomes of it when the trials cannot decide, where the text does not say.

    Raises:
        ConfigError: It cannot be understood (INVALID_GATE).
    """
    gate = _Parser(text).parse(against)
    if undecided is None or _UNDECIDED in text:
        return gate
    return replace(gate, undecided=undecided, text=f"{gate.text} {_UNDECIDED}{undecided}")


def limit_errors(text: str) -> Gate:
    """Return the gate for the errors that a run may have: a count such as `3`, or a share.

    Args:
        text: A whole number of trials, or a share of them such as `0.02` or `2%`.

    Raises:
        ConfigError: It is neither (INVALID_OPTION).
    """
    plain = text.strip()
    is_count = plain.isascii() and plain.isdigit()
    try:
        return parse_gate(f"{'errors' if is_count else 'error_share'}<={plain}")
    except ConfigError as error:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"--max-errors {text[:80]!r} is neither a count nor a share.",
            hint="--max-errors takes a count such as 3, or a share such as 0.02 or 2%.",
        ) from error


MAX_ERRORS: Final = "2%"
"""More trials than this that ended with an endpoint's error prove nothing, unless told so."""


def explain_errors(limit: Gate, group: Group, *, with_refusals: bool = True) -> str:
    """Say that more trials ended with an endpoint's error than may be; empty when they did not.

    Args:
        limit: How many there may be.
        group: The trials.
        with_refusals: Whether requests that the endpoint refused count, which is a failure of the
            model.
    """
    lost = group.unanswered if with_refusals else rate_of(group.errors, group.n)
    found = lost.k if limit.metric == "errors" else lost.value
    if found is None or limit.holds(found):
        return ""
    failures = (*group.error_causes, *(group.failures if with_refusals else ()))
    causes = dict.fromkeys(
        item.failure.code for item in failures if item.failure.layer in ENDPOINT_LAYERS
    )
    allowed = f"{limit.bound:g}" if limit.metric == "errors" else f"{100 * limit.bound:g} %"
    return (
        f"{lost.k:,} of {lost.n:,} trials ended with an endpoint's error "
        f"({', '.join(causes)}), and {limit.operator} {allowed} is the limit"
    )


class _Parser:
    """Reads from left to right, each character once."""

    def __init__(self, text: str) -> None:
        self._whole = text.strip()
        self._rest = self._whole

    def parse(self, against: str | None) -> Gate:
        metric, where, operator = self._metric(), self._where(), self._operator()
        bound, named, undecided = self._bound()
        gate = Gate(
            text=self._whole,
            metric=metric,
            where=where,
            operator=operator,
            bound=bound,
            against=named,
            undecided=undecided,
        )
        return self._check(gate, against)

    def _refusal(self, problem: str, hint: str = _HINT) -> ConfigError:
        return ConfigError(
            Code.INVALID_GATE, f"the gate {self._whole[:200]!r} {problem}.", hint=hint
        )

    def _metric(self) -> str:
        end = next((i for i, c in enumerate(self._rest) if c in _NAME_ENDS), len(self._rest))
        name, self._rest = self._rest[:end], self._rest[end:].lstrip()
        if name in MEASURES:
            return name
        if name.startswith(_SERIES):
            digits = name[_PREFIX:]
            is_number = digits.isascii() and digits.isdigit() and len(digits) <= len("100")
            if is_number and 1 <= int(digits) <= _MAX_SERIES:
                return f"{name[:_PREFIX]}{int(digits)}"
            raise self._refusal(
                f"has no number of trials from 1 to {_MAX_SERIES} after {name[:_PREFIX]}"
            )
        if not name:
            raise self._refusal("does not name a metric")
        raise self._refusal(
            f"is about {name!r}, which is not measured",
            did_you_mean(name, [*MEASURES, "pass^3"], listed_by="surecall docs gate-a-build"),
        )

    def _where(self) -> tuple[tuple[str, str], ...]:
        if not self._rest.startswith("["):
            return ()
        pairs: list[tuple[str, str]] = []
        self._rest = self._rest[1:]
        while True:
            axis, found, self._rest = self._rest.partition("=")
            axis = axis.strip()
            if not found or not axis or "]" in axis:
                raise self._refusal("has no axis=value in its brackets")
            if axis not in AXES:
                raise self._refusal(
                    f"selects by {axis[:80]!r}, which is not an axis", did_you_mean(axis, AXES)
                )
            value, end = self._value()
            pairs.append((axis, value))
            if end == "]":
                self._rest = self._rest.lstrip()
                return tuple(pairs)

    def _value(self) -> tuple[str, str]:
        """Take a value, and what ended it: a comma or the bracket."""
        self._rest = self._rest.lstrip()
        if self._rest.startswith('"'):
            value, found, after = self._rest[1:].partition('"')
            after = after.lstrip()
            if not found or after[:1] not in {",", "]"}:
                raise self._refusal("has a quote that is not closed")
            self._rest = after[1:]
            return value, after[0]
        end = next((i for i, c in enumerate(self._rest) if c in ",]"), -1)
        if end < 0:
            raise self._refusal("has a bracket that is not closed")
        value, mark = self._rest[:end].strip(), self._rest[end]
        self._rest = self._rest[end + 1 :]
        if not value:
            raise self._refusal("has an axis without a value")
        return value, mark

    def _operator(self) -> Operator:
        for sign in _OPERATORS:
            if self._rest.startswith(sign):
                self._rest = self._rest[len(sign) :].strip()
                return sign
        if self._rest.startswith("="):
            raise self._refusal("compares with a single =", "Write == for equal, or >= and <=.")
        raise self._refusal("has no comparison", f"Use one of {' '.join(_OPERATORS)}.")

    def _bound(self) -> tuple[float, str | None, Undecided]:
        number, *rest = self._rest.split() or [""]
        undecided: Undecided = "pass"
        if rest and rest[-1].startswith(_UNDECIDED):
            said = rest.pop().removeprefix(_UNDECIDED)
            if said not in get_args(Undecided):
                raise self._refusal(
                    f"says {_UNDECIDED}{said[:80]}", "Write undecided=fail or undecided=pass."
                )
            undecided = cast("Undecided", said)
        if rest and (rest[0] != "vs" or len(rest) != 2):
            raise self._refusal(
                f"continues with {' '.join(rest)[:80]!r}", "Only `vs RUN` may follow."
            )
        percent = number.endswith("%")
        try:
            bound = float(number.removesuffix("%").replace("_", "?"))
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            raise self._refusal(f"compares with {number[:80]!r}, which is not a number")
        return bound / 100 if percent else bound, rest[1] if rest else None, undecided

    def _check(self, gate: Gate, against: str | None) -> Gate:
        kind = gate.measure.kind
        is_share = kind in {"rate", "regression"} or gate.metric.startswith(
            (*_SERIES, "error_share")
        )
        if is_share and not 0 <= gate.bound <= 1:
            raise self._refusal("needs a share from 0 to 1", "Write 0.9 or 90%.")
        if kind != "regression":
            if gate.against is not None:
                raise self._refusal(
                    "compares with a run", "Only regression and original_regression do."
                )
            return gate
        if gate.operator not in {"<=", "<"}:
            raise self._refusal("asks for a drop", "Write regression<=0.02 vs @baseline.")
        if gate.against is None:
            if against is None:
                raise self._refusal("does not say against which run", "Add `vs @baseline`.")
            return replace(gate, against=against)
        return gate
