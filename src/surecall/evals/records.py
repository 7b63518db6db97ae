"""What an experiment is made of: cells, trials, verdicts and what was seen in each run."""

import math
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct, field

from surecall.errors import JSONTextError
from surecall.jsontext import encode, mend_surrogates
from surecall.records import Usage
from surecall.tools.envelopes import plain_data

__all__ = [
    "CallFact",
    "Cell",
    "Outcome",
    "Reason",
    "TrialBody",
    "TrialRow",
    "Unit",
    "Verdict",
    "encode_kept",
]

Outcome = Literal["called", "abstained", "broke"]
"""`called`: at least one call ran; `abstained`: none was tried; `broke`: tried, but none ran."""


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
    original_ok: bool = field(name="seed_ok")
    """The verdict of the original, loose assertion."""
    strict_ok: bool
    """The verdict on behaviour."""
    original_reasons: tuple[Reason, ...] = field(default=(), name="seed_reasons")
    strict_reasons: tuple[Reason, ...] = ()
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
    turns: int = 0
    requests: int = 0
    """Requests of the run; what the transport sends again is no further one."""
    attempts: int = 0
    """Requests on the wire, those sent again after a fault included."""
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


def encode_kept(value: Any) -> bytes:
    """Encode anything a trial may hold: what JSON cannot carry is replaced, never refused."""
    try:
        return encode(value)
    except JSONTextError:
        return encode(_writable(value))


def _writable(value: Any) -> Any:
    """Return plain data: halves of characters and numbers without end are replaced."""
    try:
        return _mend_values(plain_data(value))
    except TypeError:
        return _mend_values(msgspec.to_builtins(value, str_keys=True, enc_hook=repr))


def _mend_values(value: Any) -> Any:
    if isinstance(value, str):
        return mend_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_mend_values(k): _mend_values(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_mend_values(item) for item in cast("list[Any]", value)]
    return value
