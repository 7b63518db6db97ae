"""The steps of a run as data: what it remembers, what can happen, and what may follow."""

from typing import Any, NamedTuple

from msgspec import Struct

from surecall.base.errors import ProviderError
from surecall.base.records import (
    Defect,
    ErrorDetail,
    Event,
    Message,
    Reading,
    Receipt,
    ToolCall,
    ToolResult,
    Usage,
)
from surecall.exchange.ladder import Place
from surecall.exchange.prompting import PromptMode

from .guidance import Guidance
from .output import OutputReading


class OutputState(Struct, frozen=True, kw_only=True):
    """How far a run is that asks for a value."""

    base: tuple[Message, ...]
    """The conversation up to the request for the value, without replies that were of no use."""
    answer: str = ""
    """The text that ended the use of tools."""
    place: Place = Place()
    """How far asking for it has come, in the ways of asking that the plan has."""


class RunState(Struct, frozen=True, kw_only=True):
    """All that a run remembers between steps."""

    history: tuple[Message, ...]
    turn: int = 0
    tools_enabled: bool = True
    retries_left: int = 0
    empty_final_tried: bool = False
    calls_seen: int = 0
    calls_run: int = 0
    any_success: bool = False
    last_ok: dict[str, bool] = {}
    """Per tool name, whether its last result was a success."""
    repeats: dict[str, int] = {}
    """How often each call was made since a tool with effects last succeeded."""
    last_keys: tuple[str, ...] = ()
    """The keys of the calls of the last reply; empty for those that may be repeated."""
    used_ids: frozenset[str] = frozenset()
    usage: Usage = Usage()
    base_mode: PromptMode = "native"
    """How tools are presented to the model when nothing special is tried."""
    mode: PromptMode = "native"
    """How tools are presented to the model in this turn."""
    forced_tool: str | None = None
    """The one tool that is asked for in this turn."""
    refusals: dict[str, int] = {}
    """Per tool name, how often in a row its arguments could not be used."""
    escalations: int = 0
    is_escalated: bool = False
    """Whether the request of this turn is made in a way that is one step up."""
    parse_retries: int = 0
    was_cut: bool = False
    """Whether the last reply held a call that was cut."""
    compensations: int = 0
    """How often the model was asked again only because a likely call of its text did not run."""
    single: "Replied | None" = None
    """The reply with one call that is run if the list of calls asked for instead is of no use."""
    is_compensating: bool = False
    """Whether the request of this turn is made for that reason alone."""
    echo_asked: bool = False
    """Whether the model was asked again because it answered with a notice that it was sent."""
    pauses: int = 0
    """How often a turn that the provider paused was sent back."""
    paused_text: str = ""
    """The answer up to the last pause."""
    guidance: Guidance = Guidance()
    """What it has to do before it may answer."""
    output: OutputState | None = None
    """Set while the value is asked for that the run is to end with."""


class Replied(Struct, frozen=True):
    """The model answered and the answer was read."""

    reading: Reading
    usage: Usage | None = None
    extra: dict[str, Any] = {}
    """Fields of the message to echo when it carries calls."""
    output: OutputReading | None = None
    """What became of the reply when a value was asked for."""


class RequestFailed(Struct, frozen=True):
    """The model could not be asked."""

    error: ProviderError


class FitCheck(Struct, frozen=True, kw_only=True):
    """One question about the fit of a tool, and what came of it."""

    tool: str
    fits: bool
    score: float | None = None
    """Log-probability of yes less log-probability of no; unset after a plain answer."""
    threshold: float | None = None
    requests: int = 1
    usage: Usage | None = None
    elapsed_ms: float = 0.0
    error: str | None = None
    """The code of what kept the model from being asked; the tool then counts as fitting."""


class CallsFinished(Struct, frozen=True):
    """Every accepted call has its result."""

    results: tuple[ToolResult, ...]
    fit_checks: tuple[FitCheck, ...] = ()
    """Questions that were asked before they ran: whether their tools fit the request."""


Happened = Replied | RequestFailed | CallsFinished


class AskModel(Struct, frozen=True):
    """Send the history to the model."""


class RunCalls(Struct, frozen=True):
    """Run the calls; `warnings` are told to the model with the result of that call."""

    calls: tuple[ToolCall, ...]
    warnings: dict[str, str] = {}
    not_ready: dict[str, ErrorDetail] = {}
    """Tools that cannot be called yet, by name, with what the model is told."""
    repeated: dict[str, ToolResult] = {}
    """Results of before that answer a call, by the id of the call."""
    asks_for_all: bool = False
    """Whether the only call does not run yet, unless its tool does not fit: the model is asked for
    a list of all that it wants to make."""


class Finish(Struct, frozen=True):
    """The run has its answer."""

    text: str


class Fail(Struct, frozen=True):
    """The run ends without an answer."""

    code: str
    message: str
    hint: str
    details: dict[str, Any] = {}


class Reraise(Struct, frozen=True):
    """The run ends with the provider's error."""

    error: ProviderError


class Emit(Struct, frozen=True):
    """Tell the listeners."""

    event: Event


Effect = AskModel | RunCalls | Finish | Fail | Reraise | Emit


class Accepted(NamedTuple):
    """Which calls of a reply are kept, which are not, and what was left out of the history."""

    calls: tuple[ToolCall, ...]
    ignored: tuple[ToolCall, ...]
    content_sample: str | None = None
    """Start of the text that came beside the calls and is not kept in the history."""
    defects: tuple[Defect, ...] = ()
    """What is found about the reply only because of its place in the run."""
    receipts: tuple[Receipt, ...] = ()
    """What was left out of the reply because of a limit of the run."""


class Step(NamedTuple):
    """The new state, what to do, and what was accepted of a reply."""

    state: RunState
    effects: tuple[Effect, ...]
    accepted: Accepted | None = None
