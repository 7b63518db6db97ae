"""What an experiment is made of: cells, trials, verdicts and what was seen in each run."""

import platform
import tomllib
from collections.abc import Iterable
from functools import cached_property
from importlib import resources
from typing import Any, Final, Literal, NamedTuple, Self, cast

import msgspec
from msgspec import Struct, field

from surecall.base.records import Usage
from surecall.base.version import VERSION
from surecall.text import canonical_hash, encode_text

Outcome = Literal["called", "abstained", "broke", "refused", "error"]
"""`called`: at least one call ran; `abstained`: none was tried; `broke`: tried, but none ran;
`refused`: the endpoint refused the request itself, which is the model's failure; `error`: the
endpoint failed, so that nothing can be said about the model."""


class Cell(Struct, frozen=True, kw_only=True):
    """One combination of what is compared; its trials are interchangeable."""

    model: str
    """As the user named it, such as `embedded:smollm2-135m`."""
    profile: str = "default"
    strategy: str = "production"
    fallback: str = "best_effort"
    """`best_effort`, `fallback_off` or `fallback_on`: whether calls in text are looked for."""
    suite: str = "state"
    scenario: str

    @property
    def label(self) -> str:
        """The cell as one line of text."""
        parts = (self.model, self.profile, self.strategy, self.fallback, self.scenario)
        return " / ".join(parts)


class Task(NamedTuple):
    """What is compared, over all scenarios: a row of the matrix, an entry of `summary.json`."""

    model: str
    profile: str
    strategy: str
    fallback: str

    @classmethod
    def of(cls, cell: Cell) -> "Task":
        """Return the task a cell belongs to."""
        return cls(cell.model, cell.profile, cell.strategy, cell.fallback)


class Unit(Struct, frozen=True, kw_only=True):
    """One trial that is to be run: a cell, a case of its scenario, and which repetition."""

    index: int
    """Place in the order of results, whatever the order of running."""
    cell: Cell
    case: str = ""
    """Which case of the scenario; empty when it has only one."""
    trial: int = 1
    seed: int = 0


class Reason(Struct, frozen=True):
    """Why a verdict is no: a stable code and what was seen."""

    code: str
    message: str = ""


class Verdict(Struct, frozen=True):
    """Whether a run did what was asked."""

    ok: bool
    reasons: tuple[Reason, ...] = ()

    @classmethod
    def of(cls, reasons: Iterable[Reason]) -> Self:
        """Return a yes without any reason against it."""
        found = tuple(reasons)
        return cls(ok=not found, reasons=found)


class Parts(Struct, frozen=True, kw_only=True):
    """A verdict in its three parts; `None` for one that could not be judged."""

    state: Verdict | None = None
    """What the world looks like afterwards, and what was done to it on the way."""
    process: Verdict | None = None
    """What was called, in which order, and what must not have been tried."""
    answer: Verdict | None = None
    """The final text."""


class CallFact(Struct, frozen=True, kw_only=True):
    """One call that a model made, as counted."""

    turn: int
    name: str
    format: str
    """`tool_calls`, `function_call`, or the text format it was recovered from."""
    structured: bool
    """Whether it arrived in the place the wire format has for it."""
    state: str
    valid_before: bool
    """Whether the arguments fitted the schema exactly as they arrived."""
    valid_after: bool
    """Whether they fitted after repair and coercion."""
    changed: bool
    """Whether any rule changed the arguments or the name."""
    exact: bool | None = None
    """Whether the arguments are what was expected; None where nothing is expected."""
    executed: bool = False
    ok: bool = False
    rules: tuple[str, ...] = ()
    lossy: bool = False
    error_codes: tuple[str, ...] = ()
    error_kinds: tuple[str, ...] = ()
    """Kinds of schema errors, such as `missing`, `enum`, `type`, `range`, `unknown_key`."""
    arguments_bytes: int = 0


class TrialRow(Struct, frozen=True, kw_only=True):
    """One finished trial, small enough to keep ten thousand of them in memory.

    The original verdict is stored under its old name, so that runs of before stay readable.
    """

    index: int
    cell: Cell
    case: str = ""
    trial: int = 1
    seed: int = 0
    simulated: bool = False
    control: bool = False
    """Whether the scenario is a control without tools, kept out of tool rates."""
    drawn: bool = False
    """Whether the case is a sample of many, and not a named one that stands for itself."""
    original_ok: bool = field(name="seed_ok")
    """The verdict of the original, loose assertion."""
    strict_ok: bool
    """The verdict on behaviour: state and process are right."""
    original_reasons: tuple[Reason, ...] = field(default=(), name="seed_reasons")
    strict_reasons: tuple[Reason, ...] = ()
    """The reasons of state and process, the gravest first."""
    parts: Parts | None = None
    """The parts of the verdict; None when the endpoint failed the trial."""
    outcome: Outcome = "abstained"
    category: str | None = None
    """The error category of the original experiment, when the run failed."""
    code: str | None = None
    """The code the run ended with, when it gave no answer."""
    error: str | None = None
    error_status: int | None = None
    cut_by_limit: bool = False
    """Whether a reply stopped at its token limit and the run failed."""
    censored: bool = False
    """Whether the time is that of a timeout, so that the true one is longer."""
    elapsed_ms: float = 0.0
    first_token_ms: float | None = None
    """Until the first piece of the first reply arrived, where replies were streamed."""
    tokens_per_s: float | None = None
    """At which replies were written, where they were streamed and the provider counts tokens."""
    turns: int = 0
    requests: int = 0
    """Requests of the run; what the transport sends again is not counted twice."""
    attempts: int = 0
    """Requests on the wire, those sent again after an error included."""
    cached_replies: int = 0
    """Replies that were not asked for, because a run before had asked for the very same."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    calls: tuple[CallFact, ...] = ()
    rules: tuple[str, ...] = ()
    """Every rule that changed something in this run, each once."""
    saved_by: tuple[str, ...] = ()
    """Rules without which a call of this successful run could not have been used."""
    fabrications: int = 0
    """Calls that ran with arguments or a name that the model did not send; must be 0."""
    escalations: int = 0
    text: str = ""
    started_at: float = 0.0
    """Seconds since 1970."""

    @property
    def is_error(self) -> bool:
        """Whether the endpoint failed: wrong where sides are compared, and in no other rate."""
        return self.outcome == "error"

    @property
    def is_refused(self) -> bool:
        """Whether the endpoint refused the request itself, which counts as wrong."""
        return self.outcome == "refused"

    @property
    def answer_ok(self) -> bool | None:
        """The verdict on the final text; None where none was judged."""
        answer = None if self.parts is None else self.parts.answer
        return None if answer is None else answer.ok

    @property
    def structured(self) -> bool:
        """Whether any call came structured."""
        return any(call.structured for call in self.calls)


class TrialBody(Struct, frozen=True, kw_only=True):
    """The parts of a trial that are only looked at one by one."""

    index: int
    request: dict[str, Any] = {}
    """System text, messages and tools that were sent first."""
    config: dict[str, Any] = {}
    """Options and capabilities in force, with the origin of each."""
    transcript: tuple[dict[str, Any], ...] = ()
    """Turn by turn: what arrived, what was changed, the calls, their results."""
    state: dict[str, Any] = {}
    """What the case left behind, such as the draft."""


_TOLD: Final = ("command", "engine", "gates", "places", "regraded_from", "simulated")
"""Fields that are kept for the reader and do not make an experiment another one."""
_SHOWN_CHARS: Final = 60
_HASH_CHARS: Final = 16


class Manifest(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that decides what the trials of a run mean."""

    axes: dict[str, Any] = {}
    """What was asked for: models, profiles, strategies, fallbacks, scenarios, trials, seed."""
    units: int
    """How many trials there are."""
    units_hash: str = ""
    """Hash of every trial's cell, case, number and seed, in order."""
    suites: dict[str, str] = {}
    """The version of each suite."""
    contenders: dict[str, Any] = {}
    """What each model's name stands for: model, provider, address."""
    catalog: str = ""
    """Hash of the catalog of models, presets and profiles."""
    options: dict[str, Any] = {}
    """Options that hold for every trial, such as the time one may take."""
    package: str = ""
    python: str = ""
    command: str = ""
    """The command that began the run."""
    engine: str = "local"
    places: dict[str, str] = {}
    """The suites that are files, each with the name by which it is found from any folder."""
    simulated: tuple[str, ...] = ()
    """The models that are simulated, and none that anybody serves."""
    regraded_from: str = ""
    """The run whose replies were judged again; empty when the replies are the run's own."""
    gates: tuple[str, ...] = ()
    """What the run must pass, each with the id of the run that it compares with."""

    @cached_property
    def hash(self) -> str:
        """The same for experiments whose trials are interchangeable."""
        return hash_of(self._list_compared())

    def differences(self, other: "Manifest") -> list[str]:
        """Say, field by field, what another experiment has that this one has not."""
        mine, theirs = dict(_flat(self._list_compared())), dict(_flat(other._list_compared()))
        names = [*mine, *(name for name in theirs if name not in mine)]
        return [
            f"{name}: {_describe_field(mine, name)} → {_describe_field(theirs, name)}"
            for name in names
            if mine.get(name) != theirs.get(name)
        ]

    def _list_compared(self) -> dict[str, Any]:
        fields = msgspec.to_builtins(self)
        return {name: value for name, value in fields.items() if name not in _TOLD}


def read_text(place: str) -> str:
    """Return a file of the folder `data`, such as `agents/shop.sql`."""
    return resources.files("surecall.evals").joinpath("data", place).read_text("utf-8")


def read_data(place: str) -> dict[str, Any]:
    """Return what a file of TOML in the folder `data` holds, such as `errands.toml`."""
    return tomllib.loads(read_text(place))


def make_manifest(units: Iterable[Unit], *, axes: Any, **fields: Any) -> Manifest:
    """Describe an experiment that is about to be run with this version of surecall.

    Args:
        units: The trials.
        axes: What was asked for.
        **fields: Whatever else of a `Manifest` is known.
    """
    planned = [msgspec.structs.astuple(unit) for unit in units]
    return Manifest(
        axes=msgspec.to_builtins(axes),
        units=len(planned),
        units_hash=hash_of(planned),
        package=VERSION,
        python=".".join(platform.python_version_tuple()[:2]),
        **fields,
    )


def hash_of(value: Any) -> str:
    """Return a short hash of any plain value."""
    return canonical_hash(msgspec.to_builtins(value))[:_HASH_CHARS]


def drop_defaults(value: Any, *, without: frozenset[str] = frozenset()) -> Any:
    """Return plain data without the fields of records that are named or hold their default.

    A hash over it stays the same when a record gets a new field that nothing uses yet.
    """
    if isinstance(value, Struct):
        return {
            item.name: drop_defaults(getattr(value, item.name), without=without)
            for item in msgspec.structs.fields(value)
            if item.name not in without and getattr(value, item.name) != _find_default(item)
        }
    if isinstance(value, list | tuple):
        items = cast("Iterable[Any]", value)
        return [drop_defaults(item, without=without) for item in items]
    return value


def _find_default(item: msgspec.structs.FieldInfo) -> Any:
    factory = item.default_factory
    return item.default if factory is msgspec.NODEFAULT else factory()


def _flat(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _describe_field(table: dict[str, Any], name: str) -> str:
    if name not in table:
        return "(not there)"
    value = table[name]
    text = value if isinstance(value, str) else encode_text(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
